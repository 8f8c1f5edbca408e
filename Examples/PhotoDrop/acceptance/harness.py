"""Processes for the acceptance tests."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

PROGRAM = os.environ.get("PHOTODROP", str(Path(__file__).parent.parent / ".build/release/photodrop"))
LOVESEAT = os.environ.get("LOVESEAT", str(Path(__file__).parents[3] / ".build/release/loveseat"))


class Failure(Exception):
    """A test has failed."""


class Skipped(Exception):
    """A test needs something that is not installed."""


def check(condition, message):
    if not condition:
        raise Failure(message)


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Skipped(f"{program} is not installed")


def wait_until(condition, seconds, what):
    """Polls a condition of another process, and returns its value when it is true."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise Failure(f"{what() if callable(what) else what}: not within {seconds} s")


class Scratch:
    """A folder with everything that a test writes. It is also where photodrop has its temporary folders."""

    def __init__(self, name):
        self.path = Path(tempfile.mkdtemp(prefix=f"photodrop-acceptance-{name}-"))
        self.temporary = self.path / "tmp"
        self.temporary.mkdir()
        self.running = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for item in self.running:
            item.close()
        shutil.rmtree(self.path, ignore_errors=True)

    def environment(self, **changes):
        environment = dict(os.environ, TMPDIR=str(self.temporary), LC_ALL="C.UTF-8")
        environment.update(changes)
        return environment

    def receiver(self, *options, folder="received", **arguments):
        receiver = Receiver(self, folder, options, **arguments)
        self.running.append(receiver)
        return receiver

    def send(self, code, *paths, options=(), timeout=60, command="send", **environment):
        """Runs `photodrop send`, or `recall`, with the code on standard input, and returns its result."""
        return subprocess.run(
            [PROGRAM, command, *options, "-", *map(str, paths)],
            input=code + "\n", capture_output=True, text=True, timeout=timeout,
            env=self.environment(**environment),
        )

    def sender(self, code, *paths, options=()):
        """Starts `photodrop send --json`. Without a code, its page has to ask for one."""
        sender = Sender(self, code, paths, options)
        self.running.append(sender)
        return sender


class JSONProcess:
    """A process that prints a JSON object on each line."""

    def __init__(self, scratch, arguments, standard_input=None, environment=None):
        self.errors = scratch.path / f"stderr-{time.monotonic_ns()}"
        self.events = []
        self.lines = []
        self._condition = threading.Condition()
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(
                arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                env=scratch.environment(**(environment or {})), text=True,
            )
        if standard_input is not None:
            self.process.stdin.write(standard_input)
        self.process.stdin.close()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        for line in self.process.stdout:
            with self._condition:
                self.lines.append(line)
                self.events.append(json.loads(line))
                self._condition.notify_all()
        with self._condition:
            self._condition.notify_all()

    def wait_for(self, matches, seconds=20, what="an event"):
        """Returns the first event that matches."""
        deadline = time.monotonic() + seconds
        seen = 0
        with self._condition:
            while True:
                for event in self.events[seen:]:
                    if matches(event):
                        return event
                seen = len(self.events)
                left = deadline - time.monotonic()
                if left <= 0 or (not self._thread.is_alive() and seen == len(self.events)):
                    raise Failure(f"{what} did not come; {self.error_text()}")
                self._condition.wait(min(left, 0.5))

    def all(self, name):
        return [event for event in list(self.events) if event.get("event") == name]

    def wait(self, seconds=30):
        """Waits for the end, and returns the exit code."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.process.args[:2]} does not end; {self.error_text()}")
        self._thread.join(5)
        return code

    def error_text(self):
        return self.errors.read_text(errors="replace").strip()[-2000:]

    def kill(self):
        self.process.kill()
        self.process.wait()
        self._thread.join(5)

    def close(self):
        if self.process.poll() is None:
            self.kill()


class Receiver(JSONProcess):
    """`photodrop receive --json` on 127.0.0.1. One that is resumed has to remember that."""

    def __init__(self, scratch, folder, options, resume=None, environment=None):
        self.folder = scratch.path / folder
        if resume:
            place = ["--resume", resume]
        else:
            place = [str(self.folder), "--interface", "127.0.0.1", "--name", "Ana's laptop"]
            if not any(option.startswith("--min-free") for option in options):
                place += ["--min-free", "0"]
        super().__init__(scratch, [PROGRAM, "receive", "--json", *place, *options], environment=environment)
        first = self.wait_for(lambda event: event["event"] == "code", what="the code")
        self.code = first["text"]
        self.compact = first.get("compact")
        self.page = first.get("page")
        self.session = first.get("session")

    @property
    def port(self):
        return int(re.search(r"u=wss://127\.0\.0\.1:(\d+)/", self.code).group(1))

    @property
    def secret(self):
        return re.search(r"s=([^&]+)", self.code).group(1)

    def code_through(self, port):
        """The code with another port: that of a proxy."""
        return self.code.replace(f":{self.port}/", f":{port}/")

    def wait_saved(self, count, seconds=30):
        wait_until(lambda: len(self.all("saved")) >= count, seconds, f"{count} photos (have {len(self.all('saved'))})")
        return self.all("saved")

    def interrupt(self, seconds=20):
        """Ends the session as Ctrl-C does, and returns the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.wait(seconds)

    def files(self):
        return sorted(path.name for path in self.folder.iterdir()) if self.folder.exists() else []


class Sender(JSONProcess):
    def __init__(self, scratch, code, paths, options):
        given = [] if code is None else ["-"]
        super().__init__(
            scratch, [PROGRAM, "send", "--json", *options, *given, *map(str, paths)],
            standard_input="" if code is None else code + "\n",
        )
