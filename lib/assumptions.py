"""The inputs of the dashboard: rows of data/assumptions.csv, with what each of them allows."""

import csv
import math
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

from lib.errors import InputError
from lib.numbers import number
from lib.settings import DATA

Kind = Literal["fraction", "percent", "integer", "number", "millions"]
Curve = Literal["linear", "log"]


@dataclass(frozen=True, kw_only=True)
class Input:
    """One row: what may be typed, where it starts and on whose word.

    `min`, `max`, `step`, `start`, `low` and `high` are in the stored unit; a `percent` is stored
    as a fraction and shown times 100, `millions` are stored as ones. `curve` is how the slider
    is divided. `start` None means that the input starts empty and may be cleared. `low` to `high`
    is the range that a sensitivity tries.
    """

    key: str
    label: str
    unit: str
    min: float
    max: float
    step: float
    kind: Kind
    curve: Curve
    start: float | None
    low: float | None
    high: float | None
    allowed: str
    empty: str
    help: str
    source: str
    page: str

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise InputError(f"{self.key}: kind {self.kind!r}; one of {', '.join(get_args(Kind))}")
        if self.curve not in get_args(Curve) or (self.curve == "log" and self.min <= 0):
            raise InputError(f"{self.key}: curve linear, or log with a min above 0")
        if not self.min < self.max or not 0 < self.step <= self.max - self.min:
            raise InputError(f"{self.key}: min below max and a step between them are needed")
        if (self.low is None) != (self.high is None):
            raise InputError(f"{self.key}: give both low and high or neither")
        for name in ("start", "low", "high"):
            value = getattr(self, name)
            if value is not None:
                self.check(value)
                if not self.source:
                    raise InputError(f"{self.key}: {name} needs a source")
        if self.start is None and not self.empty:
            raise InputError(f"{self.key}: starts empty, so say what it blocks")

    @property
    def shown_scale(self) -> float:
        """Factor from the stored value to the one on the page."""
        return {"percent": 100, "millions": 1e-6}.get(self.kind, 1)

    @property
    def range_text(self) -> str:
        """What is allowed, in words."""
        if self.allowed:
            return self.allowed
        low, high = (number(v * self.shown_scale) for v in (self.min, self.max))
        whole = "a whole number, " if self.kind == "integer" else ""
        return f"{whole}{low} to {high} {self.unit}".strip()

    def check(self, value: object) -> float | int:
        """The value as stored, or InputError that says what is allowed."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{self.key}: a number is needed ({self.range_text})")
        if not math.isfinite(value) or not self.min <= value <= self.max:
            hint = ""
            if self.kind == "fraction" and 1 < value <= 100:
                hint = f"; was {value:g} % meant, {value / 100:g}?"
            raise InputError(f"{self.key} = {number(value)}: allowed is {self.range_text}{hint}")
        if self.kind != "integer":
            return float(value)
        if value != int(value):
            raise InputError(f"{self.key} = {number(value)}: allowed is {self.range_text}")
        return int(value)

    def parse(self, text: str) -> float | int:
        """The value that a link spells, or InputError."""
        try:
            return self.check(float(text))
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"{self.key} = {text[:40]}: a number is needed ({self.range_text})"
            ) from None


@cache
def table() -> dict[str, Input]:
    """Every input by key, in the order of data/assumptions.csv."""
    with (DATA / "assumptions.csv").open(newline="", encoding="utf-8") as file:
        rows = [_row(r) for r in csv.DictReader(file)]
    found = {r.key: r for r in rows}
    if len(found) != len(rows):
        raise InputError("assumptions.csv: a key stands twice")
    return found


def _row(record: dict[str, str]) -> Input:
    numbers = ("min", "max", "step", "start", "low", "high")
    values = {n: float(record[n]) if record[n] else None for n in numbers}
    return Input(**{**record, **values})  # type: ignore[arg-type]
