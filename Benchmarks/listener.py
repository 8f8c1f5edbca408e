"""A `loveseat serve` of a measurement, on a free port: a fixed one may be taken by a connection that ended a minute ago."""
import os
import signal
import subprocess
import sys


class Listener:
    """Serves `database` without TLS until `stop()`; `url` is where, or with `couchdb` the URL for CouchDB's wire."""

    def __init__(self, binary, database, environment=None, couchdb=False):
        command = [binary, "serve", database, "--port", "0", "--interface", "127.0.0.1", "--no-tls"]
        if couchdb:
            command.append("--couchdb")
        output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        self.process = subprocess.Popen(command, env=environment, text=True, **output)
        said = []
        for line in self.process.stdout:
            said.append(line)
            # Older builds print words around the URL.
            found = [word for word in line.split() if word.startswith("http://" if couchdb else "ws://")]
            if found:
                self.url = found[0].rstrip("/") + f"/{database}" if couchdb else found[0]
                return
        sys.exit(f"{' '.join(command)} ended: {''.join(said)}")

    def stop(self):
        """Ends it, and returns what it used."""
        self.process.send_signal(signal.SIGTERM)
        self.process.stdout.close()
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        return usage
