"""A headline number with its interval, unit, basis and source."""

import math
from dataclasses import dataclass
from enum import StrEnum

from lib.errors import InputError


class Basis(StrEnum):
    """Where a number comes from; shown beside it everywhere."""

    THEOREM = "theorem"
    MEASURED = "measured"
    DERIVED = "derived"
    ASSUMED = "assumed"
    PUBLISHED = "published"


@dataclass(frozen=True)
class Estimate:
    """One number that may be shown large.

    `low` and `high` are the ends of its interval: both or neither, infinite where an end is
    censored by the measured range. `source` says which runs, slider or citation it rests on;
    `how` is the formula with its inputs, for the popover beside it.
    """

    value: float
    unit: str
    basis: Basis
    source: str
    low: float | None = None
    high: float | None = None
    how: str = ""

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise InputError(f"estimate in {self.unit or 'no unit'}: {self.value} is not finite")
        if (self.low is None) != (self.high is None):
            raise InputError("estimate: give both ends of the interval or neither")
        if self.low is not None and self.high is not None and not self.low <= self.high:
            raise InputError(f"estimate: interval {self.low} to {self.high} is upside down")
