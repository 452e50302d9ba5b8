"""What describes the runs of a study, found once a version: columns, flags, text to search."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from lib.errors import DraftworthError
from lib.results import catalogue, checks, study_checks
from lib.results.findings import Flag
from lib.results.store import Store
from lib.run import Run, Study, distinct
from lib.ui.dropped import SAID_ELSEWHERE, common_folder, kinds
from lib.ui.run_editor import load_of

Columns = dict[str, dict[str, Any]]  # by name, then by run_id


@dataclass(frozen=True)
class Index:
    """A study's runs as the catalogue shows and searches them.

    `texts` are what a search looks into, in lower case, `codes` the flags' codes, both by run_id;
    `flags` are those of one kind together.
    """

    columns: Columns
    texts: Mapping[str, str]
    codes: Mapping[str, tuple[str, ...]]
    flags: Sequence[Sequence[Flag]]
    arms: Sequence[str]
    loads: Sequence[str]


def of(store: Store | None, found: Study) -> Index:
    """The index of a study, from the cache while the study is the same."""
    own = store is not None and not found.read_only
    token = "read-only"
    if own:
        assert store is not None
        try:
            token = catalogue.fingerprint(store, found.name)
        except DraftworthError:  # gone since the page began
            own = False
    return _build(found.name, token, found, store if own else None)


@st.cache_resource(max_entries=8, show_spinner="Checking the runs")
def _build(name: str, token: str, _found: Study, _store: Store | None) -> Index:
    runs = _found.runs
    flags = [f for r in runs for f in checks.inspect(r)]
    flags += study_checks.inspect(runs)
    names: dict[str, str] = {}
    if _store is not None:
        try:
            names = {s.sha256: s.name for s in _store.sources(name)}
            folder = common_folder(list(names.values()))
            names = {sha256: n.removeprefix(folder) for sha256, n in names.items()}
            flags += _store.flags(name)
        except DraftworthError:
            names = {}
    flags = list(dict.fromkeys(flags))
    by_run: dict[str, list[str]] = {}
    for flag in flags:
        if flag.run_id is not None and flag.code not in by_run.setdefault(flag.run_id, []):
            by_run[flag.run_id].append(flag.code)
    codes = {run_id: tuple(found) for run_id, found in by_run.items()}
    columns = _columns(runs, names, codes)
    texts = {r.run_id: _text(r, columns) for r in runs}
    return Index(
        columns,
        texts,
        codes,
        kinds(flags, SAID_ELSEWHERE[:-1]),  # what was taken from where stays to be read
        distinct(r.arm for r in runs),
        distinct(load_of(r) for r in runs),
    )


def _columns(
    runs: Sequence[Run], names: Mapping[str, str], codes: Mapping[str, Sequence[str]]
) -> Columns:
    """What describes each run, by column and run_id; columns that say nothing are left out."""
    columns: Columns = {
        "load": {r.run_id: load_of(r) for r in runs},
        "repeat": {r.run_id: r.repeat for r in runs},
        "tok/s": {r.run_id: r.output_tps for r in runs},
        "M": {r.run_id: r.multiplier for r in runs},
        **_latency(runs, "tpot"),
        **_latency(runs, "ttft"),
        "tool": {r.run_id: " ".join(distinct([r.tool, r.tool_version])) or None for r in runs},
        "file": {r.run_id: names.get(r.source_sha256 or "") for r in runs},
        "flags": {r.run_id: ", ".join(codes.get(r.run_id, ())) or None for r in runs},
    }
    return {n: c for n, c in columns.items() if any(v is not None for v in c.values())}


def _latency(runs: Sequence[Run], name: str) -> Columns:
    """A latency's means; its medians where no run has a mean."""
    for statistic in ("mean", "p50"):
        values = {r.run_id: getattr(r, f"{name}_ms_{statistic}") for r in runs}
        if any(v is not None for v in values.values()):
            return {f"{name.upper()} ms, {statistic}": values}
    return {}


def _text(run: Run, columns: Columns) -> str:
    described = (cells[run.run_id] for cells in columns.values())
    cells = (run.arm, run.label, run.target, run.gpu, run.engine, run.dataset, *described)
    return " ".join(str(c) for c in cells if c is not None).casefold()
