# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# bash asks the command what fits; where it knows nothing, files are offered.
_streamsched() {
	local IFS=$'\n' line=${COMP_LINE:0:COMP_POINT} word before

	# As fish asks: with the line itself, which bash divides at colons, too.
	# shellcheck disable=SC2207 # words as they are: IFS is a line's end
	COMPREPLY=($(_TYPER_COMPLETE_ARGS=$line _TYPER_COMPLETE_FISH_ACTION=get-args \
		_STREAMSCHED_COMPLETE=complete_fish streamsched 2>/dev/null | cut -f 1))
	# What stands before the last colon stays where it is.
	word=${line##*[[:blank:]]}
	word=${word##*=}
	before=${word%"${word##*:}"}
	[[ $COMP_WORDBREAKS != *:* ]] || COMPREPLY=("${COMPREPLY[@]#"$before"}")
}
complete -o default -F _streamsched streamsched
