"""The monitor's parts that are drawn over and over: the answer, alerts, server cards, figures."""

import time
from collections.abc import Sequence
from functools import partial

import streamlit as st

from lib.report import monitor_figures as figures
from lib.report import monitor_text as text
from lib.report.format import estimate as estimate_text
from lib.report.format import plain_md
from lib.report.monitor_text import Quantity
from lib.serving.alerts import Alert
from lib.serving.plan import Plan
from lib.serving.watcher import Watched
from lib.serving.windows import Window
from lib.ui import chips, monitor_watch, study
from lib.ui.figure import chart, csv_button, mode
from lib.ui.monitor_watch import SPANS

SPAN = "monitor_span"
DRAWN = {"alert": (st.error, "notifications_active"), "warning": (st.warning, "warning")}
BESIDE = (11, 1)
MOST_SAID = 3  # servers whose goodput is explained
ON_CARD = ("tau", "tpot_ms", "output_tps", "running", text.USD)
ALWAYS = ("tau", "output_tps", "tpot_ms", "ttft_ms")
ORDER = ("tau", "output_tps", "tpot_ms", "ttft_ms", "alpha", "running", text.USD)
EMPTY = (
    "No server is watched yet. Add one by its address: its metrics are asked for every "
    f"{monitor_watch.EVERY_S:g} s, and only read."
)


def answer(
    now: Window | None, plan: Plan | None, found: Sequence[Alert], shown: Sequence[Quantity]
) -> None:
    """The sentence in large type, or calmly why there is none."""
    states = monitor_watch.watcher().endpoints()
    if not states:
        st.info(EMPTY, icon=":material/monitor_heart:")
        return
    source = states[0].shown if len(states) == 1 else f"{len(states)} servers"
    if now is None and not found:
        st.info(
            "Waiting for two scrapes: what a server does is between them.",
            icon=":material/hourglass:",
        )
        return
    sentence, estimate = text.answer(now, source, plan, found, shown)
    if estimate is None:
        st.info(plain_md(sentence), icon=":material/monitor_heart:")
        return
    chips.answer(plain_md(sentence), estimate)


def draw_alerts(found: Sequence[Alert], key: str = "live") -> None:
    """Each in its sentence, with what it costs a day; notes quietly."""
    for at, alert in enumerate(found):
        if alert.severity not in DRAWN:
            st.caption(plain_md(alert.sentence))
            continue
        box, icon = DRAWN[alert.severity]
        usd = alert.usd_per_day
        said = plain_md(alert.sentence)
        if usd is None:
            box(said, icon=f":material/{icon}:")
            continue
        chip = f":{chips.COLOR[usd.basis]}-badge[{usd.basis}]"
        place, beside = st.columns(BESIDE, vertical_alignment="center", gap="small")
        with place:
            box(f"{said} **{plain_md(estimate_text(usd))}** {chip}", icon=f":material/{icon}:")
        with beside:
            chips.how(usd, {}, f"{key}-alert-{at}-how")


def cards(plan: Plan | None, shown: Sequence[Quantity], fleet: Sequence[Quantity]) -> None:
    """A card a server; where there are several, one of all together before them."""
    states = monitor_watch.watcher().endpoints()
    if len(states) > 1 and (together := monitor_watch.recent()) is not None:
        with st.container(border=True, gap="small"):
            st.markdown(f"**{len(states)} servers together**")
            _numbers("together", together, None, fleet)
    for at, state in enumerate(states):
        _card(at, state, plan, shown)


