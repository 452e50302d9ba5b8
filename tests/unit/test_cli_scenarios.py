"""Saved scenarios from the command line: listed, shown, and priced as on the page."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from lib.money.rates import book
from lib.money.scenario import Scenario
from lib.results.store import Store
from tests.unit.test_cli_studies import answer, run

LINK = (
    "study=guidellm-0.8.1-simulated&load=8&usd_per_gpu_hour=2&gpu_count=1&utilization=0.6"
    "&tokens_per_day=10000000"
)


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scenario:
    monkeypatch.setenv("DRAFTWORTH_STORE", str(tmp_path / "store.duckdb"))
    scenario = Scenario.from_link(LINK)
    dearer = Scenario.from_link(LINK.replace("usd_per_gpu_hour=2", "usd_per_gpu_hour=4"))
    store = Store.open()
    store.save_scenario("plan", scenario.json, scenario.hash, "as quoted", "ann")
    store.save_scenario("plan", dearer.json, dearer.hash)
    store.save_scenario("elsewhere", '{"study":"gone"}', "x")
    store.close()
    return scenario


def test_every_version_is_listed(saved: Scenario) -> None:
    rows = answer("scenario", "list")["scenarios"]
    assert [(r["name"], r["version"]) for r in rows] == [
        ("elsewhere", 1),
        ("plan", 2),
        ("plan", 1),
    ]
    assert rows[2]["hash"] == saved.hash
    assert (rows[2]["note"], rows[2]["by"]) == ("as quoted", "ann")
    assert rows[2]["saved_at"].endswith("Z")
    assert "version 2" in run("scenario", "list").stdout


def test_a_rate_of_the_book_is_named_with_its_age(saved: Scenario) -> None:
    rate = book().find(date(2026, 12, 1), gpu="L4", provider="AWS")[0]
    paid = {"usd_per_gpu_hour": rate.as_typed, "rate": rate.id, "priced_on": "2027-12-01"}
    scenario = Scenario.of({**saved.parameters, **paid})
    store = Store.open()
    store.save_scenario("listed", scenario.json, scenario.hash)
    store.close()
    shown = answer("scenario", "show", "listed")
    assert shown["usd_per_gpu_hour_from"] == rate.cited(date(2027, 12, 1))
    assert "usd_per_gpu_hour_from" not in answer("scenario", "show", "plan")


def test_a_version_is_shown_with_its_price(saved: Scenario) -> None:
    last: dict[str, Any] = answer("scenario", "show", "plan")
    first = answer("scenario", "show", "plan", "--version", "1")
    assert (last["version"], first["version"]) == (2, 1)
    assert first["parameters"] == saved.parameters
    assert Scenario.from_link(first["link"].partition("?")[2]) == saved
    assert last["base_usd_per_million"] == pytest.approx(2 * first["base_usd_per_million"])
    assert last["saving_fraction"] == pytest.approx(first["saving_fraction"])
    low, high = first["saving_fraction_interval"]
    assert low < first["saving_fraction"] < high
    assert first["saving_usd_per_month"].keys() == {"hours_scale", "whole_servers", "one_server"}
    assert "simulated" in first["caveat"]


def test_a_study_that_is_gone_leaves_the_parameters(saved: Scenario) -> None:
    said = answer("scenario", "show", "elsewhere")
    assert said["parameters"] == {"study": "gone"}
    assert "there is none" in said["answer"]
    assert "base_usd_per_million" not in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nothing",), "there is none; saved are: elsewhere, plan"),
        (("plan", "--version", "3"), "its versions are 1 to 2"),
    ],
)
def test_what_is_not_there_is_one_line(
    saved: Scenario, words: tuple[str, ...], message: str
) -> None:
    result = run("scenario", "show", *words, "--json")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
