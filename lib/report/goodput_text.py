"""Loads at which goodput has no ratio, in words, marks and a table."""

from collections.abc import Sequence
from itertools import groupby

from lib.evidence.findings import ArmFinding, Findings
from lib.evidence.goodput import Counted, Judged, Side, WithoutRatio
from lib.report.format import load as load_text

MARKS: dict[Side, str] = {"arm": "▲", "off": "▼", "both": "✓", "neither": "✕", "undecided": "?"}
MEANING: dict[Side, str] = {
    "arm": "only the arm",
    "off": "only off",
    "both": "both",
    "neither": "neither",
    "undecided": "undecided",
}
ONE: dict[Counted | Judged, str] = {
    "good": "has good requests",
    "none": "has no good request",
    "partly": "has runs without a good request",
    "met": "meets the SLO",
    "missed": "misses the SLO",
    "unknown": "is undecided by the percentiles recorded",
    "unrecorded": "has no goodput recorded",
}
BOTH: dict[Counted | Judged, str] = {
    "good": "have good requests",
    "none": "have no good request",
    "partly": "have runs without a good request",
    "met": "meet the SLO",
    "missed": "miss the SLO",
    "unknown": "are undecided by the percentiles recorded",
    "unrecorded": "have no goodput recorded",
}


def mark(gap: WithoutRatio) -> str:
    """`▲ only the arm`: which side holds the SLO."""
    return f"{MARKS[gap.side]} {MEANING[gap.side]}"


def clauses(arm: ArmFinding) -> str:
    """`at 1 to 16 both meet the SLO; at 32 off misses the SLO, eagle3:4 meets it`."""
    gaps = {g.load: g for g in arm.without_ratio}
    parts = []
    for said, group in groupby(sorted(arm.loads), key=lambda x: _said(gaps.get(x), arm.label)):
        named = [load_text(x) for x in group]
        if said:
            where = named[0] if len(named) == 1 else f"{named[0]} to {named[-1]}"
            parts.append(f"at {where} {said}")
    return "; ".join(parts)


def _said(gap: WithoutRatio | None, arm: str) -> str:
    if gap is None:
        return ""
    if gap.off == gap.on:
        return f"both {BOTH[gap.off]}"
    after = ONE[gap.on].replace("the SLO", "it") if "the SLO" in ONE[gap.off] else ONE[gap.on]
    return f"off {ONE[gap.off]}, {arm} {after}"


def without_points(found: Findings) -> str:
    """The answer where no load has a ratio: what each arm does, and why that is no multiplier."""
    arms = "; ".join(f"{a.label}: {clauses(a)}" for a in found.arms if a.without_ratio)
    judged = any(g.off_rps is None or g.on_rps is None for a in found.arms for g in a.without_ratio)
    why = "Against no good request there is no ratio."
    if judged:
        why = "A pass or a fail is no ratio; requests kept one by one would be counted."
    return f"No multiplier on goodput. {arms}. {why}"


def gap_line(arm: ArmFinding) -> str:
    """The arm's loads without a ratio beside those that have one; empty where there are none."""
    if not arm.without_ratio:
        return ""
    return f"{arm.label} without a ratio: {clauses(arm)}."


def legend(found: Findings) -> str:
    """What the marks at the foot of the figure mean; empty where there are none."""
    used = {g.side for a in found.arms for g in a.without_ratio}
    named = [f"{MARKS[side]} {text}" for side, text in MEANING.items() if side in used]
    if not named:
        return ""
    return f"At the foot, loads without a ratio, by who holds the SLO: {', '.join(named)}."


def gap_table(found: Findings) -> dict[str, Sequence[object]]:
    """One row an arm and load without a ratio: what is known of off and of the arm."""
    rows = [
        (a.label, g.load, mark(g), ONE[g.off], ONE[g.on], g.off_rps, g.on_rps)
        for a in found.arms
        for g in a.without_ratio
    ]
    unit = found.metric.unit
    names = ("arm", "load", "holds the SLO", "off", "the arm", f"off, {unit}", f"arm, {unit}")
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    return {name: values for name, values in columns.items() if any(v is not None for v in values)}
