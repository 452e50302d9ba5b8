"""Tables with one row a run, or one row a load with a column for each arm."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import orjson

from lib.errors import InputError, UnknownFormat
from lib.results import checks, redaction
from lib.results.cells import Numbers, Rows, is_missing, numbers_of
from lib.results.fields import ARM, LOADS, Match, convert, settled
from lib.results.findings import KNOWN, Column, Findings, Flag, build_run, identity, shorten
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
from lib.results.naming import ArmName
from lib.results.parsing import counted
from lib.run import LoadKind, Run, SpecState

TOOL = "table"
_VLLM_HEADERS = {"completed", "output_throughput"}


@dataclass
class _Notes:
    """What was noticed while reading cells."""

    unreadable: list[str] = field(default_factory=list)
    without_load: int = 0
    without_outcome: int = 0
    without_kind: int = 0
    approximate: int = 0
    nonfinite: int = 0


@dataclass
class _Draft:
    """A run in the making."""

    key: tuple[object, ...]
    fields: dict[str, Any]
    per_gpu: float | None = None
    extra: dict[str, object] = field(default_factory=dict)


def vllm_records(rows: Rows) -> list[dict[str, object]]:
    """Rows as records of vllm bench serve, where the headers are its keys (a summary.csv)."""
    if not rows or not set(rows[0]) >= _VLLM_HEADERS:
        return []
    return [
        {key: _json_cell(cell) for key, cell in zip(rows[0], row, strict=False) if cell.strip()}
        for row in rows[1:]
    ]


def _json_cell(cell: str) -> object:
    try:
        return orjson.loads(cell)
    except orjson.JSONDecodeError:
        return cell


def offered(rows: Rows) -> tuple[Column, ...]:
    """Every column with samples, for mapping by hand."""
    return _columns(rows, range(len(rows[0]) if rows else 0))


def _columns(rows: Rows, places: Sequence[int]) -> tuple[Column, ...]:
    redacted = redaction.redact_rows(rows[:50])
    found = []
    for place in places:
        cells = (row[place].strip()[:60] for row in redacted[1:] if place < len(row))
        samples = dict.fromkeys(c for c in cells if c)
        found.append(Column(rows[0][place].strip()[:200], tuple(islice(samples, 3))))
    return tuple(c for c in found if c.header)


def find(
    name: str,
    rows: Rows,
    sha256: str,
    mapping: Mapping[str, str] | None = None,
    delimiter: str = ",",
) -> Findings:
    """Runs of a table's rows. Raises UnknownFormat where it lacks a load or an outcome."""
    if not rows or len(rows[0]) < 2:
        first = shorten([" ".join(rows[0])]) if rows else ""
        raise UnknownFormat(f"{name}: neither JSON nor a table ({first}); known are {KNOWN}")
    if len(rows) < 2:
        raise UnknownFormat(f"{name}: a table without rows; headers found: {shorten(rows[0])}")
    columns = understand(rows[0], mapping or {})
    _require(name, rows, columns)
    numeric = [c for c in columns if c.is_numeric]
    _refuse_two_headers(name, rows, numeric)
    cells = (
        (line, c.header, row[c.place])
        for line, row in enumerate(rows[1:], start=2)
        for c in numeric
        if c.place < len(row)
    )
    numbers, notes = numbers_of(name, cells, delimiter), _Notes()
    drafts = _drafts(rows, columns, numbers, notes, sha256)
    runs, flags = _finish(drafts, sha256)
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
        flags=(*_flags(columns, notes), *flags),
        unmatched=_columns(rows, left),
    )


