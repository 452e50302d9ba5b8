"""Files, folders and archives into a study: bundles, late arrivals, a mapping, the inbox."""

import io
import json
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lib.errors import InputError
from lib.results.importing import ImportReport, import_paths
from lib.results.inbox import Inbox
from lib.results.store import Store
from lib.run import Run, SpecState

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
AIPERF = FIXTURES / "aiperf"
VLLM = FIXTURES / "vllm" / "off-c8.json"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path / "s.duckdb")
    yield opened
    opened.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "results"
    (made / "k4").mkdir(parents=True)
    shutil.copy(AIPERF / "k4-c8.json", made / "k4" / "profile_export_aiperf.json")
    return made


def imported(store: Store, *paths: Path, **said: Any) -> ImportReport:
    return import_paths(store, paths, "mine", **said)


def only(store: Store) -> Run:
    (run,) = store.study("mine").runs
    return run


def flags(report: ImportReport) -> dict[str, str]:
    return {c: m for f in report.files for c, m in zip(f.flags, f.messages, strict=True)}


def test_a_result_and_what_lies_beside_it_are_one_bundle(store: Store, folder: Path) -> None:
    shutil.copy(AIPERF / "k4-c8-server.json", folder / "k4" / "server_metrics_export.json")
    report = imported(store, folder)
    assert report.imported == 1
    assert only(store).drafts == 893
    assert "the draft counts" in flags(report)["taken_from_beside"]
    names = [source.name for source in store.sources("mine")]
    assert sorted(names) == ["k4/profile_export_aiperf.json", "k4/server_metrics_export.json"]


def test_what_comes_later_derives_the_run_anew_and_undo_takes_it_back(
    store: Store, folder: Path
) -> None:
    imported(store, folder)
    before = only(store)
    assert before.drafts is None
    shutil.copy(AIPERF / "k4-c8-server.json", folder / "k4" / "server_metrics_export.json")
    late = imported(store, folder)
    assert late.imported == 0
    assert flags(late)["revised"].startswith("1 stored run derived anew: spec_state, ")
    after = only(store)
    assert (after.drafts, after.spec_state) == (893, SpecState.ON)
    assert after.run_id == before.run_id
    again = imported(store, folder)
    assert "revised" not in flags(again)
    assert only(store) == after
    undone = store.undo("mine", late.import_id)
    assert (undone.removed, undone.restored) == (0, 1)
    assert only(store) == before


