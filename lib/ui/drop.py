"""The drop zone and what follows a drop: what was understood, what is missing, into which study."""

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lib.errors import StoreError
from lib.report.format import plain_md
from lib.results import published
from lib.results.mapping import SavedMapping
from lib.results.parsing import counted
from lib.results.store import Store
from lib.results.tools import KNOWN
from lib.run import SIMULATED
from lib.settings import number
from lib.ui import file_card, imports, mapper, navigation, run_editor
from lib.ui.adding import Tell
from lib.ui.dropped import runs_text
from lib.ui.staging import Staging, current

STYLE = Path(__file__).with_name("drop.css")
MOST_NOTES = 6
STATED = ("stated", "override")
WORTH_A_BAR = 3  # files; reading these takes longer than a blink
LARGE = 2**22  # bytes
KNOWN_TOOLS = re.compile(r"; (?:python -m lib formats |its (?:keys|columns) can be mapped)")
COMPLETING = (
    "State what the files cannot know: the arm (off, METHOD or METHOD:K), the GPUs, their price. "
    "Cells are filled where a file, label or name says it."
)
DEMO_NOTE = "A real client's sweep of a simulated engine: no speculation, K = 2 and K = 4."


def zone(store: Store | None) -> None:
    """Where files are dropped. Each is read once, when it arrives."""
    staging, limit = current(), number("DRAFTWORTH_UPLOAD_MB")
    st.html(STYLE)
    key = f"drop-{staging.round}"
    uploads = st.file_uploader(
        f"Result files, what lies beside them, or a zip of the folder: any number, {limit} MB each",
        accept_multiple_files=True,
        key=key,
        on_change=lambda: staging.keep({f.file_id for f in st.session_state[key] or ()}),
        max_upload_size=max(limit, 1),
        help=(
            f"Recognised by their keys, never by name or extension: {plain_md(KNOWN)}. Any other "
            "JSON or table is mapped once by hand. Larger files: drop them as .zip or .gz, save "
            "without per-request detail, or use `python -m lib import`. If an upload ends with "
            "status 413, a proxy in front of this page allows less than Draftworth does."
        ),
    )
    staging.shown = {f.file_id for f in uploads}
    _read(staging, uploads, store)
    if not staging.files and staging.outcome is None:
        _offer_demo(staging)


def _read(staging: Staging, uploads: Sequence[object], store: Store | None) -> None:
    arrived = list(staging.arriving(uploads))
    if not arrived:
        return
    saved: Sequence[SavedMapping] = ()
    if store is not None:
        with suppress(StoreError):
            saved = store.mappings()
    large = any(getattr(u, "size", 0) > LARGE for u in uploads)
    slow = len(arrived) > WORTH_A_BAR or large or any(p.in_archive for p in arrived)
    place = st.empty()
    staging.take(arrived, saved, _bar(place, "Reading") if slow else _silent)
    place.empty()


def _bar(place: DeltaGenerator, doing: str) -> Tell:
    """A bar that says which file is being worked on."""

    def tell(done: int, of: int, name: str) -> None:
        place.progress(done / of, f"{doing} {done + 1} of {of}: {plain_md(name)}")

    return tell


def _silent(done: int, of: int, name: str) -> None:
    """Says nothing."""


def _offer_demo(staging: Staging) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="demo"):
        st.caption(f"No files at hand? {DEMO_NOTE}", width="content")
        st.button("Try the simulated sweep", key="try-demo", on_click=staging.stage_demo)
        st.download_button(
            "Download it",
            published.DEMO_ARCHIVE.read_bytes,
            published.DEMO_ARCHIVE.name,
            "application/zip",
            key="demo-zip",
            on_click="ignore",
            type="tertiary",
            icon=":material/download:",
        )


def files(store: Store | None) -> None:
    """What was understood of each file, what was not, and what a person can map."""
    staging = current()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("What was dropped", anchor=False)
        if any(file.simulated for file in staging.files.values()):
            st.badge(SIMULATED, color="orange")
        _summary(staging)
    _refused(staging)
    shapes = staging.unknown
    for keys in shapes.values():
        _unknown(staging, keys, len(shapes) == 1, store)
    file_card.draw(staging, store)


