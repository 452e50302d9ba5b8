"""Below the screen's figures: c from two speeds, a check by simulation, what is assumed."""

import numpy as np
import streamlit as st

from lib.report import screening as report
from lib.report.screening import Screening
from lib.theory import walltime
from lib.ui import inputs

ROUNDS = 300_000


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
