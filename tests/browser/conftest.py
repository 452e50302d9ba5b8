"""A real server and a real Chromium; nothing may leave the loopback address."""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.chromium import CHROMIUM, FLAGS
from bench.server import free_port

ROOT = Path(__file__).resolve().parents[2]


def serve(app: Path, store: Path, log: Path) -> Iterator[str]:
    """Run an app from the project's root until the test session ends; its address."""
    address = f"http://127.0.0.1:{(port := free_port())}"
    command = [sys.executable, "-m", "streamlit", "run", str(app), "--server.port", str(port)]
    env = {**os.environ, "DRAFTWORTH_STORE": str(store), "PYTHONPATH": str(ROOT)}
    with log.open("w") as out:
        child = subprocess.Popen(command, cwd=ROOT, env=env, stdout=out, stderr=out)
        try:
            wait_until_healthy(address, child, log)
            yield address
        finally:
            child.terminate()
            child.wait(20)


def wait_until_healthy(address: str, child: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert child.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=2) as response:
                if response.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise AssertionError(f"the server did not start: {log.read_text()}")


def need_chromium() -> None:
    if not CHROMIUM.exists():
        missing = f"no Chromium at {CHROMIUM}: install it, or name it in CHROMIUM"
        if os.environ.get("DRAFTWORTH_REQUIRE_BROWSER"):
            pytest.fail(missing)
        pytest.skip(missing)


# A module long: while it lives, no other test may run an event loop.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    need_chromium()
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    need_chromium()
    place = tmp_path_factory.mktemp("server")
    yield from serve(ROOT / "app.py", place / "store.duckdb", place / "log.txt")


class Watched:
    """Opens pages and remembers what they complained about and whom they called."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser
        self.complaints: list[str] = []
        self.contexts: list[Any] = []

    def open(self, address: str, **options: Any) -> Any:
        """A page in a browser of its own, drawn and idle."""
        options.setdefault("viewport", {"width": 1440, "height": 1200})
        context = self.browser.new_context(**options)
        self.contexts.append(context)
        page = context.new_page()
        page.on("console", self.console)
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("request", self.request)
        page.goto(address)
        idle(page)
        return page

    def console(self, message: Any) -> None:
        # On a deep link Streamlit first looks for its server below the page's address.
        probe = "/_stcore/" in message.location.get("url", "") and "404" in message.text
        if message.type in ("error", "warning") and not probe:
            self.complaints.append(f"{message.type}: {message.text}")

    def request(self, request: Any) -> None:
        if not request.url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")):
            self.complaints.append(f"left the machine: {request.url}")


@pytest.fixture
def watched(chromium: Any) -> Iterator[Watched]:
    """Fails the test on any console error or warning and on any request that leaves loopback."""
    watcher = Watched(chromium)
    yield watcher
    for context in watcher.contexts:
        context.close()
    assert watcher.complaints == []


def idle(page: Any) -> None:
    """Wait until the script has run, its figures stand and nothing is pending."""
    page.wait_for_selector(
        '[data-testid="stApp"][data-test-script-state="notRunning"]'
        '[data-test-connection-state="CONNECTED"]'
    )
    until(
        page, "[...document.querySelectorAll('.figure')].every(f => f.querySelector('.main-svg'))"
    )


def until(page: Any, condition: str, seconds: float = 15) -> None:
    """Poll a condition: the wait of Playwright needs an eval that the CSP refuses."""
    deadline = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < deadline, f"waited {seconds} s for: {condition}"
        page.wait_for_timeout(30)
