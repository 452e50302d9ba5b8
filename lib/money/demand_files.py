"""Demand from a file: a CSV of hours or times, or what Prometheus answers to a range query."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from lib.errors import UnreadableFile
from lib.money.demand import LARGEST, MOST_HOURS, UNITS, Hours, Unit
from lib.results.cells import is_missing, numbers_of
from lib.results.parsing import as_dict, as_list, decode, parse_json, parse_rows

HOUR_S = 3600
# A header says that its column is per second, no multiple of it, and of tokens that are written.
PER_SECOND = re.compile(r"/\s*s(ec|\b)|\bper[ _]s|_per_s|_s\b|rps|qps|second")
OTHER_RATE = re.compile(
    r"\b(k|kilo|mega|m|million|thousand)[ _]?(tok|req)|total[ _]*tok|\b[rqt]p[mhd]\b"
    r"|(/\s*|per[ _])(min|h|d)"
)
READ_TOKENS = re.compile(r"(input|prompt|prefill|cached)[ _]*tok")
# Words of a header or a metric's name, the first that is found decides.
WORDS: tuple[tuple[str, Unit], ...] = (
    ("running", "running requests"),
    ("concurren", "running requests"),
    ("tok", "output tok/s"),
    ("req", "requests/s"),
    ("rps", "requests/s"),
    ("qps", "requests/s"),
)
FORM = (
    "a header row with hour (0, 1, 2, …) or time (ISO 8601), and requests/s, output tok/s or "
    "running requests; load a replica may stand beside"
)


@dataclass(frozen=True)
class _Columns:
    time: int
    value: int
    load: int | None
    hours: bool
    unit: Unit


def read(name: str, data: bytes, unit: Unit | None = None) -> Hours:
    """Demand by hour, from a CSV or a Prometheus range answer; `unit` where it says none.

    Values inside one hour are averaged, series of a Prometheus answer are added up. Raises
    UnreadableFile, one line with the row, for what is no demand.
    """
    text, _ = decode(name, data)
    if text.lstrip().startswith(("{", "[")):
        return _prometheus(name, data, unit)
    return _table(name, text, unit)


def unit_of(text: str) -> Unit | None:
    """The unit that a header or a metric's name speaks of."""
    words = text.casefold()
    return next((unit for word, unit in WORDS if word in words), None)


def _table(name: str, text: str, unit: Unit | None) -> Hours:
    rows, delimiter = parse_rows(name, text)
    if len(rows) < 2:
        raise UnreadableFile(f"{name}: no row of demand; needed: {FORM}")
    found = _columns(name, rows[0], unit)
    cells = [
        (line, rows[0][i], row[i])
        for line, row in enumerate(rows[1:], 2)
        for i in (found.value, found.load)
        if i is not None and i < len(row) and not is_missing(row[i])
    ]
    numbers = numbers_of(name, cells, delimiter)
    by_hour: dict[int, list[float]] = {}
    loads: dict[int, float] = {}
    for line, row in enumerate(rows[1:], 2):
        if len(row) <= max(found.time, found.value):
            raise UnreadableFile(f"{name}, row {line}: a time and a value are needed")
        hour = _hour(name, line, row[found.time], found.hours)
        value = numbers.parse(row[found.value])
        by_hour.setdefault(hour, []).append(_demand(name, f"row {line}", row[found.value], value))
        if found.load is not None and found.load < len(row) and not is_missing(row[found.load]):
            load = numbers.parse(row[found.load])
            if load is None or not (math.isfinite(load) and load > 0):
                raise UnreadableFile(
                    f"{name}, row {line}: load {row[found.load][:40]!r}; above 0, or empty"
                )
            loads[hour] = load
    if not found.hours and len({_zoned(row[found.time]) for row in rows[1:]}) > 1:
        raise UnreadableFile(
            f"{name}: some times have a UTC offset and others none; write it on all or on none"
        )
    first = 0 if found.hours else min(by_hour)
    return _hours(name, by_hour, found.unit, first, loads)


def _columns(name: str, header: Sequence[str], unit: Unit | None) -> _Columns:
    titles = [h.casefold().strip() for h in header]
    hour = next((i for i, t in enumerate(titles) if t in ("hour", "hours", "h")), None)
    time = next((i for i, t in enumerate(titles) if "time" in t or "date" in t or t == "ts"), hour)
    load = next((i for i, t in enumerate(titles) if t.startswith("load")), None)
    others = [i for i in range(len(titles)) if i not in (time, hour, load)]
    value = next((i for i in others if unit_of(titles[i])), None)
    if value is None and unit is not None and len(others) == 1:
        value = others[0]
    if time is None or value is None:
        seen = ", ".join(h[:30] for h in header[:8])
        raise UnreadableFile(f"{name}: columns {seen}; needed: {FORM}")
    stated = unit_of(titles[value]) or unit or UNITS[0]
    _require_rate(name, header[value], stated)
    return _Columns(time, value, load, time == hour, stated)


