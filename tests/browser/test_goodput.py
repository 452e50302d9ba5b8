"""Compare on goodput under a real pointer: the SLO's sliders move the crossover."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import saved_requests
from tests.browser.conftest import ROOT, idle, need_chromium, serve, until
from tests.browser.test_live import drag, entry, shows
from tests.browser.test_main_job import answer, type_exact

pytestmark = pytest.mark.browser

TPOT = "TPOT at most"
SENTENCE = "document.querySelector('.st-key-answer-sentence')?.innerText"
# The sweep of the drag: from 60 ms, where all requests count, to about 17 ms.
SHARE = -0.137
RECORD = """
() => {
  const seen = window.seen = { sentences: [], bare: 0, frames: 0 }
  const frame = () => {
    seen.frames += 1
    const now = document.querySelector('.st-key-answer-sentence')?.innerText
    if (now && seen.sentences.at(-1) !== now) seen.sentences.push(now)
    if (!document.querySelector('.figure .scatterlayer .trace')) seen.bare += 1
    requestAnimationFrame(frame)
  }
  requestAnimationFrame(frame)
}
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server whose store holds a sweep that keeps every request."""
    need_chromium()
    place = tmp_path_factory.mktemp("goodput")
    folder, store = place / "results", place / "store.duckdb"
    folder.mkdir()
    for name, data in saved_requests.files().items():
        (folder / name).write_bytes(data)
    _import(folder, store)
    yield from serve(ROOT / "app.py", store, place / "log.txt")


def _import(folder: Path, store: Path) -> None:
    command = [sys.executable, "-m", "lib", "import", str(folder), "--study", "served"]
    subprocess.run(
        [*command, *saved_requests.RULES],
        cwd=ROOT,
        env={**os.environ, "DRAFTWORTH_STORE": str(store)},
        check=True,
        capture_output=True,
    )


def compare(served: str, watched: Any, limits: str = "", **options: Any) -> Any:
    page = watched.open(f"{served}/compare?study=served&metric=Goodput{limits}", **options)
    until(page, f"{SENTENCE}?.includes('crosses at')")
    until(page, "document.querySelectorAll('.figure .scatterlayer .trace').length > 3")
    return page


def crossing(text: str) -> float:
    found = re.search(r"crosses at ([\d.]+)", text)
    assert found, text
    return float(found[1])


def test_a_tighter_tpot_limit_moves_the_crossover_while_it_is_dragged(
    served: str, watched: Any
) -> None:
    page = compare(served, watched, "&slo_tpot_ms=60")
    loose, address = crossing(answer(page)), page.url
    assert 32 < loose < 35
    page.evaluate(RECORD)
    drag(page, TPOT, SHARE, steps=40, release=False)
    page.wait_for_timeout(500)
    seen = page.evaluate("window.seen")
    assert page.url == address
    page.mouse.up()
    until(page, f"location.href !== {address!r}")
    idle(page)
    tight = crossing(answer(page))
    assert tight < 32
    assert len(set(seen["sentences"])) > 4
    moved = [crossing(s) for s in seen["sentences"] if "crosses at" in s]
    assert moved == sorted(moved, reverse=True)
    assert seen["bare"] == 0
    page.get_by_text(f"stops paying between 16 and 32, at {tight:g}").wait_for()
    plot = page.get_by_role("figure").first.inner_text()
    assert f"crosses at {tight:g}" in plot


def test_slider_field_and_link_are_one_value(served: str, watched: Any) -> None:
    page = compare(served, watched, "&slo_tpot_ms=60")
    page.get_by_text("Service level and engine").click()
    field = page.get_by_test_id("stSidebar").get_by_label("TPOT at most, ms")
    type_exact(page, TPOT, "17")
    until(page, "location.search.includes('slo_tpot_ms=17')")
    until(page, "document.querySelector('[aria-label=\"TPOT at most, ms\"]')?.value === '17.00'")
    field.fill("25")
    field.press("Enter")
    shows(page, TPOT, "25")
    until(page, "location.search.includes('slo_tpot_ms=25')")
    type_exact(page, "TTFT at most", "43")
    until(page, "location.search.includes('slo_ttft_ms=43')")
    type_exact(page, "End to end at most", "900")
    until(page, "location.search.includes('slo_e2e_ms=900')")
    shows(page, TPOT, "25")
    until(page, f"{SENTENCE}?.includes('crosses at')")
    idle(page)
    said = answer(page)

    other = watched.open(page.url)
    until(other, f"{SENTENCE}?.includes({said.split('(')[1].split(',')[0]!r})")
    assert answer(other) == said
    for name, value in ((TPOT, "25"), ("TTFT at most", "43"), ("End to end at most", "900")):
        shows(other, name, value)


def test_what_rests_on_the_limit_follows_its_release(served: str, watched: Any) -> None:
    page = compare(served, watched, "&slo_tpot_ms=60&max_num_seqs=64&objective=goodput&tail=off")
    page.get_by_text("TPOT ≤ 60 ms in each request").first.wait_for()
    type_exact(page, TPOT, "17")
    until(page, "location.search.includes('slo_tpot_ms=17')")
    idle(page)
    card = page.get_by_test_id("stMain")
    until(page, "!document.body.innerText.includes('TPOT ≤ 60 ms')")
    assert card.get_by_text("TPOT ≤ 17 ms in each request").count() >= 2


def test_a_limit_that_none_holds_is_words_and_the_way_back(served: str, watched: Any) -> None:
    page = compare(served, watched, "&slo_tpot_ms=60")
    type_exact(page, TPOT, "1")
    page.get_by_text("at 1 to 64 both have no good request").first.wait_for()
    type_exact(page, TPOT, "17")
    until(page, f"{SENTENCE}?.includes('crosses at')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_the_sliders(served: str, watched: Any, scheme: str) -> None:
    page = compare(
        served,
        watched,
        "&slo_tpot_ms=17",
        viewport={"width": 390, "height": 844},
        has_touch=True,
        is_mobile=True,
        color_scheme=scheme,
    )
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert entry(page, TPOT).input_value() == "17"
