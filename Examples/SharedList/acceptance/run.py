#!/usr/bin/env python3
"""Two processes share a list over TLS on the loopback interface. SHAREDLIST names the program."""
import contextlib
import os
import pty
import re
import select
import subprocess
import tempfile
import time

PROGRAM = os.environ["SHAREDLIST"]
SECONDS = 60


class Device:
    """A running `sharedlist`. On a terminal, it draws by itself; otherwise after each line that it is sent."""

    def __init__(self, folder, *options, terminal=False):
        command = [PROGRAM, folder, "--interface", "127.0.0.1", *options]
        if terminal:
            self.output, end = pty.openpty()
            self.input = self.output
            self.process = subprocess.Popen(command, stdin=end, stdout=end, close_fds=True)
            os.close(end)
        else:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.output, self.input = self.process.stdout.fileno(), self.process.stdin.fileno()
        self.screen = self.read()

    def read(self):
        """What it prints until its next prompt."""
        text, end = b"", time.monotonic() + SECONDS
        while not text.endswith(b"> "):
            assert select.select([self.output], [], [], max(0, end - time.monotonic()))[0], f"no prompt after {text!r}"
            piece = os.read(self.output, 65536)
            assert piece, f"ended after {text!r}"
            text += piece
        return text.decode().replace("\r\n", "\n")

    def say(self, *lines):
        for line in lines:
            os.write(self.input, line.encode() + b"\n")
            self.screen = self.read()
        return self.screen

    def wait(self, *parts):
        """Looks again until all of these are on the screen."""
        end = time.monotonic() + SECONDS
        while not all(part in self.screen for part in parts):
            assert time.monotonic() < end, f"{parts} did not appear:\n{self.screen}"
            time.sleep(0.05)
            self.say("")
        return self.screen

    def number(self, text):
        """The number of the row with a text."""
        return re.search(rf"^(\d+)  (?:\[.\] )?{re.escape(text)}", self.say(""), re.M).group(1)

    def quit(self):
        os.write(self.input, b"quit\n")
        assert self.process.wait(SECONDS) == 0

    def kill(self):
        self.process.kill()
        self.process.wait()


def main():
    with tempfile.TemporaryDirectory() as work, contextlib.ExitStack() as stack:
        def start(name, *options, terminal=False):
            device = Device(f"{work}/{name}", *options, terminal=terminal)
            stack.callback(device.kill)
            return device

        ana, ben = start("ana"), start("ben")
        ana.say("new food", "add milk", "add bread", "add tea", "back", "share", "code")
        digits, url = re.search(r"join (\d{6}) (wss://\S+)", ana.screen).groups()
        ben.say("share", f"join {'111111' if digits != '111111' else '222222'} {url}")
        assert "! the pairing code is wrong" in ben.screen, ben.screen
        ben.say(f"join {digits} {url}")
        ben.wait(": up to date")
        ana.wait(": up to date")
        ben.say("back")
        ben.wait("1  food  3 open, 0 done")
        print("paired by six digits; a wrong code was explained")

        # On a terminal, what arrives is drawn without a key.
        ben.quit()
        ben = start("ben", terminal=True)
        ana.say("back", "1", "add rice")
        while "4 open" not in ben.screen:
            ben.screen = ben.read()
        ben.kill()
        print("a terminal follows")

        # Both edit while they are apart. Ben's process was killed, and Ana's is killed after her edits.
        ben = start("ben", "--offline")
        ana.say("back", "share", "offline", "back", "1")
        for device, edits in ((ana, ["text oat milk"]), (ben, ["text soy milk", "note two bottles"])):
            if device is ben:
                device.say("1")
            device.wait("milk", "rice")
            device.say(device.number("milk"), *edits, "back")
        ana.say("done " + ana.number("bread"), "add eggs")
        ben.say("remove " + ben.number("bread"), "add salt")
        ben.say("remove " + ben.number("rice"))
        ana.say(ana.number("rice"), "note brown", "back")
        ana.kill()
        ana = start("ana")
        ben.say("back", "share", "online")
        ben.wait(": up to date")
        ben.say("back", "1")
        ana.say("1")
        for device in (ana, ben):
            device.wait("[ ] oat milk / soy milk …", "[x] bread", "[ ] rice …", "[ ] tea", "[ ] eggs", "[ ] salt")
            device.say(device.number("oat milk"))
            device.wait("two bottles")
            device.say("back")
        print("no edit was lost")

        # The other device is away, and says so; then it is back at the same port.
        ana.quit()
        ben.say("back", "share")
        ben.wait("trying again")
        ana = start("ana")
        ben.say("retry")
        ben.wait(": up to date")
        ana.say("share", "forget 1")
        ben.wait("does not know this device any more")
        ana.quit()
        ben.quit()
        print("absence and the end of sharing were explained")

        # A script: numbers mean what was shown last.
        for script, parts in (("new a\nadd x\nadd y\ndone 1\n", ["[x] x"]), ("9\n", ["1  a  1 open, 1 done", "“9” does not work here"])):
            run = subprocess.run([PROGRAM, f"{work}/cat"], input=script, capture_output=True, text=True, timeout=SECONDS)
            assert run.returncode == 0 and all(part in run.stdout for part in parts), run
        other = start("cat")
        second = subprocess.run([PROGRAM, f"{work}/cat"], input="", capture_output=True, text=True, timeout=SECONDS)
        assert second.returncode == 74 and "open in another program" in second.stderr, second
        other.quit()
        print("SharedList: all acceptance tests have passed")


main()
