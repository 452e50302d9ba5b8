"""The probes of the store, shared by the pages; c and v of one carried to screen."""

from collections.abc import Sequence
from contextlib import suppress

import streamlit as st

from lib.errors import InputError, StoreError
from lib.evidence.probe_match import basis, on_cpu, source
from lib.probe.result import Probe, from_json, to_json
from lib.report.format import significant
from lib.report.probe_text import due_line
from lib.ui import carried, inputs, study

SHOWN = "probe shown"
DIGITS = 4


def all_probes() -> tuple[Probe, ...]:
    """The stored probes, the one taken last first; none while the store cannot be read."""
    if study.store() is None:
        return ()
    try:
        return _stored()
    except StoreError:
        return ()


# Probes are frozen, and no other process can write to an open store.
@st.cache_resource(show_spinner=False)
def _stored() -> tuple[Probe, ...]:
    found = []
    for kept in study.open_store().probes():
        with suppress(InputError):  # written by a newer version: that one shows it
            found.append(from_json(kept.document))
    return tuple(found)


def keep(probe: Probe) -> bool:
    """Store a probe; False where it is known already. Raises StoreError, InputError."""
    new = study.open_store().add_probe(
        to_json(probe).decode(),
        probe_id=probe.id,
        taken_at=probe.taken_at,
        gpu=probe.setup.gpu,
        target=probe.setup.target,
        draft=probe.setup.draft,
    )
    _stored.clear()
    return new


def forget(probe: Probe) -> None:
    """Delete a probe from the store. Raises StoreError, InputError."""
    study.open_store().delete_probe(probe.id)
    _stored.clear()


def choose(probe_id: str | None) -> None:
    """Show this probe from now on; None shows the `first`."""
    st.session_state[SHOWN] = probe_id


def shown(probes: Sequence[Probe]) -> Probe | None:
    """The probe that was chosen or that the link names, else the `first`; the link follows."""
    if SHOWN not in st.session_state:
        st.session_state[SHOWN] = st.query_params.get("probe")
    wanted = st.session_state[SHOWN]
    found = next((p for p in probes if p.id == wanted), None)
    if found is None:
        st.session_state[SHOWN] = None
        st.query_params.pop("probe", None)
        return first(probes)
    if st.query_params.get("probe") != found.id:
        st.query_params["probe"] = found.id
    return found


def first(probes: Sequence[Probe]) -> Probe | None:
    """The newest that is more than a check on a CPU, else the newest."""
    return next((p for p in probes if not on_cpu(p)), next(iter(probes), None))


def why_not_in_screen(probe: Probe) -> str:
    """Why c cannot stand on the screen page; empty where it can."""
    most = inputs.table()["c"].max
    if probe.c.value > most:
        return f"c = {significant(probe.c.value)} is above {most:g}: no draft pays."
    return ""


def use_in_screen(probe: Probe) -> None:
    """Fill c of the screen page and, where it was measured at that γ, v; with their source."""
    c = float(f"{probe.c.value:.{DIGITS}g}")
    carried.carry(basis(probe), source(probe), c=c, verify_cost=verify_cost(probe))


def verify_cost(probe: Probe) -> float | None:
    """v at the screen page's γ as its input takes it; None where it was not measured there.

    Below 1 it is noise: no pass over more tokens costs less than one over fewer.
    """
    row, gamma = inputs.table()["verify_cost"], int(inputs.value("gamma") or 1)
    v = probe.v_at(gamma)
    if v is None or v.value > row.max:
        return None
    return max(row.min, float(f"{v.value:.{DIGITS}g}"))


def screen_lines() -> list[str]:
    """What must be said where the screen page's c or v came from a probe; plain text."""
    c, v = carried.origin("c"), carried.origin("verify_cost")
    by_source = {source(p): p for p in all_probes()} if c or v else {}
    lines = []
    if c and (probe := by_source.get(c[1])) is not None:
        found = study.current()
        if line := due_line(probe, found.runs if found else ()):
            lines.append(line)
    if v and (probe := by_source.get(v[1])) is not None:
        gamma, here = inputs.value("gamma"), verify_cost(probe)
        if here is None:
            lines.append(f"v was not measured at γ = {gamma}: it is of another draft length.")
        elif here != inputs.value("verify_cost"):
            lines.append(f"v is of another draft length; at γ = {gamma} the probe says {here:g}.")
    return lines
