"""What a verify round costs at each load, R = tau / S, where tau is known.

Leviathan et al. 2023, arXiv 2211.17192: S = tau / R needs no assumption on acceptance. R is in
plain decode steps of the same deployment, so it is read from pairs on one allocation under one
protocol only (design law 7).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lib.evidence.findings import ArmFinding, Findings
from lib.evidence.ratio import LogRatio
from lib.results.acceptance_checks import counted_rounds, counted_tau, tokens_per_round
from lib.run import Run
from lib.theory import measured_round
from lib.theory.measured_round import RoundFit

# A point this far beyond its bracket is not noise: the arms, c or tau are wrong.
TOLERANCE = 0.1
MISS = 0.05  # a line that misses by more gives no c for a bracket
# These look drafts up in the text: c and c_hat are 0.
NO_DRAFTER = ("ngram", "suffix", "prompt_lookup")


@dataclass(frozen=True)
class Bracket:
    """Between what R must lie at every load: gamma c + 1 (Thm 3.8) and gamma c_hat + gamma + 1
    (Thm 3.11). `high` is infinite where c_hat is unknown; `low` is 1 where c is.
    """

    low: float
    high: float

    def flag(self, cost: float) -> str:
        """Why a round of that cost cannot be, or empty."""
        if cost < self.low * (1 - TOLERANCE):
            if self.low == 1:
                return "S is above τ: the baseline is not comparable, or τ is wrong"
            return f"R is below γc + 1 = {self.low:.2f}: check that the arms compare, c and τ"
        if cost > self.high * (1 + TOLERANCE):
            return (
                f"R is above γĉ + γ + 1 = {self.high:.2f}: more than every row paid for in full; "
                "check the overhead of a round and whether the arms are comparable"
            )
        return ""


def bracket(gamma: int | None, c: float | None = None, c_hat: float | None = None) -> Bracket:
    """The bracket of R for a chain of gamma drafts; `c` and `c_hat` None where unknown."""
    if not gamma:
        return Bracket(1.0, math.inf)
    low = 1.0 if c is None else gamma * c + 1.0
    return Bracket(low, math.inf if c_hat is None else gamma * c_hat + gamma + 1.0)


@dataclass(frozen=True)
class RoundPoint:
    """One load: tokens a round, S and what the round costs in plain steps.

    `low` and `high` are the ends of R by the interval of S alone, tau taken as exact; None with
    one run in either arm. `limited`: tau is above 0.9 (gamma + 1). `flag` says why the point
    cannot be right, or is empty.
    """

    load: float
    tau: float
    speedup: float
    cost: float
    low: float | None
    high: float | None
    limited: bool
    flag: str


@dataclass(frozen=True)
class ArmRounds:
    """One arm's rounds by load, or why there are none. `k` is None for a tree or unknown K."""

    label: str
    method: str
    k: int | None
    points: tuple[RoundPoint, ...]
    why_not: str = ""

    @property
    def curve(self) -> tuple[RoundPoint, ...]:
        """The points that lie on a curve: all but an infinite request rate."""
        return tuple(p for p in self.points if math.isfinite(p.load))


@dataclass(frozen=True)
class FittedRound:
    """R = v + c K through the arms of one method and protocol (`method` names both) at one load."""

    method: str
    load: float
    line: RoundFit
    ks: tuple[int, ...]


def mean_tau(runs: Sequence[Run]) -> float | None:
    """Tokens a round over repeated runs; None where no run lets it be known.

    Pooled, all tokens over all rounds, where every run has counts; else the mean of what is known.
    """
    counted = [(t, n) for r in runs if (t := counted_tau(r)) and (n := counted_rounds(r))]
    if runs and len(counted) == len(runs):
        return sum(t * n for t, n in counted) / sum(n for _, n in counted)
    known = [t for r in runs if (t := tokens_per_round(r)) is not None]
    return sum(known) / len(known) if known else None


