#!/usr/bin/env bash
# Builds PhotoDrop, the example app, and runs its unit tests and its acceptance tests: real processes and Chromium, on the loopback interface only.
#   scripts/photodrop.sh          everything
#   scripts/photodrop.sh 3 9      these acceptance tests only
# With PHOTODROP_SCREENSHOT=1, the screenshot of its README is made anew.
set -euo pipefail
cd "$(dirname "$0")/.."
if command -v apt-get > /dev/null; then
    scripts/install-dependencies.sh chromium chromium-driver zbar-tools libvips-tools libimage-exiftool-perl openssl
fi
# What a hostile sender is made of.
[ -x .build/release/loveseat ] || swift build -c release --product loveseat
cd Examples/PhotoDrop
swift build --build-tests -c release
if [ $# -eq 0 ]; then swift test --skip-build -c release; fi
PYTHONDONTWRITEBYTECODE=1 exec python3 acceptance/run.py "$@"
