"""Starts a listener, runs each client against it, and compares what fails with what is expected to."""
import glob
import os
import signal
import socket
import subprocess
import sys
import tempfile

HOME = sys.argv[1]
CLIENTS = ["couchdb", "couchdb-tools", "pycouchdb", "cloudant", "ibmcloudant", "aiocouch", "couchdb3", "pouchdb"]
FIXTURES = "Tests/Fixtures/couchdb/clients"
USER, PASSWORD = "admin", "secret"


def expected():
    """The checks that fail, by client, with the reasons."""
    checks = {}
    for line in open("scripts/couchdb-clients/expected.txt"):
        if line.strip() and not line.startswith("#"):
            client, check, reason = (part.strip() for part in line.split("|"))
            checks.setdefault(client, {})[check] = reason
    return checks


def serve(folder):
    """Starts `loveseat serve`; returns the process and the URL of CouchDB's wire."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    password = os.path.join(folder, "password")
    with open(password, "w") as file:
        file.write(PASSWORD + "\n")
    # `swift build --build-tests` names the program after its target.
    names = (".build/release/loveseat", ".build/release/LoveseatCLI")
    program = next((name for name in names if os.access(name, os.X_OK)), None)
    if program is None:
        sys.exit("there is no loveseat in .build/release: run `swift build -c release`")
    database = os.path.join(folder, "clients")
    subprocess.run([program, "create", database], check=True, stdout=subprocess.DEVNULL)
    process = subprocess.Popen(
        [program, "serve", database, "--interface", "127.0.0.1", "--no-tls", "--quiet", "--user", USER]
        + ["--password-file", password, "--couchdb", "--couchdb-port", str(port), "--couchdb-create"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    # It prints its URLs when it listens.
    if not process.stdout.readline():
        sys.exit("the listener does not start")
    return process, f"http://{USER}:{PASSWORD}@127.0.0.1:{port}"


def run(client, url):
    """The results of a client: pairs of a check and whether it passed."""
    if client == "pouchdb":
        bundle = glob.glob(f"{HOME}/Python-PouchDB-*/pouchdb/bundle.js")[0]
        command = ["node", f"{FIXTURES}/pouch223-run.js", bundle, url]
    else:
        command = [sys.executable, "-W", "ignore", f"{FIXTURES}/clients.py", url, client]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        return [("(it ends)", False, "still running after 300 s")]
    results, counts = [], {}
    for line in done.stdout.splitlines():
        if line[:5] not in ("ok   ", "FAIL ") and not line.startswith(("ABORT", "TIMEOUT")):
            continue
        passed = line.startswith("ok   ")
        name = line[5:].split(" [")[0].strip()
        if line.startswith("FAIL aborted") or line.startswith(("ABORT", "TIMEOUT")):
            name = "aborted"
        # A client may make the same check twice.
        counts[name] = counts.get(name, 0) + 1
        results.append((name, passed, line))
    if not results:
        results.append(("(it runs)", False, done.stdout[-500:]))
    return results


def main():
    known = expected()
    passed = failed = lacking = 0
    with tempfile.TemporaryDirectory() as folder:
        server, url = serve(folder)
        try:
            for client in sys.argv[2:] or CLIENTS:
                mine = known.get(client, {})
                healed = set(mine)
                for name, is_ok, line in run(client, url):
                    reason = next((mine[check] for check in mine if name.startswith(check)), None)
                    if is_ok:
                        passed += 1
                        continue
                    healed -= {check for check in mine if name.startswith(check)}
                    if reason is None:
                        failed += 1
                        print(f"{client}: {line}")
                    else:
                        lacking += 1
                for check in sorted(healed):
                    failed += 1
                    print(f"{client}: {check} passes: remove it from expected.txt")
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(30)
    print(f"{passed} passed, {failed} failed, {lacking} that need what is not served")
    sys.exit(failed > 0)


main()
