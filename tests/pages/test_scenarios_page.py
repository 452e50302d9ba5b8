"""Scenarios on the pages: saved as versions, opened again, compared; nothing breaks the page."""

import pytest
from streamlit.testing.v1 import AppTest

from lib.errors import StoreError
from lib.money.scenario import Scenario
from lib.results.store import Store
from lib.ui import study
from tests.pages.conftest import ROOT
from tests.pages.test_acceptance_page import HOSTILE, said
from tests.pages.test_pages import sliders, start

STUDY = "guidellm-0.8.1-simulated"
LINK = {
    "study": STUDY,
    "load": "8",
    "usd_per_gpu_hour": "2",
    "gpu_count": "1",
    "utilization": "0.6",
    "slo_tpot_ms": "40",
}
CANONICAL = Scenario.of(LINK)


def opened(page: str, **link: str) -> AppTest:
    app = start(page, **link)
    app.session_state["scenarios"] = True
    return app.run()


def save(app: AppTest, name: str, note: str = "") -> AppTest:
    app.text_input(key="scenario-name").set_value(name)
    app.text_input(key="scenario-note").set_value(note)
    return app.button(key="scenario-save").click().run()


def text(app: AppTest) -> str:
    return said(app).replace("\u2060", "")


@pytest.mark.parametrize("page", ["price", "fleet", "screen"])
def test_the_section_starts_empty_and_saves_what_is_chosen(page: str) -> None:
    app = opened(page, **LINK)
    assert f"Scenario {CANONICAL.hash}, as the page stands. Not saved yet." in text(app)
    assert "No scenario is saved yet" in text(app)
    save(app, "plan", "first")
    assert not app.exception
    assert "Saved: plan, version 1." in [s.value for s in app.success]
    assert f"Scenario {CANONICAL.hash}, as the page stands. Saved as plan, version 1." in text(app)
    (row,) = study.open_store().scenarios()
    assert (row.name, row.version, row.note) == ("plan", 1, "first")
    assert Scenario.from_json(row.parameters) == CANONICAL


def test_pages_visited_leave_no_mark_on_a_scenario() -> None:
    app = opened("price", **LINK)
    for page in ("fleet", "compare", "decision", "screen", "price"):
        app.switch_page(str(ROOT / "pages" / f"{page}.py")).run()
    app.session_state["scenarios"] = True
    app.run()
    assert CANONICAL.hash in text(app)


def test_every_save_is_a_version_and_two_are_compared() -> None:
    app = save(opened("price", **LINK), "plan")
    app = opened("price", **(LINK | {"usd_per_gpu_hour": "2.5", "load": "16"}))
    save(app, "plan", "after the call")
    rows = study.open_store().scenarios()
    assert [(r.name, r.version) for r in rows] == [("plan", 2), ("plan", 1)]
    app.selectbox(key="scenario-a").set_value(rows[1])
    app.selectbox(key="scenario-b").set_value(rows[0]).run()
    assert not app.exception
    assert "Without speculation, per 1M output tokens: " in text(app).replace("&#36;", "$")
    table = next(d.value for d in app.dataframe if "input or result" in d.value.columns)
    labels = table["input or result"].tolist()
    assert labels[:2] == ["Operating load", "Price"]
    assert table.iloc[0].tolist()[1:] == ["8", "16"]
    assert table.iloc[1].tolist()[1:] == ["2 $ per GPU-hour", "2.5 $ per GPU-hour"]
    assert {"$ per 1M output tokens, off", "$ per 1M output tokens, with", "Saving"} <= set(labels)


