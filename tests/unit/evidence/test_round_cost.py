"""Round cost R = tau / S where tau is known, never across allocations or protocols."""

import math
from typing import Any

import pytest

from lib.evidence.findings import Findings, find
from lib.evidence.round_cost import ArmRounds, bracket, fits, mean_tau, round_costs
from lib.results import published
from lib.run import LoadKind, Run
from lib.theory import walltime
from tests.unit.evidence.builders import off, on, study

# Load: off tok/s, tok/s, tau; K; from public write-ups.
DSPARK = {1: (122, 393, 4.72), 16: (976, 1626, 4.31), 64: (2207, 2883, 4.29)}
DSPARK[128] = (3310, 4334, 4.35)
L4 = {1: (74.7, 85.1, 3.36), 2: (127.2, 108.7, 3.36), 4: (209.2, 133.8, 3.36)}
L4[8] = (309.4, 161.6, 3.36)
C03 = {1: (218.89, 185.64, 2.542), 4: (507.49, 476.37, 2.556), 8: (677.14, 673.14, 2.578)}
C03 |= {32: (1128.30, 927.11, 2.560), 64: (1237.84, 1307.95, 2.553)}


def sweep(table: dict[int, tuple[float, float, float]], k: int = 4, **fields: Any) -> Findings:
    runs: list[Run] = []
    for load, (plain, fast, tau) in table.items():
        runs += [off(load, plain), on(load, fast, k, accept_length=tau, **fields)]
    return find(study(*runs))


def only(found: Findings) -> ArmRounds:
    (arm,) = round_costs(found)
    return arm


def costs(arm: ArmRounds) -> list[float]:
    return [p.cost for p in arm.points]


def test_ngram_on_h100_as_published() -> None:
    arm = only(find(published.study("vllm_h100_qwen25_7b_ngram_extractive")))
    assert costs(arm) == pytest.approx([1.66, 2.08, 2.32, 2.86, 4.08, 4.96], abs=5e-3)
    assert all(p.limited and not p.flag for p in arm.points)
    assert [p.tau for p in arm.points] == pytest.approx([5.85, 5.95, 5.90, 5.85, 5.90, 5.85])


def test_dspark_on_h200() -> None:
    found = costs(only(sweep(DSPARK, 7)))
    assert found == pytest.approx([1.47, 2.59, 3.28, 3.32], abs=6e-3)


def test_a_draft_model_on_l4() -> None:
    arm = only(sweep(L4, 4))
    assert costs(arm) == pytest.approx([2.95, 3.93, 5.25, 6.43], abs=6e-3)


def test_c03_implied_round_cost_of_a_tree() -> None:
    found = sweep(C03, 4, draft_topk=4)
    arm = only(found)
    speedups = [p.speedup for p in arm.points]
    assert speedups == pytest.approx([0.848, 0.939, 0.994, 0.822, 1.057], abs=5e-4)
    assert [c.direction for c in found.arms[0].crossover.crossings] == ["up"]
    assert found.arms[0].at(8).mark() == "too close to call"  # type: ignore[union-attr]
    assert costs(arm) == pytest.approx([3.00, 2.72, 2.59, 3.12, 2.42], abs=6e-3)
    assert arm.k is None
    assert fits([arm]) == ()


@pytest.mark.parametrize(
    ("plain", "rows", "s", "d"),
    [
        (
            222.47,
            [(1.86, 159.78), (2.20, 172.99), (1.99, 207.62), (2.52, 191.90), (2.42, 171.54),
             (3.20, 177.50)],
            [0.718, 0.778, 0.933, 0.863, 0.771, 0.798],
            [2.59, 2.83, 2.13, 2.92, 3.14, 4.01],
        ),
        (566.21, [(1.86, 447.9), (2.27, 426.46)], [0.791, 0.753], [2.35, 3.01]),
    ],
)  # fmt: skip
def test_c40_longer_and_slower(
    plain: float, rows: list[tuple[float, float]], s: list[float], d: list[float]
) -> None:
    runs = [on(1, tps, k=n, accept_length=tau) for n, (tau, tps) in enumerate(rows, start=1)]
    arms = round_costs(find(study(off(1, plain), *runs)))
    points = [p for arm in arms for p in arm.points]
    assert [p.speedup for p in points] == pytest.approx(s, abs=1.5e-3)
    assert [p.cost for p in points] == pytest.approx(d, abs=6e-3)
    assert all(p.speedup < 1 for p in points)


def test_c10_fitted_from_runs_on_tpot() -> None:
    sweep_ms = {2: (2.36, 4.32), 3: (2.79, 4.09), 4: (3.08, 4.05), 5: (3.32, 4.13)}
    sweep_ms |= {6: (3.46, 4.20), 7: (3.54, 4.29)}
    runs = [on(1, None, k, accept_length=tau, tpot_ms_mean=ms) for k, (tau, ms) in sweep_ms.items()]
    found = find(study(off(1, None, tpot_ms_mean=7.07), *runs), "tpot_ms")
    (fit,) = fits(round_costs(found))
    assert (fit.load, fit.ks) == (1, (2, 3, 4, 5, 6, 7))
    assert fit.line.c == pytest.approx(0.144, abs=5e-4)
    assert fit.line.v == pytest.approx(1.181, abs=5e-4)


