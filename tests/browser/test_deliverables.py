"""What a reviewer takes home, in a browser: the downloads, and the page on paper."""

import io
import re
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from lib.report import page as report
from lib.report.format import WORD_JOINER
from lib.results import published
from tests.browser.conftest import idle
from tests.browser.test_upload import reads
from tests.unit.report.dossiers import dossier, simulated

pytestmark = pytest.mark.browser

LINK = (
    "/price?study=guidellm-0.8.1-simulated&load=8&usd_per_gpu_hour=2&gpu_count=2&utilization=0.6"
    "&tokens_per_day=10000000"
)
# What is left of the paper inside margins of 14 mm, in CSS pixels.
PAPER = {"A4": (687, 1016), "Letter": (710, 950)}


def test_three_files_hold_what_the_page_shows(server: str, watched: Any, tmp_path: Path) -> None:
    page = watched.open(f"{server}{LINK}")
    reads(page, "per 1M output tokens at 8 concurrent")
    sentence = page.locator(".st-key-answer-sentence").inner_text()
    page.get_by_role("button", name="Workbook, report, CSV").click()
    idle(page)
    read = {}
    for label in ("Workbook with live formulas", "Report to print", "Every table as CSV"):
        with page.expect_download() as waiting:
            page.get_by_role("button", name=label).click()
        waiting.value.save_as(tmp_path / "taken")
        read[waiting.value.suggested_filename] = (tmp_path / "taken").read_bytes()
    name = "draftworth-guidellm-0.8.1-simulated"
    assert [*read] == [f"{name}.xlsx", f"{name}.html", f"{name}-csv.zip"]
    words = " ".join(sentence.replace(WORD_JOINER, "").split())
    book = openpyxl.load_workbook(io.BytesIO(read[f"{name}.xlsx"]), data_only=True)
    assert words in [c for row in book["Summary"].iter_rows(values_only=True) for c in row]
    assert words in read[f"{name}.html"].decode()
    with zipfile.ZipFile(io.BytesIO(read[f"{name}-csv.zip"])) as archive:
        assert words in archive.read("notes.csv").decode()


@pytest.mark.parametrize("paper", PAPER)
@pytest.mark.parametrize("which", ["simulated", "vllm_dspark_dsv4pro_b300"])
def test_the_page_prints_without_a_cut_figure(
    which: str, paper: str, chromium: Any, tmp_path: Path
) -> None:
    found = simulated() if which == "simulated" else dossier(published.study(which), load=None)
    place = tmp_path / "page.html"
    place.write_text(report.build(found))
    width, height = PAPER[paper]
    context = chromium.new_context(viewport={"width": width, "height": height})
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("request", lambda request: said.append(request.url))
    page.goto(place.as_uri())
    page.emulate_media(media="print")
    whole = page.evaluate(
        "[...document.querySelectorAll('figure, .metrics, .gate, .keep, tr')].map(e => ["
        "e.tagName, e.getBoundingClientRect().height, getComputedStyle(e).breakInside])"
    )
    assert {tag for tag, _, _ in whole} >= {"FIGURE", "TR"}
    for tag, tall, inside in whole:
        assert inside == "avoid", tag
        assert tall < height / 2, tag
    wide = page.evaluate(
        "[document.documentElement, ...document.querySelectorAll('.wide, svg')]"
        ".map(e => e.scrollWidth - Math.ceil(e.getBoundingClientRect().width))"
    )
    assert max(wide) <= 0
    pdf = page.pdf(format=paper, prefer_css_page_size=True)
    context.close()
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 8
    assert said == [place.as_uri()]
