"""Couchbase Lite 3.2.4 as a sender: what it said in a recorded conversation, with another blob and another property for it."""

import base64
import hashlib
import json
import os
import re
import socket
import ssl
import struct
import zlib
from pathlib import Path

from harness import Failure, Scratch, check
from pictures import TINY_JPEG

FIXTURES = Path(__file__).parents[3] / "Tests/Fixtures/wire"
REQUEST, REPLY, ERROR = 0, 1, 2
COMPRESSED, NO_REPLY, MORE = 0x08, 0x20, 0x40


def number_bytes(value):
    result = bytearray()
    while value >= 0x80:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(result + bytes([value]))


def take_number(data):
    value = shift = 0
    for index, byte in enumerate(data):
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, data[index + 1 :]
    raise Failure("a number is cut")


class Message:
    def __init__(self, number, flags, payload=b""):
        self.number, self.kind, self.flags, self.payload = number, flags & 7, flags, payload

    def finish(self):
        size, rest = take_number(self.payload)
        texts = rest[:size].split(b"\0")[:-1]
        self.properties = {one.decode(): other.decode() for one, other in zip(texts[::2], texts[1::2])}
        self.body = rest[size:]
        return self

    @property
    def profile(self):
        return self.properties.get("Profile")


class Frames:
    """One direction of a BLIP connection, read."""

    def __init__(self):
        self._inflater = zlib.decompressobj(-15)
        self._checksum = 0
        self._open = {}

    def read(self, frame):
        """Adds a frame, and returns the message that it completes; None for others and for acknowledgements."""
        number, rest = take_number(frame)
        flags, rest = take_number(rest)
        if flags & 7 > ERROR:
            return None
        payload, told = rest[:-4], struct.unpack(">I", rest[-4:])[0]
        if flags & COMPRESSED and payload:
            payload = self._inflater.decompress(payload + b"\0\0\xff\xff")
        self._checksum = zlib.crc32(payload, self._checksum)
        check(self._checksum == told, "a checksum is wrong")
        message = self._open.setdefault((number, flags & 7 == REQUEST), Message(number, flags))
        message.payload += payload
        if flags & MORE:
            return None
        del self._open[number, message.kind == REQUEST]
        return message.finish()


def sha1(content):
    return "sha1-" + base64.b64encode(hashlib.sha1(content).digest()).decode()


