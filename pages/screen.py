"""Is this drafter worth a load test? The published theorem, under the visitor's sliders."""

import numpy as np
import streamlit as st

from lib.report import screening as report
from lib.report import theory_figures as figures
from lib.report.format import multiplier
from lib.report.screening import Screening
from lib.theory import walltime
from lib.ui import chips, inputs
from lib.ui.figure import chart, mode
from lib.ui.live_slider import live_slider

SLIDERS = ("alpha", "gamma", "c", "step_ms")
ROUNDS = 300_000
PRESETS = {p.label: p for p in report.presets()}
FIGURES = {
    "gamma": ("Speedup over draft length", figures.speedup_over_gamma, figures.over_gamma),
    "c": ("Speedup over draft cost", figures.speedup_over_c, figures.over_c),
    "plane": ("Where drafting pays at this c", figures.alpha_gamma_plane, figures.over_plane),
}


def screening() -> Screening:
    return Screening(*(inputs.value(key) for key in SLIDERS))


def use_preset() -> None:
    if chosen := PRESETS.get(st.session_state["preset"]):
        inputs.put(alpha=chosen.alpha, gamma=chosen.gamma, c=chosen.c)


def use_speeds(c: float) -> None:
    inputs.put(c=c)


def metrics(s: Screening) -> None:
    with st.container(key="metrics"):
        st.metric("Speedup S", multiplier(s.speedup))
        st.metric("Tokens a round τ", f"{s.tau:.2f}")
        st.metric("Break-even c", f"{s.break_even_c:.3f}")
        even = s.break_even_alpha
        st.metric("Break-even α", "none" if even is None else f"{even:.3f}")
        st.metric(f"Best γ, 1 to {report.LARGEST_GAMMA}", s.best_gamma)
        per_token = "–" if s.ms_per_token is None else f"{s.ms_per_token:.2f} ms"
        st.metric("Per output token", per_token)


def show(key: str, s: Screening) -> None:
    title, build, columns = FIGURES[key]
    chart(f"screen-{key}", title, build(s, mode()), figures.alt_texts(s)[key], lambda: columns(s))


@st.fragment
def live() -> None:
    s = screening()
    chips.answer(s.sentence, s.estimate, s.inputs, s.note)
    left, right = st.columns([1, 2], gap="large")
    card = left.container(border=True, key="controls")
    with right:
        metrics(s)
        beside = st.columns(2, gap="medium")
        for key, place in zip(FIGURES, (*beside, right), strict=True):
            with place:
                show(key, s)
    with card:
        st.session_state["preset"] = s.preset.label if s.preset else None
        st.selectbox(
            "Published example",
            list(PRESETS),
            key="preset",
            placeholder="Your own values",
            on_change=use_preset,
        )
        for key in SLIDERS:
            live_slider(key)


def speeds() -> None:
    st.subheader("c from two speeds", anchor=False)
    st.caption(report.SPEEDS_CONDITION)
    target, drafter = (
        st.number_input(label, 0.01, value=None, key=key, persist_state="session")
        for label, key in (("Target, tok/s", "target_tps"), ("Drafter, tok/s", "drafter_tps"))
    )
    c = report.cost_from_speeds(target, drafter) if target and drafter else None
    usable = c is not None and c <= inputs.table()["c"].max
    label = (
        "Use c" if c is None else f"Use c ≈ {c:.3f}" if usable else f"c ≈ {c:.2f}: no draft pays"
    )
    st.button(label, on_click=use_speeds, args=(c,), disabled=not usable)


@st.fragment
def cross_check() -> None:
    st.subheader("Check by simulation", anchor=False)
    st.caption(f"{ROUNDS:,} rounds drawn one by one, drafts accepted with chance α.")
    if st.button("Simulate"):
        s = screening()
        rng = np.random.default_rng(0)
        found = walltime.simulate_speedup(s.alpha, s.gamma, s.c, ROUNDS, rng)
        st.markdown(report.cross_check_text(s, *found))


def assumptions() -> None:
    st.subheader("What this assumes", anchor=False)
    st.markdown("\n".join(f"- {line}" for line in report.ASSUMPTIONS))


chips.question("Is this drafter worth a load test?")
live()
st.space("small")
for place, part in zip(st.columns(3, border=True), (speeds, cross_check, assumptions), strict=True):
    with place:
        part()
