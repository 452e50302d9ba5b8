"""The verdict claims only what its intervals clear, at the load that a person names."""

import math
from itertools import count

import numpy as np
import pytest

from lib import decision
from lib.decision import ScreenInputs, State
from lib.estimate import Basis
from lib.evidence.findings import Findings, find
from lib.evidence.schedule import build
from lib.money.pricing import Rate, price_pairs
from lib.run import GROUPS, LoadKind, Run, SpecState, Study

ids = count()
# Every protocol field stated, so that nothing is left open.
STATED: dict[str, object] = {
    "target": "m",
    "target_revision": "r",
    "target_quantization": "bf16",
    "dataset": "chat",
    "input_len": 100.0,
    "output_len": 100.0,
    "temperature": 0.0,
    "top_p": 1.0,
    "tool": "t",
    "tool_version": "1",
    "engine": "vllm",
    "engine_version": "1",
    "build": "b",
    "max_num_seqs": 64,
    "prefix_caching": False,
    "graph_max_batch": 64,
    "gpu": "g",
    "gpu_count": 1,
    "tensor_parallel": 1,
    "data_parallel": 1,
    "pipeline_parallel": 1,
}


def run(load: float, tps: float, k: int = 0, **fields: object) -> Run:
    spec: dict[str, object] = {"spec_state": SpecState.OFF}
    if k:
        spec = {
            "spec_state": SpecState.ON,
            "draft_method": "eagle3",
            "num_speculative_tokens": k,
        }
    return Run(
        run_id=f"d{next(ids)}",
        load_kind=LoadKind.CONCURRENCY,
        offered_load=load,
        output_tps=tps,
        **{**STATED, **spec, **fields},  # type: ignore[arg-type]
    )


def sweep(
    ratios: dict[float, float], repeats: int = 3, noise: float = 0.01, **fields: object
) -> Findings:
    wobble = np.linspace(-noise, noise, repeats) if repeats > 1 else [0.0]
    runs = []
    for load, m in ratios.items():
        runs += [run(load, 100 * load * math.exp(w), **fields) for w in wobble]
        runs += [run(load, 100 * load * m * math.exp(w), 4, **fields) for w in wobble]
    return find(Study("s", tuple(runs)))


CURVE = {1: 1.9, 2: 1.8, 4: 1.5, 8: 1.2, 16: 1.0, 32: 0.8}


def test_no_load_named_asks_for_it() -> None:
    found = decision.verdict(sweep(CURVE), None)
    assert found.state is State.MISSING
    assert "Name your operating load" in found.sentence
    assert found.multiplier is None


def test_a_win_at_the_named_load_with_its_reach() -> None:
    found = decision.verdict(sweep(CURVE), 4)
    assert found.state is State.PASSED
    assert found.sentence == "eagle3:4 wins at 4: 1.50×, and wins up to 8."
    assert found.up_to == 8
    assert found.share is not None
    assert found.share > 0.9


def test_a_loss() -> None:
    found = decision.verdict(sweep(CURVE), 32)
    assert found.state is State.FAILED
    assert found.sentence.startswith("eagle3:4 loses at 32: it measures 0.80×")


def test_too_close_to_call_is_an_answer() -> None:
    found = decision.verdict(sweep(CURVE), 16)
    assert found.state is State.UNDECIDED
    assert found.sentence.startswith("Too close to call at 16")
    assert found.share is None


def test_nothing_is_read_between_loads() -> None:
    found = decision.verdict(sweep(CURVE), 6)
    assert found.state is State.UNDECIDED
    assert "6 was not measured" in found.sentence
    assert found.multiplier is None


def test_one_run_an_arm_claims_nothing() -> None:
    found = decision.verdict(sweep(CURVE, repeats=1), 1)
    assert found.state is State.UNDECIDED
    assert "3 repeats are needed" in found.sentence


def test_an_unrecorded_field_keeps_it_open_until_stated() -> None:
    found = sweep(CURVE, temperature=None)
    open_verdict = decision.verdict(found, 4)
    assert open_verdict.state is State.UNDECIDED
    assert open_verdict.open_points == ("temperature",)
    assert decision.verdict(found, 4, frozenset({"temperature"})).state is State.PASSED


def test_everything_stated_leaves_nothing_open() -> None:
    fields = {*GROUPS.workload, *GROUPS.server, *GROUPS.allocation}
    assert fields - STATED.keys() == {"domain", "usd_per_hour", "token_count"}
    assert sweep(CURVE).comparison.not_recorded == ()


