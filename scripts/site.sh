#!/usr/bin/env bash
# Makes the documentation as a static site, in .build/site or the folder that is named: the reference and the articles of all products by DocC,
# the pages of docs/, and llms.txt, an index for language models. `python3 -m http.server --directory .build/site` shows it.
#   scripts/site.sh [--base PATH] [FOLDER]    after `swift build -c release`; PATH is where the site is on its server, such as /loveseat
set -euo pipefail
cd "$(dirname "$0")/.."
base=
if [ "${1:-}" = --base ]; then base="${2#/}" && shift 2; fi
output="$(realpath -m "${1:-.build/site}")"
python=python3
if ! python3 -c 'import markdown' 2> /dev/null; then scripts/install-dependencies.sh python3-markdown && python=/usr/bin/python3; fi
. scripts/built-modules.sh
. scripts/docs/reference.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
archives=()
for product in "${products[@]}"; do
    reference "$product" "$work/$product.doccarchive" --transform-for-static-hosting --hosting-base-path "/$base"
    archives+=("$work/$product.doccarchive")
done
docc merge "${archives[@]}" --synthesized-landing-page-name Loveseat --synthesized-landing-page-topics-style list \
    --output-path "$work/site"
"$python" scripts/docs/site.py "$work/site" "$base" "${products[@]}"
rm -rf "$output"
mkdir -p "$(dirname "$output")"
mv "$work/site" "$output"
echo "$output"
