"""The same price per output, weighted and total token, and what decoding is of a request."""

import streamlit as st

from lib.evidence.findings import Findings
from lib.money.bases import decode_share, input_per_output, token_prices
from lib.money.case import Case
from lib.report import price_tables as text
from lib.report.format import plain_md
from lib.ui import inputs
from lib.ui.figure import csv_button
from lib.ui.live_slider import live_slider


def ratio_in_hand(case: Case) -> tuple[float | None, bool]:
    """Input tokens per output token, and whether it was typed: a recorded one goes first."""
    recorded = input_per_output((*case.off_runs, *case.on_runs))
    return (inputs.value("input_per_output"), True) if recorded is None else (recorded, False)


def decode_caption(case: Case) -> None:
    """What drafting can touch, beside the saving; nothing where it is not recorded."""
    if (share := decode_share(case.off_runs)) is not None:
        st.caption(plain_md(text.decode_sentence(share)))


def draw(found: Findings, case: Case) -> None:
    """The tab."""
    prices, (ratio, typed) = case.pair.complete, ratio_in_hand(case)
    left, right = st.columns([1, 2], gap="large")
    card = left.container(border=True, key="basis-controls")
    with right:
        st.markdown(plain_md(text.decode_sentence(decode_share(case.off_runs))))
        if ratio is None or prices is None:
            st.info(
                "The runs do not record their input tokens: type the input tokens per output token "
                "to read the other bases.",
                icon=":material/payments:",
            )
        else:
            weight = inputs.value("input_weight")
            off, on = (token_prices(p, ratio, weight) for p in prices[:2])
            rows = text.basis_table(off, on)
            st.dataframe(
                rows,
                hide_index=True,
                placeholder="–",
                alt="The price per 1M tokens on each token basis.",
            )
            csv_button("token-basis", lambda: rows)
            st.caption(plain_md(text.ratio_sentence(ratio, typed)))
            st.caption("One bill over other tokens: compare only prices with the same label.")
    with card:
        live_slider("input_weight")
        if typed:
            live_slider("input_per_output")
