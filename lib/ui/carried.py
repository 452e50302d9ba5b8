"""Inputs that another page filled: their source stands beside them until the value is changed."""

from collections.abc import Mapping
from dataclasses import replace

import streamlit as st

from lib.estimate import Basis, Estimate
from lib.ui import inputs
from lib.ui.inputs import Value

CARRIED = "inputs carried"
SYMBOLS = {"alpha": "α", "gamma": "γ", "c": "c", "verify_cost": "v"}


def carry(basis: Basis, source: str, **values: Value) -> None:
    """Set inputs from another page's finding and keep its source. InputError if outside."""
    inputs.put(**values)
    kept = st.session_state.setdefault(CARRIED, {})
    for key in values:
        kept[key] = (inputs.value(key), inputs.revision(key), basis, source)


def _kept() -> dict[str, tuple[Basis, str]]:
    """What still stands as it was carried: neither dragged nor set by anything else since."""
    found: dict[str, tuple[Value, int, Basis, str]] = st.session_state.get(CARRIED, {})
    return {
        key: (basis, source)
        for key, (value, revision, basis, source) in found.items()
        if (inputs.value(key), inputs.revision(key)) == (value, revision)
    }


def origin(key: str) -> tuple[Basis, str] | None:
    """Basis and source of an input that still stands as it was carried; else None."""
    return _kept().get(key)


def over(rests_on: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """The estimates of a page's inputs, with the basis and source of those that were carried."""
    shown = dict(rests_on)
    for key, (basis, source) in _kept().items():
        symbol = SYMBOLS.get(key, key)
        if symbol in shown:
            shown[symbol] = replace(shown[symbol], basis=basis, source=source)
    return shown


def lines() -> list[str]:
    """`α, γ from acceptance page: eagle3:3, 2 runs (measured)`, one a source; plain text.

    Of the screen's inputs: those that have a symbol.
    """
    by_source: dict[tuple[str, Basis], list[str]] = {}
    for key, (basis, source) in _kept().items():
        if key in SYMBOLS:
            by_source.setdefault((source, basis), []).append(SYMBOLS[key])
    return [
        f"{', '.join(keys)} from {source} ({basis})" for (source, basis), keys in by_source.items()
    ]
