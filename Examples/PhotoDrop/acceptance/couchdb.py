"""CouchDB's wire on the session's port: PouchDB in Chromium, a phone with Couchbase Lite 1, and the original's codes."""

import base64
import contextlib
import glob
import gzip
import http.client
import http.server
import json
import os
import re
import ssl
import threading
from pathlib import Path

from browser import Browser
from capacity import Peak
from harness import Scratch, Skipped, check, need, wait_until
from pictures import TINY_JPEG, photo_file, photo_files

ROOT = Path(__file__).parents[3]
BUNDLES = ".build/couchdb-clients/Python-PouchDB-*/pouchdb/bundle.js"

PAGE = b"""<!doctype html><meta charset="utf-8"><title>PouchDB</title>
<script>window.gate = { callbackCalled() {} }</script><script src="/bundle.js"></script>
<input id="files" type="file" multiple>"""

# Puts the chosen files into a database of the browser, and pushes all but the last one.
PUSH = """
    const [remote, finish] = arguments
    const read = file => new Promise(resolve => {
        const reader = new FileReader()
        reader.onload = () => resolve(reader.result.split(',')[1])
        reader.readAsDataURL(file)
    })
    const run = async () => {
        const db = new PouchDB('photos-' + Math.random().toString(36).slice(2))
        const files = [...document.getElementById('files').files]
        for (const file of files) {
            const data = await read(file)
            await db.put({
                _id: 'photo-' + file.name, type: 'photo', name: file.name,
                _attachments: { photo: { content_type: 'image/jpeg', data } }
            })
        }
        const doc_ids = files.slice(0, -1).map(file => 'photo-' + file.name)
        return await new Promise((resolve, reject) => {
            PouchDB.replicate(db, remote, { doc_ids, batch_size: 5 }, (error, result) => error ? reject(error) : resolve(result))
        })
    }
    run().then(result => finish({ result }), error => finish({ error: String(error && error.message || error), status: error && error.status }))
"""


class Site:
    """A web page of somebody else, on this computer."""

    def __init__(self, bundle):
        files = {"/": (b"text/html", PAGE), "/bundle.js": (b"text/javascript", bundle)}

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                kind, body = files.get(self.path, (None, None))
                self.send_response(200 if kind else 404)
                self.send_header("Content-Type", (kind or b"text/plain").decode())
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


def user(receiver):
    return "drop-" + re.search(r"i=([0-9a-f]+)", receiver.code).group(1)


def pouch():
    """PouchDB in Chromium pushes three of four chosen photos"""
    need("chromium", "chromedriver")
    bundles = glob.glob(str(ROOT / BUNDLES))
    if not bundles:
        raise Skipped("there is no PouchDB: scripts/couchdb-clients.sh installs it")
    site = Site(Path(bundles[0]).read_bytes())
    with contextlib.closing(site), Scratch("14") as scratch, Browser(accepts_certificates=True) as browser:
        photos = photo_files(scratch.path / "from", [200_000] * 4)
        receiver = scratch.receiver("--couch", "--origin", site.origin)
        check("&c=1" in receiver.code, receiver.code)
        browser.open(site.origin + "/")
        browser.choose("#files", photos)

        def push(password):
            remote = f"https://{user(receiver)}:{password}@127.0.0.1:{receiver.port}/drop"
            return browser.run_async(PUSH, remote)

        refused = push("wrong")
        check("error" in refused, f"a wrong password works: {refused}")
        check(receiver.files() == [], f"{receiver.files()}")
        answer = push(receiver.secret)
        check("error" not in answer and answer["result"]["docs_written"] == 3, f"{answer}")
        receiver.wait_saved(3)
        check(receiver.files() == [photo.name for photo in photos[:3]], f"{receiver.files()}")
        for photo in photos[:3]:
            check((receiver.folder / photo.name).read_bytes() == photo.read_bytes(), f"{photo.name} differs")
        # Another page may not.
        other = Site(Path(bundles[0]).read_bytes())
        with contextlib.closing(other):
            browser.open(other.origin + "/")
            browser.choose("#files", photos[2:])
            answer = push(receiver.secret)
        check("error" in answer, f"a page of another origin may send: {answer}")


