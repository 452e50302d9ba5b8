"""Every table as CSV: the same rows as on the page, and no cell that a spreadsheet runs."""

import csv
import io
import zipfile

from lib.report import tables_zip
from lib.report.dossier import Dossier, study_digest
from lib.report.tables import multiplier_table, price_table
from tests.unit.evidence import builders
from tests.unit.report.dossiers import WRITTEN, corners, dossier, simulated, study


def files(found: Dossier) -> dict[str, list[dict[str, str]]]:
    with zipfile.ZipFile(io.BytesIO(tables_zip.build(found))) as archive:
        assert archive.testzip() is None
        assert all(i.date_time == WRITTEN.timetuple()[:6] for i in archive.infolist())
        return {
            name: list(csv.DictReader(io.StringIO(archive.read(name).decode())))
            for name in archive.namelist()
        }


def test_the_files_hold_the_tables() -> None:
    found = simulated(scenario="0123456789ab")
    made = files(found)
    assert [*made] == [f"{n}.csv" for n in tables_zip.tables(found)]
    prices = price_table(dict(found.priced))
    assert [float(r["$/1M arm"]) for r in made["prices.csv"]] == prices["$/1M arm"]
    table = multiplier_table(found.found)
    assert [float(r["M"]) for r in made["multipliers.csv"]] == table["M"]
    assert [f"{float(r['at']):.2f}" for r in made["crossings.csv"]] == ["45.55", "31.45"]
    assert len(made["runs.csv"]) == 63
    assert {r["arm"] for r in made["runs.csv"]} == {"off", "sim:2", "sim:4"}
    said = {r["what"]: r["text"] for r in made["notes.csv"]}
    assert said["scenario"] == "0123456789ab"
    assert said["answer"] == found.answer[0]
    (price,) = [r for r in made["inputs.csv"] if r["key"] == "usd_per_gpu_hour"]
    assert (price["value"], price["basis"], price["dated"]) == ("2.0", "assumed", "2026-12-01")


def test_no_cell_of_text_starts_a_formula() -> None:
    name = '=HYPERLINK("http://192.0.2.9/")'
    runs = [builders.off(8, 45.0, dataset=name), builders.on(8, 81.0, dataset=name)]
    for rows in files(dossier(study(runs, note=name))).values():
        for row in rows:
            assert not [v for v in row.values() if v.startswith(("=", "+", "@", "\t", "\r"))]


def test_the_same_dossier_gives_the_same_archive() -> None:
    assert tables_zip.build(simulated()) == tables_zip.build(simulated())


def test_the_digest_tells_other_runs_apart() -> None:
    one = corners()
    assert study_digest(one) == study_digest(study(one.runs[::-1]))
    assert study_digest(one) != study_digest(study(one.runs[1:]))
    assert len(study_digest(one)) == 64
