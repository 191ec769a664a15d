#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Build the project and lay it out below DEST as it is on an installed system:
# what the packages of all distributions begin with.
#
#   packaging/install.sh modules DEST   the kernel modules' sources, for DKMS
#   packaging/install.sh command DEST   the command line and the nbdkit plugin
#
#   LIBDIR=/usr/lib/streamsched         where the command's Python files go
#   UNITDIR=/usr/lib/systemd/system     where systemd's units of packages are
#   ZSHDIR=/usr/share/zsh/site-functions  where zsh's completions are
#   BUILD=build/package                 where it is compiled
set -eu
cd "$(dirname "$(realpath "$0")")/.."

libdir=${LIBDIR:-/usr/lib/streamsched}
unitdir=${UNITDIR:-/usr/lib/systemd/system}
zshdir=${ZSHDIR:-/usr/share/zsh/site-functions}
build=${BUILD:-build/package}
version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" meson.build)

install_modules() {
	local share=$1/usr/share/streamsched-dkms

	kernel/packaging/dkms/stage.sh "$1/usr/src/streamsched-$version"
	install -D -m 644 -t "$share" kernel/packaging/udev/60-stream-iosched.rules
	install -D -m 755 packaging/release-disks.sh "$share/release-disks"
	install -D -m 755 packaging/release-enabled.sh "$share/release-enabled"
}

install_command() {
	local dest name
	dest=$(realpath -m "$1")

	# The settings are pyproject.toml's; the manual page's folder hangs on
	# datadir, which in a wheel is something else.
	meson setup "$build" --prefix=/usr \
		--wrap-mode=nodownload -Ddatadir=/usr -Db_ndebug=false \
		-Dnbdkit=enabled -Dnbdkit_mandir=/usr/share/man/man1 \
		-Dpython.purelibdir="$libdir" -Dpython.platlibdir="$libdir"
	meson compile -C "$build"
	DESTDIR=$dest meson install -C "$build" --no-rebuild

	# streamsched --version asks for the installed distribution's.
	install -D -m 644 /dev/stdin "$dest$libdir/streamsched-$version.dist-info/METADATA" <<-END
		Metadata-Version: 2.1
		Name: streamsched
		Version: $version
	END
	sed "s|@LIBDIR@|$libdir|" packaging/streamsched.in |
		install -D -m 755 /dev/stdin "$dest/usr/bin/streamsched"
	install -D -m 644 packaging/completion/streamsched.bash \
		"$dest/usr/share/bash-completion/completions/streamsched"
	install -D -m 644 -t "$dest$zshdir" packaging/completion/_streamsched
	install -D -m 644 -t "$dest/usr/share/fish/vendor_completions.d" \
		packaging/completion/streamsched.fish
	install -D -m 644 -t "$dest$unitdir" kernel/packaging/systemd/streamsched-auto@.service \
		kernel/packaging/systemd/streamsched-weights.service
	install -D -m 644 -t "$dest/usr/share/streamsched" kernel/packaging/udev/61-stream-array.rules
	install -D -m 755 packaging/release-enabled.sh "$dest/usr/share/streamsched/release-enabled"
	# Where people find them.
	for name in disks jobs traces examples; do
		ln -s --relative "$dest$libdir/streamsched/data/$name" \
			"$dest/usr/share/streamsched/$name"
	done
}

case ${1-}:$# in
modules:2) install_modules "$2" ;;
command:2) install_command "$2" ;;
*)
	echo "usage: packaging/install.sh modules|command DEST" >&2
	exit 2
	;;
esac
