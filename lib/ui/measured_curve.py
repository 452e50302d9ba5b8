"""What was measured over load: one recorded quantity at a time, goodput at the SLO in hand."""

import streamlit as st

from lib.evidence.competing import GOODPUT
from lib.evidence.findings import Findings
from lib.report.load_figures import MEASURED, Measured, measured_figure, recorded, runs_by_arm
from lib.report.tables import measured_table
from lib.run import Run, Slo, distinct
from lib.ui import protocol, study
from lib.ui.figure import chart, mode


def draw(found: Findings, slo: Slo | None) -> None:
    """The control, the figure, and what the study has not recorded."""
    runs = [r for rs in runs_by_arm(found).values() for r in rs]
    on_goodput = found.metric.name == GOODPUT
    counted = {} if on_goodput else study.goodput(found.study, runs, slo)
    values = {"goodput_rps": counted} if counted else {}

    has = {m.label: m for m in MEASURED if _stated(runs, m, values.get(m.attribute))}
    missing = [m.label for m in MEASURED if m.label not in has]
    if not has:
        st.caption("This study records ratios only: there is no measured curve to draw.")
        return
    own_first = [m.label for m in has.values() if on_goodput and m.attribute == "goodput_rps"]
    chosen = st.segmented_control(
        "Measured over load",
        list(has),
        default=next(iter([*own_first, *has])),
        key="measured-goodput" if own_first else "measured",
        persist_state="session",
    )
    what = has.get(chosen or "") or next(iter(has.values()))
    own = values.get(what.attribute)
    title = f"{what.label} over load"
    if what.attribute == "goodput_rps":
        recorded_at = "; ".join(distinct(r.slo for r in runs)) or "SLO not recorded"
        title += f", {slo.per_request if slo and (own or on_goodput) else recorded_at}"
    chart(
        "measured-curve",
        title,
        measured_figure(found, what, mode(), own),
        f"{what.label} in {what.unit} over load, for off and each arm.",
        lambda: measured_table(found, what, own),
    )
    protocol.caption(found, again=True)
    if missing:
        st.caption(f"Not recorded in this study: {', '.join(missing)}.")


def _stated(runs: list[Run], what: Measured, values: dict[str, float] | None) -> bool:
    return any(recorded(r, what, values) is not None for r in runs)
