"""The fleet page's parts: what is sized, the answer, the figures and the tables."""

import math

import streamlit as st

from lib.evidence.findings import Findings
from lib.money.capacity import Capacities, MostRequests, capacities
from lib.money.demand import Demand
from lib.money.fleet import Rules, what_if
from lib.money.fleet_day import Day, day_of
from lib.money.memory import Held
from lib.report import fleet_text
from lib.report.fleet_figures import alt_text, demand_figure, replicas_figure
from lib.report.format import plain_md
from lib.report.load_figures import load_title
from lib.run import LoadKind
from lib.ui import chips, chosen_rate, consent, inputs, schedule_card, study
from lib.ui.figure import chart, csv_button, mode

SPARE, PAID = "spare", "paid"
PAYMENTS = ("autoscaled", "reserved for peak")
MONEY = st.column_config.NumberColumn(format="dollar")
COUNT = st.column_config.NumberColumn(format="%,.0f")
# Without utilisation: a replica is sized full.
PAID_BY = tuple(k for k in chosen_rate.RESTS_ON if "utilization" not in k)
TENTHS = st.column_config.NumberColumn(format="%,.1f")
COLUMNS = {
    "tok/s a replica": COUNT,
    "replicas at peak": COUNT,
    "GPU-hours a day": TENTHS,
    "fractional": TENTHS,
    "$ a day": MONEY,
    "$ a month": MONEY,
    "$ saved a day": MONEY,
    "mean TPOT, ms": TENTHS,
}


def findings() -> Findings | None:
    """The study's pairs. Over request rates a server that kept up is sized by its latency, so the
    pairs are those of TPOT: throughput leaves such runs out."""
    current = study.current()
    if current is not None and study.load_kind(current) is LoadKind.REQUEST_RATE:
        return study.findings("tpot_ms", quiet=True) or study.findings()
    return study.findings()


def choose_rules() -> None:
    """How the fleet is run and paid for."""
    st.segmented_control(
        "The fleet", PAYMENTS, default=PAYMENTS[0], key=PAID, bind="query-params", required=True
    )
    st.checkbox("One spare replica (N+1)", key=SPARE, bind="query-params")


def rules() -> Rules:
    """Headroom, spare and payment as chosen."""
    return Rules(
        float(inputs.value("headroom") or 0.0),
        bool(st.session_state.get(SPARE)),
        st.session_state.get(PAID) == PAYMENTS[1],
    )


def sizes(found: Findings, fits: Held | str) -> Capacities | None:
    """Every arm's replica under the service level and the limits of the sidebar."""
    most = [] if isinstance(fits, str) else [fits.most]
    if (seqs := study.max_num_seqs()) is not None:
        most.append(MostRequests(seqs, seqs, "max_num_seqs"))
    return capacities(found, study.rate(), study.slo(), most, accept_random=consent.random_ok())


def day(found: Findings, sized: Capacities, demand: Demand) -> Day:
    """The plans for that demand, the schedule of this study among them."""
    highest = math.floor(max(float(c.loads[-1]) for c in sized.curves))
    schedule = schedule_card.build(found, max(1, highest))
    return day_of(sized, demand, rules(), schedule, inputs.value("k0_tax"))


def answer(day: Day, found: Findings) -> str:
    """The sentence in large type, with its basis."""
    sentence, estimate = fleet_text.fleet_answer(day)
    if estimate is None:
        st.info(plain_md(sentence), icon=":material/dns:")
        return sentence
    notes = [found.study.caveat, "" if study.slo() else "SLO unknown: every measured load counts"]
    priced = day.off.usd_per_day is not None and day.sizes.rate is not None
    paid = chosen_rate.rests_on(PAID_BY) if priced else {}
    chips.answer(
        plain_md(sentence),
        estimate,
        {**fleet_text.rests_on(day, found.study.basis), **paid},
        note=plain_md("; ".join(filter(None, notes))),
    )
    if paid:
        chosen_rate.caption()
    return sentence


def figures(day: Day, sentence: str) -> None:
    """Replicas by hour, the demand, and what both say in lines."""
    if day.shown:
        chart(
            "replicas",
            "Replicas by hour",
            replicas_figure(day, mode()),
            alt_text(day, sentence),
            lambda: fleet_text.hour_table(day),
        )
    chart(
        "demand",
        "Demand by hour",
        demand_figure(day.demand, mode()),
        f"Output tokens per second by hour: {day.demand.said}.",
        lambda: {
            "hour": range(day.demand.hours),
            "output tok/s": day.demand.output_tps.tolist(),
        },
    )


def lines(day: Day) -> None:
    """The schedule's worth, the other use of the GPUs, what is left out."""
    for line in (*fleet_text.schedule_lines(day), *fleet_text.latency_lines(day)):
        st.markdown(plain_md(line))
    for line in fleet_text.left_out_lines(day):
        st.caption(plain_md(line))


def table(day: Day, found: Findings) -> None:
    """Every arm: hours, money and what binds."""
    columns = fleet_text.fleet_table(day)
    st.dataframe(columns, hide_index=True, placeholder="–", column_config=COLUMNS)
    st.caption(
        plain_md(
            f"Loads are {load_title(found)}. A replica is the deployment that was measured; a day "
            "is 24 of the demand's mean hours, a month 730. Fractional replicas cannot be bought: "
            "they say what a large fleet comes near to."
        )
    )
    csv_button("fleet", lambda: columns)


def moves(day: Day) -> None:
    """Acceptance, demand and price, each moved alone."""
    shift = inputs.value("what_if")
    if shift is None:
        st.caption("Type by how much: a share is not assumed.")
        return
    curves = [p.curve for p in day.plans if not p.why_not]
    columns = fleet_text.what_if_table(day, what_if(curves, day.demand, day.rules, float(shift)))
    st.dataframe(columns, hide_index=True, placeholder="–")
    st.caption(
        "τ moves at the measured round cost. Whether an arm would then still meet the service "
        "level was not measured."
    )
    csv_button("fleet-what-if", lambda: columns)
