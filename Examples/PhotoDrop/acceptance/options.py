"""Options that few sessions use: another identity, the page on the network, discovery, codes without encryption."""

import contextlib
import hashlib
import http.client
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
from urllib.parse import urlsplit

from basics import open_page
from harness import LOVESEAT, PROGRAM, JSONProcess, Scratch, Skipped, check, need, wait_until
from network import fetch
from pictures import photo_file


def make_identity(folder):
    """A key and a certificate, as openssl makes them; returns the files and the certificate's fingerprint."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
         "-out", certificate, "-days", "2", "-subj", "/CN=laptop"],
        check=True, capture_output=True,
    )
    binary = ssl.PEM_cert_to_DER_cert(certificate.read_text())
    return certificate, key, hashlib.sha256(binary).hexdigest()


def identities():
    """--identity: a key and a certificate of one's own"""
    need("openssl")
    with Scratch("5.2") as scratch:
        certificate, key, fingerprint = make_identity(scratch.path)
        receiver = scratch.receiver("--identity", f"{certificate}:{key}")
        check(f"p={fingerprint}" in receiver.code, f"{receiver.code} has another fingerprint than {fingerprint}")
        photo = photo_file(scratch.path / "from/a.jpg", 10_000)
        check(scratch.send(receiver.code, photo).returncode == 0, "send")
        receiver.wait_saved(1)
        check(receiver.interrupt() == 0, "receive")
        container = scratch.path / "both.p12"
        subprocess.run(
            ["openssl", "pkcs12", "-export", "-in", certificate, "-inkey", key, "-out", container, "-passout",
             "pass:s3cret"],
            check=True, capture_output=True,
        )
        for password, expected in (("s3cret", 0), ("wrong", 65)):
            result = subprocess.run(
                [PROGRAM, "receive", scratch.path / "received", "--identity", container, "--interface", "127.0.0.1",
                 "--no-web", "--for", "0.2"],
                capture_output=True, text=True, env=scratch.environment(PHOTODROP_IDENTITY_PASSWORD=password),
                timeout=30,
            )
            check(result.returncode == expected, f"{password}: {result.returncode} {result.stderr}")
            check((f"p={fingerprint}" in result.stdout) == (expected == 0), result.stdout)
        for value, expected in ((scratch.path / "nothing.pem", 66), (photo, 65)):
            result = subprocess.run(
                [PROGRAM, "receive", scratch.path / "received", "--identity", value], capture_output=True, text=True,
                env=scratch.environment(), timeout=30,
            )
            check(result.returncode == expected and str(value) in result.stderr, f"{result.returncode} {result.stderr}")