class Phone:
    """Requests as Couchbase Lite 1 makes them, over TLS or without."""

    def __init__(self, port, username, password, tls=True):
        self._port = port
        self._tls = tls
        self._login = "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()

    def request(self, method, path, body=None, kind="application/json"):
        if self._tls:
            context = ssl._create_unverified_context()
            connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=20, context=context)
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=20)
        with contextlib.closing(connection):
            headers = {"Authorization": self._login, "Content-Type": kind, "Accept": "application/json"}
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def put_photo(self, identifier, photo, **properties):
        """One document with its attachment in the same request."""
        attachment = {"content_type": "application/octet-stream", "follows": True, "length": len(photo), "revpos": 1}
        revision = "5e551015e551015e5e551015e551015e"
        document = {
            "_id": identifier, "_rev": f"1-{revision}", "_revisions": {"start": 1, "ids": [revision]},
            "_attachments": {"photo": attachment}, **properties,
        }
        parts = b"--edge\r\nContent-Type: application/json\r\n\r\n" + json.dumps(document).encode()
        parts += b'\r\n--edge\r\nContent-Disposition: attachment; filename="photo"\r\n\r\n' + photo + b"\r\n--edge--"
        return self.request(
            "PUT", f"/drop/{identifier}?new_edits=false", parts, 'multipart/related; boundary="edge"'
        )


def phone():
    """Couchbase Lite 1: a photo as an attachment, in parts; and nothing to read"""
    with Scratch("14.5") as scratch:
        receiver = scratch.receiver("--couch", "--max-photo", "1")
        photo = TINY_JPEG + bytes(50_000)
        login = (user(receiver), receiver.secret)
        status, body = Phone(receiver.port, login[0], "wrong").put_photo("one", photo)
        check(status == 401, f"a wrong password: {status} {body}")
        status, body = Phone(receiver.port, *login).put_photo("one", photo)
        check(status == 201, f"{status} {body}")
        saved = receiver.wait_saved(1)
        check((receiver.folder / saved[0]["name"]).read_bytes() == photo, "the photo differs")
        for path in ("/drop/one", "/drop/_all_docs", "/drop/_changes", "/drop/one/photo", "/drop/_bulk_get"):
            method = "POST" if path.endswith("get") else "GET"
            status, body = Phone(receiver.port, *login).request(method, path, b'{"docs":[{"id":"one"}]}' if method == "POST" else None)
            check(status == 403, f"{path}: {status} {body[:200]}")
        status, body = Phone(receiver.port, *login).put_photo("two", TINY_JPEG + bytes(2_000_000), name="large.jpg")
        check(status == 413 and b"larger than 1 MB" in body, f"{status} {body}")
        check(len(receiver.files()) == 1, f"{receiver.files()}")
        # The other wire, on the same port and with the same code.
        check(scratch.send(receiver.code, photo_file(scratch.path / "from/b.jpg", 10_000)).returncode == 0, "send")
        receiver.wait_saved(2)
        check(receiver.interrupt() == 0, "the receiver counts what it refused")


def original_codes():
    """--no-tls --legacy-qr: the code of the original PhotoDrop"""
    with Scratch("14.6") as scratch:
        receiver = scratch.receiver("--couch", "--no-tls", "--legacy-qr")
        match = re.fullmatch(r"http://(drop-[0-9a-f]{16}):([\w-]{22})@127\.0\.0\.1:(\d+)/drop", receiver.code)
        check(match, receiver.code)
        # The code is on another stream, and may be read first.
        wait_until(lambda: "without encryption" in receiver.error_text(), 10, "the warning")
        photos = photo_files(scratch.path / "from", [100_000] * 3)
        result = scratch.send(receiver.code, *photos)
        check(result.returncode == 64 and "--allow-insecure" in result.stderr, f"{result.returncode} {result.stderr}")
        result = scratch.send(receiver.code, *photos, options=["--allow-insecure", "--name", "Ana"])
        check(result.returncode == 0, f"{result.returncode} {result.stderr}")
        receiver.wait_saved(3)
        check(receiver.files() == [photo.name for photo in photos], f"{receiver.files()}")
        status, body = Phone(int(match.group(3)), match.group(1), match.group(2), tls=False).put_photo(
            "one", TINY_JPEG + b"phone"
        )
        check(status == 201, f"{status} {body}")
        receiver.wait_saved(4)
        check(receiver.interrupt() == 0, "receive")


