"""What lies under the price in hand, tab by tab; only the open one is computed."""

from collections.abc import Callable

import streamlit as st

from lib.evidence.findings import Findings
from lib.money.case import Case, case_of
from lib.money.pricing import PricedPair
from lib.ui import price_api, price_bases, price_good, price_moves, price_shares, study

PARTS: dict[str, Callable[[Findings, Case], None]] = {
    "What moves it": price_moves.draw,
    "Break-evens": price_moves.break_evens,
    "Token basis": price_bases.draw,
    "Goodput and energy": price_good.draw,
    "Against an API": price_api.draw,
    "Training and charge-back": price_shares.draw,
}


def case_in_hand(found: Findings, pair: PricedPair | None) -> Case | None:
    """The pair that the answer rests on as a function of its inputs."""
    if pair is None:
        return None
    arm = next(a for a in found.arms if a.label == pair.on.arm)
    return case_of(arm, pair, study.rate())


def draw(found: Findings, case: Case | None) -> None:
    """The tabs of the pair that the answer rests on; they change with every slider."""
    if case is None:
        st.caption(
            f"With a price at the operating load: {', '.join(PARTS).lower().replace('api', 'API')}."
        )
        return
    tabs = st.tabs(list(PARTS), key="price-tabs", on_change="rerun")
    for tab, part in zip(tabs, PARTS.values(), strict=True):
        if tab.open:
            with tab:
                part(found, case)
