"""The acceptance page under a real browser: live cost, typed counters, alpha carried to screen."""

from typing import Any

import pytest

from tests.browser.conftest import idle, until
from tests.browser.test_live import drag, shows

pytestmark = pytest.mark.browser

BEST = "[...document.querySelectorAll('[data-testid=\"stMetricValue\"]')][4]?.innerText"


def opened(server: str, watched: Any, query: str = "", **options: Any) -> Any:
    page = watched.open(f"{server}/acceptance{query}", **options)
    until(page, "document.querySelectorAll('.figure .scatterlayer .trace path').length > 4")
    return page


def test_best_gamma_follows_the_cost_while_dragging(server: str, watched: Any) -> None:
    page = opened(server, watched)
    before = page.evaluate(BEST)
    drag(page, "Draft cost c", 0.3, release=False)
    until(page, f"{BEST} !== '{before}'")
    assert "&c=" not in page.url
    page.mouse.up()
    until(page, "location.search.includes('&c=')")


def test_typed_counters_reach_screen(server: str, watched: Any) -> None:
    page = watched.open(f"{server}/acceptance?acceptance_way=Counters")
    page.get_by_role("textbox", name="Accepted by position").fill("477 319 195")
    page.get_by_role("textbox", name="Accepted by position").press("Enter")
    page.get_by_text("rounds: type the drafts").wait_for()
    page.get_by_role("spinbutton", name="Drafts (rounds)").fill("713")
    page.get_by_role("spinbutton", name="Drafts (rounds)").press("Enter")
    page.get_by_text("α = 0.657 (0.632–0.680)").wait_for()
    page.get_by_role("button", name="Use this α in screen").click()
    page.get_by_role("link", name="Screen now has α = 0.657").click()
    page.get_by_text("from acceptance page: counters as typed").wait_for()
    shows(page, "Draft length γ", "3")
    idle(page)


def test_a_phone_needs_no_sideways_scrolling(server: str, watched: Any) -> None:
    page = opened(
        server,
        watched,
        viewport={"width": 390, "height": 844},
        has_touch=True,
        is_mobile=True,
        color_scheme="dark",
    )
    assert page.get_by_test_id("stMain").evaluate("m => m.scrollWidth <= m.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
