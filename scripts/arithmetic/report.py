"""Finds three kinds of places (scripts/check-arithmetic.sh):

1. Arithmetic that traps (`+ - * += -= *= <<`, and conversions such as `UInt16(x)`) with a number from outside. A number is from outside if
   its name was given to the result of a parser somewhere: `Int(text)`, `.int` of JSON, `query.count("skip")`, a varint. The names of all
   targets count, so that what one file reads and stores in a property is found in the file that adds to it.
2. The port of a URL, which Foundation takes from the text as it is: `validPort` says whether there is such a port.
3. Loops that follow links (`while let next = items[place].parent { place = next }`) without a bound: links that lead back never end.

Lines of scripts/arithmetic/allowed are `file | text of the line | reason`; files may have wildcards."""
import fnmatch, os, re, sys

root = sys.argv[1] if len(sys.argv) > 1 else 'Sources'
here = os.path.dirname(os.path.abspath(__file__))
# Ours only: tools for tests, and the arithmetic itself.
LEFT_OUT = ('Testing/', 'SaturatingArithmetic.swift', 'LoveseatPlatform/', '/Simulate/', 'URL+Port.swift')
NUMBER = r'\bU?Int(?:8|16|32|64)?'
PARSERS = re.compile('|'.join([
    NUMBER + r'\(\s*(?!clamping|exactly|truncating|bitPattern|littleEndian|bigEndian)[^()]*\)(?=\s*(?:,|\{|$|else|\?\?|\)))',  # only if optional: see below
    r'\.(?:int|uint|integer)\b(?!\()', r'\.(?:integer|count)\("', r'[vV]arInt', r'\.revpos\b',
]))
# A conversion that may fail is one of a text.
OPTIONAL = re.compile(r'(?:guard|if|while|,)\s*(?:let\s+)?(\w+)\s*=\s*[^,{]*?' + NUMBER + r'\((?!clamping|exactly|truncating|bitPattern)')
MAPPED = re.compile(r'(?:(?:let|var)\s+)?([\w.]+)\s*(?::[^=]*)?=\s*[^=].*?(?:[mM]ap\s*[({]+\s*' + NUMBER + r'\(\$0\)|\.int\b(?!\()|\.(?:integer|count)\("|\.integer\b(?!\())')
PLAIN = re.compile(r'(?:(?:let|var)\s+)?([\w.]+)\s*(?::[^=]*)?=\s*(?:try[?]?\s+)?' + NUMBER + r'\((?!clamping|exactly|truncating|bitPattern|$)[^()]*\)\s*\?\?')
# Names that mean too many other things.
COMMON = {'count', 'index', 'number', 'value', 'text', 'i', '_', 'self', 'result', 'first', 'last', 'n', 'id', 'name', 'item', 'part'}

files = []
for folder, _, names in os.walk(root):
    for name in sorted(names):
        path = os.path.join(folder, name)
        if name.endswith('.swift') and not any(part in path for part in LEFT_OUT): files.append(path)

lines = {path: open(path, encoding='utf-8').read().split('\n') for path in files}
outside, local = set(), {}
for path in files:
    local[path] = set()
    for line in lines[path]:
        code = line.split('//')[0]
        for pattern in (OPTIONAL, MAPPED, PLAIN):
            for match in pattern.finditer(code):
                name = match.group(1); last = name.split('.')[-1]
                # What is a property, or assigned to one, is known under this name everywhere.
                if last in COMMON: continue
                if '.' in name or re.match(r'(?:package |public |private |fileprivate )?(?:let|var) ', code[4:]) and code.startswith('    ') and not code.startswith('     '): outside.add(last)
                local[path].add(last)

TERM = r'((?:\w+[.?!]+)*\w+)(?:\([^()]*\))?[?!]*'
BINARY = re.compile(TERM + r'\s(?:\+|-|\*|<<|\+=|-=|\*=)\s' + r'(?=' + TERM + r')')
CONVERSION = re.compile(NUMBER + r'\((?!clamping|exactly|truncating|bitPattern)' + TERM + r'\)(?!\s*(?:\?\?|else|,?\s*\{))')
LINK = re.compile(r'while (?:let|case|var) .*=\s*[\w.]+\[(\w+)\]')

allowed = []
for line in open(os.path.join(here, 'allowed'), encoding='utf-8'):
    if line.strip() and not line.startswith('#'): allowed.append([part.strip() for part in line.split('|')])
used = set()


def is_allowed(path, line):
    for number, entry in enumerate(allowed):
        if fnmatch.fnmatch(path, entry[0]) and (entry[1] == '*' or entry[1] in line): used.add(number); return True
    return False


found = 0
def report(path, number, line, why):
    global found
    if is_allowed(path, line): return
    found += 1; print('%s:%d: %s: %s' % (path, number + 1, why, line.strip()[:150]))


for path in files:
    names = outside | local[path]
    for number, line in enumerate(lines[path]):
        code = re.sub(r'"(?:\\.|[^"\\])*"', '""', line.split('//')[0])
        if not code.strip(): continue
        hit = None
        for match in BINARY.finditer(code):
            for term in match.group(1, 2):
                if term.split('.')[-1].strip('?!') in names and not re.match(r'\d', term): hit = hit or term
        if hit: report(path, number, line, 'arithmetic with %s, which may be any number' % hit)
        for match in CONVERSION.finditer(code):
            term = match.group(1)
            if term.split('.')[-1] in names: report(path, number, line, 'a conversion of %s, which may be any number' % term)
        if re.search(r'\b(?:url|URL|\$0|next|whole|parts)\.port\b', code): report(path, number, line, 'the port of a URL may be any number: use validPort')
        match = LINK.search(code)
        if match:
            place = match.group(1); body = '\n'.join(lines[path][number:number + 12])
            if re.search(r'\b%s = ' % place, body) and not re.search(r', \w+ [<>] ', code): report(path, number, line, 'links that lead back never end')
for number, entry in enumerate(allowed):
    if number not in used and root == 'Sources': found += 1; print('scripts/arithmetic/allowed: nothing is allowed by: ' + ' | '.join(entry))
sys.exit(found > 0)
