"""Below the screen's figures: c and v from elsewhere, a check by simulation, what is assumed."""

import numpy as np
import streamlit as st

from lib.report import screening as report
from lib.report.format import significant
from lib.report.probe_text import label
from lib.report.screening import Screening
from lib.theory import walltime
from lib.ui import inputs, probed

ROUNDS = 300_000


def probes() -> None:
    """c, and v apart from it, from a stored probe."""
    found = {probe.id: probe for probe in probed.all_probes()}
    usual = probed.first(tuple(found.values()))
    if usual is None:
        return
    st.subheader("c from a probe", anchor=False)
    chosen = st.selectbox(
        "Probe",
        list(found),
        index=list(found).index(usual.id),
        format_func=lambda probe_id: label(found[probe_id]),
        key="probe-for-screen",
        persist_state="session",
        label_visibility="collapsed",
    )
    probe = found.get(chosen, usual)
    reason = probed.why_not_in_screen(probe)
    st.button(
        reason or f"Use c = {significant(probe.c.value)}",
        key="use-probe",
        on_click=probed.use_in_screen,
        args=(probe,),
        disabled=bool(reason),
    )


def speeds() -> None:
    """c from the speeds of target and drafter alone."""
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
    st.button(label, on_click=_use_speeds, args=(c,), disabled=not usable)


def _use_speeds(c: float) -> None:
    inputs.put(c=c)


def verify() -> None:
    """v from the speeds of a batch benchmark at one token a pass and at several."""
    st.subheader("v from a batch benchmark", anchor=False)
    st.caption(report.BATCH_CONDITION)
    longest = int(inputs.table()["gamma"].max) + 1
    rows = st.number_input(
        "Tokens a pass", 2, longest, None, 1, key="batch_rows", persist_state="session"
    )
    several, single = (
        st.number_input(label, 0.01, value=None, key=key, persist_state="session")
        for label, key in (
            ("Its speed, tok/s", "batch_tps"),
            ("At one token a pass, tok/s", "single_tps"),
        )
    )
    found = report.verify_from_batch(rows, several, single) if rows and several and single else None
    row = inputs.table()["verify_cost"]
    usable = found is not None and row.min <= found.cost <= row.max
    label = "Use v" if found is None else f"Use v ≈ {found.cost:.2f} at γ = {found.gamma}"
    if found is not None:
        st.markdown(found.text)
    st.button(label, on_click=_use_verify, args=(found,), disabled=not usable)


def _use_verify(found: report.BatchVerify) -> None:
    inputs.put(verify_cost=found.cost, gamma=found.gamma)


def cross_check(s: Screening) -> None:
    """The closed form against rounds drawn one by one, on request."""
    st.subheader("Check by simulation", anchor=False)
    st.caption(f"{ROUNDS:,} rounds drawn one by one, drafts accepted with chance α.")
    if st.button("Simulate"):
        rng = np.random.default_rng(0)
        found = walltime.simulate_speedup(s.alpha, s.gamma, s.c, ROUNDS, rng)
        st.markdown(report.cross_check_text(s, *found))


def assumptions() -> None:
    """What the theorem takes for granted."""
    st.subheader("What this assumes", anchor=False)
    st.markdown("\n".join(f"- {line}" for line in report.ASSUMPTIONS))