def _summary(staging: Staging) -> None:
    read = [b for b in staging.bundles if b.reading.runs]
    beside = len(staging.others)
    parts = [
        f"{counted(len(staging.files), 'file')}",
        f"{runs_text(len(staging.runs))} in {counted(len(read), 'file')}" if read else "no run yet",
        f"{beside} beside" if beside else "",
    ]
    if len(staging.files) > 1:
        st.caption(" · ".join(p for p in parts if p), width="content")


def _refused(staging: Staging) -> None:
    """What cannot be used: one line each; many, and those an archive brought, folded away."""
    own, inner = staging.refusals
    for line in own[:MOST_NOTES]:
        st.error(plain_md(_brief(line)), icon=":material/block:")
    if len(own) > MOST_NOTES:
        with st.expander(f"{len(own) - MOST_NOTES} more files that cannot be used"):
            _lines([_brief(line) for line in own[MOST_NOTES:]])
    if inner:
        with st.expander(f"{counted(len(inner), 'file')} of the archive left out"):
            _lines([_brief(line) for line in inner])


def _brief(line: str) -> str:
    """A refusal without the list of known tools and the way out, which the page itself offers."""
    return KNOWN_TOOLS.split(line)[0]


def _unknown(staging: Staging, keys: Sequence[str], alone: bool, store: Store | None) -> None:
    """The files of one unknown shape: one line, one mapper for all of them."""
    file = staging.files[keys[0]]
    more = len(keys) - 1
    alike = f" ({counted(more, 'more file')} of the same shape)" if more else ""
    reason = _brief(file.refusal)
    st.warning(plain_md(f"{reason}{alike}. Map it once, below."), icon=":material/help:")
    what = f"{counted(len(keys), 'file')} like {staging.short(file.name)}" if more else ""
    title = f"Map {what or staging.short(file.name)}: {counted(len(file.columns), 'key')}"
    with st.expander(plain_md(title), icon=":material/table_edit:", expanded=alone):
        mapper.draw(staging, keys[0], store)


def complete() -> None:
    """One table of all runs, and two rules that fill it without typing forty cells."""
    staging = _typed_in()
    st.subheader("Complete the runs", anchor=False)
    st.caption(COMPLETING)
    left, right = st.columns(2, gap="medium")
    with left, st.form("rule", border=True), _row():
        st.text_input("Files matching", placeholder="k4-*", key="rule-glob")
        st.text_input("are arm", placeholder="eagle3:4 or off", key="rule-arm")
        st.form_submit_button("Apply", key="rule-apply", on_click=_apply_rule)
    with right, st.form("set", border=True), _row():
        st.selectbox("Set", (*run_editor.OFTEN, *run_editor.RARELY), key="set-field")
        st.text_input("for all runs to", placeholder="value", key="set-value")
        st.form_submit_button("Apply", key="set-apply", on_click=_apply_to_all)
    if staging.said:
        mark = ":material/block:" if staging.refused else ":material/check:"
        (st.error if staging.refused else st.success)(plain_md(staging.said), icon=mark)
    _problems(staging)
    _table(staging)


def _typed_in() -> Staging:
    """The staging with what was typed into its table. A click may bring a cell along with it."""
    staging = current()
    staging.type(run_editor.edited(_table_key(staging)))
    return staging


def _table_key(staging: Staging) -> str:
    return f"staged-{staging.round}-{staging.draft}"


def _row() -> DeltaGenerator:
    return st.container(horizontal=True, vertical_alignment="bottom")


def _problems(staging: Staging) -> None:
    lines = staging.problems
    for line in lines[:3]:
        st.error(plain_md(line), icon=":material/edit_off:")
    if len(lines) > 3:
        st.caption(f"and {len(lines) - 3} more cells that cannot be taken")


