"""The rows of the speed table: what, its floor, the goal, and both measured in this run."""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from bench.chromium import CHROMIUM, FLAGS
from bench.coverage import coverage_rows
from bench.data_rows import crossover_row, fleet_row, import_rows, query_rows
from bench.row import Row, interleaved
from bench.server import FLOORS, ROOT, first_run, seconds_a_run, serving

APP = ROOT / "app.py"
STEPS = 100
# Milliseconds from each pointer move to the frame that shows a changed number.
WATCH = """
() => {
  const text = () => document.querySelector('[data-testid="stMetricValue"]')?.innerText
  window.moved = null
  window.took = []
  let last = text()
  const pressed = (e) => { if (e.buttons) window.moved ??= performance.now() }
  addEventListener('pointermove', pressed, true)
  const frame = () => {
    const now = text()
    if (now !== last) {
      last = now
      if (window.moved !== null) window.took.push(performance.now() - window.moved)
      window.moved = null
    }
    requestAnimationFrame(frame)
  }
  requestAnimationFrame(frame)
}
"""


def rerun() -> Row:
    """A full run of the screen page with 20 visitors at once."""
    with serving(APP) as ours, serving(FLOORS / "app_constant.py") as floor:
        mine, least = interleaved(
            lambda: seconds_a_run(ours, "screen"), lambda: seconds_a_run(floor), 3
        )
    return Row(
        "screen page rerun, 20 sessions at once",
        1000 * mine,
        "the same widgets, constant figures",
        1000 * least,
        1.5,
    )


def start() -> Row:
    """From the command to the first page drawn."""

    def seconds(app: Any, page: str) -> float:
        began = time.perf_counter()
        with serving(app) as port:
            first_run(port, page)
            return time.perf_counter() - began

    mine, least = interleaved(
        lambda: seconds(APP, "decision"), lambda: seconds(FLOORS / "bare.py", ""), 3
    )
    return Row(
        "start to first page drawn",
        1000 * mine,
        "a bare page that imports the same packages",
        1000 * least,
        1.3,
    )


def drag() -> Row:
    """100 steps of a drag, 95th percentile from pointer move to painted number."""
    from playwright.sync_api import sync_playwright

    with (
        serving(APP) as ours,
        serving(FLOORS / "one_metric.py") as floor,
        sync_playwright() as driver,
    ):
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        try:
            mine, least = interleaved(
                lambda: _p95(_drag(browser, f"http://127.0.0.1:{ours}/screen")),
                lambda: _p95(_drag(browser, f"http://127.0.0.1:{floor}/")),
                3,
            )
        finally:
            browser.close()
    return Row(
        f"{STEPS} drag steps, p95 from pointer move to painted number",
        mine,
        "the same slider driving one number",
        least,
        1.5,
    )


def _drag(browser: Any, address: str) -> list[float]:
    page = browser.new_page(viewport={"width": 1440, "height": 1200})
    try:
        page.goto(address)
        handle = page.get_by_role("slider", name="Acceptance α")
        handle.wait_for()
        page.wait_for_timeout(2500)
        page.evaluate(WATCH)
        box = handle.bounding_box()
        left, right = box["x"] + 0.25 * box["width"], box["x"] + 0.85 * box["width"]
        y = box["y"] + box["height"] / 2
        page.mouse.move(right, y)
        page.mouse.down()
        for step in range(1, STEPS + 1):
            page.mouse.move(right + (left - right) * step / STEPS, y)
            page.wait_for_timeout(60)
        page.wait_for_timeout(500)
        page.mouse.up()
        took: list[float] = page.evaluate("window.took")
    finally:
        page.close()
    if len(took) < STEPS / 10:
        raise RuntimeError(f"{address}: {len(took)} numbers were painted in {STEPS} drag steps")
    return took


def _p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


ROWS: dict[str, Callable[[], Sequence[Row]]] = {
    "rerun": lambda: [rerun()],
    "drag": lambda: [drag()],
    "start": lambda: [start()],
    "import": import_rows,
    "query": query_rows,
    "crossover": lambda: [crossover_row()],
    "fleet": lambda: [fleet_row()],
    "coverage": coverage_rows,
}
