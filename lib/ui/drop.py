"""The drop zone and what follows a drop: what was understood, what is missing, into which study."""

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from lib.report.format import plain_md
from lib.results import published
from lib.results.fields import targets
from lib.results.headers import IGNORE
from lib.results.reading import Column, Flag
from lib.results.store import Store
from lib.run import SIMULATED
from lib.settings import number
from lib.ui import navigation, run_editor
from lib.ui.staging import DEMO, Dropped, Staging, current, natural

STYLE = Path(__file__).with_name("drop.css")
MOST_CARDS = 6
MOST_COLUMNS = 24
MOST_NOTES = 6
WORTH_A_BAR = 3  # files; reading these takes longer than a blink
SEVERITY = {
    "blocks pairing": ":material/link_off:",
    "blocks pricing": ":material/money_off:",
    "warns": ":material/info:",
}
COMPLETING = (
    "State what the files cannot know: the arm (off, METHOD or METHOD:K), the GPUs, their price. "
    "Cells are filled where a file, label or name says it."
)
DEMO_NOTE = "A real client's sweep of a simulated engine: no speculation, K = 2 and K = 4."


def zone() -> None:
    """Where files are dropped. Each is read once, when it arrives."""
    staging, limit = current(), number("DRAFTWORTH_UPLOAD_MB")
    st.html(STYLE)
    key = f"drop-{staging.round}"
    uploads = st.file_uploader(
        f"Results of vLLM bench serve or GuideLLM, or a table of runs; any number of files, "
        f"up to {limit} MB each",
        accept_multiple_files=True,
        key=key,
        on_change=lambda: staging.keep({f.file_id for f in st.session_state[key] or ()}),
        max_upload_size=max(limit, 1),
        help=(
            "Recognised by their keys, never by name or extension. Larger files: save without "
            "per-request detail, or use `python -m lib import`. If an upload ends with status 413, "
            "a proxy in front of this page allows less than Draftworth does."
        ),
    )
    staging.shown = {f.file_id for f in uploads}
    _read(staging, staging.new(uploads))
    if not staging.files and staging.outcome is None:
        _offer_demo(staging)


def _read(staging: Staging, files: Sequence[tuple[str, str, bytes]]) -> None:
    large = sum(len(data) for _, _, data in files) > 2**22
    bar = st.progress(0.0) if len(files) > WORTH_A_BAR or large else None
    for at, (file_id, name, data) in enumerate(files):
        if bar is not None:
            text = f"Reading {at + 1} of {len(files)}: {plain_md(name)}"
            bar.progress(at / len(files), text)
        staging.take(file_id, name, data)
    if bar is not None:
        bar.empty()


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
        st.caption("Unpack the archive before dropping its files.", width="content")


def files() -> None:
    """What was understood of each file: a card a file, or a table where they are many."""
    staging = current()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("What was dropped", anchor=False)
        if any(key.startswith(DEMO) for key in staging.files):
            st.badge(SIMULATED, color="orange")
    good = {k: f for k, f in staging.files.items() if f.reading}
    for key, file in staging.files.items():
        if file.reading is None:
            st.error(plain_md(file.refusal), icon=":material/block:")
            _mapper(staging, key, file)
    if len(good) > MOST_CARDS:
        _overview(list(good.values()))
        for key, file in good.items():
            _mapper(staging, key, file)
    elif good:
        with st.grid(min(len(good), 3), min_column_width=300):
            for key, file in good.items():
                with st.container(border=True, gap="small"):
                    _card(staging, key, file)


def _card(staging: Staging, key: str, file: Dropped) -> None:
    reading = file.reading
    assert reading is not None
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        st.markdown(f"**{plain_md(file.name)}**", width="content")
        st.badge(f"{len(reading.runs)} run{'' if len(reading.runs) == 1 else 's'}", color="gray")
    st.caption(plain_md(f"{reading.tool} · {reading.tool_version} · {reading.why}"))
    flag_lines(file.flags)
    if file.refusal:
        st.error(plain_md(file.refusal), icon=":material/block:")
    _mapper(staging, key, file)


def flag_lines(kinds: Sequence[Sequence[Flag]]) -> None:
    """One line for each kind of flag, what blocks first; the first of a kind speaks for it."""
    lines = []
    for first, *rest in sorted(kinds, key=lambda kind: list(SEVERITY).index(kind[0].severity)):
        more = f" (and {len(rest)} more like it)" if rest else ""
        text = plain_md(first.message + more)
        lines.append(f"{SEVERITY[first.severity]} {first.severity}: {text}")
    if lines:
        st.caption("  \n".join(lines))


def _overview(good: Sequence[Dropped]) -> None:
    ordered = sorted(good, key=lambda f: natural(f.name))
    read = [(f, f.reading) for f in ordered if f.reading]
    st.dataframe(
        {
            "file": [f.name for f, _ in read],
            "tool": [r.tool for _, r in read],
            "version": [r.tool_version for _, r in read],
            "runs": [len(r.runs) for _, r in read],
            "flags": [", ".join(kind[0].code for kind in f.flags) for f, _ in read],
            "recognised by": [r.why for _, r in read],
        },
        hide_index=True,
        height=280,
        alt="The files that were read: tool, version, runs and flags of each.",
    )
    together: dict[tuple[str, str], list[Flag]] = {}
    for file in ordered:
        for kind in file.flags:
            together.setdefault((kind[0].severity, kind[0].code), []).extend(kind)
    flag_lines(list(together.values()))


