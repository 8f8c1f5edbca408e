"""The page's events, read by programs."""

import contextlib
import http.client
import socket
from urllib.parse import urlsplit

from basics import open_page
from harness import Scratch, check
from pictures import TINY_JPEG

# As many as the page allows.
READERS = 8
# More than the server keeps for a reader (256 events that wait, and 256 that are being written) and its socket holds.
PHOTOS = 1_500


class EventReader:
    """A connection to the page's events, which reads only when it is asked to."""

    def __init__(self, root, cookie, last=None):
        address = urlsplit(root)
        self._socket = socket.socket()
        # Little room for what is not read: otherwise the system would take megabytes of it.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        self._socket.settimeout(20)
        self._socket.connect((address.hostname, address.port))
        lines = ["GET /events HTTP/1.1", f"Host: {address.netloc}", f"Cookie: {cookie}"]
        if last is not None:
            lines.append(f"Last-Event-ID: {last}")
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode())
        self._answer = http.client.HTTPResponse(self._socket)
        self._answer.begin()
        self.status = self._answer.status

    def numbers(self, until=None):
        """The numbers of the events, to the end of the connection or to a number."""
        found = []
        try:
            for line in self._answer:
                if line.startswith(b"id: "):
                    found.append(int(line[4:]))
                    if found[-1] == until:
                        break
        except (http.client.IncompleteRead, ConnectionResetError):
            pass
        return found

    def close(self):
        self._answer.close()
        self._socket.close()


def slow_readers():
    """Readers of the events that do not read are cut, and get every event once by connecting again"""
    with Scratch("3.2") as scratch, contextlib.ExitStack() as connections:
        folder = scratch.path / "from"
        folder.mkdir()
        for number in range(PHOTOS):
            # Long names make long events.
            (folder / f"{number:04}-{'n' * 180}.jpg").write_bytes(TINY_JPEG + b"%d" % number)
        receiver = scratch.receiver()
        cookie = open_page(receiver.page)
        root = receiver.page.split("?")[0]

        def reader(last=None):
            return connections.enter_context(contextlib.closing(EventReader(root, cookie, last)))

        def all_after(last):
            """The numbers of the events after one, of a new connection."""
            with contextlib.closing(EventReader(root, cookie, last)) as fresh:
                check(fresh.status == 200, f"a reader that connects again gets {fresh.status}")
                return fresh.numbers(until=PHOTOS)

        slow = [reader() for _ in range(READERS)]
        check([one.status for one in slow] == [200] * READERS, f"{[one.status for one in slow]}")
        check(reader().status == 503, "there are more readers than allowed")
        result = scratch.send(receiver.code, folder, timeout=120)
        check(result.returncode == 0, result.stderr)
        receiver.wait_saved(PHOTOS, 60)
        everything = list(range(1, PHOTOS + 1))
        # The slow ones were cut, which leaves room for others.
        check(all_after(None) == everything, "a new reader does not get everything")
        counts = []
        for one in slow:
            numbers = one.numbers()
            counts.append(len(numbers))
            check(0 < len(numbers) < PHOTOS, f"a reader that did not read was not cut: it has {len(numbers)} events")
            numbers += all_after(numbers[-1])
            check(numbers == everything, f"{counts[-1]} events, and then {numbers[counts[-1]:][:3]}…")
        return f"(cut after {min(counts)} to {max(counts)} events)"


TESTS = [(3.2, slow_readers)]
