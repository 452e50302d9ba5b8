"""What a study says, in sentences built from its findings."""

import math
from itertools import groupby

from lib.estimate import Estimate
from lib.evidence.crossover import Crossing
from lib.evidence.findings import ArmFinding, Findings
from lib.evidence.ratio import UNSURE, LogRatio, Mark
from lib.report import goodput_text
from lib.report.format import load as load_text
from lib.report.format import percent
from lib.results.study_checks import NOISE
from lib.run import LoadKind

WORDS: dict[Mark, str] = {
    "wins": "wins",
    "loses": "loses",
    "too close to call": "is too close to call",
    "ahead, one run": "is ahead",
    "behind, one run": "is behind",
    "within noise, one run": "is within noise",
}

MOST_NAMED = 3
UNITS = {
    LoadKind.CONCURRENCY: ("", " concurrent"),
    LoadKind.REQUEST_RATE: ("", " requests/s"),
    LoadKind.BATCH: ("batch ", ""),
}


def around(kind: LoadKind, load: float) -> tuple[str, str]:
    """What stands before and after a load of that kind; an infinite rate has no unit."""
    return UNITS[kind] if math.isfinite(load) else ("", " on the request rate")


def headline_point(arm: ArmFinding, load: float | None) -> LogRatio:
    """The arm's point at the named load, else at its lowest load."""
    return arm.at(load) or arm.points[0]


def compare_answer(found: Findings, load: float | None) -> tuple[str, Estimate | None]:
    """The answer of the compare page and the estimate it rests on."""
    arm = found.headline(load)
    if arm is None:
        return _nothing(found), None
    crossings = "; ".join(_brief(c) for c in arm.crossover.crossings)
    sentence = f"{arm.label} {_segments(arm)}"
    sentence += f" ({crossings})." if crossings else "."
    sentence += _single(arm)
    if noise := _within_noise(arm):
        sentence += f" {noise}"
    if behind := _all_behind(found):
        sentence += f" {behind}"
    if everywhere := _everywhere(arm):
        sentence += f" {everywhere[0].upper()}{everywhere[1:]}."
    if gaps := goodput_text.clauses(arm):
        sentence += f" Without a ratio: {gaps}."
    sentence += _others(found, arm)
    return sentence, point_estimate(found, arm, headline_point(arm, load))


def _others(found: Findings, arm: ArmFinding) -> str:
    """The arms that the sentence is not about, by name while these are few."""
    names = [a.label for a in found.arms if a is not arm and a.points]
    if not names:
        return ""
    if len(names) > MOST_NAMED:
        return f" {len(names)} other arms are measured: see the figure."
    return f" Also measured: {', '.join(names)}."


def _single(arm: ArmFinding) -> str:
    """At which loads a lone run leaves no interval."""
    lone = [load_text(p.load) for p in arm.points if p.se is None]
    if not lone:
        return ""
    if len(lone) == len(arm.points):
        return " One run an arm: three are needed for an interval."
    return f" A lone run at {', '.join(lone)}: three are needed there for an interval."


def _nothing(found: Findings) -> str:
    """Why there is no point: refused by a difference, not recorded, or no ratio on goodput."""
    if any(a.without_ratio for a in found.arms):
        return goodput_text.without_points(found)
    refused = {d.field for d in found.comparison.differences if d.verdict == "blocks"}
    if any(a.pairs.blocked for a in found.arms):
        return f"Every shared load is refused: {', '.join(sorted(refused))} differs."
    if note := found.comparison.open_loop_note:
        return f"Nothing is compared on {found.metric.label.lower()}: {note}."
    if all(not a.pairs.cells for a in found.arms):
        between = "; ".join(filter(None, (_everywhere(a) for a in found.arms)))
        end = between or "there is nothing to compare"
        return f"No load was measured in both arms: {end}."
    return f"{found.metric.label} is not recorded in both arms at any load."


def _within_noise(arm: ArmFinding) -> str:
    """Loads whose difference launches alone may make, where no repeat says how large that is."""
    near = [load_text(p.load) for p in arm.points if p.mark() == "within noise, one run"]
    if not near:
        return ""
    at = ", ".join(near)
    return f"At {at} the difference is up to {percent(NOISE[1])}: within noise of one launch."


def _all_behind(found: Findings) -> str:
    """What to do where no arm is ahead anywhere: off, with the best of a bad lot."""
    points = [(a, p) for a in found.arms for p in a.points]
    lost = ("loses", "behind, one run")
    if not all(p.log_m < 0 for _, p in points) or not any(p.mark() in lost for _, p in points):
        return ""
    if any(a.derived or a.without_ratio for a in found.arms):
        return ""
    arm, point = max(points, key=lambda x: x[1].log_m)
    which = f"{arm.label} at {load_text(point.load)}"
    return (
        f"No arm is ahead at any load: leave it off; the best, {which}, is {point.multiplier:.3f}×."
    )


