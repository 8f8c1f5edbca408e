#!/usr/bin/env bash
# Runs the acceptance tests of the inspector: the real program and Chromium.
#   scripts/inspector.sh                 everything
#   scripts/inspector.sh documents peers these tests only
# INSPECTOR_SHOTS=FOLDER keeps the screenshots; INSPECTOR_SCREENSHOT=1 makes that of docs/inspector.md anew.
set -euo pipefail
cd "$(dirname "$0")/.."
if command -v apt-get > /dev/null; then scripts/install-dependencies.sh 'chromium?' 'chromium-driver?' python3; fi
if ! { command -v chromium && command -v chromedriver; } > /dev/null; then
    # Ubuntu's archive has no Chromium.
    echo "*** THE INSPECTOR WAS NOT TESTED: there is no Chromium here." >&2
    exit 0
fi
[ -x .build/release/loveseat ] || SWIFT_DETERMINISTIC_HASHING=1 swift build -c release --product loveseat
PYTHONDONTWRITEBYTECODE=1 exec python3 scripts/inspector/run.py "$@"
