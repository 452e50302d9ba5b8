"""The fleet on the real page: draw a day's demand, read the daily costs, open the link anew."""

from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import idle
from tests.browser.test_upload import HEADER_PX, ROW_PX, reads

pytestmark = pytest.mark.browser

STUDY = "guidellm-0.8.1-simulated"
PAID = "usd_per_gpu_hour=3&gpu_count=1&k0_tax=0"
EDITOR = "Demand hour by hour, and the load that a replica is run at."
DEMAND_X, LOAD_X = 110, 190


def type_number(page: Any, x: int, row: int, text: str) -> None:
    """Type into a cell of numbers, `x` pixels from the left edge of the hours."""
    canvas = page.get_by_role("region", name=EDITOR).locator("canvas").first
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.dblclick(box["x"] + x, box["y"] + HEADER_PX + ROW_PX * (row + 0.5))
    page.locator("#portal input").fill(text)
    page.keyboard.press("Enter")
    page.locator("#portal input").wait_for(state="detached")
    page.wait_for_timeout(300)
    idle(page)


def test_draw_a_day_and_read_the_three_daily_costs(server: str, watched: Any) -> None:
    page = watched.open(f"{server}/fleet?study={STUDY}&demand=own+hours&{PAID}")
    reads(page, "type the demand of each hour, or load a file")
    type_number(page, DEMAND_X, 0, "52000")
    # One hour of 52,000 tok/s at 2,851.8 a replica, and one replica in the other 23.
    reads(page, "42 GPU-hours a day either way")
    type_number(page, LOAD_X, 0, "8")
    # At 8 in flight off makes 589.6 tok/s a replica and K = 4 1,104: 89 and 48 replicas, 23 more
    # in the other hours.
    reads(page, "$213.00 a day with sim:4 instead of $336.00")
    reads(page, "Against no speculation the schedule saves $123.00 a day")
    reads(page, "Against sim:4 all day the schedule saves $0 a day")
    address = page.url
    assert "demand_hours=52000" in address
    again = watched.open(address)
    reads(again, "$213.00 a day with sim:4 instead of $336.00")


def test_a_file_of_hours_and_one_with_a_bad_row(server: str, watched: Any, tmp_path: Path) -> None:
    page = watched.open(f"{server}/fleet?study={STUDY}&{PAID}")
    bad, good = tmp_path / "bad.csv", tmp_path / "good.csv"
    bad.write_text("hour,output tok/s\n0,5200\n1,plenty\n")
    good.write_text("hour,output tok/s\n" + "".join(f"{h},28518\n" for h in range(24)))
    page.get_by_role("button", name="From a file").click()
    page.locator("input[type=file]").set_input_files(str(bad))
    reads(page, "bad.csv, row 3: 'plenty' is no demand")
    page.locator("input[type=file]").set_input_files(str(good))
    reads(page, "plenty", gone=True)
    idle(page)
    reads(page, "No money here")


def test_the_slider_of_the_demand_moves_the_bill(server: str, watched: Any) -> None:
    page = watched.open(f"{server}/fleet?study={STUDY}&demand_tps=20000&{PAID}")
    reads(page, "180 GPU-hours")
    handle = page.get_by_role("slider", name="Demand")
    handle.focus()
    handle.press("End")
    idle(page)
    reads(page, "180 GPU-hours", gone=True)
