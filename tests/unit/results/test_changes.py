"""Bundles, revisions, imports and flags: what comes together goes together, nothing else does."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from lib.errors import InputError, StudyNotFound
from lib.results import checks
from lib.results.findings import Beside, Flag
from lib.results.reading import Reading
from lib.results.store import Added, RequestCounts, Store, Undone
from lib.run import Run, Slo, SpecState
from tests.unit.results.store_parts import a_reading, a_run, exported, some_requests

SIDECAR = a_reading("server.prom", tool="metrics", kept=b"scraped")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path / "store.duckdb")
    yield opened
    opened.close()


def rows(store: Store, table: str) -> list[dict]:
    with store._cursor() as cursor:
        return cursor.execute(f"SELECT * FROM {table}").to_arrow_table().to_pylist()


def everything(store: Store) -> dict[str, list[dict]]:
    tables = ("sources", "runs", "past_runs", "requests", "request_sets", "run_files", "flags")
    return {t: sorted(rows(store, t), key=repr) for t in (*tables, "imports", "studies")}


def the_run(store: Store, run_id: str = "1") -> Run:
    return next(r for r in store.study("s").runs if r.run_id == run_id)


# Bundles


def test_what_lies_beside_is_kept_with_the_runs_and_reports_none(store: Store) -> None:
    reading = a_reading("r.json", a_run("1"), a_run("2"))
    assert store.add(reading, "s", "ann", beside=[SIDECAR]) == Added(2)
    files = {s.name: (s.runs, s.tool, s.imported_by, s.kept) for s in store.sources("s")}
    assert files["r.json"] == (2, "a-tool", "ann", True)
    assert files["server.prom"] == (0, "metrics", "ann", True)
    links = {(r["run_id"], r["sha256"]) for r in rows(store, "run_files")}
    assert links == {(i, s) for i in "12" for s in (reading.sha256, SIDECAR.sha256)}


def test_a_beside_file_that_names_its_runs_is_linked_to_those(store: Store) -> None:
    named = replace(SIDECAR, beside=Beside(run_ids=("2", "of another study")))
    store.add(a_reading("r.json", a_run("1"), a_run("2")), "s", beside=[named])
    links = {(r["run_id"], r["sha256"]) for r in rows(store, "run_files")}
    assert ("2", SIDECAR.sha256) in links
    assert ("1", SIDECAR.sha256) not in links


def test_a_beside_file_is_stored_once_and_goes_with_the_last_run_that_rests_on_it(
    store: Store,
) -> None:
    store.add(a_reading("a.json", a_run("1")), "s", beside=[SIDECAR, SIDECAR])
    store.add(a_reading("b.json", a_run("2")), "s", beside=[SIDECAR])
    assert sorted(s.name for s in store.sources("s")) == ["a.json", "b.json", "server.prom"]
    store.delete_runs("s", ["1"])
    assert sorted(s.name for s in store.sources("s")) == ["b.json", "server.prom"]
    store.delete_runs("s", ["2"])
    assert store.studies() == ()
    assert all(not found for found in everything(store).values())


def test_a_bundle_that_fails_leaves_nothing_of_either_file(store: Store) -> None:
    with pytest.raises(InputError, match="seed"):
        store.add(a_reading("a.json", a_run("1", seed=2**63)), "s", beside=[SIDECAR])
    assert all(not found for found in everything(store).values())


def test_a_bundle_whose_runs_are_there_already_adds_no_file(store: Store) -> None:
    store.add(a_reading("a.json", a_run("1")), "s")
    store.add(a_reading("again.json", a_run("1")), "s", beside=[SIDECAR])
    assert [s.name for s in store.sources("s")] == ["a.json"]


# Revisions


def test_a_sidecar_that_arrives_later_revises_its_run_and_the_old_one_is_kept(store: Store) -> None:
    store.add(a_reading("r.json", a_run("1", output_tps=9.0), a_run("2")), "s", import_id="first")
    before = store.fingerprint("s"), the_run(store)
    revised = replace(before[1], waiting_mean=3.5, source_sha256="not its own", study="wrong")
    assert store.revise("s", {"1": revised}, SIDECAR, by="bob", import_id="second") == 1
    assert the_run(store) == replace(before[1], waiting_mean=3.5)
    assert store.fingerprint("s") != before[0]
    assert {s.name: s.runs for s in store.sources("s")} == {"r.json": 2, "server.prom": 0}
    (past,) = rows(store, "past_runs")
    assert (past["run_id"], past["waiting_mean"], past["import_id"]) == ("1", None, "first")
    assert past["replaced_at"] is not None


def test_the_same_sidecar_again_changes_nothing(store: Store) -> None:
    store.add(a_reading("a.json", a_run("1")), "s", beside=[SIDECAR])
    store.add(a_reading("b.json", a_run("2")), "s")
    store.revise("s", {"2": a_run("2", gpu="L4")}, SIDECAR)
    before = store.fingerprint("s"), everything(store)
    again = {"1": a_run("1", gpu="H100"), "2": a_run("2", gpu="H100")}
    assert store.revise("s", again, replace(SIDECAR, name="renamed")) == 0
    assert (store.fingerprint("s"), everything(store)) == before


def test_a_sidecar_revises_only_the_runs_that_do_not_rest_on_it(store: Store) -> None:
    store.add(a_reading("a.json", a_run("1")), "s", beside=[SIDECAR])
    store.add(a_reading("b.json", a_run("2")), "s")
    both = {"1": a_run("1", gpu="H100"), "2": a_run("2", gpu="H100")}
    assert store.revise("s", both, SIDECAR) == 1
    assert (the_run(store, "1").gpu, the_run(store, "2").gpu) == (None, "H100")


def test_an_unknown_run_revises_none(store: Store) -> None:
    store.add(a_reading("a.json", a_run("1")), "s")
    before = everything(store)
    for revised, requests in (
        ({"1": a_run("1", gpu="L4"), "nobody": a_run("nobody")}, {}),
        ({"1": a_run("1", gpu="L4")}, {"nobody": some_requests(1)}),
    ):
        with pytest.raises(InputError, match="'nobody': not in the study 's'"):
            store.revise("s", revised, SIDECAR, requests)
    with pytest.raises(InputError, match="seed"):
        store.revise("s", {"1": a_run("1", seed=2**63)}, SIDECAR)
    with pytest.raises(StudyNotFound):
        store.revise("another", {"1": a_run("1")}, SIDECAR)
    assert everything(store) == before


def test_what_a_person_stated_survives_a_revision(store: Store) -> None:
    store.add(a_reading("a.json", a_run("1", spec_state=SpecState.UNKNOWN, gpu="typo")), "s")
    stated = {"spec_state": "on", "draft_method": "mtp", "gpu": None, "target": "typed"}
    store.update("s", ["1"], stated)
    file = a_run("1", draft_method="eagle", gpu="L4", target="t", engine="vllm", drafts=7)
    store.revise("s", {"1": file}, SIDECAR)
    run = the_run(store)
    assert (run.arm, run.gpu, run.target, run.engine, run.drafts) == (
        "mtp",
        None,
        "typed",
        "vllm",
        7,
    )
    assert run.repeat == 1


def test_requests_come_with_a_revision_and_stay_where_it_has_none(store: Store) -> None:
    limit = Slo(ttft_ms=1.5)
    store.add(a_reading("a.json", a_run("1"), a_run("2")), "s")
    requests = {"1": some_requests(5)}
    store.revise("s", {i: a_run(i) for i in "12"}, SIDECAR, requests, import_id="x")
    assert store.request_counts("s", ["1", "2"], limit) == {"1": RequestCounts(5, 2)}
    other = a_reading("other.prom")
    store.revise("s", {"1": a_run("1", gpu="L4")}, other, import_id="y")
    assert store.request_counts("s", ["1"], limit) == {"1": RequestCounts(5, 2)}
    third = a_reading("third.prom")
    store.revise("s", {"1": a_run("1")}, third, {"1": some_requests(9)}, import_id="z")
    assert store.request_counts("s", ["1"], limit) == {"1": RequestCounts(9, 2)}
    assert exported(store, "requests").num_rows == 9
    assert store.undo("s", "z") == Undone(0, 1)
    assert store.request_counts("s", ["1"], limit) == {"1": RequestCounts(5, 2)}
    assert store.undo("s", "x") == Undone(0, 1)  # run 2; of run 1 the other revision stays
    assert store.request_counts("s", ["1"], limit) == {}
    assert the_run(store).gpu == "L4"
    assert rows(store, "requests") == rows(store, "request_sets") == []


# Imports and undo


def test_imports_are_listed_newest_first_with_what_is_left_of_them(store: Store) -> None:
    store.add(a_reading("a.json", a_run("1"), a_run("2")), "s", "ann", import_id="one")
    store.add(a_reading("b.json", a_run("3")), "s", "ann", beside=[SIDECAR], import_id="one")
    store.add(a_reading("c.json", a_run("4")), "s", "bob")
    store.revise("s", {"4": a_run("4", gpu="L4")}, a_reading("m.json"), by="cy", import_id="three")
    found = store.imports("s")
    assert [(i.by, i.files, i.runs) for i in found] == [("cy", 1, 1), ("bob", 1, 1), ("ann", 3, 3)]
    assert found[-1].id == "one"
    assert len({i.id for i in found}) == 3
    store.delete_runs("s", ["4"])
    assert [i.id for i in store.imports("s")] == ["one"]
    with pytest.raises(StudyNotFound):
        store.imports("another")


def test_an_import_is_undone_once_and_only_where_it_is(store: Store) -> None:
    store.add(a_reading("a.json", a_run("1")), "s", import_id="one")
    store.add(a_reading("b.json", a_run("2")), "s", import_id="two")
    store.add(a_reading("b.json", a_run("2")), "t", import_id="one")
    for unknown in ("three", ""):
        with pytest.raises(InputError, match="not in the study 's'"):
            store.undo("s", unknown)
    assert store.undo("s", "one") == Undone(1, 0)
    with pytest.raises(InputError, match="undone before"):
        store.undo("s", "one")
    assert [r.run_id for r in store.study("s").runs] == ["2"]
    assert store.study("t").runs
    assert store.undo("s", "two") == Undone(1, 0)
    assert store.studies() == ("t",)
    with pytest.raises(StudyNotFound):
        store.undo("s", "two")


def test_what_was_undone_can_be_imported_again(store: Store) -> None:
    reading = a_reading("a.json", a_run("1"), requests={"1": some_requests(3)})
    for _ in range(3):
        assert store.add(reading, "s", import_id="one") == Added(1)
        assert store.undo("s", "one") == Undone(1, 0)
    assert all(not found for found in everything(store).values())


def test_a_json_that_replaced_a_csv_gives_it_back(store: Store) -> None:
    csv = a_reading("r.csv", a_run("1", spec_state=SpecState.UNKNOWN, output_tps=99.0))
    store.add(csv, "s", import_id="csv")
    json = a_run("1", spec_state=SpecState.UNKNOWN, output_tps=99.25, target="from the file")
    with_requests = a_reading("r.json", json, requests={"1": some_requests(2)})
    assert store.add(with_requests, "s", import_id="json").replaces == ("r.csv",)
    assert [s.name for s in store.sources("s")] == ["r.json"]
    assert store.add(csv, "s") == Added(0, ("1",), "r.json")
    store.update("s", ["1"], {"gpu": "L4"})
    assert store.undo("s", "json") == Undone(0, 1)
    run = the_run(store)
    assert (run.output_tps, run.target, run.gpu) == (99.0, None, "L4")
    assert [s.name for s in store.sources("s")] == ["r.csv"]
    assert rows(store, "requests") == rows(store, "past_runs") == []
    assert store.add(with_requests, "s", import_id="json").replaces == ("r.csv",)


def test_a_json_outlives_the_csv_that_it_replaced(store: Store) -> None:
    csv = a_run("1", spec_state=SpecState.UNKNOWN, gpu="from the CSV", label="from it too")
    store.add(a_reading("r.csv", csv), "s", import_id="csv")
    store.update("s", ["1"], {"label": "typed"})
    store.add(a_reading("r.json", a_run("1", spec_state=SpecState.UNKNOWN)), "s", import_id="json")
    assert (the_run(store).gpu, the_run(store).label) == ("from the CSV", "typed")
    assert store.undo("s", "csv") == Undone(0, 0)
    assert (the_run(store).gpu, the_run(store).label) == (None, "typed")
    assert rows(store, "past_runs") == []
    assert {r["sha256"] for r in rows(store, "sources")} == {"digest of r.json"}


def test_undoing_a_result_takes_along_what_revised_it(store: Store) -> None:
    store.add(a_reading("a.json", a_run("1")), "s", import_id="one")
    store.add(a_reading("b.json", a_run("2")), "s", import_id="two")
    store.revise("s", {i: a_run(i, gpu="L4") for i in "12"}, SIDECAR, import_id="three")
    assert store.undo("s", "one") == Undone(1, 0)
    assert [(i.id, i.files, i.runs) for i in store.imports("s")] == [("three", 1, 1), ("two", 1, 1)]
    assert store.undo("s", "two") == Undone(1, 0)
    assert all(not found for found in everything(store).values())


def test_a_revision_below_another_is_taken_out(store: Store) -> None:
    store.add(a_reading("a.json", a_run("1", engine="vllm")), "s", import_id="one")
    first = replace(the_run(store), gpu="L4", engine="sglang")
    store.revise("s", {"1": first}, SIDECAR, import_id="two")
    second = replace(the_run(store), waiting_mean=2.0)
    store.revise("s", {"1": second}, a_reading("m.json"), import_id="three")
    store.update("s", ["1"], {"label": "typed"})
    assert store.undo("s", "two") == Undone(0, 0)
    run = the_run(store)
    assert (run.engine, run.gpu, run.waiting_mean, run.label) == ("vllm", None, 2.0, "typed")
    assert store.undo("s", "three") == Undone(0, 1)
    assert (the_run(store).waiting_mean, the_run(store).label) == (None, "typed")


# Flags


def test_flags_that_only_the_file_knows_are_kept(store: Store) -> None:
    failed = a_run("1", failed=50, completed=50)
    (known,) = checks.inspect(failed)
    own = Flag("acceptance_mismatch", "warns", "states another length", "1")
    whole = Flag("nonfinite_values", "warns", "1 value is NaN")
    left_out = (
        known,
        Flag("arm_unknown", "warns", "which arm?", "1"),
        Flag("arm_contradicted", "blocks pairing", "called off", "1"),
        own,
        Flag("other", "warns", "of a run that is not in the file", "9"),
    )
    reading = a_reading("a.json", failed, a_run("2"), flags=(own, whole, *left_out))
    store.add(reading, "s", beside=[replace(SIDECAR, flags=(Flag("old", "warns", "old build"),))])
    assert set(store.flags("s")) == {own, whole, Flag("old", "warns", "old build")}
    assert len(store.flags("s")) == 3
    found = exported(store, "flags").to_pylist()
    assert {(f["study"], f["run_id"], f["code"]) for f in found} >= {
        ("s", "1", "acceptance_mismatch"),
        ("s", None, "nonfinite_values"),
    }
    store.delete_runs("s", ["1"])
    assert {f.code for f in store.flags("s")} == {"nonfinite_values", "old"}
    store.delete_runs("s", ["2"])
    assert rows(store, "flags") == []
    with pytest.raises(StudyNotFound):
        store.flags("s")


def test_flags_of_a_duplicate_or_replaced_run_are_not_shown(store: Store) -> None:
    odd = Flag("odd", "warns", "odd", "1")
    csv = a_reading("r.csv", a_run("1"), flags=(odd, Flag("csv", "warns", "rounded")))
    store.add(csv, "s", import_id="csv")
    json = a_reading("r.json", a_run("1"), flags=(Flag("fine", "warns", "fine", "1"),))
    store.add(json, "s", import_id="json")
    assert {f.code for f in store.flags("s")} == {"fine"}
    store.add(a_reading("b.json", a_run("1"), a_run("2"), flags=(odd,)), "s")
    assert {f.code for f in store.flags("s")} == {"fine"}
    store.undo("s", "json")
    assert {f.code for f in store.flags("s")} == {"odd", "csv"}


# Export


def test_export_of_one_study(store: Store) -> None:
    flags = (Flag("odd", "warns", "odd"),)
    for study, count in (("one", 3), ("two", 5)):
        reading = a_reading("a.json", a_run("1"), requests={"1": some_requests(count)}, flags=flags)
        store.add(reading, study)
    for table, count in {"runs": 1, "requests": 5, "sources": 1, "flags": 1}.items():
        found = exported(store, table, "two")
        assert found.column("study").to_pylist() == ["two"] * count
    assert exported(store, "requests").num_rows == 8
    with pytest.raises(StudyNotFound):
        store.export("runs", "three")


def test_counts_of_runs_whose_requests_lie_apart(store: Store) -> None:
    for at in range(40):  # every tenth is of the study asked for
        study = "s" if at % 10 == 0 else "other"
        requests: dict[str, pa.Table] = {str(at): some_requests(at + 1)}
        reading: Reading = a_reading(f"{at}.json", a_run(str(at)), requests=requests)
        store.add(reading, study)
    wanted = ["0", "10", "20", "30", "5"]
    assert store.request_counts("s", wanted, Slo(ttft_ms=4.5)) == {
        str(at): RequestCounts(at + 1, min(at + 1, 5)) for at in (0, 10, 20, 30)
    }
    assert store.request_counts("s", ["20"], Slo(ttft_ms=4.5)) == {"20": RequestCounts(21, 5)}
