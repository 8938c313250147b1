"""A real browser, driven over a pipe by the DevTools protocol: headless Chromium, where there is one.

https://chromedevtools.github.io/devtools-protocol: messages are JSON, each ends with a zero byte; the browser reads
them from its descriptor 3 and writes to 4.
"""

import base64
import fcntl
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

import needed_tools
import pytest

PATIENCE = 60.0
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
LAUNCH = """
import os, sys
os.dup2(int(sys.argv[1]), 3), os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """A running browser. Mutable: counts its messages, and holds back those that nobody has asked for yet."""

    def __init__(self, command, profile):
        read_orders, self._orders = os.pipe()
        self._answers, write_answers = os.pipe()
        given = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (read_orders, write_answers)]  # not 3 or 4 themselves
        launcher = [sys.executable, "-c", LAUNCH, *map(str, given), command, *OPTIONS, f"--user-data-dir={profile}"]
        self._process = subprocess.Popen(
            launcher, pass_fds=given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        for end in (read_orders, write_answers, *given):
            os.close(end)
        self._unread, self._number, self.events = b"", 0, []

    def call(self, method, session=None, **params):
        """Send a command, and give its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        os.write(self._orders, json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        while (answer := self.next_message()).get("id") != self._number:
            self.events.append(answer)
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    def next_message(self):
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._answers], [], [], max(0.0, deadline - time.monotonic()))
            received = os.read(self._answers, 1 << 20) if ready else b""
            assert received, "the browser has ended, or does not answer"
            self._unread += received
        message, _, self._unread = self._unread.partition(b"\0")
        return json.loads(message)

    def open(self, path, width=1600, height=1000, fragment=""):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Tab(self, target, session).load(path, width, height, fragment)

    def close(self):
        os.close(self._orders)  # at the end of its orders it ends
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, 9)
            self._process.wait()
        os.close(self._answers)


class Tab:
    """A page in the browser, all of whose events are kept."""

    def __init__(self, browser, target, session):
        self._browser, self._target, self._session = browser, target, session

    def call(self, method, **params):
        return self._browser.call(method, self._session, **params)

    def load(self, path, width, height, fragment):
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)
        self.call("Page.navigate", url=Path(path).as_uri() + fragment)
        self.wait("globalThis.explorer !== undefined && document.readyState === 'complete'")
        return self

    def resize(self, width, height):
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, condition):
        deadline = time.monotonic() + PATIENCE
        while not self.evaluate(condition):
            assert time.monotonic() < deadline, f"never true: {condition}"
            time.sleep(0.02)

    def settle(self):
        """Let the page draw, and with it mark what the pointer is on."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def press(self, *keys):
        for key in keys:
            text = {"text": key} if len(key) == 1 else {}
            self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.settle()

    def point(self, script):
        """Move the pointer onto the element that a script gives; its place."""
        box = self.evaluate(
            f"(() => {{ const b = ({script}).getBoundingClientRect(); return [b.x, b.y, b.height] }})()"
        )
        place = {"x": box[0] + 5, "y": box[1] + box[2] / 2}
        self.call("Input.dispatchMouseEvent", type="mouseMoved", **place)
        self.settle()
        return place

    def click(self, script):
        place = self.point(script)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)
        self.settle()

    def dark(self, wanted=True):
        features = [{"name": "prefers-color-scheme", "value": "dark" if wanted else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def picture(self, path):
        Path(path).write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def printed(self):
        """The page as PDF."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def complaints(self):
        """What the page wrote to the console, and errors."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [event for event in self._own_events() if event["method"] in kinds]

    def requests(self):
        """The addresses that the page has asked for."""
        sent = [e["params"]["request"]["url"] for e in self._own_events() if e["method"] == "Network.requestWillBeSent"]
        return [address.partition("#")[0] for address in sent]

    def _own_events(self):
        self.evaluate("0")
        return [event for event in self._browser.events if event.get("sessionId") == self._session]

    def close(self):
        self._browser.call("Target.closeTarget", targetId=self._target)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    browser = Browser(needed_tools.program(*NAMES, package="chromium"), tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


@pytest.fixture
def open_page(browser):
    """Opens pages, each in a tab of its own."""
    tabs = []

    def open_tab(path, **how):
        tabs.append(browser.open(path, **how))
        return tabs[-1]

    yield open_tab
    for tab in tabs:
        tab.close()
