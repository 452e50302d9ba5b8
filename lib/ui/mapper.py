"""The mapper: a table in which a person sends keys of an unknown file to fields, by clicking."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from lib.report.format import plain_md
from lib.results.cells import ITEM
from lib.results.fields import ARM, LOADS, targets
from lib.results.headers import IGNORE, OUTCOMES
from lib.results.parsing import counted
from lib.results.reading import Column
from lib.results.store import Store
from lib.ui.dropped import Dropped, chosen
from lib.ui.staging import Staging, current

LOAD_FIELDS = (*LOADS, "offered_load")
FIRST = (
    *(*LOADS, "offered_load", "load_kind", ARM, "output_tps", "tpot_ms_mean", "tpot_ms_p50"),
    *("ttft_ms_mean", "ttft_ms_p99", "request_rps", "num_speculative_tokens", "draft_method"),
    *("accept_length", "target", "gpu", "gpu_count", "duration_s", "output_tokens", "multiplier"),
)
WORDS = {
    "concurrency": "requests in flight",
    "request_rate": "requests/s",
    "batch": "static batch size",
    "offered_load": "a load, its kind elsewhere",
    ARM: "off, METHOD or METHOD:K",
    "output_tps": "output tok/s of all GPUs",
    "multiplier": "speedup over off",
    "num_speculative_tokens": "K",
    "accept_length": "tokens a round, bonus included",
}
MOST_ROWS_SHOWN = 11
ROW_PX = 35
NEEDS_LOAD = "a load (concurrency, request_rate or batch)"
NEEDS_OUTCOME = "an outcome (output_tps, a TPOT or multiplier)"

Choices = dict[str, tuple[str, str]]  # field and arm, by header


@dataclass(frozen=True)
class State:
    """What a choice of fields comes to: `missing` keeps it from being read, `notes` do not."""

    missing: tuple[str, ...]
    notes: tuple[str, ...]


def slot_of(key: str, file: Dropped) -> str:
    """Names a mapper: one for all unknown files of a shape, one for each that was mapped."""
    if file.is_unknown:
        return file.shape
    return f"{file.shape}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"


def suggested(columns: Sequence[Column]) -> Choices:
    """What the names suggest: each field once, from the document and one of its lists at most."""
    by_list: dict[str, list[Column]] = {}
    for column in columns:
        if column.suggestion:
            by_list.setdefault(_list_of(column.header), []).append(column)
    outer = by_list.pop("", [])
    inner: list[Column] = []
    if by_list and not _is_whole(c.suggestion for c in outer):
        inner = max(by_list.values(), key=lambda cs: (_is_whole(c.suggestion for c in cs), len(cs)))
    found: dict[str, str] = {}
    for column in (*inner, *outer):  # what differs from run to run comes before what holds for all
        found.setdefault(column.suggestion, column.header)
    return {header: (field, "") for field, header in found.items()}


def state(choices: Choices) -> State:
    """What is still needed before the file can be read so, and what to know of the choice."""
    fields = [field for field, _ in choices.values()]
    missing = []
    if not set(fields) & set(LOAD_FIELDS):
        missing.append(NEEDS_LOAD)
    if not set(fields) & set(OUTCOMES):
        missing.append(NEEDS_OUTCOME)
    lists = sorted({inside for header in choices if (inside := _list_of(header))})
    if len(lists) > 1:
        named = " and ".join(lists)
        missing.append(f"keys of one list only: runs cannot come from {named} together")
    meanings = list(choices.values())
    twice = sorted({field for field, arm in meanings if meanings.count((field, arm)) > 1})
    notes = [f"{field} is chosen more than once: the first counts" for field in twice]
    return State(tuple(missing), tuple(notes))


def draw(staging: Staging, key: str, store: Store | None) -> None:
    """The table of a file's keys with their values, what is needed still, and the way to read it.

    What is chosen in it survives a filter, and applies to every dropped file of the same shape.
    """
    file = staging.files[key]
    slot = slot_of(key, file)
    if slot not in staging.mapping:
        start = _mapped(file.mapping) or (suggested(file.columns) if file.is_unknown else {})
        staging.mapping[slot] = start
    choices = _take_typed(staging, slot)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        words = st.text_input(
            "Find a key",
            placeholder="any part of a key, value or field",
            key=f"map-{slot}-find",
            width=320,
        )
        by_arm = st.toggle(
            "One row holds several arms",
            value=any(arm for _, arm in choices.values()),
            key=f"map-{slot}-arms",
            help="Name the arm beside each key that is one arm's: off, METHOD or METHOD:K.",
        )
    _table(staging, slot, file.columns, words, by_arm)
    found = state(choices)
    _say(file, choices, found)
    with st.container(horizontal=True):
        st.button(
            "Read with this mapping",
            type="primary" if file.is_unknown else "secondary",
            key=f"map-{slot}-read",
            disabled=file.is_unknown and bool(found.missing),
            on_click=_read,
            args=(key, slot, store),
        )
        if file.mapping:
            st.button(
                "Forget this mapping",
                key=f"map-{slot}-forget",
                on_click=staging.forget,
                args=(key, store),
                help="The file is unknown again, and so is the next one of its shape.",
            )


def how(file: Dropped) -> str:
    """How a file with something to map was read, in plain text."""
    if file.taught is not None:
        return f"read as {file.taught.name} was mapped by hand"
    if file.mapping:
        fields = counted(len(chosen(file.mapping)), "key")
        return f"{fields} of {len(file.columns)} mapped by hand"
    return f"{counted(len(file.columns), 'column')} not understood"


def _say(file: Dropped, choices: Choices, found: State) -> None:
    if found.missing and file.is_unknown:
        text = f"Still needed: {'; '.join(found.missing)}."
        st.markdown(f":material/pending: {plain_md(text)}")
    elif file.is_unknown:
        lists = {inside for header in choices if (inside := _list_of(header))}
        what = f"one run for each item of {lists.pop()}" if lists else "one run a file or row"
        said = ", ".join(f"{field} from {header}" for header, (field, _) in choices.items())
        st.markdown(f":material/check: {plain_md(f'Ready to read, {what}: {said}.')}")
    for note in found.notes:
        st.caption(f":material/info: {plain_md(note)}")


def _table(
    staging: Staging, slot: str, columns: Sequence[Column], words: str, by_arm: bool
) -> None:
    choices = staging.mapping[slot]
    shown = [c for c in columns if _holds(c, choices, words)]
    shape = (slot, staging.draft, by_arm, tuple(c.header for c in shown))
    drawn, frame = st.session_state.get(f"map table {slot}", (None, None))
    # As in the run editor: the browser keeps what is typed over the frame that it was given.
    if drawn != shape or _key(staging, slot) not in st.session_state:
        frame = pd.DataFrame(
            {
                "key": [c.header for c in shown],
                "values": [", ".join(c.samples) for c in shown],
                "field": [choices.get(c.header, (None, ""))[0] for c in shown],
                "arm": [choices.get(c.header, ("", ""))[1] or None for c in shown],
            },
            dtype="string",
        )
        st.session_state[f"map table {slot}"] = (shape, frame)
    if not shown:
        st.caption("No key matches.")
    st.data_editor(
        frame,
        key=_key(staging, slot),
        hide_index=True,
        height=ROW_PX * (min(len(shown), MOST_ROWS_SHOWN) + 1) + 3,
        column_order=["key", "field", *(["arm"] if by_arm else []), "values"],
        disabled=["key", "values"],
        column_config={
            "key": st.column_config.TextColumn("key", width="medium"),
            "values": st.column_config.TextColumn("values in the file", width="medium"),
            "field": st.column_config.SelectboxColumn(
                "field", options=_options(), format_func=_worded, width="medium"
            ),
            "arm": st.column_config.TextColumn("of the arm", width="small"),
        },
        placeholder="–",
        alt="The keys of the file with their values, and the field that each one is sent to.",
    )


def _take_typed(staging: Staging, slot: str) -> Choices:
    """The choices with what was typed into the table since it was drawn."""
    choices = staging.mapping[slot]
    key = _key(staging, slot)
    _, frame = st.session_state.get(f"map table {slot}", (None, None))
    if frame is None or key not in st.session_state:
        return choices
    headers = list(frame["key"])
    for at, cells in st.session_state[key].get("edited_rows", {}).items():
        if int(at) >= len(headers):
            continue
        header = headers[int(at)]
        field, arm = choices.get(header, ("", ""))
        field = cells.get("field", field) or ""
        arm = (cells.get("arm", arm) or "").strip()
        if field:
            choices[header] = (field, arm)
        else:
            choices.pop(header, None)
    return choices


def _read(key: str, slot: str, store: Store | None) -> None:
    staging = current()
    if key not in staging.files or slot not in staging.mapping:
        return
    by_arm = st.session_state.get(f"map-{slot}-arms", False)
    choices = _take_typed(staging, slot)
    mapping = dict.fromkeys(staging.files[key].leaves, IGNORE)
    for header, (field, arm) in choices.items():
        mapping[header] = f"{field}@{arm}" if arm and by_arm else field
    staging.map(key, mapping, store)


def _key(staging: Staging, slot: str) -> str:
    return f"map-{slot}-{staging.draft}"


def _mapped(mapping: Mapping[str, str]) -> Choices:
    split = {header: target.partition("@") for header, target in chosen(mapping).items()}
    return {header: (field, arm) for header, (field, _, arm) in split.items()}


def _holds(column: Column, choices: Choices, words: str) -> bool:
    text = " ".join((column.header, *column.samples, *choices.get(column.header, ()))).casefold()
    return all(word in text for word in words.casefold().split())


def _options() -> list[str]:
    return list(dict.fromkeys((*FIRST, *targets())))


def _worded(name: object) -> str:
    words = WORDS.get(str(name))
    return f"{name} · {words}" if words else str(name)


def _list_of(header: str) -> str:
    return header.partition(ITEM)[0] if ITEM in header else ""


def _is_whole(fields: Iterable[str]) -> bool:
    names = set(fields)
    return bool(names & set(LOAD_FIELDS)) and bool(names & set(OUTCOMES))
