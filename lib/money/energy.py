"""Energy and memory as measured beside the runs: per 1M output tokens, and in dollars an hour."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from lib.estimate import Basis, Estimate
from lib.evidence.ratio import log_mean
from lib.money.ownership import power_only
from lib.money.pricing import half_width
from lib.run import Run

JOULES_PER_KWH = 3.6e6


@dataclass(frozen=True)
class Energy:
    """Energy of one arm: kWh per 1M output tokens, and the electricity's $ where it has a price.

    `usd` is power only: without the hardware it cannot be held against a price.
    """

    kwh: Estimate
    usd: Estimate | None

    @property
    def joules_per_token(self) -> float:
        """J per output token."""
        return self.kwh.value * JOULES_PER_KWH / 1e6


def joules_per_token(run: Run) -> float | None:
    """J per output token of a run: its energy over its tokens, else its power over its tok/s."""
    if run.energy_j and run.output_tokens:
        return run.energy_j / run.output_tokens
    return run.power_w / run.output_tps if run.power_w and run.output_tps else None


def energy(runs: Sequence[Run], basis: Basis, usd_per_kwh: float | None = None) -> Energy | None:
    """Energy of the runs that recorded it, with the t interval of their logs; None: not recorded.

    As the tool read it at the GPUs: neither the host nor the facility is in it.
    """
    measured = [j for r in runs if (j := joules_per_token(r)) is not None]
    if not measured:
        return None
    mean = log_mean(measured)
    joules = math.exp(mean.mean)
    kwh = joules * 1e6 / JOULES_PER_KWH
    low = high = None
    if (half := half_width(mean)) is not None:
        low, high = kwh * math.exp(-half), kwh * math.exp(half)
    used = Estimate(
        kwh,
        "kWh per 1M output tokens",
        basis,
        f"{len(measured)} of {len(runs)} runs recorded it; GPUs only, without host and facility",
        low,
        high,
        f"{joules:,.4g} J per output token × 10⁶ ÷ 3.6 × 10⁶ J/kWh = {kwh:,.4g} kWh",
    )
    return Energy(used, None if usd_per_kwh is None else power_only(kwh, usd_per_kwh, 1e6))


@dataclass(frozen=True)
class Added:
    """What speculation takes more, as recorded in both arms; None where it is not.

    `memory_gib` and `power_w` are means with less means without. A measured throughput bears both
    already, so neither is added to a price: `memory_usd_per_hour` is the $/h of the GPU memory
    that it takes, `power_usd_per_hour` the electricity where it is paid apart.
    """

    memory_gib: float | None
    power_w: float | None
    memory_usd_per_hour: float | None = None
    power_usd_per_hour: float | None = None


def added(
    off: Sequence[Run],
    on: Sequence[Run],
    usd_per_hour: float | None = None,
    memory_gib: float | None = None,
    usd_per_kwh: float | None = None,
) -> Added:
    """Extra memory and power with speculation. `usd_per_hour` pays for `memory_gib` of GPUs."""
    gib, watts = _more(off, on, "gpu_mem_gib"), _more(off, on, "power_w")
    share = None if gib is None or not memory_gib else gib / memory_gib
    return Added(
        gib,
        watts,
        None if share is None or usd_per_hour is None else share * usd_per_hour,
        None if watts is None or usd_per_kwh is None else watts / 1000 * usd_per_kwh,
    )


def _more(off: Sequence[Run], on: Sequence[Run], field: str) -> float | None:
    without = [v for r in off if (v := getattr(r, field)) is not None]
    with_it = [v for r in on if (v := getattr(r, field)) is not None]
    return fmean(with_it) - fmean(without) if without and with_it else None
