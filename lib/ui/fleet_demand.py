"""The demand of the fleet page: a shape and a level, typed hours, or a file; the link carries it.

The hours of a person live in the session as the text of `spelled`. A table that is edited needs a
base that stays as it was, so the base is made anew on every page run and on every upload only.
"""

import math
from dataclasses import replace

import pandas as pd
import streamlit as st

from lib.errors import DraftworthError, InputError
from lib.money import demand_files
from lib.money.demand import (
    DAY,
    LEVELS,
    SHAPES,
    UNITS,
    Demand,
    Hours,
    Unit,
    edited,
    in_tokens,
    read_spelled,
    shaped,
    spelled,
)
from lib.report.format import plain_md, significant
from lib.ui import inputs, study
from lib.ui.live_slider import live_slider

SHAPE, LEVEL, UNIT, HOURS, TPOT = (
    "demand",
    "demand_level",
    "demand_unit",
    "demand_hours",
    "demand_tpot_ms",
)
OWN = "own hours"
BASE, REVISION, FILE, REFUSED = "demand base", "demand revision", "demand file", "demand refused"
EDITOR = "Demand hour by hour, and the load that a replica is run at."
LINK_CHARACTERS = 1800
MOST_ROWS = 2 * DAY
INPUTS = {"output tok/s": "demand_tps", "requests/s": "demand_rps"}


def begin() -> None:
    """First thing of a page run: own hours from the link once, and back into it."""
    if HOURS not in st.session_state:
        asked = st.query_params.get(HOURS)
        st.session_state[HOURS] = asked
        if asked is not None and isinstance(_own(), str):
            st.session_state[REFUSED] = f"Ignored in this link: {_own()}"
            st.session_state[HOURS] = None
    _new_base()


def _new_base() -> None:
    st.session_state[BASE] = st.session_state.get(HOURS)
    st.session_state[REVISION] = int(st.session_state.get(REVISION, 0)) + 1


def _write_link() -> None:
    text = st.session_state.get(HOURS)
    if text and st.session_state.get(SHAPE) == OWN and len(text) <= LINK_CHARACTERS:
        if st.query_params.get(HOURS) != text:
            st.query_params[HOURS] = text
    elif HOURS in st.query_params:
        del st.query_params[HOURS]


def _put(hours: Hours, name: str | None) -> None:
    """Hours of a person's own from now on."""
    st.session_state[HOURS] = spelled(hours)
    st.session_state[UNIT] = hours.unit
    st.session_state[SHAPE] = OWN
    st.session_state[FILE] = name
    st.session_state[REFUSED] = None
    _new_base()


def _uploaded() -> None:
    file = st.session_state.get(f"{HOURS}-file")
    if file is None:
        return
    try:
        _put(demand_files.read(file.name, file.getvalue(), st.session_state.get(UNIT)), file.name)
    except DraftworthError as error:
        st.session_state[REFUSED] = str(error)


def _edit_shape() -> None:
    """The shown shape becomes the person's own hours, to be changed one by one."""
    hours = _shaped()
    if isinstance(hours, str):
        st.session_state[SHAPE] = OWN
    else:
        _put(replace(hours, values=tuple(float(f"{v:.5g}") for v in hours.values)), None)


def choose() -> None:
    """The choices that come before the figures: shape, level, unit, table, file."""
    options = [*SHAPES, OWN]
    st.selectbox(
        "Shape of the day",
        options,
        key=SHAPE,
        bind="query-params",
        help="A shape is assumed: it is scaled to the level that you name. Own hours are yours.",
    )
    own = st.session_state[SHAPE] == OWN
    units = UNITS if own else UNITS[:2]
    if st.session_state.get(UNIT) not in (None, *units):
        st.session_state[UNIT] = units[0]
    left, right = st.columns(2)
    with left:
        st.selectbox("Demand in", units, key=UNIT, bind="query-params")
    with right:
        if not own:
            st.selectbox("It is the day's", LEVELS, key=LEVEL, bind="query-params")
        elif _unit() == UNITS[2]:
            st.number_input(
                "TPOT then, ms",
                min_value=0.01,
                value=None,
                key=TPOT,
                bind="query-params",
                help="Mean TPOT while those requests ran: tokens/s = running ÷ TPOT.",
            )
    if own:
        _table()
    with st.popover("From a file", icon=":material/upload_file:"):
        st.file_uploader(
            "CSV of hours or times, or a Prometheus range answer",
            type=["csv", "tsv", "txt", "json"],
            key=f"{HOURS}-file",
            on_change=_uploaded,
            help=f"CSV: {demand_files.FORM}. Prometheus: the JSON of /api/v1/query_range.",
        )
    if not own:
        st.button(
            "Edit hour by hour", icon=":material/edit:", type="tertiary", on_click=_edit_shape
        )
    if refused := st.session_state.get(REFUSED):
        st.error(plain_md(refused))
    _write_link()


