#!/usr/bin/env bash
# Finds arithmetic that a number from outside can end the process with, or make endless. A number that a peer, a user or a document names
# may be any: it is added with `addingSaturated`, `addingReportingOverflow` or `&+`, or its range is checked before.
#   scripts/check-arithmetic.sh [folder]
# scripts/arithmetic/report.py says what it looks for. The exceptions are in scripts/arithmetic/allowed, with their reasons.
set -euo pipefail
cd "$(dirname "$0")/.."
python3 scripts/arithmetic/report.py "${1:-Sources}"
