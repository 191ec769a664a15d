# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# For scripts that make roots of Debian or fetch its packages: where these come
# from, which is where this machine has its own from. To be sourced by one that
# has fail(), and to download logged() and a folder $work.

# The mirror of the label $1 (Debian, Debian-Security) that this machine uses.
mirror() {
	# shellcheck disable=SC2016 # apt's variables, not the shell's
	apt-get indextargets --format '$(LABEL) $(REPO_URI)' \
		'Created-By: Packages' 'Origin: Debian' |
		sed -n "s/^$1 //p" | head -n 1
}

# The lines of the suite $1 for a list of sources.
debian_sources() {
	local main security

	main=$(mirror Debian)
	security=$(mirror Debian-Security)
	[ -n "$main" ] ||
		fail "apt on this machine knows no mirror of Debian:" \
			"add one to /etc/apt/sources.list and run apt-get update"
	echo "deb $main $1 main"
	[ "$1" != sid ] || return 0
	echo "deb $main $1-updates main"
	[ -z "$security" ] || echo "deb $security $1-security main"
}

# Downloads packages of the suite $1, the others, into $work. What this machine
# knows of packages is not changed.
# shellcheck disable=SC2154 # the caller's folder
debian_download() {
	local options

	mkdir -p "$work/lists/partial" "$work/archives/partial"
	debian_sources "$1" >"$work/sources.list"
	shift
	options=(-o "Dir::Etc::SourceList=$work/sources.list"
		-o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$work/lists"
		-o "Dir::Cache=$work" -o Dir::State::status=/dev/null)
	logged apt-get "${options[@]}" update
	chmod 755 "$work"
	(cd "$work" && logged apt-get "${options[@]}" download "$@")
}
