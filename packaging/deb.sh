#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Build the Debian packages into build/, and print their paths: what make deb
# does. With --dkms only streamsched-dkms, which needs no compiler and no
# network: what make deb-dkms does. They are for the suite of this machine; where
# what is compiled is in them, their version ends in its name. Nothing is built
# with --needs, which prints the Debian packages that this takes, nor with
# --check, which fails if one is missing.
set -eu
cd "$(dirname "$(realpath "$0")")/.."
# shellcheck source=tools/progress.sh
. tools/progress.sh

fail() {
	printf 'deb.sh: %s\n' "$*" >&2
	exit 1
}

build=binary
case "$*" in
'' | --needs | --check) ;;
--dkms) build=all ;;
*) fail "takes only --dkms, --needs or --check" ;;
esac

# A command or a file's pattern, and the Debian package that has it.
needed() {
	cat <<-'END'
		dpkg-buildpackage dpkg-dev
		dh debhelper
		dh_dkms dh-dkms
	END
	[ "$build" = all ] || cat <<-'END'
		dh_python3 dh-python
		gcc gcc
		meson meson
		pkg-config pkgconf
		pod2man perl
		/usr/lib/python3/dist-packages/cffi python3-cffi
		/usr/lib/python3/dist-packages/pip python3-pip
		/usr/include/python3.*/Python.h python3-dev
		/usr/include/nbdkit-plugin.h nbdkit-plugin-dev
		/usr/include/liburing.h liburing-dev
	END
}

if [ "${1-}" = --needs ]; then
	needed | sed 's/.* //'
	exit
fi
missing=
while read -r what package; do
	command -v "$what" >/dev/null || compgen -G "$what" >/dev/null ||
		missing+=" $package"
done < <(needed)
[ -z "$missing" ] || fail "install the Debian packages$missing"
[ "${1-}" != --check ] || exit 0

version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" meson.build)
packaged=$(dpkg-parsechangelog -l packaging/debian/changelog -S Version)
[ "$version" = "$packaged" ] ||
	fail "packaging/debian/changelog is about version $packaged, meson.build" \
		"about $version: add an entry for $version to the changelog"

parts=(core disk docs/INSTALL.md kernel meson.build packaging)
[ "$build" = all ] || parts+=(LICENSE compat disks jobs man meson_options.txt
	nbdkit pyproject.toml sim streamsched traces)
# deb12, deb13, ubuntu24.04; a suite without a number by its name.
suite=$(
	# shellcheck source=/dev/null
	. /etc/os-release
	printf '%s%s' "${ID/debian/deb}" "${VERSION_ID:-${VERSION_CODENAME-}}"
)
tree=build/deb/streamsched-$version
rm -rf build/deb
mkdir -p "$tree"
tar -c --exclude=__pycache__ "${parts[@]}" | tar -x -C "$tree"
cp -r packaging/debian "$tree/debian"
cp kernel/packaging/dkms/dkms.conf "$tree/debian/streamsched-dkms.dkms"
build() {
	cd "$tree" || return
	# A virtual environment's meson and Python are not the system's.
	export PATH=/usr/sbin:/usr/bin:/sbin:/bin SUITE=$suite
	# What is needed was looked for above; it also wants a C++ compiler.
	dpkg-buildpackage --build="$build" --unsigned-changes \
		--no-check-builddeps
}
(watched build/deb/log build) ||
	fail "dpkg-buildpackage failed, build/deb/log says why:" \
		"$(grep -m 1 -i -E '^depends.py|error:|unmet' build/deb/log)"
for file in build/deb/*.deb; do
	mv "$file" build/
	echo "build/${file##*/}"
done
