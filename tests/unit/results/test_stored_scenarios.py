"""Scenarios in the store: every save is a version of its name, and none is ever overwritten."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lib.errors import InputError
from lib.results.store import Store

A, B = '{"study":"s"}', '{"load":8,"study":"s"}'


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path / "store.duckdb")
    yield opened
    opened.close()


def test_every_save_is_a_version_and_the_old_ones_stay(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    store = Store.open(path)
    assert store.scenarios() == ()
    first = store.save_scenario(" plan ", A, "aa", " as quoted ", "ann")
    other = store.save_scenario("other; DROP TABLE scenarios", A, "aa")
    second = store.save_scenario("plan", B, "bb", by="bob")
    third = store.save_scenario("plan", B, "bb")
    store.close()
    store = Store.open(path)
    assert store.scenarios() == (third, second, first, other)
    store.close()
    assert (first.name, first.note, first.by, first.parameters) == ("plan", "as quoted", "ann", A)
    assert [s.version for s in (first, second, third, other)] == [1, 2, 3, 1]
    assert first.at <= other.at <= second.at <= third.at


def test_a_save_leaves_the_studies_as_they_were(store: Store) -> None:
    store.save_scenario("plan", A, "aa")
    assert store.studies() == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "  "}, "scenario name: it is empty"),
        ({"name": "n" * 81}, "up to 80"),
        ({"name": "two\nlines"}, "one line"),
        ({"note": "n" * 501}, "scenario note"),
        ({"by": "\ud800"}, "scenario author"),
        ({"parameters": "[]"}, "JSON object"),
        ({"parameters": "{"}, "JSON object"),
        ({"parameters": '{"a":"\ud800"}'}, "JSON object"),
        ({"parameters": '{"a":"' + "x" * 20_000 + '"}'}, "20,000"),
    ],
)
def test_what_cannot_be_kept_is_refused(store: Store, change: dict[str, str], message: str) -> None:
    given = {"name": "plan", "parameters": A, "digest": "aa"} | change
    with pytest.raises(InputError, match=message) as caught:
        store.save_scenario(**given)
    assert "\n" not in str(caught.value)
    assert store.scenarios() == ()
