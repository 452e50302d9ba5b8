"""The first gate takes c from a probe of the study's own setup, and from no other."""

from dataclasses import replace
from datetime import timedelta

import pytest

from lib import decision
from lib.decision import Gate, State
from lib.evidence.acceptance_requests import ByRun
from lib.evidence.findings import Findings
from lib.money.pricing import Rate, price_pairs
from lib.probe.result import CPU_ONLY, Interval, Probe
from tests.probes import GPU, setup
from tests.unit.test_decision import sweep
from tests.unit.test_decision_gates import EXAMPLE, by_request, counted


def probed(found: Findings, *probes: Probe, requests: ByRun | None = None) -> tuple[Gate, ...]:
    """The path of a study with these probes at hand, the newest first."""
    result = decision.verdict(found, 1)
    pairs = [p for a in found.arms for p in price_pairs(found, a, Rate())]
    low = decision.low_batch(found, result.arm, EXAMPLE, requests=requests, probes=probes)
    return decision.gates(found, result, EXAMPLE, pairs, "Type it.", low)


OF_THIS = setup(
    replace(GPU, c=Interval(0.1, 0.09, 0.11), draft_bytes=None),
    gpu="NVIDIA g",
    target="m",
    draft="eagle3-m",
)


def test_c_of_a_probe_of_this_setup() -> None:
    low, screen, *_ = probed(counted(sweep({1: 1.5})), OF_THIS)
    assert (
        f"c 0.1, measured: probe {OF_THIS.id[:8]}, 2026-11-02, NVIDIA g, 0.09 to 0.11" in low.known
    )
    assert "c" not in low.missing.split()
    assert "c 0.1" in screen.known


def test_a_measured_c_and_counts_by_request_pass_both_gates() -> None:
    """τ 2.25 by the requests over 3·0.1 + 1 is S = 1.73."""
    found = counted(sweep({1: 1.5}))
    low, screen, *_ = probed(found, OF_THIS, requests=by_request(found))
    assert low.state is State.PASSED
    assert screen.state is State.PASSED
    assert "S = 1.73×" in screen.known
    undecided, *_ = probed(found, OF_THIS)
    assert undecided.state is State.UNDECIDED


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"gpu": "NVIDIA h"}, "GPU NVIDIA h, not g"),
        ({"target": "other"}, "target other, not m"),
        ({"draft": "tiny-model"}, "draft method tiny-model, not eagle3"),
        ({"versions": {"target": "vllm 0"}}, "engine vllm 0, not vllm 1"),
    ],
)
def test_c_of_another_setup_is_due_for_re_measurement(changed: dict, said: str) -> None:
    found = counted(sweep({1: 1.5}))
    elsewhere = replace(setup(OF_THIS, **changed), method="servers")
    low, screen, *_ = probed(found, elsewhere)
    assert low.state is State.STALE
    assert f"C was probed on {said}: due for re-measurement" in low.missing
    assert low.page == "probe"
    assert screen.state is State.STALE
    newer = replace(elsewhere, taken_at=OF_THIS.taken_at + timedelta(1))
    low, *_ = probed(found, newer, OF_THIS)
    assert low.state is not State.STALE


@pytest.mark.parametrize(
    "changed",
    [
        {"warnings": (CPU_ONLY,)},
        {"setup": replace(OF_THIS.setup, batch=32)},
        {"setup": replace(OF_THIS.setup, gpu="x", target="y", draft="z")},
    ],
)
def test_no_c_from_a_cpu_a_large_batch_or_another_world(changed: dict) -> None:
    low, *_ = probed(counted(sweep({1: 1.5})), replace(OF_THIS, **changed))
    assert low.state is State.MISSING
    assert "c is not known" in low.missing


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"unstable": True}, "spread by more than 5 %"),
        ({"busy": True}, "busy before it began"),
        ({"draft_bytes": 12.0, "target_bytes": 100.0}, "below the ratio of the bytes read"),
    ],
)
def test_a_doubtful_c_passes_no_gate(changed: dict, said: str) -> None:
    low, *_ = probed(counted(sweep({1: 1.5})), replace(OF_THIS, **changed))
    assert low.state is State.UNDECIDED
    assert said in low.missing
    assert low.page == "probe"
