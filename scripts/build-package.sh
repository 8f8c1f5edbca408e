#!/usr/bin/env bash
# Builds a package of this repository that uses Loveseat, in the repository's own build folder: what that has of Loveseat and its dependencies
# is not compiled a second time. The variables CONFIGURATION and SCRATCH name another build folder.
#   scripts/build-package.sh Examples/PhotoDrop [options of `swift build`]
set -euo pipefail
cd "$(dirname "$0")/.."
package="$1"
shift
# With other versions of the dependencies, they would be compiled again, for both packages.
if [ -e Package.resolved ]; then cp Package.resolved "$package/Package.resolved"; fi
# In the same order of flags as other builds: see ./test.
export SWIFT_DETERMINISTIC_HASHING=1
exec swift build -c "${CONFIGURATION:-release}" --package-path "$package" --scratch-path "${SCRATCH:-.build}" "$@"
