"""What was understood of each file: a card a file, or a table where they are many; key by key."""

from collections.abc import Iterable, Sequence

import streamlit as st

from lib.report.format import plain_md
from lib.results.bundles import Bundle
from lib.results.fields import ARM, LOADS
from lib.results.findings import Key
from lib.results.parsing import counted
from lib.results.reading import Flag, Reading
from lib.results.store import Store
from lib.run import Run
from lib.ui import mapper
from lib.ui.dropped import kinds, runs_text
from lib.ui.staging import Staging

MOST_CARDS = 6
SEVERITY = {
    "blocks pricing": ":material/money_off:",
    "blocks pairing": ":material/link_off:",
    "warns": ":material/info:",
}
MOST_LINES = 4
REPEATS = 3  # runs of one arm and load that an interval takes


def draw(staging: Staging, store: Store | None) -> None:
    """The files that hold runs, then what lay beside them."""
    results = staging.results
    if len(results) > MOST_CARDS:
        _overview(staging, results)
    elif results:
        with st.grid(min(len(results), 3), min_column_width=300):
            for at, bundle in enumerate(results):
                with st.container(border=True, gap="small", height="stretch"):
                    _card(staging, bundle, f"{staging.round}-{at}")
    _mapped(staging, results, store)
    _others(staging)


def flag_lines(found: Sequence[Sequence[Flag]], most: int | None = None) -> None:
    """One line for each kind of flag, what blocks first; the first of a kind speaks for it."""
    order = list(SEVERITY)
    lines = []
    for first, *rest in sorted(found, key=lambda kind: order.index(kind[0].severity)):
        more = f" (and {len(rest)} more of this kind)" if rest else ""
        text = plain_md(first.message + more)
        lines.append(f"{SEVERITY[first.severity]} {first.severity}: {text}")
    left = lines[most:] if most else []
    if lines:
        rest_of = [f"and {counted(len(left), 'more note')} in “What was read”"] if left else []
        st.caption("  \n".join([*lines[:most], *rest_of]))


def missing(runs: Sequence[Run]) -> list[str]:
    """What the runs do not say, and what each gap keeps from being done; in plain text."""
    lines = []

    def gap(holes: int, what: str, consequence: str) -> None:
        if holes:
            where = "" if holes == len(runs) else f" in {holes} of {runs_text(len(runs))}"
            lines.append(f"{what}{where}: {consequence}")

    gap(sum(r.arm is None for r in runs), "no arm named", "not compared until it is")
    loadless = sum(r.offered_load is None or r.load_kind is None for r in runs)
    gap(loadless, "no load, or not of which kind", "not compared until it is stated")
    silent = sum(r.output_tps is None and r.multiplier is None for r in runs)
    gap(silent, "no output tok/s", "throughput not compared, not priced")
    ratios = sum(r.output_tps is None and r.multiplier is not None for r in runs)
    gap(ratios, "a speedup without tok/s", "compared, never priced")
    unpriced = sum(r.usd_per_hour is None and r.gpu_count is None for r in runs)
    gap(unpriced, "no GPU count and no $/h", "not priced until you state them here or on Price")
    no_price = sum(r.usd_per_hour is None and r.gpu_count is not None for r in runs)
    gap(no_price, "no $/h", "not priced until you state it here or on Price")
    no_tpot = sum(r.tpot_ms_mean is None and r.tpot_ms_p50 is None for r in runs)
    gap(no_tpot, "no TPOT", "latency not compared")
    return lines


def repeats(runs: Sequence[Run], among: Iterable[Run]) -> str:
    """Whether the runs' arms and loads were measured often enough; empty where they were.

    `among` are all runs that may be repeats of them.
    """
    cells = dict.fromkeys((cell for r in runs if (cell := _cell(r)) is not None), 0)
    for run in among:
        if (cell := _cell(run)) in cells:
            cells[cell] += 1
    few = sum(count < REPEATS for count in cells.values())
    if not few:
        return ""
    where = "" if few == len(cells) else f" at {few} of {len(cells)} loads"
    return f"fewer than {REPEATS} runs of one arm and load{where}: no interval, or a wide one"


def _cell(run: Run) -> tuple[object, ...] | None:
    if run.arm is None or run.offered_load is None:
        return None
    return (run.arm, run.load_kind, run.offered_load)


def _card(staging: Staging, bundle: Bundle, slot: str) -> None:
    reading = bundle.reading
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        st.markdown(f"**{plain_md(staging.short(reading.name))}**", width="content")
        st.badge(runs_text(len(reading.runs)), color="gray")
    st.caption(plain_md(f"{reading.tool} · {reading.tool_version} · {reading.why}"))
    flag_lines(kinds(reading.flags), MOST_LINES)
    if bundle.beside:
        names = ", ".join(staging.short(r.name) for r in bundle.beside)
        st.caption(f":material/join_inner: {plain_md(f'completed by {names}')}")
    _refused_mapping(staging, reading)
    if st.button("What was read", icon=":material/fact_check:", key=f"read-{slot}"):
        title = plain_md(staging.short(reading.name))
        st.dialog(title, width="large")(_details)(bundle, [r for _, r in staging.runs.values()])


