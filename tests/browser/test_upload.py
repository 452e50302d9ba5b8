"""The results page under a real pointer: drop files, name the arms, type a cell, take it home."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.browser.conftest import idle, until

pytestmark = pytest.mark.browser

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
JOB = (FIXTURES / "job" / "server-a.json", FIXTURES / "job" / "server-b.json")
HOSTILE = (
    ":red[x] ![i](http://192.0.2.9/p.png) [l](javascript:alert(1)) $x$ "
    "<a href=//e.example>z</a> <img src=x onerror=alert(1)>"
)
STAGED = "The runs to complete: arm, GPUs and price of each."
HEADER_PX, ROW_PX = 35, 35


def text_of(page: Any) -> str:
    """What the page reads as; the joiners that keep a name as typed are invisible."""
    return str(page.get_by_test_id("stMain").inner_text()).replace("\u2060", "")


def reads(page: Any, text: str, *, gone: bool = False) -> None:
    """Wait until the page reads so, or no longer does."""
    main = "document.querySelector('[data-testid=\"stMain\"]').innerText.replaceAll('\u2060', '')"
    until(page, f"{'!' if gone else ''}{main}.includes({json.dumps(text)})", 60)


def opened(server: str, watched: Any, **options: Any) -> Any:
    page = watched.open(f"{server}/results", **options)
    page.get_by_role("heading", name="can it be trusted").wait_for()
    return page


def drop(page: Any, files: Sequence[Path]) -> None:
    page.locator("input[type=file]").set_input_files([str(f) for f in files])
    page.get_by_role("heading", name="What was dropped").wait_for()
    idle(page)


def name_arms(page: Any, glob: str, arm: str) -> None:
    page.get_by_label("Files matching").fill(glob)
    page.get_by_label("are arm").fill(arm)
    page.get_by_label("are arm").press("Enter")
    reads(page, f"in {glob} named {arm}")
    idle(page)


def add(page: Any, study: str) -> None:
    page.get_by_label("Study name").fill(study)
    page.get_by_role("button", name="Add to the study").click()
    reads(page, f"added to {study}, the study in hand now")
    idle(page)


def type_cell(page: Any, table: str, x: int, row: int, text: str) -> None:
    """Type into the cell of that row that lies `x` pixels from the table's left edge."""
    canvas = page.get_by_role("region", name=table).locator("canvas").first
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.dblclick(box["x"] + x, box["y"] + HEADER_PX + ROW_PX * (row + 0.5))
    page.locator("#portal textarea").fill(text)
    page.keyboard.press("Enter")
    page.locator("#portal textarea").wait_for(state="detached")
    page.wait_for_timeout(300)
    idle(page)


def test_two_files_become_the_study_in_hand(server: str, watched: Any) -> None:
    page = opened(server, watched)
    drop(page, JOB)
    name_arms(page, "server-a*", "off")
    name_arms(page, "server-b*", "eagle3:4")
    add(page, "two servers")
    assert "4 runs added to two servers" in text_of(page)
    assert page.get_by_role("heading", name="two servers").is_visible()
    assert "4 runs · 2 arms (off, eagle3:4) · 2 loads" in text_of(page)
    assert page.locator(".stFileChip").count() == 0


def test_a_typed_cell_reaches_the_store(server: str, watched: Any) -> None:
    page = opened(server, watched)
    drop(page, JOB[:1])
    type_cell(page, STAGED, 270, 0, "eagle3:many")
    reads(page, "server-a.json, 16 concurrent: arm 'eagle3:many'")
    assert page.get_by_role("button", name="Add to the study").is_disabled()
    type_cell(page, STAGED, 270, 0, "eagle3:2")
    reads(page, "eagle3:many", gone=True)
    type_cell(page, STAGED, 270, 1, "off")
    reads(page, "without an arm", gone=True)
    add(page, "typed by hand")
    assert "2 runs · 2 arms (eagle3:2, off)" in text_of(page)


