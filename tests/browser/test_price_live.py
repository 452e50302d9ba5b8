"""The price page under a real pointer: the price follows the drag, and so does the open tab."""

from typing import Any

import pytest

from tests.browser.conftest import until
from tests.browser.test_live import FIRST_METRIC, drag, entry

pytestmark = pytest.mark.browser

LINK = "/price?study=guidellm-0.8.1-simulated&load=8&usd_per_gpu_hour=2&gpu_count=1&utilization=0.6"
BRIDGE = "document.querySelectorAll('.figure .barlayer .trace .point').length > 6"
RECORD = f"""
() => {{
  window.seen = []
  const frame = () => {{
    const now = {FIRST_METRIC}
    if (window.seen.at(-1) !== now) window.seen.push(now)
    requestAnimationFrame(frame)
  }}
  requestAnimationFrame(frame)
}}
"""


def test_the_price_moves_while_the_pointer_is_down(server: str, watched: Any) -> None:
    page = watched.open(f"{server}{LINK}")
    until(page, BRIDGE)
    page.evaluate(RECORD)
    drag(page, "Price", 0.3, steps=40, release=False)
    seen, address = page.evaluate("window.seen"), page.url
    page.mouse.up()
    assert len(seen) > 4
    assert "usd_per_gpu_hour=2&" in address
    until(page, "!location.search.includes('usd_per_gpu_hour=2&')")
    usd = float(entry(page, "Price").input_value())
    until(page, f"{FIRST_METRIC} === '${1.5702304 * usd / 2:.2f}'")


def test_a_tab_follows_the_sliders_and_stays_open(server: str, watched: Any) -> None:
    page = watched.open(f"{server}{LINK}&api_input_usd=0.1&api_output_usd=5")
    until(page, BRIDGE)
    page.get_by_role("tab", name="Against an API").click()
    until(page, "document.body.innerText.includes('The API bills $5.14')")
    field = entry(page, "API output")
    field.fill("3")
    field.press("Enter")
    until(page, "document.body.innerText.includes('The API bills $3.14')")
    until(page, "location.search.includes('api_output_usd=3')")
    price = entry(page, "Price")
    price.fill("4")
    price.press("Enter")
    until(page, f"{FIRST_METRIC} === '$3.14'")
    assert page.get_by_role("tab", name="Against an API").get_attribute("aria-selected") == "true"
