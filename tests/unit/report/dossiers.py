"""Dossiers of small and of shipped studies, for the tests of what a reviewer takes away."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from lib.evidence.findings import find
from lib.money.pricing import Rate, price_pairs
from lib.report.dossier import Dossier, input_rows
from lib.results import published
from lib.run import Run, Slo, Study
from tests.unit.evidence import builders

SIMULATED = "guidellm-0.8.1-simulated"
WRITTEN = datetime(2026, 12, 1, 9, 30, tzinfo=UTC)
PAID = Rate(usd_per_gpu_hour=2.0, gpu_count=2, utilization=0.6, extra_usd_per_hour=0.5)


def dossier(
    study: Study,
    rate: Rate = PAID,
    *,
    load: float | None = 8,
    tokens_per_day: float | None = 10e6,
    slo: Slo | None = None,
    overrides: frozenset[str] = frozenset(),
    **fields: Any,
) -> Dossier:
    """What a reviewer takes away of a study at a rate, as if written at one fixed time."""
    found = find(study, overrides=overrides)
    agreed = bool(fields.get("accept_random"))
    priced = {a.label: price_pairs(found, a, rate, slo, accept_random=agreed) for a in found.arms}
    return Dossier(
        found=found,
        priced=priced,
        rate=rate,
        inputs=input_rows(inputs_of(rate, tokens_per_day), "typed for a test", "2026-12-01"),
        written_at=WRITTEN,
        slo=slo,
        load=load,
        tokens_per_day=tokens_per_day,
        **fields,
    )


def inputs_of(rate: Rate, tokens_per_day: float | None) -> dict[str, float | None]:
    """The rate as the inputs that a person types."""
    return {
        "usd_per_gpu_hour": rate.usd_per_gpu_hour,
        "gpu_count": rate.gpu_count,
        "utilization": rate.utilization,
        "on_utilization": rate.on_utilization,
        "extra_usd_per_hour": rate.extra_usd_per_hour,
        "drafter_gpus": rate.drafter_gpus,
        "drafter_usd_per_gpu_hour": rate.drafter_usd_per_gpu_hour,
        "tokens_per_day": tokens_per_day,
        "input_per_output": None if rate.usd_per_gpu_hour is None else 4.0,
        "input_weight": None if rate.usd_per_gpu_hour is None else rate.usd_per_gpu_hour / 10,
    }


def simulated(rate: Rate = PAID, **fields: Any) -> Dossier:
    """The shipped sweep: two arms, seven loads, three repeats each."""
    return dossier(published.study(SIMULATED), rate, **fields)


def study(runs: Sequence[Run], **fields: Any) -> Study:
    """A study of those runs."""
    return Study("s", tuple(runs), **fields)


@cache
def corners() -> Study:
    """Every way in which a cell is read: repeats, one run, a published sd, own $/h, a run without
    tok/s beside one with, failed requests."""
    off, on = builders.off, builders.on
    return study(
        [
            *(off(1, 100.0 + i, gpu_count=1) for i in range(3)),
            *(on(1, 150.0 + 4 * i, gpu_count=1) for i in range(4)),
            off(2, 190.0),
            on(2, 260.0),
            off(4, 350.0, output_tps_sd=9.0, output_tps_n=5),
            on(4, 420.0, output_tps_sd=21.0, output_tps_n=3),
            *(off(8, 600.0 + 9 * i, usd_per_hour=5.0) for i in range(2)),
            *(on(8, 700.0 - 7 * i, usd_per_hour=7.5) for i in range(2)),
            *(off(16, t) for t in (900.0, None, 910.0)),
            *(on(16, 880.0) for _ in range(3)),
            off(32, 1500.0),
            on(32, 1600.0, completed=90, failed=10),
            *(off(64, 2000.0 + i, gpu_count=1) for i in range(2)),
            *(on(64, 3900.0 + 50 * i, gpu_count=2) for i in range(2)),
        ]
    )
