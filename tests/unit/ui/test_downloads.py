"""CSV of the store's tables: exact, and nothing in it that a spreadsheet would run."""

import csv
import io

import pyarrow as pa

from lib.ui.downloads import csv_of


def test_text_that_would_start_a_formula_gets_an_apostrophe_and_numbers_do_not() -> None:
    texts = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "plain", 'a "b", c\nd', None]
    table = pa.table(
        {
            "name": pa.array(texts),
            "value": pa.array([-1.5, 2.0, None, 1e-9, 3.0, 4.0, 5.0, 6.0, 7.0]),
            "counts": pa.array([[1, 2], [], None, [3], [4], [5], [6], [7], [8]]),
        }
    )
    rows = list(csv.reader(io.StringIO(csv_of(table).decode(), newline="")))
    assert rows[0] == ["name", "value", "counts"]
    shown = ["'=1+1", "'+1", "'-1", "'@x", "'\tx", "'\rx", "plain", 'a "b", c\nd', ""]
    assert [row[0] for row in rows[1:]] == shown
    assert [row[1] for row in rows[1:4]] == ["-1.5", "2", ""]
    assert [row[2] for row in rows[1:4]] == ["[1, 2]", "[]", ""]


def test_several_chunks_and_no_rows() -> None:
    chunked = pa.table({"name": pa.chunked_array([["=a", "b"], ["=a"]])})
    assert csv_of(chunked).decode().splitlines() == ['"name"', '"\'=a"', '"b"', '"\'=a"']
    assert csv_of(chunked.slice(0, 0)).decode().strip() == '"name"'
