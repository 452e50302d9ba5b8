"""The store: all or nothing, values as they went in, duplicates within a study, one plain line."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lib.errors import InputError, ReadOnlyStudy, StoreError, StoreLocked, StudyNotFound
from lib.results import database, published
from lib.results.columns import ARROW_TYPES, KINDS, REQUEST_COLUMNS
from lib.results.reading import Reading
from lib.results.store import Added, RequestCounts, Store
from lib.results.tables import VERSION_COLUMNS
from lib.run import EDITABLE, LoadKind, Run, Slo, SpecState
from tests.unit.results.store_parts import a_reading, a_run, exported, some_requests

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path / "store.duckdb")
    yield opened
    opened.close()


# The schema and the values


def test_columns_of_runs_are_the_fields_of_run() -> None:
    connection = duckdb.connect()
    connection.execute(database.SCHEMA.read_text())
    described = connection.execute("SELECT * FROM runs").to_arrow_table().schema
    assert described.names == list(VERSION_COLUMNS)
    own = described.names[: len(KINDS)]
    assert own == [f.name for f in fields(Run)]
    assert [described.field(n).type for n in own] == [ARROW_TYPES[KINDS[n]] for n in own]
    past = connection.execute("SELECT * FROM past_runs").to_arrow_table().schema
    assert past.names == [*described.names, "replaced_at"]


def test_columns_of_requests_are_those_of_a_reading() -> None:
    connection = duckdb.connect()
    connection.execute(database.SCHEMA.read_text())
    described = connection.execute("SELECT * FROM requests").to_arrow_table().schema
    assert described.names == ["request_key", *REQUEST_COLUMNS]
    assert [t.type for t in described][1:] == list(REQUEST_COLUMNS.values())


def test_schema_has_no_constraint_that_ducklake_refuses() -> None:
    statements = "\n".join(
        line for line in database.SCHEMA.read_text().upper().splitlines() if line[:2] != "--"
    )
    for word in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK", "INDEX", "SEQUENCE", "DEFAULT"):
        assert word not in statements


WHOLE = st.integers(0, 2**63 - 1)
VALUES: dict[type, st.SearchStrategy] = {
    str: st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    int: WHOLE,
    float: st.floats(0, allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    tuple: st.lists(WHOLE, max_size=4).map(tuple),
    SpecState: st.sampled_from(SpecState),
    LoadKind: st.sampled_from(LoadKind),
}
OPTIONAL = {
    name: st.none() | VALUES[kind]
    for name, kind in KINDS.items()
    if name not in ("run_id", "study", "source_sha256", "started_at", "zone_known", "spec_state")
} | {
    "offered_load": st.none() | st.floats(0, exclude_min=True, allow_nan=False),
    "repeat": st.integers(1, 9),
    "spec_state": VALUES[SpecState],
}
MOMENTS = st.datetimes(datetime(2, 1, 1), datetime(9999, 1, 1))
ZONES = st.integers(-12, 12).map(lambda hours: timezone(timedelta(hours=hours)))


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.fixed_dictionaries({}, optional=OPTIONAL), min_size=1, max_size=4),
    st.none() | MOMENTS | MOMENTS.flatmap(lambda at: ZONES.map(lambda z: at.replace(tzinfo=z))),
)
def test_every_run_comes_back_as_it_went_in(
    tmp_path_factory: pytest.TempPathFactory, stated: list[dict], started_at: datetime | None
) -> None:
    zone_known = started_at is not None and started_at.tzinfo is not None
    whole = [{"repeat": 1, "started_at": started_at, "zone_known": zone_known, **s} for s in stated]
    runs = [Run(run_id=str(i), **s) for i, s in enumerate(whole)]
    store = Store.open(tmp_path_factory.mktemp("hypothesis") / "store.duckdb")
    store.add(a_reading("a.json", *runs), "a study")
    found = sorted(store.study("a study").runs, key=lambda r: int(r.run_id))
    store.close()
    placed = {"study": "a study", "source_sha256": "digest of a.json"}
    assert found == [replace(r, **placed) for r in runs]
    assert [tuple(type(getattr(r, n)) for n in KINDS if n != "started_at") for r in found] == [
        tuple(type(getattr(r, n)) for n in KINDS if n != "started_at")
        for r in (replace(r, **placed) for r in runs)
    ]


def test_an_infinite_load_and_both_kinds_of_time_survive_reopening(tmp_path: Path) -> None:
    path = tmp_path / "not" / "yet" / "there" / "store.duckdb"
    store = Store.open(path)
    here = datetime(2026, 5, 1, 14, 30, tzinfo=timezone(timedelta(hours=2)))
    runs = (
        a_run("1", offered_load=float("inf"), started_at=here, zone_known=True),
        a_run("2", started_at=datetime(2026, 5, 1, 14, 30), histogram=(3, 0, 1)),
    )
    store.add(a_reading("a.json", *runs), "s")
    store.close()
    store = Store.open(path)
    found = {r.run_id: r for r in store.study("s").runs}
    store.close()
    assert found["1"].offered_load == float("inf")
    assert found["1"].started_at == datetime(2026, 5, 1, 12, 30, tzinfo=UTC)
    assert found["2"].started_at == datetime(2026, 5, 1, 14, 30)
    assert found["2"].histogram == (3, 0, 1)


# Adding


def test_add_counts_what_is_new_and_names_what_is_not(store: Store) -> None:
    assert store.add(a_reading("a.json", a_run("1"), a_run("2")), "s") == Added(2)
    assert store.add(a_reading("b.json", a_run("2"), a_run("3")), "s") == Added(1, ("2",))
    assert store.add(a_reading("c.json", a_run("3")), "s") == Added(0, ("3",), "b.json")
    assert {r.run_id for r in store.study("s").runs} == {"1", "2", "3"}
    assert [(s.name, s.runs) for s in store.sources("s")] == [("a.json", 2), ("b.json", 2)]


def test_the_same_file_again_changes_nothing(store: Store) -> None:
    reading = a_reading("a.json", a_run("1"))
    store.add(reading, "s", by="ann")
    before = store.fingerprint("s"), store.export("runs"), store.export("sources")
    again = replace(reading, name="renamed.json", runs=(a_run("read another way"),))
    assert store.add(again, "s") == Added(0, ("read another way",), "a.json")
    assert (store.fingerprint("s"), store.export("runs"), store.export("sources")) == before


def test_duplicates_are_judged_within_a_study(store: Store) -> None:
    reading = a_reading("a.json", a_run("1"))
    assert store.add(reading, "one") == store.add(reading, "two") == Added(1)
    assert set(store.studies()) == {"one", "two"}


def test_a_run_id_given_twice_in_a_file_is_one_run(store: Store) -> None:
    reading = a_reading("a.json", a_run("1", output_tps=10.0), a_run("1", output_tps=20.0))
    assert store.add(reading, "s").new == 1
    assert [r.output_tps for r in store.study("s").runs] == [10.0]


def test_a_file_without_runs_leaves_no_trace(store: Store) -> None:
    assert store.add(a_reading("schema.json"), "s") == Added(0)
    assert store.studies() == ()


def test_json_takes_the_place_of_its_csv_and_keeps_what_was_stated(store: Store) -> None:
    csv = a_run("1", spec_state=SpecState.UNKNOWN, output_tps=99.0)
    store.add(a_reading("r.csv", csv), "s")
    stated = {"spec_state": "on", "draft_method": "mtp", "num_speculative_tokens": 2, "gpu": "L4"}
    store.update("s", ["1"], {**stated, "target": "typed"})
    json = a_run("1", spec_state=SpecState.UNKNOWN, output_tps=99.25, target="from the file")
    reading = a_reading("r.json", json, requests={"1": some_requests(5)})
    assert store.add(reading, "s") == Added(0, (), None, ("r.csv",))
    (run,) = store.study("s").runs
    assert (run.output_tps, run.target, run.arm, run.gpu) == (99.25, "from the file", "mtp:2", "L4")
    assert run.repeat == 1
    assert [s.name for s in store.sources("s")] == ["r.json"]
    assert store.request_counts("s", ["1"], Slo()) == {"1": RequestCounts(5, 5)}


def test_an_arm_that_the_json_states_is_not_mixed_with_the_csvs(store: Store) -> None:
    on = {"spec_state": SpecState.ON, "draft_method": "mtp", "num_speculative_tokens": 2}
    store.add(a_reading("r.csv", a_run("1", **on)), "s")
    store.add(a_reading("r.json", a_run("1", spec_state=SpecState.OFF)), "s")
    (run,) = store.study("s").runs
    assert (run.arm, run.num_speculative_tokens, run.draft_method) == ("off", None, None)


def test_a_csv_with_other_runs_too_stays_when_a_json_takes_one(store: Store) -> None:
    store.add(a_reading("r.csv", a_run("1"), a_run("2")), "s")
    assert store.add(a_reading("r.json", a_run("1")), "s") == Added(0)
    assert {s.name for s in store.sources("s")} == {"r.csv", "r.json"}


def test_a_csv_after_its_json_is_the_duplicate(store: Store) -> None:
    store.add(a_reading("r.json", a_run("1", output_tps=1.5)), "s")
    csv = a_reading("r.csv", a_run("1", output_tps=1.0))
    assert store.add(csv, "s") == Added(0, ("1",), "r.json")
    assert store.study("s").runs[0].output_tps == 1.5


def test_the_same_arm_and_load_again_is_the_next_repeat(store: Store) -> None:
    store.add(a_reading("a.json", a_run("a"), a_run("other load", offered_load=8.0)), "s")
    store.add(a_reading("b.json", a_run("b")), "s")
    store.add(
        a_reading("c.json", a_run("c", repeat=7), a_run("unknown", spec_state="unknown")), "s"
    )
    store.add(a_reading("d.json", a_run("d")), "s")
    repeats = {r.run_id: r.repeat for r in store.study("s").runs}
    assert repeats == {"a": 1, "b": 2, "c": 7, "d": 8, "other load": 1, "unknown": None}


@pytest.mark.parametrize("name", ["", "   ", "x" * 81, "two\nlines", "a\x1b[31m"])
def test_a_study_name_that_is_not_allowed(store: Store, name: str) -> None:
    with pytest.raises(InputError, match="1 to 80 printable characters, not only blanks"):
        store.add(a_reading("a.json", a_run("1")), name)
    assert store.studies() == ()


def test_a_study_name_may_be_anything_readable(store: Store) -> None:
    name = "![i](http://192.0.2.9/p.png) '; DROP TABLE runs --"
    store.add(a_reading("a.json", a_run("1")), f"  {name} ")
    assert store.studies() == (name,)
    assert store.study(name).name == name
    assert store.delete_study(name) == 1


def test_a_published_study_is_never_written(store: Store) -> None:
    name = published.studies()[0]
    for attempt in (
        lambda: store.add(a_reading("a.json", a_run("1")), name),
        lambda: store.update(name, ["1"], {"gpu": "L4"}),
        lambda: store.delete_runs(name, ["1"]),
        lambda: store.delete_study(name),
    ):
        with pytest.raises(ReadOnlyStudy, match=name):
            attempt()


@pytest.mark.parametrize(
    ("reading", "names"),
    [
        (a_reading("b.json", a_run("2"), a_run("3", seed=2**63)), "seed"),
        (a_reading("b.json", a_run("2"), a_run("3", label="\ud800")), "label"),
        (a_reading("b.json", a_run("2"), a_run("3", histogram=(2**64,))), "histogram"),
    ],
)
def test_a_value_that_does_not_fit_refuses_the_whole_file(
    store: Store, reading: Reading, names: str
) -> None:
    store.add(a_reading("a.json", a_run("1")), "s")
    before = store.fingerprint("s")
    with pytest.raises(InputError, match=names):
        store.add(reading, "s")
    assert store.fingerprint("s") == before
    assert [r.run_id for r in store.study("s").runs] == ["1"]


def test_a_failure_while_requests_go_in_takes_the_runs_back(store: Store) -> None:
    bad = {"1": some_requests(2, ok=["yes", "perhaps"])}
    with pytest.raises(pa.ArrowInvalid):
        store.add(a_reading("a.json", a_run("1"), requests=bad), "s")
    assert store.studies() == ()
    assert exported(store, "runs").num_rows == exported(store, "sources").num_rows == 0


# Requests


def test_requests_are_good_when_ok_and_within_every_limit(store: Store) -> None:
    requests = some_requests(
        6,
        ttft_ms=[10.0, 20.0, 30.0, 10.0, 10.0, None],
        tpot_ms=[5.0, 5.0, 5.0, 50.0, 5.0, None],
        ok=[True, True, True, True, False, False],
    )
    store.add(a_reading("a.json", a_run("1"), requests={"1": requests}), "s")
    for slo, good in [
        (Slo(), 4),
        (Slo(ttft_ms=20), 3),
        (Slo(ttft_ms=20, tpot_ms=10), 2),
        (Slo(ttft_ms=20, tpot_ms=10, percentile="p50"), 2),
        (Slo(ttft_ms=1), 0),
    ]:
        assert store.request_counts("s", ["1"], slo) == {"1": RequestCounts(6, good)}


def test_a_run_whose_requests_do_not_decide_it_is_left_out(store: Store) -> None:
    requests = {
        "a latency missing": some_requests(2, ttft_ms=[1.0, None]),
        "no such column": some_requests(2),
        "unknown whether ok": some_requests(2, ok=[True, None]),
        "decided": some_requests(2, e2e_ms=[1.0, 9.0]),
    }
    runs = [a_run(i) for i in [*requests, "no requests"]]
    store.add(a_reading("a.json", *runs, requests=requests), "s")
    ids = [r.run_id for r in runs]
    assert store.request_counts("s", ids, Slo(ttft_ms=9, e2e_ms=5)) == {
        "decided": RequestCounts(2, 1)
    }
    assert set(store.request_counts("s", ids, Slo())) == set(ids) - {
        "unknown whether ok",
        "no requests",
    }


def test_a_reply_of_one_token_has_no_tpot_to_exceed(store: Store) -> None:
    one = some_requests(2, tpot_ms=[None, 99.0], output_tokens=[1, 5])
    two = some_requests(2, tpot_ms=[None, 99.0], output_tokens=[2, 5])
    reading = a_reading("a.json", a_run("1"), a_run("2"), requests={"1": one, "2": two})
    store.add(reading, "s")
    assert store.request_counts("s", ["1", "2"], Slo(tpot_ms=9)) == {"1": RequestCounts(2, 1)}


def test_requests_of_another_study_are_not_counted(store: Store) -> None:
    for study, count in (("one", 3), ("two", 5)):
        reading = a_reading("a.json", a_run("1"), requests={"1": some_requests(count)})
        store.add(reading, study)
    assert store.request_counts("two", ["1"], Slo()) == {"1": RequestCounts(5, 5)}
    assert store.request_counts("no such study", ["1"], Slo()) == {}


# Editing and deleting


def test_update_states_fields_of_the_named_runs(store: Store) -> None:
    unknown = {"spec_state": SpecState.UNKNOWN, "offered_load": None, "gpu": "typo"}
    store.add(a_reading("a.json", a_run("1", **unknown), a_run("2", **unknown)), "s")
    before = store.fingerprint("s")
    stated = {"spec_state": "on", "draft_method": "mtp", "num_speculative_tokens": 0}
    more = {"offered_load": 2, "usd_per_hour": 3, "prefix_caching": True, "gpu": " "}
    assert store.update("s", ["1"], {**stated, **more}) == 1
    first, second = sorted(store.study("s").runs, key=lambda r: r.run_id)
    assert (first.arm, first.spec_state, first.repeat) == ("mtp:0", SpecState.ON, 1)
    assert (first.usd_per_hour, first.prefix_caching, first.gpu) == (3.0, True, None)
    assert (second.arm, second.gpu) == (None, "typo")
    assert store.fingerprint("s") != before
    assert store.update("s", ["1"], {"spec_state": None}) == 1
    assert {r.spec_state for r in store.study("s").runs} == {SpecState.UNKNOWN}


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"gpu": "L4", "output_tps": 9.0}, "output_tps: cannot be edited"),
        ({"gpu": "L4", "gpu = 'x', label": "y"}, "cannot be edited"),
        ({"gpu": "L4", "gpu_count": "two"}, "gpu_count = 'two': a whole number"),
        ({"gpu": "L4", "gpu_count": 1.5}, "gpu_count = 1.5"),
        ({"gpu": "L4", "gpu_count": True}, "gpu_count = True"),
        ({"gpu": "L4", "gpu_count": 2**63}, "gpu_count"),
        ({"gpu": "L4", "gpu_count": -1}, "gpu_count = -1"),
        ({"gpu": "L4", "usd_per_hour": float("nan")}, "usd_per_hour = nan"),
        ({"gpu": "L4", "offered_load": 0.0}, "offered_load = 0"),
        ({"gpu": "L4", "prefix_caching": "yes"}, "prefix_caching = 'yes': true or false"),
        ({"gpu": "L4", "spec_state": "maybe"}, "spec_state = 'maybe': one of off, on, unknown"),
        ({"gpu": "L4", "load_kind": 3}, "load_kind = 3: one of concurrency"),
        ({"gpu": 4}, "gpu = 4: text"),
    ],
)
def test_an_update_that_is_not_allowed_names_the_field_and_changes_nothing(
    store: Store, stated: dict, message: str
) -> None:
    store.add(a_reading("a.json", a_run("1"), a_run("2")), "s")
    before = store.fingerprint("s"), store.study("s")
    with pytest.raises(InputError, match=message):
        store.update("s", ["1", "2"], stated)
    assert (store.fingerprint("s"), store.study("s")) == before


def test_an_update_of_an_unknown_run_changes_none(store: Store) -> None:
    store.add(a_reading("a.json", a_run("1")), "s")
    with pytest.raises(InputError, match="'nobody': not in the study 's'"):
        store.update("s", ["1", "nobody"], {"gpu": "L4"})
    assert store.study("s").runs[0].gpu is None


def test_every_editable_field_can_be_cleared_and_written(store: Store) -> None:
    values = {str: "text", int: 1, float: 1.5, bool: True, SpecState: "on", LoadKind: "batch"}
    store.add(a_reading("a.json", a_run("1")), "s")
    stated = {name: values[KINDS[name]] for name in EDITABLE}
    store.update("s", ["1"], stated)
    (run,) = store.study("s").runs
    assert {name: getattr(run, name) for name in EDITABLE} == stated
    store.update("s", ["1"], dict.fromkeys(EDITABLE))
    (run,) = store.study("s").runs
    assert {getattr(run, name) for name in EDITABLE} == {None, SpecState.UNKNOWN}


def test_deleted_runs_take_requests_and_files_along_and_can_come_back(store: Store) -> None:
    requests = {"1": some_requests(3), "2": some_requests(4), "3": some_requests(5)}
    first = a_reading("a.json", a_run("1"), a_run("2"), requests=requests)
    second = a_reading("b.json", a_run("3"), requests=requests)
    store.add(first, "s")
    store.add(second, "s")
    assert store.delete_runs("s", ["1", "3", "nobody"]) == 2
    assert [s.name for s in store.sources("s")] == ["a.json"]
    assert exported(store, "requests").column("run_id").to_pylist() == ["2"] * 4
    assert store.add(second, "s") == Added(1)
    assert store.add(first, "s") == Added(0, ("1", "2"), "a.json")
    assert store.delete_runs("s", ["2", "3"]) == 2
    assert store.studies() == ()
    assert store.add(first, "s") == Added(2)


def test_delete_study_leaves_the_others(store: Store) -> None:
    for study in ("one", "two"):
        reading = a_reading("a.json", a_run("1"), requests={"1": some_requests(2)})
        store.add(reading, study)
    assert store.delete_study("one") == 1
    assert store.studies() == ("two",)
    for table in ("runs", "requests", "sources"):
        assert set(exported(store, table).column("study").to_pylist()) == {"two"}


def test_an_unknown_study_is_named_with_those_there_are(store: Store) -> None:
    store.add(a_reading("a.json", a_run("1")), "mine")
    for attempt in (
        lambda: store.study("yours"),
        lambda: store.sources("yours"),
        lambda: store.fingerprint("yours"),
        lambda: store.update("yours", ["1"], {"gpu": "L4"}),
        lambda: store.delete_runs("yours", ["1"]),
        lambda: store.delete_study("yours"),
    ):
        with pytest.raises(StudyNotFound, match=r"'yours'.*mine"):
            attempt()


def test_a_fingerprint_is_never_used_twice(store: Store, tmp_path: Path) -> None:
    other = Store.open(tmp_path / "other.duckdb")
    reading = a_reading("a.json", a_run("1"))
    seen = []
    for each in (store, other):
        each.add(reading, "s")
        seen.append(each.fingerprint("s"))
        each.update("s", ["1"], {"gpu": "L4"})
        seen.append(each.fingerprint("s"))
        each.delete_study("s")
        each.add(reading, "s")
        seen.append(each.fingerprint("s"))
        each.add(reading, "another")
        assert each.fingerprint("s") == seen[-1]
    other.close()
    assert len(set(seen)) == 6


def test_studies_come_newest_first(store: Store) -> None:
    for study in ("b", "a", "c"):
        store.add(a_reading("a.json", a_run("1")), study)
    store.update("b", ["1"], {"gpu": "L4"})
    assert store.studies() == ("c", "a", "b")


def test_runs_are_ordered_by_load_arm_and_repeat(store: Store) -> None:
    on = {"spec_state": SpecState.ON, "draft_method": "mtp"}
    runs = [
        a_run("6", offered_load=float("inf")),
        a_run("5", offered_load=16.0),
        a_run("4", num_speculative_tokens=10, **on),
        a_run("3", num_speculative_tokens=2, **on),
        a_run("2", repeat=2),
        a_run("1", repeat=1),
    ]
    store.add(a_reading("a.json", *runs), "s")
    assert [r.run_id for r in store.study("s").runs] == ["1", "2", "3", "4", "5", "6"]


# Export


def test_export_holds_the_values_and_never_a_kept_document(store: Store) -> None:
    run = a_run("1", label="=1+1", accepted_per_position=(5, 3), offered_load=float("inf"))
    reading = a_reading("a.json", run, kept=b"SECRET", requests={"1": some_requests(2)})
    store.add(reading, "s", by="ann")
    (row,) = exported(store, "runs").to_pylist()
    assert list(row) == list(KINDS)
    assert (row["label"], row["accepted_per_position"]) == ("=1+1", [5, 3])
    assert row["offered_load"] == float("inf")
    assert exported(store, "requests").column("ttft_ms").to_pylist() == [0.0, 1.0]
    (source,) = exported(store, "sources").to_pylist()
    assert (source["name"], source["imported_by"], source["runs"]) == ("a.json", "ann", 1)
    assert "redacted" not in source
    assert all(b"SECRET" not in store.export(t) for t in ("runs", "requests", "sources"))
    with pytest.raises(InputError, match="'meta': one of runs, requests, sources, flags"):
        store.export("meta")


def test_an_empty_store_exports_empty_tables(store: Store) -> None:
    assert exported(store, "runs").schema.names == list(KINDS)
    assert exported(store, "requests").num_rows == 0


# Opening


def in_a_process(code: str, *arguments: object) -> subprocess.Popen:
    """A Python process of this project that runs `code`; its output is read line by line."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_a_store_that_another_process_holds_gives_one_line_with_its_pid(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    holder = in_a_process(
        """
        import sys
        from pathlib import Path
        from lib.results.store import Store
        store = Store.open(Path(sys.argv[1]))
        print("open", flush=True)
        sys.stdin.read()
        """,
        path,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(StoreLocked) as caught:
            Store.open(path)
    finally:
        holder.kill()
        holder.communicate()
    message = str(caught.value)
    assert str(path) in message
    assert f"process {holder.pid}" in message
    assert "DRAFTWORTH_STORE" in message
    assert "\n" not in message
    Store.open(path).close()


