"""The five ways in which speculation disappoints, each judged on the study in hand.

A guardrail is green where the data rule the failure out, tripped where they show it, open where
something is missing to tell.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from lib.decision.judging import level
from lib.decision.states import Verdict
from lib.evidence.engine_schedule import check
from lib.evidence.findings import ArmFinding, Findings
from lib.evidence.ratio import LogRatio
from lib.evidence.round_cost import mean_tau
from lib.evidence.schedule import Schedule
from lib.money.pricing import PricedPair
from lib.run import Run

SAME_LENGTH = 0.02  # draft lengths within this are equal: one K drafted throughout
SAME_SHARE = 0.1  # and so much of the output, so that no rounds without drafts hide
LARGEST_BATCH = 65_536


class Light(StrEnum):
    """How a guardrail stands."""

    GREEN = "green"
    OPEN = "open"
    TRIPPED = "tripped"


LIGHTS = {Light.GREEN: "✓", Light.OPEN: "○", Light.TRIPPED: "✕"}


@dataclass(frozen=True)
class Guardrail:
    """One failure mode: how it stands and the data behind that, or what is missing to tell.

    `page` fills what is missing; empty where the decision page itself does.
    """

    title: str
    light: Light
    said: str
    page: str


def guardrails(
    findings: Findings,
    found: Verdict,
    latency: Findings | None,
    priced: Sequence[PricedPair],
    schedule: Schedule | str,
    claimed: float | None = None,
    max_num_seqs: int | None = None,
) -> tuple[Guardrail, ...]:
    """The five, about the arm of the verdict, else the leading one.

    `findings` are on throughput, `latency` on mean TPOT (None where no run has it). `priced` are
    the pairs at the operating load, `claimed` a published speedup as a person typed it.
    """
    arm = next((a for a in findings.arms if a.label == found.arm), None)
    arm = arm or findings.headline(found.load)
    return (
        _latency(latency, arm, found.load),
        _load(findings, arm, max_num_seqs),
        _claim(findings, arm, claimed),
        _cost(findings, arm, found, priced),
        _static(findings.study.runs, schedule),
    )


def _latency(latency: Findings | None, arm: ArmFinding | None, load: float | None) -> Guardrail:
    title, page = "Net latency loss despite τ", "compare"
    mine = [a for a in latency.arms if arm and a.label == arm.label] if latency else []
    points = [p for a in mine for p in a.points if load is None or p.load == load]
    if latency is None or not points:
        at = "" if load is None else f" at {load:g}"
        missing = f"Mean TPOT is not recorded in both arms{at}."
        return Guardrail(title, Light.OPEN, missing, "results")
    wanted = level(latency)
    lost = [p for p in points if p.mark(wanted) == "loses"]
    if lost:
        runs = [r for a in mine for c in a.pairs.cells if c.load == lost[0].load for r in c.on]
        tau = mean_tau(runs)
        despite = " although τ is not recorded" if tau is None else f" despite τ {tau:.2f}"
        slower = 100 * (1 / lost[0].multiplier - 1)
        said = f"TPOT at {lost[0].load:g} is {slower:.0f} % longer with {mine[0].label}{despite}."
        return Guardrail(title, Light.TRIPPED, said, page)
    if all(p.mark(wanted) == "wins" for p in points):
        at = ", ".join(f"{p.load:g}" for p in points)
        return Guardrail(title, Light.GREEN, f"TPOT is shorter with it at {at}.", page)
    unsure = [p for p in points if p.mark(wanted) != "wins"]
    return Guardrail(title, Light.OPEN, f"{_not_shown('TPOT', unsure)}.", page)


def _not_shown(what: str, points: Sequence[LogRatio]) -> str:
    at = ", ".join(f"{p.load:g}" for p in points)
    single = any(p.se is None for p in points)
    why = "three runs an arm are needed" if single else "its interval holds 1"
    return f"{what} at {at} is not decided: {why}"


def _load(findings: Findings, arm: ArmFinding | None, max_num_seqs: int | None) -> Guardrail:
    title, page = "Gain disappears as load rises", "compare"
    points = (
        sorted((p for p in arm.points if math.isfinite(p.load)), key=lambda p: p.load)
        if (arm)
        else []
    )
    if arm is None or not points:
        return Guardrail(title, Light.OPEN, "No load was measured in both arms.", "results")
    wanted = level(findings)
    won = [p for p in points if p.mark(wanted) == "wins"]
    lost = [p for p in points if won and p.load > won[0].load and p.mark(wanted) == "loses"]
    if lost:
        said = (
            f"{arm.label} wins at {won[0].load:g} ({won[0].multiplier:.2f}×) and loses at "
            f"{lost[0].load:g} ({lost[0].multiplier:.2f}×)."
        )
        return Guardrail(title, Light.TRIPPED, said, page)
    unsure = [p for p in points if p.mark(wanted) not in ("wins", "loses")]
    if unsure:
        return Guardrail(title, Light.OPEN, f"{_not_shown('M', unsure)}.", page)
    highest = points[-1].load
    if not won:
        said = f"There is no gain to disappear: it loses at every load from {points[0].load:g}."
        return Guardrail(title, Light.GREEN, said, page)
    top = max_num_seqs or _recorded_top(arm)
    if top is None:
        said = f"It wins up to {highest:g}; type max_num_seqs to tell whether that is the top."
        return Guardrail(title, Light.OPEN, said, "")
    if highest < top:
        said = f"Above {highest:g} nothing was measured, and the engine goes to {top:,}."
        return Guardrail(title, Light.OPEN, said, page)
    said = f"It wins at every load from {points[0].load:g} to {highest:g}, the engine's limit."
    return Guardrail(title, Light.GREEN, said, page)


def _recorded_top(arm: ArmFinding) -> int | None:
    tops = {r.max_num_seqs for c in arm.pairs.cells for r in c.on if r.max_num_seqs}
    return tops.pop() if len(tops) == 1 else None


def _claim(findings: Findings, arm: ArmFinding | None, claimed: float | None) -> Guardrail:
    title = "Published speedup not transferred"
    if claimed is None:
        said = "Type the speedup that was published for this drafter, below."
        return Guardrail(title, Light.OPEN, said, "")
    points = [p for p in arm.points if math.isfinite(p.load)] if arm else []
    if arm is None or not points:
        return Guardrail(title, Light.OPEN, "No load was measured in both arms.", "results")
    point = min(points, key=lambda p: p.load)
    ends = point.interval(level(findings))
    measured = f"{claimed:g}× is claimed; {arm.label} measures {point.multiplier:.2f}×"
    at = f"at {point.load:g}, its lowest load"
    if ends is None:
        said = f"{measured} {at}, on one run an arm: three are needed."
        return Guardrail(title, Light.OPEN, said, "compare")
    spanned = f"{measured} ({ends[0]:.2f} to {ends[1]:.2f}) {at}."
    if ends[1] < claimed:
        return Guardrail(title, Light.TRIPPED, spanned, "compare")
    return Guardrail(title, Light.GREEN, spanned, "compare")


def _cost(
    findings: Findings, arm: ArmFinding | None, found: Verdict, priced: Sequence[PricedPair]
) -> Guardrail:
    title = "Throughput gain but cost regression"
    if found.load is None or arm is None:
        return Guardrail(title, Light.OPEN, "Name your operating load, at the left.", "")
    point = arm.at(found.load)
    ends = None if point is None else point.interval(level(findings))
    if point is None or ends is None:
        said = f"M at {found.load:g} has no interval: three runs an arm are needed."
        return Guardrail(title, Light.OPEN, said, "compare")
    pair = next((p for p in priced if p.on.arm == arm.label and p.complete is not None), None)
    bar = None if pair is None else pair.break_even_multiplier
    if bar is None:
        why = next((p.on.why_not or p.off.why_not for p in priced if p.on.arm == arm.label), "")
        return Guardrail(title, Light.OPEN, f"No price: {why or 'type a $/GPU-h'}.", "price")
    said = f"M {point.multiplier:.2f}× at {found.load:g}; {bar:.2f}× is needed to break even"
    if ends[1] < 1:
        return Guardrail(title, Light.GREEN, f"{said}: no throughput is gained there.", "price")
    if ends[0] > 1 and ends[1] < bar:
        return Guardrail(title, Light.TRIPPED, f"{said}: faster and dearer.", "price")
    if ends[0] > bar:
        return Guardrail(title, Light.GREEN, f"{said}: the gain pays for itself.", "price")
    said = f"{said}, inside its interval {ends[0]:.2f} to {ends[1]:.2f}."
    return Guardrail(title, Light.OPEN, said, "compare")


def _static(runs: Sequence[Run], schedule: Schedule | str) -> Guardrail:
    title, page = "Dynamic schedule silently static", "compare"
    arms = sorted({r.arm for r in runs if r.schedule is not None and r.arm})
    if not arms:
        if isinstance(schedule, Schedule) and schedule.blocked_export:
            return Guardrail(title, Light.TRIPPED, schedule.blocked_export, page)
        if isinstance(schedule, Schedule) and schedule.fixed_k is not None:
            said = "No schedule is wanted: a fixed K does the same."
            return Guardrail(title, Light.GREEN, said, page)
        said = "No schedule was measured as an arm of its own, with the server's counters."
        return Guardrail(title, Light.OPEN, said, page)
    found = [_static_arm(a, [r for r in runs if r.arm == a]) for a in arms]
    order = (Light.TRIPPED, Light.OPEN, Light.GREEN)
    light, said = min(found, key=lambda f: order.index(f[0]))
    return Guardrail(title, light, said, page)


def _static_arm(arm: str, runs: Sequence[Run]) -> tuple[Light, str]:
    parallel = max((r.data_parallel or 1 for r in runs), default=1)
    if parallel > 1:
        return Light.TRIPPED, f"{arm} ran with data parallel {parallel}: vLLM then drafts one K."
    lengths = {x: _drafted(g) for x, g in _by_load(runs).items()}
    known = {x: d for x, d in lengths.items() if d is not None}
    if len(known) < 2:
        return Light.OPEN, f"{arm}: drafts are counted at {len(known)} load; two are needed."
    per_round = {x: d[0] for x, d in known.items()}
    low, high = min(known), max(known)
    said = f"{arm} drafts {per_round[low]:.3g} tokens a round at {low:g}, {per_round[high]:.3g} at "
    said += f"{high:g}"
    shortest, longest = min(per_round.values()), max(per_round.values())
    if longest == 0:
        return Light.OPEN, f"{arm} drafts nothing at any load: measure it at a lower one."
    if longest > shortest * (1 + SAME_LENGTH):
        return Light.GREEN, f"{said}: it follows the load."
    shares = [d[1] for d in known.values() if d[1] is not None]
    if len(shares) == len(known) and max(shares) - min(shares) > SAME_SHARE:
        share = f"{100 * min(shares):.0f} to {100 * max(shares):.0f} % of the output"
        return Light.GREEN, f"{said}, for {share}: at K = 0 no draft is counted."
    if _one_tier(runs, list(known)):
        return Light.OPEN, f"{said}: one K by its own ranges; measure it in two of them."
    if len(shares) < len(known):
        return Light.OPEN, f"{said}; the output tokens are needed to tell K = 0 from no change."
    return Light.TRIPPED, f"{said}: it does not follow the load."


def _by_load(runs: Sequence[Run]) -> dict[float, list[Run]]:
    found: dict[float, list[Run]] = {}
    for run in runs:
        if run.offered_load is not None and math.isfinite(run.offered_load):
            found.setdefault(run.offered_load, []).append(run)
    return found


def _drafted(runs: Sequence[Run]) -> tuple[float, float | None] | None:
    """Draft tokens a round, and the share of the output from rounds that drafted (None unknown)."""
    if not runs or any(r.draft_tokens is None or r.drafts is None for r in runs):
        return None
    if not any(r.drafts for r in runs):
        return 0.0, 0.0
    rounds = sum(r.drafts or 0 for r in runs)
    length = sum(r.draft_tokens or 0 for r in runs) / rounds
    if any(not r.output_tokens or r.accepted_tokens is None for r in runs):
        return length, None
    accepted = sum(r.accepted_tokens or 0 for r in runs)
    return length, (rounds + accepted) / sum(r.output_tokens or 0 for r in runs)


def _one_tier(runs: Sequence[Run], loads: Sequence[float]) -> bool:
    """Whether the schedule's own text has one K at all these loads."""
    largest = max((r.num_speculative_tokens or 0 for r in runs), default=0) or 64
    ranges = check(runs[0].schedule, largest, LARGEST_BATCH).effective
    ks = {k for x in loads for first, last, k in ranges if first <= x <= last}
    return len(ks) == 1
