"""What a study says, in sentences built from its findings."""

import math
from itertools import groupby

from lib.estimate import Estimate
from lib.evidence.crossover import Crossing
from lib.evidence.findings import ArmFinding, Findings
from lib.evidence.ratio import LogRatio, Mark
from lib.report.format import load as load_text
from lib.report.format import percent
from lib.run import LoadKind

WORDS: dict[Mark, str] = {
    "wins": "wins",
    "loses": "loses",
    "too close to call": "is too close to call",
    "ahead, one run": "is ahead",
    "behind, one run": "is behind",
}

UNITS = {
    LoadKind.CONCURRENCY: ("", " concurrent"),
    LoadKind.REQUEST_RATE: ("", " requests/s"),
    LoadKind.BATCH: ("batch ", ""),
}


def headline_arm(found: Findings, load: float | None) -> ArmFinding | None:
    """The arm with the largest M at the named load, else with the largest mean log M."""
    measured = [a for a in found.arms if a.points]
    if not measured:
        return None
    here = [a for a in measured if a.at(load) is not None]

    def strength(arm: ArmFinding) -> float:
        point = arm.at(load) if here else None
        if point is not None:
            return point.log_m
        return sum(p.log_m for p in arm.points) / len(arm.points)

    return max(here or measured, key=strength)


def headline_point(arm: ArmFinding, load: float | None) -> LogRatio:
    """The arm's point at the named load, else at its lowest load."""
    return arm.at(load) or arm.points[0]


def compare_answer(found: Findings, load: float | None) -> tuple[str, Estimate | None]:
    """The answer of the compare page and the estimate it rests on."""
    arm = headline_arm(found, load)
    if arm is None:
        return _nothing(found), None
    crossings = "; ".join(_brief(c) for c in arm.crossover.crossings)
    sentence = f"{arm.label} {_segments(arm)}"
    sentence += f" ({crossings})." if crossings else "."
    if any(p.se is None for p in arm.points):
        sentence += " One run an arm: three are needed for an interval."
    return sentence, point_estimate(found, arm, headline_point(arm, load))


def _nothing(found: Findings) -> str:
    """Why there is no point: refused by a difference, or not recorded."""
    refused = {d.field for d in found.comparison.differences if d.verdict == "blocks"}
    if any(a.pairs.blocked for a in found.arms):
        return f"Every shared load is refused: {', '.join(sorted(refused))} differs."
    if all(not a.pairs.cells for a in found.arms):
        return "No load was measured in both arms: there is nothing to compare."
    return f"{found.metric.label} is not recorded in both arms at any load."


def point_estimate(found: Findings, arm: ArmFinding, point: LogRatio) -> Estimate:
    """M at one load as an estimate, with its 95 % interval where repeats allow one."""
    low, high = point.interval() or (None, None)
    return Estimate(
        point.multiplier,
        "×",
        found.study.basis,
        found.study.citation
        or f"{point.n_off} run(s) off and {point.n_on} of {arm.label} at {point.load:g}",
        low,
        high,
        f"M at {load_text(point.load)} = exp(mean log {found.metric.name}, "
        f"{'with − without' if found.metric.higher_is_better else 'without − with'}), "
        f"{point.n_off} and {point.n_on} runs; 95 % Welch interval on the log scale.",
    )


def crossing_lines(found: Findings) -> list[str]:
    """One line an arm and crossing, or where it must lie when there is none."""
    lines = []
    for arm in found.arms:
        name = arm.label
        if not arm.points:
            lines.append(f"{name}: nothing to compare. {_nothing(found)}")
        elif arm.crossover.crossings:
            lines += [f"{name}: {_full(c)}{_shaky_ends(arm, c)}." for c in arm.crossover.crossings]
        elif arm.crossover.outside:
            finite = [load_text(p.load) for p in arm.points if math.isfinite(p.load)]
            marks = {p.mark() for p in arm.points}
            stays = "stays ahead" if arm.crossover.outside.startswith("above") else "stays behind"
            if marks == {"too close to call"}:
                stays = "is too close to call"
            lines.append(
                f"{name}: {stays} from {finite[0]} to {finite[-1]}, no crossing; beyond, nothing "
                "was measured."
            )
        else:
            lines.append(f"{name}: no crossing among the loads measured.")
    return lines


def _segments(arm: ArmFinding) -> str:
    """`wins at 1 to 16 and loses at 64 concurrent`."""
    before, after = UNITS[arm.pairs.load_kind]
    parts: list[str] = []
    for mark, group in groupby(arm.points, key=lambda p: p.mark()):
        loads = [load_text(p.load) for p in group]
        where = loads[0] if len(loads) == 1 else f"{loads[0]} to {loads[-1]}"
        parts.append(f"{WORDS[mark]} at {'' if parts else before}{where}")
    return " and ".join(p for p in (", ".join(parts[:-1]), parts[-1]) if p) + after


def _brief(crossing: Crossing) -> str:
    a, b = crossing.between
    if crossing.at is None:
        return f"crosses between {a:g} and {b:g}"
    return f"crosses at {crossing.at:.4g}, between measured points"


def _full(crossing: Crossing) -> str:
    a, b = crossing.between
    word = "stops paying" if crossing.direction == "down" else "starts paying"
    text = f"{word} between {a:g} and {b:g}"
    if crossing.at is None:
        return f"{text}; the gap is too wide for a point: measure at {crossing.measure_at:.3g}"
    text += f", at {crossing.at:.4g}"
    if crossing.low is not None and crossing.high is not None:
        text += f" (95 %: {_end(crossing.low)} to {_end(crossing.high)})"
    if crossing.censored_share:
        text += f"; {percent(crossing.censored_share, 1)} of redraws have no such crossing in range"
    return text


def _shaky_ends(arm: ArmFinding, crossing: Crossing) -> str:
    """What stands behind the bracket where one of its ends is itself too close to call."""
    text = ""
    for load in crossing.between:
        point = arm.at(load)
        if point is not None and point.mark() == "too close to call":
            runs = "one run each" if point.se is None else f"{point.n_off} and {point.n_on} runs"
            gain = percent(point.multiplier - 1, 1)
            text += f"; at {load:g} the gain is {gain} with {runs}: too close to call"
    return text


def _end(value: float) -> str:
    if math.isinf(value):
        return "beyond the highest load" if value > 0 else "below the lowest load"
    return f"{value:.3g}"
