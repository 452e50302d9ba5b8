"""The gates from screen to monitor, and the verdict at the operating load that a person names."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from lib.estimate import Basis, Estimate
from lib.evidence.crossover import wins_up_to
from lib.evidence.findings import ArmFinding, Findings
from lib.evidence.ratio import LogRatio
from lib.evidence.schedule import Schedule
from lib.money.pricing import PricedPair
from lib.theory import walltime

DRAWS = 10_000
REPEATS_NEEDED = 3

# Unreplicated and not peer reviewed: shown as a warning, never as a threshold.
PRACTITIONER_REPORT = (
    "A practitioner measured EAGLE-3 on Llama-3.1-8B, one 48 GB GPU, 500 ShareGPT prompts: "
    "τ 1.81 and about 45 tok/s, slower than without speculation. Unreplicated and not peer "
    "reviewed; no threshold here uses it. It shows that a drafter can be accepted and still lose."
)
PRACTITIONER_SOURCE = "Vizuara, case study on speculative decoding (blog; numbers unconfirmed)"


class State(StrEnum):
    """How a gate stands."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"
    MISSING = "missing"


MARKS = {State.PASSED: "✓", State.FAILED: "✕", State.UNDECIDED: "≈", State.MISSING: "○"}


@dataclass(frozen=True)
class Gate:
    """One step of the way: what is known and from where, what is missing, which page fills it."""

    title: str
    state: State
    known: str
    basis: Basis | None
    missing: str
    page: str


@dataclass(frozen=True)
class Verdict:
    """The sentence at the operating load and what it claims.

    `state` is passed where speculation wins there, failed where it loses, undecided where the
    evidence does not decide, missing where no load is named. `share` is the fraction of redraws
    of the measured ratios in which the sentence holds.
    """

    state: State
    sentence: str
    arm: str | None = None
    multiplier: Estimate | None = None
    up_to: float | None = None
    share: float | None = None
    open_points: tuple[str, ...] = ()


@dataclass(frozen=True)
class ScreenInputs:
    """The theorem's inputs as they stand on the screen page, and where they come from."""

    alpha: float
    gamma: int
    c: float
    basis: Basis
    source: str


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
    at = f"{operating_load:g}"
    here = [(a, p) for a in findings.arms if (p := a.at(operating_load)) is not None]
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
    word = {"ahead, one run": "ahead", "behind, one run": "behind"}.get(
        point.mark(), "too close to call"
    )
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
    if any(p.se is None or p.df is None for p in unique):
        return None
    rng = np.random.default_rng(seed)
    holds = np.ones(DRAWS, dtype=bool)
    for p in unique:
        draws = p.log_m + float(p.se or 0) * rng.standard_t(float(p.df or 1), DRAWS)
        holds &= (draws > 0) if above else (draws < 0)
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


def gates(
    findings: Findings,
    found: Verdict,
    screen: ScreenInputs | None,
    priced: Sequence[PricedPair],
    schedule: Schedule | str,
) -> tuple[Gate, ...]:
    """The path from screen to monitor, in the order of the work.

    `priced` are the pairs at the operating load; `schedule` is what the person's choices gave, or
    why there is none.
    """
    return (
        _screen_gate(screen),
        _load_gate(findings, found),
        _price_gate(found, priced),
        _schedule_gate(schedule),
        Gate(
            "Live",
            State.MISSING,
            "",
            None,
            "After deploying, compare the server's τ and TPOT with these figures.",
            "",
        ),
    )


def _screen_gate(screen: ScreenInputs | None) -> Gate:
    title = "Screen"
    if screen is None or screen.basis is Basis.PUBLISHED:
        missing = "The screen stands on a published example of other models: set your α, γ and c."
        return Gate(title, State.MISSING, "", None, missing, "screen")
    s = walltime.speedup(screen.alpha, screen.gamma, screen.c)
    word = walltime.verdict(s)
    decided = {
        walltime.Verdict.CANDIDATE: State.PASSED,
        walltime.Verdict.REJECT: State.FAILED,
        walltime.Verdict.UNDECIDED: State.UNDECIDED,
    }[word]
    measured = screen.basis is Basis.MEASURED
    return Gate(
        title,
        decided if measured else State.UNDECIDED,
        f"S = {s:.2f}× at low batch for α {screen.alpha:g}, γ {screen.gamma}, c {screen.c:g}: "
        f"{word.value}. {screen.source}",
        Basis.THEOREM,
        "" if measured else "α and c are assumed: measure both on your target and drafter.",
        "screen",
    )


def _load_gate(findings: Findings, found: Verdict) -> Gate:
    if found.state is State.MISSING:
        missing = "Name the operating load, at the left."
    elif found.state is State.UNDECIDED and found.open_points:
        missing = f"State: {', '.join(found.open_points)}."
    elif found.state is State.UNDECIDED:
        missing = f"{REPEATS_NEEDED} or more repeats an arm at that load."
    else:
        missing = ""
    known = found.state is not State.MISSING
    return Gate(
        "A/B at your load",
        found.state,
        found.sentence if known else "",
        findings.study.basis if known else None,
        missing,
        "compare",
    )


def _price_gate(found: Verdict, priced: Sequence[PricedPair]) -> Gate:
    title = "$ per 1M tokens"
    mine = [p for p in priced if p.on.arm == found.arm]
    done = [(p, c) for p in mine if (c := p.complete) is not None]
    if not done:
        why = next((p.on.why_not or p.off.why_not for p in mine or priced), "")
        asked = ["name the operating load"] if found.state is State.MISSING else []
        text = ", ".join([*asked, why or "type a $/GPU-h"])
        return Gate(title, State.MISSING, "", None, f"{text[0].upper()}{text[1:]}.", "price")
    pair, (off, on, saving) = done[0]
    if saving.low is None or saving.high is None:
        state = State.UNDECIDED
    elif saving.low > 0:
        state = State.PASSED
    else:
        state = State.FAILED if saving.high < 0 else State.UNDECIDED
    slo_open = "unknown" in (pair.off.slo, pair.on.slo)
    word = "less" if saving.value >= 0 else "more"
    return Gate(
        title,
        state,
        f"{_usd(on.value)} instead of {_usd(off.value)} per 1M output tokens at "
        f"{pair.on.load:g}: {100 * abs(saving.value):.0f} % {word}.",
        on.basis,
        "SLO unknown: name one, or the price may rest on a missed one." if slo_open else "",
        "price",
    )


def _usd(value: float) -> str:
    return f"${value:,.2f}" if value >= 1 else f"${value:.3g}"


def _schedule_gate(schedule: Schedule | str) -> Gate:
    title = "Schedule"
    if isinstance(schedule, str):
        return Gate(title, State.MISSING, "", None, schedule, "compare")
    if schedule.ranges is None:
        advice = next(iter(schedule.warnings), "No schedule is written.")
        return Gate(title, State.UNDECIDED, advice, Basis.DERIVED, "", "compare")
    ranges = ", ".join(f"K = {k} at batch {first} to {last}" for first, last, k in schedule.ranges)
    return Gate(
        title,
        State.UNDECIDED,
        f"{ranges}.",
        Basis.DERIVED,
        schedule.blocked_export or "A hypothesis until it is measured as its own arm.",
        "compare",
    )
