"""Tables with one row a run, or one row a load with a column for each arm."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lib.errors import InputError, UnknownFormat, UnreadableFile
from lib.results.cells import Numbers, Rows, doubtful, is_missing, numbers_of
from lib.results.fields import ARM, LOADS, Match, convert, has_zone, settled
from lib.results.findings import Findings, Key, shorten
from lib.results.headers import (
    IGNORE,
    OUTCOMES,
    PER_GPU,
    PER_USER,
    Understood,
    arm_names,
    is_blank,
    is_whole,
    understand,
)
from lib.results.mapping import columns_at, offered
from lib.results.naming import ArmName
from lib.results.tools import LISTED
from lib.results.tools.table_notes import Notes
from lib.results.tools.table_percent import PERCENT, in_percent, rate_of
from lib.results.tools.table_runs import TOOL, Draft, decode_time, finish
from lib.run import LoadKind, SpecState

__all__ = ["TOOL", "find"]

_DRESSED = {"x": "multiplier", "%": "accept_rate", "$": "usd_per_hour"}  # the one field it suits


def find(
    name: str,
    rows: Rows,
    sha256: str,
    mapping: Mapping[str, str] | None = None,
    delimiter: str = ",",
) -> Findings:
    """Runs of a table's rows. Raises UnknownFormat where it lacks a load or an outcome.

    Raises UnreadableFile where a row has more cells than the header, or where decimal marks are
    mixed.
    """
    if not rows or len(rows[0]) < 2:
        first = shorten([" ".join(rows[0])]) if rows else ""
        raise UnknownFormat(f"{name}: neither JSON nor a table ({first}); {LISTED}")
    if len(rows) < 2:
        raise UnknownFormat(f"{name}: a table without rows; headers found: {shorten(rows[0])}")
    columns = understand(rows[0], mapping or {})
    _require(name, rows, columns)
    numeric = [c for c in columns if c.is_numeric]
    _refuse_two_headers(name, rows, numeric)
    _refuse_wide_rows(name, rows, delimiter)
    cells = [
        (line, c.header, row[c.place])
        for line, row in enumerate(rows[1:], start=2)
        for c in numeric
        if c.place < len(row)
    ]
    numbers, notes = numbers_of(name, cells, delimiter), Notes()
    notes.doubtful += doubtful(cells, numbers, delimiter)
    notes.short += _short_rows(rows, columns)
    columns = [in_percent(c, rows, numbers, notes) for c in columns]
    columns = [c for c in columns if not _seems_in_seconds(c, rows, numbers, notes)]
    drafts = _drafts(rows, columns, numbers, notes)
    runs, flags = finish(drafts, sha256)
    if not runs:
        raise UnknownFormat(
            f"{name}: no row of {len(rows) - 1:,} has both a load and an outcome",
            offered(rows),
        )
    ignored = {h for h, target in (mapping or {}).items() if target == IGNORE}
    known = {c.place for c in columns}
    left = [p for p, h in enumerate(rows[0]) if p not in known and h.strip() not in ignored]
    shown = shorten(dict.fromkeys(c.header for c in columns))
    return Findings(
        TOOL,
        "one row a load" if any(c.arm for c in columns) else "one row a run",
        f"headers understood: {shown}",
        tuple(runs),
        flags=(*notes.flags(columns), *flags),
        unmatched=columns_at(rows, left),
        keys=tuple(_key(c) for c in columns),
    )


def _seems_in_seconds(column: Understood, rows: Rows, numbers: Numbers, notes: Notes) -> bool:
    """Whether latencies without a unit are all below 1: no server is that fast in milliseconds."""
    if not column.match.unit_assumed or "_ms_" not in column.match.field:
        return False
    found = [numbers.parse(_cell(row, column.place)) for row in rows[1:]]
    stated = [n for n in found if n is not None]
    if not stated or max(stated) >= 1:
        return False
    notes.in_seconds.append(column.header)
    return True


def _key(column: Understood) -> Key:
    name, match = column.match.dimension or column.match.field, column.match
    arm = f"of the arm {column.arm_key}" if column.arm_key else ""
    return Key(name, (column.header,), match.factor, _unit(match), arm)


def _unit(match: Match) -> str:
    if match.field == "accept_rate" and match.factor == PERCENT:
        return "%"
    return "" if match.factor == 1.0 else f"× {match.factor:g}"


def _require(name: str, rows: Rows, columns: Sequence[Understood]) -> None:
    if is_whole(columns):
        return
    if is_whole(understand(rows[1], {})):
        raise UnknownFormat(_two_headers(name, rows[0], rows[1]), offered(rows))
    need = "a load (concurrency, request rate or batch size)"
    if any(c.match.field in (*LOADS, "offered_load") for c in columns):
        need = "an outcome (output tok/s, TPOT or speedup)"
    raise UnknownFormat(
        f"{name}: a table without {need}; headers found: {shorten(rows[0])}; "
        "its columns can be mapped to fields by hand",
        offered(rows),
    )


def _refuse_two_headers(name: str, rows: Rows, numeric: Sequence[Understood]) -> None:
    first, second = (
        [_cell(row, c.place) for c in numeric] for row in (rows[1], rows[min(2, len(rows) - 1)])
    )
    plain = Numbers()
    words = [t for t in first if not is_missing(t)]
    wordy = len(rows) > 2 and words and not any(_looks_numeric(plain, t) for t in words)
    if wordy and any(_looks_numeric(plain, t) for t in second):
        raise UnknownFormat(_two_headers(name, rows[0], rows[1]), offered(rows))


def _refuse_wide_rows(name: str, rows: Rows, delimiter: str) -> None:
    """A row with more cells than the header is shifted: its numbers stand under other names."""
    allowed = len(rows[0])
    for line, row in enumerate(rows[1:], start=2):
        found = max((at for at, cell in enumerate(row, start=1) if cell.strip()), default=0)
        if found > allowed and not row[0].lstrip().startswith("#"):
            way_out = "put a cell that holds a comma in quotes, or separate by semicolons"
            if delimiter != ",":
                way_out = f"put a cell that holds {delimiter!r} in quotes"
            raise UnreadableFile(
                f"{name}: line {line} has {found} cells, the header allows {allowed}; {way_out}"
            )


def _short_rows(rows: Rows, columns: Sequence[Understood]) -> list[str]:
    """Rows that end before a column that is understood."""
    needed = max((c.place for c in columns), default=-1) + 1
    return [
        f"line {line} has {len(row)} of {len(rows[0])}"
        for line, row in enumerate(rows[1:], start=2)
        if len(row) < needed
    ]


def _looks_numeric(plain: Numbers, text: str) -> bool:
    return any(n.parse_load(text)[0] is not None for n in (plain, Numbers(decimal_comma=True)))


def _two_headers(name: str, first: Sequence[str], second: Sequence[str]) -> str:
    return (
        f"{name}: two header rows ({shorten(filter(None, first), 4)}; "
        f"{shorten(filter(None, second), 4)}); put name and unit into one row, as 'ttft (ms)'"
    )


def _cell(row: Sequence[str], place: int) -> str:
    return row[place].strip() if place < len(row) else ""


def _drafts(
    rows: Rows, columns: Sequence[Understood], numbers: Numbers, notes: Notes
) -> list[Draft]:
    shared = [c for c in columns if c.arm is None]
    wide: dict[str, list[Understood]] = {}
    for column in columns:
        if column.arm is not None:
            wide.setdefault(column.arm_key, []).append(column)
    names = arm_names(rows, columns)
    left = [p for p in range(len(rows[0])) if p not in {c.place for c in columns}]
    drafts: list[Draft] = []
    for line, row in enumerate(rows[1:], start=2):
        values = dict(_values(row, line, shared, numbers, notes))
        load = _load(values)
        if not load:
            notes.without_load += 1
            continue
        base = {k: v for k, v in values.items() if k not in LOADS and k != ARM} | load
        named = names.get(str(values.get(ARM, "")))
        made = list(_row_drafts(base, values.get(ARM), named, wide, row, line, numbers, notes))
        notes.without_outcome += not made
        notes.without_kind += bool(made) and "load_kind" not in load
        extra: dict[str, object] = {
            rows[0][p].strip(): _cell(row, p) for p in left if _cell(row, p)
        }
        drafts += [replace(draft, extra=extra) for draft in made]
    return drafts


def _values(
    row: Sequence[str],
    line: int,
    columns: Sequence[Understood],
    numbers: Numbers,
    notes: Notes,
) -> Iterator[tuple[str, Any]]:
    """Fields of a row's cells; rates per GPU and per user under `per GPU` and `per user`."""
    for column in columns:
        text, name = _cell(row, column.place), column.match.field
        if is_blank(name, text):
            notes.nonfinite += text.casefold() == "nan"
            continue
        try:
            if name == ARM:
                yield name, text
            elif name == "offered_load":
                number, kind = numbers.parse_load(text)
                yield name, convert(name, number)
                yield from [("load_kind", kind)] if kind else []
            elif name == "accept_rate":
                if (rate := rate_of(text, column.match, numbers, notes)) is not None:
                    yield name, rate
            elif column.is_numeric:
                yield column.match.dimension or name, _number(name, text, column.match, numbers)
                notes.approximate += text[0] in "~≈"
                notes.emitted |= name == "output_tokens" and "emitted" in column.header.casefold()
            else:
                yield name, convert(name, text)
                yield from [("zone_known", True)] if name == "started_at" and has_zone(text) else []
        except InputError:
            notes.unreadable.append(f"line {line}, column {column.header!r}: {text[:40]!r}")


