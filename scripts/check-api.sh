#!/usr/bin/env bash
# Fails if the public API of the last release build breaks that of the last release and CHANGELOG.md does not announce it.
# `swift package diagnose-api-breaking-changes` would build both versions whole, which takes longer than all other checks; its
# tool is run here on the modules that are built already, against the descriptions of the release's API in scripts/api.
# With `--record VERSION`, keeps today's API as that of a release.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
public=(LoveseatModel LoveseatCore LoveseatIdentity LoveseatNetwork LoveseatCouchDB LoveseatDiscovery)

. scripts/built-modules.sh
describe() { # MODULE FILE
    swift-api-digester -dump-sdk -module "$1" -o "$2" -avoid-location -avoid-tool-args \
        -sdk / -swift-version 6 "${flags[@]}"
}

if [ "${1:-}" = --record ]; then
    folder=scripts/api/${2:?which version?}
    mkdir -p "$folder"
    for module in "${public[@]}"; do
        describe "$module" "$work/$module.json"
        xz -9 --stdout "$work/$module.json" > "$folder/$module.json.xz"
    done
    exit 0
fi

release=$(ls scripts/api | sort -V | tail -n 1)
for module in "${public[@]}"; do
    describe "$module" "$work/now.json"
    xz --decompress --stdout "scripts/api/$release/$module.json.xz" > "$work/then.json"
    swift-api-digester -diagnose-sdk -input-paths "$work/then.json" -input-paths "$work/now.json" \
        >> "$work/differences" 2>&1
done
breaks=$(grep -vE '^$|^/\*' "$work/differences" || true)
[ -n "$breaks" ] || { echo "The API of $release is kept."; exit 0; }
printf '%s\n' "$breaks"
# Until 1.0.0 a minor version may break the API (CHANGELOG.md): then it says so.
if [[ "$release" == 0.* ]] && sed "/^## \\[$release\\]/q" CHANGELOG.md | grep -x '### Changed' > /dev/null; then
    echo "The API breaks against $release; CHANGELOG.md announces changes."
    exit 0
fi
echo "The API breaks against $release: announce it in CHANGELOG.md under Changed." >&2
exit 1
