"""Scenarios on a page: save what is chosen under a name, open what was saved, compare two."""

from contextlib import suppress

import streamlit as st

from lib.errors import DraftworthError, InputError
from lib.money.scenario import CHOICES, Choice, Scenario
from lib.report import scenario_text as text
from lib.report.format import plain_md
from lib.report.load_figures import LOAD_TITLES
from lib.results import catalogue
from lib.results.scenarios import NAME_LENGTH, NOTE_LENGTH, StoredScenario
from lib.ui import chosen_rate, fleet_demand, fleet_view, inputs, study
from lib.ui.figure import csv_button
from lib.ui.live_slider import whole_page_unless_dragged

BOX = "scenarios"
SAID = "scenarios said"
FIELDS = {"name": "scenario-name", "note": "scenario-note", "by": "scenario-by"}


def now() -> Scenario:
    """What is chosen on every page of this session. Raises InputError for what no link may say."""
    found: dict[str, object] = {key: inputs.value(key) for key in inputs.table()}
    found |= {key: _said(key) for key in CHOICES}
    current = study.current()
    kind = None if current is None else study.load_kind(current)
    first = None if current is None else text.kind_of(Scenario(()), current)
    found["load_kind"] = None if kind is None or kind is first else LOAD_TITLES[kind]
    if found[fleet_demand.SHAPE] != fleet_demand.OWN:
        found[fleet_demand.HOURS] = None
    if found[fleet_view.PAID] == fleet_view.PAYMENTS[0]:
        found[fleet_view.PAID] = None
    return Scenario.of(found)


def _said(key: str) -> object:
    """A choice in the session, else in the link: until its widget is drawn it is only there."""
    if key in st.session_state:
        return st.session_state[key]
    return st.query_params.get_all(key)


def follow() -> None:
    """First thing of a live fragment, after `begin_page` of its page: while this section is open it
    follows every change."""
    if st.session_state.get(BOX):
        whole_page_unless_dragged()


def draw() -> None:
    """The section of a page; filled when it is opened."""
    box = st.expander(
        "Scenarios: save, open, compare", icon=":material/bookmarks:", key=BOX, on_change="rerun"
    )
    if not box.open:
        return
    with box:
        opened = study.store()
        if opened is None:
            st.info("Scenarios are kept in the store, which cannot be opened now.")
            return
        _last_word()
        try:
            rows, here = opened.scenarios(), now()
        except DraftworthError as error:
            st.error(plain_md(str(error)))
            return
        save, reopen, compare = st.tabs(["Save", "Open", "Compare two"])
        with save:
            _save_form(here, rows)
        with reopen:
            _saved(rows)
        with compare:
            _compare(here, rows)


def _last_word() -> None:
    """What the last click did. Its place is kept when it is empty: the tabs stay where they are."""
    good, said = st.session_state.pop(SAID, (True, ""))
    with st.container():
        if said:
            (st.success if good else st.error)(plain_md(said))


def _save_form(here: Scenario, rows: tuple[StoredScenario, ...]) -> None:
    same = next((text.title(s) for s in rows if s.hash == here.hash), None)
    kept = f"Saved as {same}." if same else "Not saved yet."
    st.caption(f"Scenario {here.hash}, as the page stands. {plain_md(kept)}")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input("Name", key=FIELDS["name"], max_chars=NAME_LENGTH, width=240)
        st.text_input("Note", key=FIELDS["note"], max_chars=NOTE_LENGTH, width=320)
        st.text_input("By", key=FIELDS["by"], placeholder="your name", max_chars=80, width=160)
        st.button("Save scenario", key="scenario-save", type="primary", on_click=_save)
    st.caption("A name that is there gets a new version; none is ever overwritten.")


def _save() -> None:
    name, note, by = (st.session_state.get(FIELDS[f]) or "" for f in FIELDS)
    try:
        scenario = now()
        kept = study.open_store().save_scenario(name, scenario.json, scenario.hash, note, by)
    except DraftworthError as error:
        st.session_state[SAID] = (False, str(error))
        return
    st.session_state[SAID] = (True, f"Saved: {text.title(kept)}.")
    st.session_state[FIELDS["note"]] = ""


def _empty() -> None:
    st.caption("No scenario is saved yet: save one in the first tab, change an input, save again.")


