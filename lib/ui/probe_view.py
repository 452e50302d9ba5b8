"""One probe in full: figures, what bounds it, what it holds for, and what to do with it."""

import streamlit as st

from lib.probe.result import Probe, to_json
from lib.report import probe_figures as figures
from lib.report import probe_text as text
from lib.report.format import plain_md
from lib.report.style import Mode
from lib.ui import chips, inputs, navigation, probed
from lib.ui.figure import chart, mode

STEPS: dict[figures.Step, str] = {"draft": "One draft step, T_D", "target": "One target step, T_T"}


def answer(probe: Probe) -> None:
    """c as the page's answer, with its interval, basis and setup."""
    sentence, note = text.sentence(probe), text.note(probe)
    chips.answer(plain_md(sentence), text.estimate(probe), note=plain_md(note))


def use(probe: Probe) -> None:
    """The button that carries c, and v apart from it, to screen."""
    reason = probed.why_not_in_screen(probe)
    if st.button(
        "Use in screen",
        key="use-c",
        type="primary",
        icon=":material/function:",
        disabled=bool(reason),
    ):
        probed.use_in_screen(probe)
        # The switch forgets the widgets of the sidebar; the link brings them back.
        link = {k: v for k, v in st.query_params.to_dict().items() if k != "probe"}
        st.switch_page(navigation.pages()["screen"], query_params=link)
    if reason:
        st.caption(plain_md(reason))
    elif probe.v and probed.verify_cost(probe) is None:
        st.caption(plain_md(f"v was not measured at the screen's γ = {inputs.value('gamma')}."))


def notes(probe: Probe) -> None:
    """Warnings of the run, then c beside its bound and where verifying stops being free."""
    if said := text.warnings(probe):
        st.warning("  \n".join(map(plain_md, said)), icon=":material/warning:")
    for line in (*text.verify_lines(probe), text.bound_line(probe), text.energy_line(probe)):
        if line:
            st.markdown(plain_md(line))


def charts(probe: Probe) -> None:
    """How the times spread, and v over the tokens of a pass."""
    drawn = [step for step in STEPS if figures.samples(probe, step)]
    for step, place in zip(drawn, st.columns(2, gap="medium"), strict=False):
        with place:
            _times(probe, step, mode())
    if probe.v:
        chart(
            "probe-verify",
            "Verify cost v over the tokens of a pass",
            figures.verify_figure(probe, mode()),
            figures.verify_alt(probe),
            lambda: figures.verify_columns(probe),
        )


def _times(probe: Probe, step: figures.Step, colors: Mode) -> None:
    chart(
        f"probe-{step}",
        STEPS[step],
        figures.step_figure(probe, step, colors),
        figures.step_alt(probe, step),
        lambda: figures.sample_columns(probe),
    )


def details(probe: Probe) -> None:
    """Clocks and neighbours during the run, and the setup key."""
    if probe.conditions:
        st.subheader("The GPU during the run", anchor=False)
        st.dataframe(
            text.conditions_table(probe),
            hide_index=True,
            placeholder="–",
            alt="Clocks, power, temperature, load and other processes before, during and after.",
        )
    with st.expander("Setup key: what this holds for"):
        st.caption(text.MEANING)
        st.dataframe(text.setup_table(probe), hide_index=True, alt="The setup of the probe.")


def download(probe: Probe) -> None:
    """The document, as the command line prints it."""
    st.download_button(
        "JSON",
        to_json(probe),
        f"probe-{probe.id[:8]}.json",
        "application/json",
        key="save-probe",
        icon=":material/download:",
        on_click="ignore",
    )
