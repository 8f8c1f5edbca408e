"""Wrong codes, cuts, killed processes, many senders, full disks."""

import json
import pathlib
import random
import signal
import socket
import subprocess
import time

from harness import PROGRAM, Scratch, Skipped, check, wait_until
from network import CuttingProxy, Impostor
from pictures import TINY_JPEG, photo_file, photo_files


def wrong_codes():
    """Wrong secrets, another device, and codes that are used up"""
    with Scratch("5") as scratch:
        photo = photo_file(scratch.path / "from/a.jpg", 50_000)
        receiver = scratch.receiver()
        wrong = receiver.code.replace(receiver.secret, "A" * 22)
        result = scratch.send(wrong, photo)
        check(result.returncode == 77 and "used up" in result.stderr, f"secret: {result.returncode} {result.stderr}")
        impostor = Impostor(scratch.path)
        try:
            result = scratch.send(receiver.code_through(impostor.port), photo)
        finally:
            impostor.close()
        check(
            result.returncode == 77 and "not the device" in result.stderr,
            f"pin: {result.returncode} {result.stderr}",
        )
        check(impostor.handshakes > 0, "the impostor was not tried")
        check(b"Authorization" not in impostor.received, "the impostor got the password")
        check(receiver.files() == [], f"written: {receiver.files()}")
        port = receiver.port
        check(receiver.interrupt() == 0, "receive")
        result = scratch.send(receiver.code, photo)
        check(
            result.returncode == 77 and "ask for a new code" in result.stderr
            and f"cannot reach Ana's laptop (127.0.0.1:{port}: connection refused)" in result.stderr,
            f"after the end: {result.returncode} {result.stderr}",
        )
        # Another session on the same port.
        other = scratch.receiver("--port", str(port), folder="other")
        result = scratch.send(receiver.code, photo)
        check(result.returncode == 77 and "not the device" in result.stderr, f"{result.returncode} {result.stderr}")
        check(other.files() == [], "the other session got a photo")
        # A device that does not answer.
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = f"127.0.0.1:{silent.getsockname()[1]}"
            result = scratch.send(other.code_through(silent.getsockname()[1]), photo, timeout=30)
        check(
            result.returncode == 69 and f"cannot reach Ana's laptop ({address}: no answer)" in result.stderr,
            f"unreachable: {result.returncode} {result.stderr}",
        )


def waiting():
    """--wait: a sender waits for its receiver, at the start and when it is gone, for as long as it was told to"""
    with Scratch("5.3") as scratch:
        photo = photo_file(scratch.path / "from/a.jpg", 100_000)
        receiver = scratch.receiver("--keep")
        check(receiver.interrupt() == 0, "receive")
        start = time.monotonic()
        result = scratch.send(receiver.code, photo, options=["--wait", "3"])
        seconds = time.monotonic() - start
        check(result.returncode == 77 and "cannot reach" in result.stderr, f"{result.returncode} {result.stderr}")
        check(3 <= seconds < 20, f"{seconds:.1f} s")
        sender = scratch.sender(receiver.code, photo, options=["--wait", "0"])
        waits = sender.wait_for(lambda event: event.get("event") == "waiting", what="a sender that waits")
        check("cannot reach Ana's laptop" in waits["reason"], f"{waits}")
        resumed = scratch.receiver(resume=receiver.session)
        check(sender.wait(30) == 0, sender.error_text())
        resumed.wait_saved(1)
        # One that goes away while it receives, and does not come back.
        photo_files(scratch.path / "large", [40_000_000] * 5)
        sender = scratch.sender(resumed.code, scratch.path / "large", options=["--wait", "4"])
        sender.wait_for(lambda event: event.get("state") == "sending" and event["sent"] > 0, what="bytes")
        resumed.kill()
        check(sender.wait(40) == 69, sender.error_text())
        check("nothing moved for 4 seconds" in sender.error_text(), sender.error_text())
        # Without a limit, an interrupt ends it.
        sender = scratch.sender(resumed.code, photo, options=["--wait", "0"])
        sender.wait_for(lambda event: event.get("event") == "waiting", what="a sender that waits")
        sender.process.send_signal(signal.SIGINT)
        check(sender.wait(20) == 130, sender.error_text())