def _saved(rows: tuple[StoredScenario, ...]) -> None:
    if not rows:
        _empty()
        return
    chosen = st.selectbox(
        "Scenario", rows, format_func=text.title, key="scenario-open", placeholder="choose one"
    )
    try:
        scenario = Scenario.from_json(chosen.parameters)
    except InputError as error:
        st.error(plain_md(f"{text.title(chosen)} cannot be opened: {error}"))
    else:
        st.button("Open it here", key="scenario-load", on_click=_load, args=(chosen, scenario))
        st.caption("Or copy its link:")
        st.code(link(scenario), language=None, wrap_lines=True)
    st.dataframe(
        text.version_table(rows), hide_index=True, alt="Every version of every saved scenario."
    )
    csv_button("scenarios", lambda: text.version_table(rows))


def link(scenario: Scenario) -> str:
    """The address of this page at a scenario."""
    return f"{st.context.url or ''}?{scenario.query}"


def _load(stored: StoredScenario, scenario: Scenario) -> None:
    """Every choice and input as the scenario has it; what it does not name is at its start."""
    names = {row.name for row in catalogue.names(study.store())}
    if scenario.study and scenario.study not in names:
        missing = f"{text.title(stored)}: its study {scenario.study} is not here; import it first"
        st.session_state[SAID] = (False, missing)
        return
    for key, choice in CHOICES.items():
        if key in ("study", "load_kind", chosen_rate.LINKED, chosen_rate.PRICED_ON):
            continue
        value = _typed(choice, scenario)
        if value or st.session_state.get(key):
            st.session_state[key] = value
    if scenario.study:
        st.session_state["study"] = scenario.study
        st.session_state["study missing"] = None
    with suppress(DraftworthError):  # the page itself says what is wrong with its study
        kind = text.kind_of(scenario, study.findings_of(scenario).study)
        if kind is not None:
            st.session_state["load_kind"] = kind
    start = {key: row.start for key, row in inputs.table().items()}
    inputs.put(**{key: scenario.number(key) for key in start})
    chosen_rate.reopen(scenario.text(chosen_rate.LINKED), scenario.text(chosen_rate.PRICED_ON))
    st.session_state[SAID] = (True, f"Opened: {text.title(stored)}.")


def _typed(choice: Choice, scenario: Scenario) -> object:
    """A choice as its widget holds it; where the scenario has none, where it starts."""
    found = scenario.parameters.get(choice.key)
    if choice.key == "load":
        return scenario.load
    if choice.kind == "list":
        return list(found) if isinstance(found, tuple) else []
    if choice.kind == "flag":
        return found is True
    if choice.kind == "number":
        return None if found is None else float(str(found))
    if choice.key == fleet_view.PAID:
        return found or fleet_view.PAYMENTS[0]
    return choice.start or None if found is None else found


def _compare(here: Scenario, rows: tuple[StoredScenario, ...]) -> None:
    if not rows:
        _empty()
        return
    options = [None, *rows]
    left, right = st.columns(2)
    a = left.selectbox("A", options, index=1, format_func=_named, key="scenario-a")
    b = right.selectbox("B", options, index=0, format_func=_named, key="scenario-b")
    try:
        sides = [(_named(row), _scenario(row, here)) for row in (a, b)]
        both = [(name, scenario, _outcome(scenario)) for name, scenario in sides]
    except InputError as error:
        st.error(plain_md(f"A scenario cannot be read: {error}"))
        return
    if sides[0][1] == sides[1][1]:
        st.caption("Nothing differs between them.")
    lines = text.change_lines(both[0][2], both[1][2])
    st.markdown("\n".join(f"- {plain_md(line)}" for line in lines))
    table = text.side_by_side(both[0], both[1])
    st.dataframe(table, hide_index=True, alt="What differs between A and B, and what both cost.")
    csv_button("scenario-comparison", lambda: table)


def _named(row: StoredScenario | None) -> str:
    return text.NOW if row is None else text.title(row)


def _scenario(row: StoredScenario | None, here: Scenario) -> Scenario:
    return here if row is None else Scenario.from_json(row.parameters)


def _outcome(scenario: Scenario) -> text.Outcome:
    try:
        found = study.findings_of(scenario)
        source = text.rate_source(scenario, chosen_rate.book(), chosen_rate.today())
        return text.outcome(scenario, found, source)
    except DraftworthError as error:
        return text.Outcome(str(error))