def _table(staging: Staging) -> None:
    runs = list(staging.runs.values())
    fields: tuple[str, ...] = run_editor.OFTEN
    if run_editor.needs_load(run for _, run in runs):
        fields = ("load_kind", "offered_load", *fields)
    if st.toggle("More fields", key="staged-more"):
        fields = tuple(dict.fromkeys((*fields, *run_editor.RARELY)))
    run_editor.edit(
        _table_key(staging),
        [run for _, run in runs],
        {
            "file": [staging.short(name) for name, _ in runs],
            "load": [run_editor.load_of(run) for _, run in runs],
            "tok/s": [run.output_tps for _, run in runs],
        },
        fields,
        staging.wrong,
        version=staging.joins,
        alt="The runs to complete: arm, GPUs and price of each.",
    )


def _apply_rule() -> None:
    _typed_in().apply_rule(st.session_state["rule-glob"], st.session_state["rule-arm"])


def _apply_to_all() -> None:
    _typed_in().apply_to_all(st.session_state["set-field"], st.session_state["set-value"])


def add(store: Store | None) -> None:
    """Name the study and add the files, or discard them."""
    staging = current()
    if not staging.runs and not staging.joined.unclaimed:
        st.button("Discard", key="discard-files", on_click=staging.discard)
        return
    own = store.studies() if store else ()
    unnamed = sum(run.arm is None for _, run in staging.runs.values())
    with st.container(horizontal=True, vertical_alignment="bottom", key="add"):
        typed = chosen = None
        if staging.runs:
            typed = st.text_input(
                "Study name",
                placeholder="new, as eagle3-chat",
                key=f"name-{staging.round}",
            )
        if own:
            label = "or one of yours" if staging.runs else "Complete the runs of"
            chosen = st.selectbox(
                label, own, index=None, placeholder="choose", key=f"into-{staging.round}"
            )
        asked = st.button(
            "Add to the study",
            type="primary",
            key="add-files",
            disabled=store is None or bool(staging.problems) or not (staging.runs or own),
        )
        st.button("Discard", key="discard-files", on_click=staging.discard)
    place = st.empty()
    if unnamed:
        st.caption(
            f":material/label_off: {runs_text(unnamed)} without an arm: "
            "kept, but not compared until it is named."
        )
    if asked and store is not None and not staging.problems:
        _add(staging, store, (typed or "").strip() or chosen or "", place)


def _add(staging: Staging, store: Store, study: str, place: DeltaGenerator) -> None:
    slow = len(staging.files) > WORTH_A_BAR
    staging.add_to(store, study, _bar(place, "Adding") if slow else _silent)
    result = staging.outcome
    if result is not None and (not result.error or result.files) and result.study:
        # The picker has drawn the old study already: it takes the new one from the link.
        if st.session_state.pop("study", None) != result.study:
            # What was stated of one study is not stated of another.
            st.session_state.update({k: [] for k in STATED if k in st.session_state})
        st.query_params["study"] = result.study
    st.rerun()


def outcome(store: Store | None) -> None:
    """What the last adding did, where to go from here, and how to take it back."""
    result = current().outcome
    imports.undone(by_last=True)
    if result is None:
        return
    if result.error:
        rest = f" ({result.files} files were added before it)" if result.files else ""
        st.error(plain_md(result.error + rest), icon=":material/block:")
    elif result.runs or result.completed:
        parts = [
            f"{runs_text(result.runs)} added to" if result.runs else "",
            f"{runs_text(result.completed)} completed in" if result.completed else "",
        ]
        did = " and ".join(p for p in parts if p)
        with st.container(horizontal=True, vertical_alignment="center", key="added"):
            st.success(
                f"{did} {plain_md(result.study)}, the study in hand now.",
                icon=":material/check:",
            )
            st.page_link(navigation.pages()["compare"], label="Compare its arms")
            if store is not None and result.import_id:
                imports.undo_button(store, result.study, result.import_id, imports.LAST)
    else:
        st.info(f"Nothing new for {plain_md(result.study)}.", icon=":material/content_copy:")
    _lines([_brief(note) for note in result.notes[:MOST_NOTES]])
    if len(result.notes) > MOST_NOTES:
        with st.expander(f"{len(result.notes) - MOST_NOTES} more files"):
            _lines([_brief(note) for note in result.notes[MOST_NOTES:]])


def _lines(lines: Sequence[str]) -> None:
    if lines:
        st.caption("  \n".join(plain_md(line) for line in lines))
