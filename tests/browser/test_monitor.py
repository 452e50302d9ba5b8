"""The monitor in a real browser: a server watched, its acceptance falling, its end."""

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from bench.server import free_port
from lib.results.importing import import_paths
from lib.results.store import Store
from lib.theory.walltime import tau
from tests.browser.conftest import ROOT, need_chromium, serve, until
from tests.browser.live_engine import running

pytestmark = pytest.mark.browser

GAMMA, ALPHA, FALLEN = 3, 0.77, 0.2
LINK = "study=mine&load=8&usd_per_gpu_hour=3&gpu_count=1"
ADDRESS = "Server to watch"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A dashboard whose store has a study with counted acceptance: K = 3, tau 2.8 at 8."""
    need_chromium()
    place = tmp_path_factory.mktemp("monitor")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAFTWORTH_STORE", str(place / "store.duckdb"))
        store = Store.open()
        folder = ROOT / "tests" / "fixtures" / "vllm"
        files = [folder / n for n in ("off-c8.json", "eagle3-c8.json")]
        import_paths(store, files, "mine", ["off-*=off", "eagle3-*=eagle3:3"])
        store.close()
        yield from serve(ROOT / "app.py", place / "store.duckdb", place / "log.txt")


def text_of(page: Any) -> str:
    return str(page.get_by_test_id("stMain").inner_text())


def shown_tau(page: Any) -> float:
    found = re.search(r"τ ([0-9.]+), ", text_of(page))
    return float(found[1]) if found else 0.0


def wait(page: Any, true: Any, what: str, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}: {text_of(page)[:2000]}"
        page.wait_for_timeout(200)


def test_a_server_is_watched_from_its_best_to_its_end(server: str, watched: Any) -> None:
    port = free_port()
    page = watched.open(f"{server}/monitor?{LINK}")
    page.get_by_text("No server is watched yet").wait_for()
    with ExitStack() as alive:
        alive.enter_context(running(port, GAMMA, ALPHA))
        page.get_by_role("textbox", name=ADDRESS).fill(f"127.0.0.1:{port}")
        page.get_by_role("button", name="Watch", exact=True).click()
        expected = float(tau(ALPHA, GAMMA))
        wait(page, lambda: abs(shown_tau(page) / expected - 1) < 0.05, "tau near its truth")
        page.get_by_text("plan 2.80").first.wait_for()
    with running(port, GAMMA, FALLEN):
        wait(page, lambda: "Acceptance is down" in text_of(page), "the alert", 45)
        wait(page, lambda: "per day" in text_of(page), "what it costs a day")
    with running(port, 0, 0.0):
        wait(page, lambda: "no speculation metrics found" in text_of(page), "that it stopped")
    page.get_by_text("scrape failing").first.wait_for(timeout=20_000)
    until(page, "document.querySelector('.figure .scatterlayer .trace path') !== null")
    again = watched.open(f"{server}/monitor?{LINK}")
    again.get_by_text("scrape failing").first.wait_for()
    until(again, "document.querySelector('.figure .scatterlayer .trace path') !== null")


def test_a_server_off_the_list_is_refused_in_one_line(server: str, watched: Any) -> None:
    page = watched.open(f"{server}/monitor?{LINK}", color_scheme="dark")
    page.get_by_role("textbox", name=ADDRESS).fill("10.0.0.7:8000")
    page.get_by_role("button", name="Watch", exact=True).click()
    page.get_by_text("may not be asked: allowed are").wait_for()


def test_a_phone_needs_no_sideways_scrolling(server: str, watched: Any) -> None:
    page = watched.open(
        f"{server}/monitor?{LINK}",
        viewport={"width": 390, "height": 844},
        has_touch=True,
        is_mobile=True,
    )
    assert page.get_by_test_id("stMain").evaluate("m => m.scrollWidth <= m.clientWidth")
