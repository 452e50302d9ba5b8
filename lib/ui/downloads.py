"""What can be taken home of the results page: the table as shown, a study's tables, the store."""

import json
from collections.abc import Callable
from functools import partial
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import streamlit as st

from lib.report.format import csv_cell
from lib.results.store import EXPORTS, OF_NO_STUDY, Store
from lib.run import Study

PARQUET = "application/vnd.apache.parquet"
CSV = "text/csv"


def draw(store: Store | None, found: Study, as_shown: Callable[[], str]) -> None:
    """The popover of downloads, filled when it is opened."""
    box = st.popover(
        "Download", icon=":material/download:", type="tertiary", key="downloads", on_change="rerun"
    )
    if not box.open:
        return
    with box:
        _button("This table as CSV", as_shown, "draftworth-runs.csv", CSV)
        if store is None:
            return
        if not found.read_only:
            st.caption("This study, all of it")
            for table in EXPORTS:
                with st.container(horizontal=True, gap="small"):
                    whole = partial(store.export, table, found.name)
                    _button(f"{table}.csv", partial(_csv_of, whole), f"study-{table}.csv", CSV)
                    _button(f"{table}.parquet", whole, f"study-{table}.parquet", PARQUET)
        if store.studies():
            st.caption("Your whole store as Parquet; published studies are not in it")
            with st.container(horizontal=True, gap="small"):
                for table in (*EXPORTS, *OF_NO_STUDY):
                    _button(table, partial(store.export, table), f"{table}.parquet", PARQUET)


def _button(label: str, data: Callable[[], Any], file: str, mime: str) -> None:
    st.download_button(
        label, data, file, mime, key=f"save-{file}", on_click="ignore", width="stretch"
    )


def _csv_of(export: Callable[[], bytes]) -> bytes:
    return csv_of(pq.read_table(BytesIO(export())))


def csv_of(table: pa.Table) -> bytes:
    """CSV of a table: no cell of text starts a formula, lists are JSON."""
    columns = [_cells(column.combine_chunks()) for column in table.columns]
    sink = BytesIO()
    pyarrow.csv.write_csv(pa.table(columns, names=table.column_names), sink)
    return sink.getvalue()


def _cells(column: pa.Array) -> pa.Array:
    if pa.types.is_nested(column.type):
        texts = (None if v is None else json.dumps(v) for v in column.to_pylist())
        return pa.array(texts, pa.string())
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        # Texts repeat: each is judged once.
        coded = column.dictionary_encode()
        safe = pa.array([csv_cell(v) for v in coded.dictionary.to_pylist()], pa.string())
        return pa.DictionaryArray.from_arrays(coded.indices, safe).cast(pa.string())
    return column