def cuts():
    """A connection that breaks every 10 MB"""
    with Scratch("6") as scratch:
        photo = photo_file(scratch.path / "from/large.jpg", 60_000_000)
        receiver = scratch.receiver("--count", "1")
        proxy = CuttingProxy(receiver.port, cut_after=10_000_000)
        try:
            result = scratch.send(receiver.code_through(proxy.port), photo, timeout=120)
        finally:
            proxy.close()
        check(result.returncode == 0, f"{result.returncode} {result.stderr}")
        receiver.wait_saved(1)
        check((receiver.folder / photo.name).read_bytes() == photo.read_bytes(), "the photo differs")
        share = proxy.sent / photo.stat().st_size
        check(proxy.connections > 5, f"{proxy.connections} connections")
        check(share <= 1.2, f"{share:.2f} times the photo was sent")
        return f"({share:.2f} times its size over {proxy.connections} connections)"


def killed_senders():
    """A sender that is killed again and again, and continues"""
    with Scratch("7") as scratch:
        photos = photo_files(scratch.path / "from", [8_000_000] * 6)
        receiver = scratch.receiver()
        options = ("--sender", "00112233445566aa")
        dice = random.Random(7)
        for _ in range(20):
            sender = scratch.sender(receiver.code, scratch.path / "from", options=options)
            time.sleep(dice.uniform(0.02, 0.35))
            sender.kill()
        result = scratch.send(receiver.code, scratch.path / "from", options=options)
        check(result.returncode == 0 and result.stdout.startswith("6 photos"), result.stdout + result.stderr)
        receiver.wait_saved(6)
        check(receiver.interrupt() == 0, "receive")
        check(receiver.files() == [photo.name for photo in photos], f"{receiver.files()}")
        for photo in photos:
            check((receiver.folder / photo.name).read_bytes() == photo.read_bytes(), f"{photo.name} differs")
        check(list(scratch.temporary.iterdir()) == [], f"left: {list(scratch.temporary.iterdir())}")


def killed_receivers():
    """A receiver that is killed again and again, and resumed"""
    with Scratch("7.1") as scratch:
        photos = photo_files(scratch.path / "from", [12_000_000] * 6)
        receiver = scratch.receiver("--keep")
        code, session = receiver.code, receiver.session
        sender = scratch.sender(code, scratch.path / "from")
        dice = random.Random(8)
        for _ in range(5):
            wait_until(
                lambda: sender.process.poll() is not None
                or len(receiver.events) > 2, 30, "something to arrive"
            )
            time.sleep(dice.uniform(0.0, 0.15))
            receiver.kill()
            receiver = scratch.receiver(resume=session)
            check(receiver.code == code, "the resumed session has another code")
        check(sender.wait(90) == 0, sender.error_text())
        wait_until(
            lambda: sum(not name.startswith(".") for name in receiver.files()) >= 6, 20,
            lambda: f"six files among {receiver.files()}"
        )
        check(receiver.interrupt() == 0, "receive")
        check(receiver.files() == [photo.name for photo in photos], f"{receiver.files()}")
        for photo in photos:
            check((receiver.folder / photo.name).read_bytes() == photo.read_bytes(), f"{photo.name} differs")


def used_port():
    """A session that is resumed while its port is in use has another code"""
    with Scratch("7.2") as scratch:
        receiver = scratch.receiver("--keep")
        check(receiver.interrupt() == 0, "receive")
        with socket.create_server(("127.0.0.1", receiver.port)):
            resumed = scratch.receiver(resume=receiver.session)
        check(resumed.port != receiver.port, "the same port")
        check(resumed.code == receiver.code_through(resumed.port), f"{resumed.code} differs in more than the port")
        check("its code has changed" in resumed.error_text(), resumed.error_text())
        photo = photo_file(scratch.path / "from/a.jpg", 1_000)
        check(scratch.send(resumed.code, photo).returncode == 0, "send")
        resumed.wait_saved(1)


