"""What moves a price and a saving: one input at a time, and all of them at once.

Only what has a stated range moves: an input with a sourced or typed low and high, and each arm's
throughput by the t interval of its own runs. A slider's range is no uncertainty.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lib.errors import InputError
from lib.evidence.ratio import LARGEST_LOG, LogMean
from lib.money.case import Case
from lib.money.pricing import half_width

DRAWS = 10_000
SEED = 20_260_117
Floats = NDArray[np.float64]
Outcome = Literal["with", "saved"]
OUTCOMES: dict[Outcome, str] = {
    "with": "$ per 1M output tokens with speculation",
    "saved": "$ saved per 1M output tokens",
}


@dataclass(frozen=True)
class Range:
    """An input from `low` to `high`, on whose word. `key` is a name that `Case.prices` takes.

    `base`, the value in hand, lies between them where it is given. A page shows them times `scale`.
    """

    key: str
    label: str
    low: float
    high: float
    source: str
    base: float | None = None
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise InputError(
                f"{self.label}: at least {self.low * self.scale:g}, at most "
                f"{self.high * self.scale:g}: type a lower end "
                "below the upper one, or clear both"
            )
        if self.base is not None and not self.low <= self.base <= self.high:
            raise InputError(
                f"{self.label} = {self.base * self.scale:g} lies outside {self.low * self.scale:g} "
                f"to {self.high * self.scale:g}: widen its range, or change it"
            )


@dataclass(frozen=True)
class Bar:
    """The outcome with one thing at its low and its high, as shown, all else as it stands."""

    label: str
    low: float
    high: float
    at_low: float
    at_high: float
    source: str

    @property
    def swing(self) -> float:
        """How far it moves the outcome."""
        return abs(self.at_high - self.at_low)


def tornado(case: Case, ranges: Sequence[Range], outcome: Outcome) -> tuple[Bar, ...]:
    """One bar an input and arm with a range, the widest first."""
    bars = []
    for each in (*ranges, *throughput_ranges(case)):
        at_low, at_high = (
            float(_outcome(*case.prices({each.key: end}), outcome)) for end in (each.low, each.high)
        )
        bars.append(
            Bar(
                each.label,
                each.low * each.scale,
                each.high * each.scale,
                at_low,
                at_high,
                each.source,
            )
        )
    return tuple(sorted(bars, key=lambda b: (-b.swing, b.label)))


def throughput_ranges(case: Case) -> tuple[Range, ...]:
    """Each arm's tok/s by the 95 % t interval of the log over its own runs, where it has one."""
    found = []
    for key, name, mean in (
        ("off_tps", "tok/s without", case.off_log),
        ("on_tps", "tok/s with", case.on_log),
    ):
        half = half_width(mean)
        if half:
            ends = math.exp(mean.mean - half), math.exp(mean.mean + half)
            found.append(Range(key, name, *ends, f"95 % interval of {mean.n} runs"))
    return tuple(found)


def _outcome(off: Any, on: Any, outcome: Outcome) -> Any:
    return on if outcome == "with" else off - on


@dataclass(frozen=True)
class Spread:
    """Median and the middle 90 % of the draws."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws of the price without, the price with and the saving as a fraction.

    The saving comes from draws of M, each price from its own arm's runs: each has the interval
    that it is shown with elsewhere.
    """

    off_usd: Floats
    on_usd: Floats
    saving: Floats

    @property
    def saving_moves(self) -> bool:
        """Whether the saving varies at all: what moves both prices alike moves no share of them."""
        return float(np.ptp(self.saving)) > 1e-9

    @property
    def cheaper_share(self) -> float:
        """Share of the draws in which speculation is cheaper."""
        return float(np.mean(self.saving > 0))

    def of(self, name: Literal["off_usd", "on_usd", "saving"]) -> Spread:
        """Median and middle 90 % of one of them."""
        low, median, high = np.quantile(getattr(self, name), (0.05, 0.5, 0.95))
        return Spread(float(median), float(low), float(high))


def draw(case: Case, ranges: Sequence[Range], draws: int = DRAWS, seed: int = SEED) -> Draws | None:
    """Everything with a range drawn at once, seeded; None where nothing has one.

    An input is as likely anywhere between its ends (uniform). log tok/s and log M are their mean
    plus their standard error times a t variate of their degrees of freedom.
    """
    ratio = case.pair.ratio
    if not ranges and not throughput_ranges(case) and ratio.se is None:
        return None
    rng = np.random.default_rng(seed)
    drawn: dict[str, Floats] = {r.key: rng.uniform(r.low, r.high, draws) for r in ranges}
    off_tps, on_tps = (_tps(rng, mean, draws) for mean in (case.off_log, case.on_log))
    m = _log_m(rng, case, draws)
    off, on = case.prices({**drawn, "off_tps": off_tps, "on_tps": on_tps})
    return Draws(off, on, _saving(case, drawn, m))


def _tps(rng: np.random.Generator, mean: LogMean, draws: int) -> Floats:
    if not mean.variance or not mean.df:
        return np.full(draws, math.exp(mean.mean))
    return np.exp(mean.mean + _bounded(math.sqrt(mean.variance) * rng.standard_t(mean.df, draws)))


def _bounded(logs: Floats) -> Floats:
    """Two runs an arm have one degree of freedom: a draw so far out is no number any more."""
    return np.clip(logs, -LARGEST_LOG, LARGEST_LOG)


def _log_m(rng: np.random.Generator, case: Case, draws: int) -> Floats:
    ratio = case.pair.ratio
    if ratio.se is None or ratio.df is None:
        return np.full(draws, ratio.log_m)
    return ratio.log_m + _bounded(ratio.se * rng.standard_t(ratio.df, draws))


def _saving(case: Case, drawn: Mapping[str, Floats], log_m: Floats) -> Floats:
    """1 - price with / price without, at M as drawn instead of both arms' throughput."""
    off, on = case.prices({**drawn, "off_tps": np.ones(len(log_m)), "on_tps": np.exp(log_m)})
    return np.asarray(1.0 - on / off, dtype=np.float64)
