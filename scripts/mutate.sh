#!/usr/bin/env bash
# Looks for changes of the core that no unit test notices: see scripts/mutate/mutate.py.
set -euo pipefail
exec python3 "$(dirname "$0")/mutate/mutate.py" "$@"