def inline_photos():
    """Photos as Base64 within a request, as PouchDB sends them: as large as --max-photo, and not held in memory"""
    with Scratch("14.7") as scratch:
        receiver = scratch.receiver("--couch", "--max-photo", "30")
        login = (user(receiver), receiver.secret)
        phone = Phone(receiver.port, *login)

        def document(identifier, photo):
            revision = f"{len(photo):032x}"
            attachment = {"content_type": "image/jpeg", "revpos": 1, "data": base64.b64encode(photo).decode()}
            return {"_id": identifier, "_rev": f"1-{revision}", "name": f"{identifier}.jpg", "_attachments": {"photo": attachment}}

        large = TINY_JPEG + os.urandom(1_000_000) * 25
        # Swift's and .NET's encoders escape these.
        text = json.dumps(document("large", large)).replace("/", "\\/").replace("+", "\\u002b").encode()
        peak = Peak(receiver.process.pid)
        status, body = phone.request("PUT", "/drop/large?new_edits=false", text)
        check(status == 201, f"{status} {body[:200]}")
        few = [document(f"photo{number}", TINY_JPEG + os.urandom(500_000)) for number in range(5)]
        status, body = phone.request("POST", "/drop/_bulk_docs", json.dumps({"docs": few, "new_edits": False}).encode())
        check((status, body.strip()) == (201, b"[]"), f"{status} {body[:200]}")
        receiver.wait_saved(6)
        memory = peak.end()[0]
        check(memory < 90, f"{memory} MB for a photo of 25 MB")
        check((receiver.folder / "large.jpg").read_bytes() == large, "the photo differs")
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            # The connection may end before all of it was sent.
            status, body = phone.request(
                "POST", "/drop/_bulk_docs", json.dumps({"docs": [document("a", large), document("b", large)], "new_edits": False}).encode()
            )
            check(status == 413, f"{status} {body[:200]}")
        check(len(receiver.files()) == 6, f"{receiver.files()}")
        # A photo that comes compressed is saved as it was, and a false length of one is found out.
        packed = gzip.compress(TINY_JPEG + bytes(300_000))
        for name, length, expected in [("true", len(TINY_JPEG) + 300_000, 201), ("false", 5, 201), ("bomb", 5, 413)]:
            data = gzip.compress(TINY_JPEG + bytes(50_000_000)) if name == "bomb" else packed
            entry = document(name, data)
            entry["_attachments"]["photo"] |= {"encoding": "gzip", "length": length, "encoded_length": len(data)}
            status, body = phone.request("PUT", f"/drop/{name}?new_edits=false", json.dumps(entry).encode())
            check(status == expected, f"{name}: {status} {body[:200]}")
        receiver.wait_saved(8)
        check((receiver.folder / "true.jpg").read_bytes() == TINY_JPEG + bytes(300_000), "the unpacked photo differs")
        status, body = phone.request(
            "PUT", "/drop/long?new_edits=false",
            b'--e\r\nContent-Type: application/json\r\n\r\n{"_id":"long","_rev":"1-a","_attachments":{"photo":{"follows":true,"length":5,'
            b'"encoding":"gzip","encoded_length":60000000}}}\r\n--e\r\n\r\n' + packed + b"\r\n--e--", 'multipart/related; boundary="e"',
        )
        check(status == 413, f"{status} {body[:200]}")
        check(receiver.interrupt() == 0, "receive")
        return f"{memory:.0f} MB of memory"


TESTS = [(14, pouch), (14.5, phone), (14.6, original_codes), (14.7, inline_photos)]
