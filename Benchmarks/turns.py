#!/usr/bin/env python3
"""How fast several builds of the command line are, in turns: documents, a blob and memory; gets and saves where `ApiSpeed`,
built with it, lies beside each.

    python3 Benchmarks/turns.py OLD NEW ...

Each argument is a `loveseat` binary; the first is compared with. A figure is the median of the rounds. Rates are those of the clock
on the wall, so the machine should have nothing else to do; `cost.py` measures processor time, which is steadier.
"""
import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cost import documents, fresh, run, write  # noqa: E402
from listener import Listener  # noqa: E402



class PrivateMemory(threading.Thread):
    """Watches how much memory a process has that is no file's, which leaves out the pages of programs and libraries."""

    def __init__(self, process):
        super().__init__(daemon=True)
        self.path = f"/proc/{process.pid}/status"
        self.peak = 0
        self.start()

    def run(self):
        while True:
            try:
                with open(self.path) as file:
                    lines = dict(line.split(":", 1) for line in file)
            except OSError:
                return
            if "RssAnon" not in lines:
                return
            self.peak = max(self.peak, int(lines["RssAnon"].split()[0]) / 1024)
            time.sleep(0.01)


class Turn:
    """What one build does once."""

    def __init__(self, binary, count, blob):
        self.binary, self.count, self.blob = binary, count, blob
        self.found = {}

    def all(self):
        fresh(self.binary, "full")
        seconds, _, _ = self.timed([self.binary, "import", "full", "documents.jsonl", "--id-field", "id"])
        self.found["bulk insert, documents/s"] = self.count / seconds
        program = os.path.join(os.path.dirname(self.binary), "ApiSpeed")
        if os.path.exists(program):
            shutil.copytree("full.loveseat", "api.loveseat")
            for line in run(program, os.getcwd(), "api", str(self.count)).splitlines():
                work, figure = line.rsplit(": ", 1)
                self.found[work] = float(figure)
            shutil.rmtree("api.loveseat")
        for direction in ("push", "pull"):
            fresh(self.binary, "empty")
            pair = ("full", "empty") if direction == "push" else ("empty", "full")
            seconds, active, passive, private = self.synced(direction, *pair)
            self.found[f"{direction}, documents/s"] = self.count / seconds
            self.found[f"{direction}, peak of the active side, MB"] = active
            self.found[f"{direction}, peak of the passive side, MB"] = passive
            self.found[f"{direction}, private, active side, MB"], self.found[f"{direction}, private, passive side, MB"] = private
        fresh(self.binary, "album")
        fresh(self.binary, "empty")
        with open("one.jsonl", "w") as file:
            file.write('{"id":"one"}\n')
        run(self.binary, "import", "album", "one.jsonl", "--id-field", "id")
        run(self.binary, "blob", "put", "album", "one", "photo", "blob")
        seconds = self.synced("push", "album", "empty")[0]
        self.found["blob, MB/s"] = self.blob / 1e6 / seconds
        return self.found

    def timed(self, command):
        start = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        private = PrivateMemory(process)
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            sys.exit(f"{' '.join(command)}: status {status}")
        return time.monotonic() - start, usage.ru_maxrss / 1024, private.peak

    def synced(self, direction, active, passive):
        listener = Listener(self.binary, passive)
        private = PrivateMemory(listener.process)
        seconds, peak, own = self.timed([self.binary, direction, active, listener.url])
        usage = listener.stop()
        return seconds, peak, usage.ru_maxrss / 1024, (own, private.peak)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries", nargs="+", metavar="BINARY", help="a build of loveseat; the first is compared with")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--blob", type=int, default=300_000_000, help="its size in bytes")
    options = parser.parse_args()
    binaries = [os.path.abspath(binary) for binary in options.binaries]
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    found = {}
    with tempfile.TemporaryDirectory(prefix="loveseat-turns-", dir=memory) as folder:
        os.chdir(folder)
        write("documents.jsonl", documents(options.documents))
        with open("blob", "wb") as file:
            dice = random.Random(1)
            for start in range(0, options.blob, 1 << 20):
                file.write(dice.randbytes(min(1 << 20, options.blob - start)))
        for round_number in range(options.rounds):
            order = list(enumerate(binaries))
            for index, binary in order if round_number % 2 == 0 else reversed(order):
                for name, figure in Turn(binary, options.documents, options.blob).all().items():
                    found.setdefault(name, {}).setdefault(index, []).append(figure)
                for name in ("full", "empty", "album"):
                    shutil.rmtree(f"{name}.loveseat", ignore_errors=True)
        os.chdir("/")
    for name, figures in found.items():
        base = statistics.median(figures[0])
        medians = [statistics.median(figures[index]) if index in figures else None for index in range(len(binaries))]
        print(f"{name:36}", "  ".join(f"{m:10.1f} ({m / base:.2f})" if m else f"{'-':17}" for m in medians))


if __name__ == "__main__":
    main()
