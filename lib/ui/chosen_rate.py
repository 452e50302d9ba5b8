"""The $/GPU-h in hand: which rate it is, at which pricing date, and how a link says so."""

import math
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, date, datetime

import streamlit as st

from lib.errors import StoreError
from lib.estimate import Basis, Estimate
from lib.money.rates import GpuRate, PriceBook
from lib.money.rates import book as price_book
from lib.report.format import plain_md
from lib.ui import carried, inputs, study

KEY = "usd_per_gpu_hour"
LINKED, PRICED_ON = "rate", "priced_on"
CHOSEN, OPENED = "rate chosen", "rate opened"
RESTS_ON = (
    *(KEY, "gpu_count", "utilization", "extra_usd_per_hour"),
    *("drafter_gpus", "drafter_usd_per_gpu_hour", "on_utilization"),
)


def priced_on() -> date:
    """The pricing date: as set, else today in UTC."""
    found: date | None = st.session_state.get(PRICED_ON)
    return found or today()


def today() -> date:
    """Today in UTC."""
    return datetime.now(UTC).date()


def set_priced_on(day: date | None) -> None:
    """Price on this day from now on; None is today. The rate in hand keeps, its age is new."""
    st.session_state[PRICED_ON] = day
    if rate := _chosen():
        choose(rate)


def book() -> PriceBook:
    """Published rates and, while the store can be read, one's own."""
    opened = study.store()
    if opened is not None:
        with suppress(StoreError):
            return price_book(opened.rates())
    return price_book()


def begin() -> None:
    """First thing of every page run, after the inputs: take the link once, then keep it."""
    if not st.session_state.get(OPENED):
        st.session_state[OPENED] = True
        _read_link()
    rate, day = _chosen(), st.session_state.get(PRICED_ON)
    _write(LINKED, rate.id if rate else None)
    _write(PRICED_ON, day.isoformat() if day else None)


def reopen(rate_id: str | None, day: str | None) -> None:
    """Take this rate and pricing date at the next run, as from a link; None is none."""
    _write(LINKED, rate_id)
    _write(PRICED_ON, day)
    st.session_state[CHOSEN] = st.session_state[PRICED_ON] = None
    st.session_state[OPENED] = False


def _read_link() -> None:
    with suppress(ValueError):
        st.session_state[PRICED_ON] = date.fromisoformat(st.query_params.get(PRICED_ON, ""))
    named, typed = st.query_params.get(LINKED), inputs.value(KEY)
    if not named or typed is None:
        return
    found = book().by_id(named)
    if found is not None and math.isclose(found.as_typed, typed, rel_tol=1e-9):
        choose(found)


def _write(name: str, text: str | None) -> None:
    if text is None:
        st.query_params.pop(name, None)
    elif st.query_params.get(name) != text:
        st.query_params[name] = text


def choose(rate: GpuRate) -> None:
    """Fill $/GPU-h with a rate of the book; its source stays beside it. InputError if outside."""
    fill(rate.basis, rate.cited(priced_on()), rate.usd_per_gpu_hour)
    st.session_state[CHOSEN] = rate


def fill(basis: Basis, source: str, usd: float) -> None:
    """Fill $/GPU-h from elsewhere, with its source. InputError if outside its range."""
    carried.carry(basis, source, **{KEY: float(f"{usd:.6g}")})
    st.session_state[CHOSEN] = None


def caption() -> None:
    """Where the $/GPU-h comes from, for what rests on it; nothing while it is typed or missing."""
    found, rate = carried.origin(KEY), _chosen()
    if found is None:
        return
    badge = ":orange-badge[stale] " if rate and rate.stale(priced_on()) else ""
    st.caption(f"{badge}$/GPU-h: {plain_md(found[1])}.")


def _chosen() -> GpuRate | None:
    """The rate of the book that still stands as it was chosen."""
    rate: GpuRate | None = st.session_state.get(CHOSEN)
    return rate if carried.origin(KEY) else None


def effective() -> str:
    """Since when the rate of the book that stands is in force, as YYYY-MM-DD; empty without one."""
    rate = _chosen()
    return rate.effective_date.isoformat() if rate else ""


def rests_on(keys: Iterable[str] = RESTS_ON) -> dict[str, Estimate]:
    """What a price rests on beside throughput: the $/GPU-h with its source, the rest as typed."""
    table, found = inputs.table(), {}
    for key in keys:
        row, value = table[key], inputs.value(key)
        if value is not None:
            basis, source = carried.origin(key) or (Basis.ASSUMED, "as typed")
            found[row.label] = Estimate(value * row.shown_scale, row.unit, basis, source)
    return found
