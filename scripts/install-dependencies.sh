#!/usr/bin/env bash
# Installs the system libraries that the package builds on (Debian, Ubuntu), or says how to; and the packages named as
# arguments. One whose name ends in `?` is left out, loudly, where the archive does not have it.
set -euo pipefail
[ "$(uname)" = Linux ] || exit 0
missing=()
[ -e /usr/include/sqlite3.h ] || missing+=(libsqlite3-dev)
[ -e /usr/include/zlib.h ] || missing+=(zlib1g-dev)
[ -e /usr/include/qrencode.h ] || missing+=(libqrencode-dev)
optional=()
for package in "$@"; do
    dpkg -s "${package%\?}" > /dev/null 2>&1 && continue
    case "$package" in
        *\?) optional+=("${package%\?}") ;;
        *) missing+=("$package") ;;
    esac
done
as_root=(bash -c)
[ "$(id -u)" = 0 ] || as_root=(sudo -n bash -c)
if [ ${#optional[@]} -gt 0 ]; then
    # A new machine has no list of packages before the first update.
    [ -n "$(apt-cache madison coreutils 2> /dev/null)" ] || "${as_root[@]}" "apt-get update" > /dev/null 2>&1 || true
    for package in "${optional[@]}"; do
        if [ -n "$(apt-cache madison "$package" 2> /dev/null)" ]; then
            missing+=("$package")
        else
            echo "*** The package $package is not available here. What needs it is left out." >&2
        fi
    done
fi
if [ ${#missing[@]} -gt 0 ]; then
    install="apt-get update && apt-get install -y ${missing[*]}"
    if [ "$(id -u)" != 0 ] && ! sudo -n true 2> /dev/null; then
        echo "Missing: ${missing[*]}. Run: sudo bash -c '$install'" >&2
        exit 1
    fi
    "${as_root[@]}" "$install"
fi
# Makes compression faster, and may be missing. A new machine has no list of packages before the first update.
if [ ! -e /usr/include/isa-l.h ]; then
    "${as_root[@]}" "apt-get install -y libisal-dev || { apt-get update && apt-get install -y libisal-dev; }" > /dev/null 2>&1 \
        || echo "Without libisal-dev, compression takes four times as long." >&2
fi
