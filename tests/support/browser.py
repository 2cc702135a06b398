"""A real Chromium, spoken to over a pipe (https://chromedevtools.github.io/devtools-protocol)."""

from __future__ import annotations

import base64
import fcntl
import itertools
import json
import os
import shutil
import signal
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",  # refused to root otherwise
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)


class Browser:
    """A running browser: commands go down one pipe, answers and events come up another."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands = commands
        self._answers = answers
        self._numbers = itertools.count(1)
        self._unread = b""
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Send a command and return its result; what happens meanwhile is added to `events`."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        unsent = memoryview(json.dumps(message).encode() + b"\0")
        while unsent:
            unsent = unsent[os.write(self._commands, unsent) :]
        while (answer := self._next()).get("id") != number:
            self.events.append(answer)
        assert "error" not in answer, answer["error"]
        result: dict[str, Any] = answer["result"]
        return result

    def close(self) -> None:
        """End the browser and its processes, and wait for that."""
        self.call("Browser.close")
        while os.read(self._answers, 1 << 20):
            pass

    def wait(self, method: str, session: str) -> dict[str, Any]:
        """Return the first event of that name, one that came already included."""
        seen = 0
        while True:
            for event in self.events[seen:]:
                if (event.get("method"), event.get("sessionId")) == (method, session):
                    return event
            seen = len(self.events)
            self.events.append(self._next())

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            part = os.read(self._answers, 1 << 20)
            assert part, "the browser ended"
            self._unread += part
        text, _, self._unread = self._unread.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    @contextmanager
    def page(
        self, address: str, *, width: int = 1280, dark: bool = False, media: str = ""
    ) -> Iterator[Page]:
        """Open a page in a tab of its own, which ends with the block."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        try:
            for domain in ("Page", "Network", "Log", "Runtime"):
                page.call(f"{domain}.enable")
            page.call(
                "Emulation.setDeviceMetricsOverride",
                width=width,
                height=900,
                deviceScaleFactor=1,
                mobile=width < 600,
            )
            scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
            page.call("Emulation.setEmulatedMedia", media=media, features=[scheme])
            page.call("Page.navigate", url=address)
            self.wait("Page.loadEventFired", session)
            yield page
        finally:
            self.call("Target.closeTarget", targetId=target)


@dataclass
class Page:
    """A page in the browser."""

    browser: Browser
    session: str
    _seen: dict[str, str] = field(default_factory=dict)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command to the page."""
        return self.browser.call(method, self.session, **params)

    def evaluate(self, script: str) -> Any:
        """Return the value of a JavaScript expression; a promise is waited for."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def screenshot(self) -> bytes:
        """Return the whole page as PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        area = {"clip": clip, "captureBeyondViewport": True}
        answer = self.call("Page.captureScreenshot", **area)
        return base64.b64decode(answer["data"])

    def _mine(self, method: str) -> Iterator[dict[str, Any]]:
        for event in self.browser.events:
            if event.get("sessionId") == self.session and event["method"] == method:
                yield event["params"]

    def requests(self) -> list[str]:
        """Return the address of everything that the page asked for, itself included."""
        self.evaluate("0")
        return [each["request"]["url"] for each in self._mine("Network.requestWillBeSent")]

    def complaints(self) -> list[str]:
        """Return what the page wrote to the console, errors included."""
        self.evaluate("0")
        logged = [each["entry"]["text"] for each in self._mine("Log.entryAdded")]
        said = [json.dumps(each["args"]) for each in self._mine("Runtime.consoleAPICalled")]
        thrown = [str(each) for each in self._mine("Runtime.exceptionThrown")]
        return logged + said + thrown


def find() -> str:
    """Return the path of a Chromium, which ``CHROMIUM`` may name."""
    found = next(filter(None, map(shutil.which, (os.environ.get("CHROMIUM") or "-", *NAMES))), None)
    assert found, f"no browser: install one of {NAMES}, or leave out the tests marked `browser`"
    return found


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Start a browser whose profile is in an empty folder; it ends with the block."""
    down, up = os.pipe(), os.pipe()
    # As the browser wants them: it reads commands from 3, and writes answers to 4.
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (down[0], up[1])]
    moves = [
        (os.POSIX_SPAWN_DUP2, high[0], 3),
        (os.POSIX_SPAWN_DUP2, high[1], 4),
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(profile / "log"), os.O_WRONLY | os.O_CREAT, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    arguments = [find(), *FLAGS, f"--user-data-dir={profile}", "about:blank"]
    child = os.posix_spawn(arguments[0], arguments, os.environ, file_actions=moves, setpgroup=0)
    for fd in (down[0], up[1], *high):
        os.close(fd)
    try:
        started = Browser(down[1], up[0])
        yield started
        started.close()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(down[1])
        os.close(up[0])
