"""A scenario: what a person chose, in one canonical form with a hash, a link and its differences.

Its parameters are those of a link: the study, the operating load, the service level, what a person
states, overrides and accepts, and every input of data/assumptions.csv that is not at its start. A
choice of what is shown, a metric or an open section, is no part of it.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal
from urllib.parse import parse_qs, urlencode

from lib.assumptions import Input, table
from lib.errors import InputError
from lib.money.demand import LEVELS, SHAPES, UNITS
from lib.money.pricing import Rate
from lib.numbers import number
from lib.run import PERCENTILES, Slo

Kind = Literal["text", "number", "integer", "list", "flag"]
Value = str | int | float | bool | tuple[str, ...]

NO_LIMIT = "no limit"  # how a link spells the load of an infinite request rate
TEXT_LENGTH = 2000
HASH_LENGTH = 12
SMALLEST, LARGEST = 1e-6, 1e12


@dataclass(frozen=True)
class Choice:
    """What a scenario holds beside the inputs: a parameter of the link, and where it starts."""

    key: str
    label: str
    kind: Kind = "text"
    unit: str = ""
    start: str = ""


_CHOICES = (
    Choice("study", "Study"),
    Choice("load_kind", "Kind of load"),
    Choice("load", "Operating load", "number"),
    Choice("slo_percentile", "Percentile of the requests", start=PERCENTILES[-1]),
    Choice("max_num_seqs", "max_num_seqs of the engine", "integer"),
    Choice("override", "Compared in spite of a difference in", "list"),
    Choice("stated", "Stated to agree in both arms", "list"),
    Choice("random_ok", "Random tokens accepted", "flag"),
    Choice("rate", "Rate of the price book"),
    Choice("priced_on", "Priced on"),
    Choice("assumed_tps", "Measured throughput without, of the what-if", "number", "tok/s"),
    Choice("charge_teams", "Teams that share the bill"),
    Choice("demand", "Shape of the day", start=next(iter(SHAPES))),
    Choice("demand_unit", "Demand in", start=UNITS[0]),
    Choice("demand_level", "Level is the", start=LEVELS[0]),
    Choice("demand_hours", "Demand by hour"),
    Choice("demand_tpot_ms", "TPOT then", "number", "ms"),
    Choice("paid", "The fleet is"),
    Choice("spare", "One spare replica (N+1)", "flag"),
    Choice("memory_target", "Target, of the memory"),
    Choice("memory_draft", "Drafter, of the memory"),
)
CHOICES: Mapping[str, Choice] = {c.key: c for c in _CHOICES}


@dataclass(frozen=True)
class Scenario:
    """Parameters in canonical form: by name, sorted, none at its start, numbers to 12 digits."""

    values: tuple[tuple[str, Value], ...]

    @classmethod
    def of(cls, parameters: Mapping[str, object]) -> "Scenario":
        """From parameters as a link, a session or a kept document spells them.

        Names that are no part of a scenario are left out, and so is what is empty or at its start.
        Raises InputError for a value that its input does not allow.
        """
        rows = table()
        found: dict[str, Value] = {}
        for name in sorted(parameters.keys() & (rows.keys() | CHOICES.keys())):
            row, given = rows.get(name), parameters[name]
            value = _input(row, given) if row else _choice(CHOICES[name], given)
            if value is not None:
                found[name] = value
        return cls(tuple(found.items()))

    @classmethod
    def from_link(cls, query: str) -> "Scenario":
        """From the part of a link after `?`. Raises InputError."""
        return cls.of(parse_qs(query.removeprefix("?")))

    @classmethod
    def from_json(cls, text: str) -> "Scenario":
        """From what `json` wrote. Raises InputError."""
        try:
            parameters = json.loads(text)
        except ValueError:
            parameters = None
        if not isinstance(parameters, dict):
            raise InputError("scenario: its parameters are not a JSON object; save it anew")
        return cls.of(parameters)

    @cached_property
    def parameters(self) -> dict[str, Value]:
        """The values by name."""
        return dict(self.values)

    @property
    def json(self) -> str:
        """The canonical form: a JSON object, keys sorted, no blanks."""
        return json.dumps(self.parameters, ensure_ascii=False, separators=(",", ":"))

    @property
    def hash(self) -> str:
        """The first 12 hexadecimal digits of the SHA-256 of the canonical form."""
        return hashlib.sha256(self.json.encode()).hexdigest()[:HASH_LENGTH]

    @property
    def query(self) -> str:
        """The part of a link after `?` that opens a page at this scenario."""
        texts = {k: list(v) if isinstance(v, tuple) else _spelled(v) for k, v in self.values}
        return urlencode(texts, doseq=True)

    @property
    def study(self) -> str:
        """Name of the study; empty where none is named."""
        return self.text("study") or ""

    @property
    def load(self) -> float | None:
        """The operating load; infinite for a request rate without a limit, None where unnamed."""
        found = self.parameters.get("load")
        return math.inf if found == NO_LIMIT else None if found is None else float(str(found))

    @property
    def overrides(self) -> frozenset[str]:
        """Protocol fields whose difference the person accepts."""
        found = self.parameters.get("override")
        return frozenset(found if isinstance(found, tuple) else ())

    @property
    def accept_random(self) -> bool:
        """Whether the person accepts prices that rest on random tokens."""
        return self.parameters.get("random_ok") is True

    @property
    def slo(self) -> Slo | None:
        """The service level; None while no limit is set."""
        limits = {n: self.number(f"slo_{n}") for n in ("ttft_ms", "tpot_ms", "e2e_ms")}
        found = Slo(**limits, percentile=self.text("slo_percentile") or PERCENTILES[-1])
        return found if found.limits else None

    @property
    def rate(self) -> Rate:
        """What the person pays, as typed."""
        return rate_of(self.number)

    def text(self, key: str) -> str | None:
        """A choice as text; None where it is not named."""
        found = self.parameters.get(key)
        return None if found is None else str(found)

    def number(self, key: str) -> float | None:
        """An input's value in its stored unit, at its start where it was left there."""
        found = self.parameters.get(key, table()[key].start)
        return None if found is None else float(str(found))


