"""Which tool and version gives which field of a run: a page generated from the readers."""

from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType

from lib.results.columns import KINDS
from lib.results.findings import Key
from lib.results.tools import READERS

INTRO = """# What is read of which tool

A file is recognised by its keys, never by its name. What a tool does not write stays empty: nothing
is guessed, and the results page says what that blocks. Any other JSON or table can be mapped by
hand, once for every file of that shape.

Where a field stands in several rows of one version, the first that a file has counts, unless a note
says when another does. A note without a condition says how the value is computed.

This page is generated from the readers: `python -m lib formats > docs/formats.md`.
"""


def markdown() -> str:
    """The page: what each tool gives at a glance, then key by key."""
    parts = [INTRO, "## At a glance", "\n".join(_overview(READERS))]
    for reader in READERS:
        parts += [f"## {reader.TITLE}", "\n".join(_keys(reader.LEVELS))]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _overview(readers: Sequence[ModuleType]) -> Iterator[str]:
    yield "| tool | versions, told by keys | fields |"
    yield "|---|---|---|"
    for reader in readers:
        given = {key.field for keys in reader.LEVELS.values() for key in keys}
        fields = ", ".join(f"`{name}`" for name in _short(n for n in KINDS if n in given))
        yield f"| {reader.TITLE} | {'; '.join(reader.LEVELS)} | {fields} |"


def _short(names: Iterator[str]) -> list[str]:
    """Field names, the statistics of one latency as one: `ttft_ms_mean, p50, p99`."""
    found: dict[str, list[str]] = {}
    for name in names:
        base, ms, statistic = name.rpartition("_ms_")
        found.setdefault(f"{base}{ms}" if ms else name, []).append(statistic)
    return [
        f"{base}{{{','.join(statistics)}}}" if base.endswith("_ms_") else base
        for base, statistics in found.items()
    ]


def _keys(levels: Mapping[str, Sequence[Key]]) -> Iterator[str]:
    """A row a key, with the versions that write it there."""
    rows: dict[Key, list[str]] = {}
    for level, keys in levels.items():
        for key in keys:
            rows.setdefault(key, []).append(level)
    order = {name: at for at, name in enumerate(KINDS)}
    yield "| field | where it stands | in | versions |"
    yield "|---|---|---|---|"
    for key, named in sorted(rows.items(), key=lambda row: order.get(row[0].field, len(order))):
        path = _cell(" → ".join(key.path))
        note = f" ({key.note})" if key.note else ""
        unit = key.unit or (f"× {key.factor:g}" if key.factor != 1.0 else "")
        versions = "all" if len(named) == len(levels) else "; ".join(named)
        yield f"| `{key.field}` | `{path}`{_cell(note)} | {unit} | {versions} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
