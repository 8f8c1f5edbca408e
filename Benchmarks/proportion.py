#!/usr/bin/env python3
"""Measures work that has to be in proportion (no packages needed):
  LOVESEAT=.build/release/loveseat Benchmarks/proportion.py [collections|leaves|edits|followers|peers|large-peers|ids]...
  collections: processor seconds of a sync with nothing to do, by the number of collections
  leaves:      saving and pulling a document with conflicting leaves, without and with attachments, by their number
  edits:       processor seconds of edits of one document, before and after `serve --couchdb`
  followers:   a save beside followers of _changes that do not read
  peers:       memory for each of 200 peers that pull at once and read slowly; large-peers: with documents of 40 kB
  ids:         memory for a subscription to a million document IDs"""
import base64, http.client, json, os, re, resource, socket, statistics, struct, subprocess, sys, tempfile, threading, time, zlib

L = os.path.realpath(os.environ.get("LOVESEAT", ".build/release/loveseat"))


def run(*arguments, **options):
    return subprocess.run([L, *arguments], capture_output=True, text=True, check=True, **options)


def processor(body):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    body()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Server:
    def __init__(self, database, *options):
        self.process = subprocess.Popen(
            [L, "serve", database, *options, "--interface", "127.0.0.1", "--no-tls", "--quiet"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = self.process.stdout.readline().strip()
        self.port = int(re.search(r":(\d+)/", self.url)[1])

    def memory(self, what="VmRSS"):
        return int(re.search(what + r":\s+(\d+)", open("/proc/%d/status" % self.process.pid).read())[1]) / 1024

    def post(self, path, value):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        connection.request("POST", path, json.dumps(value), {"Content-Type": "application/json"})
        connection.getresponse().read()
        connection.close()

    def stop(self):
        self.process.terminate()
        self.process.wait()


def collections():
    for count in (1, 100, 1000):
        names = ",".join("s%d.c%d" % (i % 10, i) for i in range(count))
        for side in ("here", "there"):
            run("create", side + str(count), "--collections", names)
        server = Server("there%d" % count)
        run("sync", "here%d" % count, server.url)
        used = [processor(lambda: run("sync", "here%d" % count, server.url)) for _ in range(3)]
        server.stop()
        print("%5d collections: %.3f s" % (count, min(used)))


def leaves():
    for kind in ("plain", "attachments"):
        for count in (100, 400, 900):
            hub, copy = "hub-%s-%d" % (kind, count), "copy-%s-%d" % (kind, count)
            run("create", hub), run("create", copy)
            server = Server(hub, "--couchdb")
            docs = [{"_id": "d", "_rev": "2-%032x" % i, "n": i, "_revisions": {"start": 2, "ids": ["%032x" % i, "a" * 32]}} for i in range(count)]
            if kind == "attachments":
                for i, doc in enumerate(docs):
                    doc["_attachments"] = {"a": {"content_type": "text/plain", "data": base64.b64encode(b"%d" % i).decode()}}
            begin = time.time()
            server.post("/%s/_bulk_docs" % hub, {"new_edits": False, "docs": docs})
            saved = time.time()
            run("pull", copy, "http://127.0.0.1:%d/%s" % (server.port, hub))
            print("%4d leaves, %s: saving %.2f s, pulling %.2f s" % (count, kind, saved - begin, time.time() - saved))
            server.stop()


def edits():
    open("edits", "w").write("\n".join(json.dumps({"id": "counter", "n": i, "text": "x" * 200}) for i in range(3000)))
    run("create", "plain"), run("create", "served")
    Server("served", "--couchdb").stop()
    plain, served = (processor(lambda: run("import", name, "edits", "--id-field", "id")) for name in ("plain", "served"))
    print("3,000 edits of one document: %.2f s, after serve --couchdb %.2f s: %.2f times" % (plain, served, served / plain))


def followers():
    run("create", "feed")
    server = Server("feed", "--couchdb")

    def save(tag):
        times = []
        for k in range(9):
            begin = time.time()
            server.post("/feed/_bulk_docs", {"docs": [{"_id": "%s%d-%d" % (tag, k, i), "text": "x" * 2000} for i in range(200)]})
            times.append(time.time() - begin)
        return statistics.median(times)

    before, low, stuck = save("before"), server.memory(), []
    for count in (100, 200):
        while len(stuck) < count:
            client = socket.create_connection(("127.0.0.1", server.port))
            client.sendall(b"GET /feed/_changes?feed=continuous&include_docs=true&since=now HTTP/1.1\r\nHost: localhost\r\n\r\n")
            stuck.append(client)
        time.sleep(1)
        beside = save("beside%d" % count)
        print("a save of 200 documents: %.3f s, beside %d followers that do not read %.3f s; memory %.0f and %.0f MB" % (before, count, beside, low, server.memory()))
    server.stop()


class Peer:
    """A client of BLIP."""

    def __init__(self, port, database):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.file = self.socket.makefile("rb")
        self.socket.sendall(b"GET /%s/_blipsync HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                            b"Sec-WebSocket-Key: AAECAwQFBgcICQoLDA0ODw==\r\nSec-WebSocket-Protocol: BLIP_3+CBMobile_3\r\n\r\n" % database.encode())
        while self.file.readline() not in (b"\r\n", b""): pass
        self.crc, self.inflater = 0, zlib.decompressobj(-15)

    def send(self, head, payload):
        self.crc = zlib.crc32(payload, self.crc)
        frame = head + payload + struct.pack(">I", self.crc)
        size = len(frame)
        self.socket.sendall(b"\x82" + (bytes([128 | size]) if size < 126 else struct.pack(">BH", 254, size)) + bytes(4) + frame)

    @staticmethod
    def message(properties, body=b""):
        text = b"".join(part.encode() + b"\0" for part in properties)
        assert len(text) < 128
        return bytes([len(text)]) + text + body

    def request(self, number, message):
        for start in range(0, len(message), 16000):
            more = start + 16000 < len(message)
            self.send(bytes([number, 0x40 if more else 0]), message[start:start + 16000])

    def receive(self):
        head = self.file.read(2)
        size = head[1] & 127
        if size > 125: size = int.from_bytes(self.file.read(2 if size == 126 else 8), "big")
        frame = self.file.read(size)
        if head[0] & 15 != 2: return None

        def varint(i):
            n = shift = 0
            while True:
                n |= (frame[i] & 127) << shift
                shift += 7
                i += 1
                if frame[i - 1] < 128: return n, i

        number, i = varint(0)
        flags, i = varint(i)
        body = self.inflater.decompress(frame[i:-4] + b"\0\0\xff\xff") if flags & 8 else frame[i:-4]
        return number, flags, body, frame


def peers(count=200, size=800, documents=4000):
    name = "pull%d" % size
    open("in", "w").write("\n".join(json.dumps({"_id": "k%05d" % i, "t": os.urandom(size // 2).hex()}) for i in range(documents)))
    run("create", name), run("import", name, "in")
    server = Server(name)
    before = server.memory()

    def slow_peer():
        peer = Peer(server.port, name)
        peer.request(1, Peer.message(["Profile", "subChanges", "batch", "200"]))
        while True:
            found = peer.receive()
            if not found or found[1] & 7: continue
            number, _, body, frame = found
            head = frame[:1] if number < 128 else frame[:2]
            peer.send(head + b"\1", Peer.message(["maxHistory", "20"], b"[" + b",".join([b"[]"] * body.count(b'"k')) + b"]"))
            if b'"k' not in body: time.sleep(0.2)

    threading.excepthook = lambda _: None
    for _ in range(count): threading.Thread(target=slow_peer, daemon=True).start()
    time.sleep(25)
    each = (server.memory("VmHWM") - before) / count
    print("%d slow peers, documents of %d bytes: %.2f MB each" % (count, size, each))
    server.process.kill()
    server.process.wait()


def ids():
    run("create", "subscribed"), run("put", "subscribed", "document-0000001", "{}")
    server = Server("subscribed")
    before = server.memory()
    peer = Peer(server.port, "subscribed")
    body = json.dumps({"docIDs": ["document-%07d" % i for i in range(1_000_000)]}, separators=(",", ":")).encode()
    reader = threading.Thread(target=lambda: [peer.receive() for _ in iter(int, 1)], daemon=True)
    threading.excepthook = lambda _: None
    reader.start()
    peer.request(1, Peer.message(["Profile", "subChanges", "continuous", "true"], body))
    time.sleep(10)
    print("a subscription to a million IDs (%d MB): %.0f MB, at most %.0f MB" % (len(body) >> 20, server.memory() - before, server.memory("VmHWM") - before))
    server.process.kill()
    server.process.wait()


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["collections", "leaves", "edits", "followers", "peers", "large-peers", "ids"]
    for what in wanted:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            if what == "large-peers": peers(size=40_000, documents=1000)
            else: globals()[what]()
            sys.stdout.flush()
            os.chdir("/")
    os._exit(0)
