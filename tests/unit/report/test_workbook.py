"""The workbook holds the page's numbers, as formulas; LibreOffice recalculates them alike."""

import math
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from io import BytesIO
from pathlib import Path

import openpyxl
import pytest
from openpyxl.workbook import Workbook

from lib.money.pricing import Rate
from lib.report import workbook
from lib.report.cells import column_letter, plain_text
from lib.report.dossier import PRICED_INPUTS, Dossier
from lib.report.tables import price_table
from lib.results import published
from lib.run import LoadKind, Slo
from tests.unit.evidence import builders
from tests.unit.report.dossiers import PAID, corners, dossier, inputs_of, simulated, study

COMPUTED = ("Arms", "Results", "Monthly", "Bases")
OTHER = Rate(usd_per_gpu_hour=3.37, gpu_count=4, utilization=0.45, extra_usd_per_hour=1.25)
EMPTY = Rate()


@cache
def built(which: str, rate: Rate, tokens_per_day: float | None = 10e6) -> bytes:
    return workbook.build(made(which, rate, tokens_per_day))


def made(which: str, rate: Rate, tokens_per_day: float | None = 10e6) -> Dossier:
    if which == "simulated":
        return simulated(rate, tokens_per_day=tokens_per_day)
    if which == "corners":
        return dossier(corners(), rate, tokens_per_day=tokens_per_day)
    return dossier(published.study(which), rate, load=None, tokens_per_day=tokens_per_day)


def values(data: bytes) -> Workbook:
    return openpyxl.load_workbook(BytesIO(data), data_only=True)


def columns(book: Workbook, sheet: str) -> dict[str, list[object]]:
    """A sheet's columns by their heads; an empty text is an empty cell."""
    rows = list(book[sheet].iter_rows(min_row=4, values_only=True))
    return {
        str(head): [None if r[i] == "" else r[i] for r in rows[1:]]
        for i, head in enumerate(rows[0])
        if head
    }


def same(found: object, wanted: object) -> bool:
    if isinstance(found, int | float) and isinstance(wanted, int | float):
        return math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-12)
    return found == wanted


@pytest.mark.parametrize(
    ("which", "rate"),
    [
        ("simulated", PAID),
        ("simulated", OTHER),
        ("simulated", EMPTY),
        ("corners", PAID),
        ("corners", replace(PAID, gpu_count=None)),
        *((name, PAID) for name in published.studies()),
    ],
)
def test_the_results_are_those_of_the_price_table(which: str, rate: Rate) -> None:
    found, page = columns(values(built(which, rate)), "Results"), made(which, rate)
    table = price_table(dict(page.priced))
    for ours, theirs in {
        "arm": "arm",
        "load": "load",
        "$/1M output, without": "$/1M off",
        "$/1M output, with": "$/1M arm",
        "saving": "saving",
        "saving, 95 % low": "saving low",
        "saving, 95 % high": "saving high",
        "SLO without": "SLO off",
        "SLO with": "SLO arm",
    }.items():
        assert all(map(same, found[ours], table[theirs])), ours
        assert len(found[ours]) == len(table[theirs])
    for row, ratio in enumerate(r.ratio for r in page.rows):
        ends = ratio.interval() or (None, None)
        assert same(found["M, throughput with ÷ without"][row], ratio.multiplier)
        assert same(found["M, 95 % low"][row], ends[0])
        assert same(found["M, 95 % high"][row], ends[1])


def test_every_computed_number_is_a_formula_with_its_value() -> None:
    data = built("simulated", PAID)
    formulas, stored = openpyxl.load_workbook(BytesIO(data)), values(data)
    count = 0
    for name in ("Results", "Monthly"):
        for row in formulas[name].iter_rows(min_row=5, min_col=3):
            for cell in row:
                if isinstance(cell.value, int | float):
                    pytest.fail(f"{name}!{cell.coordinate} is typed: {cell.value}")
                if isinstance(cell.value, str) and cell.value.startswith("="):
                    count += 1
                    place = stored[name][cell.coordinate]
                    told = formulas[name].cell(4, cell.column).value == "told apart"
                    assert place.value is not None or told
    assert count > 14 * 20


def test_c79_monthly_readings_of_the_documentation() -> None:
    """10M tokens a day at $5/h, 100 against 250 tok/s."""
    runs = [builders.off(8, 100.0), builders.on(8, 250.0)]
    data = workbook.build(dossier(study(runs), Rate(5.0, 1, 1.0)))
    found = columns(values(data), "Monthly")
    assert found["hours scale with tokens: saving, $/month"][0] == pytest.approx(2534.72, abs=0.01)
    assert found["whole servers stay on: saving, $/month"] == [3650]
    assert found["one server stays on either way: saving, $/month"] == [0]
    assert found["one server without falls short by"][0] == pytest.approx(0.136)


