"""Candidate against baseline: which runs are matched, what may differ, and what each side says."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.errors import InputError, NotComparable
from lib.evidence.gate import Check, Matched, checks, chosen, match
from lib.results.requests import RequestAcceptance
from lib.run import LoadKind, Run
from tests.unit.evidence.builders import off, on, study


def labelled(label: str, *runs: Run, **fields: Any) -> tuple[Run, ...]:
    return tuple(replace(r, label=label, **fields) for r in runs)


def matched(old: tuple[Run, ...], new: tuple[Run, ...], *overrides: str) -> Matched:
    return match(study(*old, *new), old, new, frozenset(overrides))


def only(found: Matched, name: str, **more: Any) -> Check:
    (check,) = [c for c in checks(found, **more) if c.name == name]
    return check


def test_runs_are_named_by_label_or_by_id() -> None:
    old, new = labelled("main-1", on(1), on(2)), labelled("pr-7", on(1))
    whole = study(*old, *new)
    assert chosen(whole, "baseline", "main-*") == old
    assert chosen(whole, "baseline", f"{old[1].run_id}, pr-?") == (old[1], *new)
    assert chosen(whole, "candidate", new[0].run_id) == new
    with pytest.raises(InputError, match=r"--candidate 'x': .*there are main-1, pr-7"):
        chosen(whole, "candidate", "pr-7,x")
    with pytest.raises(InputError, match="name runs"):
        chosen(whole, "candidate", " , ")


def test_a_run_stands_on_one_side() -> None:
    run = on(1)
    with pytest.raises(InputError, match="on one side"):
        matched((run,), (run, on(2)))


def test_cells_are_matched_by_arm_kind_and_load() -> None:
    old = (off(1), on(1), on(4), on(8), on(8, load_kind=LoadKind.BATCH))
    found = matched(old, (off(1), on(1), on(1), on(4, k=2), on(8)))
    assert [(c.text, len(c.candidate)) for c in found.cells] == [
        ("off at 1 concurrent", 1),
        ("eagle3:4 at 1 concurrent", 2),
        ("eagle3:4 at 8 concurrent", 1),
    ]
    assert found.not_measured == ("eagle3:4 at 8 in a batch", "eagle3:4 at 4 concurrent")
    assert found.notes == ("not in the baseline, left out: eagle3:2 at 4 concurrent",)


def test_one_arm_a_side_is_matched_whatever_its_name() -> None:
    found = matched((on(1), on(2)), (on(1, k=2), on(2, k=2)))
    assert [c.text for c in found.cells] == ["eagle3:2 at 1 concurrent", "eagle3:2 at 2 concurrent"]
    assert found.notes == ("the arms differ: baseline eagle3:4, candidate eagle3:2",)
    assert found.differences == ("num_speculative_tokens: baseline 4, candidate 2",)


def test_no_shared_cell_says_what_there_is() -> None:
    with pytest.raises(NotComparable, match=r"baseline has eagle3:4 at 1 concurrent, the candidat"):
        matched((on(1),), (on(2),))


def test_what_is_under_test_may_differ() -> None:
    old = (on(1, build="a", engine_version="1", draft_model="x", usd_per_hour=2.0),)
    new = (on(1, build="b", engine_version="2", draft_model="y", usd_per_hour=3.0),)
    assert matched(old, new).differences == (
        "engine_version: baseline 1, candidate 2",
        "build: baseline a, candidate b",
        "draft_model: baseline x, candidate y",
    )


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("dataset", ("chat", "code")),
        ("temperature", (0.0, 1.0)),
        ("max_num_seqs", (64, 128)),
        ("gpu", ("L4", "H100")),
        ("gpu_count", (1, 2)),
        ("output_len", (100.0, 130.0)),
    ],
)
def test_any_other_difference_is_refused_unless_overridden(
    field: str, values: tuple[Any, Any]
) -> None:
    sides = [(on(1, **{field: v}), off(1, **{field: v})) for v in values]
    with pytest.raises(NotComparable, match=f"{field}: baseline .*--override FIELD"):
        matched(*sides)
    (said,) = matched(*sides, field).differences
    assert said.startswith(f"{field}: baseline ")
    assert said.endswith("(overridden by a person)")


def test_a_side_that_mixes_builds_has_no_repeats() -> None:
    old = (on(1, build="a"), on(1, build="b"))
    with pytest.raises(NotComparable, match="build varies within the baseline at eagle3:4 at 1"):
        matched(old, (on(1, build="c"),))
    with pytest.raises(InputError, match="override 'hat'"):
        matched(old, (on(1),), "hat")


def test_an_empty_run_is_no_measurement() -> None:
    found = matched((on(1), on(2)), (on(1), on(2, completed=0)))
    assert found.not_measured == ("eagle3:4 at 2 concurrent",)
    assert "completed no request" in found.notes[0]


def test_a_side_that_may_not_be_priced_says_so() -> None:
    bad = {"completed": 90, "failed": 10}
    speed = only(matched((on(1),), (on(1, **bad),)), "output_tps")
    assert (speed.baseline is None, speed.candidate, speed.change) == (False, None, None)
    assert speed.why == "candidate: 10 of 100 requests failed (10.0%)"
    tpot = only(matched((on(1, tpot_ms_mean=9.0),), (on(1),)), "tpot_ms")
    assert tpot.why == "candidate: states no mean tpot"


def test_tau_by_repeats() -> None:
    lengths = (2.8, 2.9, 3.0)
    old = tuple(on(1, accept_length=t) for t in lengths)
    new = tuple(on(1, accept_length=0.9 * t) for t in lengths)
    check = only(matched(old, new), "tau")
    assert check.change is not None
    assert check.change.multiplier == pytest.approx(0.9)
    assert check.change.df == pytest.approx(4)
    assert check.repeatable


def test_greedy_repeats_of_one_tau_are_no_copies() -> None:
    old, new = (tuple(on(1, accept_length=t) for _ in range(3)) for t in (2.8, 2.7))
    change = only(matched(old, new), "tau").change
    assert change is not None
    assert change.interval() == pytest.approx((2.7 / 2.8, 2.7 / 2.8))
    change = only(matched(old[:1], new), "tau").change
    assert change is not None
    assert change.interval() is None


def test_tau_by_request() -> None:
    """A ratio of totals: se / tau is the error of its log, requests of one run less 1 its df."""
    rounds = np.array([10, 12, 8, 11])
    kept = np.array([18, 25, 13, 24])
    counts = RequestAcceptance(kept, rounds, rounds * 4, None)
    totals = {"drafts": 41, "draft_tokens": 164, "accepted_tokens": 80}
    old, new = (on(1, **totals),), (on(1, **totals),)
    by_run = {r.run_id: counts for r in (*old, *new)}
    check = only(matched(old, new), "tau", requests=by_run)
    ratio = kept.sum() / rounds.sum()
    residuals = kept - ratio * rounds
    se = math.sqrt(4 / 3 * (residuals**2).sum()) / rounds.sum() / (1 + ratio)
    assert check.baseline is not None
    assert check.baseline.mean == pytest.approx(math.log(1 + ratio))
    assert check.baseline.variance == pytest.approx(se**2)
    assert (check.baseline.df, check.baseline.n) == (3, 1)
    assert check.change is not None
    assert (check.change.log_m, check.repeatable) == (0.0, False)
    assert check.change.df == pytest.approx(6)


@pytest.mark.parametrize("arm", [off(1), on(1, k=0)])
def test_where_nothing_is_drafted_there_is_no_tau(arm: Run) -> None:
    check = only(matched((arm,), (on(1, accept_length=2.0),)), "tau")
    assert (check.baseline, check.candidate) == (None, None)
    assert check.why == "a side drafts nothing"


speeds = st.lists(st.floats(50, 500), min_size=1, max_size=4)


@given(speeds, speeds)
def test_swapped_sides_mirror_the_ratio(a: list[float], b: list[float]) -> None:
    old, new = (tuple(on(1, tps, accept_length=1 + tps / 500) for tps in side) for side in (a, b))
    forth, back = checks(matched(old, new)), checks(matched(new, old))
    for one, other in zip(forth, back, strict=True):
        there, mirrored = one.change, other.change
        if one.name == "tpot_ms":
            continue
        assert there is not None
        assert mirrored is not None
        assert mirrored.log_m == pytest.approx(-there.log_m, abs=1e-12)
        ends, turned = there.log_interval(), mirrored.log_interval()
        assert (ends is None) == (turned is None)
        if ends is not None and turned is not None:
            assert turned == pytest.approx((-ends[1], -ends[0]), abs=1e-9)