def test_several_arms_share_the_error() -> None:
    one = sweep(CURVE)
    assert decision.level(one) == pytest.approx(0.95)
    runs = [*one.study.runs]
    runs += [run(load, 120 * load, 2) for load in CURVE for _ in range(3)]
    two = find(Study("s", tuple(runs)))
    assert decision.level(two) == pytest.approx(0.975)


def test_at_a_true_ratio_of_one_a_claim_is_rare() -> None:
    rng = np.random.default_rng(3)
    claims = 0
    for _ in range(300):
        runs = []
        for load in (1, 2, 4, 8):
            for k in (0, 2, 4):
                tps = 100 * load * np.exp(0.02 * rng.standard_normal(3))
                runs += [run(load, float(t), k) for t in tps]
        found = decision.verdict(find(Study("s", tuple(runs))), 4)
        claims += found.state in (State.PASSED, State.FAILED)
    assert claims / 300 <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 300)


def test_share_of_redraws_needs_repeats() -> None:
    single = sweep(CURVE, repeats=1).arms[0].points
    assert decision.share_of_redraws(single, above=True) is None


def test_the_gates_from_screen_to_monitor() -> None:
    found = sweep(CURVE)
    result = decision.verdict(found, 4)
    rate = Rate(usd_per_gpu_hour=2.0, gpu_count=1, utilization=0.5)
    priced = [p for p in price_pairs(found, found.arms[0], rate) if p.on.load == 4]
    screen = ScreenInputs(0.75, 4, 0.1, Basis.ASSUMED, "From your sliders.")
    gates = decision.gates(found, result, screen, priced, build(found.comparison, 64))
    assert [g.title for g in gates] == [
        "α, τ and c at low batch",
        "Screen",
        "A/B at your load",
        "$ per 1M tokens",
        "Schedule",
        "Monitor",
    ]
    assert [g.state for g in gates[1:4]] == [State.UNDECIDED, State.PASSED, State.PASSED]
    assert gates[1].basis is Basis.THEOREM
    assert "33 % less" in gates[3].known
    assert "SLO unknown" in gates[3].missing
    assert "hypothesis" in gates[4].missing


@pytest.mark.parametrize(
    ("basis", "c", "state"),
    [
        (Basis.PUBLISHED, 0.1, State.MISSING),
        (Basis.ASSUMED, 0.1, State.UNDECIDED),
        (Basis.MEASURED, 0.1, State.PASSED),
        (Basis.MEASURED, 1.0, State.FAILED),
    ],
)
def test_a_screen_passes_on_measured_inputs_only(basis: Basis, c: float, state: State) -> None:
    found = sweep(CURVE)
    screen = ScreenInputs(0.75, 4, c, basis, "somewhere")
    gates = decision.gates(found, decision.verdict(found, None), screen, [], "Type it.")
    assert gates[1].state is state


def test_gates_say_what_is_missing() -> None:
    found = sweep(CURVE)
    result = decision.verdict(found, None)
    gates = decision.gates(found, result, None, [], "Type it.")
    assert all(g.state is State.MISSING for g in gates)
    assert all(g.missing for g in gates)


def test_the_theorem_never_prices() -> None:
    """S is far above 1 here, M is not: the price follows M."""
    found = sweep({4: 0.9})
    rate = Rate(usd_per_gpu_hour=2.0, gpu_count=1, utilization=1.0)
    (pair,) = price_pairs(found, found.arms[0], rate)
    assert pair.complete is not None
    assert pair.complete[2].value < 0


def test_arms_not_measured_there_are_not_said_to_lose() -> None:
    runs = [*sweep({4: 0.8}).study.runs]
    runs += [run(8, 800) for _ in range(3)] + [run(8, 1200, 2) for _ in range(3)]
    found = decision.verdict(find(Study("s", tuple(runs))), 4)
    assert found.state is State.FAILED
    assert found.sentence.startswith("eagle3:4 loses at 4")
    assert "1 arm was not measured there" in found.sentence


def test_only_an_arm_with_an_interval_is_said_to_hold_one() -> None:
    runs = [*sweep({8: 1.0}).study.runs, run(8, 1440, 2)]
    found = decision.verdict(find(Study("s", tuple(runs))), 8)
    assert found.sentence.startswith("Too close to call at 8: eagle3:4 measures 1.00×")
