"""From an offered load to the running batch."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.evidence.batches import Batch, axis, batch_of, sentences
from lib.run import LoadKind
from tests.unit.evidence.builders import on

CONCURRENCY, RATE = LoadKind.CONCURRENCY, LoadKind.REQUEST_RATE


def test_a_static_batch_is_itself() -> None:
    assert batch_of(LoadKind.BATCH, 8, [on(8, running_mean=3.0)]) == Batch(8)


@pytest.mark.parametrize(("running", "expected"), [(None, 64), (62.1, 64), (48.0, 64)])
def test_a_held_concurrency_is_itself(running: float | None, expected: float) -> None:
    assert batch_of(CONCURRENCY, 64, [on(64, running_mean=running)]) == Batch(expected)


def test_a_concurrency_that_the_server_could_not_hold_is_its_running_mean() -> None:
    runs = [on(128, running_mean=40.0), on(128, running_mean=41.0)]
    assert batch_of(CONCURRENCY, 128, runs) == Batch(40.5, "recorded running mean")


def test_a_concurrency_above_max_num_seqs_is_cut_there() -> None:
    assert batch_of(CONCURRENCY, 128, [on(128, max_num_seqs=64)]) == Batch(64, "max_num_seqs")


def test_a_request_rate_goes_by_the_running_mean_or_littles_law() -> None:
    assert batch_of(RATE, 4, [on(4, running_mean=9.04)]) == Batch(9.0, "recorded running mean")
    runs = [on(4, request_rps=4.0, e2e_ms_mean=2500.0)]
    assert batch_of(RATE, 4, runs) == Batch(10.0, "Little's law")
    assert batch_of(RATE, 4, [on(4, request_rps=4.0)]) is None


def test_loads_that_ran_no_more_at_once_are_left_out_and_named() -> None:
    runs = {n: [on(n, max_num_seqs=64)] for n in (16.0, 64.0, 128.0, 256.0)}
    found = axis(CONCURRENCY, runs)
    assert [b.value for b in found.values()] == [16, 64]
    assert found[64.0].how == ""
    (said,) = sentences("eagle3:4", found, runs)
    assert "load 128, 256 is left out" in said


def test_what_is_derived_is_said() -> None:
    runs = {4.0: [on(4, request_rps=4.0, e2e_ms_mean=2500.0)]}
    (said,) = sentences("off", axis(RATE, runs), runs)
    assert "derived from Little's law: 4 → 10" in said
    assert sentences("off", axis(CONCURRENCY, {8.0: [on(8)]}), [8.0]) == []


@given(
    st.dictionaries(
        st.floats(0.5, 500), st.tuples(st.floats(0.1, 50), st.floats(1, 1e5)), max_size=6
    )
)
def test_batches_rise_and_are_a_request_at_least(table: dict) -> None:
    runs = {n: [on(n, request_rps=x, e2e_ms_mean=w)] for n, (x, w) in table.items()}
    values = [b.value for b in axis(RATE, runs).values()]
    assert all(v >= 1 for v in values)
    assert all(a < b for a, b in pairwise(values))