def remembered_options():
    """A session that is resumed has its options again, except those that are given; ports in use are named"""
    with Scratch("7.3") as scratch:
        receiver = scratch.receiver("--keep", "--max-photo", "1", "--strip", "--no-web", "--couch", "--count", "1")
        check(receiver.page is None and "&c=1" in receiver.code, receiver.code)
        large = photo_file(scratch.path / "from/large.jpg", 2_000_000)
        small = scratch.path / "from/small.jpg"
        small.write_bytes(TINY_JPEG)
        check(scratch.send(receiver.code, small).returncode == 0, "send")
        check(receiver.wait() == 0, receiver.error_text())
        resumed = scratch.receiver(resume=receiver.session)
        # The number of photos was reached: the session does not end at once.
        check(resumed.code == receiver.code, f"{resumed.code} is not {receiver.code}")
        check(resumed.page is None, "the page is served again")
        result = scratch.send(resumed.code, large)
        check(result.returncode == 1 and "larger than 1 MB" in result.stderr, f"{result.returncode} {result.stderr}")
        check(resumed.interrupt() == 0, resumed.error_text())
        resumed = scratch.receiver("--web", "--no-couch", "--originals", "--max-photo", "3", resume=receiver.session)
        check(resumed.page is not None and "&c=1" not in resumed.code, resumed.code)
        check(scratch.send(resumed.code, large).returncode == 0, "the limit that was given is not used")
        resumed.wait_saved(1)
        check(resumed.interrupt() == 0, resumed.error_text())
        check((receiver.folder / "large.jpg").read_bytes() == large.read_bytes(), "the photo differs")


def damaged_sessions():
    """A session's record with impossible settings is refused, and one of another version has the defaults"""
    with Scratch("7.5") as scratch:
        receiver = scratch.receiver("--keep")
        check(receiver.interrupt() == 0, "receive")
        path = pathlib.Path(receiver.session) / "session.json"
        record = json.loads(path.read_text())
        for name, value in (("idleSeconds", 1e300), ("idleSeconds", -1), ("count", 0), ("maximumSenders", 0)):
            changed = {**record, "options": {**record["options"], name: value}}
            path.write_text(json.dumps(changed))
            result = subprocess.run(
                [PROGRAM, "receive", "--resume", receiver.session], capture_output=True, text=True,
                env=scratch.environment(), timeout=30,
            )
            check(result.returncode == 65 and "damaged" in result.stderr, f"{name}: {result.returncode} {result.stderr}")
        del record["options"]["limits"]
        path.write_text(json.dumps(record))
        resumed = scratch.receiver(resume=receiver.session)
        check(resumed.code == receiver.code, f"{resumed.code} is not {receiver.code}")


def ports_in_use():
    """A port that is in use is named, with what to do"""
    with Scratch("7.4") as scratch, socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        messages = {
            "--port": f"port {port} is in use: use another --port",
            "--web-port": f"on port {port}, because it is in use",
        }
        for option, words in messages.items():
            result = subprocess.run(
                [PROGRAM, "receive", scratch.path / "received", "--interface", "127.0.0.1", option, str(port)],
                capture_output=True, text=True, env=scratch.environment(), timeout=30,
            )
            check(result.returncode == 64, f"{option}: {result.returncode} {result.stderr}")
            check(words in result.stderr and option in result.stderr, f"{option}: {result.stderr}")


