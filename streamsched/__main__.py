# SPDX-License-Identifier: GPL-2.0-only
"""Where the command begins; also `python -m streamsched`."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Import the command line, and run it.

    Importing takes a tenth of a second. Ctrl-C in it ends the process at once, as it does any
    program: there is nothing to tidy up, and a traceback would say nothing.
    """
    ours = signal.getsignal(signal.SIGINT)
    if ours is signal.default_int_handler:  # else it is ignored, as nohup has it
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from streamsched.cli.main import main as run
    except (MemoryError, ImportError, OSError) as error:
        sys.exit(f"streamsched: cannot be loaded: {str(error) or 'there is too little memory'}")

    signal.signal(signal.SIGINT, ours)
    run()


if __name__ == "__main__":
    main()
