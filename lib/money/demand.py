"""What is asked of a fleet, hour by hour: presets, typed hours and their spelling in a link.

A shape is assumed: it says how a day might look, and it is scaled to an average or a peak that a
person names. Demand is in output tokens per second of the whole fleet; requests per second become
tokens by the mean length of an answer, running requests by Little's law over decoding:
tok/s = running / TPOT (Little 1961, Operations Research 9:383-387).
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lib.errors import InputError
from lib.estimate import Basis

Floats = NDArray[np.float64]
Unit = Literal["output tok/s", "requests/s", "running requests"]
Level = Literal["average", "peak"]

UNITS: tuple[Unit, ...] = get_args(Unit)
LEVELS: tuple[Level, ...] = get_args(Level)
DAY = 24
MOST_HOURS = 8760
LARGEST = 1e12

# Tenths of the busiest hour, from midnight.
SHAPES: dict[str, tuple[int, ...]] = {
    "office": (1, 1, 1, 1, 1, 1, 2, 4, 7, 9, 10, 10, 9, 10, 10, 10, 9, 7, 5, 3, 2, 2, 1, 1),
    "consumer": (5, 4, 3, 2, 2, 2, 2, 3, 4, 5, 6, 6, 7, 7, 6, 6, 7, 8, 9, 10, 10, 10, 9, 7),
    "night batch": (10,) * 6 + (1,) * 16 + (10,) * 2,
    "flat": (10,) * DAY,
}


@dataclass(frozen=True)
class Hours:
    """Demand as written: one value an hour, in `unit`, from `first_hour` of the day on.

    `loads` is the load that a replica is run at in that hour (requests in flight, or the study's
    own kind of load), None where it is left to the service level.
    """

    values: tuple[float, ...]
    unit: Unit = "output tok/s"
    loads: tuple[float | None, ...] = ()
    first_hour: int = 0

    def __post_init__(self) -> None:
        if not 1 <= len(self.values) <= MOST_HOURS:
            raise InputError(
                f"demand of {len(self.values):,} hours: 1 to {MOST_HOURS:,} (a year) are allowed"
            )
        if self.unit not in UNITS:
            raise InputError(f"demand in {self.unit!r}: one of {', '.join(UNITS)}")
        if self.loads and len(self.loads) != len(self.values):
            raise InputError("demand: a load for every hour, or none")
        for hour, value in enumerate(self.values):
            if not (math.isfinite(value) and 0 <= value <= LARGEST):
                raise InputError(f"demand of hour {hour}: {value:g}; a number from 0 to 1e12")
        for hour, load in enumerate(self.loads):
            if load is not None and not (math.isfinite(load) and load > 0):
                raise InputError(
                    f"load a replica in hour {hour}: {load:g}; above 0, or empty for the most "
                    "that meets the service level"
                )
        if not any(self.values):
            raise InputError("demand: every hour is 0; at least one must ask for something")


@dataclass(frozen=True, eq=False)
class Demand:
    """Output tokens per second by hour and the load of a replica by hour (nan: as much as holds).

    `said` is where it comes from, in one line. `first_hour` is the hour of the day of the first.
    """

    output_tps: Floats
    load: Floats
    said: str
    basis: Basis
    first_hour: int = 0

    @property
    def hours(self) -> int:
        """How many hours it covers."""
        return len(self.output_tps)

    @property
    def mean_tps(self) -> float:
        """Average output tokens per second."""
        return float(self.output_tps.mean())

    @property
    def peak_tps(self) -> float:
        """The busiest hour's."""
        return float(self.output_tps.max())

    def scaled(self, factor: float) -> "Demand":
        """The same hours with `factor` times the tokens."""
        return replace(self, output_tps=self.output_tps * factor)


def shaped(shape: str, value: float, level: Level = "average", unit: Unit = UNITS[0]) -> Hours:
    """A day of that shape whose average, or busiest hour, is `value`. Raises InputError."""
    if shape not in SHAPES:
        raise InputError(f"demand {shape!r}: one of {', '.join(SHAPES)}")
    if level not in LEVELS:
        raise InputError(f"level {level!r}: {' or '.join(LEVELS)}")
    if not (math.isfinite(value) and 0 < value <= LARGEST / 10):
        raise InputError(f"demand = {value:g}: a number above 0 and at most 1e11")
    tenths = np.array(SHAPES[shape], dtype=float)
    whole = tenths.mean() if level == "average" else tenths.max()
    return Hours(tuple((tenths * value / whole).tolist()), unit)


