#!/usr/bin/env bash
# Fails if a type, with its extensions and nested types, has more than 900 lines, or more than 15 stored properties. Larger ones are in
# scripts/sizes, with the sizes that they may not exceed. With --table, prints these.
set -euo pipefail
cd "$(dirname "$0")/.."
exec python3 - "${1-}" <<'PYTHON'
import collections, glob, re, sys

known = {row[0]: (int(row[1]), int(row[2])) for row in map(str.split, open("scripts/sizes")) if row and row[0] != "#"}
kinds = r"(\s*)(?:(?:@\w+(?:\(.*?\))?|public|package|private|fileprivate|final|indirect|nonisolated) )*(class|struct|enum|actor|extension) ([\w.]+)"
stored = re.compile(r"\s*(?:@\w+(?:\(.*?\))? |\w+(?:\(\w+\))? )*?(let|var) (\(.*?\)|\w+)(.*)")
lines, properties = collections.Counter(), collections.Counter()
for file in glob.glob("Sources/Loveseat*/**/*.swift", recursive=True):
    types = []
    for line in open(file):
        indent = len(line) - len(line.lstrip(" "))
        found = re.match(kinds, line)
        if found and found[3] not in ("func", "var"):
            name = found[3] if found[2] == "extension" or not types else f"{types[-1][1]}.{found[3]}"
            types.append((indent, name, found[2]))
        for _, name, _ in types: lines[name] += 1
        ends = line.strip() == "}" or (found and line.rstrip().endswith("}"))
        if types and ends and indent == types[-1][0]: types.pop()
        property = stored.match(line)
        if not types or found or not property or indent != types[-1][0] + 4 or " static " in line[: property.start(2)]: continue
        computed = "{" in property[3].split("=")[0] and "didSet" not in line
        if types[-1][2] != "extension" and not computed: properties[types[-1][1]] += property[2].count(",") + 1
bad = False
for name in sorted(set(lines)):
    size = (lines[name], properties[name])
    limit = known.get(name, (900, 15))
    if size[0] > limit[0] or size[1] > limit[1]:
        bad = True
        print(f"{name} has {size[0]} lines and {size[1]} stored properties; at most {limit[0]} and {limit[1]} are allowed")
    elif sys.argv[1] == "--table" and (size[0] > 900 or size[1] > 15): print(f"{size[0]:5} lines {size[1]:3} properties  {name}")
sys.exit(bad)
PYTHON
