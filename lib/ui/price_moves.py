"""What moves the price in hand: the bridge, the tornado, the draws and the break-evens."""

import streamlit as st

from lib.assumptions import table
from lib.errors import InputError
from lib.evidence.findings import Findings
from lib.money.break_even import break_evens as all_break_evens
from lib.money.bridge import bridge
from lib.money.case import Case
from lib.money.sensitivity import OUTCOMES, Outcome, Range, tornado
from lib.money.sensitivity import draw as draw_all
from lib.report import price_moves as text
from lib.report.format import money, number, plain_md
from lib.report.price_tables import break_even_table
from lib.ui import inputs
from lib.ui.figure import chart, csv_button, mode
from lib.ui.live_slider import live_slider

UNCERTAIN = ("usd_per_gpu_hour", "utilization", "extra_usd_per_hour")


def draw(found: Findings, case: Case) -> None:
    """The tab: ranges at the left, bridge, tornado and draws at the right."""
    left, right = st.columns([1, 2], gap="large")
    card = left.container(border=True, key="range-controls")
    with right:
        _bridge(case)
        _uncertainty(case)
    with card:
        st.caption(
            "Type between what and what an input lies. A slider's own range says nothing of that; "
            "throughput has the interval of its runs."
        )
        for key in UNCERTAIN:
            live_slider(f"{key}_low")
            live_slider(f"{key}_high")


def _bridge(case: Case) -> None:
    steps, arm = bridge(case), case.pair.on.arm
    said = ", ".join(f"{s.name} {text.step_text(s.usd)}" for s in steps.steps)
    chart(
        "price-bridge",
        "From the price without to the price with",
        text.bridge_figure(steps, arm, mode()),
        f"{money(steps.off_usd)} without, then {said}: {money(steps.on_usd)} with {arm}.",
        lambda: text.bridge_table(steps),
    )
    st.caption(
        "In this order; another order divides the same sum differently. "
        + (
            "The arm drafts at this load: its measured throughput holds any tax of K = 0."
            if case.drafts
            else "The arm drafts nothing at this load: what it loses to off is the tax of K = 0."
        )
    )


def _uncertainty(case: Case) -> None:
    ranges = _ranges()
    outcome: Outcome = st.segmented_control(
        "What moves",
        list(OUTCOMES),
        default="with",
        required=True,
        format_func=lambda name: {"with": "Price with", "saved": "Dollars saved"}[name],
        key="moves-what",
    )
    bars, arm = tornado(case, ranges, outcome), case.pair.on.arm
    drawn = draw_all(case, ranges)
    if drawn is None or not any(b.swing for b in bars):
        st.info(
            "Nothing has a range yet: with one run an arm throughput has no interval. Type a lower "
            "and an upper end, or measure three runs an arm.",
            icon=":material/tune:",
        )
        return
    off, on = case.prices({})
    chart(
        "price-tornado",
        f"What moves the {OUTCOMES[outcome]}",
        text.tornado_figure(bars, on if outcome == "with" else off - on, outcome, mode()),
        "; ".join(
            f"{b.label}: {money(b.at_low)} at {number(b.low)}, {money(b.at_high)} at "
            f"{number(b.high)}"
            for b in bars
        ),
        lambda: text.tornado_table(bars, outcome),
    )
    st.caption("Solid: at its lower end. Hatched: at its upper end. The line: as it stands.")
    sentence = text.draws_sentence(drawn)
    if drawn.saving_moves:
        chart(
            "price-draws",
            "Everything at once",
            text.draws_figure(drawn, arm, mode()),
            sentence,
            lambda: text.draws_table(drawn),
        )
    else:
        st.caption("What has a range moves both prices alike: the saving in percent stays.")
    st.markdown(plain_md(sentence))
    if case.pair.ratio.se is None:
        st.caption("One run an arm: M is taken as it was measured, without an interval.")
    st.caption(
        "Seeded draws: an input is as likely anywhere in its range; throughput and M are drawn "
        "from the t distribution of their logs."
    )


def _ranges() -> list[Range]:
    """Inputs with both ends typed, or with a sourced range; what cannot be used is said."""
    found, rows = [], table()
    for key in UNCERTAIN:
        row, low, high = rows[key], inputs.value(f"{key}_low"), inputs.value(f"{key}_high")
        source = "as typed"
        if low is None and high is None:
            low, high, source = row.low, row.high, row.source
        if low is None and high is None:
            continue
        if low is None or high is None:
            st.caption(f"{plain_md(row.label)}: type both ends of its range.")
            continue
        base = inputs.value(key)
        if base is None and key == "extra_usd_per_hour":
            base = 0.0
        try:
            found.append(
                Range(key, f"{row.label}, {row.unit}", low, high, source, base, row.shown_scale)
            )
        except InputError as error:
            st.error(plain_md(str(error)))
    return found


def break_evens(found: Findings, case: Case) -> None:
    """The tab: how far each thing may move before speculation stops paying."""
    rows = break_even_table(all_break_evens(case))
    st.dataframe(
        rows,
        hide_index=True,
        placeholder="–",
        alt="Break-evens of the pair in hand, with the interval of M.",
    )
    csv_button("break-evens", lambda: rows)
    st.caption("Each alone, with all else as it stands. The ends are those of M's interval.")
