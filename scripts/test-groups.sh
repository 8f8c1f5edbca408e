#!/usr/bin/env bash
# Prints the suites that ./test does not run beside all others: a line for each process, with the name of the group and a filter.
#
# A suite says so itself, in a line of its file before its declaration: `// Group in ./test: programs`. All suites of a target say so by
# `// Group of this target in ./test: busy` in one of its files. The groups:
#
#   programs  They start programs: Foundation's Process reads beyond a buffer in a process that holds a thousand sockets.
#   alone     They measure the memory of the process or how long an answer takes, or insist on an answer: each has a process for itself.
#   busy      They keep a thread busy for minutes: connections of other tests must not wait for them.
#   sockets   They hold thousands of sockets.
set -euo pipefail
cd "$(dirname "$0")/.."
python3 - <<'PYTHON'
import pathlib
import re
import sys

starts_programs = re.compile(r"\bFakeCouch\(|\bLifeline\b|\bProcess\(\)")
together = {}
groups = {"programs": [], "alone": [], "busy": [], "sockets": []}
for path in sorted(pathlib.Path("Tests").rglob("*.swift")):
    target, text = path.parts[1], path.read_text()
    for line in re.finditer(r"^// Group (of this target )?in \./test: (\w*)$", text, re.M):
        suite = re.search(r"\b(?:struct|class|enum|actor) (\w+)", text[line.end() :])
        if line.group(2) not in groups or not (line.group(1) or suite):
            sys.exit(f"{path}: \"{line.group()}\" names no group, or no suite follows: see scripts/test-groups.sh")
        name = "" if line.group(1) else suite.group(1) + "/"
        groups[line.group(2)].append(f"^{target}\\.{name}")
    if "@Test" in text and starts_programs.search(text) and "in ./test: " not in text:
        together.setdefault(target, []).append(path)
for target, paths in together.items():
    if not any(f"^{target}\\." in filters for filters in groups.values()):
        sys.exit(f"{paths[0]}: the suite starts programs and is in no group: add \"// Group in ./test: programs\"")
for group, filters in groups.items():
    for one in filters if group == "alone" else filter(None, ["|".join(filters)]):
        print(group, one)
PYTHON