def test_methods_are_fitted_apart_and_one_k_is_no_line() -> None:
    runs = [off(1), on(1, 150, 2, accept_length=2.0), on(1, 160, 4, accept_length=2.6)]
    runs.append(on(1, 160, 4, accept_length=2.6, draft_method="mtp"))
    (fit,) = fits(round_costs(find(study(*runs))))
    assert (fit.method, fit.ks, fit.line.points) == ("eagle3", (2, 4), 2)


def test_the_load_with_most_lengths_is_fitted_and_its_c_brackets_the_rest() -> None:
    tables = {2: (150, 2.0), 4: (160, 2.6), 6: (158, 3.06)}  # at load 8: R 1.33, 1.63, 1.94
    runs = [off(1), off(8)]
    runs += [on(8, tps, k, accept_length=tau) for k, (tps, tau) in tables.items()]
    runs += [on(1, 250, 2, accept_length=2.6), on(1, 26, 4, accept_length=2.6)]
    arms = round_costs(find(study(*runs)))
    (fit,) = fits(arms)
    assert (fit.method, fit.load, fit.ks) == ("eagle3", 8, (2, 4, 6))
    assert fit.line.c == pytest.approx(0.151, abs=5e-3)
    flags = {(a.k, p.load): p.flag for a in arms for p in a.points if p.flag}
    assert set(flags) == {(2, 1.0), (4, 1.0)}
    assert "below γc + 1 = 1.30" in flags[2, 1.0]
    assert "above γĉ + γ + 1" in flags[4, 1.0]


def test_counts_of_repeats_are_pooled_and_decide() -> None:
    first = on(8, 150, drafts=100, accepted_tokens=200, accept_length=9.0)
    second = on(8, 151, drafts=300, accepted_tokens=300)
    assert mean_tau([first, second]) == pytest.approx(900 / 400)
    assert mean_tau([first, on(8, 152)]) == pytest.approx(3.0)
    assert mean_tau([on(8, 152)]) is None


def test_the_interval_is_that_of_s() -> None:
    runs = [off(8, x) for x in (100, 101, 99)]
    runs += [on(8, x, accept_length=2.4) for x in (150, 152, 149)]
    found = find(study(*runs))
    (point,) = only(found).points
    low, high = found.arms[0].points[0].interval() or (0, 0)
    assert (point.low, point.high) == (pytest.approx(2.4 / high), pytest.approx(2.4 / low))
    assert (point.low or 0) < point.cost < (point.high or 0)


def test_an_infinite_rate_is_on_no_curve() -> None:
    rate = {"load_kind": LoadKind.REQUEST_RATE}
    runs = [off(math.inf, 100, **rate), on(math.inf, 150, accept_length=2.4, **rate)]
    arm = only(find(study(*runs)))
    assert len(arm.points) == 1
    assert arm.curve == ()


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "τ is not known"),
        ({"accept_length": 2.4, "gpu": "H200"}, "different allocations"),
        ({"accept_length": 2.4, "schedule": "[[1, 8, 4]]"}, "schedule"),
    ],
)
def test_no_round_cost_and_why(fields: dict[str, Any], reason: str) -> None:
    arm = only(find(study(off(8, gpu="H100"), on(8, **{"gpu": "H100", **fields}))))
    assert arm.points == ()
    assert reason in arm.why_not


def test_none_across_an_overridden_difference() -> None:
    runs = off(8), on(8, accept_length=2.4, temperature=1.0)
    assert only(find(study(*runs))).why_not == "no load was measured in both arms"
    arm = only(find(study(*runs), overrides=frozenset({"temperature"})))
    assert arm.points == ()
    assert "temperature" in arm.why_not


def test_none_at_k_0_nor_on_goodput() -> None:
    assert (
        only(find(study(off(8), on(8, k=0, accept_length=1.0)))).why_not == "K = 0 drafts nothing"
    )
    runs = off(8, goodput_rps=1.0), on(8, accept_length=2.4, goodput_rps=1.5)
    assert "throughput" in only(find(study(*runs), "goodput_rps")).why_not


def test_s_above_tau_is_flagged() -> None:
    arm = only(find(study(off(1, 100), on(1, 412, accept_length=2.22))))
    assert "S is above τ" in arm.points[0].flag
    fine = only(find(study(off(1, 100), on(1, 230, accept_length=2.22))))
    assert fine.points[0].flag == ""


def test_a_drafter_that_costs_nothing_has_both_ends() -> None:
    ngram = {"draft_method": "ngram", "accept_length": 3.0}
    runs = [off(1, 100), on(1, 40, 5, **ngram)]
    assert "γ + 1" in only(find(study(*runs))).points[0].flag
    assert bracket(5, 0.0, 0.0).flag(5.9) == ""


def test_bracket_of_a_drafter_with_a_cost() -> None:
    known = bracket(4, 0.2, 0.1)
    assert known.low == pytest.approx(walltime.tau(0.7, 4) / walltime.speedup(0.7, 4, 0.2))
    assert known.high == pytest.approx(
        walltime.tau(0.7, 4) * walltime.operations_factor(0.7, 4, 0.1)
    )
    assert (known.low, known.high) == (pytest.approx(1.8), pytest.approx(5.4))
    assert "below" in known.flag(1.5)
    assert known.flag(1.7) == known.flag(5.8) == ""
    assert "above" in known.flag(6.0)
    assert bracket(None).high == bracket(4).high == math.inf
