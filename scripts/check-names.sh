#!/usr/bin/env bash
# Finds comparisons of text for which two spellings of one letter are equal. Swift's strings are equal if they are canonically equivalent:
# "é" is one code point or two, and K is the Kelvin sign. What came from a document, a user or a peer is compared by its bytes instead:
# `ExactText` in sets and dictionaries, `isExactly` for two strings.
# Every target is type-checked with scripts/names/TextComparisons.swift against the modules of the last release build; the compiler then
# names each use of `==`, `contains`, a dictionary and so on with strings. Comparisons with a literal of ASCII that nothing else is equal to
# are fine. The other exceptions are in scripts/names/allowed, with their reasons.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/built-modules.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
package=$(basename "$PWD" | tr '[:upper:]' '[:lower:]')
for target in Sources/Loveseat* Sources/CouchbaseLiteSwift; do
    name=$(basename "$target")
    # Tools for tests, whose names are their own.
    case $name in *Testing) continue ;; esac
    # Not with `grep -q`, which ends before `find` does, and makes it fail now and then.
    [ -n "$(find "$target" -name '*.swift' -print -quit)" ] || continue
    library=-parse-as-library
    [ ! -e "$target/main.swift" ] || library=
    # shellcheck disable=SC2046,SC2086
    swiftc -typecheck -module-name "$name" $library -swift-version 6 -package-name "$package" \
        -enable-upcoming-feature ExistentialAny -enable-upcoming-feature InternalImportsByDefault \
        -enable-upcoming-feature MemberImportVisibility -enable-upcoming-feature NonisolatedNonsendingByDefault \
        "${flags[@]}" $(find -H "$target" ".build/release/$name.build/DerivedSources" -name '*.swift' 2> "$work/.none") scripts/names/TextComparisons.swift \
        > "$work/$name" 2>&1 || { grep 'error:' "$work/$name" >&2; exit 1; }
done
python3 scripts/names/report.py "$work"