def waiting_senders():
    """A ninth sender waits until another one has ended"""
    with Scratch("4.1") as scratch:
        receiver = scratch.receiver("--senders", "2")
        large = [photo_file(scratch.path / f"{number}/large.jpg", 150_000_000, number) for number in range(2)]
        senders = [scratch.sender(receiver.code, path) for path in large]
        for sender in senders:
            sender.wait_for(lambda event: event.get("state") == "sending", what="a sender that sends")
            sender.process.send_signal(signal.SIGSTOP)
        photo = photo_file(scratch.path / "from/a.jpg", 1_000)
        late = scratch.sender(receiver.code, photo)
        late.wait_for(lambda event: event.get("event") == "waiting", what="a sender that waits")
        for sender in senders:
            sender.kill()
        check(late.wait(60) == 0, late.error_text())
        # One sender owns a session for one.
        single = scratch.receiver("--senders", "1", folder="single")
        check(scratch.send(single.code, photo, options=["--sender", "0" * 16]).returncode == 0, "the first sender")
        other = photo_file(scratch.path / "from/b.jpg", 1_000)
        result = scratch.send(single.code, other)
        check(result.returncode == 1 and "another sender" in result.stderr, f"{result.returncode} {result.stderr}")
        check(single.files() == ["a.jpg"], f"{single.files()}")


def full_disk():
    """A full disk: the photo is named, and saved when there is room"""
    with Scratch("11") as scratch:
        folder = scratch.path / "received"
        folder.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", folder], capture_output=True)
        if mounted.returncode != 0:
            raise Skipped("a tmpfs cannot be mounted here")
        try:
            filler = folder / "filler"
            filler.write_bytes(bytes(12_000_000))
            small = photo_file(scratch.path / "from/a.jpg", 1_000_000)
            large = photo_file(scratch.path / "from/b.jpg", 10_000_000)
            receiver = scratch.receiver()
            check(scratch.send(receiver.code, small, large).returncode == 0, "send")
            failed = receiver.wait_for(lambda event: event["event"] == "failed", what="a failure")
            check(failed["name"] == "b.jpg" and "No space left" in failed["error"], f"{failed}")
            check([event["name"] for event in receiver.wait_saved(1)] == ["a.jpg"], "the small photo")
            # What its sender was told is stored is not lost with the session.
            check(receiver.interrupt() == 1, "receive")
            session = receiver.error_text().split("--resume ")[1].split()[0]
            filler.unlink()
            receiver = scratch.receiver(resume=session)
            receiver.wait_saved(1)
            check((folder / "b.jpg").read_bytes() == large.read_bytes(), "the photo differs")
            check(receiver.interrupt() == 0, "receive")
        finally:
            subprocess.run(["umount", folder], check=True)
        # The disk of the session's folder.
        receiver = scratch.receiver("--min-free", str(10**9), folder="full")
        result = scratch.send(receiver.code, small)
        check(result.returncode == 1 and "disk is full" in result.stderr, f"{result.returncode} {result.stderr}")
        # A folder in which nothing can be created is refused at the start.
        result = subprocess.run([PROGRAM, "receive", "/proc/self/fd"], capture_output=True, text=True, timeout=20, env=scratch.environment())
        check(result.returncode == 74 and "/proc/self/fd" in result.stderr, f"{result.returncode} {result.stderr}")


def stopped_receiver():
    """A receiver that stops meanwhile"""
    with Scratch("5.1") as scratch:
        photo_files(scratch.path / "from", [40_000_000] * 5)
        receiver = scratch.receiver()
        sender = scratch.sender(receiver.code, scratch.path / "from")
        sender.wait_for(lambda event: event.get("state") == "sending" and event["sent"] > 0, what="bytes")
        receiver.interrupt()
        code = sender.wait(30)
        check(code == 69 and "the receiver has stopped" in sender.error_text(), f"{code} {sender.error_text()}")
        check("of 5 were received" in sender.error_text(), sender.error_text())


TESTS = [
    (4.1, waiting_senders), (5, wrong_codes), (5.1, stopped_receiver), (5.3, waiting), (6, cuts), (7, killed_senders),
    (7.1, killed_receivers), (7.2, used_port), (7.3, remembered_options),
    (7.4, ports_in_use), (7.5, damaged_sessions), (11, full_disk),
]