def foreign_database(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE meta (answer INTEGER)")


def newer_store(path: Path) -> None:
    Store.open(path).close()
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE meta SET schema_version = 4")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: path.write_text("<html>not a store</html>"), "not a store"),
        (lambda path: path.write_bytes(b""), "not a store"),
        (lambda path: path.mkdir(), "not a store"),
        (foreign_database, "not a store of this program"),
        (newer_store, "a store of version 4, and this program reads version 3"),
    ],
    ids=["text", "empty", "folder", "foreign", "newer"],
)
def test_what_is_not_a_store_is_refused_in_one_line_and_left_alone(
    tmp_path: Path, make: object, says: str
) -> None:
    path = tmp_path / "store.duckdb"
    make(path)  # type: ignore[operator]
    before = None if path.is_dir() else path.read_bytes()
    with pytest.raises(StoreError, match=says) as caught:
        Store.open(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert (None if path.is_dir() else path.read_bytes()) == before


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="cannot be created"):
        Store.open(tmp_path / "file" / "store.duckdb")


def test_the_settings_name_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTWORTH_STORE", str(tmp_path / "named.duckdb"))
    Store.open().close()
    assert (tmp_path / "named.duckdb").exists()


def test_a_closed_store_says_so_in_one_line(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store.duckdb")
    store.close()
    with pytest.raises(StoreError) as caught:
        store.studies()
    assert "\n" not in str(caught.value)


def test_the_connection_reaches_no_file_variable_or_extension(store: Store, tmp_path: Path) -> None:
    (tmp_path / "private.csv").write_text("a\n1\n")
    local = pa.table({"a": [1]})
    with store._cursor() as cursor:
        for query in (
            f"SELECT * FROM '{tmp_path}/private.csv'",
            f"COPY runs TO '{tmp_path}/out.csv'",
            "SELECT * FROM local",
            "INSTALL httpfs",
            "SET enable_external_access = true",
        ):
            with pytest.raises(duckdb.Error):
                cursor.execute(query)
        off = "autoload_known_extensions", "autoinstall_known_extensions"
        for setting in off:
            (value,) = cursor.execute(f"SELECT current_setting('{setting}')").fetchone()
            assert value is False
    assert local.num_rows == 1
    assert not (tmp_path / "out.csv").exists()


# Threads and sudden ends


def test_threads_read_and_write_through_one_store(store: Store) -> None:
    def work(number: int) -> int:
        study = f"study {number % 3}"
        requests = {str(number): some_requests(50)}
        store.add(a_reading(f"{number}.json", a_run(str(number)), requests=requests), study)
        store.update(study, [str(number)], {"label": f"label {number}"})
        run = next(r for r in store.study(study).runs if r.run_id == str(number))
        assert run.label == f"label {number}"
        assert study in store.studies()
        counts = store.request_counts(study, [str(number)], Slo(ttft_ms=9.5))
        return counts[str(number)].good

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(24))) == [10] * 24
    found = [r for name in store.studies() for r in store.study(name).runs]
    assert sorted(int(r.run_id) for r in found) == list(range(24))
    for name in store.studies():
        assert sorted(r.repeat or 0 for r in store.study(name).runs) == list(range(1, 9))