def _everywhere(arm: ArmFinding) -> str:
    """Which arm leads at every load, where measured and hollow points all say the same."""
    sides = {"ahead" if p.log_m > 0 else "behind" for p in arm.points} | {arm.only_derived}
    if arm.without_ratio or not arm.derived or sides not in ({"ahead"}, {"behind"}):
        return ""
    if any(p.mark() in UNSURE for p in arm.points):
        return ""
    leads = arm.label if sides == {"ahead"} else "off"
    every = "rate" if arm.pairs.load_kind is LoadKind.REQUEST_RATE else "load"
    ends = sorted((*arm.points, *arm.derived), key=lambda p: p.log_m)
    low, high = ends[0].multiplier, ends[-1].multiplier
    return (
        f"{leads} is ahead at every {every}, measured in both or in one and interpolated in the "
        f"other ({low:.2f}× to {high:.2f}×); hollow points decide nothing"
    )


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
        if not arm.points and not arm.without_ratio:
            lines.append(f"{name}: {_everywhere(arm) or 'nothing to compare'}. {_nothing(found)}")
        elif arm.crossover.crossings:
            lines += [f"{name}: {_full(c)}{_shaky_ends(arm, c)}." for c in arm.crossover.crossings]
            if any(c.direction == "up" for c in arm.crossover.crossings):
                lines.append(_win_regions(arm))
        elif arm.crossover.outside:
            lines.append(f"{name}: {_one_sided(arm)}.")
        elif arm.points:
            lines.append(f"{name}: no crossing among the loads measured.")
        if gaps := goodput_text.gap_line(arm):
            lines.append(gaps)
    return lines


def _one_sided(arm: ArmFinding) -> str:
    """An arm that is ahead, or behind, at every load measured in both; where it is not sure."""
    if everywhere := _everywhere(arm):
        return everywhere
    unsure = [p for p in arm.points if p.mark() in UNSURE]
    open_everywhere = len(unsure) == len(arm.points)
    loads = [load_text(p.load) for p in arm.points if math.isfinite(p.load)]
    ahead = (arm.crossover.outside or "").startswith("above")
    side = "ahead" if ahead else "behind"
    if open_everywhere:
        same = len({p.mark() for p in unsure}) == 1
        side = WORDS[unsure[0].mark() if same else "too close to call"].removeprefix("is ")
    beyond = "no crossing; beyond, nothing was measured"
    if arm.without_ratio:
        beyond = "no crossing among the loads that have a ratio"
    if len(loads) == 1 and arm.without_ratio:
        return f"{side} at {loads[0]}, the only load that has a ratio"
    if len(loads) == 1:
        return f"{side} at {loads[0]}, the only load measured in both; elsewhere nothing was"
    if open_everywhere:
        return f"is {side} from {loads[0]} to {loads[-1]}, {beyond}"
    doubts = [
        f"{WORDS[mark].removeprefix('is ')} at {', '.join(at)}"
        for mark in UNSURE
        if (at := [load_text(p.load) for p in unsure if p.mark() == mark])
    ]
    though = f", though {' and '.join(doubts)}" if doubts else ""
    return f"stays {side} from {loads[0]} to {loads[-1]}{though}, {beyond}"


def _win_regions(arm: ArmFinding) -> str:
    """Where an arm wins that has no single limit: the measured loads, never "up to"."""
    before, after = around(arm.pairs.load_kind, arm.points[-1].load)
    good = {p.load: p.mark() for p in arm.points if p.mark() in ("wins", "ahead, one run")}
    regions = []
    for won, group in groupby(arm.points, key=lambda p: p.load in good):
        loads = [load_text(p.load) for p in group]
        if won:
            regions.append(loads[0] if len(loads) == 1 else f"{loads[0]} to {loads[-1]}")
    if not regions:
        return f"{arm.label}: no single limit, and no load at which it is clearly ahead."
    word = "wins" if set(good.values()) == {"wins"} else "is ahead"
    alone = " alone" if len(good) == 1 else ""
    where = " and ".join(regions)
    return f"{arm.label}: no single limit; it {word} at {before}{where}{after}{alone}."


def _segments(arm: ArmFinding) -> str:
    """`wins at 1 to 16 and loses at 64 concurrent`."""
    before, after = around(arm.pairs.load_kind, arm.points[-1].load)
    parts: list[str] = []
    for word, group in groupby(arm.points, key=lambda p: WORDS[p.mark()]):
        loads = [load_text(p.load) for p in group]
        where = loads[0] if len(loads) == 1 else f"{loads[0]} to {loads[-1]}"
        parts.append(f"{word} at {'' if parts else before}{where}")
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
    if crossing.at is None and crossing.measure_at is None:
        return f"{text}; a load between them has no ratio, so no point is named"
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
        if point is None:
            continue
        if point.mark() in UNSURE:
            runs = "one run each" if point.se is None else f"{point.n_off} and {point.n_on} runs"
            gain = percent(point.multiplier - 1, 1)
            word = WORDS[point.mark()].removeprefix("is ")
            text += f"; at {load:g} the gain is {gain} with {runs}: {word}"
    return text


def _end(value: float) -> str:
    if math.isinf(value):
        return "beyond the highest load" if value > 0 else "below the lowest load"
    return f"{value:.3g}"
