#!/usr/bin/env python3
"""What push and pull cost in processor time of both sides, for several builds of the command line in turns.

    python3 Benchmarks/cost.py OLD NEW ...

Each argument is a `loveseat` binary. The first table compares one-line documents; the second shows, for each build, what a
document with several candidates costs against a plain one. All figures are medians, less what a sync of nothing costs.
"""
import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from listener import Listener  # noqa: E402


def documents(count):
    """Documents of 0.7 kB, the same in each run."""
    dice = random.Random(1)

    def word(length):
        return "".join(dice.choice("aeiounrstlhd") for _ in range(length))

    for number in range(count):
        text = " ".join(word(6) for _ in range(115))
        yield {"id": f"doc{number:06}", "name": word(20), "text": text[: dice.randint(500, 800)], "number": number}


def write(path, entries):
    with open(path, "w") as file:
        for entry in entries:
            file.write(json.dumps(entry) + "\n")


def run(binary, *arguments):
    result = subprocess.run([binary, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode != 0:
        sys.exit(f"{binary} {' '.join(arguments)}: {result.stdout}")
    return result.stdout


def fresh(binary, name, source=None):
    shutil.rmtree(f"{name}.loveseat", ignore_errors=True)
    if source:
        shutil.copytree(f"{source}.loveseat", f"{name}.loveseat")
    else:
        run(binary, "create", name)


def seconds(binary, direction, source):
    """The processor time of the active and the passive side."""
    fresh(binary, "full", source)
    fresh(binary, "empty")
    active, passive = ("full", "empty") if direction == "push" else ("empty", "full")
    listener = Listener(binary, passive)
    command = [binary, direction, active, listener.url]
    client = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, of_client = os.wait4(client.pid, 0)
    of_server = listener.stop()
    if status != 0:
        sys.exit(f"{' '.join(command)}: status {status}")
    return of_client.ru_utime + of_client.ru_stime, of_server.ru_utime + of_server.ru_stime


def prepare(binary, index, options):
    """Databases without documents, with plain ones, and with the same ones in several candidates."""
    nothing, plain, several = f"nothing{index}", f"plain{index}", f"several{index}"
    fresh(binary, nothing)
    fresh(binary, plain)
    run(binary, "import", plain, "documents.jsonl", "--id-field", "id")
    if index == options.builds - 1 or options.all_candidates:
        fresh(binary, several)
        for candidate in range(options.candidates):
            fresh(binary, "author")
            run(binary, "import", "author", f"candidate{candidate}.jsonl", "--id-field", "id")
            run(binary, "pull", several, "--local-db", "author")
        return {"nothing": nothing, "plain": plain, "several": several}
    return {"nothing": nothing, "plain": plain}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries", nargs="+", metavar="BINARY", help="a build of loveseat; the first is compared with")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--candidates", type=int, default=8)
    parser.add_argument("--all-candidates", action="store_true", help="measure candidates with each build, not the last only")
    options = parser.parse_args()
    binaries = [os.path.abspath(binary) for binary in options.binaries]
    options.builds = len(binaries)
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="loveseat-cost-", dir=memory) as folder:
        os.chdir(folder)
        entries = list(documents(options.documents))
        write("documents.jsonl", entries)
        for candidate in range(options.candidates):
            write(f"candidate{candidate}.jsonl", ({**entry, "author": candidate} for entry in entries))
        sources = [prepare(binary, index, options) for index, binary in enumerate(binaries)]
        times = {}
        for round_number in range(options.rounds):
            for direction in ("push", "pull"):
                order = list(enumerate(binaries))
                # In turns, so that a slow minute is shared.
                for index, binary in order if round_number % 2 == 0 else reversed(order):
                    for kind, source in sources[index].items():
                        found = seconds(binary, direction, source)
                        times.setdefault((index, direction, kind), []).append((*found, sum(found)))
        os.chdir("/")

    def cost(index, direction, kind, side):
        def median(kind):
            return statistics.median(one[side] for one in times[index, direction, kind])

        return (median(kind) - median("nothing")) / options.documents * 1e6

    print("one-line documents, microseconds each, and against the first build")
    for direction in ("push", "pull"):
        for index, name in enumerate(options.binaries):
            figures = [
                f"{side} {cost(index, direction, 'plain', number):6.1f}"
                f" ({cost(index, direction, 'plain', number) / cost(0, direction, 'plain', number):.2f})"
                for number, side in enumerate(("active", "passive", "both"))
            ]
            print(direction, "  ".join(figures), name)
    print(f"documents with {options.candidates} candidates, and against plain ones of the same build")
    for direction in ("push", "pull"):
        for index, name in enumerate(options.binaries):
            if "several" not in sources[index]:
                continue
            several, plain = cost(index, direction, "several", 2), cost(index, direction, "plain", 2)
            print(direction, f"both {several:6.1f} ({several / plain:.2f})", name)


if __name__ == "__main__":
    main()