def _require(name: str, rows: Rows, columns: Sequence[Understood]) -> None:
    if is_whole(columns):
        return
    if is_whole(understand(rows[1], {})):
        raise UnknownFormat(_two_headers(name, rows[0], rows[1]), offered(rows))
    need = "a load (concurrency, request rate or batch size)"
    if any(c.match.field in (*LOADS, "offered_load") for c in columns):
        need = "an outcome (output tok/s, TPOT or speedup)"
    raise UnknownFormat(
        f"{name}: a table without {need}; headers found: {shorten(rows[0])}; known are {KNOWN}; "
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
    rows: Rows, columns: Sequence[Understood], numbers: Numbers, notes: _Notes, sha256: str
) -> list[_Draft]:
    shared = [c for c in columns if c.arm is None]
    wide: dict[str, list[Understood]] = {}
    for column in columns:
        if column.arm is not None:
            wide.setdefault(column.arm_key, []).append(column)
    names = arm_names(rows, columns)
    left = [p for p in range(len(rows[0])) if p not in {c.place for c in columns}]
    drafts: list[_Draft] = []
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
        for draft in made:
            drafts.append(replace(draft, key=(TOOL, sha256, *draft.key), extra=extra))
    return drafts


def _values(
    row: Sequence[str],
    line: int,
    columns: Sequence[Understood],
    numbers: Numbers,
    notes: _Notes,
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
            elif column.is_numeric:
                yield column.match.dimension or name, _number(name, text, column.match, numbers)
                notes.approximate += text[0] in "~≈"
            else:
                yield name, convert(name, text)
        except InputError:
            notes.unreadable.append(f"line {line}, column {column.header!r}: {text[:40]!r}")


def _number(name: str, text: str, match: Match, numbers: Numbers) -> Any:
    number = numbers.parse(text)
    if number is None:
        raise InputError(f"{name} = {text!r}: a number is needed")
    if name == "multiplier" and "%" in text:  # a gain of 44 % is 1.44, and 44 % of is 0.44
        raise InputError(f"{name} = {text!r}: a ratio is needed, not a percentage")
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
    notes: _Notes,
) -> Iterator[_Draft]:
    """The runs of a row: one, or one for each arm that has columns of its own."""
    outcomes = {k: base[k] for k in (*OUTCOMES, PER_GPU, PER_USER) if k in base}
    shared = {k: v for k, v in base.items() if k not in outcomes}
    label = {} if arm_text is None or "label" in base else {"label": arm_text}
    groups = {
        key: (columns[0].arm, dict(_values(row, line, columns, numbers, notes)))
        for key, columns in wide.items()
    }
    spoken_for = any(arm and arm.state is SpecState.ON for arm, _ in groups.values())
    if outcomes and not (wide and (spoken_for or outcomes.keys() != {"multiplier"})):
        ratio_alone = ArmName(SpecState.ON) if "multiplier" in outcomes else None
        yield from _draft((line, ""), shared | label, named or ratio_alone, outcomes)
    for key, (arm, found) in groups.items():
        if arm and arm.state is SpecState.OFF:
            yield from _draft((line, key), shared, arm, found)
            continue
        if arm and arm.method is None and named:
            k = named.k if arm.k is None else arm.k
            arm = replace(arm, method=named.method, k=k, schedule=arm.schedule or named.schedule)
        yield from _draft((line, key), shared | label, arm, found)


def _draft(
    key: tuple[object, ...],
    shared: Mapping[str, Any],
    arm: ArmName | None,
    outcomes: Mapping[str, Any],
) -> Iterator[_Draft]:
    measured = dict(outcomes)
    per_gpu, per_user = measured.pop(PER_GPU, None), measured.pop(PER_USER, None)
    if per_user and "tpot_ms_mean" not in measured:
        measured["tpot_ms_mean"] = 1e3 / per_user
    if measured.keys() & {"output_tps", "tpot_ms_mean", "tpot_ms_p50"}:
        measured.pop("multiplier", None)  # it is derived from them
    if not measured.keys() & set(OUTCOMES) and per_gpu is None:
        return
    fields = _with_arm(dict(shared), arm) | measured
    yield _Draft(key, fields, per_gpu if "output_tps" not in measured else None)


def _with_arm(fields: dict[str, Any], arm: ArmName | None) -> dict[str, Any]:
    if arm is not None:
        fields = fields | arm.fields
    if fields.get("spec_state") is SpecState.OFF:
        for name in ("num_speculative_tokens", "draft_method", "draft_model", "draft_topk"):
            fields.pop(name, None)
    return settled(fields)


