# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# bash asks the command what fits; where it knows nothing, files are offered.
_streamsched() {
	local IFS=$'\n'

	# shellcheck disable=SC2207 # words as they are: IFS is a line's end
	COMPREPLY=($(COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD \
		_STREAMSCHED_COMPLETE=complete_bash streamsched 2>/dev/null))
}
complete -o default -F _streamsched streamsched
