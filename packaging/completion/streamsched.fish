# SPDX-License-Identifier: GPL-2.0-only
#
# fish asks the command what fits, and offers files where that knows nothing.
function __streamsched_ask
    _STREAMSCHED_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=$argv[1] \
        _TYPER_COMPLETE_ARGS=(commandline -cp) streamsched 2>/dev/null
end
complete --command streamsched --no-files --condition '__streamsched_ask is-args' \
    --arguments '(__streamsched_ask get-args)'