def _overview(staging: Staging, results: Sequence[Bundle]) -> None:
    read = [b.reading for b in results]
    st.dataframe(
        {
            "file": [staging.short(r.name) for r in read],
            "tool": [r.tool for r in read],
            "version": [r.tool_version for r in read],
            "runs": [len(r.runs) for r in read],
            "completed by": [
                ", ".join(staging.short(s.name) for s in b.beside) or None for b in results
            ],
            "flags": [", ".join(k[0].code for k in kinds(r.flags)) or None for r in read],
            "recognised by": [r.why for r in read],
        },
        hide_index=True,
        height=280,
        placeholder="–",
        column_config={"runs": st.column_config.NumberColumn(width="small")},
        alt="The files that were read: tool, version, runs and flags of each.",
    )
    together: dict[tuple[str, str], list[Flag]] = {}
    for reading in read:
        for kind in kinds(reading.flags):
            together.setdefault((kind[0].severity, kind[0].code), []).extend(kind)
    flag_lines(list(together.values()))
    for reading in read:
        _refused_mapping(staging, reading)
    picked = st.selectbox(
        "Look into one file",
        range(len(results)),
        index=None,
        format_func=lambda at: staging.short(results[at].reading.name),
        placeholder=f"one of {len(results)} files, key by key",
        key=f"look-{staging.round}",
    )
    if picked is not None and picked < len(results):
        with st.container(border=True, gap="small"):
            _card(staging, results[picked], f"{staging.round}-look")


def _refused_mapping(staging: Staging, reading: Reading) -> None:
    found = staging.of(reading)
    if found is not None and found[1].refusal:
        st.error(plain_md(found[1].refusal), icon=":material/block:")


def _mapped(staging: Staging, results: Sequence[Bundle], store: Store | None) -> None:
    """A mapper for each shape that was mapped by hand, and for tables with columns to spare."""
    alike: dict[tuple[str, str], list[str]] = {}
    for bundle in results:
        found = staging.of(bundle.reading)
        if found is not None and found[1].columns:
            alike.setdefault((found[1].shape, mapper.how(found[1])), []).append(found[0])
    for (_, how), keys in alike.items():
        file = staging.files[keys[0]]
        more = f" and {counted(len(keys) - 1, 'more file')}" if len(keys) > 1 else ""
        title = plain_md(f"{staging.short(file.name)}{more}: {how}")
        with st.expander(title, icon=":material/table_edit:", key=f"mapped-{keys[0]}"):
            mapper.draw(staging, keys[0], store)


def _details(bundle: Bundle, among: Sequence[Run]) -> None:
    """What is missing and what it blocks, the notes, the mapping key by key."""
    reading = bundle.reading
    st.markdown(plain_md(f"Recognised as {reading.tool} {reading.tool_version}: {reading.why}."))
    gaps = [line for line in (*missing(reading.runs), repeats(reading.runs, among)) if line]
    st.markdown("**What is missing, and what it blocks**")
    st.markdown(_listed(gaps) if gaps else "Nothing: it can be compared and priced.")
    if bundle.beside:
        taken = [f.message for f in reading.flags if f.code == "taken_from_beside"]
        st.markdown("**What lay beside it**")
        st.markdown(_listed([*dict.fromkeys(taken)] or [r.name for r in bundle.beside]))
    if flags := kinds(reading.flags):
        st.markdown("**Flags**")
        flag_lines(flags)
    st.markdown("**Where each field comes from**")
    _keys(reading.keys, reading.runs[0])


def _keys(keys: Sequence[Key], first: Run) -> None:
    if not keys:
        st.caption("The reader of this tool lists no keys.")
        return
    columns: dict[str, list[str | None]] = {
        "key in the file": [".".join(k.path) for k in keys],
        "field": [k.field for k in keys],
        "first run": [_value(first, k.field) for k in keys],
        "unit converted": [_converted(k) for k in keys],
        "note": [k.note or None for k in keys],
    }
    st.dataframe(
        {name: cells for name, cells in columns.items() if any(cells)},
        hide_index=True,
        height=min(35 * (len(keys) + 1) + 3, 420),
        placeholder="–",
        alt="The keys of the file, the field each is read into, its unit and the first value.",
    )


def _converted(key: Key) -> str | None:
    if key.factor == 1.0:
        return key.unit or None
    unit = f"{key.unit} " if key.unit and not key.unit.startswith("×") else ""
    return f"{unit}× {key.factor:g}"


def _value(run: Run, field: str) -> str | None:
    if field == ARM:
        return run.arm
    is_load = run.load_kind is not None and LOADS.get(field) is run.load_kind
    value = getattr(run, "offered_load" if is_load else field, None)
    if value is None:
        return None
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _others(staging: Staging) -> None:
    """A calm line for each file without runs: what it is, what it told of which runs."""
    lines = []
    for reading, told in staging.others:
        said = [f.message for f in reading.flags if f.run_id is None] or [reading.why]
        what = said[0].removeprefix(f"{reading.name}: ")
        text = f"{staging.short(reading.name)}: {what}" + (f"; {told}" if told else "")
        lines.append(f":material/attach_file: {plain_md(text)}")
    if not lines:
        return
    if len(lines) <= MOST_CARDS:
        st.caption("  \n".join(lines))
        return
    with st.expander(f"{counted(len(lines), 'file')} without runs of their own"):
        st.caption("  \n".join(lines))


def _listed(lines: Sequence[str]) -> str:
    return "\n".join(f"- {plain_md(line)}" for line in lines)