def secure_fetch(address, fingerprint, headers=None, host=None):
    """Asks the page's HTTPS server, whose certificate has to have a fingerprint; returns the status, headers and body."""
    parts = urlsplit(address)
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connection = http.client.HTTPSConnection(parts.hostname, parts.port, timeout=10, context=context)
    with contextlib.closing(connection):
        connection.connect()
        shown = hashlib.sha256(connection.sock.getpeercert(binary_form=True)).hexdigest()
        check(shown == fingerprint, f"the page has the certificate {shown}, not {fingerprint}")
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        headers = dict(headers or {})
        if host:
            headers["Host"] = host
        connection.request("GET", target, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()


def page_on_the_network():
    """--web-lan: the page by HTTPS with the session's certificate, for browsers that have its address"""
    with Scratch("14.2") as scratch:
        receiver = scratch.receiver("--web-lan")
        fingerprint = re.search(r"p=([0-9a-f]{64})", receiver.code).group(1)
        check(receiver.page.startswith("https://127.0.0.1:"), receiver.page)
        check(fingerprint in receiver.error_text(), "the certificate's fingerprint is not told")
        root = receiver.page.split("?")[0]
        check(secure_fetch(root, fingerprint)[0] == 403, "without the token")
        status, headers, _ = secure_fetch(receiver.page, fingerprint)
        check(status == 303, f"{status}")
        cookie = headers["Set-Cookie"]
        check(all(word in cookie for word in ("HttpOnly", "SameSite=Strict", "Secure")), cookie)
        cookie = {"Cookie": cookie.split(";")[0]}
        check(secure_fetch(root, fingerprint, cookie)[0] == 200, "with the cookie")
        check(secure_fetch(root, fingerprint, cookie, host="evil.example")[0] == 421, "another host's name")
        port = urlsplit(root).port
        status, _, body = fetch(f"http://127.0.0.1:{port}/", headers=cookie)
        check(status == 400 and b"TLS" in body, f"the page is served without encryption, too: {status} {body!r}")


def session_as_json():
    """/photos.json: the session for programs"""
    with Scratch("14.3") as scratch:
        receiver = scratch.receiver()
        cookie = open_page(receiver.page)
        root = receiver.page.split("?")[0]

        def session():
            status, headers, body = fetch(root + "photos.json", cookie=cookie)
            check(status == 200 and headers["Content-Type"] == "application/json", f"{status} {headers}")
            return json.loads(body)

        check(session()["photos"] == [] and session()["name"] == "Ana's laptop", f"{session()}")
        check(fetch(root + "photos.json")[0] == 403, "without the cookie")
        photos = [photo_file(scratch.path / f"from/{name}.jpg", 10_000) for name in "ab"]
        check(scratch.send(receiver.code, *photos, options=["--name", "Ana"]).returncode == 0, "send")
        receiver.wait_saved(2)
        found = session()
        check([photo["name"] for photo in found["photos"]] == ["a.jpg", "b.jpg"], f"{found}")
        check(all(photo["state"] == "saved" and photo["size"] == 10_000 for photo in found["photos"]), f"{found}")
        check([sender["name"] for sender in found["senders"]] == ["Ana"], f"{found}")
        origin = {"Origin": root.rstrip("/")}
        first = found["photos"][0]["id"]
        check(fetch(f"{root}forget/{first}", origin, method="POST", cookie=cookie)[0] == 200, "forget")
        check([photo["name"] for photo in session()["photos"]] == ["b.jpg"], f"{session()}")


class Hosts:
    """Two hosts in network namespaces, with a cable between them. Nothing that they send leaves the namespaces."""

    def __init__(self):
        need("ip")
        self.names = [f"pd{os.getpid()}{letter}" for letter in "ab"]
        made = [subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode for name in self.names]
        if made != [0, 0]:
            self.close()
            raise Skipped("network namespaces cannot be made here: it needs root")
        first, second = self.names
        self._ip("link", "add", "eth0", "netns", first, "type", "veth", "peer", "name", "eth0", "netns", second)
        for number, name in enumerate(self.names, 1):
            self._ip("-n", name, "link", "set", "lo", "up")
            self._ip("-n", name, "addr", "add", f"10.77.0.{number}/24", "dev", "eth0")
            self._ip("-n", name, "link", "set", "eth0", "up")
        for name in self.names:
            wait_until(lambda: "LOWER_UP" in self._ip("-n", name, "link", "show", "eth0"), 5, "the cable")

    def _ip(self, *arguments):
        return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout

    def on(self, number, *arguments):
        """A command that runs on one of the hosts."""
        return ["ip", "netns", "exec", self.names[number], *map(str, arguments)]

    def close(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def discovery():
    """--advertise: found by its name on another host, and sent to by its code"""
    if not os.access(LOVESEAT, os.X_OK):
        raise Skipped(f"there is no {LOVESEAT}")
    with contextlib.closing(Hosts()) as hosts, Scratch("20") as scratch:
        # The daemon of the real host is not asked.
        os.environ["DBUS_SYSTEM_BUS_ADDRESS"] = f"unix:path={scratch.path}/nothing"
        try:
            advertised(hosts, scratch)
        finally:
            del os.environ["DBUS_SYSTEM_BUS_ADDRESS"]


def advertised(hosts, scratch):
    folder = scratch.path / "received"
    receiver = JSONProcess(
        scratch,
        hosts.on(0, PROGRAM, "receive", folder, "--json", "--name", "Ana's laptop", "--advertise", "--web-lan",
                 "--min-free", "0", "--count", "1"),
    )
    scratch.running.append(receiver)
    code = receiver.wait_for(lambda event: event["event"] == "code", what="the code")
    check("u=wss://10.77.0.1:" in code["text"], f"{code}")
    browser = subprocess.Popen(
        hosts.on(1, LOVESEAT, "browse", "--type", "_photodrop._tcp", "--discovery", "multicast"),
        stdout=subprocess.PIPE, text=True, env=scratch.environment(),
    )
    try:
        line = browser.stdout.readline()
    finally:
        browser.terminate()
        browser.wait(10)
        browser.stdout.close()
    check(line.startswith("found\tAna's laptop\t"), f"found: {line!r}")
    secret = re.search(r"s=([^&]+)", code["text"]).group(1)
    check(secret not in line, "the secret is advertised")
    # The page is for the other host, too.
    script = "import ssl, sys, urllib.request as u;" \
        "c = ssl._create_unverified_context();" \
        "print(u.build_opener(u.HTTPSHandler(context=c), u.HTTPCookieProcessor()).open(sys.argv[1], timeout=10).status)"
    result = subprocess.run(
        hosts.on(1, sys.executable, "-c", script, code["page"]), capture_output=True, text=True, timeout=30
    )
    check(result.stdout.strip() == "200", f"the page: {result.stdout} {result.stderr}")
    photo = photo_file(scratch.path / "from/a.jpg", 100_000)
    result = subprocess.run(
        hosts.on(1, PROGRAM, "send", "-", photo), input=code["text"] + "\n", capture_output=True, text=True,
        env=scratch.environment(), timeout=60,
    )
    check(result.returncode == 0, result.stderr)
    check(receiver.wait() == 0, receiver.error_text())
    check((folder / "a.jpg").read_bytes() == photo.read_bytes(), "the photo differs")


def insecure_codes():
    """The code of the original PhotoDrop: refused without --allow-insecure, and sent to over CouchDB's wire with it"""
    if not os.access(LOVESEAT, os.X_OK):
        raise Skipped(f"there is no {LOVESEAT}")
    with Scratch("14.4") as scratch:
        database = scratch.path / "photos"
        environment = scratch.environment(HOME=str(scratch.path), LOVESEAT_PASSWORD="s3cret")

        def loveseat(*arguments):
            result = subprocess.run(
                [LOVESEAT, *map(str, arguments)], capture_output=True, text=True, env=environment, timeout=60
            )
            check(result.returncode == 0, result.stderr)
            return result.stdout

        loveseat("create", database)
        server = subprocess.Popen(
            [LOVESEAT, "serve", database, "--no-tls", "--couchdb", "--couchdb-port", "0", "--user", "ana",
             "--interface", "127.0.0.1", "--quiet"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
        )
        try:
            urls = [server.stdout.readline().strip() for _ in range(2)]
            url = next(url for url in urls if url.startswith("http:"))
            code = url.replace("http://", "http://ana:s3cret@").rstrip("/") + "/photos"
            photo = photo_file(scratch.path / "from/a.jpg", 300_000)
            result = scratch.send(code, photo)
            check(result.returncode == 64 and "--allow-insecure" in result.stderr, f"{result.returncode} {result.stderr}")
            result = scratch.send(code, photo, options=["--allow-insecure"])
            check(result.returncode == 0 and result.stdout.startswith("1 photo,"), f"{result.returncode} {result.stderr}")
            result = scratch.send(code.replace("s3cret", "wrong"), photo, options=["--allow-insecure"])
            check(result.returncode == 77, f"{result.returncode} {result.stderr}")
        finally:
            server.terminate()
            server.wait(20)
            server.stdout.close()
        identifiers = [line.split()[0] for line in loveseat("ls", database).splitlines()]
        photos = [identifier for identifier in identifiers if identifier.startswith("photo:")]
        check(len(photos) == 1, f"{identifiers}")
        loveseat("blob", "get", database, photos[0], "photo", scratch.path / "copy.jpg")
        check((scratch.path / "copy.jpg").read_bytes() == photo.read_bytes(), "the photo differs")
        for text in ("http://127.0.0.1:1/photos", "http://ana:s3cret@127.0.0.1:1/"):
            result = scratch.send(text, photo, options=["--allow-insecure"])
            check(result.returncode == 65, f"{text}: {result.returncode} {result.stderr}")


def code_files():
    """The code from a file, and a drawn picture"""
    with Scratch("1.1") as scratch:
        receiver = scratch.receiver()
        code = scratch.path / "code.txt"
        code.write_text(receiver.code + "\n")
        drawn = subprocess.run(
            [PROGRAM, "draw", scratch.path / "drawn", "--count", "2"], capture_output=True, text=True, check=True
        )
        check(len(drawn.stdout.splitlines()) == 2, drawn.stdout)
        for number, prefix in enumerate(("@", "file:"), 1):
            picture = scratch.path / f"drawn/picture-{number}.png"
            result = subprocess.run(
                [PROGRAM, "send", f"{prefix}{code}", picture], capture_output=True, text=True,
                env=scratch.environment(), timeout=60,
            )
            check(result.returncode == 0, f"{prefix}: {result.stderr}")
        saved = receiver.wait_saved(2)
        check(all((photo["width"], photo["height"]) == (320, 240) for photo in saved), f"{saved}")
        if shutil.which("vips"):
            size = subprocess.run(
                ["vipsheader", receiver.folder / "picture-1.png"], capture_output=True, text=True, check=True
            ).stdout
            check("320x240 uchar, 3 bands" in size, f"vips reads the drawn picture as {size}")
        again = subprocess.run([PROGRAM, "draw", scratch.path / "drawn"], capture_output=True, text=True)
        check(again.returncode == 74 and "picture-1.png" in again.stderr, f"{again.returncode} {again.stderr}")


TESTS = [
    (1.1, code_files), (5.2, identities), (14.2, page_on_the_network), (14.3, session_as_json), (14.4, insecure_codes),
    (20, discovery),
]