def test_beside_nothing_says_so_and_stores_nothing(store: Store, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(AIPERF / "k4-c8-server.json", alone)
    report = imported(store, alone)
    assert "together with its results" in flags(report)["nothing_beside"]
    assert store.studies() == ()


def test_a_zip_is_a_folder(store: Store, folder: Path, tmp_path: Path) -> None:
    shutil.copy(AIPERF / "k4-c8-server.json", folder / "k4" / "server_metrics_export.json")
    packed = tmp_path / "sweep.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in folder.rglob("*.json"):
            archive.write(path, path.relative_to(folder))
        archive.writestr("notes.txt", "no result, no table")
    report = imported(store, packed, arm_rules=["k4/*=eagle3:4"])
    assert report.imported == 1
    assert (only(store).drafts, only(store).arm) == (893, "eagle3:4")
    assert [r.file for r in report.refused] == ["sweep.zip/notes.txt"]


def test_a_broken_archive_is_refused_and_the_rest_is_read(store: Store, folder: Path) -> None:
    (folder / "half.zip").write_bytes(b"PK\x03\x04 and then nothing")
    report = imported(store, folder)
    assert report.imported == 1
    assert [r.file for r in report.refused] == ["half.zip"]


def custom(load: int, rate: float) -> bytes:
    seen = {"clients": load, "per_second": rate, "details": [{"n": 1}]}
    return json.dumps({"seen": seen, "kind": "none"}).encode()


def test_a_mapping_is_made_once(store: Store, tmp_path: Path) -> None:
    for load in (1, 8):
        (tmp_path / f"c{load}.json").write_bytes(custom(load, 10.0 * load))
    chosen = ["seen.clients=concurrency", "seen.per_second=output_tps", "kind=arm"]
    assert imported(store, tmp_path / "c1.json", mapping=chosen).imported == 1
    report = imported(store, tmp_path / "c8.json")
    assert flags(report)["mapping_reused"] == "read as c1.json was mapped by hand"
    runs = store.study("mine").runs
    assert [(r.arm, r.offered_load, r.output_tps) for r in runs] == [
        ("off", 1, 10.0),
        ("off", 8, 80.0),
    ]
    with pytest.raises(InputError, match="LEAF=FIELD"):
        imported(store, tmp_path, mapping=["seen.clients=speed"])


def test_progress_is_told_file_by_file(store: Store, folder: Path) -> None:
    shutil.copy(VLLM, folder)
    told: list[tuple[int, int, str]] = []
    imported(store, folder, tell=lambda *row: told.append(row))
    assert told == [(0, 2, "off-c8.json"), (1, 2, "k4/profile_export_aiperf.json")]


def test_the_inbox_takes_what_has_come_to_rest(store: Store, tmp_path: Path) -> None:
    inbox = Inbox(store, tmp_path / "inbox")
    inbox.folder.mkdir()
    inbox.look()
    place = inbox.folder / "chat" / "off"
    place.mkdir(parents=True)
    shutil.copy(VLLM, place)
    inbox.look()
    assert store.studies() == (), "it may still be being written"
    inbox.look()
    (run,) = store.study("chat").runs
    assert run.arm == "off"
    assert inbox.arrivals[0].report.imported == 1
    inbox.look()
    assert len(inbox.arrivals) == 1
    (inbox.folder / "bad.json").write_bytes(b'{"half":')
    inbox.look()
    inbox.look()
    assert [r.file for r in inbox.arrivals[0].report.refused] == ["bad.json"]
    assert inbox.arrivals[0].study == "inbox"
    begun_again = Inbox(store, inbox.folder)
    begun_again.look()
    begun_again.look()
    assert [a.study for a in begun_again.arrivals] == ["inbox"], "what is stored is not read again"


def test_the_inbox_reads_an_archive_too(store: Store, tmp_path: Path) -> None:
    inbox = Inbox(store, tmp_path / "inbox")
    inbox.folder.mkdir()
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("chat/off-c8.json", VLLM.read_bytes())
    (inbox.folder / "sweep.zip").write_bytes(sink.getvalue())
    inbox.look()
    inbox.look()
    assert [r.arm for r in store.study("inbox").runs] == ["off"]


def test_what_lies_in_one_folder_is_not_beside_what_lies_in_another(
    store: Store, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        data = VLLM.read_bytes().replace(b'"duration": ', b'"duration": ' + b"1" * (name == "b"))
        (tmp_path / name / "run.json").write_bytes(data)
    shutil.copy(FIXTURES / "kubernetes" / "eagle3.yaml", tmp_path / "a")
    report = imported(store, tmp_path / "a", tmp_path / "b")
    assert {f.file for f in report.files} == {"a/run.json", "b/run.json", "a/eagle3.yaml"}
    states = sorted((r.spec_state, r.gpu is None) for r in store.study("mine").runs)
    assert states == [("on", False), ("unknown", True)]
    alone = imported(store, tmp_path / "a" / "eagle3.yaml")
    assert "import it together" in flags(alone)["nothing_beside"]
    assert sorted((r.spec_state, r.gpu is None) for r in store.study("mine").runs) == states


def test_a_rule_and_a_mapping_that_come_to_nothing_are_named(store: Store, folder: Path) -> None:
    report = imported(store, folder, arm_rules=["k9*=off"], mapping=["a.b=concurrency"])
    assert report.notes[0].startswith("arm rule 'k9*=off' matched no run")
    assert report.notes[1].startswith("the mapping was not used")
    (folder / "own.json").write_bytes(custom(1, 10.0))
    report = imported(store, folder, mapping=["seen.client=concurrency"])
    (refused,) = report.refused
    assert "no leaf 'seen.client' to map; it has seen.clients, " in refused.reason
