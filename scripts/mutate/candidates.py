"""Finds places in Swift sources where one small change makes a mutant, and writes the mutant beside the original.

A mutant is an expression of its own: `(mutated(7) ? changed : original)`. Only lines are used whose place in the syntax is certain: conditions
of `if`, `guard` and `while`, operands of `return`, properties and functions of one expression, the literal 1, `true` and `false` after
`return`, and calls that are a statement.
"""

import re

OPENING, CLOSING = "([{", ")]}"


class Line:
    """A line of a file. `code` is the line with the contents of strings and comments replaced by underscores and spaces."""

    def __init__(self, text, code, enclosing):
        self.text, self.code = text, code
        # The brackets that are open where the line begins.
        self.enclosing = enclosing


def lines(source):
    """Divides a source into lines, and blanks strings and comments."""
    code, place, depth_of_comment = [], 0, 0
    while place < len(source):
        rest = source[place:]
        if depth_of_comment:
            if rest.startswith("*/"):
                depth_of_comment -= 1
                code.append("  ")
                place += 2
            else:
                code.append("\n" if source[place] == "\n" else " ")
                place += 1
            continue
        if rest.startswith("/*"):
            depth_of_comment = 1
            code.append("  ")
            place += 2
        elif rest.startswith("//"):
            end = source.find("\n", place)
            end = len(source) if end < 0 else end
            code.append(" " * (end - place))
            place = end
        else:
            string = re.match(r'(#*)("""|")', rest)
            if not string:
                code.append(source[place])
                place += 1
                continue
            hashes, quotes = string.groups()
            end = end_of_string(source, place + len(string.group()), hashes, quotes)
            inner = source[place:end]
            code.append("".join("\n" if c == "\n" else "_" for c in inner))
            place = end
    blank = "".join(code)
    result, stack = [], []
    for text, line in zip(source.split("\n"), blank.split("\n")):
        result.append(Line(text, line, list(stack)))
        for character in line:
            if character in OPENING:
                stack.append(character)
            elif character in CLOSING and stack:
                stack.pop()
    return result


def end_of_string(source, place, hashes, quotes):
    """The place after a string's last quote; interpolations may contain strings."""
    escape = "\\" + hashes
    while place < len(source):
        if source.startswith(escape + "(", place):
            depth, place = 1, place + len(escape) + 1
            while place < len(source) and depth:
                inner = re.match(r'(#*)("""|")', source[place:])
                if inner:
                    place = end_of_string(source, place + len(inner.group()), *inner.groups())
                    continue
                depth += {"(": 1, ")": -1}.get(source[place], 0)
                place += 1
        elif source.startswith(escape, place):
            place += len(escape) + 1
        elif source.startswith(quotes + hashes, place):
            return place + len(quotes) + len(hashes)
        else:
            place += 1
    return place


def is_balanced(code):
    depth = 0
    for character in code:
        depth += (character in OPENING) - (character in CLOSING)
        if depth < 0:
            return False
    return depth == 0


def split(code, start, end):
    """The ranges between the commas of a condition that are in no brackets."""
    ranges, depth, begin = [], 0, start
    for place in range(start, end):
        depth += (code[place] in OPENING) - (code[place] in CLOSING)
        if depth < 0:
            return []
        if code[place] == "," and depth == 0:
            ranges.append((begin, place))
            begin = place + 1
    if depth:
        return []
    return ranges + [(begin, end)]


def body_of_if(code, start):
    """The place of the brace that begins the body of a condition."""
    depth = 0
    for place in range(start, len(code)):
        if code[place] == "{" and depth == 0:
            return place
        depth += (code[place] in OPENING) - (code[place] in CLOSING)
    return None


# What cannot stand in a clause that is written twice, or is no expression of its own.
NOT_A_CLAUSE = re.compile(r"^\s*(let|var|case|#|_ =)|\b(inout|await)\b|(?<![=!<>])=(?![=])|\bas!")
COMPARISONS = [(" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > ")]


def conditions(line):
    """The clauses of an `if`, `guard` or `while` that begin and end in a line."""
    code = line.code
    head = re.match(r"^\s*(?:\} else )?(if|while|guard) ", code)
    if not head:
        return []
    start = head.end()
    if head.group(1) == "guard":
        end = re.search(r" else \{", code)
        if end:
            last = end.start()
        elif code.rstrip().endswith(","):
            last = len(code.rstrip()) - 1
        else:
            return []
    else:
        last = body_of_if(code, start)
        if last is None:
            if not code.rstrip().endswith(","):
                return []
            last = len(code.rstrip()) - 1
    return [range_ for range_ in split(code, start, last) if is_clause(code[slice(*range_)])]


def is_clause(code):
    return bool(code.strip()) and is_balanced(code) and not NOT_A_CLAUSE.search(code)