IMPORTER = """
    import sys
    from pathlib import Path
    import pyarrow as pa
    from lib.results import requests as statements
    from lib.results.reading import Reading
    from lib.results.store import Store
    from lib.run import Run

    whole, stall = int(sys.argv[2]), len(sys.argv) > 3
    store = Store.open(Path(sys.argv[1]))
    for number in range(whole):
        if stall and number == whole - 1:
            def insert_and_stall(*arguments, insert=statements.insert):
                insert(*arguments)
                print("inside", flush=True)
                sys.stdin.read()
            statements.insert = insert_and_stall
        runs = tuple(Run(run_id=f"{number}-{i}") for i in range(3))
        requests = {r.run_id: pa.table({"ok": [True] * 500}) for r in runs}
        name = f"{number}.json"
        store.add(Reading(name, str(number), "t", "1", "", runs, requests, (), None), "s")
        print(number, flush=True)
"""


def check_each_file_whole_or_absent(path: Path) -> int:
    store = Store.open(path)
    files = {s.sha256: s.runs for s in store.sources("s")}
    runs = store.study("s").runs
    counts = store.request_counts("s", [r.run_id for r in runs], Slo())
    requests = exported(store, "requests").num_rows
    store.close()
    assert len(runs) == 3 * len(files)
    for sha256, reported in files.items():
        own = [r.run_id for r in runs if r.source_sha256 == sha256]
        assert len(own) == reported == 3
        assert {counts[i] for i in own} == {RequestCounts(500, 500)}
    assert requests == 1500 * len(files)
    return len(files)