def recorded(name):
    """The upgrade request and the messages of the active peer's first connection."""
    frames, messages, upgrade = Frames(), [], None
    for line in (FIXTURES / f"{name}.trace.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event.get("connection") == "closed":
            break
        if event.get("dir") == "active":
            if "http" in event:
                upgrade = event["http"]
            elif "frame" in event:
                messages.append(frames.read(base64.b64decode(event["frame"])))
    return upgrade, [message for message in messages if message]


class Line:
    """A WebSocket to a receiver, which shows the certificate that its code names."""

    frame_size = 16_000

    def __init__(self, receiver, upgrade):
        pin = re.search(r"p=([0-9a-f]+)", receiver.code).group(1)
        raw = socket.create_connection(("127.0.0.1", receiver.port), timeout=20)
        self._socket = ssl._create_unverified_context().wrap_socket(raw, server_hostname="localhost")
        check(hashlib.sha256(self._socket.getpeercert(True)).hexdigest() == pin, "another certificate")
        session = re.search(r"i=([0-9a-f]+)", receiver.code).group(1)
        login = base64.b64encode(f"drop-{session}:{receiver.secret}".encode()).decode()
        lines = [upgrade[0].replace("/db/", "/drop/"), *upgrade[1:], "Host: 127.0.0.1", f"Authorization: Basic {login}"]
        self._socket.sendall("\r\n".join(lines + ["", ""]).encode())
        self._data = b""
        while b"\r\n\r\n" not in self._data:
            self._more()
        head, self._data = self._data.split(b"\r\n\r\n", 1)
        self.answer = head.decode()
        self._frames, self._checksum, self.received = Frames(), 0, []

    def _more(self):
        data = self._socket.recv(65_536)
        check(data, "the receiver has closed the connection")
        self._data += data

    def _take(self, count):
        while len(self._data) < count:
            self._more()
        taken, self._data = self._data[:count], self._data[count:]
        return taken

    def _send(self, opcode, payload):
        mask = os.urandom(4)
        size = len(payload)
        head = bytes([0x80 | opcode])
        head += bytes([0x80 | size]) if size < 126 else struct.pack(">BH", 0xFE, size)
        masked = bytes(byte ^ mask[index & 3] for index, byte in enumerate(payload))
        self._socket.sendall(head + mask + masked)

    def send(self, message, number, body):
        """Sends a message as it was recorded, with another number and body, and without compression."""
        texts = b"".join(f"{key}\0{value}\0".encode() for key, value in message.properties.items())
        payload = number_bytes(len(texts)) + texts + body
        pieces = [payload[start : start + self.frame_size] for start in range(0, len(payload), self.frame_size)]
        for index, piece in enumerate(pieces):
            flags = message.flags & ~(COMPRESSED | MORE) | (MORE if index + 1 < len(pieces) else 0)
            self._checksum = zlib.crc32(piece, self._checksum)
            self._send(2, number_bytes(number) + number_bytes(flags) + piece + struct.pack(">I", self._checksum))

    def receive(self):
        """The next message; None when the receiver closes the connection."""
        while True:
            opcode, size = self._take(2)
            size &= 0x7F
            if size == 126:
                size = struct.unpack(">H", self._take(2))[0]
            elif size == 127:
                size = struct.unpack(">Q", self._take(8))[0]
            payload = self._take(size)
            if opcode & 15 == 8:
                return None
            if opcode & 15 == 9:
                self._send(10, payload)
            elif opcode & 15 == 2 and (message := self._frames.read(payload)):
                return message

    def close(self):
        self._send(8, struct.pack(">H", 1000))
        while self.receive():
            pass
        self._socket.close()


def couchbase_lite():
    """Couchbase Lite 3.2.4, as recorded: a photo as a blob in `photo`"""
    upgrade, said = recorded("blob-60k")
    photo = TINY_JPEG + os.urandom(60_000)
    digest = sha1(photo)
    with Scratch("13") as scratch:
        receiver = scratch.receiver()
        line = Line(receiver, upgrade)
        check("101 Switching" in line.answer and "BLIP_3+CBMobile_3" in line.answer, line.answer)
        requests = [message for message in said if message.kind == REQUEST]
        contents = {sha1(message.body): (message, message.body) for message in said if message.kind == REPLY and message.body}
        contents[digest] = (next(iter(contents.values()))[0], photo)
        waiting, asked = set(), []

        def tell(message):
            body = message.body
            if message.profile == "rev" and message.properties["id"] == "photo":
                blob = {"@type": "blob", "content_type": "image/jpeg", "digest": digest, "length": len(photo)}
                body = json.dumps({"title": "noise", "photo": blob}).encode()
            line.send(message, message.number, body)
            if not message.flags & NO_REPLY:
                waiting.add(message.number)

        def hear():
            message = line.receive()
            check(message, "the receiver has closed the connection")
            if message.kind == REQUEST:
                check(message.profile == "getAttachment", f"asked for {message.profile}")
                asked.append(message.properties["digest"])
                check(asked[-1] in contents, f"asked for {asked[-1]}")
                recorded_reply, content = contents[asked[-1]]
                line.send(recorded_reply, message.number, content)
                return None
            waiting.discard(message.number)
            return message

        # It waits where it waited in the recording: for the peer's wishes, and for the answers to its revisions.
        for index, message in enumerate(requests):
            tell(message)
            following = requests[index + 1].profile if index + 1 < len(requests) else None
            if message.profile == "proposeChanges":
                while True:
                    answer = hear()
                    if answer and answer.number == message.number:
                        check(answer.kind == REPLY, f"the proposals: {answer.properties}")
                        refused = json.loads(answer.body or b"[]")
                        check(not any(refused[:1]), f"the photo is not wanted: {refused}")
                        break
            elif following in ("setCheckpoint", None):
                while waiting:
                    hear()
        line.close()
        saved = receiver.wait_saved(1)
        check(digest in asked, f"{asked}")
        check((receiver.folder / saved[0]["name"]).read_bytes() == photo, "the photo differs")
        check(receiver.interrupt() == 0, "receive")


TESTS = [(13, couchbase_lite)]
