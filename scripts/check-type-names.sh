#!/usr/bin/env bash
# Fails if a public type is called like a module, or like a type of the standard library or Foundation. A type that is called like a module hides it:
# with a type `Observation`, `@Observable` does not compile, since the macro looks for `Observation.ObservationRegistrar`. Two types of one name are
# ambiguous in files that import both. Exceptions are in scripts/names/types, with their reasons.
# Looks at the modules of the last release build, and at those of the toolchain.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. scripts/built-modules.sh
target=$(swiftc -print-target-info | sed -n 's/.*"triple": "\(.*\)",/\1/p' | head -1)
toolchain=$(dirname "$(dirname "$(readlink -f "$(command -v swiftc)")")")/lib/swift

symbols() { # FOLDER MODULE…
    mkdir -p "$work/$1"
    for module in "${@:2}"; do
        swift-symbolgraph-extract -module-name "$module" "${flags[@]}" -target "$target" -minimum-access-level public \
            -experimental-allowed-reexported-modules=LoveseatCore,LoveseatModel,LoveseatIdentity,LoveseatNetwork \
            -skip-synthesized-members -output-dir "$work/$1"
    done
}
symbols ours Loveseat LoveseatCouchDB LoveseatDiscovery LoveseatTesting
symbols theirs Swift _Concurrency _StringProcessing Distributed Dispatch Foundation FoundationEssentials \
    FoundationInternationalization FoundationNetworking FoundationXML Observation RegexBuilder Synchronization Testing XCTest
{
    find "$toolchain" "$modules" -maxdepth 2 -name '*.swiftmodule' -exec basename {} .swiftmodule \;
    # Modules of Apple's platforms that an app with documents may import.
    printf '%s\n' AppKit Charts CloudKit Combine CoreData CoreGraphics CoreLocation CryptoKit Darwin Intents LocalAuthentication \
        MapKit Network OSLog Photos PhotosUI Security StoreKit SwiftData SwiftUI SystemConfiguration UIKit UniformTypeIdentifiers \
        UserNotifications WidgetKit os
} | sort -u > "$work/modules"
python3 scripts/names/types.py "$work"
