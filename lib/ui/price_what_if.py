"""A multiplier that a person types: always labelled assumed, never from the theorem."""

import streamlit as st

from lib.estimate import Basis, Estimate
from lib.money import cost
from lib.report.format import money, percent, plain_md
from lib.ui import chips, study
from lib.ui.live_slider import live_slider


@st.fragment
def draw() -> None:
    """The section of the price page."""
    with st.expander("What if? A multiplier that nobody measured"):
        left, right = st.columns([1, 2], gap="large")
        with left:
            m = live_slider("assumed_multiplier")
            tps = st.number_input(
                "Measured tok/s without",
                min_value=0.01,
                value=None,
                key="assumed_tps",
                bind="query-params",
            )
        paid = study.rate()
        usd, gpus, extra = paid.usd_per_gpu_hour, paid.gpu_count, paid.added_usd_per_hour
        used, with_used = paid.utilization, paid.used("with")
        if (
            m is None
            or tps is None
            or usd is None
            or gpus is None
            or used is None
            or extra is None
            or with_used is None
        ):
            right.caption("Type M, the baseline's tok/s, a $/GPU-h, the GPUs and the utilisation.")
            return
        base = cost.cost_per_million(usd * gpus, tps, used)
        with_it = cost.speculative_cost_per_million(usd * gpus, tps, m, extra, with_used)
        saving = 1.0 - with_it / base
        with right:
            chips.answer(
                plain_md(
                    f"{money(with_it)} instead of {money(base)} per 1M output tokens: "
                    f"{percent(abs(saving))} {'less' if saving >= 0 else 'more'}, if M were {m:g}."
                ),
                Estimate(with_it, "$ per 1M output tokens", Basis.ASSUMED, "M as typed"),
                key="answer-assumed",
            )
