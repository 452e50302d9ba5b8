import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from lib.errors import FileTooLarge, UnreadableFile
from lib.results import foreign_database


def database(folder: Path, statements: Iterable[str]) -> bytes:
    path = folder / "made.duckdb"
    path.unlink(missing_ok=True)
    connection = duckdb.connect(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()
    return path.read_bytes()


RUNS = (
    "CREATE TABLE runs (arm VARCHAR, tps DOUBLE, ok BOOLEAN, t TIMESTAMP, lens INTEGER[])",
    "INSERT INTO runs VALUES ('off', 100.5, true, '2026-01-01', [1, 2])",
    "INSERT INTO runs (arm) VALUES ('k4')",
)


def test_tables_as_text(tmp_path: Path) -> None:
    data = database(
        tmp_path, [*RUNS, 'CREATE SCHEMA s; CREATE TABLE s."odd ""name" AS SELECT 1 AS "a""b"']
    )
    assert foreign_database.is_database(data)
    assert foreign_database.tables("mine.duckdb", data) == [
        (
            "runs",
            [
                ["arm", "tps", "ok", "t", "lens"],
                ["off", "100.5", "true", "2026-01-01 00:00:00", "[1, 2]"],
                ["k4", "", "", "", ""],
            ],
        ),
        ('s.odd "name', [['a"b'], ["1"]]),
    ]


def test_views_are_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\nsecret\n")
    view = f"CREATE VIEW v AS SELECT * FROM read_csv('{secret}')"
    found = foreign_database.tables("mine.duckdb", database(tmp_path, [*RUNS, view]))
    assert [name for name, _ in found] == ["runs"]
    with pytest.raises(UnreadableFile, match="without a table; views are not read"):
        foreign_database.tables("mine.duckdb", database(tmp_path, [view]))


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.99])
def test_a_truncated_file_is_one_line(tmp_path: Path, share: float) -> None:
    data = database(tmp_path, RUNS)
    with pytest.raises(UnreadableFile, match=r"mine\.duckdb: no DuckDB file that opens") as caught:
        foreign_database.tables("mine.duckdb", data[: int(len(data) * share)])
    assert "\n" not in str(caught.value)
    assert str(tmp_path) not in str(caught.value)
    assert "CSV or Parquet" in str(caught.value)


def test_damaged_files_are_lines(tmp_path: Path) -> None:
    data = bytearray(database(tmp_path, RUNS))
    for at in (12, 100, 4096 + 16, 3 * 4096 + 40, len(data) // 2):
        damaged = bytearray(data)
        damaged[at : at + 64] = b"\xff" * 64
        try:
            foreign_database.tables("mine.duckdb", bytes(damaged))
        except UnreadableFile as error:
            assert "\n" not in str(error)  # noqa: PT017
    with pytest.raises(UnreadableFile, match="not a DuckDB file"):
        foreign_database.tables("mine.duckdb", b"PAR1")


def test_a_hang_ends(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match=r"takes longer than 0\.001 s"):
        foreign_database.read("mine.duckdb", database(tmp_path, RUNS), seconds=0.001)


@pytest.mark.parametrize("code", ["import os; os.abort()", "raise SystemExit(0)", "1 / 0"])
def test_a_crash_is_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    whole = subprocess.run

    def crashing(command: list[str], **options: Any) -> Any:
        return whole([sys.executable, "-c", code], **options)

    monkeypatch.setattr(foreign_database.subprocess, "run", crashing)
    with pytest.raises(UnreadableFile, match="ends while reading it"):
        foreign_database.tables("mine.duckdb", database(tmp_path, RUNS))


def test_large_tables_are_left_out_and_named(tmp_path: Path) -> None:
    rows = foreign_database.MOST_ROWS
    large = f"CREATE TABLE requests AS SELECT range AS n FROM range({rows + 1})"
    edge = f"CREATE TABLE edge AS SELECT range AS n FROM range({rows})"
    columns = ", ".join(f"1 AS c{i}" for i in range(foreign_database.MOST_COLUMNS + 1))
    wide = f"CREATE TABLE wide AS SELECT {columns}"
    found = foreign_database.read("mine.duckdb", database(tmp_path, [*RUNS, large, edge, wide]))
    assert [(name, len(rows)) for name, rows in found.tables] == [("edge", rows + 1), ("runs", 3)]
    assert found.left_out == ("requests", "wide")
    with pytest.raises(FileTooLarge, match="requests"):
        foreign_database.read("mine.duckdb", database(tmp_path, [large]))


def test_many_tables(tmp_path: Path) -> None:
    made = [f"CREATE TABLE t{i:03} AS SELECT {i} AS n" for i in range(70)]
    found = foreign_database.read("mine.duckdb", database(tmp_path, made))
    assert len(found.tables) == foreign_database.MOST_TABLES
    assert found.left_out == ("tables after the first 64",)


def test_the_child_sees_no_secret_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Any] = {}
    whole = subprocess.run

    def watching(command: list[str], **options: Any) -> Any:
        seen.update(options, folder=Path(command[-1]).parent)
        return whole(command, **options)

    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setattr(foreign_database.subprocess, "run", watching)
    foreign_database.tables("mine.duckdb", database(tmp_path, RUNS))
    assert "HF_TOKEN" not in seen["env"]
    assert not seen["folder"].exists()
