"""An unknown file is mapped once, by clicking, and known from then on."""

from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from lib.results.findings import Column
from lib.ui.mapper import NEEDS_LOAD, NEEDS_OUTCOME, state, suggested
from tests.harness import archive, document
from tests.pages.results_page import (
    HOSTILE,
    add,
    choose,
    current,
    drop,
    errors,
    markdown_of,
    plain,
    read_as_mapped,
    store,
    table,
    type_cells,
)

FIELDS = {
    "offer.parallel_calls": "concurrency",
    "result.speed.generated_per_s": "output_tps",
    "deployment.weights": "target",
    "deployment.card": "gpu",
    "deployment.cards": "gpu_count",
    "result.waits.per_piece.mid": "tpot_ms_p50",
}
OF_REPLIES = {"replies[].waited_ms": "ttft_ms_mean"}


def says(page: AppTest, text: str) -> bool:
    kinds = ("markdown", "caption", "warning", "error")
    elements: list[Any] = [e for kind in kinds for e in page.get(kind)]
    return any(text in plain(str(e.value)) for e in elements)


def button(page: AppTest, label: str) -> Any:
    (found,) = (b for b in page.button if b.label == label)
    return found


def mapped_titles(page: AppTest) -> list[str]:
    return [plain(e.label) for e in page.expander if "mapped by hand" in plain(e.label)]


def test_every_leaf_is_offered_with_values_and_what_its_name_suggests(page: AppTest) -> None:
    drop(page, ("kettle.json", document(4, 300.0)))
    shown = table(page, "map-").value.set_index("key")
    assert len(shown) == 58
    assert shown.loc["offer.parallel_calls", "values"] == "4"
    assert shown.loc["deployment.variant", "field"] == "arm"
    assert shown.loc["replies[].generated", "values"] == "120, 121, 122"
    assert says(page, f"Still needed: {NEEDS_LOAD}; {NEEDS_OUTCOME}.")
    assert button(page, "Read with this mapping").disabled


def test_what_is_chosen_survives_a_search_and_is_read(page: AppTest) -> None:
    drop(page, ("kettle.json", document(4, 300.0)))
    (find,) = (t for t in page.text_input if t.label == "Find a key")
    find.set_value("parallel").run()
    assert list(table(page, "map-").value["key"]) == ["offer.parallel_calls"]
    type_cells(page, "map-", {0: {"field": "concurrency"}})
    assert says(page, f"Still needed: {NEEDS_OUTCOME}.")
    (find,) = (t for t in page.text_input if t.label == "Find a key")
    find.set_value("").run()
    shown = table(page, "map-").value.set_index("key")
    assert shown.loc["offer.parallel_calls", "field"] == "concurrency"
    choose(page, FIELDS)
    assert not button(page, "Read with this mapping").disabled
    read_as_mapped(page)
    assert errors(page) == []
    (run,) = (run for _, run in current(page).runs.values())
    assert (run.offered_load, run.output_tps, run.gpu, run.arm) == (4, 300, "L40S", "off")


def test_a_mapping_is_remembered_changed_and_forgotten(page: AppTest) -> None:
    drop(page, ("first.json", document(4, 300.0)))
    choose(page, FIELDS)
    read_as_mapped(page)
    add(page, "mine")
    (kept,) = store().mappings()
    assert kept.name == "first.json"
    drop(page, ("second.json", document(8, 500.0, "eagle3:2")))
    assert errors(page) == []
    assert list(table(page, "staged-").value["tok/s"]) == [500]
    assert mapped_titles(page) == ["second.json: read as first.json was mapped by hand"]
    choose(page, {"deployment.weights": ""})
    read_as_mapped(page)
    assert errors(page) == []
    (run,) = (run for _, run in current(page).runs.values())
    assert (run.target, run.arm) == (None, "eagle3:2")
    button(page, "Forget this mapping").click().run()
    assert len(errors(page)) == 1
    assert store().mappings() == ()
    assert "58 keys" in " ".join(plain(e.label) for e in page.expander)


def test_forty_files_of_one_shape_are_mapped_once(page: AppTest) -> None:
    files = {f"{v}/c{c}.json": document(c, 90.0 * c, v) for v in ("off", "k4") for c in (1, 2, 4)}
    drop(page, ("sweep.zip", archive(files)))
    (line,) = map(plain, errors(page))
    assert "(5 more files of the same shape)" in line
    assert len([t for t in page.data_editor if str(t.key).startswith("map-")]) == 1
    choose(page, FIELDS)
    read_as_mapped(page)
    assert errors(page) == []
    assert len(table(page, "staged-").value) == 6
    assert set(table(page, "staged-").value["arm"]) == {"off", "speculation:4"}


def test_one_row_may_hold_several_arms(page: AppTest) -> None:
    text = b'{"load": {"n": 4}, "plain": {"pace": 100.0}, "guessed": {"pace": 180.0}}'
    drop(page, ("two.json", text))
    choose(page, {"load.n": "concurrency"})
    (toggle,) = (t for t in page.toggle if t.label == "One row holds several arms")
    toggle.set_value(True).run()
    keys = list(table(page, "map-").value["key"])
    type_cells(
        page,
        "map-",
        {
            keys.index("plain.pace"): {"field": "output_tps", "arm": "off"},
            keys.index("guessed.pace"): {"field": "output_tps", "arm": "eagle3:4"},
        },
    )
    read_as_mapped(page)
    assert errors(page) == []
    runs = {run.arm: run.output_tps for _, run in current(page).runs.values()}
    assert runs == {"off": 100, "eagle3:4": 180}


