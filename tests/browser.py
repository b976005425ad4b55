"""A headless Chromium, driven over its DevTools protocol: the machine's own browser and aiohttp, no further package."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
START_S = 40

# Text whose contrast with what is painted below it is less than 4.5 to 1; a canvas makes four numbers of any colour.
PALE = """(() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = (colour) => colour.slice(0, 3).map((part) => {
    const value = part / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }).reduce((sum, part, place) => sum + part * [0.2126, 0.7152, 0.0722][place], 0);
  const over = (top, below) => [...top.slice(0, 3).map((part, i) => (part * top[3] + below[i] * (255 - top[3])) / 255), 255];
  const ground = (item) => {
    if (!item) return [255, 255, 255, 255];
    const own = rgb(getComputedStyle(item).backgroundColor);
    return own[3] === 255 ? own : over(own, ground(item.parentElement));
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const item = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !item.checkVisibility()) continue;
    if (item.closest('script, option, button:disabled')) continue;
    const style = getComputedStyle(item);
    const [a, b] = [rgb(item.closest('svg') ? style.fill : style.color), ground(item)].map(light);
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) found.push([walker.currentNode.textContent.trim().slice(0, 40), item.className, contrast]);
  }
  return found;
})()"""
# Elements whose text is cut, but for what scrolls, is read out only or is no text.
CLIPPED = """[...document.querySelectorAll('body *')].filter((item) => item.checkVisibility() && item.clientWidth
  && !item.closest('svg, select, .hidden, .skip') && ['hidden', 'clip'].includes(getComputedStyle(item).overflowX)
  && item.scrollWidth > item.clientWidth + 1).map((item) => item.outerHTML.slice(0, 120))"""


@dataclass
class Page:
    """A page in the browser."""

    socket: aiohttp.ClientWebSocketResponse
    loop: asyncio.AbstractEventLoop
    problems: list[str] = field(default_factory=list)
    """Errors and warnings of the console, and exceptions that nothing caught."""
    requests: list[str] = field(default_factory=list)
    """Addresses that were asked for."""
    _n_sent: int = 0
    _is_loaded: bool = False

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        return self.loop.run_until_complete(asyncio.wait_for(self._send(method, params), START_S))

    def open(self, url: str) -> None:
        """Go to an address and wait until it has loaded."""
        self._is_loaded = False
        self.send("Page.navigate", url=url)
        deadline = time.monotonic() + START_S
        while not self._is_loaded and time.monotonic() < deadline:
            self.evaluate("0")
        assert self._is_loaded, f"{url} did not load"

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression; a promise is awaited."""
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True, userGesture=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def press(self, key: str) -> None:
        """Press and release a key."""
        codes = {"Enter": 13, "Tab": 9}
        for kind in ("keyDown", "keyUp"):
            text = "\r" if key == "Enter" and kind == "keyDown" else ""
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, text=text, windowsVirtualKeyCode=codes[key])

    def resize(self, width: int, height: int, *, scheme: str = "light") -> None:
        """Set the size of the window and whether the user likes light or dark pages."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Write what is seen, or the whole page, as PNG."""
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    async def _send(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._n_sent += 1
        number = self._n_sent
        await self.socket.send_json({"id": number, "method": method, "params": params})
        while True:
            message = json.loads((await self.socket.receive()).data)
            if message.get("id") == number:
                assert "error" not in message, message["error"]
                return dict(message["result"])
            self._note(message)

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                self.problems.append(str(params["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if params["type"] in {"error", "warning", "assert"}:
                self.problems.append(str(params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] in {"error", "warning"}:
                self.problems.append(params["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Page.loadEventFired":
                self._is_loaded = True


def choose(page: Page, control: str, value: str) -> None:
    """Set the value of a control, as a person does."""
    page.evaluate(
        f"(() => {{ const item = document.querySelector('{control}'); item.value = {value!r};"
        "item.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )


def axe_violations(page: Page) -> list[str]:
    """Return rule and element of each violation that axe-core finds; the test is skipped where `make axe` did not name it."""
    script = os.environ.get("DIALEVAL_AXE")
    if not script:
        pytest.skip("DIALEVAL_AXE is not set: the page is not checked by axe-core. Run `make axe`")
    page.evaluate(f"{Path(script).read_text(encoding='utf-8')}; 0")
    # Without preloading, which asks for style sheets once more.
    found = page.evaluate("axe.run({preload: false, resultTypes: ['violations']}).then((result) => result.violations)")
    return [f"{rule['id']}: {element['html'][:120]}" for rule in found for element in rule["nodes"]]


def find_browser() -> str:
    """Return the browser's path; the test is skipped where there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(
            f"no {NAMES[0]} on this machine: the page is not opened. Install it, for example `apt-get install chromium`"
        )
    return found


@contextmanager
def browser_page() -> Iterator[Page]:
    """Start a browser with a profile of its own, yield its first page, and stop it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [find_browser(), "--headless=new", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"]
        # Chromium has no sandbox for root, as which continuous integration runs.
        command += ["--no-sandbox"] if os.geteuid() == 0 else []
        command += ["--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        loop = asyncio.new_event_loop()
        try:
            port = _port(Path(profile) / "DevToolsActivePort", process)
            session = loop.run_until_complete(_session())
            page = Page(loop.run_until_complete(_connect(session, port)), loop)
            for domain in ("Page", "Runtime", "Log", "Network"):
                page.send(f"{domain}.enable")
            yield page
            loop.run_until_complete(session.close())
        finally:
            loop.close()
            process.kill()
            process.wait()


def _port(file: Path, process: subprocess.Popen[bytes]) -> int:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        if file.exists() and (lines := file.read_text().split()):
            return int(lines[0])
        time.sleep(0.05)
    pytest.skip("the browser on this machine does not start: the page is not opened")


async def _session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=START_S))


async def _connect(session: aiohttp.ClientSession, port: int) -> aiohttp.ClientWebSocketResponse:
    async with session.get(f"http://127.0.0.1:{port}/json/list") as response:
        pages = await response.json()
    address = next(page["webSocketDebuggerUrl"] for page in pages if page["type"] == "page")
    return await session.ws_connect(address, max_msg_size=2**27)
