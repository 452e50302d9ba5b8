"""The catalogue of results: filters, bulk edits, flags, undo, and what may be taken home."""

from dataclasses import replace
from io import BytesIO
from typing import Any

import pyarrow.parquet as pq
import pytest
from streamlit.testing.v1 import AppTest

from lib.results import published
from lib.results.reading import Flag, read
from lib.results.store import Store
from lib.run import SpecState
from tests.pages.results_page import (
    OFF,
    SERVER_A,
    SERVER_B,
    add,
    added,
    drop,
    errors,
    in_hand,
    plain,
    rows,
    store,
    table,
    type_cells,
)


def bulk(page: AppTest, field: str, value: str) -> AppTest:
    page.selectbox(key="bulk-field").set_value(field)
    page.text_input(key="bulk-value").set_value(value)
    (asked,) = (b for b in page.button if b.label == "Set it")
    return asked.click().run()


def filled(count: int) -> None:
    """A study of many runs, some of them flagged by their file alone."""
    base = read("base.json", OFF)
    (run,) = base.runs
    runs = [
        replace(
            run,
            run_id=f"r{at}",
            spec_state=SpecState.ON if at % 2 else SpecState.OFF,
            num_speculative_tokens=4 if at % 2 else None,
            offered_load=float(2 ** (at % 4)),
            label=f"run {at}",
        )
        for at in range(count)
    ]
    flags = [Flag("odd_clock", "warns", "the clock went back", f"r{at}") for at in (1, 2)]
    whole = replace(base, name="deep/many.json", runs=tuple(runs), flags=tuple(flags), requests={})
    store().add(whole, "many")


def test_runs_are_found_by_words_arm_load_and_flag(page: AppTest) -> None:
    filled(40)
    page.run()
    in_hand(page, "many")
    assert len(table(page, "runs-").value) == 40
    page.text_input(key="runs-filter").set_value("run 39").run()
    assert list(table(page, "runs-").value.index) == ["r39"]
    page.text_input(key="runs-filter").set_value("MANY.json").run()
    assert len(table(page, "runs-").value) == 40
    page.multiselect(key="runs-arms").set_value(["speculation:4"])
    page.multiselect(key="runs-loads").set_value(["2 concurrent"]).run()
    assert len(table(page, "runs-").value) == 10
    page.multiselect(key="runs-flags").set_value(["odd_clock"]).run()
    assert list(table(page, "runs-").value.index) == ["r1"]
    page.multiselect(key="runs-flags").set_value(["no flag"]).run()
    assert "r1" not in table(page, "runs-").value.index
    page.text_input(key="runs-filter").set_value("nothing like it").run()
    assert any("No run matches" in c.value for c in page.caption)
    assert not page.exception


def test_flags_of_files_stand_beside_those_of_runs(page: AppTest) -> None:
    filled(8)
    page.run()
    in_hand(page, "many")
    lines = plain(" ".join(str(c.value) for c in page.caption))
    assert "warns: the clock went back (and 1 more of this kind)" in lines
    assert "odd_clock" in str(table(page, "runs-").value.loc["r1", "flags"])


def test_one_field_of_all_shown_runs_is_set_in_one_go(
    page: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(40)
    page.run()
    in_hand(page, "many")
    page.multiselect(key="runs-arms").set_value(["off"]).run()
    calls: list[tuple[Any, ...]] = []
    real = Store.update

    def counted(self: Store, *given: Any) -> int:
        calls.append(given)
        return real(self, *given)

    monkeypatch.setattr(Store, "update", counted)
    bulk(page, "gpu", "H100")
    assert errors(page) == []
    assert len(calls) == 1
    assert plain(page.success[0].value) == "gpu is H100 in 20 runs"
    assert [r.gpu for r in store().study("many").runs].count("H100") == 20


def test_ticked_runs_come_before_shown_ones_and_an_empty_value_takes_back(page: AppTest) -> None:
    added(page)
    type_cells(page, "runs-", {0: {"pick": True}, 2: {"pick": True}})
    bulk(page, "arm", "eagle3:2")
    assert errors(page) == []
    runs = store().study("mine").runs
    assert [r.arm for r in runs].count("eagle3:2") == 2
    bulk(page, "gpu", "L4")
    bulk(page, "gpu", "")
    assert {r.gpu for r in store().study("mine").runs} == {None}


def test_a_wrong_value_for_many_is_one_line_and_changes_nothing(page: AppTest) -> None:
    added(page)
    before = store().study("mine").runs
    bulk(page, "gpu_count", "none")
    (line,) = map(plain, errors(page))
    assert line.startswith("gpu_count")
    assert store().study("mine").runs == before


def test_an_import_is_taken_back_right_after_it(page: AppTest) -> None:
    drop(page, ("off-c8.json", OFF))
    add(page, "mine")
    added(page)
    assert len(store().study("mine").runs) == 5
    page.button(key="undo-last").click().run()
    assert errors(page) == []
    said = plain(page.success[0].value)
    assert said == "Taken back from mine: 4 runs removed, nothing was replaced by it."
    assert len(store().study("mine").runs) == 1
    page.run()
    assert not page.success


def test_the_last_import_of_a_study_taken_back_leaves_another_in_hand(page: AppTest) -> None:
    added(page)
    page.button(key="undo-last").click().run()
    assert errors(page) == []
    assert rows()["runs"] == 0
    assert page.session_state["study"] == published.studies()[0]


def test_every_import_is_listed_with_an_undo_of_its_own(page: AppTest) -> None:
    drop(page, ("server-a.json", SERVER_A))
    add(page, "mine")
    drop(page, ("server-b.json", SERVER_B))
    add(page, "mine")
    page.session_state["imports"] = True
    page.run()
    later, earlier = store().imports("mine")
    texts = [plain(m.value) for m in page.markdown]
    assert sum("UTC · 1 file · 2 runs" in t for t in texts) == 2
    page.button(key=f"undo-{earlier.id}").click().run()
    assert errors(page) == []
    assert [i.id for i in store().imports("mine")] == [later.id]
    assert {s.name for s in store().sources("mine")} == {"server-b.json"}


def test_an_import_taken_back_elsewhere_is_one_line(page: AppTest) -> None:
    drop(page, ("off-c8.json", OFF))
    add(page, "mine")
    added(page)
    store().undo("mine", store().imports("mine")[0].id)
    page.button(key="undo-last").click().run()
    assert len(errors(page)) == 1


def test_a_study_is_taken_home_as_csv_and_parquet(page: AppTest) -> None:
    added(page)
    page.session_state["downloads"] = True
    page.run()
    assert not page.exception
    buttons: list[Any] = list(page.get("download_button"))
    labels = {b.label for b in buttons}
    kinds = ("runs", "requests", "sources", "flags")
    assert labels >= {f"{kind}.{end}" for kind in kinds for end in ("csv", "parquet")}
    assert labels >= set(kinds)
    table_of = pq.read_table(BytesIO(store().export("runs", "mine")))
    assert table_of.num_rows == 4


def test_a_published_study_has_no_undo_and_no_bulk_edit(page: AppTest) -> None:
    in_hand(page, published.studies()[0])
    assert {b.label for b in page.button} & {"Set it", "Undo"} == set()
