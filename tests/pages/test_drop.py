"""Anything may be dropped: archives, what lies beside results, many files, broken ones between."""

import gzip
import io
import zipfile

import pytest
from streamlit.testing.v1 import AppTest

from lib.results import published
from lib.results.store import Store
from lib.ui.dropped import waiting
from lib.ui.staging import Staging
from tests.harness import archive
from tests.pages.results_page import (
    FIXTURES,
    HOSTILE,
    OFF,
    SERVER_A,
    SERVER_B,
    add,
    current,
    drop,
    errors,
    markdown_of,
    plain,
    rows,
    rule,
    store,
    table,
    type_cells,
)

MANIFEST = (FIXTURES / "kubernetes" / "eagle3.yaml").read_bytes()


def captions(page: AppTest) -> list[str]:
    return [line for c in page.caption for line in plain(c.value).split("  \n")]


def expander(page: AppTest, title: str) -> str:
    (found,) = (e for e in page.expander if title in plain(e.label))
    return plain(" ".join(c.value for c in found.caption))


def test_a_zip_of_a_folder_is_its_files_with_arms_from_the_folders(page: AppTest) -> None:
    packed = archive({"sweep/off/a.json": SERVER_A, "sweep/eagle3-k4/b.json": SERVER_B})
    drop(page, ("night.zip", packed))
    assert errors(page) == []
    shown = table(page, "staged-").value
    assert list(shown["file"]) == ["eagle3-k4/b.json"] * 2 + ["off/a.json"] * 2
    assert list(shown["arm"]) == ["eagle3:4", "eagle3:4", "off", "off"]
    assert any("arm off read from the folder name 'off'" in c for c in captions(page))
    add(page, "night")
    assert "4 runs added to night" in page.success[0].value
    names = {s.name for s in store().sources("night")}
    assert names == {"night.zip/sweep/off/a.json", "night.zip/sweep/eagle3-k4/b.json"}


def test_a_gz_is_the_file_in_it(page: AppTest) -> None:
    drop(page, ("off-c8.json.gz", gzip.compress(OFF)))
    assert errors(page) == []
    assert list(table(page, "staged-").value["file"]) == ["off-c8.json"]


def test_the_demo_archive_is_dropped_as_it_is_and_says_what_it_is(
    page: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTWORTH_UPLOAD_MB", "4")
    drop(page.run(), (published.DEMO_ARCHIVE.name, published.DEMO_ARCHIVE.read_bytes()))
    assert errors(page) == []
    assert len(table(page, "staged-").value) == 63
    assert any("simulated engine" in m.value for m in page.markdown)
    add(page, "sweep")
    assert {r.engine for r in store().study("sweep").runs} == {"simulated engine"}


def encrypted(data: bytes) -> bytes:
    """The archive with the mark of encryption on its entries."""
    marked = bytearray(data)
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = marked.find(signature)
        while at >= 0:
            marked[at + offset] |= 1
            at = marked.find(signature, at + 4)
    return bytes(marked)


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("half.zip", archive({"a.json": OFF})[:200], "not a whole zip file"),
        ("none.zip", archive({}), "without files"),
        ("sheet.zip", archive({"[Content_Types].xml": b"<x/>"}), "office document"),
        ("half.json.gz", gzip.compress(OFF)[:100], "not a whole gzip file"),
    ],
    ids=["half a zip", "an empty zip", "a workbook", "half a gzip"],
)
def test_an_unusable_archive_is_one_line_and_the_others_go_on(
    page: AppTest, name: str, data: bytes, says: str
) -> None:
    drop(page, (name, data), ("good.json", OFF))
    (line,) = map(plain, errors(page))
    assert line.startswith(name.removesuffix(".gz"))
    assert says in line
    assert len(table(page, "staged-").value) == 1


