#!/usr/bin/env bash
# The pure targets import nothing but each other, zlib and the standard library's Synchronization, and have no clock,
# randomness or environment of their own. The driver waits on the clock that it is given. Only LoveseatPlatform names the
# platform's C library, so that everything builds with Musl too.
set -euo pipefail
cd "$(dirname "$0")/.."
pure="Sources/LoveseatAssertions Sources/LoveseatModel Sources/LoveseatBLIP Sources/LoveseatReplication Sources/LoveseatBLIPReplication Sources/LoveseatCouchDBReplication Sources/LoveseatDiscoveryCore Sources/LoveseatText Sources/LoveseatQuery"
bad=$(grep -rnE '^(public |package |private |internal )?import ' $pure \
    | grep -vE 'import (LoveseatAssertions|LoveseatModel|LoveseatText|LoveseatBLIP|LoveseatReplication|CZlib|Synchronization)$' || true)
bad+=$(grep -rnE '\b(Date\(|DispatchQueue|ProcessInfo|SystemRandomNumberGenerator|\.random\(|ContinuousClock|getenv)' $pure || true)
bad+=$(grep -rn 'Task\.sleep' $pure || true)
if [ -n "$bad" ]; then
    echo "A pure target is not pure:" >&2
    echo "$bad" >&2
    exit 1
fi
named=$(grep -rnE '\b(import (Glibc|Musl|Darwin)\b|(Glibc|Musl|Darwin)\.)' Sources Tests --include='*.swift' \
    | grep -v '^Sources/LoveseatPlatform/' || true)
if [ -n "$named" ]; then
    echo "A file names a platform's C library; import LoveseatPlatform instead:" >&2
    echo "$named" >&2
    exit 1
fi
