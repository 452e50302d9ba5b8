"""Is this drafter worth a load test? The published theorem, under the visitor's sliders."""

import streamlit as st

from lib.estimate import Basis
from lib.report import decode_figures, decode_time
from lib.report import screening as report
from lib.report import theory_figures as figures
from lib.report.format import multiplier, plain_md
from lib.report.screening import Screening
from lib.ui import carried, chips, inputs, probed, scenarios, screen_asides
from lib.ui.figure import chart, mode
from lib.ui.live_slider import begin_page, live_slider

SLIDERS = ("alpha", "gamma", "c", "step_ms", "answer_tokens", "verify_cost")
PRESETS = {p.label: p for p in report.presets()}
FIGURES = {
    "gamma": ("Speedup over draft length", figures.speedup_over_gamma, figures.over_gamma),
    "c": ("Speedup over draft cost", figures.speedup_over_c, figures.over_c),
    "plane": ("Where drafting pays at this c", figures.alpha_gamma_plane, figures.over_plane),
    "decode": (
        "Decode time of an answer",
        decode_figures.decode_over_answer,
        decode_figures.over_answer,
    ),
}


def screening() -> Screening:
    return Screening(*(inputs.value(key) for key in SLIDERS))


def use_preset() -> None:
    if chosen := PRESETS.get(st.session_state["preset"]):
        inputs.put(alpha=chosen.alpha, gamma=chosen.gamma, c=chosen.c)


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
    alt = {**figures.alt_texts(s), "decode": decode_figures.decode_alt(s)}[key]
    chart(f"screen-{key}", title, build(s, mode()), alt, lambda: columns(s))


def answer_time(s: Screening) -> None:
    decode = decode_time.Decode(s)
    st.markdown(decode_time.table(decode))
    for line in decode_time.notes(decode):
        st.caption(line)


@st.fragment
def live() -> None:
    scenarios.follow()
    s = screening()
    chips.answer(s.sentence, s.estimate, carried.over(s.inputs), s.note)
    for line in carried.lines():
        st.caption(plain_md(line))
    for line in probed.screen_lines():
        st.caption(f":material/update: {plain_md(line)}")
    if s.verify_line:
        basis = (carried.origin("verify_cost") or (Basis.ASSUMED, ""))[0]
        st.markdown(f"{s.verify_line} :{chips.COLOR[basis]}-badge[v {basis}]")
    left, right = st.columns([1, 2], gap="large")
    card = left.container(border=True, key="controls")
    with right:
        metrics(s)
        beside = (*st.columns(2, gap="medium"), *st.columns(2, gap="medium"))
        for key, place in zip(FIGURES, beside, strict=True):
            with place:
                show(key, s)
        answer_time(s)
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


@st.fragment
def cross_check() -> None:
    screen_asides.cross_check(screening())


begin_page()
chips.question("Is this drafter worth a load test?")
live()
st.space("small")
parts = (
    (screen_asides.probes, screen_asides.speeds),
    (screen_asides.verify,),
    (cross_check, screen_asides.assumptions),
)
for place, several in zip(st.columns(3, border=True), parts, strict=True):
    with place:
        for part in several:
            part()
st.space("small")
scenarios.draw()
