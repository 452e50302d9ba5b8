"""A hosted API beside the price in hand, on the same tokens."""

import streamlit as st

from lib.errors import InputError
from lib.estimate import Basis
from lib.evidence.findings import Findings
from lib.money.api import ApiPrice, api_price, api_prices, break_even
from lib.money.case import Case
from lib.report import price_api as text
from lib.report.format import plain_md
from lib.run import OFF
from lib.ui import carried, chips, inputs
from lib.ui.figure import csv_button
from lib.ui.live_slider import live_slider
from lib.ui.price_bases import ratio_in_hand

INPUT, CACHED, OUTPUT = "api_input_usd", "api_cached_usd", "api_output_usd"
SHARE = "cached_share"


def draw(found: Findings, case: Case) -> None:
    """The tab: prices of the API at the left, the comparison at the right."""
    ratio, typed = ratio_in_hand(case)
    left, right = st.columns([1, 2], gap="large")
    card = left.container(border=True, key="api-controls")
    with right:
        _compared(case, ratio)
        _listed()
    with card:
        for key in (INPUT, CACHED, OUTPUT, SHARE):
            live_slider(key)
        if typed:
            live_slider("input_per_output")


def _compared(case: Case, ratio: float | None) -> None:
    in_usd, out_usd, prices = inputs.value(INPUT), inputs.value(OUTPUT), case.pair.complete
    if in_usd is None or out_usd is None or ratio is None or prices is None:
        missing = "" if ratio is not None else " and the input tokens per output token"
        st.info(
            f"Choose a list price below, or type the API's input and output price{missing}.",
            icon=":material/compare_arrows:",
        )
        return
    # A list price holds as a whole: one of the three changed, and all are as typed.
    origins = {carried.origin(key) for key in (INPUT, CACHED, OUTPUT)}
    listed = origins.pop() if len(origins) == 1 else None
    price = ApiPrice(in_usd, out_usd, inputs.value(CACHED), source=listed[1] if listed else "")
    try:
        api = api_price(price, ratio, inputs.value(SHARE) or 0.0)
        sides = {
            OFF: (case.pair.off, prices[0], case.utilization[0]),
            case.pair.on.arm: (case.pair.on, prices[1], case.utilization[1]),
        }
        lines = [
            text.break_even_line(
                name,
                break_even(own, used, priced.usd_per_hour or 0, priced.output_tps or 0, api),
            )
            for name, (priced, own, used) in sides.items()
        ]
    except InputError as error:
        st.error(plain_md(str(error)))
        return
    own = {f"with {name}" if name != OFF else "without": s[1] for name, s in sides.items()}
    used = {f"with {name}" if name != OFF else "without": s[2] for name, s in sides.items()}
    chips.answer(plain_md(text.api_sentence(own, api, used)), api, key="answer-api")
    for line in lines:
        st.markdown(plain_md(line))
    st.caption(
        "Break-even utilisation is the share of paid time in use at the measured load. A cached "
        "token has no price of its own when self-hosted: it raises throughput."
    )


def _listed() -> None:
    rows = api_prices()
    picked = st.selectbox(
        f"List price, one of {len(rows)}: input / cached / output in $ per 1M",
        range(len(rows)),
        index=None,
        format_func=lambda at: text.label(rows[at]),
        placeholder="choose one to fill the prices",
        key="api-pick",
    )
    if picked is not None:
        row = rows[picked]
        st.caption(plain_md(row.cited))
        if st.button("Use it", key="api-use"):
            values = {INPUT: row.input_usd, CACHED: row.cached_usd, OUTPUT: row.output_usd}
            carried.carry(Basis.PUBLISHED, row.cited, **values)
            st.rerun()
    csv_button("api-prices", lambda: text.api_table(rows))
