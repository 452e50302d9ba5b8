"""What is drawn of an acceptance: numbers, figures, the table, the traffic mix, its neighbours."""

import hashlib
from collections.abc import Sequence

import streamlit as st

from lib.evidence.acceptance import Acceptance
from lib.evidence.acceptance_groups import Group, depends_on_load
from lib.report import acceptance_figures as figures
from lib.report import acceptance_text as text
from lib.report.format import multiplier, plain_md
from lib.report.split_text import split_lines
from lib.ui import carried, chips, navigation
from lib.ui.figure import chart, csv_button, mode

CARRIED = "alpha carried"


def metrics(found: Acceptance, choice: text.Choice | None) -> None:
    """The numbers that sources confuse, side by side."""
    with st.container(key="metrics"):
        st.metric("Tokens a round τ", f"{found.tau.value:.3f}")
        st.metric("(τ − 1) / γ", "–" if found.rate is None else f"{found.rate:.3f}")
        st.metric("α", "–" if found.alpha is None else f"{found.alpha.value:.3f}")
        st.metric("Draft length γ", found.gamma or "varies")
        st.metric("Best γ at your c", "–" if choice is None else choice.gamma)
        st.metric("S at best γ", "–" if choice is None else multiplier(choice.speedup))


def charts(found: Acceptance, c: float, v: float) -> None:
    """By position, tokens a round and speedup over draft length, as far as they are known."""
    alt = figures.alt_texts(found, c, v)
    drawn = [("length", "Tokens a round over draft length", figures.length_figure(found, mode()))]
    if figures.has_positions(found):
        by_position = figures.position_figure(found, mode())
        drawn.insert(0, ("position", "Acceptance by position", by_position))
    if (speedup := figures.speedup_figure(found, c, v, mode())) is not None:
        drawn.append(("speedup", "Speedup at your c", speedup))
    columns = {
        "position": lambda: figures.by_position(found),
        "length": lambda: figures.over_gamma(found),
        "speedup": lambda: figures.speedup_over_gamma(found, c, v),
    }
    places = [*st.columns(2, gap="medium"), st.container()]
    for (key, title, figure), place in zip(drawn, places, strict=False):
        with place:
            chart(f"acceptance-{key}", title, figure, alt[key], columns[key])


def judgement(found: Acceptance, choice: text.Choice | None) -> None:
    """Best gamma with its regret and what-if, then what to know about the numbers."""
    for line in choice.lines if choice else ():
        st.markdown(plain_md(line))
    for line in (*text.notes(found), text.decay_text(found)):
        if line:
            st.caption(plain_md(line))


def table(found: Acceptance) -> None:
    """What the source called it and what it comes to."""
    st.subheader("What the source called it", anchor=False)
    st.dataframe(
        text.given_table(found),
        hide_index=True,
        placeholder="–",
        alt="Each number of the source with the tokens a round, the rate and the alpha it means.",
    )
    csv_button("acceptance-names", lambda: text.given_table(found))


def mix(domains: Sequence[Group]) -> None:
    """Sliders for the share of output tokens by domain, and tau of that traffic."""
    shares = text.measured_shares(domains)
    places = repr([d.place for d in domains]).encode("utf-8", "replace")
    digest = hashlib.sha256(places).hexdigest()[:8]
    st.markdown("**Traffic mix**, share of your output tokens; it starts as measured.")
    weights = {}
    for i, (name, share) in enumerate(shares.items()):
        label = plain_md(name or "not named")
        weights[name] = float(
            st.slider(label, 0, 100, share, key=f"mix-{digest}-{i}", format="%d %%")
        )
    if not sum(weights.values()):
        st.caption("Give at least one domain a share.")
        return
    blended = text.mix(domains, weights)
    st.metric("τ of this mix", f"{blended.value:.3f}")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        chips.basis_chip(blended.basis)
        chips.how(blended, {}, f"mix-{digest}-how")


def use_in_screen(found: Acceptance) -> None:
    """Fill alpha and gamma of the screen page, with where they come from."""
    reason = text.why_not_in_screen(found)
    alpha = round(found.alpha.value, 4) if found.alpha else None

    def put() -> None:
        carried.carry(found.basis, text.screen_source(found), alpha=alpha, gamma=found.gamma)
        st.session_state[CARRIED] = True

    st.button("Use this α in screen", on_click=put, disabled=bool(reason), key="use-alpha")
    if reason:
        st.caption(plain_md(reason))
    elif st.session_state.pop(CARRIED, False):
        st.page_link(
            navigation.pages()["screen"],
            label=f"Screen now has α = {alpha:.3f}, γ = {found.gamma}: open it",
        )


def beside(known: Sequence[Group]) -> None:
    """The other groups of the study, what looks wrong among them, and a change split in two."""
    for line in (*depends_on_load(known), *text.share_lines(known)):
        st.warning(plain_md(line), icon=":material/info:")
    every = st.expander("Every group of this study", key="acceptance-every", on_change="rerun")
    if every.open:
        with every:
            st.dataframe(
                text.groups_table(known),
                hide_index=True,
                placeholder="–",
                alt="Acceptance of every group of runs of this study.",
            )
            csv_button("acceptance-groups", lambda: text.groups_table(known))
    if len(known) < 2:
        return
    two = st.expander(
        "Two of them: acceptance or step time?", key="acceptance-two", on_change="rerun"
    )
    if two.open:
        with two:
            _split(known)


def _split(known: Sequence[Group]) -> None:
    labels = {f"{i}: {g.label}": g for i, g in enumerate(known, 1)}
    picked = [
        labels[st.selectbox(name, list(labels), index=i, key=f"split-{name}")]
        for i, name in enumerate(("From", "To"))
    ]
    for line in split_lines(*picked):
        st.markdown(plain_md(line))
