#!/usr/bin/env bash
# Fails if the public API breaks against the last release. Without a tag of a release, as in a shallow clone, there is nothing to compare.
set -euo pipefail
cd "$(dirname "$0")/.."
release=$(git describe --tags --abbrev=0 --match '[0-9]*' 2> /dev/null || true)
if [ -z "$release" ]; then
    echo "No release to compare the API with."
    exit 0
fi
# Until 1.0.0 a minor version may break the API (CHANGELOG.md): then it says so.
if swift package diagnose-api-breaking-changes "$release" --products Loveseat; then exit 0; fi
if [[ "$release" == 0.* ]] && grep -qx '### Changed' <(sed '/^## \[0/q' CHANGELOG.md); then
    echo "The API breaks against $release; CHANGELOG.md announces changes."
    exit 0
fi
echo "The API breaks against $release: announce it in CHANGELOG.md under Changed." >&2
exit 1