def _number(name: str, text: str, match: Match, numbers: Numbers) -> Any:
    number = numbers.parse(text)
    if number is None:
        raise InputError(f"{name} = {text!r}: a number is needed")
    # `2x` tok/s is no rate, and a multiplier of 44 % may be 1.44 or 0.44.
    if any(name != suits for mark, suits in _DRESSED.items() if mark in numbers.dressing(text)):
        raise InputError(f"{name} = {text!r}: a number of the column's own unit is needed")
    return number if name in LOADS else convert(name, number * match.factor)


def _load(values: Mapping[str, Any]) -> dict[str, Any]:
    """A finite request rate is the load; else the concurrency, the batch, an unlimited rate.

    A load of which nothing says the kind has none: a person is asked for it.
    """
    if "offered_load" in values and "load_kind" in values:
        return {k: values[k] for k in ("offered_load", "load_kind")}
    rate = values.get("request_rate")
    finite = {"request_rate": rate} if rate not in (None, float("inf")) else {}
    limits = {k: values[k] for k in ("concurrency", "batch") if values.get(k, 0) > 0}
    unlimited = {"request_rate": rate} if rate is not None else {}
    for kind, load in (finite or limits or unlimited).items():
        return {"load_kind": LoadKind(LOADS[kind]), "offered_load": load} if load > 0 else {}
    return {"offered_load": values["offered_load"]} if "offered_load" in values else {}