def round_costs(found: Findings) -> tuple[ArmRounds, ...]:
    """Every arm's round cost by load, with the reason where there is none.

    Points outside their bracket are flagged. Its c is 0 for a drafter that looks drafts up, else
    that of a line through at least three K, which then stands for c_hat too (a small drafter uses
    the hardware worse, so c_hat is no larger).
    """
    arms = tuple(_of_arm(arm, found) for arm in found.arms)
    known = {f.method: f.line.c for f in fits(arms) if f.line.points > 2 and f.line.miss < MISS}
    return tuple(_bracketed(arm, known.get(_group(arm))) for arm in arms)


def _bracketed(arm: ArmRounds, c: float | None) -> ArmRounds:
    if c is None or c < 0 or arm.method in NO_DRAFTER:
        return arm
    limits = bracket(arm.k, c, c)
    points = (replace(p, flag=limits.flag(p.cost)) for p in arm.points)
    return replace(arm, points=tuple(points))


def fits(arms: Sequence[ArmRounds]) -> tuple[FittedRound, ...]:
    """c and v by method, from every group of at least two chains of different K at one load.

    The load with the most K, the lowest of those. Two points always fit; look at `line.points`.
    """
    groups: dict[str, list[ArmRounds]] = {}
    for arm in arms:
        if arm.k and arm.points:
            groups.setdefault(_group(arm), []).append(arm)
    found = []
    for name, chains in groups.items():
        costs: dict[float, dict[int, float]] = {}
        for arm in chains:
            for p in arm.curve:
                if arm.k and not p.flag:
                    costs.setdefault(p.load, {})[arm.k] = p.cost
        load = max(costs, key=lambda x: (len(costs[x]), -x), default=math.nan)
        ks = sorted(costs.get(load, ()))
        if len(ks) >= 2:
            line = measured_round.fit(ks, [costs[load][k] for k in ks])
            found.append(FittedRound(name, load, line, tuple(ks)))
    return tuple(found)


def _group(arm: ArmRounds) -> str:
    """Method and protocol: the label without its K."""
    return arm.label.replace(f":{arm.k}", "", 1)


def _of_arm(arm: ArmFinding, found: Findings) -> ArmRounds:
    on = [r for c in arm.pairs.cells for r in c.on]
    first = on[0] if on else None
    method = (first.draft_method if first else "") or "speculation"
    tree = any((r.draft_topk or 1) > 1 for r in on)
    k = None if tree or first is None else first.num_speculative_tokens
    why_not = _why_not(arm, found, on)
    if why_not:
        return ArmRounds(arm.label, method, k, (), why_not)
    c = 0.0 if method in NO_DRAFTER else None
    limits = bracket(k, c, c)
    runs = {c.load: c.on for c in arm.pairs.cells}
    points = [
        _point(p, tau, k, limits) for p in arm.points if (tau := mean_tau(runs[p.load])) is not None
    ]
    return ArmRounds(arm.label, method, k, tuple(points))


def _point(ratio: LogRatio, tau: float, k: int | None, limits: Bracket) -> RoundPoint:
    cost = float(measured_round.round_cost(tau, ratio.multiplier))
    ends = ratio.interval()
    low, high = (tau / ends[1], tau / ends[0]) if ends else (None, None)
    limited = bool(k) and measured_round.limited_by_gamma(tau, k or 1)
    return RoundPoint(
        ratio.load, tau, ratio.multiplier, cost, low, high, limited, limits.flag(cost)
    )


def _why_not(arm: ArmFinding, found: Findings, on: Sequence[Run]) -> str:
    """Why no round cost may be read from this arm, or empty."""
    if found.metric.name not in ("output_tps", "tpot_ms"):
        return "compare on output throughput or mean TPOT"
    if not arm.points:
        return "no load was measured in both arms"
    if any(d.verdict == "allocation" for d in arm.pairs.differences):
        return "the arms ran on different allocations: no round cost is drawn from it"
    if fields := sorted({d.field for d in arm.pairs.differences if d.overridden}):
        return f"the arms differ in {', '.join(fields)}, which a person overrides"
    if any(r.schedule is not None for r in on):
        return "a schedule's plain steps are in no counter, so τ does not cover them"
    if on[0].num_speculative_tokens == 0:
        return "K = 0 drafts nothing"
    if all(tokens_per_round(r) is None for r in on):
        return "τ is not known: no run states its counts, an accepted length or a rate with its K"
    return ""
