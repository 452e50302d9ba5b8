"""Where the $/GPU-h comes from: a listed rate, a rate of one's own, or owned hardware."""

from collections.abc import Sequence
from datetime import date

import streamlit as st

from lib.errors import InputError
from lib.money.rates import STALE_DAYS, GpuRate, PriceBook, listed_gpu
from lib.report import rates as text
from lib.report.format import money, plain_md
from lib.ui import chosen_rate, own_rates, owned_hardware, study
from lib.ui.figure import csv_button

FILTERS = {"gpu": "GPU", "provider": "Provider", "term": "Term"}
REFUSED = "rate refused"


def draw() -> None:
    """The section of the price page; filled when it is opened."""
    box = st.expander("Where does the $/GPU-h come from?", key="price-book", on_change="rerun")
    if not box.open:
        return
    with box:
        st.caption(
            "Take a rate from the book, keep rates of your own, or work it out for hardware that "
            "you own. Or type it: the slider above takes any price, labelled assumed."
        )
        listed, own, owned = st.tabs(["Listed rates", "Your own rates", "Owned hardware"])
        book = chosen_rate.book()
        with listed:
            _listed(book)
        with own:
            own_rates.draw(book)
        with owned:
            owned_hardware.draw()


def _listed(book: PriceBook) -> None:
    if refused := st.session_state.pop(REFUSED, ""):
        st.error(plain_md(refused))
    on = chosen_rate.priced_on()
    with st.container(horizontal=True, key="rate-filters"):
        asked = {key: _filter(key, book.in_force(on)) for key in FILTERS}
        _pricing_date(on)
    found = book.find(on, **asked)
    if not found:
        st.info(plain_md(text.missing(book, on, list(asked.values()))), icon=":material/payments:")
        return
    by_id = {r.id: r for r in found}
    if st.session_state.get("rate-pick") not in by_id:
        st.session_state["rate-pick"] = None
    picked = st.selectbox(
        f"Rate, one of {len(found)}",
        list(by_id),
        index=None,
        format_func=lambda key: text.label(by_id[key], on),
        placeholder="choose a rate",
        key="rate-pick",
        help=f"Stale: older than {STALE_DAYS} days at the pricing date.",
    )
    if picked is not None:
        _picked(by_id[picked], on)
    st.dataframe(
        text.rate_table(found, on),
        hide_index=True,
        height=280,
        placeholder="–",
        column_config={"$ per GPU-hour": st.column_config.NumberColumn(format="%.4g")},
        alt="The rates of the price book that match, with date and source.",
    )
    csv_button("rates", lambda: text.rate_table(found, on))


def _filter(key: str, rates: Sequence[GpuRate]) -> str | None:
    options = sorted({getattr(r, key) for r in rates})
    widget = f"rate-{key}"
    if widget not in st.session_state and key == "gpu":
        st.session_state[widget] = _recorded(options)
    if st.session_state.get(widget) not in options:
        st.session_state[widget] = None
    return st.selectbox(FILTERS[key], options, index=None, placeholder="any", key=widget)


def _recorded(listed: Sequence[str]) -> str | None:
    """The GPU that the study's runs record, where the book has it."""
    found = study.current()
    recorded = {r.gpu for r in found.runs if r.gpu} if found else set()
    return listed_gpu(recorded.pop(), listed) if len(recorded) == 1 else None


def _pricing_date(on: date) -> None:
    if st.session_state.get("rate-date") is None:
        st.session_state["rate-date"] = on
    st.date_input(
        "Priced on",
        key="rate-date",
        format="YYYY-MM-DD",
        on_change=lambda: chosen_rate.set_priced_on(st.session_state["rate-date"]),
        help="Rates that were in force on this day are offered, and ages count to it.",
    )


def _picked(rate: GpuRate, on: date) -> None:
    if stale := rate.stale_text(on):
        st.warning(stale.capitalize() + ".", icon=":material/history:")
    st.caption(plain_md(text.detail(rate)))
    price = money(rate.usd_per_gpu_hour).replace("$", "\\$")
    st.button(f"Use {price} per GPU-hour", key="rate-use", on_click=_use, args=(rate,))


def _use(rate: GpuRate) -> None:
    try:
        chosen_rate.choose(rate)
    except InputError as error:
        st.session_state[REFUSED] = str(error)
