#!/usr/bin/env bash
# Runs the tests of what several threads share under the thread sanitizer, in a build folder of its own. Fails for a race.
#   scripts/thread-sanitizer.sh                  the suites below
#   scripts/thread-sanitizer.sh ListenerTests    other suites
set -euo pipefail
cd "$(dirname "$0")/.."
suites=${1:-'DriverTests|ChangeHubTests|RetryGateTests|ConflictWorkerTests|ExpirationTimerTests|TransactionTests|AsyncTransactionTests|DatabaseEndingTests|FeedEndTests|LoveseatCoreTests[.]ReplicatorTests|ReentrancyTests|MessageEndpointTests|KeptReadTests'}
home=.build-tsan
mkdir -p "$home"
echo 'print("it runs")' > "$home/probe.swift"
if ! { swiftc -sanitize=thread -o "$home/probe" "$home/probe.swift" && "$home/probe"; } > "$home/probe.log" 2>&1; then
    echo "WARNING: THE THREAD SANITIZER WAS NOT RUN. It does not work on this machine:" >&2
    tail -n 3 "$home/probe.log" >&2
    exit 0
fi
export LOVESEAT_SANITIZED=1
command -v python3 > /dev/null || scripts/install-dependencies.sh python3
swift build --build-tests --sanitize=thread --scratch-path "$home"
if ! TSAN_OPTIONS=exitcode=0 swift test --skip-build --sanitize=thread --scratch-path "$home" --filter "$suites" \
    > "$home/test.log" 2>&1
then
    grep -E '✘|error:' "$home/test.log" >&2 || tail -n 50 "$home/test.log" >&2
    exit 1
fi
grep 'Test run with' "$home/test.log" | tail -n 1
python3 scripts/thread-sanitizer/races.py < "$home/test.log"
