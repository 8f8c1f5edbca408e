#!/usr/bin/env bash
# Builds the sample applications that are not PhotoDrop, and runs their unit tests and their acceptance tests: real processes on the loopback
# interface.
#   scripts/examples.sh                all of them
#   scripts/examples.sh SharedList     this one only
set -euo pipefail
cd "$(dirname "$0")/.."
# As ./test builds.
export LOVESEAT_CHECKED=1
if command -v apt-get > /dev/null; then scripts/install-dependencies.sh openssl python3; fi
# The device of WorkOrders' acceptance test.
[ -x .build/release/loveseat ] || SWIFT_DETERMINISTIC_HASHING=1 swift build -c release --product loveseat
[ $# -gt 0 ] || set -- SharedList WorkOrders
for example; do
    scripts/build-package.sh "Examples/$example" --build-tests
    swift test --skip-build -c release --package-path "Examples/$example" --scratch-path .build
    # `--build-tests` builds the program, too.
    SHAREDLIST="$PWD/.build/release/sharedlist" WORKORDERS="$PWD/.build/release/workorders" LOVESEAT="$PWD/.build/release/loveseat" \
        PYTHONDONTWRITEBYTECODE=1 python3 "Examples/$example/acceptance/run.py"
done
