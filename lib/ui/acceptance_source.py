"""Three ways to say what was accepted: runs of the study in hand, counters, a published drafter."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from lib.errors import DraftworthError
from lib.evidence import acceptance_groups as groups
from lib.evidence import acceptance_paste as paste
from lib.evidence import acceptance_presets as presets
from lib.evidence.acceptance import Acceptance, of_name
from lib.evidence.acceptance_groups import Group
from lib.evidence.acceptance_requests import ByRun
from lib.report.format import plain_md
from lib.run import Study
from lib.theory.acceptance_names import NAMES
from lib.ui import study

WAYS = ("Study", "Counters", "Published")
POOLED = "all, pooled"
COUNTERS = ("Numbers", "Text", "Quoted value")
MOST = 10**15
FIRST = "kimi-k2.5-nvfp4"  # EAGLE-3: a chain, whose cost grows with γ
STARTS_AT = "3"  # the draft length at which a published curve is first read
PLACEHOLDER = (
    "what /metrics answers (one scrape, or two: before and after), a log's lines, "
    "acceptance_histogram values such as [39, 1, 0, 3], or one result file"
)


@dataclass(frozen=True)
class Chosen:
    """What is looked at: its acceptance, the domains it pools, all groups beside it, a citation."""

    acceptance: Acceptance
    domains: tuple[Group, ...] = ()
    beside: tuple[Group, ...] = ()
    caption: str = ""
    url: str = ""


def choose() -> Chosen | None:
    """Draw the controls; what they choose, or None with what is needed on the page."""
    found = study.current()
    known = _known(found) if found else None
    way = st.segmented_control(
        "Where from",
        WAYS,
        default=WAYS[0] if known and known.groups else WAYS[2],
        key="acceptance_way",
        bind="query-params",
    )
    try:
        if way == WAYS[1]:
            return _counters()
        if way == WAYS[0]:
            return _study(known)
        return _published()
    except DraftworthError as error:
        st.info(plain_md(str(error)), icon=":material/info:")
        return None


def cite(chosen: Chosen) -> None:
    """Where it comes from: what was measured and the citation."""
    link = f" · [source]({chosen.url})" if chosen.url else ""  # ours, never from a file
    if chosen.caption or link:
        st.caption(plain_md(chosen.caption) + link)


@dataclass(frozen=True)
class _Known:
    """A study's groups, and what was pooled of them so far: a drag redraws, it counts nothing."""

    study: Study
    requests: ByRun
    groups: tuple[Group, ...]
    pooled: dict[str, Acceptance | None]


def _known(found: Study) -> _Known:
    """The groups of a study, worked out once while it stays the same object."""
    kept: _Known | None = st.session_state.get("acceptance groups")
    if kept is None or kept.study is not found:
        requests = study.request_acceptance(found)
        kept = _Known(found, requests, groups.groups(found, requests), {})
        st.session_state["acceptance groups"] = kept
    return kept


def _study(found: _Known | None) -> Chosen | None:
    if found is None or not found.groups:
        st.info(
            "No run of this study states acceptance. Import a result with the server's counters, "
            "paste them, or look at a published drafter.",
            icon=":material/info:",
        )
        return None
    known = found.groups
    by_label, sweeps = groups.series(known), groups.sweeps(known)
    options = [*by_label, *(s for s in sweeps if s not in by_label)]
    label = _select("Runs", options, "acceptance_runs")
    if label not in by_label:
        return Chosen(sweeps[label], beside=known)
    domains = by_label[label]
    if len(domains) == 1:
        return Chosen(domains[0].acceptance, beside=known)
    names = [d.place.domain or "not named" for d in domains]
    name = _select("Domain", [POOLED, *names], "acceptance_domain")
    if name != POOLED:
        return Chosen(domains[names.index(name)].acceptance, beside=known)
    trusted = [d for d in domains if not d.acceptance.untrusted] or list(domains)
    if label not in found.pooled:
        runs = [r for d in trusted for r in d.runs]
        found.pooled[label] = groups.pooled(runs, found.study.basis, label, found.requests)
    whole = found.pooled[label]
    return None if whole is None else Chosen(whole, tuple(trusted), known)