def in_tokens(
    hours: Hours,
    said: str,
    output_tokens_a_request: float | None = None,
    tpot_ms: float | None = None,
    basis: Basis = Basis.ASSUMED,
) -> Demand:
    """The demand in output tokens per second. Raises InputError for what a unit needs beside."""
    factor = 1.0
    if hours.unit == "requests/s":
        factor = _needed("output tokens a request", output_tokens_a_request)
        said = f"{said}, {factor:,.12g} output tokens a request"
    elif hours.unit == "running requests":
        pace = _needed("the TPOT (ms) while they ran", tpot_ms)
        said = f"{said}, at a TPOT of {pace:.12g} ms while they ran"
        factor = 1000.0 / pace
    loads = [math.nan if x is None else x for x in hours.loads] or [math.nan] * len(hours.values)
    return Demand(
        np.array(hours.values, dtype=float) * factor, np.array(loads), said, basis, hours.first_hour
    )


def _needed(what: str, value: float | None) -> float:
    if value is None:
        raise InputError(f"demand: type {what} to turn it into tokens")
    if not 0 < value <= LARGEST:
        raise InputError(f"{what} = {value:g}: a number above 0")
    return float(value)


def spelled(hours: Hours) -> str:
    """The hours as a link carries them: `5200@4x8,34000@32x8`, value, load a replica, times.

    Where the first is not the day's first hour it stands in front: `22h:5200x2,…`.
    """
    loads = hours.loads or (None,) * len(hours.values)
    texts = [
        f"{value:.12g}" + ("" if load is None else f"@{load:.12g}")
        for value, load in zip(hours.values, loads, strict=True)
    ]
    runs = [(text, len(list(same))) for text, same in groupby(texts)]
    written = ",".join(text if count == 1 else f"{text}x{count}" for text, count in runs)
    return f"{hours.first_hour}h:{written}" if hours.first_hour else written


def read_spelled(text: str, unit: Unit = UNITS[0]) -> Hours:
    """What `spelled` wrote. Raises InputError that names the entry."""
    values: list[float] = []
    loads: list[float | None] = []
    first = re.match(r"(1?\d|2[0-3])h:", text)
    entries = text[first.end() :] if first else text
    for place, entry in enumerate(entries.split(","), 1):
        value, load, times = _entry(place, entry.strip())
        if len(values) + times > MOST_HOURS:
            raise InputError(f"demand: at most {MOST_HOURS:,} hours (a year)")
        values += [value] * times
        loads += [load] * times
    at = tuple(loads) if any(x is not None for x in loads) else ()
    return Hours(tuple(values), unit, at, int(first[1]) if first else 0)


def _entry(place: int, entry: str) -> tuple[float, float | None, int]:
    head, _, times = entry.partition("x")
    value, _, load = head.partition("@")
    try:
        count = int(times) if times else 1
        found = float(value), float(load) if load else None, count
    except ValueError:
        found = math.nan, None, 0
    if not 1 <= found[2] <= MOST_HOURS or math.isnan(found[0]):
        raise InputError(
            f"demand, entry {place}: {entry[:40]!r}; VALUE, VALUE@LOAD or VALUExHOURS is needed, "
            "such as 5200@4x8"
        )
    return found


def edited(
    values: Sequence[object], loads: Iterable[object], unit: Unit, first_hour: int = 0
) -> Hours:
    """Hours as a table of a page holds them; an empty load is None. Raises InputError by row."""
    typed = []
    for hour, value in enumerate(values):
        if not isinstance(value, int | float) or math.isnan(value):
            raise InputError(f"demand of hour {hour}: empty; type a number of at least 0")
        typed.append(float(value))
    at = [float(x) if isinstance(x, int | float) and not math.isnan(x) else None for x in loads]
    loaded = tuple(at) if any(x is not None for x in at) else ()
    return Hours(tuple(typed), unit, loaded, first_hour)
