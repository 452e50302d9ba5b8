"""A table of runs in which a person states what the files could not know."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

from lib.errors import InputError
from lib.report.format import load as load_text
from lib.results.columns import KINDS
from lib.results.fields import convert
from lib.results.naming import parse_arm
from lib.run import EDITABLE, LoadKind, Run, SpecState

ARM = "arm"
PICK = "pick"
SET_BY_ARM = ("spec_state", "draft_method", "num_speculative_tokens")
OFTEN = ("gpu", "gpu_count", "usd_per_hour", "max_num_seqs", "engine_version", "temperature")
RARELY = tuple(f for f in EDITABLE if f not in (*SET_BY_ARM, *OFTEN))
LABELS = {"usd_per_hour": "$/h"}
WORDS = {
    LoadKind.CONCURRENCY: "{} concurrent",
    LoadKind.REQUEST_RATE: "{} requests/s",
    LoadKind.BATCH: "batch {}",
}
FORMATS = {"tok/s": "%.1f", "M": "%.3f", "TPOT ms": "%.2f", "TTFT ms": "%.1f"}
DTYPES = {int: "Int64", float: "Float64", bool: "boolean"}

Edits = dict[str, dict[str, object]]  # by run_id, then by column


def load_of(run: Run) -> str:
    """A run's load in words: `8 concurrent`, `0.5 requests/s`, `batch 4`; empty while unknown."""
    if run.offered_load is None:
        return ""
    value = load_text(run.offered_load)
    return WORDS[run.load_kind].format(value) if run.load_kind else value


def needs_load(runs: Iterable[Run]) -> bool:
    """Whether a person must say at which load some run was measured."""
    return any(r.offered_load is None or r.load_kind is None for r in runs)


def edited(key: str) -> Edits:
    """What was typed since the table of that key was drawn afresh."""
    drawn, _ = st.session_state.get(_table(key), ((None,), None))
    if drawn[0] != key or key not in st.session_state:
        return {}
    ids = drawn[1]
    rows = st.session_state[key].get("edited_rows", {})
    return {ids[int(at)]: dict(cells) for at, cells in rows.items() if int(at) < len(ids)}


def _table(key: str) -> str:
    """Where the frame last drawn is kept: keys of one table begin alike."""
    return f"{key.partition('-')[0]} table"


def edit(
    key: str,
    runs: Sequence[Run],
    described: Mapping[str, Sequence[object]],
    fields: Sequence[str],
    typed: Edits,
    *,
    picks: bool = False,
    locked: bool = False,
    version: object = None,
    alt: str,
) -> None:
    """Draw the table: what describes a run, its arm and the fields; or a column to pick by first.

    `typed` stands in the cells instead of what the runs say. With `locked` nothing but the picks
    can be changed. Rows are known by run_id. Another `version`, or other rows or columns, draw it
    afresh.
    """
    shape = (key, [r.run_id for r in runs], version, *described, ARM, *fields)
    drawn, frame = st.session_state.get(_table(key), (None, None))
    # The browser shows what is typed over the frame that it was given. Another frame, even of the
    # same values, closes the cell that a person is typing in.
    if drawn != shape or key not in st.session_state:
        frame = _frame(runs, described, fields, typed)
        st.session_state[_table(key)] = (shape, frame)
    st.data_editor(
        frame,
        key=key,
        hide_index=True,
        column_order=[PICK, ARM, *described, *fields] if picks else [*described, ARM, *fields],
        disabled=[*described, ARM, *fields] if locked else list(described),
        column_config={n: _column(n) for n in (PICK, *described, ARM, *fields)},
        placeholder="–",
        alt=alt,
    )


def _frame(
    runs: Sequence[Run],
    described: Mapping[str, Sequence[object]],
    fields: Sequence[str],
    typed: Edits,
) -> pd.DataFrame:
    columns: dict[str, Any] = {PICK: pd.array([False] * len(runs), dtype="boolean")}
    columns |= {name: list(values) for name, values in described.items()}
    columns[ARM] = pd.array([r.arm for r in runs], dtype="string")
    for name in fields:
        dtype = DTYPES.get(KINDS[name], "string")
        columns[name] = pd.array([getattr(r, name) for r in runs], dtype=dtype)
    frame = pd.DataFrame(columns, index=[r.run_id for r in runs])
    for run_id, cells in typed.items():
        for name, value in cells.items():
            if name in frame.columns and run_id in frame.index:
                with suppress(TypeError, ValueError):  # not what the column's cells can hold
                    frame.loc[run_id, name] = pd.NA if value is None else value
    return frame


def _column(name: str) -> Any:
    label, kind = LABELS.get(name, name), KINDS.get(name)
    if name == PICK:
        return st.column_config.CheckboxColumn("", width="small", pinned=True)
    if name == "flags":
        return st.column_config.TextColumn(label, width="medium")
    if name == ARM:
        return st.column_config.TextColumn(
            label, help="off, METHOD or METHOD:K, for example eagle3:4"
        )
    if (number_format := FORMATS.get(name.partition(",")[0])) is not None:
        return st.column_config.NumberColumn(label, format=number_format)
    if kind is LoadKind:
        return st.column_config.SelectboxColumn(label, options=[str(k) for k in LoadKind])
    if kind is int:
        return st.column_config.NumberColumn(label, step=1)
    if kind is float:
        return st.column_config.NumberColumn(label)
    return label


def fields_of(cell: str, value: object) -> dict[str, object]:
    """The fields of a run that a cell states; a blank one takes them back. Raises InputError."""
    blank = value is None or (isinstance(value, str) and not value.strip())
    if cell == PICK:
        return {}
    if cell == ARM:
        if blank:
            return {"spec_state": SpecState.UNKNOWN, **dict.fromkeys((*SET_BY_ARM[1:], "schedule"))}
        return {**parse_arm(str(value)), "schedule": None}
    return {cell: None if blank else convert(cell, value)}


def with_cells(run: Run, cells: Mapping[str, object]) -> Run:
    """The run as its edited row states it. Raises InputError."""
    stated: dict[str, Any] = {}
    for cell, value in cells.items():
        stated |= fields_of(cell, value)
    return replace(run, **stated)


def problem(run: Run, cell: str, value: object) -> str | None:
    """Why a cell cannot be taken, or None."""
    try:
        with_cells(run, {cell: value})
    except InputError as error:
        return str(error)
    return None