def values(line):
    """The Boolean expressions that a line returns."""
    code = line.code.rstrip()
    found = re.match(r"^\s*return (.+)$", code)
    if not found:
        found = re.match(r"^.*(?:\bvar \w+: Bool|\bfunc .*-> Bool) \{ (?:return )?(.+) \}$", code)
    if not found or not is_clause(found.group(1)):
        return []
    if not re.search(r" (<|<=|>|>=|==|!=|&&|\|\|) ", found.group(1)):
        return []
    if re.search(r"\?|\breturn\b|;", found.group(1)):
        return []
    return [found.span(1)]


def candidates(source):
    """All mutants of a source: dictionaries of line, operator, and the line as it is rewritten, with `@N@` for the number."""
    found = []
    all_lines = lines(source)
    for number, line in enumerate(all_lines):
        if re.search(r"\b(invariant|impossible|precondition|assert|check\w*Invariants?)\(|reserveCapacity|keepingCapacity", line.code):
            continue

        def add(operator, start, end, changed, original=None):
            text = line.text
            inner = text[start:end].strip() if original is None else original
            lead = text[start:end][: len(text[start:end]) - len(text[start:end].lstrip())]
            trail = text[start:end][len(text[start:end].rstrip()):]
            rewritten = f"{text[:start]}{lead}(mutated(@N@) ? {changed} : {inner}){trail}{text[end:]}"
            found.append({"line": number + 1, "operator": operator, "text": rewritten})

        for start, end in conditions(line) + values(line):
            text, code = line.text[start:end].strip(), line.code[start:end].strip()
            add("negated condition", start, end, f"!({text})", f"({text})")
            for one, other in COMPARISONS:
                if code.count(one) == 1:
                    place = code.index(one)
                    changed = text[:place] + other + text[place + len(one):]
                    add(f"{other.strip()} for {one.strip()}", start, end, f"({changed})", f"({text})")
            for one, other in [(" && ", " || "), (" || ", " && ")]:
                if code.count(one) == 1 and other not in code:
                    place = code.index(one)
                    changed = text[:place] + other + text[place + len(one):]
                    add(f"{other.strip()} for {one.strip()}", start, end, f"({changed})", f"({text})")
        for literal in re.finditer(r" (\+|-|\+=|-=) (1)(?![\w.])", line.code):
            if re.search(r"\.\.\.|\.\.<|<<|>>", line.code):
                continue
            start, end = literal.span(2)
            add(f"{literal.group(1)} 0 for {literal.group(1)} 1", start, end, "0")
        for literal in re.finditer(r"\breturn (true|false)\b(?=\s*(\}|$))", line.code):
            start, end = literal.span(1)
            other = "false" if literal.group(1) == "true" else "true"
            add(f"return {other} for return {literal.group(1)}", start, end, other)
        if is_call(all_lines, number):
            text = line.text
            lead = text[: len(text) - len(text.lstrip())]
            found.append(
                {
                    "line": number + 1,
                    "operator": "removed call",
                    "text": f"{lead}if !mutated(@N@) {{ {text.strip()} }}",
                }
            )
    return found


KEYWORDS = {
    "return", "throw", "if", "guard", "while", "for", "switch", "case", "default", "let", "var", "func", "init", "deinit",
    "defer", "do", "catch", "else", "self", "super", "await", "try", "package", "public", "private", "static", "import",
    "throws", "subscript", "extension", "struct", "enum", "class", "actor", "protocol", "typealias", "mutating", "lazy", "weak",
}


def is_call(all_lines, number):
    """Whether a line is a call, and nothing else, that is a statement."""
    line = all_lines[number]
    code = line.code.strip()
    found = re.match(r"^(?:try )?((?:self\.)?\w+)(?:[\w.\[\]?!]*)\(.*\)$", code)
    if not found or not is_balanced(code) or not line.enclosing or line.enclosing[-1] != "{":
        return False
    if found.group(1) in KEYWORDS - {"self"} or found.group(1)[0].isupper() or "{" in code or ".init(" in code:
        return False
    before = next((l.code.strip() for l in reversed(all_lines[:number]) if l.code.strip()), "")
    after = next((l.code.strip() for l in all_lines[number + 1:] if l.code.strip()), "")
    # A continued expression goes on before or behind.
    if not re.search(r"([{};]|\bin|\)|\]|[\w\"?!:])$", before) or re.search(r"(=|->|\breturn|\bthrow|[&|+,<>?]|[^\w\s]:)$", before):
        return False
    if re.match(r"^[.)\]?:&|+,<>{=]|^(as|is|else)\b", after):
        return False
    # The only expression of a function, property or closure may be its value.
    is_alone = re.search(r"(\{|\bin)$", before) and after.startswith("}")
    is_statement = re.match(r"(\} )?(if|else|for|while|do|catch)\b|.*\belse \{$", before) or (
        re.search(r"\bfunc\b|^\)", before) and "->" not in before
    )
    return not is_alone or bool(is_statement)
