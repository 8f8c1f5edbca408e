#!/usr/bin/env bash
# Installs the system libraries that the package builds on (Debian, Ubuntu), or says how to; and the packages named as
# arguments.
set -euo pipefail
missing=()
[ -e /usr/include/sqlite3.h ] || missing+=(libsqlite3-dev)
[ -e /usr/include/zlib.h ] || missing+=(zlib1g-dev)
[ -e /usr/include/qrencode.h ] || missing+=(libqrencode-dev)
# Makes compression faster, and may be missing.
if [ ! -e /usr/include/isa-l.h ] && apt-cache show libisal-dev > /dev/null 2>&1; then missing+=(libisal-dev); fi
for package in "$@"; do
    dpkg -s "$package" > /dev/null 2>&1 || missing+=("$package")
done
[ "$(uname)" = Linux ] || exit 0
[ ${#missing[@]} -gt 0 ] || exit 0
install="apt-get update && apt-get install -y ${missing[*]}"
if [ "$(id -u)" = 0 ]; then
    bash -c "$install"
elif sudo -n true 2>/dev/null; then
    sudo bash -c "$install"
else
    echo "Missing: ${missing[*]}. Run: sudo bash -c '$install'" >&2
    exit 1
fi