def test_a_refused_price_says_why_and_has_no_formula() -> None:
    data = built("corners", PAID)
    found = columns(values(data), "Results")
    row = found["load"].index(32)
    assert "failed" in str(found["not priced because"][row])
    assert found["$/1M output, with"][row] is None
    missed = dossier(
        study([builders.off(8, 45.0, tpot_ms_p99=25.0), builders.on(8, 81.0, tpot_ms_p99=15.0)]),
        slo=Slo(tpot_ms=20),
    )
    arms = columns(values(workbook.build(missed)), "Arms")
    assert arms["SLO"] == ["missed", "met"]
    assert arms["not priced because"] == ["misses the SLO", None]
    assert arms["$ per 1M output tokens"][0] is None


def test_c33_the_same_bill_over_other_tokens() -> None:
    """$11.90 per 1M output tokens is $0.605 per 1M total tokens where the input is long."""
    lengths = {"input_len": 1867.0, "output_len": 100.0}
    runs = [builders.off(8, 46.685, **lengths), builders.on(8, 93.37, **lengths)]
    found = columns(values(workbook.build(dossier(study(runs), Rate(2.0, 1, 1.0)))), "Bases")
    assert found["input tokens per output token"] == [18.67]
    assert found["$ per 1M output tokens, without"][0] == pytest.approx(11.90, abs=0.005)
    assert found["$ per 1M total tokens, without"][0] == pytest.approx(0.605, abs=0.0005)
    assert found["$ per 1M total tokens, with"][0] == pytest.approx(0.3025, abs=0.0005)
    assert found["$ per 1M weighted tokens, without"][0] == pytest.approx(11.90 / 4.734, abs=0.002)


def test_a_rate_without_a_limit_is_words() -> None:
    free = {"load_kind": LoadKind.REQUEST_RATE}
    runs = [builders.off(math.inf, 45.0, **free), builders.on(math.inf, 81.0, **free)]
    found = columns(values(workbook.build(dossier(study(runs), load=math.inf))), "Arms")
    assert found["arm and load"] == ["off at no limit", "eagle3:4 at no limit"]
    assert found["load"] == ["no limit", "no limit"]


def test_prices_that_are_not_told_apart_are_named() -> None:
    """At 32 the four-token arm of the shipped sweep is level on speed, and so on price."""
    data = workbook.build(simulated(replace(PAID, extra_usd_per_hour=0.0)))
    found = columns(values(data), "Results")
    at = [
        (a, x)
        for a, x, t in zip(found["arm"], found["load"], found["told apart"], strict=True)
        if t
    ]
    assert at == [("sim:4", 32)]
    lone = study([builders.off(8, 100.0), builders.on(8, 100.9)])
    (said,) = columns(values(workbook.build(dossier(lone, Rate(5.0, 1, 1.0)))), "Results")[
        "told apart"
    ]
    assert said == "too close to call"


def test_inputs_state_basis_source_and_date() -> None:
    sheet = columns(values(built("simulated", PAID)), "Inputs")
    assert sheet["label"][0] == "Price"
    assert sheet["value"][0] == 2.0
    assert sheet["basis"][0] == "assumed"
    assert sheet["source"][0] == "typed for a test"
    assert sheet["as of"][0] == "2026-12-01"
    empty = columns(values(built("simulated", EMPTY)), "Inputs")
    assert empty["value"][0] is None
    assert empty["source"][0] == "not typed"


def test_the_summary_names_scenario_runs_and_notes() -> None:
    page = simulated(scenario="0123456789ab", stated=frozenset({"gpu"}))
    book = values(workbook.build(page))
    text = "\n".join(str(c) for row in book["Summary"].iter_rows(values_only=True) for c in row)
    assert page.answer[0] in text
    assert "0123456789ab" in text
    assert page.digest in text
    assert "SLO unknown" in text
    assert "simulated engine" in text
    assert "stated equal by a person: gpu" in text
    assert "Price as of 2026-12-01" in text


def test_every_run_stands_with_its_file() -> None:
    page = simulated()
    sha = page.sides[0].runs[0].source_sha256 or ""
    book = values(workbook.build(page, {sha: "base-c1-r1.json"}))
    found = columns(book, "Runs")
    assert len(found["run id"]) == len(set(found["run id"])) == 63
    assert "base-c1-r1.json" in found["file"]
    by_id = {r.run_id: r.output_tps for s in page.sides for r in s.runs}
    assert all(
        same(t, by_id[str(i)]) for i, t in zip(found["run id"], found["output tok/s"], strict=True)
    )


HOSTILE = [
    '=HYPERLINK("http://192.0.2.9/","x")',
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1+1",
    "\r=1+1",
    "http://192.0.2.9/p",
    "![i](http://192.0.2.9/p.png)",
    "<script>alert(1)</script>",
    "\ud800 lone",
    "x" * 40_000,
    "nul\x00 bell\x07",
]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_name_from_a_file_is_no_formula_and_no_link(name: str) -> None:
    runs = [
        builders.off(8, 45.0, dataset=name, tool=name),
        builders.on(8, 81.0, dataset=name, tool=name),
    ]
    page = dossier(study(runs, title=name, citation=name, note=name))
    data = workbook.build(page, {})
    book = openpyxl.load_workbook(BytesIO(data))
    for sheet in book:
        for row in sheet.iter_rows():
            for cell in row:
                assert cell.hyperlink is None
                if cell.data_type == "f":
                    assert sheet.title in (*COMPUTED, "Summary", "Runs")
                    assert "HYPERLINK" not in str(cell.value)
                    assert "cmd" not in str(cell.value)
                elif isinstance(cell.value, str):
                    assert not cell.value.startswith(("=", "+", "-", "@", "\t", "\r"))


