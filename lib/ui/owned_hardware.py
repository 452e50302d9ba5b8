"""Owned hardware on the price page: its inputs, published figures for them, and $/GPU-h."""

from typing import Any

import streamlit as st

from lib.errors import InputError
from lib.estimate import Basis, Estimate
from lib.money.ownership import (
    OwnedHardware,
    Suggestion,
    owned_cost,
    owned_estimate,
    suggestions,
)
from lib.report import rates as text
from lib.report.format import money, plain_md
from lib.ui import carried, chips, chosen_rate, inputs
from lib.ui.figure import csv_button
from lib.ui.live_slider import live_slider

PREFIX = "owned_"
REQUIRED = (
    *("owned_capex_usd", "owned_gpus", "owned_life_years", "owned_residual"),
    *("owned_capital_rate", "owned_power_kw", "owned_pue", "owned_usd_per_kwh"),
)
OPTIONAL = ("owned_hosting_usd_per_kw_month", "owned_hosting_usd_per_gpu_month")
IN_USE = "owned_in_use"


@st.fragment
def draw() -> None:
    """Inputs at the left, what an hour costs at the right."""
    left, right = st.columns([1, 1], gap="large")
    card = left.container(border=True, key="owned-controls")
    with right:
        _result()
        _published()
    with card:
        for key in (*REQUIRED, *OPTIONAL, IN_USE):
            live_slider(key)


def _result() -> None:
    table = inputs.table()
    empty = [table[k].label for k in REQUIRED if inputs.value(k) is None]
    if empty:
        st.info(f"Type {', '.join(empty)} to price owned hardware.", icon=":material/dns:")
        return
    try:
        hardware = _hardware()
        cost, estimate = owned_cost(hardware), owned_estimate(hardware)
    except InputError as error:
        st.error(plain_md(str(error)))
        return
    chips.answer(plain_md(text.owned_sentence(cost)), estimate, _rests_on(), key="answer-owned")
    share = inputs.value(IN_USE)
    if share is not None:
        st.caption(plain_md(text.in_use_sentence(cost, share)))
    price = money(estimate.value).replace("$", "\\$")
    if st.button(f"Use {price} per GPU-hour", key="owned-use"):
        _use(estimate)


def _hardware() -> OwnedHardware:
    values: dict[str, Any] = {k: inputs.value(k) for k in REQUIRED}
    values |= {k: inputs.value(k) or 0.0 for k in OPTIONAL}
    named = {k.removeprefix(PREFIX): v for k, v in values.items()}
    return OwnedHardware(**named, all_in=_all_in())


def _all_in() -> bool:
    """Whether the kW in hand came from a figure that includes facility overhead."""
    origin = carried.origin("owned_power_kw")
    return origin is not None and any(s.all_in and s.cited == origin[1] for s in suggestions())


def _rests_on() -> dict[str, Estimate]:
    table, found = inputs.table(), {}
    for key in (*REQUIRED, *OPTIONAL):
        value = inputs.value(key)
        if value is not None:
            row = table[key]
            basis, source = carried.origin(key) or (Basis.ASSUMED, "as typed")
            shown = row.shown_scale * value
            found[row.label] = Estimate(shown, row.unit, basis, source)
    return found


def _use(estimate: Estimate) -> None:
    try:
        chosen_rate.fill(estimate.basis, f"{estimate.source}, as typed", estimate.value)
    except InputError as error:
        st.error(plain_md(str(error)))
        return
    st.rerun()


def _published() -> None:
    """Published figures for the inputs: none is filled in before a person takes it."""
    table, rows = inputs.table(), suggestions()
    picked = st.selectbox(
        "Published figures",
        range(len(rows)),
        index=None,
        format_func=lambda at: text.suggestion_label(
            rows[at], table[rows[at].key].label, table[rows[at].key].unit
        ),
        placeholder="choose one to fill an input",
        key="owned-published",
    )
    if picked is not None:
        row = rows[picked]
        st.caption(plain_md("; ".join(p for p in (row.cited, row.original, row.note) if p)))
        if st.button("Use it", key="owned-published-use"):
            _fill(row)
            st.rerun()
    csv_button("ownership", lambda: text.suggestion_table(rows))


def _fill(row: Suggestion) -> None:
    values: dict[str, inputs.Value] = {row.key: row.value}
    if row.all_in:
        values["owned_pue"] = 1.0
    if row.key == "owned_capex_usd" and row.gpus:
        values["owned_gpus"] = row.gpus
    carried.carry(Basis.PUBLISHED, row.cited, **values)