def test_an_unusable_entry_is_one_calm_line_and_the_others_go_on(page: AppTest) -> None:
    inner = archive({"deep.json": OFF})
    packed = archive(
        {"ok.json": OFF, "in.zip": inner, "bomb.json": b"{" + b" " * 2**22, "notes.txt": b"hello"}
    )
    drop(page, ("mixed.zip", packed), ("locked.zip", encrypted(archive({"x.json": SERVER_A}))))
    assert errors(page) == []
    said = expander(page, "4 files of the archive left out")
    for text in ("an archive inside an archive", "times its size", "notes.txt", "encrypted"):
        assert text in said
    assert list(table(page, "staged-").value["file"]) == ["mixed.zip/ok.json"]


def test_the_limit_and_the_ways_around_it_are_said_before_anything_fails(page: AppTest) -> None:
    """C97: a proxy's 413 is named, and what to do about a large file."""
    (zone,) = page.file_uploader
    assert "1 MB each" in zone.label
    for text in (".zip or .gz", "413", "a proxy", "python -m lib import"):
        assert text in zone.help


def test_an_archive_over_the_upload_limit_says_the_way_out(page: AppTest) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        packed.writestr("large.json", b" " * 2**21)
    drop(page, ("large.zip", out.getvalue()))
    (line,) = map(plain, errors(page))
    assert "over 1 MB" in line
    assert "command line" in line


def test_what_lies_beside_completes_the_runs_whenever_it_comes(page: AppTest) -> None:
    drop(page, ("server-a.json", SERVER_A))
    assert table(page, "staged-").value["gpu"].isna().all()
    drop(page, ("server-a.json", SERVER_A), ("deploy.yaml", MANIFEST))
    assert errors(page) == []
    shown = table(page, "staged-").value
    assert list(shown["gpu"]) == ["nvidia-h100-80gb"] * 2
    assert list(shown["arm"]) == ["eagle3:4"] * 2
    assert any("deploy.yaml" in c and "completed 2 runs of 1 file" in c for c in captions(page))
    assert any("completed by deploy.yaml" in c for c in captions(page))
    assert len([e for e in page.button if "What was read" in e.label]) == 1


def test_a_sidecar_taken_out_takes_back_what_it_said_and_not_what_a_person_did(
    page: AppTest,
) -> None:
    drop(page, ("server-a.json", SERVER_A))
    type_cells(page, "staged-", {0: {"gpu_count": 2}})
    drop(page, ("server-a.json", SERVER_A), ("deploy.yaml", MANIFEST))
    assert list(table(page, "staged-").value["gpu"]) == ["nvidia-h100-80gb"] * 2
    staging = current(page)
    (key,) = (k for k, f in staging.files.items() if f.name == "deploy.yaml")
    staging.keep(staging.shown - {staging.files[key].upload})
    shown = [run for _, run in staging.runs.values()]
    assert [(r.gpu, r.arm, r.gpu_count) for r in shown] == [(None, None, 2), (None, None, None)]


def test_a_person_has_the_last_word_over_what_lies_beside(page: AppTest) -> None:
    drop(page, ("server-a.json", SERVER_A))
    rule(page, "server-a*", "off")
    drop(page, ("server-a.json", SERVER_A), ("deploy.yaml", MANIFEST))
    assert list(table(page, "staged-").value["arm"]) == ["off", "off"]
    add(page, "mine")
    runs = store().study("mine").runs
    assert {(r.arm, r.draft_model, r.gpu) for r in runs} == {("off", None, "nvidia-h100-80gb")}


def test_the_same_sidecar_in_two_folders_speaks_of_both(page: AppTest) -> None:
    packed = archive(
        {
            "a/run.json": SERVER_A,
            "a/deploy.yaml": MANIFEST,
            "b/run.json": SERVER_B,
            "b/deploy.yaml": MANIFEST,
        }
    )
    drop(page, ("both.zip", packed))
    assert errors(page) == []
    assert table(page, "staged-").value["gpu"].notna().all()


