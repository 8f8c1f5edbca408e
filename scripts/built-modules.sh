# Sets `modules` to the folder of the last release build's Swift modules, and `flags` to what a compiler needs to import them.
# To be sourced in the repository's root by scripts with `set -euo pipefail`.
modules=.build/release/Modules
[ -d "$modules" ] || { echo "Build first: swift build -c release" >&2; exit 1; }
# Modules refer to the C modules that they were built with.
flags=(-I "$modules")
while read -r map; do flags+=(-I "$(dirname "$map")"); done < <(
    find Sources .build/checkouts/*/Sources -name module.modulemap
    find -H .build/release -maxdepth 2 -name module.modulemap
)