def _table() -> None:
    values: tuple[float, ...] = (0.0,) * DAY
    loads: tuple[float | None, ...] = ()
    base, first = st.session_state[BASE], 0
    if base:
        hours = read_spelled(base, _unit())
        values, loads, first = hours.values, hours.loads, hours.first_hour
    if len(values) > MOST_ROWS:
        named = st.session_state.get(FILE) or "a link"
        said = f"{len(values):,} hours from {named}; load another file to change them."
        if len(base or "") > LINK_CHARACTERS:
            said += " Too many for a link: this page's link leaves them out."
        st.caption(plain_md(said))
        return
    frame = pd.DataFrame(
        {
            "hour": range(len(values)),
            "demand": values,
            "load a replica": [
                math.nan if x is None else x for x in loads or (None,) * len(values)
            ],
        }
    )
    typed = st.data_editor(
        frame,
        key=f"demand-hours-{st.session_state[REVISION]}",
        hide_index=True,
        disabled=["hour"],
        height=260,
        alt=EDITOR,
        column_config={
            "demand": st.column_config.NumberColumn(min_value=0),
            "load a replica": st.column_config.NumberColumn(
                min_value=0,
                help="The load that each replica is run at in that hour, in the study's own kind "
                "of load. Empty: as much as the service level holds.",
            ),
        },
    )
    try:
        now = edited(typed["demand"].tolist(), typed["load a replica"].tolist(), _unit(), first)
        st.session_state[HOURS] = text = spelled(now)
        if text != base:
            st.session_state[FILE] = None
    except InputError as error:
        st.caption(f":material/warning: {plain_md(str(error))}")


def _unit() -> Unit:
    chosen = st.session_state.get(UNIT)
    return next((u for u in UNITS if u == chosen), UNITS[0])


def _shaped() -> Hours | str:
    unit = _unit()
    level = inputs.value(INPUTS.get(unit, "demand_tps"))
    shape = str(st.session_state.get(SHAPE))
    if level is None:
        return inputs.table()[INPUTS.get(unit, "demand_tps")].empty
    try:
        return shaped(shape, float(level), st.session_state.get(LEVEL) or LEVELS[0], unit)
    except InputError as error:
        return str(error)


def _own() -> Hours | str:
    text = st.session_state.get(HOURS)
    if not text:
        return "type the demand of each hour, or load a file"
    try:
        return read_spelled(text, _unit())
    except InputError as error:
        return str(error)


def slider() -> None:
    """The level of a shape, and what requests need beside; drawn after the figures."""
    unit = _unit()
    if st.session_state.get(SHAPE) != OWN:
        live_slider(INPUTS.get(unit, "demand_tps"))
    if unit == "requests/s" and _recorded_length() is None:
        live_slider("answer_tokens")


def _recorded_length() -> float | None:
    """Output tokens a request as the study recorded them, where all of its runs agree."""
    found = study.current()
    lengths = {r.output_len for r in found.runs} if found else set()
    return lengths.pop() if len(lengths) == 1 else None


def demand() -> Demand | str:
    """The demand in hand, or what is missing."""
    own = st.session_state.get(SHAPE) == OWN
    hours = _own() if own else _shaped()
    if isinstance(hours, str):
        return hours
    said = f"hours from {name}" if (name := st.session_state.get(FILE)) else "hours as typed"
    if not own:
        level = st.session_state.get(LEVEL) or LEVELS[0]
        key = INPUTS.get(hours.unit, "demand_tps")
        amount = significant(float(inputs.value(key) or 0))
        said = f"{st.session_state[SHAPE]} shape, {level} {amount} {hours.unit}"
    length = _recorded_length()
    try:
        return in_tokens(
            hours,
            said,
            inputs.value("answer_tokens") if length is None else length,
            st.session_state.get(TPOT),
        )
    except InputError as error:
        return str(error)
