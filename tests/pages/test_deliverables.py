"""What a reviewer takes home of the price page: made from the figures as they stand."""

import io
import zipfile
from collections.abc import Callable
from datetime import date
from html import unescape
from typing import Any

import openpyxl
import pytest
from streamlit.testing.v1 import AppTest

from lib.money.rates import book
from lib.report import page, tables_zip, workbook
from lib.report.dossier import Dossier
from lib.report.format import money
from lib.ui import deliverables
from tests.pages.test_pages import figures, metric, start

LINK = {
    "study": "guidellm-0.8.1-simulated",
    "load": "8",
    "usd_per_gpu_hour": "2",
    "gpu_count": "2",
    "utilization": "0.6",
    "tokens_per_day": "10000000",
    "slo_tpot_ms": "40",
}
NAME = "draftworth-guidellm-0.8.1-simulated"


def opened(**link: str) -> AppTest:
    app = start("price", **link)
    app.session_state["deliverables"] = True
    app.run()
    assert not app.exception
    return app


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Callable[[], Any], str]]:
    """The buttons as they were drawn: label, what makes the file, its name."""
    drawn: list[tuple[str, Callable[[], Any], str]] = []

    def keep(label: str, data: Callable[[], Any], file: str, mime: str) -> None:
        drawn.append((label, data, file))

    monkeypatch.setattr(deliverables, "_button", keep)
    return drawn


def test_three_files_of_the_page_as_it_stands(
    taken: list[tuple[str, Callable[[], Any], str]],
) -> None:
    app = opened(**LINK)
    assert [file for _, _, file in taken] == [f"{NAME}.xlsx", f"{NAME}.html", f"{NAME}-csv.zip"]
    made = {file: data() for _, data, file in taken}
    html = made[f"{NAME}.html"]
    for label in ("$/1M output, off", "$/1M output, with"):
        assert metric(app, label) in html
    taken_book = openpyxl.load_workbook(io.BytesIO(made[f"{NAME}.xlsx"]), data_only=True)
    row = next(r for r in taken_book["Results"].iter_rows(min_row=5, values_only=True) if r[1] == 8)
    assert money(float(str(row[8]))) == metric(app, "$/1M output, off")
    with zipfile.ZipFile(io.BytesIO(made[f"{NAME}-csv.zip"])) as archive:
        assert "prices.csv" in archive.namelist()


def test_the_dossier_says_what_the_page_rests_on(
    taken: list[tuple[str, Callable[[], Any], str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Dossier] = []
    for room in (workbook, page, tables_zip):
        monkeypatch.setattr(room, "build", lambda dossier, *_: kept.append(dossier) or b"")
    opened(**LINK)
    for _, data, _ in taken[-3:]:
        data()
    assert len(kept) == 3
    found = kept[0]
    assert found == kept[1] == kept[2]
    assert found.load == 8
    assert found.slo is not None
    assert found.tokens_per_day == 10e6
    assert len(found.scenario) == 12
    assert [g.title for g in found.gates][:2] == ["α, τ and c at low batch", "Screen"]
    by_key = {i.key: i for i in found.inputs}
    assert by_key["usd_per_gpu_hour"].value == 2
    assert by_key["usd_per_gpu_hour"].basis == "assumed"
    assert by_key["extra_usd_per_hour"].value is None


def test_a_rate_of_the_book_keeps_its_source_and_date(
    taken: list[tuple[str, Callable[[], Any], str]],
) -> None:
    day = date(2026, 6, 1)
    rate = next(r for r in book().in_force(day) if r.gpu == "H100")
    usd = f"{rate.usd_per_gpu_hour:.6g}"
    link = {**LINK, "usd_per_gpu_hour": usd, "rate": rate.id, "priced_on": day.isoformat()}
    opened(**link)
    html = unescape({file: data for _, data, file in taken}[f"{NAME}.html"]())
    assert rate.cited(day) in html
    assert f"Price as of {rate.effective_date}" in html
    assert '<span class="chip">published</span>' in html


def test_nothing_is_made_before_it_is_asked_for(
    taken: list[tuple[str, Callable[[], Any], str]],
) -> None:
    app = start("price", **LINK)
    assert figures(app)
    assert taken == []


@pytest.mark.parametrize("study", ["eagle3_sglang_h100_llama31_8b", "gaudi_deepseek_r1_mtp"])
def test_an_unpriced_study_can_be_taken_home_too(
    study: str, taken: list[tuple[str, Callable[[], Any], str]]
) -> None:
    opened(study=study)
    made = [data() for _, data, _ in taken]
    assert all(made)
    assert "Nothing is priced" in made[1]
