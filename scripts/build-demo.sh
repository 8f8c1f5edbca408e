#!/usr/bin/env bash
# Builds what ./demo runs, says on standard error how far that is, and prints the folder of the programs.
#
# Without a release build, this is a debug build, in a folder of its own: it takes a quarter of the processor time of a release build.
# Debug information and an index, which only editors and debuggers need, would double that.
set -euo pipefail
cd "$(dirname "$0")/.."
export SCRATCH=.build-demo CONFIGURATION=debug
stamp="$SCRATCH/built"

# Whether nothing has changed since the last build, and the programs run.
is_built() {
    [ -e "$stamp" ] && "$SCRATCH/debug/loveseat" --version > /dev/null 2>&1 && "$SCRATCH/debug/photodrop" --version > /dev/null 2>&1 \
        && [ -z "$(find Package.swift Sources Examples/PhotoDrop/Package.swift Examples/PhotoDrop/Sources -newer "$stamp" -print -quit)" ]
}

# Shows the latest line of a build: over and over on the same line of a terminal, otherwise every 15 seconds.
show() {
    local what="$1" line text shown=-15 step='^\[([0-9]+)/([0-9]+)\] (.*)'
    while IFS= read -r line; do
        if [[ "$line" =~ $step ]]; then
            text="step ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}: ${BASH_REMATCH[3]}"
        else
            case "$line" in
                Fetching* | Updating* | Computing* | Creating*) text="$line" ;;
                *) continue ;;
            esac
        fi
        printf -v line '%s, %d:%02d min, %s' "$what" $((SECONDS / 60)) $((SECONDS % 60)) "$text"
        if [ -t 2 ]; then
            if [ "$SECONDS" != "$shown" ]; then printf '\r\033[K%.*s' "$((${COLUMNS:-$(tput cols 2> /dev/null || echo 80)} - 1))" "$line" >&2; shown=$SECONDS; fi
        elif [ $((SECONDS - shown)) -ge 15 ]; then
            printf '%s\n' "$line" >&2
            shown=$SECONDS
        fi
    done
    if [ -t 2 ]; then printf '\r\033[K' >&2; fi
}

log="$(mktemp)"
trap 'rm -f "$log"' EXIT
# Builds, with the progress in place of the output, which is shown if the build fails.
build() {
    local what="$1"
    shift
    "$@" 2>&1 | tee "$log" | show "$what" || {
        tail -n 60 "$log" >&2
        echo "$what: failed" >&2
        exit 1
    }
}

if is_built; then
    echo "$PWD/$SCRATCH/debug"
    exit
fi
# In the same order of flags as other builds: see ./test.
export SWIFT_DETERMINISTIC_HASHING=1
if [ -x .build/release/loveseat ]; then
    # Whoever has a release build needs no other one.
    SCRATCH=.build CONFIGURATION=release
    options=()
else
    options=(--disable-index-store -debug-info-format none)
    echo "Building Loveseat and PhotoDrop, with the libraries that they use. The first time, this takes about four minutes on two processors." >&2
fi
started="$(mktemp)"
trap 'rm -f "$log" "$started"' EXIT
build "Loveseat (1 of 2)" swift build -c "$CONFIGURATION" --scratch-path "$SCRATCH" --product loveseat "${options[@]}"
build "PhotoDrop (2 of 2)" scripts/build-package.sh Examples/PhotoDrop --product photodrop "${options[@]}"
if [ "$CONFIGURATION" = debug ]; then mv "$started" "$stamp"; fi
echo "$PWD/$SCRATCH/$CONFIGURATION"
