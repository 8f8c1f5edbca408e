#!/usr/bin/env python3
"""Counts the allocations that a document costs, and fails where they exceed the limits below.

    python3 Benchmarks/allocations.py [--no-limits] BINARY

An allocation is a call of malloc, calloc, realloc or one of their aligned kin. The figures are the difference between a run with
3,000 documents of 0.7 kB and one with 1,000, divided by 2,000: what starting and ending cost is left out. Unlike times, they hardly
depend on the machine. Needs a C compiler and glibc.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cost import documents, write  # noqa: E402
from listener import Listener  # noqa: E402

FEW, MANY = 1_000, 3_000

# Allocations a document. Lower them when a change allocates less; a change that needs more has to say why.
LIMITS = {
    "bulk insert": 32,
    "scan": 14,
    "push, active side": 21,
    "push, passive side": 35,
    "pull, active side": 36,
    # Two of them are frames of coroutines, since a session of many collections notes which it touches.
    "pull, passive side": 19,
}


class Counter:
    def __init__(self, binary, library):
        self.binary, self.library = binary, library

    def environment(self, report):
        return {**os.environ, "LD_PRELOAD": self.library, "ALLOCATIONS": os.path.abspath(report)}

    def run(self, *arguments):
        output = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        command = [self.binary, *arguments]
        done = subprocess.run(command, env=self.environment("active"), text=True, timeout=120, **output)
        if done.returncode != 0:
            sys.exit(f"loveseat {' '.join(arguments)}: {done.stderr}")
        return number("active")

    def plain(self, *arguments):
        subprocess.run([self.binary, *arguments], check=True, stdout=subprocess.DEVNULL)

    def counts(self, size):
        """The allocations of each operation with this many documents."""
        full, empty = f"full{size}", f"empty{size}"
        write(f"{size}.jsonl", documents(size))
        self.plain("create", full)
        found = {"bulk insert": self.run("import", full, f"{size}.jsonl", "--id-field", "id")}
        found["scan"] = self.run("export", full)
        for direction, active, passive in (("push", full, empty), ("pull", empty, full)):
            shutil.rmtree(f"{empty}.loveseat", ignore_errors=True)
            self.plain("create", empty)
            listener = Listener(self.binary, passive, self.environment("passive"))
            try:
                found[f"{direction}, active side"] = self.run(direction, active, listener.url)
            finally:
                listener.stop()
            found[f"{direction}, passive side"] = number("passive")
        return found


def number(file):
    with open(file) as text:
        return int(text.read())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", metavar="BINARY", help="a build of loveseat")
    parser.add_argument("--no-limits", action="store_true", help="only print the figures, for example of another build")
    options = parser.parse_args()
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "Allocations", "count.c")
    binary = os.path.abspath(options.binary)
    with tempfile.TemporaryDirectory(prefix="loveseat-allocations-") as folder:
        os.chdir(folder)
        compiler = shutil.which("cc") or shutil.which("clang") or sys.exit("no C compiler")
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", "count.so", source], check=True)
        counter = Counter(binary, os.path.abspath("count.so"))
        few, many = counter.counts(FEW), counter.counts(MANY)
        os.chdir("/")
    failed = False
    for name, limit in LIMITS.items():
        each = (many[name] - few[name]) / (MANY - FEW)
        exceeds = each > limit and not options.no_limits
        failed = failed or exceeds
        print(f"{name:20} {each:6.1f} allocations a document" + (f", more than {limit}" if exceeds else ""))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