def test_a_sidecar_alone_completes_a_study_that_is_there(page: AppTest) -> None:
    drop(page, ("server-a.json", SERVER_A))
    add(page, "mine")
    # Found together once more: a folder's name alone would not tell which runs are meant.
    drop(page, ("server-a.json", SERVER_A), ("deploy.yaml", MANIFEST))
    assert errors(page) == []
    page.selectbox(key=f"into-{current(page).round}").set_value("mine")
    page.button(key="add-files").click().run()
    assert errors(page) == []
    assert "2 runs completed in mine" in page.success[0].value
    assert {r.gpu for r in store().study("mine").runs} == {"nvidia-h100-80gb"}
    page.button(key="undo-last").click().run()
    assert {r.gpu for r in store().study("mine").runs} == {None}
    assert "2 runs brought back as before" in page.success[0].value


def test_files_without_runs_are_calm_lines_and_no_cards(page: AppTest) -> None:
    folder = FIXTURES / "aiperf"
    names = ("k4-c8.json", "k4-c8-server.json", "k4-c8-records.jsonl")
    drop(page, *((name, (folder / name).read_bytes()) for name in names))
    assert errors(page) == []
    assert len([e for e in page.button if "What was read" in e.label]) == 1
    lines = [c for c in captions(page) if "attach_file" in c]
    assert len(lines) == 2
    assert all("completed 1 run of 1 file" in line for line in lines)


def many(count: int) -> list[tuple[str, bytes]]:
    """Files of one run each: the same outcome at another moment."""
    return [
        (f"k{at % 2 * 4}-c8-r{at}.json", OFF.replace(b'"duration": ', b'"duration": 1%02d' % at))
        for at in range(count)
    ]


def test_forty_files_are_one_table_and_one_of_them_is_looked_into(page: AppTest) -> None:
    drop(page, *many(40))
    assert errors(page) == []
    overview = page.dataframe[0].value
    assert len(overview) == 40
    assert [b for b in page.button if b.label == "What was read"] == []
    page.selectbox(key=f"look-{current(page).round}").set_value(7).run()
    (button,) = (b for b in page.button if b.label == "What was read")
    button.click().run()
    assert not page.exception
    keys = page.dataframe[-1].value
    assert "key in the file" in keys.columns


def test_reading_and_adding_tell_how_far_they_are() -> None:
    staging, told = Staging(), list[tuple[int, int, str]]()
    arrived = [p for name, data in many(5) for p in waiting(name, name, data)]
    staging.take(arrived, (), lambda *row: told.append(row))
    assert told == [(at, 5, f"k{at % 2 * 4}-c8-r{at}.json") for at in range(5)]
    told.clear()
    opened = Store.open()
    try:
        staging.add_to(opened, "told", lambda *row: told.append(row))
    finally:
        opened.close()
    assert [(at, of) for at, of, _ in told] == [(at, 5) for at in range(5)]


def test_an_interrupted_reading_goes_on_where_it_was() -> None:
    staging, told = Staging(), list[str]()
    arrived = [p for name, data in many(4) for p in waiting(name, name, data)]

    def stop(done: int, of: int, name: str) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        staging.take(arrived, (), stop)
    assert len(staging.runs) == 2
    staging.take(arrived, (), lambda done, of, name: told.append(name))
    assert told == [p.name for p in arrived[2:]]
    assert len(staging.runs) == 4


def test_an_interrupted_adding_says_so_and_goes_on(page: AppTest) -> None:
    drop(page, *many(4))
    staging = current(page)

    def stop(done: int, of: int, name: str) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        staging.add_to(store(), "half", stop)
    page.run()
    (line,) = map(plain, errors(page))
    assert "stopped before all was added" in line
    assert "(2 files were added before it)" in line
    add(page, "half")
    assert errors(page) == []
    assert len(store().study("half").runs) == 4


def test_hostile_paths_in_an_archive_stay_text(page: AppTest) -> None:
    inner = HOSTILE.replace("/", "_")
    packed = archive(
        {f"../../{inner}/a.json": SERVER_A, f"{inner}.txt": b"nothing", "<b>/b.json": SERVER_B}
    )
    drop(page, ("x.zip", packed))
    assert errors(page) == []
    for text in markdown_of(page):
        assert "![" not in text
        assert "<img" not in text
        assert "<b>" not in text
        assert ":red[" not in text
    add(page, "mine")
    assert rows()["runs"] == 4
