"""The menu as data: one row a page, drawn in three groups."""

from dataclasses import dataclass
from typing import Literal

import streamlit as st
from streamlit.navigation.page import Page

from lib.settings import ROOT

Group = Literal["Answer", "Evidence", "Operate"]
GROUPS: tuple[Group, ...] = ("Answer", "Evidence", "Operate")


@dataclass(frozen=True)
class Row:
    """A page: its name is the file in pages/ and the address."""

    name: str
    group: Group
    title: str
    icon: str


MENU: tuple[Row, ...] = (
    Row("decision", "Answer", "Decision", ":material/gavel:"),
    Row("price", "Answer", "Price", ":material/payments:"),
    Row("compare", "Evidence", "Compare", ":material/compare_arrows:"),
    Row("acceptance", "Evidence", "Acceptance", ":material/percent:"),
    Row("screen", "Evidence", "Screen", ":material/function:"),
    Row("probe", "Evidence", "Probe", ":material/speed:"),
    Row("results", "Evidence", "Results", ":material/database:"),
    Row("fleet", "Operate", "Fleet", ":material/dns:"),
    Row("monitor", "Operate", "Monitor", ":material/monitor_heart:"),
)


def pages() -> dict[str, Page]:
    """The pages by name. Objects, so that links need no paths relative to the shell."""
    return {
        row.name: st.Page(
            ROOT / "pages" / f"{row.name}.py", title=row.title, icon=row.icon, url_path=row.name
        )
        for row in MENU
    }


def choose() -> Page:
    """The page that the address names. `/` forwards to the first of the menu, link and all.

    The default page of st.navigation answers at `/` only; with a landing in that place every
    page keeps an address of its own.
    """
    found = pages()
    landing = st.Page(_land, title="Draftworth", default=True, visibility="hidden")
    chosen = st.navigation([landing, *found.values()], position="hidden")
    if chosen is landing:
        st.switch_page(next(iter(found.values())), query_params=st.query_params.to_dict())
    return chosen


def _land() -> None:
    """Never drawn: `choose` forwards."""


def draw_menu() -> None:
    """The links of the sidebar, group by group."""
    found = pages()
    for group in GROUPS:
        rows = [r for r in MENU if r.group == group]
        if rows:
            with st.container(key=f"menu-{group.lower()}", gap=None):
                st.caption(group)
                for row in rows:
                    st.page_link(found[row.name], width="stretch")
