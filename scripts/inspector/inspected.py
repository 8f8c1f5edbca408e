"""Processes for the acceptance tests of the inspector."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).parents[2]
# The browser is driven as in the tests of PhotoDrop.
sys.path.append(str(ROOT / "Examples/PhotoDrop/acceptance"))

from harness import Failure, check, wait_until  # noqa: E402

LOVESEAT = os.environ.get("LOVESEAT", str(ROOT / ".build/release/loveseat"))


class Folder:
    """A folder of databases, and the processes that have them open."""

    def __init__(self, path):
        self.path = path
        self.running = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for item in self.running:
            item.close()

    def environment(self):
        return dict(os.environ, LOVESEAT_IDENTITIES=str(self.path / "identities"), LC_ALL="C.UTF-8")

    def run(self, *arguments, standard_input=None, succeeds=True):
        """Runs a command, and returns what it printed."""
        result = subprocess.run(
            [LOVESEAT, *map(str, arguments)], cwd=self.path, input=standard_input, capture_output=True, text=True,
            timeout=120, env=self.environment(),
        )
        if succeeds:
            check(result.returncode == 0, f"{arguments}: {result.returncode} {result.stderr}")
            return result.stdout
        return result

    def start(self, *arguments):
        process = Started(self, arguments)
        self.running.append(process)
        return process

    def inspect(self, database, *options):
        """Starts `loveseat inspect`, and returns the process, which has a page."""
        return self.start("inspect", database, *options).with_page()

    def serve(self, database, *options, interface="127.0.0.1"):
        """Starts `loveseat serve`, and returns the process when it accepts connections."""
        place = ("--interface", interface) if interface else ()
        process = self.start("serve", database, *place, "--open", *options)
        process.url = process.line(r"^(wss?://\S+)")
        return process

    def fill(self, database, documents):
        """Imports documents, which are dictionaries with an _id."""
        text = "".join(json.dumps(document) + "\n" for document in documents)
        (self.path / "import.jsonl").write_text(text)
        self.run("import", database, "import.jsonl")


class Started:
    """A process that goes on."""

    def __init__(self, folder, arguments):
        self.process = subprocess.Popen(
            [LOVESEAT, *map(str, arguments)], cwd=folder.path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=folder.environment(),
        )
        self.lines = []
        self.errors = []
        self.threads = [
            threading.Thread(target=self._read, args=arguments, daemon=True)
            for arguments in ((self.process.stdout, self.lines), (self.process.stderr, self.errors))
        ]
        for thread in self.threads:
            thread.start()

    @staticmethod
    def _read(stream, lines):
        for line in stream:
            lines.append(line.rstrip("\n"))

    def line(self, pattern, seconds=20):
        """Waits for a line, and returns the first group."""
        def found():
            for line in list(self.lines) + list(self.errors):
                if match := re.search(pattern, line):
                    return match.group(1)
            if self.process.poll() is not None and not any(thread.is_alive() for thread in self.threads):
                raise Failure(f"it ended with {self.process.returncode}: {self.errors[-5:]}")
            return None
        return wait_until(found, seconds, f"a line like {pattern}; {self.errors[-5:]}")

    def with_page(self):
        self.page = self.line(r"^(http://127\.0\.0\.1:\d+/\?k=\w+)$")
        return self

    @property
    def token(self):
        return self.page.split("k=")[1]

    @property
    def root(self):
        return self.page.split("?")[0]

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(20)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
