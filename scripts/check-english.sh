#!/usr/bin/env bash
# Fails on five habits in names, in comments and in what users read: messages and help texts, articles, README.
#   "is no valid ID"      -> "is not a valid ID"     ("there is no …" and "is no longer" are fine)
#   "Who connects …"      -> "A peer that connects …"
#   "the resolver of the app's" -> "the app's resolver"
#   "What came of a document."  -> "The outcome of a document." (comments only)
#   "func judge", "func take"  -> "func evaluate", "func consume" or "func drain" (names of functions only)
set -euo pipefail
cd "$(dirname "$0")/.."
shopt -s globstar

# Of Swift files: comments, and text in quotes.
found=$(
    {
        grep -nE '^ *//|"' Sources/**/*.swift Examples/*/Sources/**/*.swift
        grep -n '' ./*.md docs/**/*.md .github/*.md Sources/*/*.docc/*.md Fuzzing/README.md Benchmarks/README.md Examples/*/README.md
    } | grep -E "\\b(is|are) no |\\bWho(ever)? |of the app's|\\bof (ours|theirs)\\b" \
        | grep -vE "[Tt]here (is|are) no |(is|are) no (longer|more than) " || true
    grep -nE '^[^"]*//.*[.:] (What|Who|Whoever) |//+ (What|Who|Whoever) ' Sources/**/*.swift || true
    # Names: a peer's announcement is received, a proposal evaluated, a token consumed, a queue drained, a conflict resolved.
    grep -nE '\bfunc (judg(e|es|ing)|hears?|heard|hearing|meets?|meeting|takes?|taken|taking|settles?|settling|tells?|telling|told|learns?|learning)([A-Z]\w*)?[(<]' \
        Sources/**/*.swift | grep -vE '^Sources/(LoveseatCouchDB/Replicator/|LoveseatTesting/Simulation\+)' || true
)
if [ -n "$found" ]; then
    echo "Not plain English; see the top of scripts/check-english.sh:" >&2
    echo "$found" >&2
    exit 1
fi
