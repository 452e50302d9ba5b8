"""The price of a study on the command line, with the files that a reviewer takes away."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from typer.testing import CliRunner, Result

from lib.cli import app
from lib.cli.price import price_command
from lib.money.scenario import Scenario

STUDY = "vllm_h100_qwen25_7b_ngram_extractive"
PAID = ("--usd-per-gpu-hour", "2.5", "--utilization", "0.7")


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTWORTH_STORE", str(tmp_path / "store.duckdb"))


def run(*args: str) -> Result:
    return CliRunner().invoke(app, ["price", *args])


def answer(*args: str) -> dict[str, Any]:
    result = run(*args, "--json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_study_is_priced_at_its_load(tmp_path: Path) -> None:
    said = answer("--study", STUDY, *PAID, "--load", "64", "--tokens-per-day", "1e9")
    assert said["answer"].startswith("$0.0905 instead of $0.131 per 1M output tokens at 64")
    assert said["basis"] == "published"
    at_64 = next(row for row in said["prices"] if row["load"] == 64)
    assert at_64["$/1M arm"] == pytest.approx(2.5 * 1e6 / (3600 * 10956 * 0.7))
    assert said["saving_a_month"][0] == "Hours scale with tokens: saves $1,231 a month."
    link = f"study={STUDY}&load=64&usd_per_gpu_hour=2.5&utilization=0.7&tokens_per_day=1000000000"
    assert said["scenario"] == Scenario.from_link(link).hash
    assert said["written"] == {}
    assert list(tmp_path.iterdir()) == []


def test_files_are_written_and_never_replaced_unasked(tmp_path: Path) -> None:
    book, page, tables = (tmp_path / f"out.{end}" for end in ("xlsx", "html", "zip"))
    asked = ("--workbook", str(book), "--report", str(page), "--tables", str(tables))
    said = answer("--study", STUDY, *PAID, "--load", "64", *asked)
    assert said["written"] == {"workbook": str(book), "report": str(page), "tables": str(tables)}
    found = openpyxl.load_workbook(book, data_only=True)
    shown = [c for row in found["Summary"].iter_rows(values_only=True) for c in row]
    assert said["answer"] in shown
    assert said["scenario"] in shown
    assert said["sha256_of_the_runs"] in shown
    assert said["answer"] in page.read_text()
    with zipfile.ZipFile(io.BytesIO(tables.read_bytes())) as archive:
        assert "runs.csv" in archive.namelist()
    page.write_text("mine")
    refused = run("--study", STUDY, *PAID, "--report", str(page))
    assert refused.exit_code == 1
    assert "--force" in refused.stderr
    assert page.read_text() == "mine"
    answer("--study", STUDY, *PAID, "--report", str(page), "--force")
    assert page.read_text() != "mine"


def test_one_file_that_exists_keeps_all_from_being_written(tmp_path: Path) -> None:
    (tmp_path / "out.html").write_text("mine")
    new = tmp_path / "out.xlsx"
    old = str(tmp_path / "out.html")
    assert run("--study", STUDY, *PAID, "--workbook", str(new), "--report", old).exit_code == 1
    assert not new.exists()


def test_what_is_missing_is_said() -> None:
    said = answer("--study", STUDY)
    assert said["answer"] == "Nothing is priced: type a $/GPU-h, type the utilisation."
    assert said["basis"] is None


@pytest.mark.parametrize(
    ("args", "status", "words"),
    [
        ((), 2, "--study"),
        (("--workbook", "x.xlsx"), 2, "--study"),
        (("--usd-per-hour", "2"), 2, "--multiplier"),
        (("--study", STUDY, "--multiplier", "1.8"), 2, "measured"),
        (("--study", STUDY, "--utilization", "70"), 2, "utilization"),
        (("--study", STUDY, "--slo", "speed=9"), 2, "slo"),
        (("--study", STUDY, "--override", "colour"), 2, "colour"),
        (("--study", "nowhere"), 1, "nowhere"),
        (("--study", STUDY, "--report", "/nowhere/at/all.html"), 1, "--report"),
        (("--study", STUDY, "--tables", "/"), 1, "--tables"),
        (("--study", STUDY, "--tables", "x" * 300), 1, "--tables"),
        (("--study", STUDY, "--workbook", "/proc/x.xlsx"), 1, "--workbook"),
        (("--study", STUDY, "--report", "a", "--tables", "../a/../a"), 1, "--tables"),
    ],
)
def test_a_wrong_word_is_one_line(args: tuple[str, ...], status: int, words: str) -> None:
    result = run(*args, "--json")
    assert result.exit_code == status
    assert result.stdout == ""
    assert len(result.stderr.strip().splitlines()) == 1
    assert words in result.stderr


def test_the_theorem_has_no_way_in() -> None:
    """Design law 2: no option of the price takes a speedup, an acceptance or a draft cost."""
    options = set(price_command.__annotations__)
    assert options.isdisjoint({"alpha", "gamma", "c", "speedup", "tau"})
