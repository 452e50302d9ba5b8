"""The fleet command: what a day of a demand costs, and bad demand in one line."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lib.cli import app

DEMO = "guidellm-0.8.1-simulated"
L4 = "trtllm_l4_qwen25_1p5b_draft0p5b_load"


def asked(*words: str) -> Any:
    return CliRunner().invoke(app, ["fleet", *words])


def answered(*words: str) -> dict[str, Any]:
    result = asked(*words, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_shape_on_a_published_study() -> None:
    found = answered("--study", L4, "--demand", "flat:2000", "--usd-per-gpu-hour", "0.8")
    assert [row["GPU-hours a day"] for row in found["fleets"][:2]] == [168, 312]
    assert found["fleets"][0]["$ a day"] == pytest.approx(168 * 0.8)
    assert found["answer"].startswith("$249.60 a day with draft_model:4 instead of $134.40")


def test_hours_headroom_and_the_peak() -> None:
    words = ["--study", DEMO, "--demand", "5200@4x8,12000@32x8,30000@64x8", "--gpu-count", "1"]
    found = answered(*words, "--reserved", "--k0-tax", "0.08")
    peaks = {row["arm"]: row["replicas at peak"] for row in found["fleets"]}
    # 5,200 tok/s at 304.5 a replica with 4 in flight is the peak of off.
    assert peaks["off"] == 18
    more = answered(*words, "--reserved", "--k0-tax", "0.08", "--headroom", "0.5", "--spare")
    assert {row["arm"]: row["replicas at peak"] for row in more["fleets"]}["off"] == 27


def test_a_file_of_requests(tmp_path: Path) -> None:
    file = tmp_path / "day.csv"
    file.write_text("hour,requests/s\n0,100\n1,200\n")
    words = ["--study", DEMO, "--demand", str(file), "--gpu-count", "1"]
    assert answered(*words, "--output-tokens", "64")["hours"] == 2
    result = asked(*words)
    assert result.exit_code == 2
    assert "output tokens a request" in result.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--demand", "office:many"], "office:5000"),
        (["--demand", "5,many"], "entry 2"),
        (["--demand", "flat:5", "--unit", "pages"], "output tok/s"),
        (["--demand", "flat:5", "--level", "mean"], "average or peak"),
        (["--demand", "flat:5", "--headroom", "9"], "headroom"),
        (["--demand", "flat:5", "--k0-tax", "8"], "tax"),
        (["--demand", "flat:-5"], "a number above 0"),
        (["--demand", "flat:5", "--max-num-seqs", "0"], "--max-num-seqs 0"),
        (["--demand", "flat:5", "--max-num-seqs", "-5"], "--max-num-seqs -5"),
        (["--demand", "x" * 5000], "entry 1"),
        (["--demand", "5\0"], "entry 1"),
    ],
)
def test_what_is_wrong_is_one_line(words: list[str], said: str) -> None:
    result = asked("--study", DEMO, *words)
    assert result.exit_code == 2
    assert said in result.output
    assert "Traceback" not in result.output


def test_a_day_of_hours_that_all_differ_is_longer_than_a_file_may_be_named() -> None:
    hours = ",".join(f"{5200.123 + i}@4" for i in range(24))
    assert len(hours) > 255
    assert answered("--study", DEMO, "--demand", hours, "--gpu-count", "1")["hours"] == 24


def test_a_file_that_cannot_be_read_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "day.csv"
    file.write_text("hour,tok/s\n0,5\n")

    def refused(_path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refused)
    result = asked("--study", DEMO, "--demand", str(file))
    assert result.exit_code == 1
    assert "day.csv: Permission denied" in result.output


def test_ratios_size_nothing() -> None:
    result = asked("--study", "eagle3_sglang_h100_llama31_8b", "--demand", "flat:5")
    assert result.exit_code == 2
    assert "no load has output tok/s in both arms" in result.output
