"""What a watched server had counted, kept in the store and read again, thinned out."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lib.errors import InputError
from lib.results import database
from lib.results.samples import _SCHEMA, Latencies, Sample
from lib.results.store import Store

FULL = Sample(
    endpoint="a:8000",
    replica="engine 0",
    engine="vLLM",
    at_s=1_790_000_000.25,
    started_s=1_789_000_000.0,
    drafts=2**53,
    draft_tokens=40,
    accepted_tokens=20,
    accepted_per_position=(10, 6, 4, 0),
    input_tokens=5,
    output_tokens=30,
    completed=2,
    preemptions=0,
    running=3.0,
    waiting=0.0,
    kv_use=0.5,
    tau=2.5,
    stated_tps=100.0,
    ttft=Latencies(2, 0.25, (0.1, 0.2, 1e-05), (1, 2, 2)),
    tpot=Latencies(0, 0.0),
    e2e=None,
)
BARE = Sample(endpoint="a:8000", replica="", engine="llama.cpp", at_s=1.0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path / "store.duckdb")
    yield opened
    opened.close()


def counted(at_s: float, tokens: int | None, **other: object) -> Sample:
    return replace(BARE, at_s=at_s, output_tokens=tokens, **other)  # type: ignore[arg-type]


def test_samples_come_back_as_they_were(store: Store) -> None:
    store.add_samples([FULL, BARE])
    assert store.samples(0) == (BARE, FULL)
    assert store.samples(2.0) == (FULL,)


def test_names_are_data(store: Store) -> None:
    hostile = replace(BARE, replica="'; DROP TABLE samples; --", engine="![i](http://h/p.png)")
    store.add_samples([hostile])
    assert store.samples(0) == (hostile,)


def test_of_each_step_the_last_of_an_engine_is_read(store: Store) -> None:
    rows = [counted(t, t, replica=r) for t in range(100) for r in ("engine 0", "engine 1")]
    store.add_samples(rows)
    found = store.samples(10, 20)
    assert [s.at_s for s in found if s.replica == "engine 1"] == [19, 39, 59, 79, 99]
    assert len(found) == 10
    assert len(store.samples(0)) == 200
    with pytest.raises(InputError, match=r"step 0\.5 s: at least 1 s"):
        store.samples(0, 0.5)


def test_both_sides_of_a_restart_are_read(store: Store) -> None:
    tokens = [100, 110, 120, 5, 500, 600]
    store.add_samples([counted(t, n) for t, n in enumerate(tokens)])
    assert [s.output_tokens for s in store.samples(0, 3600)] == [120, 5, 600]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.sampled_from([1, 3, 60]))
def test_no_count_is_lost_between_restarts(store: Store, steps: list[int], step_s: int) -> None:
    """A 0 is a restart; the tokens between the rows that are read are all of them."""
    store.add_samples([], prune_before_s=1e9)
    held, rows = 0, []
    for at_s, n in enumerate(steps):
        held = held + n if n else 0
        rows.append(counted(at_s, held))
    store.add_samples(rows)

    def sum_of(found: list[int]) -> int:
        return sum(b - a if b >= a else b for a, b in pairwise(found))

    read = [s.output_tokens or 0 for s in store.samples(0, step_s)]
    first = next(i for i, r in enumerate(rows) if r.output_tokens == read[0])
    assert sum_of(read) == sum_of([r.output_tokens or 0 for r in rows[first:]])


def test_old_samples_are_forgotten(store: Store) -> None:
    store.add_samples([counted(t, t) for t in range(10)])
    store.add_samples([counted(10, 10)], prune_before_s=7)
    assert [s.at_s for s in store.samples(0)] == [7, 8, 9, 10]


def test_the_table_has_the_columns_that_are_written() -> None:
    fresh = duckdb.connect()
    fresh.execute(database.SCHEMA.read_text())
    named = [row[0] for row in fresh.execute("DESCRIBE samples").fetchall()]
    assert named == _SCHEMA.names
