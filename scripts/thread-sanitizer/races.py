"""Prints the races in the thread sanitizer's output, but for those between two closures of `Mutex.withLock`. Fails if any is left.

On Linux the mutex of Swift's Synchronization module waits in the kernel, where the sanitizer does not see which thread gave the lock
to which: two accesses inside `withLock` look like a race when threads contend.
"""

import re
import sys

# A closure that takes `inout sending` and returns `sending`, as the body of `withLock` does, in Swift's mangling.
LOCKED = re.compile(r"zYuYTXEfU|zYuYTYaXEfU")
# How near to the access that closure has to be: another lock further out proves nothing.
FRAMES = 4
ACCESS = re.compile(r"^  (Previous )?(\w+ )?(read|write|access|modifying access|atomic \w+)\b", re.IGNORECASE)


def stacks(report):
    """The stacks of the two accesses."""
    found = []
    for part in report.split("\n\n"):
        lines = part.strip("\n").split("\n")
        for index, line in enumerate(lines):
            if ACCESS.match(line):
                found.append("\n".join(lines[index:][: 1 + FRAMES]))
                break
    return found


def main():
    text = sys.stdin.read()
    reports = re.findall(r"WARNING: ThreadSanitizer:.*?(?=^={18}|\Z)", text, re.DOTALL | re.MULTILINE)
    left = []
    for report in reports:
        accesses = stacks(report)
        if len(accesses) == 2 and all(LOCKED.search(stack) for stack in accesses):
            continue
        left.append(report)
    for report in left:
        print(report)
    print(f"thread sanitizer: {len(left)} races; {len(reports) - len(left)} reports were of locked accesses")
    return 1 if left else 0


sys.exit(main())
