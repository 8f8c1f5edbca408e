"""Speed and memory."""

import json
import os
import re
import subprocess
import threading

from basics import open_page
from harness import LOVESEAT, Scratch, Skipped, check
from network import fetch
from pictures import photo_files

# Of a plain push, which neither reports progress nor writes the photos to a folder a second time.
LEAST_SHARE = 0.5


class Peak:
    """Watches how much memory processes have, in MB."""

    def __init__(self, *pids):
        self._pids = pids
        self._peaks = [0.0] * len(pids)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self):
        while not self._ends.wait(0.1):
            for index, pid in enumerate(self._pids):
                try:
                    text = open(f"/proc/{pid}/status").read()
                except OSError:
                    continue
                if match := re.search(r"VmRSS:\s+(\d+) kB", text):
                    self._peaks[index] = max(self._peaks[index], int(match.group(1)) / 1000)

    def end(self):
        self._ends.set()
        self._thread.join()
        return self._peaks


def plain_push(scratch, database, name):
    """Seconds that `loveseat push` takes to send a database to an empty one over TLS, with a password."""
    target = scratch.path / name
    environment = scratch.environment(HOME=str(scratch.path), LOVESEAT_PASSWORD="s3cret")
    subprocess.run([LOVESEAT, "create", target], check=True, capture_output=True, env=environment)
    errors = scratch.path / f"{name}.log"
    with open(errors, "w") as log:
        server = subprocess.Popen(
            [LOVESEAT, "serve", target, "--interface", "127.0.0.1", "--user", "ana", "--write-only", "--quiet"],
            stdout=subprocess.PIPE, stderr=log, text=True, env=environment,
        )
    try:
        url = server.stdout.readline().strip()
        pin = re.search("pin ([0-9a-f]{64})", errors.read_text()).group(1)
        result = subprocess.run(
            [LOVESEAT, "push", database, url, "--user", "ana", "--pin", pin, "--collections", "_default", "--json"],
            capture_output=True, text=True, env=environment, timeout=300,
        )
    finally:
        server.terminate()
        server.wait(30)
        server.stdout.close()
    check(result.returncode == 0, f"push: {result.returncode} {result.stderr}")
    return json.loads(result.stdout.splitlines()[-1])["seconds"]


def capacity():
    """200 photos of 5 MB, and 1,000 photos of 100 kB, beside a plain push of the same"""
    if not os.access(LOVESEAT, os.X_OK):
        raise Skipped(f"there is no {LOVESEAT}")
    with Scratch("15") as scratch:
        notes = []
        for count, size, name, least in ((200, 5_000_000, "large", 20), (1_000, 100_000, "small", 300)):
            photo_files(scratch.path / name, [size] * count)
            receiver = scratch.receiver("--count", str(count), "--keep", folder=f"{name}-received")
            cookie = open_page(receiver.page)
            sender = scratch.sender(receiver.code, scratch.path / name)
            peak = Peak(receiver.process.pid, sender.process.pid)
            # The page answers meanwhile.
            receiver.wait_saved(1)
            status, _, _ = fetch(receiver.page.split("?")[0], cookie=cookie)
            check(status == 200, "the page does not answer")
            check(sender.wait(120) == 0, sender.error_text())
            done = sender.all("done")[0]
            check(done["stored"] == count, f"{done}")
            check(receiver.wait(60) == 0, receiver.error_text())
            check(len(receiver.files()) == count, f"{len(receiver.files())} files")
            peaks = peak.end()
            check(all(value <= 150 for value in peaks), f"memory in MB: {peaks}")
            rate = count / done["seconds"]
            plain = count / plain_push(scratch, f"{receiver.session}/drop", f"{name}-plain")
            notes.append(
                f"{rate * size / 1e6:.0f} MB/s, {rate:.0f} photos/s, {rate / plain:.2f} of a plain push; "
                f"{peaks[0]:.0f} and {peaks[1]:.0f} MB of memory"
            )
            # A machine on which even a plain push is slow cannot be asked for more than a share of it.
            needed = min(least, LEAST_SHARE * plain)
            check(rate >= needed, f"{rate:.0f} photos/s of {size} bytes, not {needed:.0f}; {notes[-1]}")
        return f"({'; '.join(notes)})"


TESTS = [(15, capacity)]
