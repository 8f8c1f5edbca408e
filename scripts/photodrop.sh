#!/usr/bin/env bash
# Builds PhotoDrop, the example app, and runs its unit tests and its acceptance tests: real processes and Chromium, on the loopback
# interface and in network namespaces of their own only.
#   scripts/photodrop.sh          everything
#   scripts/photodrop.sh 3 9      these acceptance tests only
# With PHOTODROP_SCREENSHOT=1, the screenshot of its README is made anew.
set -euo pipefail
cd "$(dirname "$0")/.."
# As ./test builds.
export LOVESEAT_CHECKED=1
if command -v apt-get > /dev/null; then
    # Ubuntu's archive has no Chromium; the tests that need it are skipped there.
    scripts/install-dependencies.sh 'chromium?' 'chromium-driver?' zbar-tools libvips-tools libimage-exiftool-perl openssl iproute2 \
        procps python3
fi
# What a hostile sender is made of, and the measure for the speed.
[ -x .build/release/loveseat ] || SWIFT_DETERMINISTIC_HASHING=1 swift build -c release --product loveseat
scripts/build-package.sh Examples/PhotoDrop --build-tests
if [ $# -eq 0 ]; then
    swift test --skip-build -c release --package-path Examples/PhotoDrop --scratch-path .build
fi
PHOTODROP="$PWD/.build/release/photodrop" PYTHONDONTWRITEBYTECODE=1 \
    exec python3 Examples/PhotoDrop/acceptance/run.py "$@"
