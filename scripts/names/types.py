"""Compares the names of public types with those of other modules and their types; see scripts/check-type-names.sh."""
import glob, json, os, sys

work = sys.argv[1]
TYPES = {'actor', 'class', 'enum', 'macro', 'protocol', 'struct', 'typealias'}


def names(folder):
    found = {}
    for path in glob.glob(f'{work}/{folder}/*.symbols.json'):
        module = os.path.basename(path).split('.')[0]
        # An extension of another module's type is a file of its own.
        if '@' in module and folder == 'ours':
            continue
        for symbol in json.load(open(path))['symbols']:
            if len(symbol['pathComponents']) == 1 and symbol['kind']['identifier'].split('.')[-1] in TYPES:
                found.setdefault(symbol['pathComponents'][0].split('(')[0], module.split('@')[0])
    return found


ours, theirs = names('ours'), names('theirs')
modules = set(open(f'{work}/modules').read().split())
allowed = {}
for line in open('scripts/names/types'):
    if line.strip() and not line.startswith('#'):
        name, reason = line.split(':', 1)
        allowed[name.strip()] = reason.strip()
if not ours or not theirs:
    sys.exit('no symbols were found: build first')
problems = []
for name in sorted(ours):
    if name in modules:
        problems.append(f'{name} is also the name of a module, which it hides: rename it')
    elif name in theirs and name not in allowed:
        problems.append(f'{name} is also a type of {theirs[name]}: rename it, or give a reason in scripts/names/types')
for name in sorted(set(allowed) - set(ours)):
    problems.append(f'scripts/names/types has a reason for {name}, which is not a public type')
print('\n'.join(problems) or f'{len(ours)} public types are called like no other.')
sys.exit(bool(problems))
