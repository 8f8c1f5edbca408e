#!/usr/bin/env bash
# Makes the site of the documentation, and type-checks every Swift example in README.md, the articles and the doc comments, against the
# modules of the last release build. Fails on any warning of DocC, such as a link to a symbol that does not exist.
# Build after editing comments: the modules refer to the lines of their sources. A first argument names a folder that keeps the
# site (scripts/site.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

. scripts/built-modules.sh

# Writes the Swift examples of a Markdown or Swift file as functions that the compiler can check, with its line numbers.
# An example of declarations only stays at the top level.
examples() {
    awk -v file="$1" '
        FILENAME ~ /\.swift$/ { if ($0 !~ /^ *\/\/\//) next; sub(/^ *\/\/\/ ?/, "") }
        !inside && /^```swift$/ { inside = 1; body = ""; declares = 1; start = FNR + 1; next }
        inside && /^```$/ {
            inside = 0
            count++
            if (!declares) printf "func example%d() %sthrows {\n", count, body ~ /(^|[^a-z])await / ? "async " : ""
            printf "#sourceLocation(file: \"%s\", line: %d)\n%s#sourceLocation()\n", file, start, body
            if (!declares) print "}"
            next
        }
        inside {
            if ($0 ~ /^import /) $0 = ""
            if ($0 !~ /^($| |}|\)|\/\/|@|final |struct |class |enum |actor |func |extension |protocol )/) declares = 0
            body = body $0 "\n"
        }
    ' "$1"
}

for context in Context CouchbaseLiteContext; do
    swiftc -emit-module -module-name $context -parse-as-library -swift-version 6 "${flags[@]}" \
        -o "$work/$context.swiftmodule" scripts/docs/$context.swift
done
for file in README.md Sources/*/*.docc/*.md $(grep -rl '/// ```swift' Sources --include='*.swift'); do
    # Both have types of the same names.
    case $file in
        Sources/CouchbaseLiteSwift/*) modules=(CouchbaseLiteContext CouchbaseLiteSwift) ;;
        *) modules=(Context Logging Loveseat LoveseatCouchDB LoveseatDiscovery Observation) ;;
    esac
    {
        printf 'import %s\n' Foundation "${modules[@]}"
        examples "$file"
    } > "$work/Examples.swift"
    grep -q '^#sourceLocation(file' "$work/Examples.swift" || continue
    swiftc -typecheck -parse-as-library -swift-version 6 -suppress-warnings "${flags[@]}" -I "$work" \
        "$work/Examples.swift" || { echo "in the examples of $file" >&2; status=1; }
done

scripts/site.sh "${1:-$work/site}" || status=1
exit $status
