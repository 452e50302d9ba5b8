"""Two saved scenarios side by side, and the link of one in another browser."""

import re
from typing import Any

import pytest

from tests.browser.conftest import idle, until
from tests.browser.test_live import drag, entry, shows
from tests.browser.test_main_job import answer, type_exact
from tests.browser.test_upload import reads

pytestmark = pytest.mark.browser

STUDY = "guidellm-0.8.1-simulated"
PRICED = "usd_per_gpu_hour=2&gpu_count=1&utilization=0.6&tokens_per_day=10000000"


def save(page: Any, name: str, note: str, version: int = 1) -> None:
    page.get_by_role("textbox", name="Name").fill(name)
    page.get_by_role("textbox", name="Note").fill(note)
    page.get_by_role("textbox", name="By").fill("ann")
    page.get_by_role("textbox", name="By").press("Tab")
    page.get_by_role("button", name="Save scenario").click()
    reads(page, f"Saved: {name}, version {version}.")
    idle(page)


def choose(page: Any, label: str, option: str) -> None:
    idle(page)
    box = page.get_by_role("combobox", name=label, exact=True)
    row = page.get_by_role("option", name=option, exact=True)
    for _ in range(3):  # what is drawn anew closes its list
        box.click()
        page.wait_for_timeout(300)
        if row.is_visible():
            break
    row.click()
    idle(page)


def prices(page: Any) -> list[str]:
    return re.findall(r"\$[\d.,]+", answer(page))


def follows(page: Any, with_a: str) -> None:
    """The comparison comes to say what the page does, whatever value a drag ends at."""
    for _ in range(60):
        idle(page)
        said = f"With speculation, per 1M output tokens: {with_a} → {prices(page)[0]}"
        if said in page.get_by_test_id("stMain").inner_text().replace("\u2060", ""):
            return
        page.wait_for_timeout(500)
    raise AssertionError(f"the comparison does not read {said}")


def test_two_scenarios_are_compared_and_a_link_opens_one(server: str, watched: Any) -> None:
    page = watched.open(f"{server}/price?study={STUDY}&load=8&{PRICED}")
    reads(page, "per 1M output tokens at 8 concurrent")
    page.get_by_text("Scenarios: save, open, compare").click()
    reads(page, "Not saved yet")
    save(page, "june quote", "as of the June quote")
    at_two = prices(page)
    type_exact(page, "Price", "2.5")
    until(page, "location.search.includes('usd_per_gpu_hour=2.5')")
    reads(page, "Not saved yet")
    save(page, "july quote", "after the call")
    at_two_and_a_half = prices(page)
    assert at_two != at_two_and_a_half

    page.get_by_role("tab", name="Compare two").click()
    choose(page, "A", "june quote, version 1")
    choose(page, "B", "july quote, version 1")
    with_a, with_b = at_two[0], at_two_and_a_half[0]
    reads(page, f"With speculation, per 1M output tokens: {with_a} → {with_b}")
    reads(page, "Saving a month, hours scale with tokens")
    choose(page, "B", "as it stands now")
    drag(page, "Price", 0.2)
    until(page, "!location.search.includes('usd_per_gpu_hour=2.5')")
    follows(page, with_a)

    page.get_by_role("tab", name="Open").click()
    choose(page, "Scenario", "june quote, version 1")
    link = page.locator(".st-key-scenarios code").first.inner_text()
    assert link.startswith(f"{server}/price?")
    other = watched.open(link)
    reads(other, "per 1M output tokens at 8 concurrent")
    assert prices(other) == at_two
    shows(other, "Price", "2")

    choose(page, "Scenario", "july quote, version 1")
    page.get_by_role("button", name="Open it here").click()
    reads(page, "Opened: july quote, version 1.")
    shows(page, "Price", "2.5")
    until(page, "location.search.includes('usd_per_gpu_hour=2.5')")
    assert prices(page) == at_two_and_a_half
    assert entry(page, "GPUs").input_value() == "1"


def test_a_scenario_brings_back_what_was_chosen_elsewhere(server: str, watched: Any) -> None:
    page = watched.open(f"{server}/price?study={STUDY}&load=16&{PRICED}&slo_tpot_ms=40")
    reads(page, "16 concurrent")
    page.get_by_text("Scenarios: save, open, compare").click()
    save(page, "at sixteen", "")
    page.get_by_test_id("stSidebar").get_by_role("combobox", name="Operating load").click()
    page.get_by_role("option", name="8", exact=True).click()
    reads(page, "at 8 concurrent")
    until(page, "new URLSearchParams(location.search).get('load') === '8'")
    page.get_by_role("tab", name="Open").click()
    choose(page, "Scenario", "at sixteen, version 1")
    page.get_by_role("button", name="Open it here").click()
    reads(page, "Opened: at sixteen, version 1.")
    reads(page, "16 concurrent")
    until(page, "new URLSearchParams(location.search).get('load') === '16'")
    page.reload()
    reads(page, "16 concurrent")
