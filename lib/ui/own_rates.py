"""A person's own rates: a table to edit, every save a new version, the old ones listed."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date
from typing import Any

import pandas as pd
import streamlit as st

from lib.errors import DraftworthError, InputError, StoreError
from lib.money.rates import TERMS, PriceBook
from lib.report import rates as text
from lib.report.format import plain_md
from lib.results.rates import StoredRate, TypedRate
from lib.ui import chosen_rate, study
from lib.ui.figure import csv_button

SAID, ROUND, FRAME = "own rates said", "own rates round", "own rates frame"
HELP = {
    "provider": "Who sells it.",
    "gpu": "As on the filters of the listed rates, for example H100.",
    "price_per_gpu_hour": "Of one GPU: divide an instance by its GPUs.",
    "usd_per_unit": "What 1 of that currency was worth in USD; empty for USD.",
    "converted_on": "The day of that exchange rate.",
    "effective_date": "The price holds from this day on.",
    "source": "Contract, quote or page.",
}
TEXTS = ("provider", "item", "gpu", "term", "currency", "source", "note")
NUMBERS = ("price_per_gpu_hour", "usd_per_unit")
COLUMNS = (
    *("provider", "item", "gpu", "term", "price_per_gpu_hour", "effective_date"),
    *("currency", "usd_per_unit", "converted_on", "source", "note"),
)

Change = tuple[str | None, TypedRate]


def draw(book: PriceBook) -> None:
    """The editor, its save button and the history of versions."""
    opened = study.store()
    if opened is None:
        st.info("Your own rates are kept in the store, which cannot be opened now.")
        return
    good, said = st.session_state.pop(SAID, (True, ""))
    if said:
        (st.success if good else st.error)(plain_md(said))
    try:
        stored = _latest(opened.rates())
    except StoreError as error:
        st.error(plain_md(str(error)))
        return
    key = f"own-rates-{st.session_state.setdefault(ROUND, 0)}"
    _edit(key, stored)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input("By", key="own-rates-by", placeholder="your name", width=220)
        st.button("Save as new versions", key="own-rates-save", on_click=_save, args=(key, stored))
    if book.own:
        on = chosen_rate.priced_on()
        st.caption("Every version, the old ones too: none is overwritten.")
        st.dataframe(
            text.version_table(book, on),
            hide_index=True,
            placeholder="–",
            column_config={"$ per GPU-hour": st.column_config.NumberColumn(format="%.5g")},
            alt="Every version of your own rates, with what each changed.",
        )
        csv_button("own-rates", lambda: text.version_table(book, on))


def _latest(rows: tuple[StoredRate, ...]) -> tuple[StoredRate, ...]:
    """The last version of each rate that was not withdrawn."""
    last = {row.rate_id: row for row in rows}
    return tuple(row for row in last.values() if not row.typed.withdrawn)


def _edit(key: str, stored: tuple[StoredRate, ...]) -> None:
    # Another frame, even of the same values, closes the cell that a person is typing in.
    drawn, frame = st.session_state.get(FRAME, (None, None))
    if drawn != (key, stored) or key not in st.session_state:
        frame = _frame(stored)
        st.session_state[FRAME] = ((key, stored), frame)
    st.data_editor(
        frame,
        key=key,
        num_rows="dynamic",
        on_change="ignore",  # the browser holds the edits until they are saved
        hide_index=True,
        column_order=COLUMNS,
        column_config={name: _column(name) for name in COLUMNS},
        placeholder="–",
        alt="Your own rates. Add a row at the end, or select one to delete it.",
    )


def _frame(stored: tuple[StoredRate, ...]) -> pd.DataFrame:
    columns: dict[str, Any] = {}
    for name in COLUMNS:
        values = [getattr(row.typed, name) for row in stored]
        if name in NUMBERS:
            columns[name] = pd.array(values, dtype="Float64")
        elif name in TEXTS:
            columns[name] = pd.array(values, dtype="string")
        else:
            columns[name] = pd.Series(values, dtype="object")
    return pd.DataFrame(columns)


def _column(name: str) -> Any:
    label = {"price_per_gpu_hour": "per GPU-hour", "gpu": "GPU", "usd_per_unit": "$ per unit"}
    named = label.get(name, name.replace("_", " "))
    if name == "term":
        return st.column_config.SelectboxColumn(named, options=list(TERMS))
    if name in NUMBERS:
        return st.column_config.NumberColumn(named, min_value=0, format="%.6g", help=HELP[name])
    if name in ("effective_date", "converted_on"):
        return st.column_config.DateColumn(named, format="YYYY-MM-DD", help=HELP[name])
    return st.column_config.TextColumn(named, help=HELP.get(name))


def _save(key: str, stored: tuple[StoredRate, ...]) -> None:
    try:
        changes = list(edits(stored, st.session_state[key], chosen_rate.priced_on()))
        if not changes:
            raise InputError("nothing was changed: edit a cell, add a row or delete one")
        kept = study.open_store().save_rates(changes, st.session_state.get("own-rates-by", ""))
    except DraftworthError as error:
        st.session_state[SAID] = (False, str(error))
        return
    many = len(kept) != 1
    st.session_state[SAID] = (True, f"{len(kept)} new version{'s' if many else ''} saved.")
    st.session_state[ROUND] += 1


def edits(
    stored: tuple[StoredRate, ...], state: Mapping[str, Any], today: date
) -> Iterator[Change]:
    """What the table's edits ask to be saved: changed, withdrawn and new rates, row by row.

    `state` is the data editor's. Raises InputError that names the row.
    """
    gone = set(state.get("deleted_rows", ()))
    for at, cells in sorted(state.get("edited_rows", {}).items(), key=lambda item: int(item[0])):
        row = stored[int(at)]
        if int(at) in gone:
            continue
        typed = _typed(int(at) + 1, cells, row.typed)
        if typed != row.typed:
            yield row.rate_id, typed
    for at in sorted(gone):
        row = stored[at]
        yield row.rate_id, replace(row.typed, withdrawn=True, effective_date=today)
    for at, cells in enumerate(state.get("added_rows", ()), len(stored) + 1):
        if any(value not in (None, "") for value in cells.values()):
            yield None, _typed(at, cells, None)


def _typed(row: int, cells: Mapping[str, Any], before: TypedRate | None) -> TypedRate:
    values: dict[str, Any] = {n: getattr(before, n) for n in COLUMNS} if before else {}
    for name in COLUMNS:
        if name in cells:
            values[name] = _value(row, name, cells[name])
    values = {k: v for k, v in values.items() if v is not None or k not in ("currency", *TEXTS)}
    needed = ("provider", "gpu", "term", "price_per_gpu_hour", "effective_date")
    lacking = [n.replace("_", " ") for n in needed if values.get(n) in (None, "")]
    if lacking:
        raise InputError(f"row {row}: {', '.join(lacking)}: type it")
    try:
        return TypedRate(**values)
    except InputError as error:
        raise InputError(f"row {row}: {error}") from None


def _value(row: int, name: str, cell: Any) -> Any:
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return None
    if name in NUMBERS:
        try:
            return float(cell)
        except (TypeError, ValueError):
            said = f"row {row}: {name.replace('_', ' ')}: a number is needed"
            raise InputError(said) from None
    if name in TEXTS:
        return str(cell).strip().upper() if name == "currency" else str(cell).strip()
    try:
        return date.fromisoformat(str(cell)[:10])
    except ValueError:
        raise InputError(f"row {row}: {name.replace('_', ' ')}: a date is needed") from None
