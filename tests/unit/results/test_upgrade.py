"""A store of an older version opens with all it held, and can do what it could not."""

from datetime import datetime
from pathlib import Path

import duckdb
import pytest

from lib.errors import StoreError
from lib.results import database, upgrade
from lib.results.store import RequestCounts, Store, Undone
from lib.run import LoadKind, Slo, SpecState
from tests.unit.results.store_parts import a_reading, a_run, exported, some_requests

# What version 1 knew of runs: the columns that it had not are missing here too.
LATER = ("token_count", "retokenized_tokens", "waiting_mean", "accept_length", "accept_rate")
OWN = ("version", "import_id", "revises", "stated", "carried", "request_key")
SOURCES = """
CREATE TABLE sources (study VARCHAR, sha256 VARCHAR, name VARCHAR, tool VARCHAR,
    tool_version VARCHAR, redacted BLOB, imported_at TIMESTAMP, imported_by VARCHAR, runs BIGINT)
"""
REQUESTS = """
CREATE TABLE requests (study VARCHAR, run_id VARCHAR, arrival_s DOUBLE, input_tokens BIGINT,
    output_tokens BIGINT, ttft_ms DOUBLE, tpot_ms DOUBLE, e2e_ms DOUBLE, ok BOOLEAN)
"""


def make_version_1(path: Path, left_out: tuple[str, ...] = LATER) -> None:
    scratch = duckdb.connect()
    scratch.execute(database.SCHEMA.read_text())
    described = scratch.execute("DESCRIBE runs").fetchall()
    runs = ", ".join(f"{c[0]} {c[1]}" for c in described if c[0] not in (*left_out, *OWN))
    with duckdb.connect(str(path)) as store:
        store.execute("CREATE TABLE meta (schema_version INT, store_id VARCHAR, changes BIGINT)")
        store.execute("INSERT INTO meta VALUES (1, 'the id', 17)")
        store.execute("CREATE TABLE studies (study VARCHAR, created_at TIMESTAMP, changed BIGINT)")
        store.execute(SOURCES)
        store.execute(REQUESTS)
        store.execute(f"CREATE TABLE runs ({runs})")
        for study in ("s", "t"):
            store.execute("INSERT INTO studies VALUES (?, '2026-05-01', 16)", [study])
            for name, count in (("a.json", 2), ("r.csv", 1)):
                row = [study, f"digest of {name}", name, "a-tool", "1", b"kept", "ann", count]
                store.execute("INSERT INTO sources VALUES (?,?,?,?,?,?,'2026-05-01',?,?)", row)
            for run_id, name in (("1", "a.json"), ("2", "a.json"), ("3", "r.csv")):
                store.execute(
                    "INSERT INTO runs BY NAME SELECT ? AS study, ? AS run_id, ? AS source_sha256, "
                    "'off' AS spec_state, 'concurrency' AS load_kind, 4.0 AS offered_load, "
                    "false AS zone_known, ?::BIGINT AS repeat, [1, 2] AS histogram, 'L4' AS gpu",
                    [study, run_id, f"digest of {name}", int(run_id)],
                )
            for run_id, count in (("2", 3), ("1", 5)):
                store.execute(
                    "INSERT INTO requests BY NAME SELECT ? AS study, ? AS run_id, "
                    "i::DOUBLE AS ttft_ms, true AS ok FROM range(?) AS r(i)",
                    [study, run_id, count],
                )


@pytest.mark.parametrize("left_out", [LATER, ()], ids=["released", "with later columns"])
def test_a_store_of_version_1_keeps_all_it_held(tmp_path: Path, left_out: tuple[str, ...]) -> None:
    path = tmp_path / "store.duckdb"
    make_version_1(path, left_out)
    for _ in range(2):  # the second time it is of this version already
        store = Store.open(path)
        assert store.studies() == ("s", "t")
        assert store.fingerprint("s") == "the id:16"
        first, _, third = store.study("s").runs
        assert (first.run_id, first.histogram, first.gpu) == ("1", (1, 2), "L4")
        assert (first.spec_state, first.load_kind) == (SpecState.OFF, LoadKind.CONCURRENCY)
        assert (third.repeat, third.waiting_mean) == (3, None)
        counts = store.request_counts("s", ["1", "2", "3"], Slo(ttft_ms=1.5))
        assert counts == {"1": RequestCounts(5, 2), "2": RequestCounts(3, 2)}
        assert store.request_counts("s", ["1"], Slo(e2e_ms=9)) == {}
        assert [(s.name, s.runs, s.kept) for s in store.sources("s")] == [
            ("a.json", 2, True),
            ("r.csv", 1, True),
        ]
        assert all(s.imported_at == datetime(2026, 5, 1) for s in store.sources("s"))
        assert exported(store, "requests").num_rows == 16
        assert store.flags("s") == ()
        imports = {(i.by, i.files, i.runs) for i in store.imports("s")}
        assert imports == {("ann", 1, 2), ("ann", 1, 1)}
        store.close()


