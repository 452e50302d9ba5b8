"""What the drafter's training adds, and who pays for a shared deployment."""

import math

import streamlit as st

from lib.errors import InputError
from lib.evidence.findings import Findings
from lib.money import cost
from lib.money.case import Case
from lib.money.charge_back import SHAPE, by_reservation, by_use, parse
from lib.report.format import money, plain_md, tokens
from lib.report.price_tables import bill_table
from lib.ui import inputs
from lib.ui.figure import csv_button
from lib.ui.live_slider import live_slider


def draw(found: Findings, case: Case) -> None:
    """The tab."""
    left, right = st.columns([1, 2], gap="large")
    card = left.container(border=True, key="share-controls")
    with right:
        st.subheader("Training of the drafter", anchor=False)
        _training(case)
        st.subheader("Charge-back", anchor=False)
        _charged(case)
    with card:
        for key in ("training_usd", "training_months", "training_tokens", "charge_capacity"):
            live_slider(key)


def _training(case: Case) -> None:
    usd, prices = inputs.value("training_usd"), case.pair.complete
    if usd is None or prices is None:
        st.caption("Type what the training cost to spread it over months or tokens.")
        return
    off, on, _saving = prices
    lines = []
    if (months := inputs.value("training_months")) is not None:
        each = cost.training_usd_per_hour(usd, months)
        lines.append(f"Over {months:g} months it is {money(each)} an hour.")
    if (served := inputs.value("training_tokens")) is not None:
        each = cost.training_usd_per_million(usd, served)
        lines.append(
            f"Over {tokens(served)} output tokens it is {money(each)} per 1M: "
            f"{money(on.value + each)} with it, {money(off.value)} without speculation."
        )
    back = cost.training_break_even_tokens(usd, off.value, on.value)
    if case.pair.too_close:
        lines.append("Whether it is ever paid back is too close to call: so is the saving.")
    elif math.isinf(back):
        lines.append("It is never paid back: speculation is no cheaper here.")
    else:
        lines.append(f"It is paid back after {tokens(back)} output tokens.")
    for line in lines:
        st.markdown(plain_md(line))
    st.caption("Assumed as typed; it is not in the price above. An hourly share is an extra cost.")


def _charged(case: Case) -> None:
    st.text_input(
        "Teams",
        key="charge_teams",
        bind="query-params",
        placeholder=SHAPE,
        max_chars=2000,
        help="Reserved and used in the unit of the capacity; teams apart by a semicolon.",
    )
    typed, capacity = st.session_state.get("charge_teams") or "", inputs.value("charge_capacity")
    if not typed.strip() or capacity is None:
        st.caption(f"Type the capacity and the teams ({SHAPE}) to split an hour's bill.")
        return
    hourly = case.pair.on.usd_per_hour or 0.0
    try:
        teams = parse(typed)
        bills = {
            "by reservation, $/h": by_reservation(hourly, capacity, teams),
            "idle shared out, $/h": by_reservation(hourly, capacity, teams, share_idle=True),
            "by use, $/h": by_use(hourly, capacity, teams),
        }
    except InputError as error:
        st.error(plain_md(str(error)))
        return
    rows = bill_table(teams, bills)
    st.dataframe(rows, hide_index=True, placeholder="–", alt="The bill of an hour by team.")
    csv_button("charge-back", lambda: rows)
    st.caption(
        f"{plain_md(money(hourly))} an hour with speculation. Speculation lowers what a team uses, "
        "not what it reserves: a bill by reservation moves only when the reservation does."
    )
