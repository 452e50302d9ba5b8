"""The probe page in a real browser: a measurement on the CPU to its end, c carried to screen."""

import os
import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from tests.browser.conftest import ROOT, idle, need_chromium, serve, until
from tests.browser.test_live import entry

pytestmark = pytest.mark.browser

RUN_S = 240  # a few seconds where nothing else runs


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server without probes, whose measurements no other process of this machine can hold up."""
    need_chromium()
    place = tmp_path_factory.mktemp("probe")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(place))
        yield from serve(ROOT / "app.py", place / "store.duckdb", place / "log.txt")


def need_torch() -> None:
    if find_spec("torch") is None:
        if os.environ.get("DRAFTWORTH_REQUIRE_TORCH") == "1":
            pytest.fail("torch is not installed: make .venv/.probe")
        pytest.skip("torch is not installed: pip install -r requirements-probe.txt")


def fill(page: Any, label: str, value: int) -> None:
    field = page.get_by_role("tabpanel").get_by_role("spinbutton", name=label)
    field.fill(str(value))
    field.press("Enter")
    idle(page)


def test_a_measurement_runs_to_its_end_and_c_reaches_screen(server: str, watched: Any) -> None:
    need_torch()
    page = watched.open(f"{server}/probe")
    page.get_by_text("No probe yet").wait_for()
    page.get_by_role("tab", name="CPU check").click()
    fill(page, "Context", 16)
    fill(page, "γ", 1)
    page.get_by_role("button", name="Check the method").click()
    page.get_by_text("tiny-draft for tiny-target on the CPU").wait_for()
    again = watched.open(f"{server}/probe")  # the measurement is the server's, not the session's
    again.get_by_role("button", name="Cancel").wait_for()
    page.get_by_text("Method check on a CPU: a draft step costs").wait_for(timeout=1000 * RUN_S)
    until(page, "document.querySelectorAll('.figure .main-svg').length >= 3")
    assert page.get_by_role("button", name="Cancel").count() == 0
    page.get_by_text("CPU: method check only, does not transfer").first.wait_for()
    page.get_by_role("button", name="Use in screen").click()
    page.get_by_text("from CPU method check, does not transfer: probe").wait_for()
    until(page, "location.pathname === '/screen' && location.search.includes('c=')")
    c = re.search(r"[?&]c=([0-9.]+)", page.url)
    assert c is not None
    assert entry(page, "Draft cost c").input_value() == c[1]
    page.get_by_role("button", name=f"Use c = {float(c[1]):.3g}").wait_for()
    idle(page)


def test_a_phone_needs_no_sideways_scrolling(server: str, watched: Any) -> None:
    page = watched.open(
        f"{server}/probe",
        viewport={"width": 390, "height": 844},
        has_touch=True,
        is_mobile=True,
        color_scheme="dark",
    )
    assert page.get_by_test_id("stMain").evaluate("m => m.scrollWidth <= m.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
