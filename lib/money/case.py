"""One priced pair as a function of what its prices rest on."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lib.evidence.competing import scheduled_k
from lib.evidence.findings import ArmFinding
from lib.evidence.ratio import METRICS, LogMean, log_mean_of_runs
from lib.money.cost import cost_per_million
from lib.money.pricing import PricedPair, Rate
from lib.run import Run

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """Off and one arm at one load, with the rate that prices them.

    `off_gpus` and `on_gpus` are billed at the rate's $/GPU-h, the drafter's own not among them; 0
    where the runs carry their own $/h, which is then in `off_own_usd` and `on_own_usd`. The means
    are of log tok/s over the runs.
    """

    pair: PricedPair
    rate: Rate
    off_runs: tuple[Run, ...]
    on_runs: tuple[Run, ...]
    off_gpus: float
    on_gpus: float
    off_own_usd: float
    on_own_usd: float
    off_log: LogMean
    on_log: LogMean

    @property
    def drafts(self) -> bool:
        """Whether the arm drafts at this load; a server at K = 0 does not, and is not off."""
        return not all(scheduled_k(r, self.pair.on.load) == 0 for r in self.on_runs)

    @property
    def utilization(self) -> tuple[float, float]:
        """Of off and of the arm."""
        off = self.rate.utilization or 1.0
        return off, self.rate.on_utilization or off

    @property
    def hardware_usd(self) -> tuple[float, float]:
        """$/h of off and of the arm without what speculation adds."""
        usd = self.rate.usd_per_gpu_hour or 0.0
        return self.off_own_usd + usd * self.off_gpus, self.on_own_usd + usd * self.on_gpus

    @property
    def added_usd(self) -> float:
        """$/h that speculation adds."""
        return self.rate.added_usd_per_hour or 0.0

    def prices(self, changed: Mapping[str, Any]) -> tuple[Any, Any]:
        """$ per 1M output tokens of off and of the arm, with inputs of the rate changed.

        `changed` holds values or arrays by name: `usd_per_gpu_hour`, `extra_usd_per_hour`,
        `utilization` (of both arms unless the rate names one with speculation), `off_tps`,
        `on_tps`.
        """

        def value(name: str, otherwise: Any) -> Any:
            return changed.get(name, otherwise)

        rate = self.rate
        usd = value("usd_per_gpu_hour", rate.usd_per_gpu_hour or 0.0)
        own = rate.drafter_usd_per_gpu_hour
        drafter = usd if own is None else own
        extra = value("extra_usd_per_hour", rate.extra_usd_per_hour)
        used = value("utilization", self.utilization[0])
        with_it = rate.on_utilization or used
        off = self.off_own_usd + usd * self.off_gpus
        on = self.on_own_usd + usd * self.on_gpus + extra + rate.drafter_gpus * drafter
        off_tps = value("off_tps", math.exp(self.off_log.mean))
        on_tps = value("on_tps", math.exp(self.on_log.mean))
        return cost_per_million(off, off_tps, used), cost_per_million(on, on_tps, with_it)


def case_of(arm: ArmFinding, pair: PricedPair, rate: Rate) -> Case | None:
    """The case of a pair; None where one of its prices is missing."""
    if pair.complete is None:
        return None
    cell = next(c for c in arm.pairs.cells if c.load == pair.on.load)
    tps = METRICS["output_tps"]
    off_log, on_log = log_mean_of_runs(cell.off, tps), log_mean_of_runs(cell.on, tps)
    if off_log is None or on_log is None:
        return None
    hours = [pair.off.usd_per_hour or 0.0, pair.on.usd_per_hour or 0.0]
    hours[1] -= rate.added_usd_per_hour or 0.0
    usd = rate.usd_per_gpu_hour or 0.0
    (off_gpus, off_own), (on_gpus, on_own) = (
        (0.0, paid)
        if any(r.usd_per_hour is not None for r in runs) or not usd
        else (paid / usd, 0.0)
        for runs, paid in zip((cell.off, cell.on), hours, strict=True)
    )
    return Case(pair, rate, cell.off, cell.on, off_gpus, on_gpus, off_own, on_own, off_log, on_log)
