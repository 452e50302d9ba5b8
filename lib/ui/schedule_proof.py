"""Prove it: off, the best fixed K and the schedule as commands to copy, in the person's tool."""

import streamlit as st

from lib.errors import DraftworthError
from lib.evidence.schedule import Schedule
from lib.evidence.three_arms import proof_of
from lib.report.format import plain_md
from lib.report.schedule_text import proof_lines
from lib.run import Study
from lib.serving import tools
from lib.serving.setup import Command
from lib.ui import command_blocks


def draw(built: Schedule, found: Study) -> None:
    """The three arms, the loads, and the commands that measure them."""
    proof = proof_of(built)
    if proof is None:
        st.info("There is no schedule to prove: see the line above the table.")
        return
    st.markdown(
        "Three servers, the same requests, at least three runs each. The schedule stands where "
        "its own arm is not behind either of the others."
    )
    st.markdown("\n".join(f"- {plain_md(line)}" for line in proof_lines(proof)))
    label = st.selectbox(
        "Measure it with",
        tools.CHOICES,
        index=tools.CHOICES.index(tools.usual(found)),
        key=f"proof-tool-{found.name}",
        persist_state="session",
        width=280,
    )
    if label == tools.SWEEP:
        try:
            sweep = tools.proof_sweep(found, proof, built)
        except DraftworthError as error:
            st.info(plain_md(str(error)))
            return
        command_blocks.sweep(sweep, found, "proof", show_files=True)
        return
    made: list[Command] = []
    for arm in proof.arms:
        try:
            steps = tools.proof_steps(found, proof, arm.name, label, built)
        except DraftworthError as error:
            st.info(plain_md(str(error)))
            continue
        command_blocks.steps(steps)
        made += steps
    command_blocks.beside(found, label, made)