def test_what_cannot_be_read_is_one_line_and_the_rest_goes_on(
    server: str, watched: Any, tmp_path: Path
) -> None:
    good = JOB[0].read_bytes()
    bad = {
        "empty.json": (b"", "empty.json: the file is empty"),
        "page.html": (b"<!doctype html><html></html>", "page.html: a web page or XML"),
        "half.json": (good[:400], "half.json: truncated JSON"),
        "numbers.json": (b"[1, 2, 3]", "numbers.json: no reader knows a list of numbers"),
        "large.json": (b" " * (65 * 2**20), "File must be 64.0MB or smaller"),
    }
    files = [tmp_path / name for name in bad]
    for file in files:
        file.write_bytes(bad[file.name][0])
    page = opened(server, watched)
    drop(page, [*files, JOB[0], JOB[1]])
    for _, says in bad.values():
        reads(page, says)
    assert page.get_by_test_id("stAlertContentError").count() == len(bad) - 1
    add(page, "in spite of it")
    assert "4 runs added to in spite of it" in text_of(page)


def hostile_files(folder: Path) -> list[Path]:
    """Both servers' files under a hostile name, with it as model and label; and an odd table."""
    made = []
    for source in JOB:
        file = folder / f"{HOSTILE.replace('/', '_')} {source.name}"
        records = [json.loads(line) for line in source.read_text().splitlines()]
        named = [r | {"model_id": HOSTILE, "label": HOSTILE} for r in records]
        file.write_text("\n".join(json.dumps(r) for r in named))
        made.append(file)
    odd = folder / f"odd {HOSTILE.replace('/', '_')}.csv"
    odd.write_text(f'"{HOSTILE}",b\n1,2\n3,4\n')
    return [*made, odd]


def test_a_hostile_name_is_shown_as_typed(server: str, watched: Any, tmp_path: Path) -> None:
    files = hostile_files(tmp_path)
    page = opened(server, watched)
    drop(page, files)
    for file in files:
        assert file.name in text_of(page)
    reads(page, f"Map {files[-1].name}: 2 keys")
    name_arms(page, "*server-a.json", "off")
    name_arms(page, "*server-b.json", "![i](//192.0.2.9/a.png):4")
    add(page, "hostile [x](http://192.0.2.9) ![i](http://192.0.2.9/i.png)")
    sidebar = page.get_by_test_id("stSidebar")
    for name in ("Results", "Compare", "Price", "Decision"):
        sidebar.get_by_role("link", name=name).click()
        page.wait_for_url(f"**/{name.lower()}*")
        idle(page)
        page.wait_for_timeout(300)
        assert HOSTILE in sidebar.inner_text().replace("\u2060", "")
        assert page.locator("img, a[href*='192.0.2.9'], a[href*='javascript']").count() == 0
        assert page.locator("a[href*='e.example']").count() == 0


def test_the_store_and_the_table_are_taken_home(server: str, watched: Any) -> None:
    page = opened(server, watched)
    drop(page, JOB)
    add(page, "taken home")
    page.get_by_role("button", name="Download").last.click()
    with page.expect_download() as table:
        page.get_by_role("button", name="This table as CSV").click()
    lines = Path(table.value.path()).read_text().splitlines()
    assert lines[0].startswith("arm,load,repeat,tok/s")
    assert len(lines) == 5
    with page.expect_download() as runs:
        page.get_by_role("button", name="runs", exact=True).click()
    stored = pq.read_table(runs.value.path())
    assert stored.column("study").to_pylist().count("taken home") == 4


def test_the_demo_is_offered_staged_and_labelled(server: str, watched: Any) -> None:
    page = opened(server, watched)
    page.get_by_role("button", name="Try the simulated sweep").click()
    page.get_by_role("heading", name="What was dropped").wait_for(timeout=60_000)
    idle(page)
    assert page.get_by_test_id("stMain").get_by_text("simulated engine").first.is_visible()
    add(page, "sweep")
    assert "63 runs · 3 arms" in text_of(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_sideways_scrolling(server: str, watched: Any, scheme: str) -> None:
    page = opened(
        server,
        watched,
        viewport={"width": 390, "height": 844},
        has_touch=True,
        is_mobile=True,
        color_scheme=scheme,
    )
    drop(page, JOB)
    main = page.get_by_test_id("stMain")
    assert main.evaluate("m => m.scrollWidth <= m.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_no_table_offers_an_export_that_a_spreadsheet_would_run(server: str, watched: Any) -> None:
    page = opened(server, watched)
    page.get_by_role("region", name="The runs of the study in hand").hover()
    page.get_by_role("button", name="Fullscreen").wait_for()
    assert page.get_by_role("button", name="Download as CSV").count() == 0
