"""The runs of the study in hand: what they are, what to know about them, what may be changed."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from lib.errors import DraftworthError
from lib.evidence import protocol
from lib.report.format import csv_text, plain_md
from lib.results import catalogue, checks
from lib.results.store import EXPORTS, Store
from lib.run import GROUPS, SIMULATED, Run, Study, distinct
from lib.ui import chips, run_editor, study
from lib.ui.drop import flag_lines
from lib.ui.run_editor import PICK, Edits, fields_of, load_of, with_cells

Columns = dict[str, dict[str, Any]]  # by name, then by run_id

PARQUET = "application/vnd.apache.parquet"
CONSEQUENCE = {
    "blocks": "not paired",
    "noted": "paired, and noted",
    "allocation": "another allocation, each at its own $/h",
}


def catalogue_of(store: Store | None) -> None:
    """The study in hand: its runs with filters, flags, edits, protocol difference, downloads."""
    found = study.current()
    if found is None:
        return
    files = {}
    if store is not None and not found.read_only:
        files = {s.sha256: s.name for s in store.sources(found.name)}
    _heading(found)
    columns = _columns(found.runs, files)
    shown = _filtered(found.runs, columns)
    _table(found, shown, columns)
    picked = _picked(found, shown)
    with st.container(horizontal=True, vertical_alignment="center", key="run-actions"):
        if store is not None and not found.read_only:
            _changes(store, found, picked)
        _downloads(store, shown, columns)
    if message := st.session_state.pop("runs refused", None):
        st.error(plain_md(message), icon=":material/block:")
    if len(picked) == 2:
        _difference(*picked)
    elif len(found.runs) > 1:
        st.caption("Tick two runs to see how their protocols differ.")


def _heading(found: Study) -> None:
    runs = found.runs
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(plain_md(found.title or found.name), anchor=False)
        chips.basis_chip(found.basis)
        if any(r.engine == SIMULATED for r in runs):
            st.badge(SIMULATED, color="orange")
        if found.read_only:
            st.badge("read-only", color="gray", help="Published and demo studies stay as they are.")
    arms = distinct(r.arm for r in runs)
    loads = {(r.load_kind, r.offered_load) for r in runs if r.offered_load is not None}
    repeats = max((r.repeat or 1 for r in runs), default=1)
    parts = [
        _count(len(runs), "run"),
        f"{_count(len(arms), 'arm')} ({', '.join(arms)})" if arms else "no arm named",
        _count(len(loads), "load"),
        f"up to {_count(repeats, 'repeat')}" if repeats > 1 else "one run each, so no intervals",
    ]
    st.markdown(plain_md(" · ".join(parts)))
    if found.note:
        st.caption(plain_md(found.note))
    if found.citation:
        link = f" · [source]({found.url})" if found.url else ""  # ours, never from a file
        st.caption(plain_md(found.citation) + link)
    kinds: dict[str, list[Any]] = {}
    for flag in (f for r in runs for f in checks.inspect(r)):
        kinds.setdefault(flag.code, []).append(flag)
    flag_lines(list(kinds.values()))
    if missing := protocol.not_recorded(runs):
        st.caption(plain_md(f"Not recorded in every run: {', '.join(missing)}."))


def _columns(runs: Sequence[Run], files: Mapping[str, str]) -> Columns:
    """What describes each run, by column and run_id; columns that say nothing are left out."""
    columns: Columns = {
        "load": {r.run_id: load_of(r) for r in runs},
        "repeat": {r.run_id: r.repeat for r in runs},
        "tok/s": {r.run_id: r.output_tps for r in runs},
        "M": {r.run_id: r.multiplier for r in runs},
        **_latency(runs, "tpot"),
        **_latency(runs, "ttft"),
        "tool": {r.run_id: " ".join(distinct([r.tool, r.tool_version])) or None for r in runs},
        "file": {r.run_id: files.get(r.source_sha256 or "") for r in runs},
        "flags": {r.run_id: ", ".join(f.code for f in checks.inspect(r)) or None for r in runs},
    }
    return {n: c for n, c in columns.items() if any(v is not None for v in c.values())}


def _latency(runs: Sequence[Run], name: str) -> Columns:
    """A latency's means; its medians where no run has a mean."""
    for statistic in ("mean", "p50"):
        values = {r.run_id: getattr(r, f"{name}_ms_{statistic}") for r in runs}
        if any(v is not None for v in values.values()):
            return {f"{name.upper()} ms, {statistic}": values}
    return {}


def _filtered(runs: Sequence[Run], columns: Columns) -> list[Run]:
    left, right = st.columns(2, gap="medium")
    words = left.text_input(
        "Filter", placeholder="any word: file, load, tool, model, flag", key="runs-filter"
    )
    arms = right.multiselect(
        "Arms", distinct(r.arm for r in runs), placeholder="all arms", key="runs-arms"
    )

    def holds(run: Run) -> bool:
        cells = [
            run.arm,
            run.label,
            run.target,
            run.gpu,
            *(c[run.run_id] for c in columns.values()),
        ]
        text = " ".join(str(c) for c in cells if c is not None).casefold()
        return all(w in text for w in words.casefold().split()) and (not arms or run.arm in arms)

    return [r for r in runs if holds(r)]


def _table_key(name: str) -> str:
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
    return f"runs-{digest}-{st.session_state.get('runs draft', 0)}"


def _typed(name: str) -> Edits:
    """Ticks and cells of a study that are not saved yet, by run_id."""
    found: Edits = st.session_state.setdefault(f"typed in {name}", {})
    for run_id, cells in run_editor.edited(_table_key(name)).items():
        found.setdefault(run_id, {}).update(cells)
    return found


