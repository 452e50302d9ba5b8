"""The runs of the study in hand: what they are, what to know about them, what may be changed."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial

import streamlit as st

from lib.errors import DraftworthError
from lib.evidence import protocol
from lib.report.format import csv_text, plain_md
from lib.results import catalogue
from lib.results.store import Store
from lib.run import GROUPS, SIMULATED, Run, Study
from lib.ui import bulk, chips, downloads, imports, run_editor, run_index, study
from lib.ui.file_card import flag_lines
from lib.ui.run_editor import PICK, Edits, fields_of, load_of, with_cells
from lib.ui.run_index import Columns, Index

UNFLAGGED = "no flag"
MOST_FLAGS = 6
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
    index = run_index.of(store, found)
    _heading(found, index)
    shown = _filtered(found.runs, index)
    _table(found, shown, index.columns)
    picked = _picked(found, shown)
    with st.container(horizontal=True, vertical_alignment="center", key="run-actions"):
        if store is not None and not found.read_only:
            _changes(store, found, picked, shown)
            imports.recent(store, found)
        downloads.draw(store, found, partial(_as_shown, shown, index.columns))
    if message := st.session_state.pop("runs refused", None):
        st.error(plain_md(message), icon=":material/block:")
    if message := st.session_state.pop("runs changed", None):
        st.success(plain_md(message), icon=":material/check:")
    imports.undone(by_last=False)
    if len(picked) == 2:
        _difference(*picked)
    elif len(found.runs) > 1:
        st.caption("Tick two runs to see how their protocols differ.")


def _heading(found: Study, index: Index) -> None:
    runs = found.runs
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(plain_md(found.title or found.name), anchor=False)
        chips.basis_chip(found.basis)
        if any(r.engine == SIMULATED for r in runs):
            st.badge(SIMULATED, color="orange")
        if found.read_only:
            st.badge("read-only", color="gray", help="Published and demo studies stay as they are.")
    arms = index.arms
    loads = {(r.load_kind, r.offered_load) for r in runs if r.offered_load is not None}
    cells = Counter((r.arm, r.load_kind, r.offered_load) for r in runs if r.offered_load)
    repeats = max(cells.values(), default=1)
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
    _flags(index)
    if missing := protocol.not_recorded(runs):
        st.caption(plain_md(f"Not recorded in every run: {', '.join(missing)}."))


def _flags(index: Index) -> None:
    """What blocks first; the rest folded away where it is long."""
    if len(index.flags) <= MOST_FLAGS:
        flag_lines(index.flags)
        return
    blocking = [kind for kind in index.flags if kind[0].severity != "warns"]
    flag_lines(blocking)
    rest = [kind for kind in index.flags if kind[0].severity == "warns"]
    with st.expander(f"{_count(len(rest), 'warning')} about these runs", icon=":material/info:"):
        flag_lines(rest)


def _filtered(runs: Sequence[Run], index: Index) -> list[Run]:
    codes = list(dict.fromkeys(code for found in index.codes.values() for code in found))
    with st.grid(4, min_column_width=150, gap="small"):
        words = st.text_input(
            "Search", placeholder="words of file, model, tool, flag", key="runs-filter"
        ).casefold()
        arms = st.multiselect("Arms", index.arms, placeholder="all arms", key="runs-arms")
        loads = st.multiselect("Loads", index.loads, placeholder="all loads", key="runs-loads")
        flags = st.multiselect(
            "Flags", [UNFLAGGED, *codes], placeholder="any or none", key="runs-flags"
        )

    def holds(run: Run) -> bool:
        if (arms and run.arm not in arms) or (loads and load_of(run) not in loads):
            return False
        own = index.codes.get(run.run_id, ())
        if flags and not (set(flags) & set(own) or (UNFLAGGED in flags and not own)):
            return False
        text = index.texts[run.run_id]
        return all(word in text for word in words.split())

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


def _changes(store: Store, found: Study, picked: Sequence[Run], shown: Sequence[Run]) -> None:
    changed = sum(bool(cells.keys() - {PICK}) for cells in _typed(found.name).values())
    st.button(
        f"Save {_count(changed, 'changed run')}" if changed else "Save changes",
        type="primary" if changed else "secondary",
        key="save-runs",
        disabled=not changed,
        on_click=_save,
        args=(store, found),
    )
    if shown:
        bulk.draw(store, found, picked, shown, _afresh)
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


def _as_shown(shown: Sequence[Run], columns: Columns) -> str:
    described = {name: [cells[r.run_id] for r in shown] for name, cells in columns.items()}
    return csv_text({"arm": [r.arm for r in shown], **described})


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
