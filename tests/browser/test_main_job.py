"""The main job end to end: drop two files, name the arms, read the crossover and the price."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest

from tests.browser.conftest import ROOT, idle, serve, until
from tests.browser.test_live import entry
from tests.browser.test_upload import JOB, add, drop, name_arms, opened, reads, text_of

pytestmark = pytest.mark.browser


def go(page: Any, name: str) -> None:
    page.get_by_test_id("stSidebar").get_by_role("link", name=name).click()
    until(page, f"location.pathname.endsWith('/{name.lower()}')")
    idle(page)


def type_exact(page: Any, name: str, text: str) -> None:
    field = entry(page, name)
    field.fill(text)
    field.press("Enter")


def answer(page: Any) -> str:
    return str(page.inner_text(".st-key-answer-sentence")).replace("\u2060", "")


def test_from_two_files_to_the_crossover_and_the_price(server: str, watched: Any) -> None:
    page = opened(server, watched)
    drop(page, JOB)
    name_arms(page, "server-a*", "off")
    name_arms(page, "server-b*", "eagle3:4")
    add(page, "main job")

    go(page, "Compare")
    reads(page, "crosses")
    off = {16: 1000.0, 32: 32768 / 18.2}
    assert answer(page).startswith("eagle3:4 is ahead at 16 and is behind at 32 concurrent")
    assert "stops paying between 16 and 32" in text_of(page)
    figure = page.get_by_role("figure").first
    assert "Multiplier over load" in figure.get_attribute("aria-label")

    go(page, "Price")
    reads(page, "Nothing is priced")
    type_exact(page, "Price", "2")
    type_exact(page, "GPUs", "4")
    type_exact(page, "Utilisation", "50 %")
    reads(page, "Name your operating load in the sidebar")
    page.get_by_test_id("stSidebar").get_by_role("combobox").nth(1).click()
    page.get_by_role("option", name="16", exact=True).click()
    price = 2 * 4 * 1e6 / (3600 * off[16] * 0.5)
    until(
        page,
        "document.querySelector('.st-key-answer-sentence')?.innerText"
        f".includes('instead of ${price:.2f} per 1M output tokens')",
    )
    assert "SLO unknown" in answer(page)
    link = page.url
    asked = parse_qs(urlparse(link).query)
    assert asked["usd_per_gpu_hour"] == ["2"]
    assert asked["study"] == ["main job"]
    assert asked["load"] == ["16"]

    other = watched.open(link)
    reads(other, answer(page))


def test_a_sweep_on_screen_page_and_back_keeps_the_study(server: str, watched: Any) -> None:
    page = watched.open(f"{server}/compare?study=guidellm-0.8.1-simulated&load=8")
    reads(page, "stops paying between 16 and 32, at 31.45")
    go(page, "Screen")
    go(page, "Decision")
    assert "study=guidellm-0.8.1-simulated" in page.url
    assert "load=8" in page.url
    reads(page, "Undecided")


@pytest.fixture(scope="module")
def first_start(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    place = tmp_path_factory.mktemp("first")
    yield from serve(ROOT / "app.py", place / "store.duckdb", place / "log.txt")


def test_the_first_page_is_judged_and_cited(first_start: str, watched: Any) -> None:
    page = watched.open(first_start)
    until(page, "location.pathname.endsWith('/decision')")
    reads(page, "draft_model:4 is ahead at batch 1 and is behind at 2 to 8 (crosses at 1.369")
    reads(page, "Name the operating load, type a $/GPU-h")
    reads(page, "table D")
    until(page, "document.querySelectorAll('.figure .main-svg').length > 0")


@pytest.mark.parametrize("name", ["decision", "price", "compare", "results"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_scrolls_sideways_on_a_phone(
    server: str, watched: Any, name: str, scheme: str
) -> None:
    page = watched.open(
        f"{server}/{name}?study=guidellm-0.8.1-simulated&max_num_seqs=64&load=8",
        viewport={"width": 390, "height": 844},
        color_scheme=scheme,
    )
    main = page.get_by_test_id("stMain")
    assert main.evaluate("m => m.scrollWidth <= m.clientWidth")


def test_no_label_of_a_metric_is_cut_on_a_phone(server: str, watched: Any) -> None:
    paid = "usd_per_gpu_hour=2&gpu_count=1&utilization=0.6"
    page = watched.open(
        f"{server}/price?study=guidellm-0.8.1-simulated&load=8&{paid}",
        viewport={"width": 390, "height": 844},
    )
    labels = page.locator(".st-key-metrics [data-testid=stMetricLabel]")
    labels.nth(5).wait_for()
    cut = "l => [l, ...l.querySelectorAll('*')].some(e => e.scrollWidth > e.clientWidth + 1)"
    for label in labels.all():
        assert not label.evaluate(cut), label.inner_text()