def _table(found: Study, shown: Sequence[Run], columns: Columns) -> None:
    typed = _typed(found.name)
    fields: tuple[str, ...] = ()
    if not shown:
        st.caption("No run matches the filter.")
    if st.toggle("Protocol fields", key="runs-protocol", help="To read, and in your own to edit."):
        fields = (*run_editor.OFTEN, *run_editor.RARELY)
        columns = {name: columns[name] for name in ("load", "file") if name in columns}
    run_editor.edit(
        _table_key(found.name),
        shown,
        {name: [cells[r.run_id] for r in shown] for name, cells in columns.items()},
        fields,
        typed,
        picks=True,
        locked=found.read_only,
        version=found,
        alt="The runs of the study in hand.",
    )


def _picked(found: Study, shown: Sequence[Run]) -> list[Run]:
    typed = _typed(found.name)
    return [r for r in shown if typed.get(r.run_id, {}).get(PICK)]


def _changes(store: Store, found: Study, picked: Sequence[Run]) -> None:
    changed = sum(bool(cells.keys() - {PICK}) for cells in _typed(found.name).values())
    st.button(
        f"Save {_count(changed, 'changed run')}" if changed else "Save changes",
        type="primary" if changed else "secondary",
        key="save-runs",
        disabled=not changed,
        on_click=_save,
        args=(store, found),
    )
    if picked:
        with st.popover(f"Delete {_count(len(picked), 'run')}", icon=":material/delete:"):
            st.markdown(
                "Gone from the store. A file brings its runs back only once none of them is left."
            )
            ids = [r.run_id for r in picked]
            st.button("Delete", key="delete-runs", on_click=_delete, args=(store, found, ids))
    with st.popover("Delete the study", icon=":material/delete_forever:"):
        st.markdown(
            f"All {_count(len(found.runs), 'run')} of **{plain_md(found.name)}** with their "
            "requests. The files can be dropped again."
        )
        st.button("Delete it", key="delete-study", on_click=_delete, args=(store, found, None))


def _save(store: Store, found: Study) -> None:
    typed = _typed(found.name)
    groups: dict[tuple[tuple[str, object], ...], list[str]] = {}
    try:
        for run in found.runs:
            cells = {c: v for c, v in typed.get(run.run_id, {}).items() if c != PICK}
            with_cells(run, cells)
            fields: dict[str, object] = {}
            for cell, value in cells.items():
                fields |= fields_of(cell, value)
            if fields:
                groups.setdefault(tuple(fields.items()), []).append(run.run_id)
        for fields_items, ids in groups.items():
            store.update(found.name, ids, dict(fields_items))
    except DraftworthError as error:
        st.session_state["runs refused"] = str(error)
        return
    _afresh(found.name, [r.run_id for r in found.runs])


def _delete(store: Store, found: Study, run_ids: Sequence[str] | None) -> None:
    """Delete these runs, or the whole study; another comes in hand where none is left."""
    try:
        if run_ids is None:
            store.delete_study(found.name)
        else:
            store.delete_runs(found.name, run_ids)
    except DraftworthError as error:
        st.session_state["runs refused"] = str(error)
        return
    _afresh(found.name, run_ids if run_ids is not None else [r.run_id for r in found.runs])
    if found.name not in store.studies():
        st.session_state["study"] = catalogue.names(store)[0].name


def _afresh(name: str, run_ids: Iterable[str]) -> None:
    """Forget what was typed for these runs, and draw the table again."""
    typed = _typed(name)
    for run_id in run_ids:
        typed.pop(run_id, None)
    st.session_state["runs draft"] = st.session_state.get("runs draft", 0) + 1


def _downloads(store: Store | None, shown: Sequence[Run], columns: Columns) -> None:
    def as_shown() -> str:
        described = {name: [cells[r.run_id] for r in shown] for name, cells in columns.items()}
        return csv_text({"arm": [r.arm for r in shown], **described})

    with st.popover("Download", icon=":material/download:", type="tertiary"):
        _download("This table as CSV", as_shown, "draftworth-runs.csv", "text/csv")
        if store is not None and store.studies():
            st.caption("Your whole store as Parquet; published studies are not in it.")
            for table in EXPORTS:
                _download(table, partial(store.export, table), f"{table}.parquet", PARQUET)


def _download(label: str, data: Callable[[], Any], file: str, mime: str) -> None:
    st.download_button(
        label, data, file, mime, key=f"save-{file}", on_click="ignore", width="stretch"
    )


def _difference(first: Run, second: Run) -> None:
    """Field by field, what keeps two runs from being compared, and what they differ in."""
    verdicts = {d.field: d.verdict for d in protocol.differences_at([first], [second], frozenset())}
    rows = []
    for name in dict.fromkeys((*sum(protocol.FIELDS.values(), ()), *GROUPS.speculation)):
        a, b = getattr(first, name), getattr(second, name)
        if a == b:
            continue
        meant = "what the arms differ in" if name in GROUPS.speculation else "recorded in one only"
        rows.append((name, _say(a), _say(b), CONSEQUENCE.get(verdicts.get(name, ""), meant)))
    heads = [" at ".join(p for p in (r.arm or "no arm", load_of(r)) if p) for r in (first, second)]
    st.markdown(plain_md(f"{heads[0]} beside {heads[1]}"))
    if not rows:
        st.caption("No protocol field differs.")
        return
    names = ("field", "first", "second", "what it means")
    st.dataframe(
        {name: [row[i] for row in rows] for i, name in enumerate(names)},
        hide_index=True,
        alt="Protocol fields in which the two runs differ.",
    )


def _say(value: object) -> str:
    if value is None:
        return "not recorded"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
