"""The study in hand, shared by every page: the store, the picker and what the study says."""

from collections.abc import Iterable, Mapping, Sequence

import streamlit as st

from lib.errors import DraftworthError, StoreError
from lib.evidence.competing import GOODPUT
from lib.evidence.findings import Findings, at_slo, find, load_kinds
from lib.money.pricing import Rate
from lib.money.scenario import Scenario, rate_of
from lib.report.format import load as load_text
from lib.report.format import plain_md
from lib.report.load_figures import LOAD_TITLES
from lib.report.scenario_text import kind_of
from lib.results import catalogue, published
from lib.results.findings import shorten
from lib.results.requests import RequestAcceptance
from lib.results.store import Store
from lib.run import PERCENTILES, LoadKind, Run, Slo, Study
from lib.ui import carried, inputs

MAX_SEQS = 65_536
SLO_KEYS = ("slo_ttft_ms", "slo_tpot_ms", "slo_e2e_ms")


@st.cache_resource(show_spinner=False, on_release=lambda found: found.close())
def open_store() -> Store:
    """The store, opened once a process. Raises StoreError where it cannot be."""
    return Store.open()


def store() -> Store | None:
    """The store, opened once a process; None where it cannot be: the picker says why."""
    try:
        return open_store()
    except StoreError:
        return None


def picker() -> None:
    """Sidebar: which study is in hand, and the load that the verdict is about."""
    try:
        opened: Store | None = open_store()
    except StoreError as error:
        opened = None
        st.error(plain_md(str(error)), icon=":material/lock:")
    rows = {row.name: row for row in catalogue.names(opened)}
    if st.session_state.get("study") not in rows:
        asked = st.query_params.get("study")
        st.session_state["study"] = asked if asked in rows else next(iter(rows))
        if asked is not None and asked not in rows:
            st.session_state["study missing"] = asked
            st.query_params.pop("load", None)
    if missing := st.session_state.get("study missing"):
        st.warning(f"Study {plain_md(missing)} of this link is not here: another one is shown.")
    st.selectbox(
        "Study",
        list(rows),
        format_func=lambda name: _short(rows[name].title or name),
        key="study",
        on_change=_forget,
        help="Published studies are read-only and cited; your own come first.",
    )
    # The link carries the name: a bound widget would write the title that it shows.
    if st.query_params.get("study") != st.session_state["study"]:
        st.query_params["study"] = st.session_state["study"]
    study = current()
    if study is None:
        return
    st.caption(plain_md(study.heading))
    kinds = load_kinds(study)
    if len(kinds) > 1:
        st.selectbox(
            "Kind of load",
            kinds,
            format_func=lambda kind: LOAD_TITLES[kind],
            key="load_kind",
            bind="query-params",
            help="A figure and a verdict are about one kind; curves over two are never joined.",
        )
    loads = _loads(study, load_kind(study))
    with inputs.told("load", None, _one_of(map(load_text, loads))):
        st.selectbox(
            "Operating load",
            loads,
            index=None,
            format_func=load_text,
            placeholder="not named",
            key="load",
            bind="query-params",
            help="The load that you run at. Verdicts and prices are about it; none is assumed.",
        )
    with st.expander("Service level and engine"):
        _service_fields()


def _forget() -> None:
    """What was said of one study is not said of another."""
    st.session_state["study missing"] = None
    for key, empty in (("load", None), ("stated", []), ("override", []), ("random_ok", False)):
        if key in st.session_state:
            st.session_state[key] = empty


def _said(key: str) -> frozenset[str]:
    """A bound list; before its widget is first drawn it is still in the link alone."""
    if key in st.session_state:
        return frozenset(st.session_state[key] or ())
    return frozenset(st.query_params.get_all(key))


def current() -> Study | None:
    """The study in hand."""
    name = st.session_state.get("study")
    if not name:
        return None
    try:
        return _study(name, _token(name))
    except DraftworthError as error:
        st.error(plain_md(str(error)))
        return None


def load_kind(study: Study) -> LoadKind | None:
    """The kind of load that is looked at: as chosen, else the one with the most runs."""
    kinds = load_kinds(study)
    chosen = st.session_state.get("load_kind")
    return chosen if chosen in kinds else next(iter(kinds), None)


def operating_load() -> float | None:
    """The load that the person named; None until then."""
    found = st.session_state.get("load")
    return None if found is None else float(found)


def findings(metric: str = "output_tps", *, quiet: bool = False) -> Findings | None:
    """What the study in hand says on a metric, or None with the reason on the page.

    Goodput is that of the SLO in hand.
    A `quiet` question is beside the page's own: None alone answers it.
    """
    study = current()
    if study is None:
        return None
    try:
        kind = load_kind(study)
        found = _findings(study.name, _token(study.name), metric, overrides(), kind)
        if metric != GOODPUT:
            return found
        return at_slo(found, slo(), goodput(study, study.runs, slo()))
    except DraftworthError as error:
        if not quiet:
            st.info(plain_md(str(error)), icon=":material/info:")
        return None


