#!/usr/bin/env python3
"""A server, and a device that is `loveseat`, on the loopback interface. WORKORDERS and LOVESEAT name the programs."""
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

SECONDS = 60
TOKEN = "a-token-for-acceptance"


class Server:
    def __init__(self, folder, sync_port=0):
        environment = dict(
            os.environ, WORKORDERS_TOKEN=TOKEN, WORKORDERS_FOLDER=folder, WORKORDERS_PORT="0",
            WORKORDERS_SYNC_PORT=str(sync_port), WORKORDERS_INTERFACE="127.0.0.1",
        )
        self.process = subprocess.Popen([os.environ["WORKORDERS"]], env=environment, stderr=subprocess.PIPE, text=True)
        self.log = ""
        while not (found := re.search(r"the API is at (http://127\.0\.0\.1:\d+)", self.log)):
            line = self.process.stderr.readline()
            assert line, f"the server has ended:\n{self.log}"
            self.log += line
        self.url = found.group(1)
        self.sync_port = int(re.search(r"devices connect to wss://127\.0\.0\.1:(\d+)/", self.log).group(1))

    def ask(self, method, path, body=None, token=TOKEN):
        """The status, and the JSON of the answer, or its text."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Authorization": f"Bearer {token}"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                status, text = answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read().decode()
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        _, log = self.process.communicate(timeout=SECONDS)
        assert self.process.returncode == 0, log


class Device:
    def __init__(self, work, name, made):
        self.database, self.url = f"{work}/{name}", made["urls"][0]
        self.options = ["--user", name, "--pin", made["fingerprint"], "--collections", "field.orders"]
        self.environment = dict(os.environ, LOVESEAT_PASSWORD=made["password"], LOVESEAT_IDENTITIES=f"{work}/keys")
        self.run("create", self.database, "--quiet")

    def run(self, *arguments, code=0):
        command = [os.environ["LOVESEAT"], *arguments]
        result = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=SECONDS)
        assert result.returncode == code, result
        return result.stdout

    def sync(self, code=0):
        self.run("sync", self.database, self.url, "--quiet", *self.options, code=code)

    def read(self, order):
        return json.loads(self.run("get", self.database, "-c", "field.orders", order))

    def write(self, order, content):
        self.run("put", self.database, "--quiet", "-c", "field.orders", order, json.dumps(content))


def main():
    with tempfile.TemporaryDirectory() as work:
        server = Server(f"{work}/server")
        assert server.ask("GET", "/health") == (200, "ok\n")
        assert server.ask("GET", "/api/orders", token="wrong")[0] == 401
        status, order = server.ask("POST", "/api/orders", {"title": "Paint", "site": "Pump 7", "assignee": "van-7"})
        assert status == 201, order
        status, refused = server.ask("POST", "/api/orders", {"title": "", "site": "Pump 7"})
        assert (status, refused["error"]["code"], list(refused["error"]["fields"])) == (422, "invalid", ["title"])
        print("the API creates orders, and explains what is wrong")

        status, made = server.ask("POST", "/api/devices", {"name": "van-7"})
        assert status == 201, made
        van = Device(work, "van-7", made)
        van.sync()
        done = dict(van.read(order["id"]), status="done", notes="two coats")
        # While the server is down, a device works on. The server has the same port and key when it is back.
        server.stop()
        van.write(order["id"], done)
        server = Server(f"{work}/server", sync_port=server.sync_port)
        van.sync()
        end = time.monotonic() + SECONDS
        while "confirmed" not in (found := server.ask("GET", f"/api/orders/{order['id']}")[1]):
            assert time.monotonic() < end, found
            time.sleep(0.05)
        assert found["notes"] == "two coats", found
        van.sync()
        assert "confirmed" in van.read(order["id"])
        print("what a device has done while the server was down is confirmed")

        assert server.ask("POST", "/api/maintenance") == (200, "0 tombstones removed\n")
        lines = {"workorders_orders 1.0", "workorders_orders_confirmed_total 1.0", "workorders_documents_received_total 1.0",
                 "workorders_devices_connected 0.0", "workorders_maintenance_runs_total 1.0"}
        end = time.monotonic() + SECONDS
        # A connection is counted a moment after it has ended.
        while not lines <= set((metrics := server.ask("GET", "/metrics")[1]).split("\n")):
            assert time.monotonic() < end, metrics
            time.sleep(0.05)
        print("metrics count")

        assert server.ask("DELETE", "/api/devices/van-7")[0] == 204
        van.sync(code=77)
        server.stop()
        second = subprocess.run([os.environ["WORKORDERS"]], env={"PATH": os.environ["PATH"]}, capture_output=True, text=True)
        assert second.returncode == 64 and "WORKORDERS_TOKEN" in second.stderr, second
        environment = {"PATH": os.environ["PATH"], "WORKORDERS_TOKEN": "t" * 32, "WORKORDERS_FOLDER": f"{work}/other"}
        helped = subprocess.run([os.environ["WORKORDERS"], "--help"], env=environment, capture_output=True, text=True, timeout=SECONDS)
        assert helped.returncode == 64 and "WORKORDERS_PORT" in helped.stderr, helped
        print("WorkOrders: all acceptance tests have passed")


main()
