"""What a study says of its rounds, in sentences: why the gain changes with the load."""

from collections.abc import Sequence

from lib.evidence.acceptance_groups import Group
from lib.evidence.builds import speed_changed
from lib.evidence.findings import Findings
from lib.evidence.next_measurement import REPEATS_NEEDED
from lib.evidence.ratio import TIE
from lib.evidence.round_cost import ArmRounds, FittedRound, RoundPoint, fits
from lib.report.format import load as load_text
from lib.report.format import multiplier, percent
from lib.report.load_figures import at_load
from lib.theory.measured_round import VERIFY_IS_NOT_FREE, share_of_acceptance

MOSTLY = 0.8  # share of a change from which on one cause is named alone
TITLE = "Round cost R beside S"
MEANING = (
    "R = τ / S: what a round costs in plain decode steps of the same server at the same load. "
    "Speculation pays where τ is above R. The interval of R is that of S; τ is taken as exact."
)


def round_lines(found: Findings, arms: Sequence[ArmRounds]) -> list[str]:
    """One line an arm on what its gain does and why, then what is odd, then the fitted rounds."""
    lines = [line for arm in arms if arm.points for line in _arm_lines(found, arm)]
    return lines + [_fit_line(found, fit) for fit in fits(arms)]


def missing_lines(arms: Sequence[ArmRounds]) -> list[str]:
    """Why no round cost is drawn for an arm; arms with one reason share a line."""
    reasons: dict[str, list[str]] = {}
    for arm in arms:
        if not arm.points:
            reasons.setdefault(arm.why_not or "τ is not known", []).append(arm.label)
    every = len(reasons) == 1 and not any(a.points for a in arms)
    return [
        f"Round cost R is not drawn{'' if every else f' for {_list(names)}'}: {reason}."
        for reason, names in reasons.items()
    ]


def build_title(first: Group, second: Group) -> str:
    """`eagle3:4 at 8 concurrent: 0.11.0 → 0.12.0`."""
    place = first.place
    where = " · ".join(p for p in (place.domain, place.temperature, place.context) if p)
    load = f" at {place.load}" if place.load else ""
    return f"{place.arm}{load}{f', {where}' if where else ''}: {place.build} → {second.place.build}"


def build_noise(first: Group, second: Group) -> str:
    """What the repeats say of a change between two builds; empty where it clears their noise."""
    changed = speed_changed(first, second)
    if changed is None:
        return (
            f"The change of speed has no interval: {REPEATS_NEEDED} runs of each build are needed."
        )
    return "" if changed else "The change of speed is within the noise of the repeats."


def _arm_lines(found: Findings, arm: ArmRounds) -> list[str]:
    lines = [_cause(found, arm)]
    if limited := [p for p in arm.points if p.limited]:
        most = max(limited, key=lambda p: p.tau)
        lines.append(
            f"{arm.label} is limited by γ: τ = {most.tau:.2f} of at most {(arm.k or 0) + 1} tokens "
            "a round; a larger K may bring more."
        )
    flags: dict[str, list[str]] = {}
    for p in arm.points:
        if p.flag:
            flags.setdefault(p.flag, []).append(load_text(p.load))
    lines += [f"{arm.label} at {', '.join(loads)}: {flag}." for flag, loads in flags.items()]
    return lines


def _cause(found: Findings, arm: ArmRounds) -> str:
    points = arm.curve or arm.points
    first, last = points[0], points[-1]
    if len(points) == 1:
        return (
            f"{arm.label}: a round costs {first.cost:.2f} plain steps at "
            f"{at_load(first.load, found)} and brings {first.tau:.2f} tokens."
        )
    where = f"{load_text(first.load)} to {at_load(last.load, found)}"
    if last.speedup >= first.speedup / (1 + TIE):
        held = "is the same" if last.speedup <= first.speedup * (1 + TIE) else "is larger"
        return (
            f"{arm.label}: from {where} the gain {held} ({multiplier(first.speedup)} and "
            f"{multiplier(last.speedup)}); a round costs {first.cost:.2f} plain steps, then "
            f"{last.cost:.2f}, and brings {_tokens(first, last)}."
        )
    gain = f"{multiplier(first.speedup)} to {multiplier(last.speedup)} from {where}"
    dearer = f"a round costs {last.cost:.2f} plain steps there, {first.cost:.2f} at the lowest load"
    share = share_of_acceptance(first.tau, last.tau, first.speedup, last.speedup)
    if share <= 1 - MOSTLY:
        return (
            f"{arm.label}: the gain falls ({gain}) because {dearer}; not because acceptance fell "
            f"(τ {_tokens(first, last)})."
        )
    if share >= MOSTLY:
        return (
            f"{arm.label}: the gain falls ({gain}) because acceptance fell (τ "
            f"{_tokens(first, last)}), not because a round got dearer ({first.cost:.2f} plain "
            f"steps, then {last.cost:.2f})."
        )
    return (
        f"{arm.label}: the gain falls ({gain}): {percent(share)} of the loss is acceptance (τ "
        f"{_tokens(first, last)}), the rest is that {dearer}."
    )


def _fit_line(found: Findings, fit: FittedRound) -> str:
    line = fit.line
    ks = ", ".join(str(k) for k in fit.ks)
    text = (
        f"{fit.method} at {at_load(fit.load, found)}, K = {ks}: R = v + cK with v = {line.v:.3f} "
        f"and c = {line.c:.3f} (derived"
    )
    if line.points < 3:
        return f"{text}; two draft lengths always fit a line: measure a third)."
    free = line.v <= VERIFY_IS_NOT_FREE
    dear = "" if free else "; verifying is not free, so the theorem's S is too high"
    return f"{text}; the line misses by at most {percent(line.miss, 1)}{dear})."


def _tokens(first: RoundPoint, last: RoundPoint) -> str:
    if f"{first.tau:.2f}" == f"{last.tau:.2f}":
        return f"{first.tau:.2f} at both"
    return f"{first.tau:.2f}, then {last.tau:.2f}"


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
