#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The packages' life in a bare root (packaging/root.sh keep SUITE install), as root
# there: what tests/house/test_packages.py runs in each suite. /packages has the older
# packages in old/ and the repository in repo/.
#
#   package_guest.sh VERSION "LINE OF A SOURCES.LIST"
set -eu -o pipefail
export DEBIAN_FRONTEND=noninteractive INITRD=No
version=$1
line=$2
ours="streamsched streamsched-dkms nbdkit-plugin-streamsched"

step() {
	echo "==> $*"
}

quietly() {
	"$@" >/tmp/quiet 2>&1 || {
		tail -n 40 /tmp/quiet
		echo "FAILED: $*"
		exit 1
	}
}

# Without what is only recommended.
add() { # PACKAGE...
	quietly apt-get install -y -qq --no-install-recommends "$@"
}

# All files but those of this run, and what apt, dpkg, dkms and man keep of what
# they have done.
files() {
	find / -xdev \( -path /tmp -o -path /packages -o -path /var/cache \
		-o -path /var/lib/apt -o -path /var/lib/dkms/mok.\* \) \
		-prune -o -print | sort
}

# The shells write to where the user is at home.
as_user() {
	runuser -u newcomer -- env HOME=/tmp/home "$@"
}

expect() { # WORDS COMMAND...
	local words=$1

	shift
	"$@" >/tmp/said 2>&1 || {
		cat /tmp/said
		echo "FAILED: $*"
		exit 1
	}
	grep -q -F -e "$words" /tmp/said || {
		cat /tmp/said
		echo "FAILED: $* does not say: $words"
		exit 1
	}
}

works() {
	local release

	step "the command, as a user"
	install -d -o newcomer /tmp/home
	cd /tmp/home
	expect "streamsched $version" as_user streamsched --version
	expect "stream:deadline" as_user streamsched run /usr/share/streamsched/jobs/par-read.fio \
		--policy noop,stream:deadline
	expect "stream:deadline" as_user streamsched replay \
		/usr/share/streamsched/traces/pg-scan.blktrace.zst --owners none
	expect "streamsched: unknown policy 'nosuch'" as_user sh -c \
		'! streamsched run /usr/share/streamsched/jobs/par-read.fio --policy nosuch'
	expect "streamsched: no such command" as_user sh -c '! streamsched rum'
	step "manual pages"
	expect "streamsched" as_user man -P cat streamsched
	expect "nbdkit-streamsched-plugin" as_user man -P cat nbdkit-streamsched-plugin
	step "completion in bash, zsh and fish"
	# shellcheck disable=SC2016 # for the other shells
	{
		expect "replay report research" as_user bash -c '
			. /usr/share/bash-completion/bash_completion
			_comp_load streamsched 2>/dev/null || __load_completion streamsched
			COMP_LINE="streamsched re" COMP_POINT=14
			_streamsched
			echo ${COMPREPLY[@]}'
		expect "_streamsched" as_user zsh -fc \
			'autoload -U compinit && compinit -u -D && echo $_comps[streamsched]'
		expect "replay" as_user env _STREAMSCHED_COMPLETE=complete_zsh \
			_TYPER_COMPLETE_ARGS="streamsched re" streamsched
		expect "replay" as_user fish -c 'complete --do-complete "streamsched re"'
	}
	step "the plugin"
	expect "name=streamsched" as_user nbdkit --dump-plugin streamsched
	truncate -s 1M /tmp/disk
	chmod 666 /tmp/disk
	# shellcheck disable=SC2016 # nbdkit's variable
	expect "listens" as_user nbdkit -U - streamsched file=/tmp/disk \
		--run 'test -S "$unixsocket" && echo listens'
	step "DKMS"
	expect "streamsched/$version" dkms status
	for release in /lib/modules/*; do
		expect "$release" sh -c "ls $release/updates/dkms/stream-iosched.ko*"
	done
	# shellcheck disable=SC2016 # for the shell inside
	expect "<</usr/src/streamsched-$version>>" sh -c 'echo "<<$(echo /usr/src/streamsched-*)>>"'
}

step "what the packages need"
depends=$(for package in /packages/repo/pool/*.deb; do
	dpkg-deb -f "$package" Depends
done | paste -s -d ,)
# The lists may be old.
apt-get satisfy -y -qq --no-install-recommends "$depends" >/tmp/quiet 2>&1 || {
	quietly apt-get update -qq
	quietly apt-get satisfy -y -qq --no-install-recommends "$depends"
}
# From here on there is one repository, and an upgrade is of its packages alone.
rm -f /etc/apt/sources.list /etc/apt/sources.list.d/*
mkdir -p /etc/udev/rules.d
files >/tmp/before

step "installing an older version"
add /packages/old/*.deb

step "an upgrade from the repository"
echo "$line" >/etc/apt/sources.list.d/streamsched.list
quietly apt-get update -qq
quietly apt-get upgrade -y -qq
for package in $ours; do
	case $(dpkg-query -W -f '${Version}' "$package") in
	"$version" | "$version"+*) ;;
	*)
		echo "FAILED: $package was not upgraded"
		exit 1
		;;
	esac
done
works

step "removing"
ln -s /usr/share/streamsched-dkms/60-stream-iosched.rules \
	/usr/share/streamsched/61-stream-array.rules /etc/udev/rules.d/
# As if a disk were enabled, of which nothing is known any more.
mkdir /var/lib/streamsched
echo "# Written by \`streamsched enable\`" >/etc/udev/rules.d/99-streamsched.rules
echo '{"format": "streamsched-enabled"}' >/var/lib/streamsched/enabled.json
# shellcheck disable=SC2086 # the words are packages
expect "60-stream-iosched.rules: removed, the rule is gone" apt-get remove -y $ours
grep -q -F "61-stream-array.rules: removed, the rule is gone" /tmp/said
grep -q -F "99-streamsched.rules: removed" /tmp/said
files >/tmp/removed
diff /tmp/before /tmp/removed | grep '^>' >/tmp/more || true
# shellcheck disable=SC2016 # a pattern
if grep -v -E '^> (/var/lib/dpkg/info/.*\.(list|postrm)|/etc/apt/sources.list.d/streamsched.list)$' \
	/tmp/more; then
	echo "FAILED: these files stay after removal"
	exit 1
fi

step "purging"
# shellcheck disable=SC2086 # the words are packages
quietly apt-get purge -y $ours
rm /etc/apt/sources.list.d/streamsched.list
files >/tmp/after
if ! diff /tmp/before /tmp/after; then
	echo "FAILED: the files are not those from before"
	exit 1
fi
echo "all done"
