"""Probes as a GPU and a CPU would give them, made up."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from lib.probe.result import (
    CPU_ONLY,
    Conditions,
    Interval,
    Measured,
    Probe,
    VerifyCost,
    to_json,
)
from lib.results.store import Store

SETUP = Measured(
    gpu="NVIDIA H100 80GB HBM3",
    target="llama-3.1-8b",
    draft="eagle3-llama-3.1-8b",
    dtype="bfloat16",
    batch=4,
    context=512,
    gamma=5,
    driver="580.95",
    graphs=True,
    versions={"torch": "2.13.0"},
)
VERIFY = {1: 1.0, 2: 1.0, 3: 1.002, 4: 1.004, 5: 1.01, 6: 1.02, 8: 1.03, 16: 1.08, 32: 1.21}
GPU = Probe(
    c=Interval(0.061, 0.059, 0.064),
    t_draft_ms=0.41,
    t_target_ms=6.72,
    setup=SETUP,
    taken_at=datetime(2026, 11, 2, 12, 30, tzinfo=UTC),
    v=tuple(VerifyCost(n, v, v - 0.01, v + 0.01) for n, v in VERIFY.items()),
    critical_tokens=74.0,
    critical_low=68.0,
    critical_high=83.0,
    samples_draft_ms=tuple(0.41 + 0.001 * (i % 7 - 3) for i in range(50)),
    samples_target_ms=(*(6.72 + 0.01 * (i % 9 - 4) for i in range(49)), 9.5),
    conditions=(
        Conditions("before", 1980.0, 2619.0, 120.0, 41.0, 0.02, (), 0),
        Conditions("during", 1755.0, 2619.0, 660.0, 61.0, 0.99, ("software power cap",), 0),
    ),
    draft_bytes=0.84e9,
    target_bytes=15.0e9,
)
CPU = replace(
    GPU,
    c=Interval(0.21, 0.2, 0.23),
    setup=replace(SETUP, gpu="CPU", target="tiny-target", draft="tiny-draft", dtype="float32"),
    taken_at=GPU.taken_at - timedelta(days=1),
    warnings=(CPU_ONLY,),
    conditions=(),
)


def setup(probe: Probe, **changed: Any) -> Probe:
    """The probe on another setup."""
    return replace(probe, setup=replace(probe.setup, **changed))


def keep(*probes: Probe) -> None:
    """Put probes into the store that the environment names."""
    store = Store.open()
    for probe in probes:
        named = {"gpu": probe.setup.gpu, "target": probe.setup.target, "draft": probe.setup.draft}
        store.add_probe(
            to_json(probe).decode(), probe_id=probe.id, taken_at=probe.taken_at, **named
        )
    store.close()
