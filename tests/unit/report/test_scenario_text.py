"""Two scenarios side by side: what differs, and both results as the price page gives them."""

import math
from dataclasses import asdict
from datetime import date, datetime

import pytest

from lib.evidence.findings import find
from lib.money.cost import cost_per_million, monthly_saving
from lib.money.rates import book
from lib.money.scenario import Scenario
from lib.report.scenario_text import (
    Outcome,
    change_lines,
    kind_of,
    outcome,
    rate_source,
    side_by_side,
    title,
    version_table,
)
from lib.results.scenarios import StoredScenario
from lib.run import LoadKind
from tests.unit.evidence.builders import off, on, study

STUDY = study(off(1, 100.0), on(1, 250.0), off(8, 400.0), on(8, 600.0))
FOUND = find(STUDY)
CHOSEN = {
    "study": "s",
    "load": 1,
    "usd_per_gpu_hour": 5,
    "gpu_count": 1,
    "utilization": 1,
    "tokens_per_day": 1e7,
}
A = Scenario.of(CHOSEN)
DEARER = Scenario.of({**CHOSEN, "usd_per_gpu_hour": 6})


def test_an_outcome_is_the_price_and_its_readings() -> None:
    found = outcome(A, FOUND)
    assert found.pair is not None
    assert found.pair.complete is not None
    before, after, saving = found.pair.complete
    assert before.value == pytest.approx(cost_per_million(5, 100))
    assert after.value == pytest.approx(cost_per_million(5, 250))
    assert saving.value == pytest.approx(0.6)
    assert found.monthly is not None
    expected = asdict(monthly_saving(1e7 / 86400, 5, 100, 5, 250))
    assert asdict(found.monthly) == pytest.approx(expected)
    assert found.sentence.startswith("$5.56 instead of $13.89 per 1M output tokens at 1 concurrent")


def test_both_sides_say_whose_rate_they_rest_on_and_that_it_is_old() -> None:
    held, today = book(), date(2026, 12, 1)
    rate = held.find(today, gpu="L4", provider="AWS")[0]
    chosen = Scenario.of(
        {**CHOSEN, "usd_per_gpu_hour": f"{rate.usd_per_gpu_hour:.6g}", "rate": rate.id}
    )
    old = rate_source(chosen, held, date(2027, 12, 1))
    assert old == rate.cited(date(2027, 12, 1))
    assert "stale" in old
    dated = Scenario.of({**chosen.parameters, "priced_on": rate.effective_date.isoformat()})
    assert "stale" not in rate_source(dated, held, date(2027, 12, 1))
    typed = Scenario.of({**chosen.parameters, "usd_per_gpu_hour": 5})
    for other in (A, typed, Scenario.of({**CHOSEN, "rate": "nosuch"})):
        assert rate_source(other, held, today) == ""
    odd = Scenario.of({**chosen.parameters, "priced_on": "soon"})
    assert rate_source(odd, held, today) == rate.cited(today)

    table = side_by_side(
        ("old", chosen, outcome(chosen, FOUND, old)), ("typed", A, outcome(A, FOUND))
    )
    row = table["input or result"].index("$/GPU-h from")
    assert (table["A: old"][row], table["B: typed"][row]) == (old, "as typed")


def test_what_is_missing_is_said() -> None:
    found = outcome(Scenario.of({**CHOSEN, "usd_per_gpu_hour": None}), FOUND)
    assert (found.pair, found.monthly) == (None, None)
    assert "type a $/GPU-h" in found.sentence
    assert outcome(Scenario.of({**CHOSEN, "tokens_per_day": None}), FOUND).monthly is None
    unnamed = outcome(Scenario.of({**CHOSEN, "load": None}), FOUND)
    assert "Name your operating load" in unnamed.sentence


def test_the_service_level_of_a_scenario_counts() -> None:
    slow = study(off(1, 100.0, tpot_ms_p99=50.0), on(1, 250.0, tpot_ms_p99=20.0))
    tight = Scenario.of({**CHOSEN, "slo_tpot_ms": 40})
    assert "misses the SLO" in outcome(tight, find(slow)).sentence


def test_the_kind_of_load_is_the_one_named_else_the_commonest() -> None:
    mixed = study(*STUDY.runs, off(2, load_kind=LoadKind.BATCH))
    assert kind_of(A, mixed) is LoadKind.CONCURRENCY
    assert kind_of(Scenario.of({**CHOSEN, "load_kind": "batch size"}), mixed) is LoadKind.BATCH
    assert kind_of(Scenario.of({**CHOSEN, "load_kind": "batch size"}), STUDY) is (
        LoadKind.CONCURRENCY
    )


