"""Price of the tokens that met the service level, and energy, as the runs recorded them."""

import streamlit as st

from lib.assumptions import table
from lib.evidence.findings import Findings
from lib.money.case import Case
from lib.money.energy import added, energy
from lib.money.good_tokens import good_price, good_share
from lib.report import price_tables as text
from lib.report.format import plain_md
from lib.run import OFF
from lib.ui import inputs, study
from lib.ui.figure import csv_button

KWH, MEMORY = "owned_usd_per_kwh", "gpu_gib"


def draw(found: Findings, case: Case) -> None:
    """The tab."""
    arms = {OFF: (case.pair.off, case.off_runs), case.pair.on.arm: (case.pair.on, case.on_runs)}
    st.subheader("Tokens that met the SLO", anchor=False)
    slo = study.slo()
    counted = study.goodput(found.study, (*case.off_runs, *case.on_runs), slo)
    for name, (priced, runs) in arms.items():
        share = good_share(runs, slo, counted)
        price = good_price(priced, share)
        st.markdown(plain_md(text.good_sentence(name, price, share, named=slo is not None)))
    st.subheader("Energy and memory", anchor=False)
    with st.container(horizontal=True):
        usd_per_kwh, gib = _field(KWH), _field(MEMORY)
    used = {name: energy(runs, found.study.basis, usd_per_kwh) for name, (_, runs) in arms.items()}
    rows = text.energy_table(used)
    st.dataframe(
        rows, hide_index=True, placeholder="–", alt="Energy per million output tokens by arm."
    )
    csv_button("energy", lambda: rows)
    gpus = case.off_gpus or case.off_runs[0].gpu_count
    memory = None if gib is None or not gpus else gib * gpus
    extra = added(case.off_runs, case.on_runs, case.hardware_usd[0], memory, usd_per_kwh)
    st.markdown(plain_md(text.added_sentence(extra)))
    st.caption(
        "Electricity is power only: a rented GPU's price holds it already, and without the "
        "hardware it cannot be held against a price or an API."
    )


def _field(key: str) -> float | None:
    """An input that has its slider elsewhere, as a field here: one value, in the link."""
    row, field, value = table()[key], f"{key} of the runs", inputs.value(key)
    if st.session_state.get(field) != value:
        st.session_state[field] = value
    st.number_input(
        f"{row.label}, {row.unit}",
        min_value=row.min,
        max_value=row.max,
        value=None,
        placeholder="not typed",
        key=field,
        on_change=lambda: inputs.put(**{key: st.session_state[field]}),
        help=row.help,
    )
    return None if value is None else float(value)
