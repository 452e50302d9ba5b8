"""The first gates on a study's own counts, and evidence that was measured on something else."""

from dataclasses import replace

import numpy as np
import pytest

from lib import decision
from lib.decision import Gate, ScreenInputs, State
from lib.decision.drafting import differing
from lib.errors import NotComparable
from lib.estimate import Basis
from lib.evidence.findings import Findings, find
from lib.evidence.schedule import Schedule, build
from lib.money.pricing import Rate, price_pairs
from lib.results.requests import RequestAcceptance
from lib.run import SpecState, Study
from tests.unit.test_decision import run, sweep

COUNTS = {"drafts": 713, "draft_tokens": 2139, "accepted_tokens": 991}
POSITIONS = (477, 319, 195)
TYPED = ScreenInputs(0.7, 3, 0.1, Basis.ASSUMED, "From your sliders.")
EXAMPLE = ScreenInputs(0.75, 7, 0.02, Basis.PUBLISHED, "From a paper.")


def counted(found: Findings, k: int = 3, **fields: object) -> Findings:
    """The study with 713 drafts of K = 3 in each speculating run: τ = 1 + 991/713 = 2.39."""
    runs = tuple(
        replace(
            r,
            num_speculative_tokens=k,
            accepted_per_position=POSITIONS,
            **COUNTS,  # type: ignore[arg-type]
            **fields,  # type: ignore[arg-type]
        )
        if r.spec_state is SpecState.ON
        else r
        for r in found.study.runs
    )
    return find(replace(found.study, runs=runs))


def path(
    found: Findings, typed: ScreenInputs, load: float | None = 1, rate: Rate | None = None
) -> tuple[Gate, ...]:
    result = decision.verdict(found, load)
    pairs = [p for a in found.arms for p in price_pairs(found, a, rate or Rate())]
    low = decision.low_batch(found, result.arm, typed)
    return decision.gates(found, result, typed, pairs, "Type it.", low, rate)


def test_tau_from_the_studys_counts_and_a_typed_c() -> None:
    """τ 2.39 over 3·0.1 + 1 is S = 1.84."""
    low, screen, *_ = path(counted(sweep({1: 1.5})), TYPED)
    assert "τ 2.39, α 0.657" in low.known
    assert "c 0.1, assumed" in low.known
    assert low.state is State.UNDECIDED
    assert low.basis is Basis.MEASURED
    assert low.missing.startswith("The draft cost c is assumed")
    assert "S = 1.84× at low batch for the measured τ 2.39" in screen.known
    assert screen.state is State.UNDECIDED


def test_the_published_examples_c_is_not_yours() -> None:
    low, screen, *_ = path(counted(sweep({1: 1.5})), EXAMPLE)
    assert low.state is State.MISSING
    assert "c is not known" in low.missing
    assert screen.state is State.MISSING


def test_a_high_load_is_not_low_batch() -> None:
    low, *_ = path(counted(sweep({64: 1.5})), TYPED, 64)
    assert "64 is not low batch" in low.missing


def test_no_counts_leave_the_first_gate_missing() -> None:
    low, *_ = path(sweep({1: 1.5}), TYPED)
    assert low.state is State.MISSING
    assert low.page == "acceptance"


def test_c_from_a_sweep_over_k() -> None:
    """R = 1.1 + 0.1 K: τ 2.0, 2.4, 2.8 at K = 1, 2, 4 gives M 2/1.2, 2.4/1.3, 2.8/1.5; c 0.1."""
    runs = [run(1, 100 * w) for w in (0.99, 1, 1.01)]
    for k, tau in ((1, 2.0), (2, 2.4), (4, 2.8)):
        for w in (0.99, 1, 1.01):
            runs.append(run(1, 100 * w * tau / (1.1 + 0.1 * k), k, accept_length=tau))
    low, *_ = path(find(Study("s", tuple(runs))), EXAMPLE)
    assert "c 0.1, derived: slope of τ / S over K = 1, 2, 4 at 1" in low.known


def by_request(found: Findings) -> dict[str, RequestAcceptance]:
    """Each speculating run's 120 requests: 8 rounds each, of which 6, 10 or 14 drafts kept."""
    rounds, accepted = np.full(120, 8), np.tile([6, 10, 14], 40)
    counts = RequestAcceptance(accepted, rounds, None, None)
    return {r.run_id: counts for r in found.study.runs if r.spec_state is SpecState.ON}


def test_counts_by_request_and_a_measured_c_pass_the_first_gate() -> None:
    """As above, R = 1.1 + 0.1 K; τ of K = 4 is 1 + 10 / 8 by the requests: S = 2.25 / 1.4."""
    runs = [run(1, 100 * w) for w in (0.99, 1, 1.01)]
    for k, tau in ((1, 2.0), (2, 2.4), (4, 2.8)):
        for w in (0.99, 1, 1.01):
            runs.append(run(1, 100 * w * tau / (1.1 + 0.1 * k), k, accept_length=tau))
    found = find(Study("s", tuple(runs)))
    for counts, state in ((by_request(found), State.PASSED), ({}, State.UNDECIDED)):
        low = decision.low_batch(found, "eagle3:4", None, counts)
        assert low is not None
        result = decision.verdict(found, 1)
        first, screen, *_ = decision.gates(found, result, None, [], "Type it.", low)
        assert first.state is state
        assert ("counts by request" in first.known) is (state is State.PASSED)
        assert ("no interval by request" in first.missing) is (state is State.UNDECIDED)
        assert screen.state is state


