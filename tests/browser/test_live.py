"""The screen page under a real pointer: live while dragging, one state, one link."""

import time
from typing import Any

import pytest

from tests.browser.conftest import until

pytestmark = pytest.mark.browser

FIRST_METRIC = "document.querySelector('[data-testid=\"stMetricValue\"]')?.innerText"
THREE_FIGURES = "document.querySelectorAll('.figure .scatterlayer .trace path').length > 8"
RECORD = """
() => {
  const seen = window.seen = { frames: 0, bare: 0, speedups: [] }
  const frame = () => {
    seen.frames += 1
    const figures = [...document.querySelectorAll('.figure')]
    const drawn = (f) => f.querySelector('.scatterlayer .trace')?.getBoundingClientRect().height > 0
    if (figures.length < 3 || !figures.every(drawn)) seen.bare += 1
    const now = document.querySelector('[data-testid="stMetricValue"]')?.innerText
    if (seen.speedups.at(-1) !== now) seen.speedups.push(now)
    requestAnimationFrame(frame)
  }
  requestAnimationFrame(frame)
}
"""


def screen(server: str, watched: Any, query: str = "", **options: Any) -> Any:
    page = watched.open(f"{server}/screen{query}", **options)
    until(page, THREE_FIGURES)
    return page


def slider(page: Any, name: str) -> Any:
    return page.get_by_role("slider", name=name, exact=True)


def entry(page: Any, name: str) -> Any:
    return page.get_by_role("textbox", name=f"{name}, exact value")


def shows(page: Any, name: str, value: str, seconds: float = 10) -> None:
    """Wait until the exact entry holds this text."""
    field = entry(page, name)
    deadline = time.monotonic() + seconds
    while (found := field.input_value()) != value:
        assert time.monotonic() < deadline, f"{name} is {found}, not {value}"
        page.wait_for_timeout(30)


def thumb(page: Any, name: str) -> tuple[float, float, float]:
    """Where the thumb is: x, y and the width of its way, in pixels."""
    handle = slider(page, name)
    handle.scroll_into_view_if_needed()
    box = handle.bounding_box()
    low, high, value = handle.evaluate("r => [+r.min, +r.max, +r.value]")
    way = box["width"] - 18
    share = (value - low) / (high - low)
    return box["x"] + 9 + way * share, box["y"] + box["height"] / 2, way


def drag(page: Any, name: str, share: float, steps: int = 10, *, release: bool = True) -> None:
    """Press the thumb and move it by a share of its way, in many small moves."""
    x, y, way = thumb(page, name)
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(1, steps + 1):
        page.mouse.move(x + way * share * step / steps, y)
        page.wait_for_timeout(40)
    if release:
        page.mouse.up()


def test_numbers_and_figures_move_while_the_pointer_is_down(server: str, watched: Any) -> None:
    page = screen(server, watched)
    page.evaluate(RECORD)
    drag(page, "Acceptance α", -0.4, steps=50, release=False)
    seen = page.evaluate("window.seen")
    address = page.url
    page.mouse.up()
    assert len(seen["speedups"]) > 5
    assert seen["bare"] < 0.03 * seen["frames"]
    assert "alpha" not in address


def test_the_value_dragged_to_is_the_value_drawn(server: str, watched: Any) -> None:
    page = screen(server, watched)
    drag(page, "Acceptance α", 0.2)
    typed = entry(page, "Acceptance α").input_value()
    until(page, "document.querySelector('.st-key-answer-sentence').innerText.includes('S = ')")
    alpha = float(typed)
    expected = (1 - alpha**8) / (1 - alpha) / (7 * 0.02 + 1)
    until(page, f"{FIRST_METRIC} === '{expected:.2f}×'")


def test_a_link_reproduces_the_page(server: str, watched: Any) -> None:
    page = screen(server, watched)
    drag(page, "Acceptance α", -0.25)
    drag(page, "Draft length γ", -0.3)
    drag(page, "Draft cost c", 0.2)
    until(page, "location.search.includes('c=')")
    until(page, f"{FIRST_METRIC} !== '3.16×'")
    page.wait_for_timeout(300)
    names = ("Acceptance α", "Draft length γ", "Draft cost c")
    values = [entry(page, n).input_value() for n in names]
    speedup = page.evaluate(FIRST_METRIC)
    assert values != ["0.75", "7", "0.02"]

    page.reload()
    until(page, f"{FIRST_METRIC} === '{speedup}'")
    for name, value in zip(names, values, strict=True):
        shows(page, name, value)
    other = watched.open(page.url)
    until(other, f"{FIRST_METRIC} === '{speedup}'")
    for name, value in zip(names, values, strict=True):
        shows(other, name, value)