def test_an_upgraded_store_is_written_revised_and_undone(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    make_version_1(path)
    store = Store.open(path)
    reading = a_reading("b.json", a_run("4"), requests={"4": some_requests(2)})
    assert store.add(reading, "s").new == 1
    assert store.study("s").runs[-1].repeat == 4
    assert store.add(a_reading("r.json", a_run("3", gpu=None)), "s").replaces == ("r.csv",)
    assert store.revise("s", {"1": a_run("1", waiting_mean=2.0)}, a_reading("m.prom")) == 1
    runs = {r.run_id: r for r in store.study("s").runs}
    assert (runs["3"].gpu, runs["1"].gpu, runs["1"].waiting_mean) == ("L4", "L4", 2.0)
    counts = store.request_counts("s", ["1", "4"], Slo())
    assert counts == {"1": RequestCounts(5, 5), "4": RequestCounts(2, 2)}
    (of_a,) = (i.id for i in store.imports("s") if i.runs == 2)
    assert store.undo("s", of_a) == Undone(2, 0)
    assert sorted(r.run_id for r in store.study("s").runs) == ["3", "4"]
    assert exported(store, "requests", "s").num_rows == 2
    assert exported(store, "requests", "t").num_rows == 8
    store.close()


def test_an_upgrade_that_fails_leaves_the_store_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.duckdb"
    make_version_1(path)
    monkeypatch.setattr(upgrade, "TOTALS", "no_such_column")
    with pytest.raises(StoreError, match="version 1 that cannot be brought to version 3") as caught:
        Store.open(path)
    assert "\n" not in str(caught.value)
    monkeypatch.undo()
    store = Store.open(path)
    assert len(store.study("s").runs) == 3
    store.close()


COUNTS = ("drafts", "draft_tokens", "accepted_tokens", "rejected_rounds")
TABLES_2 = ("sources", "runs", "requests", "request_sets", "run_files", "flags", "imports")


def make_version_2(path: Path) -> None:
    """What version 2 wrote: no counts of drafts by request, and four tables less."""
    store = Store.open(path)
    reading = a_reading("a.json", a_run("1"), a_run("2"), requests={"1": some_requests(3)})
    store.add(reading, "s", "ann", import_id="first")
    store.add(a_reading("b.json", a_run("3"), requests={"3": some_requests(2)}), "s")
    store.close()
    with duckdb.connect(str(path)) as connection:
        for column in COUNTS:
            connection.execute(f"ALTER TABLE requests DROP COLUMN {column}")
        for table in ("probes", "rates", "scenarios", "samples"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("UPDATE meta SET schema_version = 2")


def rows_of(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return {t: connection.execute(f"SELECT * FROM {t}").fetchall() for t in TABLES_2}


def test_a_store_of_version_2_keeps_all_it_held(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    make_version_2(path)
    before = rows_of(path)
    for _ in range(2):  # the second time it is of this version already
        Store.open(path).close()
        unknown = (None,) * len(COUNTS)
        requests = [(*row, *unknown) for row in before["requests"]]
        assert rows_of(path) == before | {"requests": requests}
    with duckdb.connect(str(path), read_only=True) as connection:
        described = {
            table: connection.execute(f"DESCRIBE {table}").fetchall()
            for table in ("requests", "probes", "rates", "scenarios", "samples")
        }
    fresh = duckdb.connect()
    fresh.execute(database.SCHEMA.read_text())
    for table, columns in described.items():
        assert columns == fresh.execute(f"DESCRIBE {table}").fetchall()


def test_a_store_of_version_2_takes_counts_by_request(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    make_version_2(path)
    store = Store.open(path)
    assert store.request_acceptance("s", ["1", "2", "3"]) == {}
    counted = some_requests(2, drafts=[10, 20], accepted_tokens=[5, 40])
    store.add(a_reading("c.json", a_run("4"), requests={"4": counted}), "s")
    found = store.request_acceptance("s", ["1", "4"])
    assert {run_id: r.accepted.tolist() for run_id, r in found.items()} == {"4": [5, 40]}
    assert store.undo("s", "first") == Undone(2, 0)
    assert exported(store, "requests", "s").num_rows == 4
    store.close()


def test_a_store_of_version_2_that_cannot_be_upgraded_is_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.duckdb"
    make_version_2(path)
    before = rows_of(path)
    monkeypatch.setattr(upgrade, "_REQUEST_COUNTS_3", ("drafts", "ok"))
    with pytest.raises(StoreError, match="version 2 that cannot be brought to version 3") as caught:
        Store.open(path)
    assert "\n" not in str(caught.value)
    assert rows_of(path) == before