def _finish(drafts: Sequence[_Draft], sha256: str) -> tuple[list[Run], list[Flag]]:
    """Runs of the drafts: per-GPU rates resolved, a baseline repeated in several rows once."""
    runs: list[Run] = []
    flags: list[Flag] = []
    ratios = 0
    baselines: set[str] = set()
    for draft in drafts:
        fields = dict(draft.fields)
        if draft.per_gpu is not None:
            if count := fields.get("gpu_count"):
                fields["output_tps"] = draft.per_gpu * count
            else:
                ratio = _ratio_to_off(draft, drafts)
                ratios += 1
                if ratio is None:
                    continue
                fields["multiplier"] = ratio
        if fields.get("spec_state") is SpecState.OFF and draft.key[-1]:
            same = repr(sorted(fields.items(), key=lambda item: item[0]))
            if same in baselines:
                continue
            baselines.add(same)
        made = {"run_id": identity(*draft.key), "source_sha256": sha256, "tool": TOOL}
        run, found = build_run(fields | made | {"extra": redaction.extra(draft.extra)})
        runs.append(run)
        flags += [*found, *checks.inspect(run), *_zero_k(run)]
    if ratios:
        text = "token rates are per GPU and the GPU count is not stated: kept as ratios to off"
        flags.append(Flag("per_gpu_rate", "blocks pricing", text))
    return runs, flags


def _ratio_to_off(draft: _Draft, drafts: Sequence[_Draft]) -> float | None:
    """An arm's per-GPU rate over the baseline's at the same load; None for the baseline itself."""
    if draft.fields.get("spec_state") is not SpecState.ON or draft.per_gpu is None:
        return None
    load = [draft.fields.get(k) for k in ("load_kind", "offered_load")]
    for other in drafts:
        same = [other.fields.get(k) for k in ("load_kind", "offered_load")] == load
        if same and other.fields.get("spec_state") is SpecState.OFF and other.per_gpu:
            return draft.per_gpu / other.per_gpu
    return None


def _zero_k(run: Run) -> list[Flag]:
    if run.num_speculative_tokens != 0 or run.spec_state is not SpecState.UNKNOWN:
        return []
    text = "K = 0: say whether that is off (no speculation) or a schedule's zero"
    return [Flag("k_zero", "blocks pairing", text, run.run_id)]


def _flags(columns: Sequence[Understood], notes: _Notes) -> list[Flag]:
    flags = []
    if assumed := [c.header for c in columns if c.match.unit_assumed]:
        text = f"no unit in {shorten(assumed)}: read as ms, s, tok/s or req/s by the name"
        flags.append(Flag("unit_assumed", "warns", text))
    if any(c.match.dimension == PER_USER for c in columns):
        text = "TPOT derived as 1000 / tokens per second and user"
        flags.append(Flag("per_user_rate", "warns", text))
    if notes.unreadable:
        count = counted(len(notes.unreadable), "cell")
        text = f"{count} with no value of the column: {notes.unreadable[0]}"
        flags.append(Flag("unreadable_cells", "warns", text))
    if notes.without_load or notes.without_outcome:
        counts = f"{notes.without_load} without a load, {notes.without_outcome} without an outcome"
        flags.append(Flag("rows_left_out", "warns", f"rows left out: {counts}"))
    if notes.without_kind:
        text = (
            f"{counted(notes.without_kind, 'row')} with a load of unknown kind; state load_kind: "
            "concurrency, request_rate or batch"
        )
        flags.append(Flag("load_kind_unknown", "warns", text))
    if notes.nonfinite:
        text = f"NaN in {counted(notes.nonfinite, 'cell')}; read as missing"
        flags.append(Flag("nonfinite_values", "warns", text))
    if notes.approximate:
        text = f"{counted(notes.approximate, 'value')} marked approximate (~)"
        flags.append(Flag("approximate_values", "warns", text))
    return flags
