"""The verdict at the operating load that a person names: what the intervals allow, and no more."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lib.decision.states import State, Verdict
from lib.estimate import Estimate
from lib.evidence.crossover import winning, wins_up_to
from lib.evidence.findings import ArmFinding, Findings
from lib.evidence.ratio import LogRatio

DRAWS = 10_000
REPEATS_NEEDED = 3


def level(findings: Findings) -> float:
    """Level of each interval behind the verdict: 1 - 0.05 over the number of arms."""
    return 1 - 0.05 / max(1, len(findings.arms))


def verdict(
    findings: Findings, operating_load: float | None, stated: frozenset[str] = frozenset()
) -> Verdict:
    """Win, loss or neither at the named load, by intervals that share a 5 % error over the arms.

    `stated` are unrecorded protocol fields of which a person states that both arms agree; while
    any other is open, the verdict stays undecided.
    """
    if operating_load is None:
        return Verdict(State.MISSING, "Name your operating load to get a verdict.")
    return replace(_verdict(findings, operating_load, stated), load=operating_load)


def _verdict(findings: Findings, operating_load: float, stated: frozenset[str]) -> Verdict:
    at = f"{operating_load:g}"
    here = [(a, p) for a in findings.arms if (p := a.at(operating_load)) is not None]
    if not here and any(r.offered_load == operating_load for r in findings.comparison.open_loop):
        return Verdict(
            State.UNDECIDED,
            f"At {at} requests/s the server kept up with the demand, so tok/s decides nothing: "
            "compare on Mean TPOT, or measure at more than it can serve.",
        )
    if not here:
        return Verdict(
            State.UNDECIDED,
            f"{at} was not measured in both arms: measure it; nothing is read between loads.",
        )
    wanted = level(findings)
    decided = [(a, p, e) for a, p in here if (e := p.interval(wanted)) is not None]
    if not decided:
        return _unreplicated(findings, here, at)
    winners = [(a, p) for a, p, e in decided if e[0] > 1]
    losers = [(a, p) for a, p, e in decided if e[1] < 1]
    if winners:
        arm, point = max(winners, key=lambda w: w[1].log_m)
        found = _win(findings, arm, point, wanted)
    elif len(losers) == len(here):
        arm, point = max(losers, key=lambda w: w[1].log_m)
        found = _loss(findings, arm, point, wanted)
    else:
        held = [(a, p) for a, p, e in decided if e[0] <= 1 <= e[1]] or [d[:2] for d in decided]
        arm, point = max(held, key=lambda w: w[1].log_m)
        found = Verdict(
            State.UNDECIDED,
            f"Too close to call at {at}: {arm.label} measures {point.multiplier:.2f}×, and its "
            "interval holds 1. More repeats may settle it.",
            arm.label,
            _estimate(findings, point, wanted),
        )
    return _with_open_points(found, findings, stated)


def _estimate(findings: Findings, point: LogRatio, wanted: float) -> Estimate:
    ends = point.interval(wanted)
    return Estimate(
        point.multiplier,
        "×",
        findings.study.basis,
        f"{point.n_off} off and {point.n_on} with, at {point.load:g}",
        None if ends is None else ends[0],
        None if ends is None else ends[1],
        f"M = exp(mean of logs, with − without) on {findings.metric.label.lower()}; Welch interval "
        f"on the log scale at {wanted:.1%}",
    )


def _unreplicated(
    findings: Findings, here: Sequence[tuple[ArmFinding, LogRatio]], at: str
) -> Verdict:
    arm, point = max(here, key=lambda w: w[1].log_m)
    word = point.mark().removesuffix(", one run")
    return Verdict(
        State.UNDECIDED,
        f"At {at}, {arm.label} measures {point.multiplier:.2f}× ({word}) on one run an arm: "
        f"{REPEATS_NEEDED} repeats are needed for a verdict.",
        arm.label,
        _estimate(findings, point, level(findings)),
    )


def _win(findings: Findings, arm: ArmFinding, point: LogRatio, wanted: float) -> Verdict:
    finite = [p for p in arm.points if math.isfinite(p.load)]
    up_to = wins_up_to(finite, point.load, wanted) if math.isfinite(point.load) else None
    regions = winning(finite, wanted)
    if len(regions) > 1:  # wins, does not, wins again: no "up to" holds
        up_to = None
        tested = [p for p in finite if any(a <= p.load <= b for a, b in regions)]
        reach = f"; it wins at {_loads(regions)}, and is not shown to between"
    else:
        tested = [p for p in finite if up_to is not None and p.load <= up_to] or [point]
        reach = "" if up_to is None else f", and wins up to {up_to:g}"
    return Verdict(
        State.PASSED,
        f"{arm.label} wins at {point.load:g}: {point.multiplier:.2f}×{reach}.",
        arm.label,
        _estimate(findings, point, wanted),
        up_to,
        share_of_redraws([*tested, point], above=True),
    )


def _loads(regions: Sequence[tuple[float, float]]) -> str:
    """`1 to 8 and 64`."""
    return " and ".join(f"{a:g}" if a == b else f"{a:g} to {b:g}" for a, b in regions)


def _loss(findings: Findings, arm: ArmFinding, point: LogRatio, wanted: float) -> Verdict:
    here = [a for a in findings.arms if a.at(point.load) is not None]
    elsewhere = len(findings.arms) - len(here)
    many = "Every arm measured there loses" if len(here) > 1 else f"{arm.label} loses"
    best = f"the best, {arm.label}, measures" if len(here) > 1 else "it measures"
    return Verdict(
        State.FAILED,
        f"{many} at {point.load:g}: {best} {point.multiplier:.2f}×. "
        + (
            f"{elsewhere} arm{'s were' if elsewhere > 1 else ' was'} not measured there."
            if elsewhere
            else "Leave speculation off there."
        ),
        arm.label,
        _estimate(findings, point, wanted),
        None,
        share_of_redraws_below([p for a in here if (p := a.at(point.load)) is not None]),
    )


def share_of_redraws(points: Sequence[LogRatio], *, above: bool, seed: int = 0) -> float | None:
    """Fraction of redraws in which every M is above (or below) 1; None where a load has one run."""
    unique = list({p.load: p for p in points}.values())
    return share_holding([(p, 0.0, above) for p in unique], seed)


def share_holding(claims: Sequence[tuple[LogRatio, float, bool]], seed: int = 0) -> float | None:
    """Fraction of redraws of log M + se·t in which every claim holds; None where one has one run.

    A claim is a point, a bar on the log scale and whether log M is claimed to lie above it.
    Claims about one point share its redraw.
    """
    drawn: dict[LogRatio, np.ndarray] = {}
    rng = np.random.default_rng(seed)
    holds = np.ones(DRAWS, dtype=bool)
    for p, bar, above in claims:
        if p.se is None or p.df is None:
            return None
        if p not in drawn:
            drawn[p] = p.log_m + p.se * rng.standard_t(p.df, DRAWS)
        holds &= (drawn[p] > bar) if above else (drawn[p] < bar)
    return float(holds.mean())


def share_of_redraws_below(points: Sequence[LogRatio], seed: int = 0) -> float | None:
    """Fraction of redraws in which every arm at one load is below 1."""
    keyed = [replace(p, load=float(i + 1)) for i, p in enumerate(points)]
    return share_of_redraws(keyed, above=False, seed=seed)


def _with_open_points(found: Verdict, findings: Findings, stated: frozenset[str]) -> Verdict:
    unknown = [f for f in findings.comparison.not_recorded if f not in stated]
    if not unknown or found.state not in (State.PASSED, State.FAILED):
        return found
    return Verdict(
        State.UNDECIDED,
        f"Undecided: {found.sentence[:-1]}, but {len(unknown)} protocol fields are not recorded. "
        "State them and it stands.",
        found.arm,
        found.multiplier,
        found.up_to,
        found.share,
        tuple(unknown),
    )