def findings_of(scenario: Scenario) -> Findings:
    """What a scenario's study says of its throughput. Raises DraftworthError."""
    name = scenario.study
    token = _token(name)
    kind = kind_of(scenario, _study(name, token))
    return _findings(name, token, "output_tps", scenario.overrides, kind)


def overrides() -> frozenset[str]:
    """Protocol fields whose difference the person accepts; printed wherever they matter."""
    return _said("override")


def stated() -> frozenset[str]:
    """Unrecorded protocol fields of which the person states that both arms agree."""
    return _said("stated")


def rate() -> Rate:
    """What the person pays, as typed or chosen on the price page; nothing is assumed."""
    chosen = carried.origin("usd_per_gpu_hour")
    return rate_of(inputs.value, chosen[1] if chosen else "")


def slo() -> Slo | None:
    """The service level that the person named; None while no limit is set."""
    named = Slo(
        **{key.removeprefix("slo_"): inputs.value(key) for key in SLO_KEYS},
        percentile=st.session_state.get("slo_percentile") or PERCENTILES[-1],
    )
    return named if named.limits else None


def max_num_seqs() -> int | None:
    """The engine's limit on running requests, as typed in the sidebar."""
    found = st.session_state.get("max_num_seqs")
    return None if found is None else int(found)


def _service_fields() -> None:
    """Limits of the deployment, the same on every page: none is assumed."""
    for key in SLO_KEYS:
        _limit_field(key)
    with inputs.told("slo_percentile", PERCENTILES[-1], _one_of(PERCENTILES)):
        st.selectbox(
            "Percentile of the requests",
            PERCENTILES,
            index=len(PERCENTILES) - 1,
            key="slo_percentile",
            bind="query-params",
            help="p99: 99 of 100 requests are at least this fast. A mean decides no percentile.",
        )
    with inputs.told("max_num_seqs", None, f"a whole number, 1 to {MAX_SEQS}"):
        st.number_input(
            "max_num_seqs of the engine",
            min_value=1,
            max_value=MAX_SEQS,
            value=None,
            step=1,
            placeholder="not typed",
            key="max_num_seqs",
            bind="query-params",
            help="A schedule must reach up to it.",
        )


def _limit_field(key: str) -> None:
    """A limit as a field. The value is the input's own, which the compare page's slider drags."""
    row, field, limit = inputs.table()[key], f"{key} typed", inputs.value(key)
    if st.session_state.get(field) != limit:
        st.session_state[field] = limit
    st.number_input(
        f"{row.label}, {row.unit}",
        min_value=row.min,
        max_value=row.max,
        value=None,
        placeholder="not named",
        key=field,
        on_change=lambda: inputs.put(**{key: st.session_state[field]}),
    )


def goodput(found: Study, runs: Sequence[Run], slo: Slo | None) -> dict[str, float]:
    """Good requests per second by run, counted from per-request records at the SLO."""
    if slo is None or found.read_only:
        return {}
    counts = open_store().request_counts(found.name, [r.run_id for r in runs], slo)
    seconds = {r.run_id: r.duration_s for r in runs}
    return {
        run_id: count.good / took
        for run_id, count in counts.items()
        if (took := seconds.get(run_id)) and count.total
    }


def request_acceptance(found: Study) -> Mapping[str, RequestAcceptance]:
    """Counts of drafts by request, by run id; none of a study that is not in the store."""
    return {} if found.read_only else _request_acceptance(found.name, _token(found.name))


def _token(name: str) -> str:
    """Changes whenever the study does; a read-only study never does, nor needs the store."""
    opened = store()
    return "read-only" if opened is None else catalogue.fingerprint(opened, name)


# Studies and findings are frozen, so sessions may share the objects themselves.
@st.cache_resource(max_entries=64, show_spinner="Reading the study")
def _study(name: str, token: str) -> Study:
    opened = store()
    return published.study(name) if opened is None else catalogue.study(opened, name)


@st.cache_resource(max_entries=64, show_spinner="Comparing the arms")
def _findings(
    name: str, token: str, metric: str, overridden: frozenset[str], kind: LoadKind | None
) -> Findings:
    return find(_study(name, token), metric, overridden, kind)


@st.cache_resource(max_entries=8, show_spinner="Counting drafts by request")
def _request_acceptance(name: str, token: str) -> Mapping[str, RequestAcceptance]:
    runs = _study(name, token).runs
    return open_store().request_acceptance(name, [r.run_id for r in runs])


def _one_of(options: Iterable[str]) -> str:
    listed = list(options)
    return f"one of {shorten(listed)}" if listed else "nothing here to choose"


def _loads(study: Study, kind: LoadKind | None) -> list[float]:
    runs = [r for r in study.runs if r.load_kind is kind]
    return sorted({r.offered_load for r in runs if r.offered_load is not None})


def _short(title: str, most: int = 60) -> str:
    return title if len(title) <= most else title[: most - 1] + "…"
