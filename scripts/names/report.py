"""Reads the compiler's warnings of scripts/check-names.sh, and prints those that nothing allows."""
import fnmatch, pathlib, re, sys

# Equal as text to other bytes are, of ASCII, only the semicolon (Greek question mark), K (Kelvin sign) and the grave accent (varia).
plain = r'(?:"(?:[^"\\;K`\x80-\U0010ffff]|\\.)*"|nil)'
root = pathlib.Path.cwd()


def is_plain(what, before, after):
    """Whether one side is a literal that no other text is equal to."""
    if what in ("==", "!=", "<", ">", "<=", ">="):
        return bool(re.match(r"[=!<>]=?\s*(\[?" + plain + r"\]?|\w+\.utf8\b)(?![\w.])", after) or re.search(plain + r"$", before.rstrip()))
    if what in ("contains", "firstIndex", "hasPrefix", "hasSuffix"):
        return bool(re.match(r"\w+\((?:of: )?" + plain + r"\)", after) or re.search(r"\[(" + plain + r"(,\s*)?)+\s*\]\.$", before))
    return bool(re.match(r"\[" + plain + r"\]", after) or re.search(r"\[" + plain + r"\]$", before))


found = {}
for log in sorted(pathlib.Path(sys.argv[1]).glob("[CL]*")):
    for line in log.read_text().split("\n"):
        match = re.match(r"(\S+?):(\d+):(\d+): warning: '(\w+|==|!=|<|>|<=|>=)[^']*' is deprecated: equal-text", line)
        if not match or "scripts/names/" in match[1]: continue
        file, number, column, what = match[1], int(match[2]), int(match[3]), match[4]
        file = str(pathlib.Path(file).relative_to(root)) if file.startswith("/") else file
        text = (root / file).read_text().split("\n")[number - 1].encode()
        before, after = (part.decode() for part in (text[: column - 1], text[column - 1 :]))
        if not is_plain(what, before, after): found[file, number] = text.decode().strip()
for file in root.glob("Sources/*/**/*.swift"):
    name = str(file.relative_to(root))
    if "Testing/" in name: continue
    for number, line in enumerate(file.read_text().split("\n"), 1):
        code = re.sub(r"(^|\s)//.*", "", line)
        if re.search(r"\bSet<String>|\[String\s*:(?!:)|\bDictionary<String\b", code): found[name, number] = line.strip()

allowed = []
for line in (root / "scripts/names/allowed").read_text().split("\n"):
    if not line or line.startswith("#"): continue
    parts = [part.strip() for part in line.split(" | ")]
    if len(parts) != 3 or not all(parts): sys.exit(f"scripts/names/allowed: not `file | text of the line, or * | reason`: {line}")
    allowed.append(parts + [False])

isBad = False
for (file, number), text in sorted(found.items()):
    hits = [entry for entry in allowed if fnmatch.fnmatch(file, entry[0]) and (entry[1] == "*" or entry[1] in text)]
    for entry in hits: entry[3] = True
    if not hits:
        isBad = True
        print(f"{file}:{number}: {text}")
if isBad: print("Compare with `ExactText` or `isExactly`, or add the place and the reason to scripts/names/allowed.", file=sys.stderr)
for file, text, _, isUsed in allowed:
    if not isUsed:
        isBad = True
        print(f"scripts/names/allowed: \"{file} | {text}\" allows nothing any more: remove it", file=sys.stderr)
sys.exit(isBad)