def test_a_scenario_is_opened_again() -> None:
    save(opened("price", **LINK), "plan")
    other = {"study": "vllm_dspark_dsv4pro_b300", "alpha": "0.9", "usd_per_gpu_hour": "7"}
    app = opened("price", **other)
    assert sliders(app)["usd_per_gpu_hour"]["value"] == 7
    app.button(key="scenario-load").click().run()
    assert not app.exception
    assert "Opened: plan, version 1." in [s.value for s in app.success]
    assert app.selectbox(key="study").value == STUDY
    assert app.selectbox(key="load").value == 8
    assert sliders(app)["usd_per_gpu_hour"]["value"] == 2
    assert "per 1M output tokens at 8 concurrent" in text(app)
    assert f"{CANONICAL.hash}, as the page stands. Saved as plan, version 1." in text(app)
    app.switch_page(str(ROOT / "pages" / "screen.py")).run()
    assert sliders(app)["alpha"]["value"] == 0.75


def test_a_scenario_saved_on_one_page_comes_back_on_another() -> None:
    fleet = LINK | {"demand": "night batch", "demand_tps": "20000", "paid": "reserved for peak"}
    save(opened("fleet", **fleet, spare="true", charge_teams="a 1 1"), "night")
    (row,) = study.open_store().scenarios()
    found = Scenario.from_json(row.parameters)
    assert found == Scenario.of({**fleet, "spare": True, "charge_teams": "a 1 1"})
    app = opened("price", **LINK)
    app.button(key="scenario-load").click().run()
    assert row.hash in text(app)
    app.switch_page(str(ROOT / "pages" / "fleet.py")).run()
    assert not app.exception
    assert app.selectbox(key="demand").value == "night batch"
    assert app.checkbox(key="spare").value is True
    assert sliders(app)["demand_tps"]["value"] == 20000
    plain = Scenario.of(LINK)
    study.open_store().save_scenario("plain", plain.json, plain.hash)
    app.session_state["scenarios"] = True
    app.run()
    app.selectbox(key="scenario-open").set_value(study.open_store().scenarios()[0]).run()
    app.button(key="scenario-load").click().run()
    assert not app.exception
    assert plain.hash in text(app)
    assert app.selectbox(key="demand").value == "office"
    assert app.checkbox(key="spare").value is False


def test_a_study_that_is_gone_is_one_line_and_changes_nothing() -> None:
    app = opened("price", **LINK)
    gone = Scenario.of({**LINK, "study": "gone *away*", "usd_per_gpu_hour": "3"})
    study.open_store().save_scenario("plan", gone.json, gone.hash)
    app.run()
    app.button(key="scenario-load").click().run()
    assert not app.exception
    (error,) = app.error
    assert "its study gone" in error.value
    assert "*away*" not in error.value
    assert sliders(app)["usd_per_gpu_hour"]["value"] == 2
    assert "A is not priced" in text(app)


@pytest.mark.parametrize("name", ["", "   ", "x\ty"])
def test_a_name_that_is_not_allowed_is_one_line(name: str) -> None:
    app = save(opened("price", **LINK), name)
    assert not app.exception
    (error,) = app.error
    assert "scenario name" in error.value
    assert study.open_store().scenarios() == ()


def test_a_document_that_cannot_be_read_is_one_line() -> None:
    app = opened("price", **LINK)
    study.open_store().save_scenario("old", '{"utilization":60}', "x")
    app.run()
    assert not app.exception
    assert any("cannot be opened: utilization = 60" in e.value for e in app.error)


def test_names_are_data() -> None:
    app = save(opened("price", **LINK), HOSTILE[:80], HOSTILE)
    assert not app.exception
    shown = [e.value for e in (*app.success, *app.caption)]
    assert all(HOSTILE[:80] not in value for value in shown)


def test_a_store_that_cannot_be_written_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened("price", **LINK)

    def refuse(*_args: object, **_named: object) -> None:
        raise StoreError("the store could not do that: disk full")

    monkeypatch.setattr(Store, "save_scenario", refuse)
    save(app, "plan")
    assert not app.exception
    assert [e.value for e in app.error] == ["the store could not do that: disk full"]


def test_without_a_store_the_section_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def locked() -> Store:
        raise StoreError("in use by process 7")

    monkeypatch.setattr(study, "open_store", locked)
    app = opened("price", **LINK)
    assert not app.exception
    assert any("Scenarios are kept in the store" in i.value for i in app.info)
