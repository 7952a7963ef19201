"""A headless Chromium, driven over the WebDriver protocol with the standard library alone."""

import base64
import contextlib
import json
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


def missing():
    """What is not installed, or an empty string."""
    return ", ".join(name for name in ("chromium", "chromedriver") if shutil.which(name) is None)


class Browser:
    """One page in one window; errors of the page are kept in its log."""

    def __init__(self, port, session):
        self._root = f"http://127.0.0.1:{port}/session/{session}"

    def _ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._root + path, data, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def open(self, url):
        self._ask("POST", "/url", {"url": "about:blank"})
        self._ask("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        """Run a function body in the page and return its value."""
        return self._ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0]).textContent", selector)

    def resize(self, width, height=900):
        # The window of a headless Chromium is no narrower than 500 px; device metrics are.
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._chrome("Emulation.setDeviceMetricsOverride", metrics)

    def prefer(self, scheme):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._chrome("Emulation.setEmulatedMedia", {"features": features})

    def _chrome(self, command, parameters):
        return self._ask("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def press(self, *keys):
        """Press and release each key, wherever the focus is."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._ask("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def errors(self):
        return [entry["message"] for entry in self._ask("POST", "/se/log", {"type": "browser"})]

    def picture(self, path, *, whole=True):
        """Write a PNG of the page, as high as it is."""
        size = self.run("return [innerWidth, document.documentElement.scrollHeight]")
        if whole:
            self.resize(*size)
        Path(path).write_bytes(base64.b64decode(self._ask("GET", "/screenshot")))


@contextlib.contextmanager
def browser():
    """Start a driver and a browser with a profile of its own; end both."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        driver = subprocess.Popen(
            ["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            options = {"args": [*FLAGS, f"--user-data-dir={profile}"], "binary": shutil.which("chromium")}
            wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
            body = json.dumps({"capabilities": {"alwaysMatch": wanted}}).encode()
            session = _when_ready(f"http://127.0.0.1:{port}/session", body)["value"]["sessionId"]
            yield Browser(port, session)
            end = urllib.request.Request(f"http://127.0.0.1:{port}/session/{session}", method="DELETE")
            urllib.request.urlopen(end, timeout=30).close()
        finally:
            driver.terminate()
            driver.wait(timeout=30)


def _when_ready(url, body, seconds=60):
    """Answer of a server that is still starting."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=seconds) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from error
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