def test_no_macro_and_nothing_outside() -> None:
    with zipfile.ZipFile(BytesIO(built("simulated", PAID))) as parts:
        names = parts.namelist()
        text = b"".join(parts.read(n) for n in names)
    assert not [n for n in names if "vba" in n or "externalLink" in n]
    assert b'TargetMode="External"' not in text


def test_the_same_dossier_gives_the_same_workbook() -> None:
    assert workbook.build(simulated()) == workbook.build(simulated())


def test_columns_are_lettered_like_a_spreadsheet() -> None:
    assert [column_letter(i) for i in (0, 25, 26, 51, 52, 701, 702)] == [
        *("A", "Z", "AA", "AZ", "BA", "ZZ", "AAA")
    ]
    assert plain_text("=1") == "'=1"
    assert plain_text("-") == "'-"
    assert plain_text("2") == "2"


# Recalculated by LibreOffice


@dataclass(frozen=True)
class Case:
    """A workbook whose inputs are typed over; it must then equal one that was made so."""

    which: str
    before: Rate
    after: Rate
    tokens_before: float | None = 10e6
    tokens_after: float | None = 10e6

    @property
    def data(self) -> bytes:
        return built(self.which, self.before, self.tokens_before)

    def typed_over(self) -> Workbook:
        book = openpyxl.load_workbook(BytesIO(self.data))
        typed: Mapping[str, float | None] = inputs_of(self.after, self.tokens_after)
        assert {*typed} == {*PRICED_INPUTS}
        for key, value in typed.items():
            place = book.defined_names[key].attr_text
            sheet, cell = re.fullmatch(r"(\w+)!\$(\w+)\$(\d+)", place).expand(r"\1 \2\3").split()  # type: ignore[union-attr]
            book[sheet][cell] = value
        return book


DRAFTER = replace(OTHER, drafter_gpus=2, drafter_usd_per_gpu_hour=0.8, on_utilization=0.5)
CASES = {
    "as it is": Case("simulated", PAID, PAID),
    "another price": Case("simulated", PAID, replace(PAID, usd_per_gpu_hour=3.37)),
    "everything": Case("simulated", PAID, OTHER, 10e6, 3e9),
    "filled in": Case("simulated", EMPTY, OTHER, None, 1e6),
    "cleared": Case("simulated", PAID, EMPTY, 10e6, None),
    "a drafter of its own": Case("simulated", PAID, DRAFTER),
    "corners": Case("corners", PAID, OTHER),
    "corners, GPUs recorded": Case("corners", PAID, replace(PAID, gpu_count=None)),
    "ratios only": Case("eagle3_sglang_h100_llama31_8b", PAID, OTHER),
    "one run": Case("vllm_h100_qwen25_7b_ngram_extractive", PAID, replace(OTHER, gpu_count=None)),
}


@pytest.fixture(scope="module")
def recalculated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Workbook]:
    """Every case as LibreOffice computes it: the values that were stored are gone before."""
    office = shutil.which("soffice") or shutil.which("libreoffice")
    if office is None:
        if os.environ.get("DRAFTWORTH_REQUIRE_OFFICE"):
            pytest.fail("no LibreOffice: install libreoffice-calc-nogui")
        pytest.skip("no LibreOffice")
    place = tmp_path_factory.mktemp("office")
    files = {name: place / f"{i}.xlsx" for i, name in enumerate(CASES)}
    for name, path in files.items():
        CASES[name].typed_over().save(path)
    convert(office, place, list(files.values()))
    return {
        name: openpyxl.load_workbook(place / "out" / path.name, data_only=True)
        for name, path in files.items()
    }


def convert(office: str, place: Path, files: list[Path]) -> None:
    command = [
        *(office, "--headless", f"-env:UserInstallation=file://{place}/profile"),
        *("--convert-to", "xlsx:Calc MS Excel 2007 XML", "--outdir", str(place / "out")),
        *map(str, files),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=300)


@pytest.mark.parametrize("name", CASES)
def test_libreoffice_computes_what_the_page_shows(
    name: str, recalculated: dict[str, Workbook]
) -> None:
    case, found = CASES[name], recalculated[name]
    wanted = values(built(case.which, case.after, case.tokens_after))
    compared = 0
    for sheet in ("Runs", *COMPUTED):
        ours, theirs = columns(found, sheet), columns(wanted, sheet)
        assert ours.keys() == theirs.keys()
        for head, column in theirs.items():
            for row, (a, b) in enumerate(zip(ours[head], column, strict=True)):
                assert same(a, b), f"{sheet}, {head}, row {row}: {a} instead of {b}"
                compared += isinstance(b, float)
    assert compared > 20
