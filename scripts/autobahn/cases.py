"""Runs the cases of the Autobahn test-suite against Loveseat's WebSocket, both ends of it.

The suite on PyPI is written for Python 2: scripts/autobahn.sh installs it and turns its cases into Python 3. What runs
them here is the current Autobahn library. A Python 2 string is a string of bytes; here it is a text of Latin-1.

    autobahn_cases.py server PORT          the cases against the echo server on that port
    autobahn_cases.py client PROGRAM ...   the same against the echo client that the program is
"""

import builtins
import json
import os
import subprocess
import sys

from twisted.internet import reactor
from autobahn.twisted.websocket import (
    WebSocketClientFactory, WebSocketClientProtocol, WebSocketServerFactory, WebSocketServerProtocol,
)
from autobahn.websocket.protocol import WebSocketProtocol
from autobahn.websocket import utf8validator

BLIP = "BLIP_3+CBMobile_3"
COMPRESSION = ("12.", "13.")
AT_ONCE = 8
PASSED = ("OK", "NON-STRICT", "INFORMATIONAL")


def to_bytes(payload):
    return payload.encode("latin-1") if isinstance(payload, str) else bytes(payload)


def to_text(payload):
    return payload.decode("latin-1") if isinstance(payload, (bytes, bytearray)) else payload


# The cases' module makes some of its tables as it is loaded, from strings that are bytes.
_validate = utf8validator.Utf8Validator.validate


class Utf8Validator(utf8validator.Utf8Validator):
    def validate(self, text):
        return _validate(self, to_bytes(text))


utf8validator.Utf8Validator = Utf8Validator
import binascii  # noqa: E402

_b2a_hex = binascii.b2a_hex
binascii.b2a_hex = lambda data: _b2a_hex(to_bytes(data)).decode()
from case import Case, Cases  # noqa: E402

binascii.b2a_hex = _b2a_hex


def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return to_text(value)


Case.compare = lambda self, one, other: plain(one) == plain(other)


def number(case):
    return case.__name__[len("Case"):].replace("_", ".")


class Fuzzing:
    """What a case calls `self.p`."""

    runCase = None
    connectionWasOpen = False
    createWirelog = False

    def begin(self, case):
        self.case = case
        self.txFrameStats = {}
        self.logFrames = True
        self.runCase = case(self)

    def onOpen(self):
        self.connectionWasOpen = True
        if self.runCase:
            self.runCase.onOpen()

    def onMessage(self, payload, isBinary):
        self.runCase.onMessage(to_text(payload), isBinary)

    def onPing(self, payload):
        self.runCase.onPing(to_text(payload))
        self.sendPong(payload)

    def onPong(self, payload):
        self.runCase.onPong(to_text(payload))

    def onClose(self, wasClean, code, reason):
        if self.runCase:
            self.runCase.onClose(wasClean, code, reason)

    def ended(self):
        if self.runCase:
            self.runCase.onConnectionLost(self.failedByMe)
            results.note(self.case, self.runCase)

    def enableWirelog(self, enable):
        pass

    def later(self, delay, work):
        reactor.callLater(delay, lambda: work() if self.state != WebSocketProtocol.STATE_CLOSED else None)

    def continueLater(self, delay, work, tag=None):
        self.later(delay, work)

    def killAfter(self, delay):
        # Cases allow a second for the answer; the machine may be busy.
        self.later(delay + 4, self._fail_connection)

    def closeAfter(self, delay):
        self.later(delay, self.sendClose)

    def logRxOctets(self, data):
        pass

    def logTxOctets(self, data, sync):
        pass

    def logRxFrame(self, header, payload):
        pass

    def logTxFrame(self, header, payload, repeated, chopsize, sync):
        self.txFrameStats[header.opcode] = self.txFrameStats.get(header.opcode, 0) + 1

    # What takes bytes now.

    def sendFrame(self, opcode, payload=b"", **options):
        super().sendFrame(opcode, to_bytes(payload), **options)

    def sendMessage(self, payload, isBinary=False, fragmentSize=None, **options):
        super().sendMessage(to_bytes(payload), isBinary, fragmentSize=fragmentSize, **options)

    def sendMessageFrameData(self, payload, sync=False):
        return super().sendMessageFrameData(to_bytes(payload), sync)

    def sendCloseFrame(self, code=None, reasonUtf8=None, isReply=False):
        super().sendCloseFrame(code, None if reasonUtf8 is None else to_bytes(reasonUtf8), isReply)

    def sendClose(self, code=None, reason=None):
        reason = None if reason is None else to_bytes(reason)
        self.sendCloseFrame(code, reason)


class FuzzingClient(Fuzzing, WebSocketClientProtocol):
    def connectionMade(self):
        super().connectionMade()
        self.begin(self.factory.case)

    def connectionLost(self, reason):
        super().connectionLost(reason)
        self.ended()
        next_case()


class FuzzingServer(Fuzzing, WebSocketServerProtocol):
    def onConnect(self, request):
        self.begin(chosen[int(request.path.split("/")[1])])
        return BLIP

    def connectionLost(self, reason):
        super().connectionLost(reason)
        self.ended()


class Results:
    def __init__(self):
        self.failed = []
        self.counts = {}

    def note(self, case, run):
        key = (run.behavior, run.behaviorClose)
        self.counts[key] = self.counts.get(key, 0) + 1
        if run.behavior not in PASSED or run.behaviorClose not in PASSED:
            self.failed.append((number(case), run.behavior, run.result, run.behaviorClose, run.resultClose))

    def end(self):
        for failure in sorted(self.failed):
            print(*failure, sep=" | ")
        for (behavior, close), count in sorted(self.counts.items()):
            print(f"{count} cases: {behavior}, closing {close}")
        run = sum(self.counts.values())
        missing = len(chosen) - run
        if missing:
            print(f"{missing} cases did not run")
        print(f"{run - len(self.failed)} of {len(chosen)} passed")
        return 1 if self.failed or missing else 0


def start_client(case):
    factory = WebSocketClientFactory(f"ws://127.0.0.1:{port}/echo/_blipsync", protocols=[BLIP])
    factory.protocol = FuzzingClient
    factory.setProtocolOptions(failByDrop=False, closeHandshakeTimeout=10, serverConnectionDropTimeout=5)
    factory.case = case
    reactor.connectTCP("127.0.0.1", port, factory)


def next_case():
    global running
    running -= 1
    fill()


def fill():
    global running
    while running < AT_ONCE and waiting:
        running += 1
        start_client(waiting.pop(0))
    if not running:
        reactor.stop()


only = os.environ.get("CASES", "").split()
chosen = [
    case for case in Cases
    if not number(case).startswith(COMPRESSION)
    and (not only or any(number(case).startswith(prefix) for prefix in only))
]
results = Results()
if sys.argv[1] == "server":
    port = int(sys.argv[2])
    waiting = list(chosen)
    running = 0
    reactor.callWhenRunning(fill)
    reactor.run()
else:
    factory = WebSocketServerFactory()
    factory.protocol = FuzzingServer
    factory.setProtocolOptions(failByDrop=False, closeHandshakeTimeout=10)
    listening = reactor.listenTCP(0, factory, interface="127.0.0.1")
    echo = subprocess.Popen(sys.argv[2:] + [str(listening.getHost().port), str(len(chosen))])

    def watch():
        if echo.poll() is None:
            reactor.callLater(0.1, watch)
        else:
            reactor.callLater(1, reactor.stop)

    reactor.callWhenRunning(watch)
    reactor.run()
sys.exit(results.end())
