#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Build the Debian package streamsched-dkms into build/, and print its path:
# what make deb does.
set -eu
cd "$(dirname "$(realpath "$0")")/../.."

fail() {
	printf 'deb.sh: %s\n' "$*" >&2
	exit 1
}

# command and the Debian package that has it
while read -r command package; do
	command -v "$command" >/dev/null ||
		fail "$command is missing: install the Debian package $package"
done <<-'END'
	dpkg-buildpackage dpkg-dev
	dh debhelper
	dh_dkms dh-dkms
END

version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" meson.build)
packaged=$(dpkg-parsechangelog -l kernel/debian/changelog -S Version)
[ "$version" = "$packaged" ] ||
	fail "kernel/debian/changelog is about version $packaged, meson.build" \
		"about $version: add an entry for $version to the changelog"

tree=build/deb/streamsched-$version
rm -rf build/deb
mkdir -p "$tree"
kernel/dkms/stage.sh "$tree/source"
cp -r kernel/debian "$tree/debian"
cp kernel/dkms/dkms.conf "$tree/debian/streamsched-dkms.dkms"
cp kernel/udev/6*.rules docs/INSTALL.md "$tree/"
(
	cd "$tree"
	# What is needed was looked for above; it also wants a C++ compiler.
	dpkg-buildpackage --build=binary --unsigned-changes \
		--no-check-builddeps
) >build/deb/log 2>&1 ||
	fail "dpkg-buildpackage failed, build/deb/log says why:" \
		"$(grep -m 1 -i -E 'error|unmet' build/deb/log)"
mv "build/deb/streamsched-dkms_${version}_all.deb" build/
echo "build/streamsched-dkms_${version}_all.deb"
