"""Undo: a study as it had been without the imports that were taken back, whatever their order."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lib.results.findings import Flag
from lib.results.store import Store
from lib.run import Run, Slo, SpecState
from tests.unit.results.store_parts import a_reading, a_run, some_requests

RUNS = ("a", "b")
ACTUAL, REFERENCE = "as it went", "as if never"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    opened = Store.open(tmp_path_factory.mktemp("undo") / "store.duckdb")
    yield opened
    opened.close()


@dataclass(frozen=True)
class Step:
    """One import of a history: a file of one run, or a sidecar of several."""

    kind: str  # csv, json, sidecar
    run_ids: tuple[str, ...]
    field: str
    beside: bool
    requests: bool


STEPS = st.builds(
    Step,
    kind=st.sampled_from(("csv", "json", "sidecar", "sidecar")),
    run_ids=st.sets(st.sampled_from(RUNS), min_size=1).map(sorted).map(tuple),
    field=st.sampled_from(("gpu", "engine", "label", "waiting_mean")),
    beside=st.booleans(),
    requests=st.booleans(),
)
UNDO = st.integers(0, 30)
SIDECARS = STEPS.map(lambda step: replace(step, kind="sidecar"))
HISTORIES = st.tuples(
    st.lists(STEPS.map(lambda step: replace(step, kind="csv")), min_size=1, max_size=2),
    st.lists(SIDECARS, min_size=1, max_size=3),
    st.lists(STEPS | UNDO | UNDO, min_size=1, max_size=6),
).map(lambda parts: [step for part in parts for step in part])


def value(field: str, at: int) -> object:
    return float(at) if field == "waiting_mean" else f"{field} of {at}"


def sources_of(store: Store, study: str) -> dict[str, str]:
    if study not in store.studies():
        return {}
    return {r.run_id: r.source_sha256 or "" for r in store.study(study).runs}


def take(store: Store, study: str, at: int, step: Step, bases: dict[str, str]) -> dict[str, str]:
    """Take a step in a study; the runs it was about, each with the file it rested on then.

    A sidecar is about those runs of `bases` (all of its own where that is empty) that rest on the
    same file as then: what revised another file's run cannot be compared.
    """
    held = sources_of(store, study)
    flags = (Flag(f"flag of {at}", "warns", "a flag"),)
    if step.kind == "sidecar":
        wanted = [i for i in step.run_ids if i in held and bases.get(i, held[i]) == held[i]]
        if study == REFERENCE:
            wanted = [i for i in wanted if i in bases]
        if not wanted:
            return {}
        current = {r.run_id: r for r in store.study(study).runs}
        revised: dict[str, Run] = {
            i: replace(current[i], **{step.field: value(step.field, at)})  # type: ignore[arg-type]
            for i in wanted
        }
        requests = {i: some_requests(at + 1) for i in wanted} if step.requests else {}
        sidecar = a_reading(f"{at}.prom", flags=flags)
        store.revise(study, revised, sidecar, requests, import_id=str(at))
        return {i: held[i] for i in wanted}
    run_id = step.run_ids[0]
    if run_id in held and (step.kind == "csv" or not held[run_id].endswith(".csv")):
        return {}  # a duplicate is not independent of what it repeats
    stated = {step.field: value(step.field, at), "spec_state": SpecState.UNKNOWN}
    requests = {run_id: some_requests(at + 1)} if step.requests else {}
    own = (*flags, Flag(f"run flag of {at}", "warns", "a flag", run_id))
    reading = a_reading(f"{at}.{step.kind}", a_run(run_id, **stated), requests=requests, flags=own)
    beside = [a_reading("shared.prom")] if step.beside else []
    store.add(reading, study, beside=beside, import_id=str(at))
    return {run_id: reading.sha256}


def content(store: Store, study: str) -> object:
    if study not in store.studies():
        return None
    runs = [replace(r, study="", repeat=None) for r in store.study(study).runs]
    ids = [r.run_id for r in runs]
    return (
        sorted(runs, key=lambda r: r.run_id),
        store.request_counts(study, ids, Slo()),
        store.request_counts(study, ids, Slo(ttft_ms=1.5)),
        sorted(store.flags(study), key=repr),
        sorted((s.name, s.sha256, s.runs, s.tool, s.kept) for s in store.sources(study)),
        {i.id for i in store.imports(study)},
    )


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(HISTORIES)
def test_any_history_with_undone_imports_equals_the_one_without_them(
    store: Store, history: list[Step | int]
) -> None:
    for study in (ACTUAL, REFERENCE):
        if study in store.studies():
            store.delete_study(study)
    taken: dict[int, tuple[Step, dict[str, str]]] = {}
    for at, step in enumerate(history):
        if isinstance(step, Step):
            if about := take(store, ACTUAL, at, step, {}):
                taken[at] = step, about
            continue
        left = [i.id for i in store.imports(ACTUAL)] if ACTUAL in store.studies() else []
        if left:
            undone = sorted(left, key=int)[step % len(left)]
            store.undo(ACTUAL, undone)
            del taken[int(undone)]
    for at, (step, about) in taken.items():
        take(store, REFERENCE, at, step, about)
    assert content(store, ACTUAL) == content(store, REFERENCE)


def test_undoing_everything_leaves_no_row(store: Store) -> None:
    steps = (
        Step("csv", ("a",), "gpu", True, True),
        Step("json", ("a",), "label", True, True),
        Step("sidecar", ("a",), "engine", False, True),
        Step("csv", ("b",), "gpu", False, False),
    )
    for study in (ACTUAL, REFERENCE):
        if study in store.studies():
            store.delete_study(study)
    for at, step in enumerate(steps):
        take(store, ACTUAL, at, step, {})
    while ACTUAL in store.studies():
        store.undo(ACTUAL, store.imports(ACTUAL)[-1].id)
    tables = ("studies", "sources", "runs", "past_runs", "requests", "request_sets", "run_files")
    with store._cursor() as cursor:
        for table in (*tables, "flags", "imports"):
            assert cursor.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
