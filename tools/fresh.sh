#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What README.md promises, on a fresh machine: a bare root of each Debian
# suite, with nothing in it but the packages that README.md names, and a copy
# of the last commit. There `make run` and `make test` are run
#
#   as user      by a new user, who may not install anything
#   as root      who has what make test needs installed
#   as again     by the user, now that the packages are there
#
# and each one's last lines are printed. Exit code 1 when one of them failed.
# Nothing of this machine is changed. Needed: root, mmdebstrap and a Debian
# mirror; the mirror and pip's index are those that this machine uses.
#
#   SUITES="bookworm trixie"     the suites
#   FRESH_AS="user root again"   who runs it
#   FRESH_ONLY=setup             make run, the set-up of make test and one file
#                                of each layer's tests
#   FRESH_CACHE=1                with the kernels and roots that this machine has
#                                built or fetched (~/.cache/streamsched); root only
#   FRESH_DIR=DIR                where roots and logs are
#                                (~/.cache/streamsched/fresh)
#   FRESH_KEEP=1                 keep the roots; a root that is there is used
set -eu -o pipefail
here=$(dirname "$(realpath "$0")")
roots=$here/../packaging/root.sh
cache=${XDG_CACHE_HOME:-$("$here/cache.sh")}/streamsched
dir=${FRESH_DIR:-$cache/fresh}
user=newcomer
# Of each layer a file that takes a minute at most.
SOME="tests/house/test_build.py tests/sim/test_property_array.py tests/core/test_golden.py
	tests/cli/test_e2e_cli.py tests/kernel/test_kernel_applications.py
	tests/kernel/test_kernel_stream.py tests/nbdkit/test_nbdkit_errors.py
	tests/kernel/test_kernel_stock.py tests/house/test_packages.py"
# How often it says that it goes on.
EVERY_S=60

say() {
	printf '==> %s\n' "$*"
}

fail() {
	printf 'fresh.sh: %s\n' "$*" >&2
	exit 1
}

# ---- a bare root ----

# What README.md tells a person to install.
readme_packages() {
	# shellcheck disable=SC2016 # quotes of the document
	tr '\n' ' ' <"$here/../README.md" |
		sed -n 's/.*(Debian: `apt install \([^`]*\)`).*/\1/p'
}

make_root() {
	local suite=$1 root=$2 packages started=$SECONDS

	packages=$(readme_packages)
	[ -n "$packages" ] || fail "README.md names no packages to install"
	say "$suite: a bare root with $packages"
	# The words are packages.
	# shellcheck disable=SC2086
	"$roots" make "$suite" "$root" $packages || exit 1
	say "$suite: there after $((SECONDS - started)) s"
}

# The last commit, as a person who has no git unpacks it.
copy_tree() {
	local root=$1 name=$2 home=$3 kept=rig part

	mkdir -p "$root$home/streamsched"
	git -C "$here/.." archive HEAD | tar -x -C "$root$home/streamsched"
	if [ "${FRESH_CACHE-}" = 1 ]; then
		mkdir -p "$root$home/.cache/streamsched"
		[ "$name" != root ] || kept="rig stock roots"
		for part in $kept; do
			[ ! -d "$cache/$part" ] ||
				cp -a "$cache/$part" "$root$home/.cache/streamsched/"
		done
	fi
	[ "$name" = root ] || chroot "$root" chown -R "$name:" "$home"
}

# ---- the commands ----

commands() {
	if [ "${FRESH_ONLY-}" = setup ]; then
		# The words are files.
		# shellcheck disable=SC2086
		echo "make run && make test-setup &&" \
			"echo '==> lint and a file of each layer' && tools/lint.sh &&" \
			".venv/bin/pytest --quiet -rs" $SOME "&&" \
			"FUZZ_SECONDS=4 tests/fuzz/run.sh"
	else
		echo "make run && make test"
	fi
}

# Wait for the process $2, and say now and then where its log $3 is.
watch() {
	local title=$1 pid=$2 log=$3 started=$SECONDS said=$SECONDS status=0

	while kill -0 "$pid" 2>/dev/null; do
		sleep 2
		[ $((SECONDS - said)) -ge "$EVERY_S" ] || continue
		said=$SECONDS
		say "$title: $((SECONDS - started)) s, at:" \
			"$(grep -a '^==>' "$log" | tail -n 1 | cut -c 5-)"
	done
	wait "$pid" || status=$?
	took=$((SECONDS - started))
	return "$status"
}

# try SUITE ROOT WHO: whether its commands succeeded.
try() {
	local suite=$1 root=$2 who=$3 name=$user home=/home/$user
	local log=$dir/$suite-$who.log status=0

	if [ "$who" = root ]; then
		name=root
		home=/root
	fi
	[ -d "$root$home/streamsched" ] || copy_tree "$root" "$name" "$home"
	say "$suite, as $who: $(commands | tr -s '[:space:]' ' ') (log: $log)"
	"$roots" run --sys "$root" "$name" "cd streamsched && $(commands)" \
		>"$log" 2>&1 </dev/null &
	child=$!
	watch "$suite, as $who" "$child" "$log" || status=$?
	child=
	say "$suite, as $who: exit code $status after $((took / 60)) min;" \
		"its last lines:"
	tail -n 14 "$log" | sed 's/^/    /'
	[ "$status" = 0 ]
}

# Each word of $2, which the variable $1 holds, is one of the others.
known() {
	local name=$1 words=$2 word

	shift 2
	for word in $words; do
		case " $* " in
		*" $word "*) ;;
		*) fail "$name: '$word' is unknown; write some of: $*" ;;
		esac
	done
}

[ $# = 0 ] || fail "takes no arguments; what it does is set by variables (tools/fresh.sh says which)"
suites=${SUITES:-bookworm trixie}
users=${FRESH_AS:-user root again}
known SUITES "$suites" bookworm trixie
known FRESH_AS "$users" user root again
known FRESH_ONLY "${FRESH_ONLY-}" setup
known FRESH_CACHE "${FRESH_CACHE-}" 1
[ "${FRESH_CACHE-}" != 1 ] || [ "$users" = root ] ||
	fail "FRESH_CACHE=1: the kernels are built in a folder of root's, which no user may read; set FRESH_AS=root"
known FRESH_KEEP "${FRESH_KEEP-}" 1
[ "$(id -u)" = 0 ] || fail "must run as root: it makes and enters root directories"
mkdir -p "$dir"
exec 9>"$dir/lock"
flock -n 9 || fail "another tools/fresh.sh is at work in $dir"
child=
took=0
failed=
passed=0
root=
trap '[ -z "$child" ] || kill "$child" 2>/dev/null || true
	[ -z "$root" ] || [ "${FRESH_KEEP-}" = 1 ] ||
		rm -rf --one-file-system "$root"' EXIT
trap 'exit 130' INT TERM
for suite in $suites; do
	root=$dir/$suite
	[ "${FRESH_KEEP-}" = 1 ] && [ -d "$root/home/$user" ] ||
		make_root "$suite" "$root"
	for who in $users; do
		if try "$suite" "$root" "$who"; then
			passed=$((passed + 1))
		else
			failed+=" $suite-$who"
		fi
	done
	[ "${FRESH_KEEP-}" = 1 ] || rm -rf --one-file-system "$root"
	root=
done
say "$passed passed, $(wc -w <<<"$failed") failed${failed:+:$failed}"
[ -z "$failed" ]
