#!/usr/bin/env python3
"""How fast CouchDB's wire is: against the BLIP wire, against raw SQLite, and in bytes.

    python3 Benchmarks/couchdb.py .build/release/loveseat

Rates are those of the clock on the wall; what is compared takes turns. A figure is the median of the rounds.
"""
import argparse
import http.client
import json
import os
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cost import documents, fresh, run, write  # noqa: E402
from listener import Listener  # noqa: E402


def peak(listener):
    """The highest resident memory of the listener so far, in MB."""
    with open(f"/proc/{listener.process.pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024


def replicated(binary, direction, couchdb):
    """Documents a second of a push or pull of the database `source`."""
    active, passive = ("source", "empty") if direction == "push" else ("empty", "source")
    fresh(binary, "empty")
    listener = Listener(binary, passive, couchdb=couchdb)
    begin = time.monotonic()
    run(binary, direction, active, listener.url)
    elapsed = time.monotonic() - begin
    listener.stop()
    return elapsed


class Client:
    """One connection to a listener's database."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self.path = parts.path.rstrip("/")
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port)

    def request(self, method, path, body=None, kind="application/json"):
        self.connection.request(method, self.path + path, body, {"Content-Type": kind})
        return self.connection.getresponse()

    def read(self, response):
        """Reads an answer in pieces, and returns its length."""
        if response.status >= 300:
            sys.exit(f"{response.status} {response.read(1000)!r}")
        length = 0
        while piece := response.read(1 << 20):
            length += len(piece)
        return length


def bulk(binary, batches):
    """Documents a second by `_bulk_docs`, and by SQLite on the same rows."""
    fresh(binary, "bulk")
    listener = Listener(binary, "bulk", couchdb=True)
    client = Client(listener.url)
    bodies = [json.dumps({"docs": [{"_id": entry.pop("id"), **entry} for entry in batch]}) for batch in batches]
    begin = time.monotonic()
    for body in bodies:
        client.read(client.request("POST", "/_bulk_docs", body))
    elapsed = time.monotonic() - begin
    listener.stop()
    if os.path.exists("raw.sqlite"):
        os.remove("raw.sqlite")
    raw = sqlite3.connect("raw.sqlite", isolation_level=None)
    raw.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL")
    raw.execute("CREATE TABLE documents (id TEXT PRIMARY KEY, revision TEXT, sequence INTEGER UNIQUE, body TEXT)")
    rows = []
    for body in bodies:
        rows.append([(entry["_id"], "1-" + "a" * 32, json.dumps(entry)) for entry in json.loads(body)["docs"]])
    sequence = 0
    begin = time.monotonic()
    for batch in rows:
        raw.execute("BEGIN IMMEDIATE")
        raw.executemany(
            "INSERT INTO documents VALUES (?, ?, ?, ?)",
            [(name, revision, sequence + n, body) for n, (name, revision, body) in enumerate(batch)],
        )
        raw.execute("COMMIT")
        sequence += len(batch)
    return elapsed, time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--changes", type=int, default=1_000_000, help="rows of the feed")
    parser.add_argument("--attachment", type=int, default=1_024, help="MB")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    binary = os.path.abspath(options.binary)
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    try:
        measure(binary, options)
    finally:
        shutil.rmtree(folder)


def measure(binary, options):
    write("documents.jsonl", documents(options.documents))
    fresh(binary, "source")
    run(binary, "import", "source", "documents.jsonl", "--id-field", "id")
    for direction in ("push", "pull"):
        times = {False: [], True: []}
        for _ in range(options.rounds):
            for couchdb in (False, True):
                times[couchdb].append(replicated(binary, direction, couchdb))
        blip, http_ = (options.documents / statistics.median(times[key]) for key in (False, True))
        print(f"{direction}: {http_:,.0f} documents/s, {http_ / blip:.2f} of BLIP's {blip:,.0f} (floor 0.50)", flush=True)

    found = []
    for _ in range(options.rounds):
        entries = list(documents(20_000))
        found.append(bulk(binary, [entries[start : start + 1_000] for start in range(0, 20_000, 1_000)]))
    ours, raw = (20_000 / statistics.median(column) for column in zip(*found))
    print(f"_bulk_docs: {ours:,.0f} documents/s, {ours / raw:.2f} of SQLite's {raw:,.0f} (floor 0.30)", flush=True)

    write("documents.jsonl", ({"id": f"doc{number:07}", "n": number} for number in range(options.changes)))
    fresh(binary, "feed")
    run(binary, "import", "feed", "documents.jsonl", "--id-field", "id")
    listener = Listener(binary, "feed", couchdb=True)
    client = Client(listener.url)
    client.read(client.request("GET", "/_changes?limit=1000"))
    before = peak(listener)
    begin = time.monotonic()
    length = client.read(client.request("GET", "/_changes"))
    rate = length / (time.monotonic() - begin) / 1e6
    print(f"_changes, {options.changes:,} rows: {rate:.0f} MB/s (floor 50), memory +{peak(listener) - before:.0f} MB", flush=True)
    listener.stop()

    fresh(binary, "attached")
    listener = Listener(binary, "attached", couchdb=True)
    client = Client(listener.url)
    with open("content", "wb") as file:
        for _ in range(options.attachment):
            file.write(os.urandom(1 << 20))
    before = peak(listener)
    for method in ("PUT", "GET"):
        with open("content", "rb") as file:
            begin = time.monotonic()
            body = file if method == "PUT" else None
            client.read(client.request(method, "/doc/content", body, "application/octet-stream"))
            rate = options.attachment * (1 << 20) / (time.monotonic() - begin) / 1e6
        print(f"{method} of an attachment: {rate:.0f} MB/s (floor 300), memory +{peak(listener) - before:.0f} MB", flush=True)
    listener.stop()


if __name__ == "__main__":
    main()
