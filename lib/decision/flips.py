"""What would flip the verdict: how far one input may move, alone, before the answer changes.

At a load, M = tau / R (tokens a round over its cost in plain steps), and the price with over the
price without is h / M, where h is $/h with over $/h without. The verdict stands while M stays on
its side of the break-even h (1 where nothing is priced).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lib.decision.judging import level
from lib.decision.states import Verdict
from lib.estimate import Basis
from lib.evidence.findings import ArmFinding, Findings
from lib.evidence.ratio import LogRatio
from lib.evidence.round_cost import mean_tau
from lib.evidence.schedule import Schedule
from lib.money.pricing import PricedPair


@dataclass(frozen=True)
class Flip:
    """One input that flips the verdict alone.

    `change` is its relative change, signed: -0.12 is a fall by 12 %. `now` and `then` are its
    values. `beyond` says that the evidence already allows the flip: no margin is left. `rival` is
    the K that wins beyond a K = 0 tax.
    """

    name: str
    change: float
    now: float
    then: float
    unit: str
    basis: Basis
    how: str
    beyond: bool = False
    rival: int | None = None


@dataclass(frozen=True)
class Stands:
    """The flips of a verdict, the nearest first, and what they are about.

    `priced` says whether the break-even is one of money, `single` whether M has no interval.
    """

    arm: str
    load: float
    multiplier: float
    break_even: float
    priced: bool
    single: bool
    flips: tuple[Flip, ...]

    @property
    def wins(self) -> bool:
        """Whether M lies above the break-even."""
        return self.multiplier > self.break_even


def stands(
    findings: Findings,
    found: Verdict,
    priced: Sequence[PricedPair] = (),
    schedule: Schedule | str = "",
    utilization: float | None = None,
) -> Stands | None:
    """Every single input that flips the verdict at the operating load; None without a point there.

    `priced` are the pairs at that load; `utilization` is the fraction of paid time as typed.
    """
    arm = next((a for a in findings.arms if a.label == found.arm), None)
    point = None if arm is None else arm.at(found.load)
    if arm is None or point is None:
        return None
    pair = next((p for p in priced if p.on.arm == arm.label and p.complete is not None), None)
    bar = 1.0 if pair is None else pair.break_even_multiplier or 1.0
    flips = [
        *_interval(findings, point, bar),
        *_tau(arm, point, bar, findings),
        *_money(pair, point, bar, utilization),
        *_tax(schedule, point),
    ]
    ordered = sorted(flips, key=lambda f: (not f.beyond, abs(f.change)))
    m = point.multiplier
    single = point.interval() is None
    return Stands(arm.label, point.load, m, bar, pair is not None, single, tuple(ordered))


def _interval(findings: Findings, point: LogRatio, bar: float) -> list[Flip]:
    """The other end of M's interval, where it lies across the break-even."""
    m, wanted = point.multiplier, level(findings)
    ends = point.interval(wanted)
    if ends is None:
        return []
    other = ends[0] if m > bar else ends[1]
    if (other > bar) == (m > bar):
        return []
    how = f"the {wanted:.1%} interval of M reaches {other:.3f}, across the break-even {bar:.3f}"
    return [Flip("M", other / m - 1, m, other, "×", findings.study.basis, how, beyond=True)]


def _tau(arm: ArmFinding, point: LogRatio, bar: float, findings: Findings) -> list[Flip]:
    """tau at a fixed cost of a round: M moves with it; it stays from 1 to K + 1."""
    runs = [r for c in arm.pairs.cells if c.load == point.load for r in c.on]
    tau = mean_tau(runs)
    m = point.multiplier
    if tau is None or any(r.schedule is not None for r in runs):
        return [Flip("M", bar / m - 1, m, bar, "×", findings.study.basis, f"break-even {bar:.3f}")]
    then = tau * bar / m
    ks = {r.num_speculative_tokens for r in runs if (r.draft_topk or 1) == 1}
    most = max((k for k in ks if k), default=None)
    if then < 1 or (most is not None and then > most + 1):
        return []
    how = f"M = τ / R with R = {tau / m:.3f} plain steps a round held: τ = {bar:.3f} · R"
    return [Flip("acceptance length τ", then / tau - 1, tau, then, "", Basis.DERIVED, how)]


def _money(
    pair: PricedPair | None, point: LogRatio, bar: float, utilization: float | None
) -> list[Flip]:
    """The $/h of the arm that speculates, and its utilisation where it differs from off's."""
    if pair is None or pair.off.usd_per_hour is None or not pair.on.usd_per_hour:
        return []
    now, then = pair.on.usd_per_hour, pair.off.usd_per_hour * point.multiplier
    how = f"break-even: $/h without {pair.off.usd_per_hour:.4g} · M {point.multiplier:.3f}"
    flips = [Flip("$/h with speculation", then / now - 1, now, then, "$/h", Basis.ASSUMED, how)]
    if utilization is not None:
        used = utilization * bar / point.multiplier
        if used <= 1:
            how = "the price divides by utilisation; off's stays as typed"
            name = "utilisation of the arm alone"
            change = used / utilization - 1
            flips.append(Flip(name, change, utilization, used, "%", Basis.ASSUMED, how))
    return flips


def _tax(schedule: Schedule | str, point: LogRatio) -> list[Flip]:
    """The unmeasured K = 0 tax, where the operating load lies in a K = 0 tier."""
    if isinstance(schedule, str):
        return []
    for tier in schedule.tiers:
        inside = tier.first <= point.load <= tier.last
        if tier.k == 0 and inside and tier.tax is not None and not tier.measured_tax:
            how = f"above it K = {tier.next_k} wins at batch {tier.first} to {tier.last}"
            return [
                Flip("K = 0 tax", tier.tax, 0, tier.tax, "", Basis.DERIVED, how, rival=tier.next_k)
            ]
    return []
