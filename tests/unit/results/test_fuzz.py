"""Files gone wrong in every way: an error of ours or a reading, never anything else.

`DRAFTWORTH_FUZZ` is how many files each format is tried with (make fuzz: 5,000).
"""

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lib.errors import DraftworthError
from lib.results import archives, arms, bundles
from lib.results.reading import Reading, read
from lib.results.store import Store
from tests.unit.results.mutations import mutated, zipped

ROOT = Path(__file__).resolve().parents[3]
PLACES = (
    ROOT / "tests" / "fixtures",
    ROOT.parent / "shared" / "corpus",
    ROOT.parent / "shared" / "sweeps",
)
LARGEST = 400_000
STORED = 0.15  # the share of files that are put into a store as well, which takes far longer
COUNT = int(os.environ.get("DRAFTWORTH_FUZZ", "12"))


@cache
def examples() -> dict[str, tuple[bytes, ...]]:
    """Whole files by format: the tool that reads them, or their ending where none does."""
    found: dict[str, list[bytes]] = {}
    for place in PLACES:
        for path in sorted(place.rglob("*")) if place.is_dir() else ():
            if not path.is_file() or path.stat().st_size > LARGEST or path.suffix == ".md":
                continue
            data = path.read_bytes()
            try:
                reading = read(path.name, data)
            except DraftworthError:
                found.setdefault(f"unknown{path.suffix}", []).append(data)
            else:
                found.setdefault(f"{reading.tool}{path.suffix}", []).append(data)
    return {name: tuple(files[:: max(1, len(files) // 12)]) for name, files in found.items()}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    opened = Store.open(tmp_path_factory.mktemp("fuzz") / "s.duckdb")
    yield opened
    opened.close()


@settings(max_examples=COUNT, suppress_health_check=list(HealthCheck), database=None)
@pytest.mark.parametrize("name", sorted(examples()))
@given(seed=st.integers(0, 2**32))
def test_no_file_breaks_a_reader(name: str, store: Store, seed: int) -> None:
    random = Random(seed)
    first, second = (mutated(random.choice(examples()[name]), random) for _ in range(2))
    readings = [r for n, data in (("a/x", first), ("a/y", second)) if (r := tried(n, data))]
    whole_ones = [arms.suggest(bundle.reading) for bundle in bundles.join(readings).bundles]
    if random.random() > STORED:
        return
    before = counts(store)
    kept = 0
    for whole in whole_ones:
        try:
            if whole.runs:
                kept += store.add(whole, "fuzz").new
        except DraftworthError:
            assert counts(store) == before
    if kept:
        assert counts(store)[0] == before[0] + kept
        store.delete_study("fuzz")


@settings(max_examples=COUNT, suppress_health_check=list(HealthCheck), database=None)
@given(seed=st.integers(0, 2**32))
def test_no_archive_breaks_its_reader(seed: int) -> None:
    random = Random(seed)
    data = zipped(random.choice(random.choice(list(examples().values()))), random)
    try:
        for entry in archives.entries("x.zip", data):
            assert ".." not in entry.name.split("/")
            try:
                tried(entry.name, entry.read())
            except DraftworthError:
                continue
    except DraftworthError:
        return


def tried(name: str, data: bytes) -> Reading | None:
    try:
        return read(name, data)
    except DraftworthError as caught:
        error = caught
    assert "\n" not in str(error), "one line"
    return None


def counts(store: Store) -> tuple[int, int]:
    if "fuzz" not in store.studies():
        return 0, 0
    return len(store.study("fuzz").runs), len(store.sources("fuzz"))
