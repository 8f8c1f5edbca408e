#!/usr/bin/env bash
# Runs the acceptance tests of the inspector: the real program and Chromium.
#   scripts/inspector.sh                 everything
#   scripts/inspector.sh documents peers these tests only
# INSPECTOR_SHOTS=FOLDER keeps the screenshots; INSPECTOR_SCREENSHOT=1 makes that of docs/inspector.md anew.
set -euo pipefail
cd "$(dirname "$0")/.."
if command -v apt-get > /dev/null; then scripts/install-dependencies.sh chromium chromium-driver; fi
[ -x .build/release/loveseat ] || swift build -c release --product loveseat
PYTHONDONTWRITEBYTECODE=1 exec python3 scripts/inspector/run.py "$@"
