"""The gate's verdict: each way on published numbers, and no false alarm on equal sides."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.coverage import MOST as LIMIT
from bench.coverage import regressed
from lib.decision.regression import MetricVerdict, Outcome, Regression, judge
from lib.errors import InputError
from lib.evidence.gate import checks, match
from lib.evidence.ratio import METRICS, log_mean_of_runs
from lib.money.gate import at_most, in_dollars
from lib.run import Run
from tests.unit.evidence.builders import SIMULATED, off, on, study

# llama.cpp, draft of 8 tokens: (mean tok/s, sd) without and with by concurrency, 3 runs each.
LLAMA_CPP = {
    1: ((109.7, 0.57), (30.6, 0.14)),
    4: ((154.3, 0.27), (27.0, 0.73)),
    8: ((180.0, 15.21), (28.1, 0.66)),
}


def gated(
    old: tuple[Run, ...],
    new: tuple[Run, ...],
    most: float = 0.02,
    usd_per_hour: float | None = None,
    bound: float | None = None,
    **consent: bool,
) -> Regression:
    matched = match(study(*old, *new), old, new)
    found = checks(matched)
    dollars = [in_dollars(c, usd_per_hour) for c in found if c.name == "output_tps"]
    extra = () if bound is None else at_most(dollars, bound, **consent)
    return judge(matched, [*dollars, *extra, *(c for c in found if c.name != "output_tps")], most)


def metric(found: Regression, name: str) -> MetricVerdict:
    (one,) = [m for m in found.metrics if m.name == name]
    return one


def verdicts(found: Regression) -> dict[str, str]:
    return {m.name: m.verdict.value for m in found.metrics}


def published(side: int, speedup: float = 1.0) -> tuple[Run, ...]:
    made = (off, on)[side]
    return tuple(
        made(x, v[side][0] * speedup, output_tps_sd=v[side][1] * speedup, output_tps_n=3)
        for x, v in LLAMA_CPP.items()
    )


def test_a_published_table_with_its_spread_each_way() -> None:
    found = gated(published(0), published(1))
    assert found.verdict is Outcome.REGRESSED
    assert found.level == pytest.approx(1 - 0.05 / 3)
    worst = metric(found, "usd_per_million").deciding
    assert worst.at == "eagle3:4 at 8 concurrent"
    assert worst.ratio == pytest.approx(180 / 28.1)
    assert worst.low is not None
    assert worst.low > worst.limit == pytest.approx(1.02)
    assert verdicts(found) == {
        "usd_per_million": "regressed",
        "tpot_ms": "missing",
        "tau": "missing",
        "crossover": "missing",
    }
    assert gated(published(1), published(0)).verdict is Outcome.PASS
    same = gated(published(0), published(0))
    assert same.verdict is Outcome.UNDECIDED, "±15.21 at 8 leaves 2 % open"
    by_load = {t.at: t.verdict.value for t in metric(same, "usd_per_million").tests}
    assert by_load == {
        "off at 1 concurrent": "pass",
        "off at 4 concurrent": "pass",
        "off at 8 concurrent": "undecided",
    }


def simulated(arm: str, loads: tuple[int, ...], **fields: Any) -> tuple[Run, ...]:
    def make(load: float, tps: float) -> Run:
        return off(load, tps, **fields) if arm == "off" else on(load, tps, k=int(arm[1]), **fields)

    return tuple(make(x, tps) for x in loads for tps in SIMULATED[arm][x])


@pytest.mark.parametrize(
    ("loads", "verdict"),
    [
        ((1,), Outcome.PASS),
        ((32,), Outcome.REGRESSED),
        ((2,), Outcome.UNDECIDED),
        ((1, 2), Outcome.UNDECIDED),
        ((1, 2, 64), Outcome.REGRESSED),
    ],
)
def test_the_worst_load_decides(loads: tuple[int, ...], verdict: Outcome) -> None:
    """K = 4 after K = 2 on three repeats: ahead at 1 and 8, not told apart at 2, behind at 64."""
    found = gated(simulated("k2", loads), simulated("k4", loads))
    assert found.verdict is verdict
    assert found.level == 1 - 0.05 / len(loads)


def test_the_repeats_that_it_asks_for_would_settle_it() -> None:
    found = gated(simulated("k2", (2,)), simulated("k4", (2,)))
    more = found.repeats_needed
    assert more is not None
    assert more > 0
    a, b = (log_mean_of_runs(simulated(arm, (2,)), METRICS["output_tps"]) for arm in ("k2", "k4"))
    assert a is not None
    assert b is not None
    assert a.variance is not None
    assert b.variance is not None
    gap = abs(b.mean - a.mean + math.log(1.02))
    with_more = math.sqrt((a.variance + b.variance) * 3 / (3 + more))
    assert 1.96 * with_more < gap, "the interval then leaves the limit, even if it were normal"
    assert gated(simulated("k2", (1,)), simulated("k4", (1,))).repeats_needed == 0


def test_one_run_a_side_decides_nothing() -> None:
    found = gated((on(1, 100.0),), (on(1, 20.0),))
    assert found.verdict is Outcome.UNDECIDED
    assert found.repeats_needed == 2
    assert metric(found, "usd_per_million").deciding.why == "one run a side has no interval"
    copies = gated((on(1, 100.0), on(1, 100.0)), (on(1, 20.0), on(1, 20.0)))
    assert copies.verdict is Outcome.UNDECIDED
    assert "copies" in metric(copies, "usd_per_million").deciding.why
    assert copies.repeats_needed is None


def repeats(tps: float, **fields: Any) -> tuple[Run, ...]:
    return tuple(
        on(8, tps * f, **{n: v * f for n, v in fields.items()}) for f in (0.999, 1.0, 1.001)
    )


def test_tpot_and_tau_decide_beside_the_price() -> None:
    old = repeats(100, tpot_ms_mean=10.0, accept_length=3.0)
    slow = gated(old, repeats(100, tpot_ms_mean=11.0, accept_length=3.0))
    assert verdicts(slow) == {
        "usd_per_million": "pass",
        "tpot_ms": "regressed",
        "tau": "pass",
        "crossover": "missing",
    }
    tpot = metric(slow, "tpot_ms").deciding
    assert (tpot.baseline, tpot.candidate) == pytest.approx((10, 11), rel=1e-5)
    short = gated(old, repeats(100, tpot_ms_mean=10.0, accept_length=2.8))
    assert verdicts(short)["tau"] == "regressed"
    tau = metric(short, "tau").deciding
    assert tau.limit == pytest.approx(1 / 1.02)
    assert tau.high is not None
    assert tau.high < tau.limit
    same = gated(old, repeats(100, tpot_ms_mean=10.0, accept_length=3.0))
    assert same.verdict is Outcome.PASS


def test_what_one_side_lacks_is_undecided_and_what_both_lack_is_missing() -> None:
    found = gated(repeats(100, tpot_ms_mean=10.0), repeats(100))
    assert verdicts(found)["tpot_ms"] == "undecided"
    assert found.verdict is Outcome.UNDECIDED
    assert found.repeats_needed is None
    nothing = gated((on(1, None),), (on(1, None),))
    assert set(verdicts(nothing).values()) == {"missing"}
    assert nothing.verdict is Outcome.UNDECIDED


def test_a_load_that_the_candidate_lacks_passes_nothing() -> None:
    old, new = repeats(100), repeats(100)
    assert gated(old, new).verdict is Outcome.PASS
    assert gated((*old, on(16, 180.0)), new).verdict is Outcome.UNDECIDED
    assert gated((*old, on(16, 180.0)), repeats(80)).verdict is Outcome.REGRESSED
    assert gated(old, (*new, on(16, 180.0))).verdict is Outcome.PASS


def test_a_bound_in_dollars_is_on_the_candidates_own_interval() -> None:
    """$2/h over 3600 s at 100 tok/s is $5.56 a million."""
    sides = repeats(100), repeats(100)
    for bound, verdict in ((5.4, "regressed"), (5.5556, "undecided"), (5.7, "pass")):
        one = metric(gated(*sides, usd_per_hour=2, bound=bound), "usd_per_million_max")
        assert one.verdict.value == verdict
        test = one.deciding
        assert test.limit == bound
        assert test.candidate == pytest.approx(5.5556, rel=1e-4)
        assert (test.ratio, test.baseline) == (None, None)
        assert test.low is not None
        assert test.high is not None
        assert test.low < 5.5556 < test.high
    assert metric(gated(*sides, usd_per_hour=2), "usd_per_million").deciding.baseline == (
        pytest.approx(5.5556, rel=1e-4)
    )
    assert metric(gated(*sides), "usd_per_million").deciding.baseline is None


def test_a_bound_is_on_the_arms_that_speculate() -> None:
    def side() -> tuple[Run, ...]:
        return *(off(8, 20 * f) for f in (0.999, 1.0, 1.001)), *repeats(100)

    assert gated(side(), side()).verdict is Outcome.PASS
    bounded = gated(side(), side(), usd_per_hour=2, bound=6)
    tests = metric(bounded, "usd_per_million_max").tests
    assert [t.at for t in tests] == ["eagle3:4 at 8 concurrent"]
    with pytest.raises(InputError, match="max-usd-per-million"):
        gated(repeats(1), repeats(1), usd_per_hour=2, bound=0)


def test_a_price_on_random_tokens_needs_consent() -> None:
    def random() -> tuple[Run, ...]:
        return tuple(on(8, 100 * f, dataset="random") for f in (0.999, 1.0, 1.001))

    asked = gated(random(), random(), usd_per_hour=2, bound=6)
    test = metric(asked, "usd_per_million_max").deciding
    assert (test.verdict, test.candidate, test.limit) == (Outcome.UNDECIDED, None, 6)
    assert "--accept-random" in test.why
    allowed = gated(random(), random(), usd_per_hour=2, bound=6, accept_random=True)
    assert allowed.verdict is Outcome.PASS


def test_c27_the_change_is_split_into_acceptance_and_step_cost() -> None:
    """C27: tau 2.941 to 2.532, tok/s 69.23 to 57.67: step time +3.3 %, 82 % is acceptance."""
    old = on(1, 69.23, drafts=68, draft_tokens=198, accepted_tokens=132)
    new = on(1, 57.67, drafts=79, draft_tokens=231, accepted_tokens=121)
    found = gated((old,), (new,)).split
    assert found is not None
    assert found.acceptance == pytest.approx(0.861, abs=5e-4)
    assert found.step_cost == pytest.approx(1.033, abs=5e-4)
    assert found.share == pytest.approx(0.82, abs=5e-3)
    assert gated((on(1),), (on(1),)).split is None


def sweep(ratios: dict[float, float], noise: float = 0.001, n: int = 3) -> tuple[Run, ...]:
    """Off at 100 tok/s and an arm at M times that, by load."""
    spread = [1 + noise * (i - 1) for i in range(n)]
    return tuple(
        make(x, 100 * m * f)
        for x, m_on in ratios.items()
        for make, m in ((off, 1.0), (on, m_on))
        for f in spread
    )


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ({16: 1.2, 32: 1.1, 64: 0.9}, {16: 1.2, 32: 1.1, 64: 0.9}, "pass"),
        ({16: 1.2, 32: 1.1, 64: 0.9}, {16: 1.2, 32: 1.15, 64: 0.95}, "pass"),
        ({16: 1.2, 32: 1.1, 64: 0.9}, {16: 1.2, 32: 1.02, 64: 0.82}, "regressed"),
        ({16: 1.2, 32: 1.1, 64: 0.9}, {16: 1.05, 32: 0.95, 64: 0.9}, "regressed"),
        ({16: 1.2, 32: 1.1}, {16: 1.2, 32: 1.05}, "pass"),  # both win throughout
        ({16: 1.2, 32: 1.1}, {16: 1.2, 32: 0.9}, "regressed"),  # it won at 32 and loses there
        ({16: 0.9, 32: 0.8}, {16: 0.95, 32: 0.8}, "pass"),  # nothing to lose
        ({16: 1.2, 32: 0.9}, {16: 1.2, 32: 1.1}, "pass"),
        ({8: 1.2, 32: 0.9}, {8: 1.1, 32: 0.9}, "pass"),  # wide brackets, the same one
        ({8: 1.2, 32: 1.1, 128: 0.9}, {8: 1.2, 32: 0.9, 128: 0.9}, "regressed"),
    ],
)
def test_a_crossing_regresses_where_it_is_lower_beyond_noise(
    old: dict[float, float], new: dict[float, float], verdict: str
) -> None:
    found = metric(gated(sweep(old), sweep(new)), "crossover")
    assert found.verdict.value == verdict
    test = found.deciding
    if test.ratio is not None and verdict == "regressed":
        assert test.high is not None
        assert test.low is not None
        assert test.low < test.ratio < test.high < 1
    else:
        assert test.ratio or test.why


def test_a_noisy_crossing_is_not_lower() -> None:
    old, new = {32: 1.1, 64: 0.9}, {32: 1.08, 64: 0.89}
    assert metric(gated(sweep(old), sweep(new)), "crossover").verdict is Outcome.REGRESSED
    noisy = gated(sweep(old, noise=0.03), sweep(new, noise=0.03))
    assert metric(noisy, "crossover").verdict is Outcome.PASS
    single = gated(sweep(old, n=1), sweep(new, n=1))
    assert metric(single, "crossover").verdict is Outcome.UNDECIDED


speeds = st.lists(st.floats(50, 500), min_size=2, max_size=4)


@given(speeds, speeds)
def test_swapped_sides_mirror_ratio_and_ends(a: list[float], b: list[float]) -> None:
    old, new = (tuple(on(1, tps) for tps in side) for side in (a, b))
    there, back = (
        metric(gated(*sides), "usd_per_million").deciding for sides in ((old, new), (new, old))
    )
    assert there.ratio is not None
    assert back.ratio == pytest.approx(1 / there.ratio)
    if there.low is not None and there.high is not None:
        assert (back.low, back.high) == pytest.approx((1 / there.high, 1 / there.low), rel=1e-6)
        both = {there.verdict, back.verdict}
        assert both != {Outcome.REGRESSED}, "they cannot both be worse"


@pytest.mark.parametrize("share", [-0.1, 1.0, math.nan])
def test_a_share_outside_its_range_is_refused(share: float) -> None:
    with pytest.raises(InputError, match="max-regression"):
        gated((on(1),), (on(1),), share)


@pytest.mark.parametrize("slower", [1.0, 1 + LIMIT])
def test_an_equal_candidate_rarely_regresses(slower: float) -> None:
    gates = 120
    assert regressed(gates, slower, seed=7) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / gates)


def test_a_candidate_far_slower_regresses() -> None:
    assert regressed(20, 1.2, seed=7) > 0.9
