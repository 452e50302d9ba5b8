"""Fields of a run from a document, by a table of keys: what is read is what is shown."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lib.results.columns import KINDS
from lib.results.findings import Key
from lib.results.parsing import as_count, as_dict, as_number, as_text

# What is said of a key where people name fields themselves, as metadata or labels.
ANY_SET_UP = "and any field of the set-up that a key names"
STATISTICS = {"mean": "mean", "p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99"}


def at(document: object, path: Sequence[str]) -> object:
    """The value at a path of keys; None where there is none."""
    for key in path:
        document = as_dict(document).get(key)
    return document


def take(document: object, keys: Iterable[Key]) -> tuple[dict[str, Any], tuple[Key, ...]]:
    """The fields that `keys` find in a document, in the fields' own units, and the keys used.

    Of several keys for a field the first that holds a value of its kind counts.
    """
    found: dict[str, Any] = {}
    used = []
    for key in keys:
        if key.field in found:
            continue
        value = _convert(key, at(document, key.path))
        if value is not None:
            found[key.field] = value
            used.append(key)
    return found, tuple(used)


def _convert(key: Key, value: object) -> Any:
    kind = KINDS[key.field]
    if kind is bool:
        return value if isinstance(value, bool) else None
    if kind is str:
        return as_text(value)
    if kind is int:
        number = as_number(value) if key.factor != 1.0 else as_count(value)
        return None if number is None else round(number * key.factor)
    if kind is float:
        number = as_number(value)
        return None if number is None else number * key.factor
    raise TypeError(f"{key.field}: no key can hold a {kind.__name__}")


def latency_keys(
    name: str,
    path: Sequence[str],
    statistics: Mapping[str, str | Sequence[str]] = STATISTICS,
    *,
    factor: float = 1.0,
    unit: str = "",
    note: str = "",
) -> tuple[Key, ...]:
    """Keys of one latency (ttft, tpot, itl, e2e): `statistics` maps Run's names to the source's.

    A statistic that lies deeper is a path of its own.
    """
    rows = []
    for statistic, written in statistics.items():
        tail = (written,) if isinstance(written, str) else tuple(written)
        rows.append(Key(f"{name}_ms_{statistic}", (*path, *tail), factor, unit, note))
    return tuple(rows)
