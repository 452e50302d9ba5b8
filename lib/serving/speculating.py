"""A live server that speculates: its tau as far as it is known, and what that costs a day."""

import math
from dataclasses import dataclass

from lib.estimate import Basis, Estimate
from lib.serving.plan import Plan
from lib.serving.windows import Window
from lib.theory.mixing import FEW_DRAFTED, Z_95

HOURS_PER_DAY = 24.0


@dataclass(frozen=True)
class Speculating:
    """A server over a window: tau with its 95 % ends, and the mean drafts `k` of a round.

    `k` is None where no rounds are counted: tau is a gauge, and has no ends apart.
    """

    whole: Window
    tau: float
    low: float
    high: float
    k: float | None


def speculating(whole: Window) -> Speculating | None:
    """The server of a window, None without a draft; its ends are the widest that rounds allow.

    A round accepts 0 to K drafts, so the variance is at most (tau - 1)(K + 1 - tau) (Bhatia and
    Davis 2000, Am. Math. Monthly 107:353); rounds count as independent.
    """
    tau, c = whole.tau, whole.counters
    if tau is None:
        return None
    if not c.drafts or not c.draft_tokens:
        return Speculating(whole, tau, tau, tau, None)
    k = c.draft_tokens / c.drafts
    half = Z_95 * math.sqrt(max((tau - 1) * (k + 1 - tau), 0.0) / c.drafts)
    return Speculating(whole, tau, max(tau - half, 1.0), tau + half, k)


def _priced(server: Speculating) -> bool:
    """Whether tau carries to the whole server: nearly all of its output had a counted draft."""
    made = server.whole.coverage
    return bool(made and made.share >= FEW_DRAFTED and server.whole.output_tps)


def lost_a_day(server: Speculating, plan: Plan) -> Estimate | None:
    """$ a day of lost acceptance: (price now - price at the plan's tau) x tokens a day.

    At a fixed round cost R throughput is proportional to tau (S = tau / R), so the tokens of a day
    cost 24 h x $/h now and tau / tau_plan times that as planned.
    """
    usd, promised = plan.usd_per_hour, plan.tau
    if usd is None or promised is None or not _priced(server):
        return None
    a_day = HOURS_PER_DAY * usd
    low = 1 - server.high / (promised.value if promised.low is None else promised.low)
    high = 1 - server.low / (promised.value if promised.high is None else promised.high)
    return Estimate(
        a_day * (1 - server.tau / promised.value),
        "$ per day",
        Basis.DERIVED,
        f"{server.whole.label or 'the server'}, {server.whole.seconds:.4g} s; {promised.source}",
        a_day * low,
        a_day * high,
        f"(price now − price at τ {promised.value:.3g}) × tokens a day, at a fixed round cost: "
        f"24 h × ${usd:,.4g}/h × (1 − {server.tau:.4g} ÷ {promised.value:.4g}); "
        f"{server.whole.output_tps or 0:,.4g} tok/s measured",
    )


def worse_than_off(server: Speculating, plan: Plan, cost: Estimate) -> Estimate | None:
    """$ a day more than without speculation, by a measured round cost only.

    Without, the same tokens take tau / R of the time (S = tau / R).
    """
    usd, off = plan.usd_per_hour, plan.off_usd_per_hour
    if usd is None or off is None or not plan.round_cost or not _priced(server):
        return None
    ends = cost.value if cost.low is None else cost.low, cost.high or cost.value
    return Estimate(
        HOURS_PER_DAY * (usd - off * server.tau / cost.value),
        "$ per day",
        Basis.DERIVED,
        f"{server.whole.label or 'the server'}, {server.whole.seconds:.4g} s; {cost.source}",
        HOURS_PER_DAY * (usd - off * server.high / ends[0]),
        HOURS_PER_DAY * (usd - off * server.low / ends[1]),
        f"(price now − price without speculation) × tokens a day: 24 h × (${usd:,.4g}/h − "
        f"${off:,.4g}/h × τ {server.tau:.4g} ÷ R {cost.value:.4g}); "
        f"{server.whole.output_tps or 0:,.4g} tok/s measured",
    )