def _select(label: str, options: Sequence[str], key: str, usual: str = "") -> str:
    """A choice that the link carries; it starts over where the options no longer hold it."""
    if st.session_state.get(key) not in options:
        asked = st.query_params.get(key)
        starts = next((o for o in (asked, usual) if o in options), options[0])
        st.session_state[key] = starts
    st.selectbox(label, list(options), key=key, bind="query-params", disabled=len(options) < 2)
    return str(st.session_state[key])


def _counters() -> Chosen | None:
    kind = st.segmented_control(
        "Counters as", COUNTERS, default=COUNTERS[0], key="acceptance_kind", bind="query-params"
    )
    if kind == COUNTERS[1]:
        return _pasted()
    if kind == COUNTERS[2]:
        return _quoted()
    return _numbers()


def _numbers() -> Chosen | None:
    st.caption("Totals of one window, as the server counts them. Leave out what you do not have.")
    drafts = _count("Drafts (rounds)", "drafts")
    drafted = _count("Draft tokens", "draft_tokens")
    positions = st.text_input(
        "Accepted by position",
        key="typed_positions",
        bind="query-params",
        placeholder="477 319 195",
        help="Counts, first position first. They give α with an interval.",
    )
    accepted = _count("Accepted tokens", "accepted")
    generated = _count(
        "Generated tokens", "generated", "Only where drafts are not counted, as in llama.cpp."
    )
    gamma, topk = _shape("typed")
    typed = paste.Typed(drafts, drafted, accepted, generated, gamma, positions, _method(), topk)
    if accepted is None and not positions.strip():
        st.caption("Type the accepted tokens, in total or by position.")
        return None
    return Chosen(typed.acceptance())


def _count(label: str, key: str, said: str | None = None) -> int | None:
    found = st.number_input(
        label, 0, MOST, None, 1, key=f"typed_{key}", bind="query-params", help=said
    )
    return None if found is None else int(found)


def _shape(key: str) -> tuple[int | None, int]:
    """Draft length and tree width."""
    gamma_place, topk_place = st.columns(2)
    gamma = gamma_place.number_input(
        "Draft length γ", 1, 64, None, 1, key=f"{key}_gamma", bind="query-params"
    )
    topk = topk_place.number_input(
        "Tree top-k",
        1,
        64,
        1,
        1,
        key=f"{key}_topk",
        bind="query-params",
        help="1 is a chain. Above 1 it is a tree, where α is not defined.",
    )
    return (None if gamma is None else int(gamma)), int(topk or 1)


def _method() -> str:
    return st.text_input(
        "Draft method",
        key="typed_method",
        bind="query-params",
        placeholder="eagle3, ngram, dflash, …",
        help="Says whether the context decides (n-gram) or all positions come in one pass.",
    )


def _pasted() -> Chosen | None:
    text = st.text_area(
        "Text", key="pasted_text", persist_state="session", height=180, placeholder=PLACEHOLDER
    )
    if not text.strip():
        return None
    found = _read(text)
    if len(found) == 1:
        return Chosen(found[0].acceptance, caption=found[0].label)
    labels = [f"{i}: {p.label}" for i, p in enumerate(found, 1)]
    label = _select("Which", labels, "pasted_which")
    return Chosen(found[labels.index(label)].acceptance)


@st.cache_resource(max_entries=16, show_spinner="Reading the text")
def _read(text: str) -> tuple[paste.Pasted, ...]:
    return paste.read(text)


def _quoted() -> Chosen | None:
    titles = {n.title: n for n in NAMES}
    title = _select("What it is called", list(titles), "quoted_name")
    name = titles[title]
    st.caption(plain_md(f"Read as {name.how}."))
    value = st.number_input(
        "Value" + (", %" if name.percent else ""),
        value=None,
        format="%g",
        key="quoted_value",
        bind="query-params",
    )
    gamma, topk = _shape("quoted")
    method = _method()
    if value is None:
        return None
    return Chosen(of_name(name, float(value), gamma, method.strip() or None, topk))


def _published() -> Chosen | None:
    model = _select("Model", presets.models(), "acceptance_model", FIRST)
    variants = presets.of_model(model)
    preset = variants[_select("Drafter and mode", list(variants), "acceptance_variant")]
    gammas = [str(g) for g in preset.gammas]
    gamma = int(_select("Read at draft length γ", gammas, "acceptance_gamma", STARTS_AT))
    text = ". ".join((preset.text, f"{preset.citation}, {preset.licence} licence"))
    return Chosen(preset.at(gamma), caption=text, url=preset.url)
