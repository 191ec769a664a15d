#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Make an apt repository of the packages in build/ (packaging/deb.sh) and print
# the line of a sources.list that uses it: what make repo does. It is anew each
# time, of this machine's suite, and may be copied to any web server.
#
#   REPO_KEY=KEY        sign it with this key of gpg's; without, it is unsigned
#   REPO_DIR=build/repo  where it is made
#
# With --check it only says what of this is missing: building takes longer.
set -eu
cd "$(dirname "$(realpath "$0")")/.."

fail() {
	printf 'repo.sh: %s\n' "$*" >&2
	exit 1
}

case "$*" in
'' | --check) ;;
*) fail "takes only --check" ;;
esac
command -v apt-ftparchive >/dev/null ||
	fail "apt-ftparchive is missing: install the Debian package apt-utils"
if [ -n "${REPO_KEY-}" ]; then
	command -v gpg >/dev/null ||
		fail "gpg is missing: install the Debian package gnupg"
	gpg --batch --list-secret-keys "$REPO_KEY" >/dev/null 2>&1 ||
		fail "gpg has no key REPO_KEY=$REPO_KEY to sign with:" \
			"gpg --quick-generate-key $REPO_KEY makes one"
fi
[ "${1-}" != --check ] || exit 0
suite=$(
	# shellcheck source=/dev/null
	. /etc/os-release
	printf '%s' "${VERSION_CODENAME:-local}"
)
repo=${REPO_DIR:-build/repo}
arch=$(dpkg --print-architecture)
version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" meson.build)
dist=$repo/dists/$suite

# What is there is removed only if it is one of ours.
if [ -e "$repo" ] && ! grep -qs '^Origin: streamsched$' "$repo"/dists/*/Release; then
	fail "$repo is there, and is not of this command: name another folder with REPO_DIR"
fi
rm -rf "$repo/dists" "$repo/pool"
mkdir -p "$dist/main/binary-$arch" "$repo/pool"
cp "build/streamsched-dkms_${version}_all.deb" \
	build/{streamsched,nbdkit-plugin-streamsched}_"$version"+*_"$arch".deb \
	"$repo/pool/" 2>/dev/null ||
	fail "build/ has not all packages of version $version: run make deb first"
(cd "$repo" && apt-ftparchive packages pool) >"$dist/main/binary-$arch/Packages"
gzip -9 --keep --no-name "$dist/main/binary-$arch/Packages"
apt-ftparchive -o APT::FTPArchive::Release::Origin=streamsched \
	-o APT::FTPArchive::Release::Label=streamsched \
	-o APT::FTPArchive::Release::Suite="$suite" \
	-o APT::FTPArchive::Release::Codename="$suite" \
	-o APT::FTPArchive::Release::Architectures="$arch" \
	-o APT::FTPArchive::Release::Components=main \
	release "$dist" >"$dist.Release"
mv "$dist.Release" "$dist/Release"

at=$(realpath "$repo")
if [ -n "${REPO_KEY-}" ]; then
	gpg --batch --yes --local-user "$REPO_KEY" --clearsign \
		--output "$dist/InRelease" "$dist/Release" 2>"$repo/gpg.log" ||
		fail "gpg could not sign with REPO_KEY=$REPO_KEY: $(tail -n 1 "$repo/gpg.log")"
	gpg --batch --yes --local-user "$REPO_KEY" --armor --detach-sign \
		--output "$dist/Release.gpg" "$dist/Release"
	gpg --batch --export "$REPO_KEY" >"$repo/streamsched.gpg"
	rm -f "$repo/gpg.log"
	echo "deb [signed-by=$at/streamsched.gpg] file:$at $suite main"
else
	rm -f "$repo/streamsched.gpg"
	echo "repo.sh: $repo is not signed: REPO_KEY=KEY names a key of gpg's" >&2
	echo "deb [trusted=yes] file:$at $suite main"
fi
