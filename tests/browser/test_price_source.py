"""The price book in a real browser: a rate is chosen, its source stays, a link carries both."""

import re
from typing import Any

import pytest

from tests.browser.conftest import idle, until

pytestmark = pytest.mark.browser

LINK = "/price?study=trtllm_l4_qwen25_1p5b_draft0p5b_load&load=1&gpu_count=1&utilization=0.6"
CITED = "AWS g6.xlarge, L4, on-demand, effective 2026-01-21"


def says(page: Any, text: str) -> None:
    until(page, f"document.body.innerText.includes({text!r})")


def open_book(page: Any) -> None:
    page.get_by_text("Where does the $/GPU-h come from?").click()
    says(page, "Rate, one of 11")


def test_a_chosen_rate_prices_the_runs_and_a_link_says_whose_it_is(
    server: str, watched: Any
) -> None:
    page = watched.open(f"{server}{LINK}&priced_on=2026-12-01")
    says(page, "Nothing is priced")
    open_book(page)
    box = page.get_by_role("combobox", name=re.compile("^Rate, one of"))
    option = page.get_by_role("option", name=re.compile("g6.xlarge, L4, on-demand")).first
    for _ in range(3):  # what is drawn anew closes its list
        idle(page)
        box.click()
        box.fill("g6.xlarge, L4, on-demand")
        page.wait_for_timeout(300)
        if option.is_visible():
            break
    option.click()
    says(page, "Stale: 314 days old on 2026-12-01")
    page.get_by_role("button", name="Use $0.805 per GPU-hour").click()
    says(page, "instead of")
    says(page, CITED)
    idle(page)
    other = watched.open(page.url)
    says(other, CITED)
    says(other, "stale: 314 days old on 2026-12-01")
    field = other.get_by_role("textbox", name="Price, exact value")
    field.fill("2")
    field.press("Enter")
    until(other, f"!document.body.innerText.includes({CITED!r})")
