"""What does a million tokens cost? Measured throughput at the visitor's own prices."""

import streamlit as st

from lib.evidence.findings import Findings
from lib.money.pricing import PricedPair, price_pairs
from lib.report.format import money, multiplier, percent, plain_md
from lib.report.load_figures import load_title, off_labels
from lib.report.price_figures import price_figure
from lib.report.price_text import TOO_CLOSE, price_answer, saving_lines, unpriced_lines
from lib.report.tables import price_table
from lib.run import Slo
from lib.ui import (
    chips,
    chosen_rate,
    consent,
    deliverables,
    inputs,
    price_bases,
    price_book,
    price_tabs,
    price_what_if,
    protocol,
    scenarios,
    study,
)
from lib.ui.figure import chart, csv_button, mode
from lib.ui.live_slider import begin_page, live_slider

SLIDERS = ("usd_per_gpu_hour", "gpu_count", "utilization", "extra_usd_per_hour", "tokens_per_day")
ADDED = ("drafter_gpus", "drafter_usd_per_gpu_hour", "on_utilization")


def break_evens(pair: PricedPair) -> None:
    prices = pair.complete
    extra, even = pair.break_even_extra_usd_per_hour, pair.break_even_multiplier
    if prices is None or extra is None or even is None:
        return
    off, on, saving = prices
    with st.container(horizontal=True, key="metrics", gap="medium"):
        st.metric("$/1M output, off", money(off.value))
        st.metric("$/1M output, with", money(on.value))
        close = pair.too_close
        said = TOO_CLOSE.capitalize() if close else None
        st.metric("Saving", f"{'≈ ' if close else ''}{percent(saving.value)}", help=said)
        st.metric("Multiplier M", multiplier(pair.multiplier))
        st.metric("Break-even M", multiplier(even), help="M at which both prices are equal.")
        st.metric(
            "Break-even extra",
            f"{money(extra)}/h",
            help="What speculation may add to the price an hour before its gain is gone.",
        )


@st.fragment
def live(found: Findings, slo: Slo | None, agreed: bool) -> None:
    scenarios.follow()
    priced = {
        a.label: price_pairs(found, a, study.rate(), slo, accept_random=agreed) for a in found.arms
    }
    sentence, estimate, pair = price_answer(found, priced, study.operating_load())
    if estimate is None:
        st.info(plain_md(sentence), icon=":material/payments:")
    else:
        note = plain_md(found.study.caveat)
        chips.answer(plain_md(sentence), estimate, chosen_rate.rests_on(), note)
    chosen_rate.caption()
    left, right = st.columns([1, 2], gap="large")
    card = left.container(border=True, key="controls")
    with right:
        case = price_tabs.case_in_hand(found, pair)
        if pair is not None and case is not None:
            price_bases.decode_caption(case)
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
        with st.expander("The drafter's GPUs, utilisation with it"):
            for key in ADDED:
                live_slider(key)
    price_tabs.draw(found, case)
    with st.expander("Every load as a table"):
        st.dataframe(price_table(priced), hide_index=True, placeholder="–")
        csv_button("price-table", lambda: price_table(priced))
    deliverables.draw(found, priced)


begin_page()
chips.question("What does a million tokens cost?")
if (found := study.findings()) is not None:
    consent.ask(found)
    live(found, study.slo(), consent.random_ok())
    protocol.strip(found)
price_book.draw()
scenarios.draw()
price_what_if.draw()
