#!/usr/bin/env bash
# Builds PhotoDrop, the example app, in the build folder of the repository: what that has of Loveseat and its dependencies is not compiled a
# second time. The arguments are options of `swift build`. The variables CONFIGURATION and SCRATCH name another build folder.
set -euo pipefail
cd "$(dirname "$0")/.."
# With other versions of the dependencies, they would be compiled again, for both packages.
if [ -e Package.resolved ]; then cp Package.resolved Examples/PhotoDrop/Package.resolved; fi
# In the same order of flags as other builds: see ./test.
export SWIFT_DETERMINISTIC_HASHING=1
exec swift build -c "${CONFIGURATION:-release}" --package-path Examples/PhotoDrop --scratch-path "${SCRATCH:-.build}" "$@"
