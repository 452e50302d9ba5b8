"""What a million tokens costs that met the service level."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from lib.estimate import Basis, Estimate
from lib.evidence.goodput import meets
from lib.money.pricing import Priced
from lib.run import Run, Slo

UNIT = "$ per 1M output tokens that met the SLO"


@dataclass(frozen=True)
class GoodShare:
    """Share of the requests that met the SLO; at least that, unless `exact`."""

    value: float
    exact: bool
    how: str


def good_share(
    runs: Sequence[Run], slo: Slo | None, good_rps: Mapping[str, float]
) -> GoodShare | None:
    """The mean share over the runs of an arm, or None where a run does not tell.

    `good_rps` are good requests per second by run id, counted from per-request records. Without
    them the percentiles bound it: a run whose p99 is within each of n limits has at least
    1 - n × 1 % good requests. Without an SLO the recorded goodput stands.
    """
    if not runs:
        return None
    exact = [_counted(r, good_rps, recorded=slo is None) for r in runs]
    known = [s for s in exact if s is not None]
    if len(known) == len(runs):
        how = "counted request by request" if slo else "goodput as recorded"
        return GoodShare(min(1.0, fmean(known)), True, how)
    if slo is None or not all(meets(r, slo) for r in runs):
        return None
    beyond = (100 - int(slo.percentile[1:])) / 100
    least = 1.0 - len(slo.limits) * beyond
    how = f"by percentile, {slo.text} is met"
    return GoodShare(least, False, how) if least > 0 else None


def _counted(run: Run, good_rps: Mapping[str, float], *, recorded: bool) -> float | None:
    good = run.goodput_rps if recorded else good_rps.get(run.run_id)
    offered = run.request_rps
    if offered is None and run.completed and run.duration_s:
        offered = run.completed / run.duration_s
    return None if good is None or not offered else good / offered


def good_price(priced: Priced, share: GoodShare | None) -> Estimate | None:
    """The price over good tokens alone: price / share, good requests being of average length.

    None without a price, or where no request is known to be good.
    """
    if priced.price is None or share is None or not share.value:
        return None
    price, by = priced.price, share.value
    least = "" if share.exact else "at least "
    return replace(
        price,
        value=price.value / by,
        unit=UNIT if share.exact else f"{UNIT}, at most",
        basis=Basis.DERIVED,
        low=None if price.low is None else price.low / by,
        high=None if price.high is None else price.high / by,
        how=f"${price.value:,.4g} per 1M output tokens ÷ {least}{share.value:.4g} of the requests "
        f"that met it ({share.how}); good requests are taken to be of average length",
    )