def rate_of(value: Callable[[str], float | None], source: str = "") -> Rate:
    """What a person pays, from the inputs by their keys; nothing is assumed."""
    gpus, drafter = value("gpu_count"), value("drafter_gpus")
    return Rate(
        value("usd_per_gpu_hour"),
        None if gpus is None else int(gpus),
        value("utilization"),
        value("extra_usd_per_hour") or 0.0,
        source,
        0 if drafter is None else int(drafter),
        value("drafter_usd_per_gpu_hour"),
        value("on_utilization"),
    )


@dataclass(frozen=True)
class Difference:
    """One parameter in which two scenarios differ, as texts with its unit; empty is not set."""

    key: str
    label: str
    before: str
    after: str

    @property
    def text(self) -> str:
        """`Price: 2 → 2.5 $ per GPU-hour`, in words where one side is not set."""
        before, after = (side or "not set" for side in (self.before, self.after))
        return f"{self.label}: {before} → {after}"


def differences(a: Scenario, b: Scenario) -> tuple[Difference, ...]:
    """What b changes of a: the choices first, then the inputs in the order of their table."""
    names = [n for n in (*CHOICES, *table()) if a.parameters.get(n) != b.parameters.get(n)]
    return tuple(Difference(n, _label(n), _said(n, a), _said(n, b)) for n in names)


def _label(name: str) -> str:
    row = table().get(name)
    return CHOICES[name].label if row is None else row.label


def _said(name: str, scenario: Scenario) -> str:
    """A value with its unit as its page shows it; empty where it is not set."""
    row = table().get(name)
    if row is not None:
        value = scenario.number(name)
        shown = None if value is None else number(value * row.shown_scale)
        return "" if shown is None else f"{shown} {row.unit}".strip()
    found, choice = scenario.parameters.get(name), CHOICES[name]
    if found is None:
        return choice.start
    if isinstance(found, tuple):
        return ", ".join(found)
    return "yes" if found is True else f"{_spelled(found)} {choice.unit}".strip()


def _input(row: Input, given: object) -> Value | None:
    text = _one(row.key, given)
    if not text:
        return None
    value = _rounded(row.parse(text))
    return None if value == row.start else value


def _choice(choice: Choice, given: object) -> Value | None:
    if choice.kind == "list":
        return tuple(sorted({_text(choice.key, x) for x in _each(given)} - {""})) or None
    text = _one(choice.key, given)
    if not text or text == choice.start:
        return None
    if choice.kind == "flag":
        return True if text.lower() == "true" else None
    if choice.kind == "text" or (choice.key == "load" and text == NO_LIMIT):
        return text
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if choice.key == "load" and math.isinf(value):
        return NO_LIMIT
    whole = choice.kind == "integer"
    if not SMALLEST <= value <= LARGEST or (whole and not value.is_integer()):
        kind = "whole number" if whole else "number"
        raise InputError(
            f"{choice.key} = {text[:40]}: a {kind} of {number(1 if whole else SMALLEST)} to "
            f"{number(LARGEST)} is needed"
        )
    return _rounded(value)


def _each(given: object) -> Iterable[object]:
    if given is None:
        return ()
    return given if isinstance(given, Sequence) and not isinstance(given, str) else (given,)


def _one(name: str, given: object) -> str:
    """The one text of a parameter; of several the last counts, as in a link."""
    texts = [*_each(given)]
    return _text(name, texts[-1]) if texts else ""


def _text(name: str, given: object) -> str:
    text = number(given) if isinstance(given, float) and math.isfinite(given) else str(given)
    text = text.strip()
    if len(text) > TEXT_LENGTH or not text.isprintable():
        raise InputError(f"{name}: up to {TEXT_LENGTH:,} printable characters")
    return text


def _rounded(value: float) -> int | float:
    """To the digits that a link carries; whole numbers without a decimal point."""
    found = float(number(value))
    return int(found) if found.is_integer() else found


def _spelled(value: Value) -> str:
    if isinstance(value, bool):
        return "true"
    return number(value) if isinstance(value, int | float) else str(value)
