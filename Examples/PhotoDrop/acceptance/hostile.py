"""A sender that means harm: the `loveseat` program, with documents of any kind."""

import base64
import json
import os
import re
import socket
import ssl
import struct
import subprocess
import urllib.request
import zlib
from concurrent.futures import ThreadPoolExecutor

from basics import open_page
from capacity import Peak
from harness import LOVESEAT, Scratch, Skipped, check
from network import fetch
from pictures import TINY_JPEG, draw_png, photo_file


class Client:
    """A database of `loveseat`, and what it may know of a receiver."""

    def __init__(self, scratch, receiver, name="evil"):
        if not os.access(LOVESEAT, os.X_OK):
            raise Skipped(f"there is no {LOVESEAT}: build it with `swift build -c release --product loveseat`")
        self.scratch = scratch
        self.receiver = receiver
        self.database = scratch.path / name
        self.run("create", self.database)

    def run(self, *arguments, given=None, password=None):
        environment = self.scratch.environment(HOME=str(self.scratch.path))
        if password:
            environment["LOVESEAT_PASSWORD"] = password
        return subprocess.run(
            [LOVESEAT, *map(str, arguments)], input=given, capture_output=True, text=True, env=environment, timeout=120
        )

    def blob(self, identifier, key, path, kind="image/jpeg", **properties):
        result = self.run("blob", "put", self.database, identifier, key, path, "--type", kind)
        check(result.returncode == 0, result.stderr)
        if properties:
            pairs = [f"{name}={json.dumps(value)}" for name, value in properties.items()]
            check(self.run("set", self.database, identifier, *pairs).returncode == 0, "set")

    def put(self, identifier, body):
        result = self.run("put", self.database, identifier, given=json.dumps(body))
        check(result.returncode == 0, result.stderr)

    def sync(self, direction):
        code = self.receiver.code
        pin = re.search(r"p=([0-9a-f]+)", code).group(1)
        session = re.search(r"i=([0-9a-f]+)", code).group(1)
        url = re.search(r"u=([^&]+)", code).group(1)
        return self.run(
            direction, self.database, url, "--user", f"drop-{session}", "--pin", pin, password=self.receiver.secret
        )


def hostile_documents():
    """Pulling, names, contents, tombstones, sizes and numbers that nobody should send"""
    with Scratch("10") as scratch:
        receiver = scratch.receiver("--max-photo", "20")
        client = Client(scratch, receiver)
        result = client.sync("pull")
        check(result.returncode == 77 and "push-only" in result.stderr, f"pull: {result.returncode} {result.stderr}")

        names = ["../../etc/x", "n" * 10_000, "evil\u202egpj.exe", "a\0b.jpg", "/etc/passwd", ".hidden", ""]
        for number, name in enumerate(names):
            picture = scratch.path / f"{number}.jpg"
            picture.write_bytes(TINY_JPEG + bytes([number]))
            client.blob(f"photo-{number}", "photo", picture, name=name)
        svg = scratch.path / "x.svg"
        svg.write_text('<svg xmlns="http://www.w3.org/2000/svg"><script>window.hacked = true</script></svg>')
        client.blob("svg", "photo", svg, "image/svg+xml", name="x.svg")
        bomb = scratch.path / "bomb.png"
        header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
        draw_png(bomb, [bytes(3)])
        data = bytearray(bomb.read_bytes())
        data[16:29] = header
        data[29:33] = struct.pack(">I", zlib.crc32(b"IHDR" + header))
        bomb.write_bytes(bytes(data))
        client.blob("bomb", "photo", bomb, "image/png", name="bomb.png")
        check(client.sync("push").returncode == 0, "push")
        receiver.wait_saved(len(names) + 1)
        expected = {
            "x.jpg", "n" * 196 + ".jpg", "evilgpj.exe.jpg", "ab.jpg", "passwd.jpg", "hidden.jpg", "photo.jpg",
            "bomb.png",
        }
        check(set(receiver.files()) == expected, f"{set(receiver.files()) ^ expected}")
        check(not (scratch.path / "etc").exists(), "a file outside of the folder")

        cookie = open_page(receiver.page)
        root = receiver.page.split("?")[0]
        status, headers, _ = fetch(root + "photo/svg", cookie=cookie)
        check(status == 404, f"the SVG is served: {status}")
        status, headers, _ = fetch(root + "photo/bomb", cookie=cookie)
        check(headers["Content-Security-Policy"].startswith("sandbox"), f"{headers}")
        check(headers["X-Content-Type-Options"] == "nosniff", f"{headers}")
        status, _, _ = fetch(root + "thumb/bomb", cookie=cookie)
        check(status == 404, f"a thumbnail of 3,600 megapixels: {status}")

        # A photo that is larger than accepted is not transferred.
        large = photo_file(scratch.path / "large.jpg", 30_000_000)
        client.blob("large", "photo", large, name="large.jpg")
        result = client.sync("push")
        check(result.returncode == 1 and "larger than 20 MB" in result.stderr, f"{result.stderr}")
        session = next(scratch.temporary.glob("photodrop-*"))
        size = sum(path.stat().st_size for path in session.rglob("*") if path.is_file())
        check(size < 20_000_000, f"{size} bytes are in the session's folder")

        # Nobody can withdraw a photo.
        check(client.run("rm", client.database, "photo-0").returncode == 0, "rm")
        result = client.sync("push")
        check(result.returncode == 1 and "cannot be withdrawn" in result.stderr, result.stderr)
        check((receiver.folder / "x.jpg").exists(), "the file is gone")
        status, _, _ = fetch(root + "photo/photo-0", cookie=cookie)
        check(status == 200, f"the photo is gone: {status}")

        # Another content under the same ID.
        client.blob("photo-1", "photo", scratch.path / "2.jpg", name="other.jpg")
        result = client.sync("push")
        check(result.returncode == 1 and "another content" in result.stderr, result.stderr)
        check(receiver.interrupt() == 0, "receive")


