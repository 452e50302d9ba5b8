"""The results page: files in, one line for each that is bad, nothing lost, nothing half stored."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from lib.results import published
from lib.results.store import EXPORTS
from lib.run import SpecState
from lib.ui import dropped
from tests.pages.results_page import (
    HOSTILE,
    HOSTILE_FILE,
    OFF,
    SERVER_A,
    SERVER_B,
    add,
    added,
    choose,
    current,
    drop,
    errors,
    hostile,
    in_hand,
    markdown_of,
    plain,
    read_as_mapped,
    rows,
    rule,
    setting,
    store,
    table,
    type_cells,
)

HOLD = "import sys, time, duckdb; c = duckdb.connect(sys.argv[1]); print('held'); time.sleep(60)"


# Bad input


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("empty.json", b"", "empty"),
        ("page.html", b"<!doctype html><html><body>not found</body></html>", "web page"),
        ("half.json", OFF[: len(OFF) // 2], "truncated"),
        ("numbers.json", b"[1, 2, 3.5]", "numbers"),
        ("large.json", OFF + b" " * 2**20, "over 1 MB"),
        ("two.csv", b"load,throughput\nconcurrency,tok/s\n1,80\n2,150\n", "header"),
        ("binary.bin", bytes(range(256)), "text"),
    ],
)
def test_a_bad_file_is_one_line_and_changes_nothing(
    page: AppTest, name: str, data: bytes, says: str
) -> None:
    added(page)
    before = rows()
    drop(page, (name, data), ("good.json", OFF))
    lines = [plain(line) for line in errors(page)]
    assert len(lines) == 1
    assert lines[0].startswith(f"{name}: ")
    assert says in lines[0]
    assert "\n" not in lines[0]
    assert rows() == before
    add(page, "mine")
    assert rows()["runs"] == before["runs"] + 1


def test_missing_values_are_accepted_and_counted(page: AppTest) -> None:
    data = OFF.replace(b'"mean_ttft_ms": 31.5', b'"mean_ttft_ms": NaN')
    data = data.replace(b'"mean_itl_ms": 9.5', b'"mean_itl_ms": Infinity')
    drop(page, ("nan.json", data))
    assert errors(page) == []
    assert any("2 values are NaN or infinite" in plain(c.value) for c in page.caption)
    assert len(table(page, "staged-").value) == 1
    add(page, "mine")
    assert store().study("mine").runs[0].ttft_ms_mean is None


def test_a_file_dropped_twice_counts_once(page: AppTest) -> None:
    drop(page, ("one.json", OFF), ("other.json", OFF))
    (line,) = map(plain, errors(page))
    assert line == "other.json: the same file as one.json, dropped twice; it counts once"
    add(page, "mine")
    before = rows()
    drop(page, ("again.json", OFF))
    assert errors(page) == []
    add(page, "mine")
    assert errors(page) == []
    assert rows() == before
    notes = [plain(c.value) for c in page.caption]
    assert "again.json: the same runs as one.json, not added again" in notes


def test_a_locked_store_is_one_line_and_loses_nothing(page: AppTest, tmp_path: Path) -> None:
    st.cache_resource.clear()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "store.duckdb")], stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        drop(page, ("server-a.json", SERVER_A))
        lines = {plain(line) for line in errors(page)}
        assert len(lines) == 1
        assert f"in use by process {holder.pid}" in lines.pop()
        assert page.button(key="add-files").disabled
    finally:
        holder.terminate()
        holder.wait(20)
    page.run()
    assert errors(page) == []
    assert len(table(page, "staged-").value) == 2
    add(page, "mine")
    assert rows()["runs"] == 2


def test_a_reader_that_breaks_takes_no_other_file_with_it(
    page: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = dropped.read

    def breaks(name: str, data: bytes, mapping: Any = None) -> Any:
        if name == "odd.json":
            raise RuntimeError("a defect")
        return real(name, data, mapping)

    monkeypatch.setattr(dropped, "read", breaks)
    drop(page, ("odd.json", b"{}"), ("good.json", OFF))
    (line,) = map(plain, errors(page))
    assert line == "odd.json: could not be read; the log has the reason"
    assert len(table(page, "staged-").value) == 1


@pytest.mark.parametrize("name", ["", "   ", "x" * 81, "trtllm_l4_qwen25_1p5b_draft0p5b_load"])
def test_a_study_name_that_is_not_allowed_loses_nothing(page: AppTest, name: str) -> None:
    drop(page, ("one.json", OFF))
    add(page, name)
    assert len(errors(page)) == 1
    assert "study" in page.error[0].value
    assert rows()["runs"] == 0
    add(page, "fine")
    assert errors(page) == []
    assert rows()["runs"] == 1


# Completing and adding


def test_two_files_with_arms_named_by_rule_become_the_study_in_hand(page: AppTest) -> None:
    added(page, " mine ")
    assert errors(page) == []
    assert "4 runs added to mine" in page.success[0].value
    assert page.session_state["study"] == "mine"
    assert not page.session_state["staging"].files
    runs = store().study("mine").runs
    assert [(r.offered_load, r.arm) for r in runs] == [
        (16, "off"),
        (16, "eagle3:4"),
        (32, "off"),
        (32, "eagle3:4"),
    ]


@pytest.mark.parametrize(
    ("glob", "arm", "says"),
    [
        ("server-a*", "eagle3:many", "off, METHOD or METHOD:K"),
        ("server-a*", "", "off, METHOD or METHOD:K"),
        ("", "off", "GLOB=METHOD"),
        ("nothing-*", "off", "no file or label matches nothing-*"),
    ],
)
def test_a_wrong_rule_is_one_line_and_loses_nothing(
    page: AppTest, glob: str, arm: str, says: str
) -> None:
    drop(page, ("server-a.json", SERVER_A), ("server-b.json", SERVER_B))
    rule(page, "server-b*", "eagle3:4")
    rule(page, glob, arm)
    (line,) = map(plain, errors(page))
    assert says in line
    assert list(table(page, "staged-").value["arm"].dropna()) == ["eagle3:4", "eagle3:4"]
    assert page.text_input(key="rule-glob").value == glob


def test_a_field_is_set_for_all_runs(page: AppTest) -> None:
    drop(page, ("server-a.json", SERVER_A), ("server-b.json", SERVER_B))
    setting(page, "gpu_count", "2")
    assert list(table(page, "staged-").value["gpu_count"]) == [2, 2, 2, 2]
    setting(page, "gpu_count", "none")
    assert len(errors(page)) == 1
    assert list(table(page, "staged-").value["gpu_count"]) == [2, 2, 2, 2]
    assert errors(setting(page, "temperature", "0.7")) == []
    add(page, "mine")
    assert {(r.gpu_count, r.temperature) for r in store().study("mine").runs} == {(2, 0.7)}


def test_typed_cells_reach_the_store(page: AppTest) -> None:
    drop(page, ("server-a.json", SERVER_A))
    type_cells(page, "staged-", {0: {"arm": "off", "gpu": "H100"}, 1: {"usd_per_hour": 2.5}})
    assert errors(page) == []
    add(page, "mine")
    first, second = store().study("mine").runs
    assert (first.arm, first.gpu, second.arm, second.usd_per_hour) == ("off", "H100", None, 2.5)


def test_a_cell_that_arrives_with_the_click_is_taken(page: AppTest) -> None:
    drop(page, ("server-a.json", SERVER_A))
    edits = {"edited_rows": {1: {"arm": "off"}}, "added_rows": [], "deleted_rows": []}
    page.session_state[table(page, "staged-").key] = edits
    add(page, "mine")
    assert [r.arm for r in store().study("mine").runs] == [None, "off"]
    edits = {"edited_rows": {0: {"arm": "k:x"}}, "added_rows": [], "deleted_rows": []}
    page.session_state[table(page, "runs-").key] = edits
    page.button(key="delete-study").click().run()
    drop(page, ("server-a.json", SERVER_A))
    page.session_state[table(page, "staged-").key] = edits
    add(page, "mine")
    assert len(errors(page)) == 1
    assert rows()["runs"] == 0


def test_a_wrong_cell_is_one_line_and_nothing_is_lost(page: AppTest) -> None:
    drop(page, ("server-a.json", SERVER_A))
    type_cells(page, "staged-", {0: {"arm": "k:x", "gpu": "H100"}, 1: {"gpu": "L4"}})
    (line,) = map(plain, errors(page))
    assert line.startswith("server-a.json, 16 concurrent: arm 'k:x'")
    assert page.button(key="add-files").disabled
    setting(page, "gpu_count", "1")
    assert len(errors(page)) == 1
    shown = table(page, "staged-").value
    assert list(shown["gpu"]) == ["H100", "L4"]
    assert shown["arm"].iloc[0] == "k:x"
    type_cells(page, "staged-", {0: {"arm": "off"}})
    assert errors(page) == []
    assert not page.button(key="add-files").disabled


def test_a_rule_after_a_typed_cell_has_the_last_word(page: AppTest) -> None:
    drop(page, ("server-a.json", SERVER_A))
    type_cells(page, "staged-", {0: {"arm": "eagle3:2", "gpu": "H100"}})
    rule(page, "*", "off")
    page.run()
    shown = table(page, "staged-").value
    assert list(shown["arm"]) == ["off", "off"]
    assert shown["gpu"].iloc[0] == "H100"


def test_a_file_is_read_once_and_forgotten_when_taken_out(
    page: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, seen = dropped.read, []

    def counted(name: str, data: bytes, mapping: Any = None) -> Any:
        seen.append(name)
        return real(name, data, mapping)

    monkeypatch.setattr(dropped, "read", counted)
    drop(page, ("server-a.json", SERVER_A), ("server-b.json", SERVER_B))
    rule(page, "server-a*", "off")
    page.run()
    assert seen == ["server-a.json", "server-b.json"]
    page.file_uploader[0].clear().run()
    assert not current(page).files


def test_dropped_files_survive_another_page(page: AppTest) -> None:
    drop(page, ("server-a.json", SERVER_A))
    rule(page, "*", "off")
    page.switch_page("../../pages/screen.py").run()
    page.switch_page("../../pages/results.py").run()
    drop(page, ("server-b.json", SERVER_B))
    assert list(table(page, "staged-").value["arm"]) == [*["off"] * 2, *["speculation:4"] * 2]


def test_discard_empties_the_page(page: AppTest) -> None:
    drop(page, ("server-a.json", SERVER_A))
    page.button(key="discard-files").click().run()
    assert not current(page).files
    assert page.button(key="try-demo")
    drop(page, ("server-a.json", SERVER_A))
    assert len(table(page, "staged-").value) == 2


def test_unknown_columns_are_mapped_by_hand(page: AppTest) -> None:
    drop(page, ("odd.csv", b"parallel calls,tps_out,remark\n1,80,a\n2,150,b\n"))
    assert len(errors(page)) == 1
    choose(page, {"parallel calls": "concurrency", "tps_out": "output_tps"})
    read_as_mapped(page)
    assert errors(page) == []
    assert list(table(page, "staged-").value["tok/s"]) == [80, 150]
    add(page, "mine")
    assert [r.output_tps for r in store().study("mine").runs] == [80, 150]


def test_a_mapping_that_does_not_do_keeps_what_was_chosen(page: AppTest) -> None:
    drop(page, ("odd.csv", b"parallel calls,tps_out,remark\nx,y,a\nz,w,b\n"))
    choose(page, {"parallel calls": "concurrency", "tps_out": "output_tps", "remark": "gpu_count"})
    read_as_mapped(page)
    assert len(errors(page)) == 1
    (kept,) = current(page).mapping.values()
    assert [field for field, _ in kept.values()] == ["concurrency", "output_tps", "gpu_count"]


def test_the_simulated_sweep_is_staged_and_says_what_it_is(page: AppTest) -> None:
    page.button(key="try-demo").click().run()
    assert errors(page) == []
    shown = table(page, "staged-").value
    assert len(shown) == 63
    assert set(shown["arm"]) == {"off", "speculation:2", "speculation:4"}
    assert any("simulated engine" in str(m.value) for m in page.markdown)
    add(page, "sweep")
    assert "63 runs added" in page.success[0].value
    runs = store().study("sweep").runs
    assert {r.engine for r in runs} == {"simulated engine"}
    assert {r.repeat for r in runs} == {1, 2, 3}
    notes = [plain(c.value) for c in page.caption]
    assert any("k4-c8-r1.csv: the same runs as k4-c8-r1.json" in n for n in notes)


# The study in hand


def test_a_published_study_offers_no_edits(page: AppTest) -> None:
    in_hand(page, published.studies()[0])
    assert not page.exception
    assert any("read-only" in str(m.value) for m in page.markdown)
    keys = {b.key for b in page.button}
    assert not keys & {"save-runs", "delete-runs", "delete-study"}
    type_cells(page, "runs-", {0: {"pick": True}, 1: {"pick": True}})
    assert "delete-runs" not in {b.key for b in page.button}


def test_every_published_study_is_shown(page: AppTest) -> None:
    for name in published.studies():
        in_hand(page, name)
        assert not page.exception, name
        assert len(table(page, "runs-").value) == len(published.study(name).runs)


def test_fields_are_corrected(page: AppTest) -> None:
    added(page)
    page.toggle(key="runs-protocol").set_value(True).run()
    assert page.button(key="save-runs").disabled
    type_cells(page, "runs-", {0: {"gpu": "H100"}, 1: {"gpu": "H100", "arm": "off"}})
    page.button(key="save-runs").click().run()
    assert errors(page) == []
    runs = store().study("mine").runs
    assert [r.gpu for r in runs].count("H100") == 2
    assert [r.spec_state for r in runs].count(SpecState.OFF) == 3
    assert page.button(key="save-runs").disabled


def test_a_wrong_correction_is_one_line_and_changes_nothing(page: AppTest) -> None:
    added(page)
    page.toggle(key="runs-protocol").set_value(True).run()
    before = store().study("mine").runs
    type_cells(page, "runs-", {0: {"gpu": "H100"}, 1: {"gpu_count": 0}})
    page.button(key="save-runs").click().run()
    assert len(errors(page)) == 1
    assert "gpu_count" in plain(page.error[0].value)
    assert store().study("mine").runs == before
    type_cells(page, "runs-", {0: {"gpu": "H100"}, 1: {"gpu_count": 2}})
    page.button(key="save-runs").click().run()
    assert errors(page) == []
    assert [(r.gpu, r.gpu_count) for r in store().study("mine").runs[:2]] == [
        ("H100", None),
        (None, 2),
    ]


def test_edits_outlive_a_filter(page: AppTest) -> None:
    added(page)
    page.toggle(key="runs-protocol").set_value(True).run()
    type_cells(page, "runs-", {3: {"gpu": "H100"}})
    page.text_input(key="runs-filter").set_value("server-a").run()
    assert len(table(page, "runs-").value) == 2
    page.text_input(key="runs-filter").set_value("").run()
    assert table(page, "runs-").value["gpu"].iloc[3] == "H100"
    page.multiselect(key="runs-arms").set_value(["off"]).run()
    assert set(table(page, "runs-").value["arm"]) == {"off"}


def test_picked_runs_are_deleted_and_no_hidden_ones(page: AppTest) -> None:
    added(page)
    type_cells(page, "runs-", {0: {"pick": True}, 1: {"pick": True}, 3: {"arm": "eagle3:2"}})
    page.multiselect(key="runs-arms").set_value(["off"]).run()
    page.button(key="delete-runs").click().run()
    assert errors(page) == []
    assert not page.button(key="save-runs").disabled
    left = store().study("mine").runs
    assert sorted(r.arm or "" for r in left) == ["eagle3:4", "eagle3:4", "off"]


def test_a_deleted_study_leaves_another_in_hand(page: AppTest) -> None:
    added(page)
    page.button(key="delete-study").click().run()
    assert errors(page) == []
    assert rows() == dict.fromkeys(EXPORTS, 0)
    assert page.session_state["study"] == published.studies()[0]


def test_the_protocols_of_two_runs_are_compared(page: AppTest) -> None:
    added(page)
    ids = [r.run_id for r in store().study("mine").runs]
    store().update("mine", ids[:1], {"gpu": "H100", "temperature": 0.0})
    store().update("mine", ids[1:2], {"gpu": "L4"})
    page.run()
    type_cells(page, "runs-", {0: {"pick": True}, 1: {"pick": True}})
    shown = page.dataframe[-1].value.set_index("field")
    assert shown.loc["gpu", "what it means"].startswith("another allocation")
    assert shown.loc["temperature", "second"] == "not recorded"
    assert shown.loc["draft_method", "what it means"] == "what the arms differ in"
    assert "target" not in shown.index


# Names from files are data


def test_hostile_names_stay_text(page: AppTest) -> None:
    drop(
        page,
        (HOSTILE_FILE, hostile(SERVER_A)),
        (f"x{HOSTILE_FILE}", b"[1]"),
        (f"y{HOSTILE_FILE}", f"{HOSTILE},b\n1,2\n3,4\n".encode()),
    )
    before_adding = markdown_of(page)
    rule(page, "*", HOSTILE[:40].replace(":", ";"))
    setting(page, "label", HOSTILE)
    after_rule = markdown_of(page)
    add(page, HOSTILE[:60])
    assert not page.exception
    type_cells(page, "runs-", {0: {"pick": True}, 1: {"pick": True}})
    for text in (*before_adding, *after_rule, *markdown_of(page)):
        assert "![" not in text
        assert "](javascript" not in text
        assert "<img" not in text
        assert ":red[" not in text
    assert any(HOSTILE_FILE in plain(t) for t in before_adding)
    assert store().study(HOSTILE[:60].strip()).runs[0].target == HOSTILE
    assert table(page, "runs-").value["file"].iloc[0] == HOSTILE_FILE
