#!/usr/bin/env bash
# Finds `guard … else { return }` without a reason. Such a guard steps over something: if that cannot be, it is `impossible`; if it is plain
# flow, `if … { return }` says it; otherwise a comment above the guard says how it can happen.
set -euo pipefail
cd "$(dirname "$0")/.."
python3 - <<'PYTHON'
import pathlib
import sys

found = 0
for path in sorted(pathlib.Path("Sources").rglob("*.swift")):
    lines = path.read_text().split("\n")
    for number, line in enumerate(lines):
        if not line.rstrip().endswith("else { return }") or line.lstrip().startswith("//"):
            continue
        start = number
        while not lines[start].lstrip().startswith("guard ") and start > 0:
            start -= 1
        above = lines[start - 1].strip()
        if above.startswith("//") or any(" // " in text for text in lines[start : number + 1]):
            continue
        print(f"{path}:{number + 1}: a bare guard: {lines[start].strip()}")
        found += 1
sys.exit(1 if found else 0)
PYTHON
