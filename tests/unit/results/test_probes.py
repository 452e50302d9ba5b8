"""Stored probes: newest first, each once, and gone when deleted."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from io import BytesIO
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lib.errors import InputError
from lib.results.store import OF_NO_STUDY, Store

TAKEN = datetime(2026, 11, 2, 12, 30, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path / "store.duckdb")
    yield opened
    opened.close()


def add(store: Store, probe_id: str, document: str = "{}", **changed: object) -> bool:
    named = {"taken_at": TAKEN, "gpu": "an H100", "target": "big", "draft": "small", "by": "me"}
    return store.add_probe(document, probe_id=probe_id, **{**named, **changed})  # type: ignore[arg-type]


def test_the_one_taken_last_comes_first_and_survives_reopening(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    store = Store.open(path)
    assert store.probes() == ()
    assert add(store, "new", '{"c": "it\'s; \\"x\\""}')
    assert add(store, "old", taken_at=TAKEN - timedelta(days=1))
    store.close()
    store = Store.open(path)
    first, second = store.probes()
    store.close()
    assert (first.probe_id, second.probe_id) == ("new", "old")
    assert first.document == '{"c": "it\'s; \\"x\\""}'
    assert (first.gpu, first.target, first.draft) == ("an H100", "big", "small")
    assert first.imported_by == "me"
    assert first.taken_at == TAKEN.replace(tzinfo=None)


def test_a_time_of_another_zone_is_kept_in_utc(store: Store) -> None:
    add(store, "a", taken_at=TAKEN.astimezone(timezone(timedelta(hours=9))))
    assert store.probes()[0].taken_at == TAKEN.replace(tzinfo=None)


def test_the_same_probe_again_is_known(store: Store) -> None:
    assert add(store, "a", by="one")
    assert not add(store, "a", by="two")
    assert [p.imported_by for p in store.probes()] == ["one"]


def test_a_probe_is_deleted_once(store: Store) -> None:
    add(store, "a")
    add(store, "b")
    store.delete_probe("a")
    assert [p.probe_id for p in store.probes()] == ["b"]
    with pytest.raises(InputError, match="there is none"):
        store.delete_probe("a")
    assert add(store, "a")


@pytest.mark.parametrize(
    ("probe_id", "changed"),
    [
        ("", {}),
        ("a", {"taken_at": TAKEN.replace(tzinfo=None)}),
        ("a", {"gpu": "\ud800"}),
    ],
)
def test_what_cannot_be_kept_is_refused(store: Store, probe_id: str, changed: dict) -> None:
    with pytest.raises(InputError, match="probe:"):
        add(store, probe_id, **changed)
    assert store.probes() == ()


def test_all_of_them_are_exported_and_no_study_has_any(store: Store) -> None:
    assert "probes" in OF_NO_STUDY
    assert pq.read_table(BytesIO(store.export("probes"))).num_rows == 0
    add(store, "old", '{"c": 1}', taken_at=TAKEN - timedelta(days=1))
    add(store, "new", '{"c": 2}')
    rows = pq.read_table(BytesIO(store.export("probes"))).to_pylist()
    assert [(r["probe_id"], r["document"], r["gpu"]) for r in rows] == [
        ("new", '{"c": 2}', "an H100"),
        ("old", '{"c": 1}', "an H100"),
    ]
    with pytest.raises(InputError, match="one of runs"):
        store.export("probes", "a study")
