"""Anything dropped on the results page, as a person sees it: archives, progress, mapping, undo."""

import json
from pathlib import Path
from typing import Any

import pytest

from lib.results import published
from tests.browser.conftest import idle, until
from tests.browser.test_upload import (
    HEADER_PX,
    HOSTILE,
    JOB,
    ROW_PX,
    add,
    drop,
    name_arms,
    opened,
    reads,
    text_of,
)
from tests.harness import archive, document

pytestmark = pytest.mark.browser

MAPPER = "The keys of the file"
FIELDS = {
    "offer.parallel_calls": "concurrency",
    "result.speed.generated_per_s": "output_tps",
    "deployment.cards": "gpu_count",
}
# What every progress bar said, in order.
LISTEN = """
window.said = [];
new MutationObserver(() => {
  const bar = document.querySelector('[data-testid="stProgress"]');
  const text = bar && bar.innerText.trim();
  if (text && window.said.at(-1) !== text) window.said.push(text);
}).observe(document.body, {subtree: true, childList: true, characterData: true});
"""


def choose(page: Any, key: str, field: str) -> None:
    """Find a key in the mapper and choose its field from the list."""
    find = page.get_by_label("Find a key")
    find.fill(key)
    find.press("Enter")
    canvas = page.get_by_role("region", name=MAPPER).locator("canvas").first
    one_row = HEADER_PX + ROW_PX + 5
    until(
        page,
        "document.querySelector('[role=\"region\"] canvas') && "
        f"[...document.querySelectorAll('canvas')].some(c => c.clientHeight <= {one_row})",
    )
    idle(page)
    page.wait_for_timeout(300)
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.dblclick(box["x"] + box["width"] * 0.5, box["y"] + HEADER_PX + ROW_PX / 2)
    typed = page.locator("#portal input")
    typed.wait_for()
    typed.fill(field)
    page.wait_for_timeout(200)
    page.keyboard.press("Enter")
    typed.wait_for(state="detached")
    page.wait_for_timeout(300)
    idle(page)


def test_a_zip_of_a_sweep_is_dropped_completed_added_and_compared(
    server: str, watched: Any, tmp_path: Path
) -> None:
    page = opened(server, watched)
    drop(page, [published.DEMO_ARCHIVE])
    reads(page, "65 files · 63 runs in 65 files")
    assert page.get_by_test_id("stMain").get_by_text("simulated engine").first.is_visible()
    name_arms(page, "k2-*", "sim:2")
    name_arms(page, "k4-*", "sim:4")
    page.get_by_label("for all runs to").fill("L4")
    page.get_by_label("for all runs to").press("Enter")
    reads(page, "gpu is L4 in 63 runs")
    add(page, "zipped sweep")
    assert "63 runs · 3 arms (off, sim:2, sim:4) · 7 loads" in text_of(page)
    page.get_by_test_id("stMain").get_by_role("link", name="Compare its arms").click()
    page.wait_for_url("**/compare*")
    idle(page)
    page.get_by_text("sim:4").first.wait_for()


def test_forty_files_show_how_far_their_reading_and_adding_is(
    server: str, watched: Any, tmp_path: Path
) -> None:
    source = JOB[0].read_text().splitlines()[0]
    files = []
    for at in range(40):
        file = tmp_path / f"k4-c8-r{at}.json"
        slow = {"duration": 60.0 + at, "padding": [{"at": i, "of": [i]} for i in range(8_000)]}
        file.write_text(json.dumps(json.loads(source) | slow))
        files.append(file)
    page = opened(server, watched)
    page.evaluate(LISTEN)
    drop(page, files)
    reads(page, "40 files · 40 runs in 40 files")
    said = [t for t in page.evaluate("window.said") if t.startswith("Reading ")]
    assert said
    assert all(" of 40: k4-c8-r" in t for t in said)
    assert page.get_by_role("button", name="What was read").count() == 0
    page.get_by_label("Look into one file").click()
    page.get_by_role("option", name="k4-c8-r7.json").click()
    page.get_by_role("button", name="What was read").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("What is missing, and what it blocks").wait_for()
    assert "no GPU count and no $/h" in dialog.inner_text()
    assert dialog.get_by_role("region", name="The keys of the file").count() == 1
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    add(page, "forty")
    said = [t for t in page.evaluate("window.said") if t.startswith("Adding ")]
    assert said
    assert all(" of 40: k4-c8-r" in t for t in said)
    assert page.get_by_test_id("stProgress").count() == 0


