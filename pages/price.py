"""What does a million tokens cost? Measured throughput at the visitor's own prices."""

import streamlit as st

from lib.estimate import Basis, Estimate
from lib.evidence.findings import Findings
from lib.money import cost
from lib.money.pricing import PricedPair, price_pairs
from lib.report.format import money, multiplier, percent, plain_md
from lib.report.load_figures import load_title, off_labels
from lib.report.price_figures import price_figure
from lib.report.price_text import price_answer, saving_lines, unpriced_lines
from lib.report.tables import price_table
from lib.run import Slo
from lib.ui import chips, inputs, protocol, study
from lib.ui.figure import chart, csv_button, mode
from lib.ui.live_slider import live_slider

SLIDERS = ("usd_per_gpu_hour", "gpu_count", "utilization", "extra_usd_per_hour", "tokens_per_day")


def break_evens(pair: PricedPair) -> None:
    prices = pair.complete
    extra, even = pair.break_even_extra_usd_per_hour, pair.break_even_multiplier
    if prices is None or extra is None or even is None:
        return
    off, on, saving = prices
    with st.container(horizontal=True, key="metrics", gap="medium"):
        st.metric("$/1M output, off", money(off.value))
        st.metric("$/1M output, with", money(on.value))
        st.metric("Saving", percent(saving.value))
        st.metric("Multiplier M", multiplier(pair.multiplier))
        st.metric("Break-even M", multiplier(even), help="M at which both prices are equal.")
        st.metric(
            "Break-even extra",
            f"{money(extra)}/h",
            help="What speculation may add to the price an hour before its gain is gone.",
        )


@st.fragment
def live(found: Findings, slo: Slo | None) -> None:
    priced = {a.label: price_pairs(found, a, study.rate(), slo) for a in found.arms}
    sentence, estimate, pair = price_answer(found, priced, study.operating_load())
    if estimate is None:
        st.info(plain_md(sentence), icon=":material/payments:")
    else:
        chips.answer(plain_md(sentence), estimate, note=plain_md(found.study.caveat))
    left, right = st.columns([1, 2], gap="large")
    card = left.container(border=True, key="controls")
    with right:
        if pair is not None:
            break_evens(pair)
            for line in saving_lines(
                pair, inputs.value("tokens_per_day"), study.rate().utilization
            ):
                st.markdown(plain_md(line))
        if any(p.on.price or p.off.price for rows in priced.values() for p in rows):
            chart(
                "price",
                "$ per 1M output tokens over load",
                price_figure(priced, off_labels(found), mode(), load_title(found)),
                f"Price per million output tokens over load. {sentence}",
                lambda: price_table(priced),
            )
            for line in unpriced_lines(priced):
                st.caption(plain_md(line))
        protocol.caption(found)
    with card:
        for key in SLIDERS:
            live_slider(key)
    with st.expander("Every load as a table"):
        st.dataframe(price_table(priced), hide_index=True, placeholder="–")
        csv_button("price-table", lambda: price_table(priced))


@st.fragment
def assumed() -> None:
    """A multiplier that a person types: always labelled assumed, never from the theorem."""
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
        usd, gpus, used = paid.usd_per_gpu_hour, paid.gpu_count, paid.utilization
        extra = paid.extra_usd_per_hour
        if None in (m, tps, usd, gpus, used):
            right.caption("Type M, the baseline's tok/s, a $/GPU-h, the GPUs and the utilisation.")
            return
        base = cost.cost_per_million(usd * gpus, tps, used)
        with_it = cost.speculative_cost_per_million(usd * gpus, tps, m, extra, used)
        saving = cost.saving_fraction(m, usd * gpus, extra)
        with right:
            chips.answer(
                plain_md(
                    f"{money(with_it)} instead of {money(base)} per 1M output tokens: "
                    f"{percent(abs(saving))} {'less' if saving >= 0 else 'more'}, if M were {m:g}."
                ),
                Estimate(with_it, "$ per 1M output tokens", Basis.ASSUMED, "M as typed"),
                key="answer-assumed",
            )


chips.question("What does a million tokens cost?")
if (found := study.findings()) is not None:
    live(found, study.slo())
    protocol.strip(found)
assumed()