def _card(at: int, state: Watched, plan: Plan | None, shown: Sequence[Quantity]) -> None:
    now = monitor_watch.recent(state.shown)
    with st.container(border=True, gap="small"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            word, color = _state(state, now)
            st.badge(word, color=color)  # type: ignore[arg-type]
            name = f"**{plain_md(state.shown)}**"
            if state.engine:
                name += f" · {plain_md(state.engine)}"
            st.markdown(name, width="content")
            if state.last_at_s is not None:
                age = text.ago(time.time() - state.last_at_s)
                st.caption(f"last scrape {age}", width="content")
            st.button(
                "Remove",
                key=f"remove-{state.shown}",
                icon=":material/close:",
                type="tertiary",
                on_click=monitor_watch.watcher().remove,
                args=(state.shown,),
                help="It is no longer asked; its history stays.",
            )
        if state.problem:
            st.caption(plain_md(state.problem))
        _numbers(str(at), now, plan, shown)
        for note in now.notes if now is not None else ():
            if note.startswith("no speculation"):  # the rest is among the alerts
                st.caption(plain_md(note))


def _state(state: Watched, now: Window | None) -> tuple[str, str]:
    if state.problem:
        return "✕ scrape failing", "red"
    if now is None:
        return "○ waiting", "gray"
    return ("○ idle", "gray") if now.idle else ("✓ running", "green")


def _numbers(key: str, now: Window | None, plan: Plan | None, shown: Sequence[Quantity]) -> None:
    with st.container(key=f"metrics-{key}"):
        for quantity in shown:
            if quantity.key not in ON_CARD:
                continue
            value = None if now is None else quantity.of(now)
            planned = quantity.plan_text(plan)
            st.metric(
                quantity.short,
                "–" if value is None else quantity.text(value),
                delta=f"plan {planned}" if planned else None,
                delta_color="off",
                delta_arrow="off",
            )


def choose_span() -> str:
    """The time that the figures reach back."""
    chosen = st.segmented_control(
        "Time shown",
        list(SPANS),
        default=next(iter(SPANS)),
        key=SPAN,
        bind="query-params",
        required=True,
    )
    return str(chosen or next(iter(SPANS)))


def charts(
    found: figures.Tracks,
    times: figures.Times,
    plan: Plan | None,
    shown: Sequence[Quantity],
    key: str = "live",
) -> None:
    """A figure a quantity, two beside each other; quantities without a value are named below."""
    named = {q.key: q for q in shown}
    known = [
        q
        for k in ORDER
        if (q := named[k]).key in ALWAYS
        or any(q.of(w) is not None for windows in found.values() for w in windows)
    ]
    drawn = [partial(_quantity, found, times, plan, q, key) for q in known]
    if any(figures.position_shares(windows) for windows in found.values()):
        drawn.append(partial(_positions, found, key))
    for at in range(0, len(drawn), 2):
        pair = drawn[at : at + 2]
        for place, one in zip(st.columns(2, gap="medium"), pair, strict=False):
            with place:
                one()
    _goodput(found, times, key)
    missing = [q.title for q in shown if q not in known]
    if missing:
        st.caption(f"Without a value in this time: {', '.join(missing)}.")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption("Every window with all of its values:", width="content")
        csv_button(f"{key}-windows", lambda: figures.columns(found, shown))


def _quantity(
    found: figures.Tracks, times: figures.Times, plan: Plan | None, quantity: Quantity, key: str
) -> None:
    chart(
        f"{key}-{quantity.key}",
        quantity.title,
        figures.quantity_figure(found, quantity, plan, times, mode()),
        figures.quantity_alt(found, quantity, plan),
        lambda: figures.columns(found, [quantity]),
    )


def _positions(found: figures.Tracks, key: str) -> None:
    chart(
        f"{key}-position",
        "Acceptance by position",
        figures.position_figure(found, mode()),
        "The share of drafts accepted at each position, over all of the time shown.",
        lambda: figures.position_columns(found),
    )
    if any(map(figures.lengths_vary, found.values())):
        st.caption("Draft lengths vary: a draft that ends before a position counts as none there.")


def _goodput(found: figures.Tracks, times: figures.Times, key: str) -> None:
    slo = study.slo()
    if slo is None:
        st.caption("Goodput: name a limit under *Service level and engine* in the sidebar.")
        return
    chart(
        f"{key}-goodput",
        "Goodput, at least and at most",
        figures.goodput_figure(found, slo, times, mode()),
        f"Good requests a second over time at {slo.text}, between two bounds.",
        lambda: figures.goodput_columns(found, slo),
    )
    for line in text.undecided_lines(found, slo)[:MOST_SAID]:
        st.caption(plain_md(line))
