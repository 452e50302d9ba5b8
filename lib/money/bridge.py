"""From the price without speculation to the price with it, one cause at a time.

The causes multiply, so their order matters to each one's size, though not to the sum: the order is
fixed and said.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from lib.money.case import Case
from lib.money.cost import cost_per_million

HARDWARE, THROUGHPUT, EXTRA = "Price of the hardware", "Throughput", "Extra hardware"
UTILIZATION, TAX = "Utilisation", "K = 0 tax"
ORDER = (HARDWARE, THROUGHPUT, EXTRA, UTILIZATION, TAX)


@dataclass(frozen=True)
class Step:
    """One cause: $ per 1M output tokens that it adds, negative where it saves; `why` in words."""

    name: str
    usd: float
    why: str


@dataclass(frozen=True)
class Bridge:
    """The price without, the steps in `ORDER`, the price with; they sum."""

    off_usd: float
    on_usd: float
    steps: tuple[Step, ...]


def bridge(case: Case) -> Bridge:
    """The steps of a priced pair. A step of a cause that does not act is 0.

    Where the arm drafts nothing at this load (K = 0) its throughput over off's is the tax of
    K = 0; where it drafts, a measured throughput holds whatever tax there is.
    """
    (off_hours, on_hours), added = case.hardware_usd, case.added_usd
    off_used, on_used = case.utilization
    off_tps, on_tps = math.exp(case.off_log.mean), math.exp(case.on_log.mean)
    drafted = on_tps if case.drafts else off_tps
    states = (
        (off_hours, off_tps, off_used),
        (on_hours, off_tps, off_used),
        (on_hours, drafted, off_used),
        (on_hours + added, drafted, off_used),
        (on_hours + added, drafted, on_used),
        (on_hours + added, on_tps, on_used),
    )
    m = on_tps / off_tps
    why = (
        f"${off_hours:,.4g}/h without, ${on_hours:,.4g}/h with",
        f"M = {m:.4g}" if case.drafts else "no drafting at this load: see the K = 0 tax",
        f"${added:,.4g}/h added",
        f"{off_used:.4g} without, {on_used:.4g} with",
        "in the measured throughput" if case.drafts else f"{m:.4g} of the throughput without",
    )
    return _steps([float(cost_per_million(*s)) for s in states], why)


def _steps(prices: Sequence[float], why: Sequence[str]) -> Bridge:
    moves = [after - before for before, after in pairwise(prices)]
    steps = tuple(Step(n, d, w) for n, d, w in zip(ORDER, moves, why, strict=True))
    return Bridge(prices[0], prices[-1], steps)
