"""A person's own DuckDB file is read like a table; of several tables the one that holds runs."""

from pathlib import Path

import duckdb
import pytest

from lib.errors import UnknownFormat
from lib.results.reading import read


def database(path: Path, *statements: str) -> bytes:
    connection = duckdb.connect(str(path / "mine.duckdb"))
    for statement in statements:
        connection.execute(statement)
    connection.close()
    return (path / "mine.duckdb").read_bytes()


RUNS = "CREATE TABLE sweep AS SELECT * FROM (VALUES (1, 'none', 10.0), (8, 'mtp2', 50.5)) {}"
NAMED = RUNS.format("t(concurrency, arm, output_tps)")
OWN = RUNS.format("t(par, kind, speed)")
NOTES = "CREATE TABLE notes AS SELECT 'x' AS what, 1 AS n"


def found(data: bytes, mapping: dict[str, str] | None = None) -> list[tuple[object, ...]]:
    reading = read("mine.duckdb", data, mapping)
    return [(r.arm, r.offered_load, r.output_tps) for r in reading.runs]


def test_the_one_table_with_runs_is_read(tmp_path: Path) -> None:
    data = database(tmp_path, NAMED, NOTES)
    assert found(data) == [("off", 1, 10.0), ("mtp:2", 8, 50.5)]
    (flag,) = (f for f in read("mine.duckdb", data).flags if f.code == "other_tables")
    assert flag.message == "read from the table sweep; left out: notes"


def test_tables_are_offered_to_the_mapper(tmp_path: Path) -> None:
    data = database(tmp_path, OWN, NOTES)
    with pytest.raises(UnknownFormat, match="map the columns of one table") as caught:
        read("mine.duckdb", data)
    headers = [c.header for c in caught.value.columns]
    assert headers == ["notes.what", "notes.n", "sweep.par", "sweep.kind", "sweep.speed"]
    mapping = {"sweep.par": "concurrency", "sweep.kind": "arm", "sweep.speed": "output_tps"}
    assert found(data, mapping) == [("off", 1, 10.0), ("mtp:2", 8, 50.5)]


def test_of_one_table_the_columns_keep_their_names(tmp_path: Path) -> None:
    data = database(tmp_path, OWN)
    mapping = {"par": "concurrency", "kind": "arm", "speed": "output_tps"}
    assert found(data, mapping) == [("off", 1, 10.0), ("mtp:2", 8, 50.5)]