def test_counts_by_request_do_not_pass_with_a_typed_c_or_a_high_load() -> None:
    for load in (1, 64):
        found = counted(sweep({load: 1.5}))
        low = decision.low_batch(found, None, TYPED, by_request(found))
        assert low is not None
        assert (low.by_request, low.state) == (True, State.UNDECIDED)


def test_counts_of_another_engine_version_are_stale() -> None:
    base = sweep({1: 1.5, 8: 1.2})
    old = run(1, 100, 4, drafts=100, draft_tokens=400, accepted_tokens=150, engine_version="0")
    found = find(replace(base.study, runs=(*base.study.runs, old)))
    low, screen, *_ = path(found, TYPED)
    assert low.state is State.STALE
    assert screen.state is State.STALE
    assert low.missing.startswith("Measured on engine version 0, not 1: measure again")


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("gpu", "h", "GPU h, not g"),
        ("target", "other", "target other, not m"),
        ("draft_model", "d1", ""),  # not recorded on the other side: says nothing
        ("dataset", "code", "traffic code, not chat"),
    ],
)
def test_what_makes_evidence_stale(field: str, value: str, name: str) -> None:
    said = differing([run(1, 100, 4, **{field: value})], [run(1, 100, 4)])
    assert said == ((name,) if name else ())


def test_a_price_recorded_with_the_runs_against_the_one_typed() -> None:
    """$12/h recorded; $2.50 a GPU-hour on 4 GPUs is $10/h now."""
    found = sweep({1: 1.5}, usd_per_hour=12.0, gpu_count=4)
    price = path(found, TYPED, rate=Rate(2.5, 4, 0.5))[3]
    assert price.state is State.STALE
    assert "$12.00, is used; you type $10.00" in price.missing
    same = path(found, TYPED, rate=Rate(3.0, 4, 0.5))[3]
    assert same.state is State.PASSED


def test_a_price_says_whose_rate_it_is_and_that_it_is_old() -> None:
    source = "AWS g6.xlarge, L4, on-demand, effective 2026-01-21; stale: 314 days old"
    known = path(sweep({1: 1.5}), TYPED, rate=Rate(2.5, 4, 0.5, source=source))[3].known
    assert known.endswith(f"% less. $/GPU-h: {source}.")
    assert "$/GPU-h" not in path(sweep({1: 1.5}), TYPED, rate=Rate(2.5, 4, 0.5))[3].known
    recorded = sweep({1: 1.5}, usd_per_hour=10.0, gpu_count=4)
    assert source not in path(recorded, TYPED, rate=Rate(2.5, 4, 0.5, source=source))[3].known


def test_a_schedule_measured_as_its_own_arm_passes_its_gate() -> None:
    base = sweep({4: 1.5})
    own = [replace(run(4, 560 * w, 4), schedule="[[1, 8, 4], [9, 64, 0]]") for w in (0.99, 1, 1.01)]
    found = find(replace(base.study, runs=(*base.study.runs, *own)))
    schedule = path(found, TYPED, 4)[4]
    assert schedule.state is State.PASSED
    assert "eagle3:schedule, measured as its own arm: 1.40× at 4" in schedule.known


def test_a_schedule_of_another_gpu_is_stale() -> None:
    base = sweep({4: 1.5})
    own = [replace(run(4, 560 * w, 4, gpu="h"), schedule="[[1, 64, 2]]") for w in (0.99, 1, 1.01)]
    found = find(replace(base.study, runs=(*base.study.runs, *own)))
    assert path(found, TYPED, 4)[4].state is State.STALE


def test_random_tokens_are_said_at_the_price_and_the_schedule() -> None:
    """C52: an accepted figure carries the note into its gate; an open one says what is missing."""
    found = sweep({1: 1.5, 8: 1.4}, dataset="random")
    result, rate = decision.verdict(found, 1), Rate(2.0, 1, 1.0)

    def two(agreed: bool) -> tuple[Gate, Gate]:
        pairs = [p for a in found.arms for p in price_pairs(found, a, rate, accept_random=agreed)]
        try:
            built: Schedule | str = build(found.comparison, 8, accept_random=agreed)
        except NotComparable as error:
            built = str(error)
        here = [p for p in pairs if p.on.load == 1]
        _, _, _, price, schedule, _ = decision.gates(found, result, TYPED, here, built)
        return price, schedule

    for gate in two(agreed=False):
        assert gate.state is State.MISSING
        assert "random tokens" in gate.missing
        assert gate.known == ""
    price, _ = two(agreed=True)
    assert price.known
    assert "On random tokens" in price.missing
