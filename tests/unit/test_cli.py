"""The command line prints one JSON object, or one line that says why not."""

import json

import pytest
from typer.testing import CliRunner, Result

from lib.cli import app
from lib.cli.output import plain


def run(*args: str) -> Result:
    return CliRunner().invoke(app, list(args))


def test_screen() -> None:
    result = run("screen", "--alpha", "0.75", "--gamma", "4", "--c", "0.1", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["tau"] == pytest.approx(3.05078125)
    assert found["speedup"] == pytest.approx(2.17913, abs=5e-6)
    assert found["break_even_c"] == pytest.approx(0.512695, abs=5e-7)
    assert found["break_even_alpha"] == pytest.approx(0.287108, abs=5e-7)
    assert found["best_gamma"] == 5
    assert found["verdict"] == "candidate"


def test_screen_says_when_no_gamma_wins() -> None:
    result = run("screen", "--alpha", "0.2", "--gamma", "4", "--c", "0.3", "--json")
    found = json.loads(result.stdout)
    assert found["verdict"] == "reject"
    assert any("Corollary 3.9" in note for note in found["notes"])


def test_screen_at_c_above_one_has_no_break_even_alpha() -> None:
    result = run("screen", "--alpha", "0.9", "--gamma", "4", "--c", "1.5", "--json")
    assert json.loads(result.stdout)["break_even_alpha"] is None


def test_price() -> None:
    result = run(
        *("price", "--usd-per-hour", "2", "--tokens-per-second", "45", "--multiplier", "1.8"),
        "--json",
    )
    found = json.loads(result.stdout)
    assert round(found["base_usd_per_million"], 2) == 12.35
    assert round(found["speculative_usd_per_million"], 2) == 6.86
    assert found["saving_fraction"] == pytest.approx(4 / 9)
    assert found["break_even_extra_usd_per_hour"] == pytest.approx(1.6)
    assert found["break_even_multiplier"] == 1


def test_price_with_extra_hardware() -> None:
    result = run(
        *("price", "--usd-per-hour", "2", "--tokens-per-second", "45", "--multiplier", "1.15"),
        *("--extra-usd-per-hour", "1.2", "--json"),
    )
    found = json.loads(result.stdout)
    assert round(found["speculative_usd_per_million"], 2) == 17.18
    assert found["break_even_multiplier"] == pytest.approx(1.6)


@pytest.mark.parametrize(
    "args",
    [
        ("screen", "--alpha", "80", "--gamma", "4", "--c", "0.1"),
        ("screen", "--alpha", "0.8", "--gamma", "0", "--c", "0.1"),
        ("price", "--usd-per-hour", "2", "--tokens-per-second", "0", "--multiplier", "1.8"),
        ("schedule", "--max-num-seqs", "64"),
        ("schedule", "--max-num-seqs", "64", "--check", "[[1,2,3]]"),
    ],
)
def test_wrong_values_are_one_line_and_status_2(args: tuple[str, ...]) -> None:
    result = run(*args, "--json")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.strip().splitlines()) == 1


def test_help_lists_the_settings() -> None:
    result = run("--help")
    assert "DRAFTWORTH_STORE" in result.stdout


def test_plain_leaves_only_what_json_has() -> None:
    assert plain({"a": float("inf"), "b": (float("-inf"), float("nan"), 1)}) == {
        "a": "inf",
        "b": ["-inf", None, 1],
    }
