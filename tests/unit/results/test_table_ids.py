"""A table that is saved anew makes no new measurements: a run's id comes from what it says."""

import io
import json
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lib.results.reading import Reading, read

LONG = (
    "concurrency,arm,tok/s,ttft_ms,gpu,note\n"
    "1,off,100.5,12.25,L4,a\n1,mtp:2,150.75,13,L4,b\n8,off,600,20.5,L4,\n"
)
WIDE = "concurrency,off_tok_s,mtp2_tok_s,mtp3_tok_s,gpu\n1,10.5,20,25,L4\n8,80,91.25,90,L4\n"
RATIOS = "batch,eagle_speedup,eagle3_speedup,gpu\n2,1.4,1.81,H100\n64,0.99,1.38,H100\n"
PER_GPU = "concurrency,nospec_tok_s_gpu,eagle3_tok_s_gpu\n4,80,160.5\n8,90,170\n"
TABLES = [LONG, WIDE, RATIOS, PER_GPU]


def ids(data: str | bytes, mapping: dict[str, str] | None = None) -> set[str]:
    found = read("t", data if isinstance(data, bytes) else data.encode(), mapping)
    assert len({r.run_id for r in found.runs}) == len(found.runs) > 0
    return {r.run_id for r in found.runs}


def cells(text: str) -> list[list[str]]:
    return [line.split(",") for line in text.splitlines()]


def joined(rows: list[list[str]], mark: str = ",") -> str:
    return "".join(mark.join(row) + "\n" for row in rows)


def parquet(text: str) -> bytes:
    header, *rows = cells(text)
    columns = {h: list(column) for h, column in zip(header, zip(*rows, strict=True), strict=True)}
    numeric = {h: [number(c) for c in column] for h, column in columns.items()}
    sink = io.BytesIO()
    pq.write_table(pa.table(numeric), sink)
    return sink.getvalue()


def number(cell: str) -> float | str | None:
    try:
        return float(cell)
    except ValueError:
        return cell or None


@pytest.mark.parametrize("text", TABLES)
def test_a_table_saved_anew_is_the_same_runs(text: str) -> None:
    first, rows = ids(text), cells(text)
    swapped = joined([row[::-1] for row in rows])
    turned = joined([rows[0], *rows[:0:-1]])
    semicolons = joined([[c.replace(".", ",") for c in row] for row in rows], ";")
    noted = joined([rows[0] + ["remark"], *([*row, f"x{n}"] for n, row in enumerate(rows[1:]))])
    assert ids(text.replace("\n", "\r\n")) == first
    assert ids(text + "\n\n") == first
    assert ids("\ufeff" + text) == first
    assert ids(swapped) == first
    assert ids(turned) == first
    assert ids(semicolons) == first
    assert ids(joined(rows, "\t")) == first
    assert ids(noted) == first
    assert ids(parquet(text)) == first


def test_units_and_digits_make_no_difference() -> None:
    first = ids("concurrency,arm,tok/s,ttft_ms\n1,off,100.5,12.3\n")
    assert ids("concurrency,arm,tok/s,ttft_s\n1,off,100.50,0.0123\n") == first
    assert ids("concurrency,arm,tok/s,ttft_us\n1.0,off,1.005e2,12300\n") == first


@pytest.mark.parametrize(
    ("header", "one", "two"),
    [
        *(("repeat", "1", "2"), ("label", "a", "b"), ("gpu", "L4", "H100"), ("tp", "1", "2")),
        *(("tok/s", "10", "10.001"), ("concurrency", "1", "2"), ("arm", "off", "mtp:2")),
        *(("dataset", "x", "y"), ("ttft_ms", "1", "2"), ("started_at", "2026-01-01", "2026-01-02")),
    ],
)
def test_what_differs_in_anything_understood_is_another_run(
    header: str, one: str, two: str
) -> None:
    base = {"concurrency": "1", "arm": "mtp:3", "tok/s": "10"}
    made = [base | {header: value} for value in (one, two)]
    first, second = (ids(f"{','.join(c)}\n{','.join(c.values())}\n") for c in made)
    assert first.isdisjoint(second)


def codes(reading: Reading) -> dict[str, str]:
    return {f.code: f.message for f in reading.flags}


def test_the_same_row_twice_in_a_file_is_one_run_and_said() -> None:
    rows = "1,mtp:2,150\n1,mtp:2,150.0\n1,mtp:2,151\n"
    found = read("t.csv", f"concurrency,arm,tok/s\n{rows}".encode())
    assert [r.output_tps for r in found.runs] == [150, 151]
    message = codes(found)["repeated_in_file"]
    assert message.startswith("line 3 says what line 2 says: one run; give each repeat its number")
    numbered = b"concurrency,arm,tok/s,repeat\n1,mtp:2,150,1\n1,mtp:2,150,2\n"
    again = read("t.csv", numbered)
    assert ([r.repeat for r in again.runs], again.flags) == ([1, 2], ())


def test_a_baseline_beside_every_set_up_is_no_repetition() -> None:
    text = b"batch,k,baseline_tok_s,spec_tok_s\n8,2,100,150\n8,4,100,160\n8,4,100,160\n"
    found = read("t.csv", text)
    assert [(r.arm, r.output_tps) for r in found.runs] == [
        ("off", 100), ("speculation:2", 150), ("speculation:4", 160),
    ]  # fmt: skip
    assert [f.message[:26] for f in found.flags if f.code == "repeated_in_file"] == [
        "line 4 says what line 3 sa"
    ]


MAPPING = {"setup.clients": "concurrency", "setup.kind": "arm", "seen.rate": "output_tps"}


def harness(rate: float, **more: object) -> dict[str, object]:
    return {"setup": {"clients": 8, "kind": "mtp2"}, "seen": {"rate": rate}, **more}


def test_files_of_a_harness_of_ones_own() -> None:
    plain = json.dumps(harness(90.5)).encode()
    pretty = json.dumps(harness(90.50), indent=2, sort_keys=True).encode() + b"\r\n"
    assert ids(plain, MAPPING) == ids(pretty, MAPPING)
    assert ids(plain, MAPPING).isdisjoint(ids(json.dumps(harness(90.6)).encode(), MAPPING))
    listed = [harness(90.5), harness(90.5), harness(95.5)]
    found = read("l.json", json.dumps(listed).encode(), MAPPING)
    assert [r.output_tps for r in found.runs] == [90.5, 95.5]
    assert "repeated_in_file" in codes(found)
    assert ids(plain, MAPPING) < {r.run_id for r in found.runs}


def test_a_table_of_a_database(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    header, *rows = cells(WIDE)
    with duckdb.connect(str(path)) as connection:
        columns = ", ".join(f"{h} {'VARCHAR' if h == 'gpu' else 'DOUBLE'}" for h in header)
        connection.execute(f"CREATE TABLE runs ({columns})")
        connection.executemany("INSERT INTO runs VALUES (?, ?, ?, ?, ?)", rows)
    assert ids(path.read_bytes()) == ids(WIDE)
