"""A headless Chromium, driven over the WebDriver protocol with the standard library alone."""

import base64
import contextlib
import json
import re
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
#: Keys as the WebDriver protocol writes them.
ENTER, LEFT, RIGHT, TAB = "\ue007", "\ue012", "\ue014", "\ue004"
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

    def medium(self, name):
        """Lay the page out for a medium, such as print; for the screen again with an empty name."""
        self._chrome("Emulation.setEmulatedMedia", {"media": name})

    def prefer(self, scheme):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._chrome("Emulation.setEmulatedMedia", {"features": features})

    def _chrome(self, command, parameters):
        return self._ask("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def press(self, *keys):
        """Press and release each key, wherever the focus is."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._ask("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def colour(self, selector="body", what="backgroundColor"):
        """Computed colour of the first element that matches, as #rrggbb."""
        style = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
        red, green, blue = map(int, re.findall(r"\d+", self.run(style, selector, what))[:3])
        return f"#{red:02x}{green:02x}{blue:02x}"

    def cut_labels(self):
        """Labels of figures that are shown and reach beyond their figure."""
        return self.run(
            """
            const cut = [];
            for (const svg of document.querySelectorAll('figure svg')) {
              const room = svg.getBoundingClientRect();
              if (!room.width) continue;
              for (const text of svg.querySelectorAll('text')) {
                const box = text.getBoundingClientRect();
                if (box.left < room.left - 1 || box.right > room.right + 1 || box.top < room.top - 1
                    || box.bottom > room.bottom + 1) cut.push(text.textContent);
              }
            }
            return cut;
            """
        )

    def workable(self):
        """Which of all that can be worked is shown, and which of it Tab reaches from the first link."""
        every = "Array.from(document.querySelectorAll('a, button, summary, input, .box'))"
        folded = "details:not([open]) > :not(summary), details:not([open]) > :not(summary) *, [hidden] *"
        shown = self.run(f"return {every}.flatMap((e, i) => e.matches(arguments[0]) ? [] : [i])", folded)
        self.run("document.querySelector('.skip').focus()")
        reached = set()
        for _ in shown:
            reached.add(self.run(f"return {every}.indexOf(document.activeElement)"))
            self.press(TAB)
        return shown, sorted(reached)

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