def test_the_change_in_words_and_dollars() -> None:
    assert change_lines(outcome(A, FOUND), outcome(DEARER, FOUND)) == [
        "Without speculation, per 1M output tokens: $13.89 → $16.67, $2.78 more.",
        "With speculation, per 1M output tokens: $5.56 → $6.67, $1.11 more.",
        "Saving: 60 % → 60 %, no change.",
        "Saving a month, hours scale with tokens: $2,535 → $3,042, $506.94 more.",
        "Saving a month, whole servers stay on: $3,650 → $4,380, $730.00 more.",
        "Saving a month, one server stays on either way: $0.00 → $0.00, no change.",
    ]
    back = change_lines(outcome(DEARER, FOUND), outcome(A, FOUND))
    assert back[0].endswith("$2.78 less.")


def test_a_side_without_a_price_says_why() -> None:
    bare = outcome(Scenario.of({"study": "s", "load": 1}), FOUND)
    assert change_lines(outcome(A, FOUND), bare) == [f"B is not priced. {bare.sentence}"]
    gone = Outcome("study 'x': there is none")
    assert change_lines(gone, gone) == [
        "A is not priced. study 'x': there is none",
        "B is not priced. study 'x': there is none",
    ]
    table = side_by_side(("a", A, outcome(A, FOUND)), ("b", A, gone))
    row = dict(zip(table["input or result"], table["B: b"], strict=True))
    assert row["Price"] == "study 'x': there is none"
    assert row["Saving"] == "–"


def test_side_by_side_holds_what_differs_and_both_results() -> None:
    table = side_by_side(("a", A, outcome(A, FOUND)), ("b", DEARER, outcome(DEARER, FOUND)))
    assert list(table) == ["input or result", "A: a", "B: b"]
    rows = dict(
        zip(table["input or result"], zip(table["A: a"], table["B: b"], strict=True), strict=True)
    )
    assert next(iter(rows)) == "Price"
    assert rows["Price"] == ("5 $ per GPU-hour", "6 $ per GPU-hour")
    assert rows["$ per 1M output tokens, off"] == ("$13.89", "$16.67")
    assert rows["$ per 1M output tokens, with"] == ("$5.56", "$6.67")
    assert rows["Service level"] == ("SLO unknown", "SLO unknown")
    assert rows["Basis of the prices"] == ("measured", "measured")
    assert rows["Saving a month, whole servers stay on"] == ("$3,650", "$4,380")


def test_a_saving_that_is_not_told_from_none_says_so() -> None:
    close = find(study(off(1, 100.0), on(1, 100.5)))
    found = outcome(A, close)
    lines = change_lines(found, found)
    assert lines[2] == "Saving: 0 % (too close to call) → 0 % (too close to call), no change."
    assert lines[3].endswith("no change (too close to call).")
    table = side_by_side(("a", A, found), ("b", DEARER, outcome(DEARER, close)))
    row = dict(zip(table["input or result"], table["A: a"], strict=True))
    assert row["Saving"].endswith("(too close to call)")


def test_one_name_twice_keeps_both_columns() -> None:
    table = side_by_side(("a", A, outcome(A, FOUND)), ("a", DEARER, outcome(DEARER, FOUND)))
    assert len(table) == 3


def test_intervals_of_repeats_are_shown() -> None:
    repeats = study(*(off(1, x) for x in (99.0, 100.0, 101.0)), *(on(1, x) for x in (249.0, 251.0)))
    table = side_by_side(
        ("a", A, outcome(A, find(repeats))), ("b", DEARER, outcome(DEARER, find(repeats)))
    )
    row = dict(zip(table["input or result"], table["A: a"], strict=True))
    assert " to $" in row["$ per 1M output tokens, off"]
    assert row["Saving"].startswith("60 % (")


def test_the_list_of_versions() -> None:
    stored = StoredScenario("plan", 2, A.json, A.hash, "why", "ann", datetime(2026, 5, 1, 9, 30))
    assert title(stored) == "plan, version 2"
    assert version_table([stored]) == {
        "scenario": ["plan"],
        "version": [2],
        "note": ["why"],
        "by": ["ann"],
        "saved, UTC": ["2026-05-01 09:30"],
        "hash": [A.hash],
    }


def test_an_unlimited_rate_is_a_load_like_another() -> None:
    rated = study(
        off(math.inf, 100.0, load_kind=LoadKind.REQUEST_RATE),
        on(math.inf, 250.0, load_kind=LoadKind.REQUEST_RATE),
    )
    found = outcome(Scenario.of({**CHOSEN, "load": "no limit"}), find(rated))
    assert "no request limit" in found.sentence
