"""The one sentence in front, as data: what is claimed at the operating load, and on what."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import isfinite, log

from lib.decision.judging import level, share_holding
from lib.decision.states import State, Verdict
from lib.estimate import Estimate
from lib.evidence.crossover import Crossing, wins_up_to
from lib.evidence.findings import ArmFinding, Findings
from lib.evidence.ratio import LogRatio
from lib.evidence.schedule import Schedule
from lib.money.pricing import PricedPair


class Money(StrEnum):
    """What the saving's interval says."""

    SAVES = "saves"
    COSTS = "costs"
    CLOSE = "close"
    UNPRICED = "unpriced"


@dataclass(frozen=True)
class Claim:
    """A decided verdict with its money, its end and its gaps.

    `up_to` is the end of the unbroken row of wins; of savings where the saving is proven, the $/h
    of the operating load taken for all. `misses_slo` says that the arm misses the named SLO there.
    `saving` is the fraction of the price without, its interval at the level of the verdict.
    `crossing` is where the arm stops paying above the operating load, only where a measured load
    beyond it is a proven loss (`lost`, the lowest such). `share` is the fraction of redraws in
    which every part of the sentence holds. `open` are the parts not yet proven.
    """

    arm: ArmFinding
    point: LogRatio
    ends: tuple[float, float]
    wins: bool
    up_to: float | None
    money: Money
    saving: Estimate | None
    break_even: float
    crossing: Crossing | None
    lost: float | None
    share: float | None
    open: tuple[str, ...]
    misses_slo: bool = False


def claim(
    findings: Findings,
    found: Verdict,
    priced: Sequence[PricedPair] = (),
    schedule: Schedule | str = "",
) -> Claim | None:
    """The claim behind a decided verdict; None where the verdict decides nothing."""
    arm = next((a for a in findings.arms if a.label == found.arm), None)
    point = None if arm is None else arm.at(found.load)
    if found.state not in (State.PASSED, State.FAILED) or arm is None or point is None:
        return None
    ends = point.interval(level(findings))
    if ends is None:
        return None
    pair = next((p for p in priced if p.on.arm == arm.label and p.complete is not None), None)
    bar = 1.0 if pair is None else pair.break_even_multiplier or 1.0
    saving = None if pair is None else _saving(findings, point, ends, bar)
    money = _money(saving)
    wins = found.state is State.PASSED
    crossing, lost = _end(findings, arm, point, wins)
    up_to = found.up_to
    if money is Money.SAVES and up_to is not None:
        up_to = _pays_up_to(findings, arm, point, up_to, bar)
    claims = _claims(findings, arm, point, wins, up_to, money, bar, lost)
    share = share_holding(claims)
    if not wins and money is not Money.SAVES:
        share = found.share
    return Claim(
        arm,
        point,
        ends,
        wins,
        up_to,
        money,
        saving,
        bar,
        crossing,
        None if lost is None else lost.load,
        share,
        _open(pair, schedule),
        any(p.on.arm == arm.label and p.on.slo == "missed" for p in priced),
    )


def _pays_up_to(
    findings: Findings, arm: ArmFinding, point: LogRatio, up_to: float, bar: float
) -> float | None:
    """The fixed sequence once more, against the break-even; None where it stops before the load."""
    over = [
        replace(p, log_m=p.log_m - log(bar))
        for p in arm.points
        if isfinite(p.load) and p.load <= up_to
    ]
    found = wins_up_to(over, point.load, level(findings))
    return None if found is None or found < point.load else found


def _saving(findings: Findings, point: LogRatio, ends: tuple[float, float], bar: float) -> Estimate:
    return Estimate(
        1 - bar / point.multiplier,
        "fraction of the price without speculation",
        findings.study.basis,
        f"{point.n_off} off and {point.n_on} with, at {point.load:g}",
        1 - bar / ends[0],
        1 - bar / ends[1],
        f"1 − {bar:.4g} / M, where {bar:.4g} is $/h with over $/h without; ends of M swapped",
    )


def _money(saving: Estimate | None) -> Money:
    if saving is None or saving.low is None or saving.high is None:
        return Money.UNPRICED
    if saving.low > 0:
        return Money.SAVES
    return Money.COSTS if saving.high < 0 else Money.CLOSE


def _end(
    findings: Findings, arm: ArmFinding, point: LogRatio, wins: bool
) -> tuple[Crossing | None, LogRatio | None]:
    """The crossing above the operating load, and the lowest proven loss beyond it.

    No end is claimed where the arm is shown to win again above it.
    """
    wanted = level(findings)
    falls = [c for c in arm.crossover.crossings if c.direction == "down"]
    above = [c for c in falls if c.between[0] >= point.load]
    if not wins or not above:
        return None, None
    first = above[0]
    beyond = [p for p in arm.points if isfinite(p.load) and p.load >= first.between[1]]
    proven = [p for p in beyond if p.mark(wanted) == "loses"]
    if not proven or any(p.mark(wanted) == "wins" for p in beyond):
        return None, None
    return first, proven[0]


def _claims(
    findings: Findings,
    arm: ArmFinding,
    point: LogRatio,
    wins: bool,
    up_to: float | None,
    money: Money,
    bar: float,
    lost: LogRatio | None,
) -> list[tuple[LogRatio, float, bool]]:
    made: list[tuple[LogRatio, float, bool]] = [(point, 0.0, wins)]
    if wins and up_to is not None:
        tested = [p for p in arm.points if isfinite(p.load) and p.load <= up_to]
        made += [(p, log(bar) if money is Money.SAVES else 0.0, True) for p in tested]
    if money in (Money.SAVES, Money.COSTS):
        made.append((point, log(bar), money is Money.SAVES))
    if lost is not None:
        made.append((lost, 0.0, False))
    return made


def _open(pair: PricedPair | None, schedule: Schedule | str) -> tuple[str, ...]:
    said = []
    if not isinstance(schedule, str) and any(
        t.k == 0 and t.tax is not None and not t.measured_tax for t in schedule.tiers
    ):
        said.append("the K = 0 tier")
    if pair is not None and "unknown" in (pair.off.slo, pair.on.slo):
        said.append("the SLO")
    return tuple(said)
