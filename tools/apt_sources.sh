# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# For scripts that make roots of Debian: where its packages come from, which is
# where this machine has its own from. To be sourced by one that has fail().

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