def test_values_survive_another_page(server: str, watched: Any) -> None:
    page = screen(server, watched)
    links = page.get_by_test_id("stSidebar").get_by_role("link")
    if links.count() < 2:
        pytest.skip("the menu has one page")
    entry(page, "Acceptance α").fill("0.6")
    entry(page, "Acceptance α").press("Enter")
    until(page, "location.search.includes('alpha=0.6')")
    speedup = f"{(1 - 0.6**8) / 0.4 / 1.14:.2f}×"
    until(page, f"{FIRST_METRIC} === '{speedup}'")
    other = next(i for i in range(links.count()) if "Screen" not in links.nth(i).inner_text())
    links.nth(other).click()
    until(page, "!location.pathname.endsWith('/screen')")
    until(page, "location.search.includes('alpha=0.6')")
    page.get_by_test_id("stSidebar").get_by_role("link", name="Screen").click()
    until(page, f"{FIRST_METRIC} === '{speedup}'")
    assert "alpha=0.6" in page.url
    shows(page, "Acceptance α", "0.6")


def test_back_leaves_the_page_rather_than_undo_a_drag(server: str, watched: Any) -> None:
    page = screen(server, watched)
    before = page.evaluate("history.length")
    drag(page, "Acceptance α", -0.2)
    until(page, "location.search.includes('alpha')")
    page.wait_for_timeout(500)
    assert page.evaluate("history.length") == before


def test_keyboard(server: str, watched: Any) -> None:
    page = screen(server, watched)
    gamma = slider(page, "Draft length γ")
    gamma.focus()
    gamma.press("ArrowRight")
    until(page, f"{FIRST_METRIC} === '3.19×'")
    assert gamma.get_attribute("aria-valuetext") == "8 tokens"
    assert "gamma=8" in page.url
    gamma.press("Home")
    until(page, f"{FIRST_METRIC} === '1.72×'")
    gamma.press("PageUp")
    gamma.press("End")
    until(page, "location.search.includes('gamma=16')")
    shows(page, "Draft length γ", "16")


def test_exact_entry(server: str, watched: Any) -> None:
    page = screen(server, watched)
    alpha = entry(page, "Acceptance α")
    alpha.fill("0.8125")
    alpha.press("Enter")
    until(page, f"{FIRST_METRIC} === '3.79×'")
    assert "alpha=0.8125" in page.url
    assert slider(page, "Acceptance α").input_value() == "0.8125"
    alpha.fill("80")
    alpha.press("Tab")
    page.get_by_text("80 %? Type 0.8").wait_for()
    assert alpha.get_attribute("aria-invalid") == "true"
    assert page.evaluate(FIRST_METRIC) == "3.79×"
    alpha.fill("80 %")
    alpha.press("Enter")
    until(page, f"{FIRST_METRIC} === '3.65×'")
    gamma = entry(page, "Draft length γ")
    gamma.fill("0")
    gamma.press("Enter")
    page.get_by_text("no drafting is S = 1").wait_for()
    assert gamma.get_attribute("aria-invalid") == "true"


def test_an_empty_input_fills_and_clears(server: str, watched: Any) -> None:
    page = screen(server, watched)
    last = "[...document.querySelectorAll('[data-testid=\"stMetricValue\"]')].at(-1)?.innerText"
    assert page.evaluate(last) == "–"
    shows(page, "Plain step time", "")
    slider(page, "Plain step time").click()
    until(page, "location.search.includes('step_ms=')")
    until(page, f"{last}?.endsWith('ms')")
    page.get_by_role("button", name="Clear Plain step time").click()
    until(page, f"{last} === '–'")
    assert "step_ms" not in page.url


def test_decode_time_follows_the_pointer(server: str, watched: Any) -> None:
    page = screen(server, watched, "?alpha=0.7&gamma=4&c=0.1&step_ms=30&answer_tokens=1000")
    p95 = "document.querySelector('table tbody tr td:nth-child(4)')?.innerText"
    until(page, f"{p95} === '15.9 s'")
    drag(page, "Answer length N", -0.2, release=False)
    until(page, f"{p95} !== '15.9 s'")
    assert "answer_tokens=1000" in page.url
    page.mouse.up()
    until(page, "!location.search.includes('answer_tokens=1000')")
    entry(page, "Answer length N").fill("50")
    entry(page, "Answer length N").press("Enter")
    until(page, f"{p95} === '966 ms'")
    page.get_by_text("18.5 rounds on average").wait_for()