def many_documents():
    """20,000 documents"""
    with Scratch("10.1") as scratch:
        receiver = scratch.receiver()
        client = Client(scratch, receiver, "many")
        lines = "\n".join(json.dumps({"_id": f"note-{number}", "text": "x" * 100}) for number in range(20_000))
        result = client.run("import", client.database, "-", "--id-field", "_id", given=lines)
        check(result.returncode == 0, result.stderr)
        client.put("big", {"text": "y" * 100_000})
        peak = Peak(receiver.process.pid)
        result = client.sync("push")
        memory = peak.end()[0]
        check(result.returncode == 1 and "no more documents" in result.stderr, result.stderr[-500:])
        check("65536 bytes" in result.stderr, "the large document was taken")
        check(receiver.files() == [], "files")
        check(memory <= 100, f"{memory:.0f} MB of memory")
        # The session goes on.
        photo = photo_file(scratch.path / "from/a.jpg", 1_000)
        check(scratch.send(receiver.code, photo, options=["--name", "Ana"]).returncode in (0, 1), "send")
        receiver.wait_saved(1)
        check(receiver.interrupt() == 0, "receive")
        return f"({memory:.0f} MB of memory)"


def guessing():
    """Somebody who guesses at the secret"""
    with Scratch("10.2") as scratch:
        receiver = scratch.receiver()
        photo = photo_file(scratch.path / "from/a.jpg", 1_000)
        wrong = receiver.code.replace(receiver.secret, "B" * 22)
        for _ in range(3):
            check(scratch.send(wrong, photo).returncode == 77, "a guess")
        check(scratch.send(receiver.code, photo).returncode == 0, "the right secret after that")
        receiver.wait_saved(1)


def guess(receiver, address, user, path):
    """Sends a wrong password from an address of the loopback network, and returns the status; None if the connection was closed."""
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    basic = base64.b64encode(f"{user}:wrong".encode()).decode()
    upgrade = (
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAECAwQFBgcICQoLDA0ODw==\r\n"
        "Sec-WebSocket-Protocol: BLIP_3+CBMobile_3\r\n"
    )
    try:
        plain = socket.create_connection(("127.0.0.1", receiver.port), 20, (address, 0))
        with trusting.wrap_socket(plain) as connection:
            connection.sendall((
                f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{receiver.port}\r\n{upgrade if 'blipsync' in path else ''}"
                f"Authorization: Basic {basic}\r\n\r\n"
            ).encode())
            return int(connection.recv(100).split()[1])
    except (OSError, IndexError):
        return None


def guesses():
    """Hundreds of wrong secrets, from several addresses, with one name and with many, over both wires, beside a transfer"""
    with Scratch("10.3") as scratch:
        receiver = scratch.receiver("--couch")
        user = "drop-" + re.search(r"[?&]i=([0-9a-f]{16})", receiver.code).group(1)
        photos = [photo_file(scratch.path / f"from/{number}.jpg", 4_000_000) for number in range(6)]
        sender = scratch.sender(receiver.code, scratch.path / "from")
        with ThreadPoolExecutor(40) as pool:
            answers = list(pool.map(
                lambda number: guess(
                    receiver, f"127.0.0.{1 + number % 3}", user if number % 2 else f"somebody{number}",
                    "/drop/_blipsync" if number % 5 < 3 else "/drop/_all_docs",
                ),
                range(300),
            ))
            # With the code, over CouchDB's wire, from the address and with the name of those guesses.
            trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
            basic = base64.b64encode(f"{user}:{receiver.secret}".encode()).decode()
            request = urllib.request.Request(
                f"https://127.0.0.1:{receiver.port}/drop", headers={"Authorization": f"Basic {basic}"},
            )
            with urllib.request.urlopen(request, timeout=10, context=trusting) as reply:
                check(reply.status == 200, "the right secret over CouchDB's wire")
        check(not [answer for answer in answers if answer not in (None, 401, 429)], f"{set(answers)}")
        check(429 in answers, f"nobody was slowed down: {set(answers)}")
        check(sender.wait() == 0, sender.error_text())
        receiver.wait_saved(len(photos))
        check(scratch.send(receiver.code, photo_file(scratch.path / "more/a.jpg", 1_000)).returncode == 0, "a send after that")
        check(receiver.interrupt() == 0, "receive")


TESTS = [(10, hostile_documents), (10.1, many_documents), (10.2, guessing), (10.3, guesses)]