def test_a_process_killed_inside_a_transaction_leaves_nothing_of_that_file(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    process = in_a_process(IMPORTER, path, 4, "stall")
    assert process.stdout is not None
    while process.stdout.readline() != "inside\n":
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert check_each_file_whole_or_absent(path) == 3


def test_a_process_killed_at_any_moment_leaves_each_file_whole_or_absent(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    process = in_a_process(IMPORTER, path, 10_000)
    assert process.stdout is not None
    while process.stdout.readline() != "5\n":
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert check_each_file_whole_or_absent(path) >= 6


def test_what_requests_drafted_comes_back_by_run(store: Store) -> None:
    counts = {
        "ok": [True, True, False, True],
        "drafts": [10, 20, 30, None],
        "draft_tokens": [30, 60, 90, None],
        "accepted_tokens": [12, 40, 50, None],
        "rejected_rounds": [8, 14, 20, None],
    }
    partly = {"drafts": [5, 6], "accepted_tokens": [4, 3], "rejected_rounds": [None, 2]}
    tables = {
        "counted": some_requests(4, **counts),
        "partly": some_requests(2, **partly),
        "none": some_requests(2),
        "without rounds": some_requests(2, draft_tokens=[9, 9], accepted_tokens=[4, 3]),
    }
    store.add(a_reading("a.json", *map(a_run, tables), requests=tables), "s")
    found = store.request_acceptance("s", list(tables))
    assert sorted(found) == ["counted", "partly"]
    assert found["counted"].accepted.tolist() == [12, 40]
    assert found["counted"].drafts.tolist() == [10, 20]
    assert found["counted"].draft_tokens.tolist() == [30, 60]  # type: ignore[union-attr]
    assert found["counted"].rejected.tolist() == [8, 14]  # type: ignore[union-attr]
    assert found["counted"].uncounted == 1
    assert (found["partly"].draft_tokens, found["partly"].rejected) == (None, None)
    assert sorted(store.request_acceptance("s", ["partly"])) == ["partly"]
    assert store.request_acceptance("another", ["counted"]) == {}
    assert exported(store, "requests")["rejected_rounds"].to_pylist().count(None) == 6