def _require_rate(name: str, title: str, unit: Unit) -> None:
    """Refuse a column that would be read as 60 or 3,600 times too much, or of other tokens."""
    words = title.casefold()
    silent = unit_of(words) is not None and not PER_SECOND.search(words)
    if unit != UNITS[2] and (silent or OTHER_RATE.search(words)):
        raise UnreadableFile(f"{name}: column {title[:40]!r}; demand is needed per second: {unit}")
    _require_written(name, title)


def _require_written(name: str, title: str) -> None:
    if READ_TOKENS.search(title.casefold()):
        raise UnreadableFile(f"{name}: {title[:60]!r} are tokens that are read; {UNITS[0]} needed")


def _zoned(text: str) -> bool:
    """Whether a time that was read says its offset from UTC."""
    return datetime.fromisoformat(text.strip()).tzinfo is not None


def _hour(name: str, line: int, text: str, plain: bool) -> int:
    """The hour of a row: its number, or hours since 1970 of a time (UTC where it has a zone)."""
    try:
        if plain:
            if not text.strip().isdecimal() or (hour := int(text)) >= MOST_HOURS:
                raise ValueError
            return hour
        return _since(datetime.fromisoformat(text.strip()))
    except (ValueError, OverflowError):
        wanted = f"a whole number, 0 to {MOST_HOURS - 1:,}" if plain else "2026-03-01T08:00"
        raise UnreadableFile(
            f"{name}, row {line}: {text[:40]!r} is no {'hour' if plain else 'time'}; {wanted} "
            "is needed"
        ) from None


def _since(moment: datetime) -> int:
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(zoned.timestamp() // HOUR_S)


def _demand(name: str, where: str, text: str, value: float | None) -> float:
    if value is None or not (math.isfinite(value) and 0 <= value <= LARGEST):
        raise UnreadableFile(
            f"{name}, {where}: {text[:40]!r} is no demand; a number of 0 to 1e12 is needed"
        )
    return value


def _prometheus(name: str, data: bytes, unit: Unit | None) -> Hours:
    values = parse_json(name, data).values
    answer = as_dict(values[0]) if values else {}
    found = as_dict(answer.get("data", answer))
    series = [as_dict(s) for s in as_list(found.get("result"))]
    if not series or found.get("resultType") not in ("matrix", None):
        raise UnreadableFile(
            f"{name}: no series in it; save the answer of /api/v1/query_range (resultType matrix)"
        )
    named = [str(as_dict(s.get("metric")).get("__name__") or "") for s in series]
    counter = next((n for n in named if n.endswith(("_total", "_sum", "_count"))), None)
    if counter:
        raise UnreadableFile(
            f"{name}: {counter[:60]} is a counter; ask for sum(rate({counter[:60]}[5m]))"
        )
    for each in named:
        _require_written(name, each)
    stated = next((u for n in named if n and (u := unit_of(n))), None) or unit
    if stated is None:
        raise UnreadableFile(f"{name}: its unit is not named; choose {', '.join(UNITS)} beside it")
    totals: dict[int, list[float]] = {}
    for place, one in enumerate(series, 1):
        own: dict[int, list[float]] = {}
        for sample, pair in enumerate(as_list(one.get("values")), 1):
            where = f"series {place}, value {sample}"
            hour, value = _sample(name, where, as_list(pair))
            own.setdefault(hour, []).append(value)
        for hour, inside in own.items():
            totals.setdefault(hour, []).append(sum(inside) / len(inside))
    if not totals:
        raise UnreadableFile(f"{name}: its series hold no values; widen the range of the query")
    added = {hour: [sum(parts)] for hour, parts in totals.items()}
    return _hours(name, added, stated, min(added), {})


def _sample(name: str, where: str, pair: Sequence[object]) -> tuple[int, float]:
    try:
        at, text = float(str(pair[0])), str(pair[1])
        hour = int(at // HOUR_S)
    except (ValueError, IndexError, OverflowError):
        raise UnreadableFile(f"{name}, {where}: a pair of a time and a value is needed") from None
    try:
        value: float | None = float(text)
    except ValueError:
        value = None
    return hour, _demand(name, where, text, value)


def _hours(
    name: str,
    by_hour: dict[int, list[float]],
    unit: Unit,
    first: int,
    loads: dict[int, float],
) -> Hours:
    count = max(by_hour) - first + 1
    if count > MOST_HOURS:
        raise UnreadableFile(
            f"{name}: {count:,} hours from the first to the last; at most {MOST_HOURS:,} (a year)"
        )
    missing = [h - first for h in range(first, first + count) if h not in by_hour]
    if missing:
        few = ", ".join(str(h) for h in missing[:5])
        raise UnreadableFile(
            f"{name}: no value for hour {few}{' and others' if len(missing) > 5 else ''}, counted "
            "from 0; an hour without demand is written as 0"
        )
    values = [sum(v) / len(v) for _, v in sorted(by_hour.items())]
    at = tuple(loads.get(first + i) for i in range(count)) if loads else ()
    return Hours(tuple(values), unit, at, first % 24)