def test_items_of_one_list_are_runs_and_two_lists_are_refused_before_reading(
    page: AppTest,
) -> None:
    data = (
        b'{"setup": {"chip": "L4"}, "points": [{"n": 1, "pace": 80.0}, {"n": 2, "pace": 150.0}],'
        b' "other": [{"m": 1}, {"m": 2}]}'
    )
    drop(page, ("list.json", data))
    choose(
        page,
        {"points[].n": "concurrency", "points[].pace": "output_tps", "other[].m": "gpu_count"},
    )
    assert says(page, "keys of one list only")
    assert button(page, "Read with this mapping").disabled
    choose(page, {"other[].m": "", "setup.chip": "gpu"})
    assert says(page, "one run for each item of points")
    read_as_mapped(page)
    assert errors(page) == []
    shown = table(page, "staged-").value
    assert list(shown["tok/s"]) == [80, 150]
    assert list(shown["gpu"]) == ["L4", "L4"]


def test_a_remembered_mapping_that_does_not_do_leaves_the_file_to_be_mapped(page: AppTest) -> None:
    drop(page, ("first.json", document(4, 300.0)))
    choose(page, FIELDS)
    read_as_mapped(page)
    page.button(key="discard-files").click().run()
    odd = document(4, 300.0).replace(b'"parallel_calls": 4', b'"parallel_calls": "many"')
    drop(page, ("odd.json", odd))
    assert len(errors(page)) == 1
    choose(page, {**FIELDS, "offer.parallel_calls": "", "offer.shape.in": "concurrency"})
    read_as_mapped(page)
    assert errors(page) == []
    assert [r.offered_load for _, r in current(page).runs.values()] == [512]


def test_columns_to_spare_of_a_table_that_is_read(page: AppTest) -> None:
    drop(page, ("t.csv", b"concurrency,output tok/s,chips,remark\n1,80,2,a\n2,150,2,b\n"))
    assert errors(page) == []
    (title,) = (plain(e.label) for e in page.expander if "not understood" in plain(e.label))
    assert title == "t.csv: 2 columns not understood"
    choose(page, {"chips": "gpu_count"})
    read_as_mapped(page)
    assert list(table(page, "staged-").value["gpu_count"]) == [2, 2]
    assert store().mappings() == ()


def test_hostile_leaves_stay_text(page: AppTest) -> None:
    extra = {HOSTILE: {"=1+1": "<img src=x>", "\ud800": 1, "\x00": "\x1b[31m", "a" * 5000: 2}}
    drop(page, (f"{HOSTILE.replace('/', '_')}.json", document(4, 300.0, HOSTILE, extra)))
    choose(page, FIELDS)
    texts = markdown_of(page)
    read_as_mapped(page)
    assert errors(page) == []
    for text in (*texts, *markdown_of(page)):
        assert "![" not in text
        assert "<img" not in text
        assert ":red[" not in text
    add(page, "mine")
    assert len(store().mappings()) == 1


@pytest.mark.parametrize("folder", ["corpus"])
def test_what_others_wrote_never_breaks_the_page(page: AppTest, folder: str) -> None:
    place = Path(__file__).resolve().parents[3] / "shared" / folder
    if not place.is_dir():
        pytest.skip("no such files here")
    files = sorted(f for f in place.rglob("*") if f.is_file() and f.stat().st_size < 200_000)
    taken = files[:: max(len(files) // 60, 1)][:60]
    drop(page, *((f"{at}-{f.name}", f.read_bytes()) for at, f in enumerate(taken)))
    assert not page.exception
    assert len(current(page).files) == len(taken)


# What a choice of fields comes to


def columns(*rows: tuple[str, str]) -> list[Column]:
    return [Column(header, ("1",), suggestion) for header, suggestion in rows]


def test_suggestions_come_from_the_document_and_one_list_at_most() -> None:
    found = suggested(
        columns(
            ("model", "target"),
            ("a[].gpus", "gpu_count"),
            ("b[].load", "concurrency"),
            ("b[].tps", "output_tps"),
            ("b[].again", "output_tps"),
            ("spare", ""),
        )
    )
    assert found == {
        "model": ("target", ""),
        "b[].load": ("concurrency", ""),
        "b[].tps": ("output_tps", ""),
    }
    whole = suggested(
        columns(("n", "concurrency"), ("tps", "output_tps"), ("log[].ttft", "ttft_ms_mean"))
    )
    assert whole == {"n": ("concurrency", ""), "tps": ("output_tps", "")}


def test_what_is_needed_and_what_is_chosen_twice() -> None:
    assert state({}).missing == (NEEDS_LOAD, NEEDS_OUTCOME)
    both = {"n": ("concurrency", ""), "x": ("output_tps", ""), "y": ("output_tps", "")}
    assert state(both).missing == ()
    assert state(both).notes == ("output_tps is chosen more than once: the first counts",)
    apart = {"n": ("batch", ""), "x": ("multiplier", "off"), "y": ("multiplier", "eagle3:2")}
    assert state(apart).notes == ()
    assert state({"a[].n": ("batch", ""), "b[].x": ("multiplier", "")}).missing == (
        "keys of one list only: runs cannot come from a and b together",
    )
