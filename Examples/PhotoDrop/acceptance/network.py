"""Proxies, and requests without a browser."""

import http.client
import socket
import ssl
import struct
import subprocess
import threading
from urllib.parse import urlsplit


class Server:
    """Serves each connection to a free port of this computer on a thread of its own, by `_serve`."""

    def __init__(self):
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def close(self):
        self._listener.close()


def reset(end):
    """Ends a connection as a network does that is gone."""
    try:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


class CuttingProxy(Server):
    """Passes bytes on, and cuts each connection after so many bytes from the client."""

    def __init__(self, port, cut_after=None):
        self.target = port
        self.cut_after = cut_after
        self.sent = 0
        self.connections = 0
        super().__init__()

    def _serve(self, client):
        try:
            server = socket.create_connection(("127.0.0.1", self.target))
        except OSError:
            client.close()
            return
        with self._lock:
            self.connections += 1
        threading.Thread(target=self._copy, args=(server, client, None), daemon=True).start()
        self._copy(client, server, self.cut_after)

    def _copy(self, source, sink, limit):
        passed = 0
        try:
            while limit is None or passed < limit:
                data = source.recv(65536)
                if not data:
                    break
                sink.sendall(data)
                passed += len(data)
                if limit is not None:
                    with self._lock:
                        self.sent += len(data)
        except OSError:
            pass
        for end in (source, sink):
            reset(end)
            end.close()


class SocksProxy(Server):
    """A SOCKS 5 proxy for a browser, whose connections can be cut."""

    def __init__(self):
        self._sockets = set()
        super().__init__()

    def _serve(self, client):
        try:
            stream = client.makefile("rb", 0)
            _, count = stream.read(2)
            stream.read(count)
            client.sendall(b"\5\0")
            _, _, _, kind = stream.read(4)
            host = socket.inet_ntoa(stream.read(4)) if kind == 1 else stream.read(stream.read(1)[0]).decode()
            port = struct.unpack(">H", stream.read(2))[0]
            # Nothing but this computer.
            if host not in ("127.0.0.1", "localhost"):
                raise OSError("not allowed")
            server = socket.create_connection((host, port))
            client.sendall(b"\5\0\0\1\0\0\0\0\0\0")
        except (OSError, ValueError, TypeError):
            client.close()
            return
        with self._lock:
            self._sockets |= {client, server}
        threading.Thread(target=self._copy, args=(server, client), daemon=True).start()
        self._copy(client, server)

    def _copy(self, source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        """Cuts the connections that are open."""
        with self._lock:
            open_now, self._sockets = self._sockets, set()
        for end in open_now:
            reset(end)
        return len(open_now) // 2

    def close(self):
        super().close()
        self.cut()


class Impostor(Server):
    """A TLS server with another certificate, which notes what it is sent."""

    def __init__(self, folder):
        key, certificate = folder / "key.pem", folder / "certificate.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
             key, "-out", certificate, "-days", "2", "-subj", "/CN=PhotoDrop"],
            check=True, capture_output=True,
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.received = b""
        self.handshakes = 0
        self._context = context
        super().__init__()

    def _serve(self, client):
        with self._lock:
            self.handshakes += 1
        try:
            with self._context.wrap_socket(client, server_side=True) as secure:
                secure.settimeout(2)
                while data := secure.recv(65536):
                    with self._lock:
                        self.received += data
        except OSError:
            pass


def refuses(port):
    try:
        socket.create_connection(("127.0.0.1", port), 2).close()
        return False
    except ConnectionRefusedError:
        return True


def fetch(address, headers=None, method="GET", data=None, cookie=None):
    """Asks the page's server without a browser; returns the status, the headers and the body."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    headers = dict(headers or {})
    if cookie:
        headers["Cookie"] = cookie
    connection.request(method, target, body=data, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, answer.headers, body
