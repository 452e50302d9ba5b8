"""The visitor's own studies first, then the published ones; neither is mistaken for the other."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lib.errors import StudyNotFound
from lib.estimate import Basis
from lib.results import catalogue, published
from lib.results.reading import Reading
from lib.results.store import Store
from lib.run import Run


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path / "store.duckdb")
    yield opened
    opened.close()


def add(store: Store, study: str) -> None:
    run = Run(run_id="1", output_tps=10.0)
    store.add(Reading("a.json", "digest", "t", "1", "", (run,), {}, (), None), study)


def test_an_empty_store_offers_the_published_studies(store: Store) -> None:
    names = catalogue.names(store)
    assert tuple(n.name for n in names) == published.studies()
    assert all(n.read_only and n.title and n.note for n in names)
    assert "simulated engine" in names[-1].title.lower()


def test_without_a_store_the_published_studies_are_still_there() -> None:
    assert tuple(n.name for n in catalogue.names(None)) == published.studies()


def test_own_studies_come_first(store: Store) -> None:
    add(store, "first")
    add(store, "second")
    names = catalogue.names(store)
    assert tuple(n.name for n in names) == ("second", "first", *published.studies())
    assert [n.read_only for n in names[:3]] == [False, False, True]


def test_a_study_is_found_wherever_it_is(store: Store) -> None:
    add(store, "mine")
    mine = catalogue.study(store, "mine")
    assert (mine.read_only, mine.basis, len(mine.runs)) == (False, Basis.MEASURED, 1)
    theirs = catalogue.study(store, published.studies()[0])
    assert (theirs.read_only, theirs.basis) == (True, Basis.PUBLISHED)
    assert store.studies() == ("mine",)
    with pytest.raises(StudyNotFound, match=f"'nobody'.*mine, {published.studies()[0]}"):
        catalogue.study(store, "nobody")


def test_only_an_own_study_has_a_changing_fingerprint(store: Store) -> None:
    add(store, "mine")
    before = catalogue.fingerprint(store, "mine")
    store.update("mine", ["1"], {"gpu": "L4"})
    assert catalogue.fingerprint(store, "mine") != before
    assert catalogue.fingerprint(store, published.studies()[0]) == "read-only"
