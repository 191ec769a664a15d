# SPDX-License-Identifier: GPL-2.0-only
"""Write disks.h: the disks of disks/ as the plugin reads them (disk.c).

Usage: make_disks.py OUTPUT DISK.toml...
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """See the module."""
    sys.path.insert(0, str(ROOT))
    from streamsched.sim.diskfile import parse_disk

    output, *files = (Path(argument) for argument in sys.argv[1:])
    lines = [
        "/* Made by make_disks.py from disks/. */",
        "static const struct {",
        "\tconst char *name;",
        "\tconst char *text;",
        "} disks[] = {",
    ]
    for file in files:
        disk = parse_disk(file.read_text(encoding="utf-8"), file.name)
        text = disk.description_text().replace("\n", "\\n")
        lines.append(f'\t{{ "{disk.name}", "{text}" }},')
    output.write_text("\n".join([*lines, "};", ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
