#!/usr/bin/env bash
# Makes the packages of a release from what the last release build has compiled, and uses them as their users do: installs the .deb, with what
# they depend on and nothing else, in a new Debian root, and runs README's "Two machines, securely" there, on two hosts in network
# namespaces. Also checks with lintian, mandoc and systemd, and the syntax of the completions.
#   scripts/check-release.sh           after ./test and scripts/photodrop.sh
#   scripts/check-release.sh FOLDER    of the packages in a folder
# The root is kept in .build/release-root.tar.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
    echo "*** THE PACKAGES WERE NOT CHECKED: it needs root, and Debian or Ubuntu." >&2
    exit 0
fi
scripts/install-dependencies.sh mmdebstrap lintian mandoc zsh fish iproute2 dpkg-dev python3 systemd
work=$(mktemp -d)
packages="${1:-}"
# A folder with anything else in it is refused, and stays as it is.
mkdir "$work/mine"
touch "$work/mine/file"
if (cd "$work" && "$OLDPWD/scripts/release.sh" --binaries "$OLDPWD" --output mine) 2> /dev/null || [ ! -e "$work/mine/file" ]; then
    echo "release.sh replaces a folder with files of others" >&2
    exit 1
fi
if [ -z "$packages" ]; then
    # As scripts/photodrop.sh does, after which there is nothing left to compile.
    LOVESEAT_CHECKED=1 scripts/build-package.sh Examples/PhotoDrop --build-tests
    # Twice, because the bytes must be the same.
    for packages in "$work/again" "$work/packages"; do LEVEL=1 scripts/release.sh --relink .build/release --output "$packages" > /dev/null; done
    cmp "$work/again/SHA256SUMS" "$work/packages/SHA256SUMS"
fi
if [ ! -e .build/release-root.tar ]; then
    . /etc/os-release
    mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $VERSION_CODENAME" 'Created-By: Packages' | head -n 1)
    mkdir -p .build
    mmdebstrap --variant=minbase --dpkgopt=force-unsafe-io "$VERSION_CODENAME" "$work/root.tar" "$mirror"
    mv "$work/root.tar" .build/release-root.tar
fi
# A mount namespace of its own: what is mounted in the root is gone at the end.
PYTHONDONTWRITEBYTECODE=1 exec unshare --mount python3 scripts/release/check.py "$packages" .build/release-root.tar "$work"