def test_a_preset_moves_the_sliders(server: str, watched: Any) -> None:
    page = screen(server, watched)
    page.get_by_role("combobox").last.click()
    page.get_by_role("option", name="T5-large, English to German, T = 1").click()
    until(page, f"{FIRST_METRIC} === '1.93×'")
    shows(page, "Acceptance α", "0.71")
    shows(page, "Draft length γ", "3")
    page.get_by_text("Measured for these inputs: 1.4×").wait_for()
    page.get_by_role("button", name="how").click()
    page.get_by_test_id("stPopoverBody").get_by_text("2211.17192").first.wait_for()


def test_a_cold_deep_link_has_menu_and_page(server: str, watched: Any) -> None:
    page = screen(server, watched, "?alpha=0.9&c=nonsense&gamma=99")
    assert page.get_by_role("heading", name="Is this drafter worth a load test?").is_visible()
    assert page.get_by_test_id("stSidebar").get_by_role("link", name="Screen").is_visible()
    assert page.evaluate(FIRST_METRIC) == f"{(1 - 0.9**8) / 0.1 / 1.14:.2f}×"
    assert page.get_by_text("Ignored in this link: c = nonsense").is_visible()
    assert page.get_by_text("Ignored in this link: gamma = 99").is_visible()
    assert "alpha=0.9" in page.url


def test_what_a_link_asks_of_the_sidebar_and_does_not_get_is_told(
    server: str, watched: Any
) -> None:
    page = watched.open(f"{server}/compare?max_num_seqs=-4&load=x&slo_percentile=p42")
    for said in (
        "load = x: one of 1, 2",
        "slo_percentile = p42: one of p50, p90, p95, p99",
        "max_num_seqs = -4: a whole number, 1 to 65536",
    ):
        assert page.get_by_text(f"Ignored in this link: {said}").is_visible()
    page = watched.open(f"{server}/compare?max_num_seqs=64&load=8&slo_percentile=p99")
    assert page.get_by_text("Ignored in this link").count() == 0


def test_the_root_forwards_with_its_parameters(server: str, watched: Any) -> None:
    page = watched.open(f"{server}/?alpha=0.9")
    until(page, "location.pathname !== '/'")
    until(page, "location.search.includes('alpha=0.9')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_sideways_scrolling(server: str, watched: Any, scheme: str) -> None:
    page = screen(
        server,
        watched,
        viewport={"width": 390, "height": 844},
        has_touch=True,
        is_mobile=True,
        color_scheme=scheme,
    )
    main = page.get_by_test_id("stMain")
    assert main.evaluate("m => m.scrollWidth <= m.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    widths = page.evaluate(
        "[...document.querySelectorAll('.figure .main-svg')].map(f => f.clientWidth)"
    )
    assert max(widths) <= 390


def test_touch_sets_a_slider(server: str, watched: Any) -> None:
    page = screen(
        server, watched, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    handle = slider(page, "Acceptance α")
    handle.scroll_into_view_if_needed()
    box = handle.bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] * 0.3, box["y"] + box["height"] / 2)
    until(page, "location.search.includes('alpha=0.2')")


def test_figure_data_downloads_as_csv(server: str, watched: Any) -> None:
    page = screen(server, watched)
    with page.expect_download() as started:
        page.get_by_role("button", name="CSV").first.click()
    lines = open(started.value.path()).read().splitlines()  # noqa: SIM115
    assert lines[0] == "gamma,speedup,speedup_low,speedup_high"
    assert len(lines) == 17


def test_a_price_is_read_with_its_unit(server: str, watched: Any) -> None:
    page = watched.open(f"{server}/price")
    price = entry(page, "Price")
    for typed in ("$2/GPU-h", "2 per GPU-hour", "$2 /h"):
        price.fill(typed)
        price.press("Enter")
        shows(page, "Price", "2")
        until(page, "location.search.includes('usd_per_gpu_hour=2')")
        assert price.get_attribute("aria-invalid") == "false"
        page.get_by_role("button", name="Clear Price").click()
        shows(page, "Price", "")