def _mapper(staging: Staging, key: str, file: Dropped) -> None:
    """A form that sends columns which no one understood to fields by hand."""
    if not file.columns:
        return
    count = len(file.columns)
    title = f"{count} column{'' if count == 1 else 's'} of {plain_md(file.name)} not understood"
    with st.expander(title, icon=":material/table_edit:", expanded=file.reading is None):
        by_arm = st.toggle(
            "One row holds several arms",
            key=f"map-{key}-arms",
            help="Name the arm beside each column that is one arm's: off, METHOD or METHOD:K.",
        )
        with st.form(f"map-{key}", border=False):
            chosen = {}
            with st.grid(3, min_column_width=220):
                for at, column in enumerate(file.columns[:MOST_COLUMNS]):
                    with st.container(gap="xsmall"):
                        chosen[column.header] = _target(f"map-{key}-{at}", column, by_arm)
            if count > MOST_COLUMNS:
                st.caption(f"The first {MOST_COLUMNS}; give the others headers that name a field.")
            if st.form_submit_button("Read with this mapping", key=f"map-{key}-read"):
                staging.map(key, chosen)
                st.rerun()


def _target(key: str, column: Column, by_arm: bool) -> str:
    samples = ", ".join(column.samples) or "no values"
    label = plain_md(f"{column.header} ({samples})")
    name = st.selectbox(label, (IGNORE, *targets()), key=key)
    arm = st.text_input("arm", placeholder="any", key=f"{key}-arm") if by_arm else ""
    return f"{name}@{arm.strip()}" if arm.strip() and name != IGNORE else name


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


def _row() -> st.delta_generator.DeltaGenerator:
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
            "file": [name for name, _ in runs],
            "load": [run_editor.load_of(run) for _, run in runs],
            "tok/s": [run.output_tps for _, run in runs],
        },
        fields,
        staging.wrong,
        alt="The runs to complete: arm, GPUs and price of each.",
    )


def _apply_rule() -> None:
    _typed_in().apply_rule(st.session_state["rule-glob"], st.session_state["rule-arm"])


def _apply_to_all() -> None:
    _typed_in().apply_to_all(st.session_state["set-field"], st.session_state["set-value"])


def add(store: Store | None) -> None:
    """Name the study and add the files, or discard them."""
    staging = current()
    if not staging.runs:
        st.button("Discard", key="discard-files", on_click=staging.discard)
        return
    own = store.studies() if store else ()
    unnamed = sum(run.arm is None for _, run in staging.runs.values())
    typed, chosen = f"name-{staging.round}", f"into-{staging.round}"
    with st.container(horizontal=True, vertical_alignment="bottom", key="add"):
        st.text_input("Study name", placeholder="a new name, for example eagle3-chat", key=typed)
        if own:
            st.selectbox("or one of yours", own, index=None, placeholder="choose", key=chosen)
        st.button(
            "Add to the study",
            type="primary",
            key="add-files",
            disabled=store is None or bool(staging.problems),
            on_click=_add,
            args=(store, typed, chosen),
        )
        st.button("Discard", key="discard-files", on_click=staging.discard)
    if unnamed:
        st.caption(
            f":material/label_off: {unnamed} run{'' if unnamed == 1 else 's'} without an arm: "
            "kept, but not compared until it is named."
        )


def _add(store: Store, typed: str, chosen: str) -> None:
    staging = _typed_in()
    if staging.problems:
        return
    study = st.session_state[typed].strip() or st.session_state.get(chosen) or ""
    toast = st.toast("Adding the files", icon="spinner") if len(staging.files) > 9 else None

    def tell(done: int, of: int) -> None:
        if toast is not None and done % 10 == 0:
            toast.toast(f"Adding {done + 1} of {of} files", icon="spinner")

    staging.add_to(store, study, tell)
    if toast is not None:
        toast.toast("Done", icon=":material/check:")
    if staging.outcome and not staging.outcome.error:
        st.session_state["study"] = staging.outcome.study


def outcome() -> None:
    """What the last adding did, and where to go from here."""
    result = current().outcome
    if result is None:
        return
    if result.error:
        rest = f" ({result.files} files were added before it)" if result.files else ""
        st.error(plain_md(result.error + rest), icon=":material/block:")
    elif result.runs:
        runs = f"{result.runs} run{'' if result.runs == 1 else 's'}"
        with st.container(horizontal=True, vertical_alignment="center", key="added"):
            st.success(
                f"{runs} added to {plain_md(result.study)}, the study in hand now.",
                icon=":material/check:",
            )
            st.page_link(navigation.pages()["compare"], label="Compare its arms")
    else:
        st.info(f"Nothing new for {plain_md(result.study)}.", icon=":material/content_copy:")
    for note in result.notes[:MOST_NOTES]:
        st.caption(plain_md(note))
    if len(result.notes) > MOST_NOTES:
        with st.expander(f"{len(result.notes) - MOST_NOTES} more files"):
            for note in result.notes[MOST_NOTES:]:
                st.caption(plain_md(note))
