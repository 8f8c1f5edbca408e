"""Chromium, over WebDriver."""

import base64
import json
import re
import subprocess
import urllib.error
import urllib.request

from harness import Failure, check, need, wait_until


class Browser:
    """Chromium without a window, over WebDriver."""

    def __init__(self, width=1200, height=900, dark=False, proxy=None, accepts_certificates=False):
        need("chromium", "chromedriver")
        self._driver = subprocess.Popen(
            ["chromedriver", "--port=0", "--allowed-ips=127.0.0.1"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True,
        )
        port = None
        for line in self._driver.stdout:
            if match := re.search(r"successfully on port (\d+)", line):
                port = int(match.group(1))
                break
        check(port, "chromedriver has not started")
        self._root = f"http://127.0.0.1:{port}"
        arguments = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", f"--window-size={width},{height}", "--hide-scrollbars",
        ]
        if proxy:
            arguments += [f"--proxy-server=socks5://127.0.0.1:{proxy.port}", "--proxy-bypass-list=<-loopback>"]
        capabilities = {
            "browserName": "chrome", "acceptInsecureCerts": accepts_certificates, "goog:chromeOptions": {"args": arguments},
        }
        answer = self._request("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        self._session = f"/session/{answer['sessionId']}"
        self.resize(width, height)
        if dark:
            self._request(
                "POST", f"{self._session}/goog/cdp/execute",
                {"cmd": "Emulation.setEmulatedMedia",
                 "params": {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}},
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._request("DELETE", self._session)
        finally:
            self._driver.terminate()
            self._driver.wait(10)

    def _request(self, method, path, body=None):
        request = urllib.request.Request(
            self._root + path, method=method, data=json.dumps(body).encode() if body is not None else None,
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise Failure(f"WebDriver {path}: {error.read().decode(errors='replace')[:500]}")

    def resize(self, width, height):
        """Sets the size of the page itself, narrower than any window if need be."""
        self._request(
            "POST", f"{self._session}/goog/cdp/execute",
            {"cmd": "Emulation.setDeviceMetricsOverride",
             "params": {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}},
        )

    def open(self, address):
        self._request("POST", f"{self._session}/url", {"url": address})

    def run(self, script, *arguments):
        return self._request(
            "POST", f"{self._session}/execute/sync", {"script": script, "args": list(arguments)}
        )

    def run_async(self, script, *arguments):
        return self._request(
            "POST", f"{self._session}/execute/async", {"script": script, "args": list(arguments)}
        )

    def choose(self, selector, paths):
        """Chooses files in a file chooser."""
        found = self._request("POST", f"{self._session}/element", {"using": "css selector", "value": selector})
        text = "\n".join(map(str, paths))
        self._request("POST", f"{self._session}/element/{next(iter(found.values()))}/value", {"text": text})

    def screenshot(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self._request("GET", f"{self._session}/screenshot")))
        return path

    def wait(self, script, seconds=20, what="the page"):
        return wait_until(lambda: self.run(script), seconds, what)
