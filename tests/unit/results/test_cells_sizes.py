"""Cells and headers of absurd size are told apart without being searched through."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lib.results.cells import Numbers, parquet_rows
from lib.results.reading import read


@pytest.mark.parametrize("text", ["x" * 50_000 + "y", " " * 50_000 + "y", "1" * 50_000])
def test_a_cell_longer_than_a_number_is_none(text: str) -> None:
    assert Numbers().parse(text) is None
    assert Numbers(decimal_comma=True).parse(text) is None


@pytest.mark.parametrize("header", ["word " * 2000, "a:" * 20_000, "k4 " * 5000 + "tok/s"])
def test_a_header_longer_than_a_name_is_not_understood(header: str) -> None:
    found = read("t.csv", f"concurrency,arm,tok/s,{header}\n1,off,10,5\n".encode())
    assert [r.output_tps for r in found.runs] == [10]


def test_a_long_text_in_every_row_is_cut() -> None:
    sink = io.BytesIO()
    texts = pa.array(["x" * 8192] * 20_000).dictionary_encode()
    pq.write_table(pa.table({"note": texts, "n": pa.array(range(20_000))}), sink)
    rows = parquet_rows("t.parquet", sink.getvalue())
    assert (len(rows), len(rows[1][0])) == (20_001, 1000)
