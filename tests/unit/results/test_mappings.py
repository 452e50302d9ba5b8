"""Mappings that a person saved: by signature, newest first, whatever the texts hold."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lib.errors import InputError
from lib.results.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path / "store.duckdb")
    yield opened
    opened.close()


def test_mappings_come_newest_first_and_survive_reopening(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    store = Store.open(path)
    assert store.mappings() == ()
    store.save_mapping("a", ["stats.tps", 'it\'s; "x"'], {"stats.tps": "output_tps@mtp:2"}, "ours")
    store.save_mapping("b", [], {}, "  theirs ")
    store.close()
    store = Store.open(path)
    second, first = store.mappings()
    store.close()
    assert (second.signature, second.name, second.leaves, second.mapping) == ("b", "theirs", (), {})
    assert first.leaves == ("stats.tps", 'it\'s; "x"')
    assert first.mapping == {"stats.tps": "output_tps@mtp:2"}
    assert first.saved_at <= second.saved_at


def test_the_same_signature_is_replaced_and_comes_first(store: Store) -> None:
    store.save_mapping("a", ["x"], {"x": "output_tps"}, "one")
    store.save_mapping("b", ["y"], {"y": "ignore"}, "two")
    store.save_mapping("a", ["x"], {"x": "ignore"}, "three")
    assert [(m.signature, m.name) for m in store.mappings()] == [("a", "three"), ("b", "two")]
    assert store.mappings()[0].mapping == {"x": "ignore"}


def test_a_mapping_is_deleted_once(store: Store) -> None:
    store.save_mapping("a", ["x"], {"x": "ignore"}, "one")
    store.delete_mapping("a")
    assert store.mappings() == ()
    with pytest.raises(InputError, match="there is none"):
        store.delete_mapping("a")


@pytest.mark.parametrize(
    ("signature", "leaves", "name"),
    [
        ("a", ["x"], " "),
        ("a", ["x"], "n" * 81),
        ("a", ["x"], "two\nlines"),
        ("", ["x"], "name"),
        ("a", ["\ud800"], "name"),
        ("\ud800", ["x"], "name"),
    ],
)
def test_what_cannot_be_saved_is_refused_and_changes_nothing(
    store: Store, signature: str, leaves: list[str], name: str
) -> None:
    store.save_mapping("a", ["x"], {"x": "ignore"}, "one")
    with pytest.raises(InputError, match="mapping"):
        store.save_mapping(signature, leaves, {}, name)
    assert [m.name for m in store.mappings()] == ["one"]