def test_an_unknown_file_is_mapped_by_clicking_and_known_the_next_time(
    server: str, watched: Any, tmp_path: Path
) -> None:
    files = [tmp_path / f"kettle-{at}.json" for at in (4, 8)]
    for file, load in zip(files, (4, 8), strict=True):
        file.write_bytes(document(load, 70.0 * load))
    page = opened(server, watched)
    drop(page, files[:1])
    reads(page, "Still needed: a load (concurrency, request_rate or batch); an outcome")
    assert page.get_by_role("button", name="Read with this mapping").is_disabled()
    for key, field in FIELDS.items():
        choose(page, key, field)
    reads(page, "Still needed", gone=True)
    page.get_by_role("button", name="Read with this mapping").click()
    page.get_by_role("heading", name="Complete the runs").wait_for()
    reads(page, "kettle-4.json: read as kettle-4.json was mapped by hand")
    add(page, "kettles")
    drop(page, files[1:])
    reads(page, "kettle-8.json: read as kettle-4.json was mapped by hand")
    assert "no reader knows" not in text_of(page)
    add(page, "other kettles")
    assert "1 run · 1 arm (off) · 1 load" in text_of(page)


def test_an_import_is_taken_back(server: str, watched: Any) -> None:
    page = opened(server, watched)
    drop(page, JOB[:1])
    add(page, "taken back")
    drop(page, JOB[1:])
    page.get_by_label("or one of yours").click()
    page.get_by_role("option", name="taken back").click()
    page.get_by_role("button", name="Add to the study").click()
    reads(page, "2 runs added to taken back, the study in hand now")
    idle(page)
    page.get_by_role("button", name="Undo").click()
    reads(page, "Taken back from taken back: 2 runs removed, nothing was replaced by it.")
    reads(page, "2 runs · no arm named · 2 loads")
    page.get_by_role("button", name="Imports").click()
    page.get_by_text("1 file · 2 runs").wait_for()
    page.get_by_role("button", name="Undo").click()
    reads(page, "Taken back from taken back: 2 runs removed")
    idle(page)
    assert page.get_by_role("heading", name="taken back").count() == 0


def test_hostile_paths_and_leaves_are_shown_as_typed(
    server: str, watched: Any, tmp_path: Path
) -> None:
    inner = HOSTILE.replace("/", "_")
    packed = tmp_path / "x.zip"
    files = {f"{inner}/{file.name}": file.read_bytes() for file in JOB}
    packed.write_bytes(archive({**files, f"../{inner}.txt": b"nothing"}))
    odd = tmp_path / f"odd {inner}.json"
    odd.write_text(json.dumps({HOSTILE: {HOSTILE: HOSTILE, "n": 1}}))
    page = opened(server, watched)
    drop(page, [packed, odd])
    reads(page, f"Map {odd.name}: 2 keys")
    reads(page, f"x.zip/{inner}/server-a.json")
    page.get_by_text("1 file of the archive left out").click()
    reads(page, f"x.zip/{inner}.txt")
    page.get_by_role("button", name="What was read").first.click()
    page.get_by_role("dialog").get_by_text("What is missing").wait_for()
    assert inner in page.get_by_role("dialog").inner_text().replace("\u2060", "")
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
    add(page, "hostile paths")
    assert page.locator("img, a[href*='192.0.2.9'], a[href*='javascript']").count() == 0


def test_many_runs_are_changed_in_one_go_and_taken_home(server: str, watched: Any) -> None:
    page = opened(server, watched)
    drop(page, JOB)
    add(page, "in one go")
    page.get_by_role("button", name="Set for 4 runs").click()
    page.get_by_label("Value", exact=True).fill("eagle3:4")
    page.get_by_role("button", name="Set it").click()
    reads(page, "arm is eagle3:4 in 4 runs")
    assert "1 arm (eagle3:4)" in text_of(page)
    page.get_by_role("button", name="Download").last.click()
    with page.expect_download() as saved:
        page.get_by_role("button", name="runs.csv").click()
    lines = Path(saved.value.path()).read_text().splitlines()
    assert len(lines) == 5
    assert '"eagle3"' in lines[1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_maps_without_sideways_scrolling(
    server: str, watched: Any, tmp_path: Path, scheme: str
) -> None:
    odd = tmp_path / "kettle.json"
    leaves = {f"a rather long key number {at} of the {scheme}": at for at in range(70)}
    odd.write_text(json.dumps({"outer": {"inner": leaves}}))
    page = opened(
        server,
        watched,
        viewport={"width": 390, "height": 844},
        has_touch=True,
        is_mobile=True,
        color_scheme=scheme,
    )
    drop(page, [odd])
    reads(page, "Still needed")
    main = page.get_by_test_id("stMain")
    assert main.evaluate("m => m.scrollWidth <= m.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