def _row_drafts(
    base: dict[str, Any],
    arm_text: str | None,
    named: ArmName | None,
    wide: Mapping[str, Sequence[Understood]],
    row: Sequence[str],
    line: int,
    numbers: Numbers,
    notes: Notes,
) -> Iterator[Draft]:
    """The runs of a row: one, or one for each arm that has columns of its own."""
    outcomes = {k: base[k] for k in (*OUTCOMES, PER_GPU, PER_USER) if k in base}
    shared = {k: v for k, v in base.items() if k not in outcomes}
    label = {} if arm_text is None or "label" in base else {"label": arm_text}
    groups = {
        key: (columns[0].arm, dict(_values(row, line, columns, numbers, notes)))
        for key, columns in wide.items()
    }
    spoken_for = any(arm and arm.state is SpecState.ON for arm, _ in groups.values())
    alone = not wide or (outcomes.keys() == {"multiplier"} and not spoken_for)
    if alone and (outcomes or decode_time(base) is not None):
        ratio_alone = ArmName(SpecState.ON) if "multiplier" in outcomes else None
        yield from _draft(line, "", shared | label, named or ratio_alone, outcomes, notes)
    for key, (arm, found) in groups.items():
        if arm and arm.state is SpecState.OFF:
            yield from _draft(line, key, shared, arm, found, notes)
            continue
        if arm and arm.method is None and named:
            k = named.k if arm.k is None else arm.k
            arm = replace(arm, method=named.method, k=k, schedule=arm.schedule or named.schedule)
        yield from _draft(line, key, shared | label, arm, found, notes)


def _draft(
    line: int,
    key: str,
    shared: Mapping[str, Any],
    arm: ArmName | None,
    outcomes: Mapping[str, Any],
    notes: Notes,
) -> Iterator[Draft]:
    measured = dict(outcomes)
    per_gpu, per_user = measured.pop(PER_GPU, None), measured.pop(PER_USER, None)
    if per_user and "tpot_ms_mean" not in measured:
        measured["tpot_ms_mean"] = 1e3 / per_user
    if measured.keys() & {"output_tps", "tpot_ms_mean", "tpot_ms_p50"}:
        measured.pop("multiplier", None)  # it is derived from them
    derived = decode_time({**shared, **measured})
    notes.derived += derived is not None
    measured |= {} if derived is None else {"tpot_ms_mean": derived}
    if not measured.keys() & set(OUTCOMES) and per_gpu is None:
        return
    fields = _with_arm(dict(shared), arm) | measured
    per_gpu = per_gpu if "output_tps" not in measured else None
    yield Draft(line, key, fields, per_gpu, emitted=notes.emitted)


def _with_arm(fields: dict[str, Any], arm: ArmName | None) -> dict[str, Any]:
    if arm is not None:
        fields = fields | arm.fields
    if fields.get("spec_state") is SpecState.OFF:
        for name in ("num_speculative_tokens", "draft_method", "draft_model", "draft_topk"):
            fields.pop(name, None)
    return settled(fields)
