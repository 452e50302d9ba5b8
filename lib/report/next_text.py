"""What to measure next, in sentences: the cell, the number of runs and why."""

from collections.abc import Sequence

from lib.evidence.next_measurement import MOST_MORE, NextMeasurement, Repeats, Why
from lib.report.format import load as load_text
from lib.report.format import percent
from lib.report.sentences import around
from lib.run import OFF

NOTHING = "Nothing is open: every load measured is settled and none lies beyond."
NOT_COMPARED = "Nothing is compared on this metric, so no cell to measure follows from it."
PURPOSE = "More runs shrink an interval as 1/√n: what is stated assumes the spread seen so far."


def sentence(one: NextMeasurement) -> str:
    """`Measure off and eagle3:4 at 128 concurrent, 3 runs each.` and why."""
    return f"{_verb(one)} {cell(one)}{_count(one)}. {_why(one)}"


def cell(one: NextMeasurement) -> str:
    """The cell alone, for a list: `off and eagle3:4 at 128 concurrent`."""
    return f"{' and '.join(one.arms)} {_where(one)}"


def settle_text(repeats: Repeats) -> str:
    """The cell of a table: what would settle this load."""
    if repeats.beyond:
        return f"over {MOST_MORE} more"
    if repeats.missing is not None:
        return f"{repeats.missing} more first" if repeats.n_off else "tok/s of both arms first"
    return "settled" if repeats.more == 0 else f"{repeats.more} more an arm"


def afterwards(rest: Sequence[NextMeasurement], most: int = 3) -> str:
    """The cells that come after the best one, in one line; empty where there are none."""
    named = [cell(o) for o in rest[:most]]
    more = f", and {len(rest) - most} more" if len(rest) > most else ""
    return f"After that: {'; '.join(named)}{more}." if named else ""


def _where(one: NextMeasurement) -> str:
    before, after = around(one.load_kind, one.load)
    return f"at {before}{load_text(one.load)}{after}"


def _verb(one: NextMeasurement) -> str:
    return "Repeat" if one.repeats is not None else "Measure"


def _count(one: NextMeasurement) -> str:
    if one.runs is None:
        return ", one more run" if one.why is Why.CROSSING else ""
    each = " each" if len(one.arms) > 1 else ""
    more = " more" if one.repeats is not None else ""
    return f", {one.runs}{more} run{'s' if one.runs > 1 else ''}{each}"


def _why(one: NextMeasurement) -> str:
    return {
        Why.BLOCKED: _blocked,
        Why.UNMEASURED: _unmeasured,
        Why.UNPAIRED: _unpaired,
        Why.ONE_RUN: _one_run,
        Why.TOO_CLOSE: _too_close,
        Why.BEYOND: _beyond,
        Why.BRACKET: _bracket,
        Why.CROSSING: _share,
        Why.K_ZERO: _k_zero,
    }[one.why](one)


def _blocked(one: NextMeasurement) -> str:
    return (
        f"A protocol difference keeps {one.about} at {load_text(one.load)} from being compared: run"
        " both arms with the same settings."
    )


def _unmeasured(one: NextMeasurement) -> str:
    missing = "neither arm" if len(one.arms) > 1 else one.arms[0]
    if missing == "neither arm":
        return "It is your operating load and was not measured in both arms."
    return f"It is your operating load, and {missing} was not measured there."


def _unpaired(one: NextMeasurement) -> str:
    return "No load was measured in both arms, so nothing is compared yet."


def _one_run(one: NextMeasurement) -> str:
    has = one.repeats
    if has is not None and not has.n_off:
        return "A published ratio has no interval: measure both arms in tok/s."
    return "An interval needs three runs an arm; with one, a difference may be noise alone."


def _too_close(one: NextMeasurement) -> str:
    if one.repeats is not None and one.repeats.beyond:
        return (
            f"{one.about} is too close to call there, and over {MOST_MORE} more runs an arm would "
            "be needed: take the two as equal."
        )
    return f"{one.about} is too close to call there; that many would settle it if the mean stays."


def _beyond(one: NextMeasurement) -> str:
    return (
        f"{one.about} does not cross 1 inside the measured range; where it does is not known "
        "until the range is wider."
    )


def _bracket(one: NextMeasurement) -> str:
    low, high = one.between or (0.0, 0.0)
    return (
        f"{one.about} crosses 1 between {load_text(low)} and {load_text(high)}, further apart than "
        "a factor 2: this is their geometric middle."
    )


def _share(one: NextMeasurement) -> str:
    low, high = one.between or (0.0, 0.0)
    if one.share is None:
        return f"It is an end of the crossing between {load_text(low)} and {load_text(high)}."
    return (
        f"{percent(one.share)} of the variance of the crossing between {load_text(low)} and "
        f"{load_text(high)} comes from {'off' if one.arms == (OFF,) else 'this arm'} at this load."
    )


def _k_zero(one: NextMeasurement) -> str:
    return (
        "The schedule runs K = 0 there, which is not speculation off: its tax was never measured."
    )
