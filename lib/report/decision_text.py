"""What the decision says: the sentence in front, what would flip it, and how it was derived."""

import math
import re

from lib.decision import Claim, Flip, Money, Stands, Verdict
from lib.estimate import Basis, Estimate
from lib.evidence.crossover import Crossing
from lib.evidence.findings import Findings
from lib.report.format import load as load_text
from lib.report.format import money, multiplier, percent, significant
from lib.report.load_figures import at_load
from lib.run import distinct


def arm_words(label: str, found: Findings) -> str:
    """`K = 4` where the study has one draft method, else `eagle3 at K = 4`; else the label."""
    parts = re.fullmatch(r"(.+?):(\d+)(.*)", label)
    if parts is None:
        return label
    method, k, protocol = parts.groups()
    several = len(distinct(a.arm.split(":")[0] for a in found.arms)) > 1
    return f"{method} at K = {k}{protocol}" if several else f"K = {k}{protocol}"


def headline(
    found: Findings, verdict: Verdict, claim: Claim | None
) -> tuple[str, Estimate | None, float | None]:
    """The sentence in front, the estimate it rests on and the share of redraws in which it holds.

    Without a decided verdict it is the verdict's own sentence.
    """
    if claim is None:
        return verdict.sentence, verdict.multiplier, verdict.share
    text = _win(found, claim) if claim.wins else _loss(found, claim)
    if claim.open:
        text += f"; not yet proven: {' and '.join(claim.open)}"
    decided = claim.money in (Money.SAVES, Money.COSTS)
    return f"{text}.", claim.saving if decided else verdict.multiplier, claim.share


def _win(found: Findings, claim: Claim) -> str:
    name = arm_words(claim.arm.label, found)
    at = at_load(claim.point.load, found)
    bounded = claim.up_to is not None and claim.up_to >= claim.point.load
    reach = f"up to {at_load(claim.up_to or 0, found)}" if bounded else f"at {at}"
    here = f"at {load_text(claim.point.load)}" if bounded else "there"
    m = f"{multiplier(claim.point.multiplier, *claim.ends)} {_metric(found)} {here}"
    if claim.misses_slo:
        return f"{name} is faster {reach}, {m}, yet misses the SLO there"
    if claim.money is Money.COSTS:
        return f"{name} is faster {reach}, {m}, yet costs {_saving(claim)} more per output token"
    if claim.money is Money.CLOSE:
        text = f"{name} is faster {reach}: {m}; whether it saves money there is too close to call"
    elif claim.money is Money.SAVES:
        text = f"Speculate with {name} {reach}: saves {_saving(claim)} per output token {here}"
    else:
        text = f"Speculate with {name} {reach}: {m}"
    return text + _end(claim)


def _metric(found: Findings) -> str:
    return "the throughput" if found.metric.name == "output_tps" else found.metric.label.lower()


def _saving(claim: Claim) -> str:
    """`31 % (24 to 37 %)`, of a saving or, ends swapped, of a cost."""
    saving = claim.saving
    if saving is None or saving.low is None or saving.high is None:
        return ""
    ends = sorted(abs(100 * x) for x in (saving.low, saving.high))
    return f"{percent(abs(saving.value))} ({ends[0]:.0f} to {ends[1]:.0f} %)"


def _end(claim: Claim) -> str:
    """`; above 29 (26 to 33) it costs more, measured at 32`."""
    crossing = claim.crossing
    if crossing is None or claim.lost is None:
        return ""
    dearer = claim.money is Money.SAVES and claim.break_even >= 1
    word = "costs more" if dearer else "is slower"
    shown = f", measured at {load_text(claim.lost)}"
    if crossing.at is None:
        low, high = crossing.between
        return f"; it {word} at {load_text(claim.lost)} (turns between {low:g} and {high:g})"
    return f"; above {crossing.at:.3g}{_ends(crossing)} it {word}{shown}"


def _ends(crossing: Crossing) -> str:
    if crossing.low is None or crossing.high is None:
        return ""
    low = "below the range" if math.isinf(crossing.low) else f"{crossing.low:.3g}"
    high = "beyond the range" if math.isinf(crossing.high) else f"{crossing.high:.3g}"
    return f" ({low} to {high})"


def _loss(found: Findings, claim: Claim) -> str:
    name = arm_words(claim.arm.label, found)
    at = at_load(claim.point.load, found)
    m = multiplier(claim.point.multiplier, *claim.ends)
    here = [a for a in found.arms if a.at(claim.point.load) is not None]
    best = f"the best arm measured, {name}, gives" if len(here) > 1 else f"{name} gives"
    if claim.money is Money.SAVES:
        return f"{name} is slower at {at}, {m}, yet saves {_saving(claim)} per output token there"
    text = f"Leave speculation off at {at}: {best} {m}"
    if claim.money is Money.COSTS:
        text += f" and costs {_saving(claim)} more per output token"
    return text


def share_text(share: float) -> str:
    """`holds in 97 % of redraws …`; never all of them, for redraws are finitely many."""
    shown = "more than 99 %" if share > 0.99 else percent(share)
    return f"holds in {shown} of redraws of the measured ratios"


def flip_lines(stands: Stands | None, found: Findings) -> tuple[str, ...]:
    """One sentence an input that flips the verdict alone, the nearest first."""
    if stands is None:
        return ()
    name = arm_words(stands.arm, found)
    at = load_text(stands.load)
    end = "loses" if stands.wins else "breaks even"
    by = " on price" if stands.priced else ""
    lines = [_flip(f, name, f"{end}{by} at {at}", stands) for f in stands.flips]
    if lines and stands.single:
        lines[0] += " One run an arm: the margin has no interval."
    return tuple(lines)


def _flip(flip: Flip, name: str, end: str, stands: Stands) -> str:
    size = percent(abs(flip.change), 1 if abs(flip.change) < 0.1 else 0)
    size = "under 0.1 %" if abs(flip.change) < 0.001 else size
    if flip.name == "K = 0 tax":
        return (
            f"In a schedule K = 0 may be at most {size} slower than off before K = {flip.rival} "
            "wins instead."
        )
    if flip.beyond:
        return (
            f"No margin is left: M measures {flip.now:.2f}×, and the other end of its interval, "
            f"{flip.then:.2f}×, lies across the break-even {stands.break_even:.2f}×."
        )
    verb = "may fall" if flip.change < 0 else "may rise"
    if not stands.wins:
        verb = "must fall" if flip.change < 0 else "must rise"
    shown = f"{_value(flip, flip.now)} to {_value(flip, flip.then)}"
    what = f"{flip.name[0].upper()}{flip.name[1:]}"
    return f"{what} {verb} by {size} ({shown}) before {name} {end}."


def _value(flip: Flip, value: float) -> str:
    if flip.unit == "$/h":
        return f"{money(value)}/h"
    if flip.unit == "%":
        return percent(value, 1)
    return f"{significant(value)}{flip.unit}"


def flip_estimate(flip: Flip) -> Estimate:
    """The margin of one input as an estimate, with its derivation."""
    basis = Basis.DERIVED if flip.basis is Basis.ASSUMED else flip.basis
    return Estimate(100 * flip.change, "%", basis, flip.name, how=flip.how)
