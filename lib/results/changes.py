"""What changes a study's runs: adding a bundle, revising runs, taking an import back."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

import pyarrow as pa
from duckdb import DuckDBPyConnection

from lib.errors import InputError
from lib.results import files, requests, tables, versions
from lib.results.columns import KINDS
from lib.results.reading import Reading
from lib.results.redaction import redact_text
from lib.results.versions import Version
from lib.run import Run

OF_STUDY = ("request_sets", "runs", "past_runs", "run_files", "sources", "flags", "imports")
_OWN_TEXTS = ("run_id", "study", "source_sha256", "schedule", "extra")  # ours, or redacted before


@dataclass(frozen=True)
class Added:
    """What a file brought to a study.

    `new` counts runs that were not there; `duplicates` are the run ids that were. `duplicate_of`
    names the earlier file where the whole file adds nothing, `replaces` the earlier files that it
    makes superfluous: a CSV of the same runs.
    """

    new: int
    duplicates: tuple[str, ...] = ()
    duplicate_of: str | None = None
    replaces: tuple[str, ...] = ()


@dataclass(frozen=True)
class Undone:
    """What taking an import back did: runs that are gone, and runs that are as they were before."""

    removed: int
    restored: int


@dataclass(frozen=True)
class Origin:
    """Which import of which person brings something."""

    import_id: str
    by: str


def add(
    cursor: DuckDBPyConnection,
    reading: Reading,
    study: str,
    beside: Sequence[Reading],
    origin: Origin,
) -> Added:
    """Add a reading's runs to a study, with the files beside it that completed them."""
    run_ids = list(dict.fromkeys(r.run_id for r in reading.runs))
    known = files.select_shown(cursor, study, [reading.sha256])
    if known:
        return Added(0, tuple(run_ids), known[reading.sha256])
    holders = files.select_holders(cursor, study, run_ids)
    superseded = [i for i, (_, name) in holders.items() if _supersedes(reading.name, name)]
    duplicates = tuple(i for i in run_ids if i in holders and i not in superseded)
    incoming = {
        r.run_id: replace(_without_secrets(r), study=study, source_sha256=reading.sha256)
        for r in reversed(reading.runs)  # of a run_id given twice the first stays
        if r.run_id not in duplicates
    }
    if not incoming:
        return Added(0, duplicates, holders[duplicates[0]][1] if duplicates else None)
    ordered = [incoming[i] for i in run_ids if i in incoming]
    replaced = {i: holders[i] for i in superseded}
    _insert(cursor, reading, study, beside, origin, ordered, replaced)
    digests = dict(replaced.values())
    gone = digests.keys() - files.select_shown(cursor, study, list(digests)).keys()
    names = tuple(sorted(digests[sha256] for sha256 in gone))
    return Added(len(incoming) - len(superseded), duplicates, None, names)


def _insert(
    cursor: DuckDBPyConnection,
    reading: Reading,
    study: str,
    beside: Sequence[Reading],
    origin: Origin,
    runs: Sequence[Run],
    replaced: Collection[str],
) -> None:
    with_requests = [r.run_id for r in runs if len(reading.requests.get(r.run_id, ()))]
    change, first_key = tables.begin_change(cursor, len(with_requests))
    keys = {run_id: first_key + at for at, run_id in enumerate(with_requests)}
    brought = {
        r.run_id: Version(r, change, origin.import_id, request_key=keys.get(r.run_id)) for r in runs
    }
    if replaced:
        earlier = tables.select_versions(cursor, study, list(replaced))
        for version in earlier:
            run_id = version.run.run_id
            brought[run_id] = versions.superseding(brought[run_id], version)
        tables.set_past(cursor, study, earlier)
        files.set_past(cursor, study, list(replaced))
    given = tables.numbered(cursor, study, [v.run for v in brought.values()])
    rows = [replace(v, run=r) for v, r in zip(brought.values(), given, strict=True)]
    read = {b.sha256: (b, 0) for b in beside} | {reading.sha256: (reading, len(reading.runs))}
    files.put_sources(cursor, study, origin.by, read)
    tables.insert_versions(cursor, rows)
    requests.insert(cursor, study, reading.requests, keys)
    if replaced:
        requests.mark(cursor, study, list(replaced))
    links = [(i, reading.sha256, change, False) for i in brought]
    for other in beside:
        about = other.beside.run_ids if other.beside else ()
        of_these = [i for i in brought if i in about] or brought
        links += [(i, other.sha256, change, False) for i in of_these]
    files.put_links(cursor, study, list(dict.fromkeys(links)))
    for each, _ in read.values():
        files.put_flags(cursor, study, each.sha256, each.flags, given)
    files.put_import(cursor, study, origin.import_id, origin.by)
    tables.touch(cursor, study, change)


def revise(
    cursor: DuckDBPyConnection,
    study: str,
    revised: Mapping[str, Run],
    because: Reading,
    records: Mapping[str, pa.Table],
    origin: Origin,
) -> int:
    """Put revised runs in the place of those that do not rest on `because` yet; how many."""
    ids = list(revised)
    held = {v.run.run_id: v for v in tables.select_versions(cursor, study, ids)}
    unknown = sorted(({*ids, *records}) - held.keys())
    if unknown:
        raise InputError(f"run {unknown[0]!r}: not in the study {study!r}")
    linked = {
        run_id
        for run_id, sha256, _, past in files.select_links(cursor, study, ids)
        if sha256 == because.sha256 and not past
    }
    fresh = [i for i in ids if i not in linked]
    if not fresh:
        return 0
    with_requests = [i for i in fresh if len(records.get(i, ()))]
    change, first_key = tables.begin_change(cursor, len(with_requests))
    keys = {run_id: first_key + at for at, run_id in enumerate(with_requests)}
    rows = []
    for run_id in fresh:
        version = versions.revising(
            held[run_id], _without_secrets(revised[run_id]), change, origin.import_id
        )
        key = keys.get(run_id, version.request_key)
        rows.append(replace(version, request_key=key))
    tables.set_past(cursor, study, [held[i] for i in fresh])
    given = tables.numbered(cursor, study, [v.run for v in rows])
    rows = [replace(v, run=r) for v, r in zip(rows, given, strict=True)]
    files.put_sources(cursor, study, origin.by, {because.sha256: (because, len(because.runs))})
    tables.insert_versions(cursor, rows)
    requests.insert(cursor, study, records, keys)
    requests.mark(cursor, study, fresh)
    files.put_links(cursor, study, [(i, because.sha256, change, False) for i in fresh])
    files.put_flags(cursor, study, because.sha256, because.flags, given)
    files.put_import(cursor, study, origin.import_id, origin.by)
    tables.touch(cursor, study, change)
    return len(fresh)


def undo(cursor: DuckDBPyConnection, study: str, import_id: str) -> Undone:
    """Leave the study as if the import had never been, as far as other imports allow."""
    ids = tables.select_ids_of_import(cursor, study, import_id)
    if not ids:
        raise InputError(
            f"import {import_id[:100]!r}: not in the study {study!r}, or undone before"
        )
    stacks: dict[str, list[Version]] = {i: [] for i in ids}
    for table in ("past_runs", "runs"):
        for version in tables.select_versions(cursor, study, ids, table):
            stacks[version.run.run_id].append(version)
    left = {i: versions.without(stack, import_id) for i, stack in stacks.items()}
    change, _ = tables.begin_change(cursor)
    _rewrite(cursor, study, left)
    tables.touch(cursor, study, change)
    restored = sum(1 for i, s in left.items() if s and s[-1].version != stacks[i][-1].version)
    return Undone(sum(1 for s in left.values() if not s), restored)


def delete(cursor: DuckDBPyConnection, study: str, run_ids: Sequence[str]) -> int:
    """Delete runs with all that they alone rest on; how many there were."""
    found = [v.run.run_id for v in tables.select_versions(cursor, study, run_ids)]
    if found:
        change, _ = tables.begin_change(cursor)
        _rewrite(cursor, study, dict.fromkeys(found, ()))
        tables.touch(cursor, study, change)
    return len(found)


def delete_study(cursor: DuckDBPyConnection, study: str) -> int:
    """Delete a study with all it holds; the number of runs it had."""
    row = cursor.execute("SELECT count(*) FROM runs WHERE study = ?", [study]).fetchone()
    cursor.execute(
        "DELETE FROM requests WHERE request_key IN "
        "(SELECT request_key FROM request_sets WHERE study = ?)",
        [study],
    )
    for table in OF_STUDY:
        cursor.execute(f"DELETE FROM {table} WHERE study = ?", [study])
    change, _ = tables.begin_change(cursor)
    tables.touch(cursor, study, change)
    return 0 if row is None else int(row[0])


def _rewrite(cursor: DuckDBPyConnection, study: str, left: Mapping[str, Sequence[Version]]) -> None:
    """Make these stacks of versions, the current one last, all that is left of their runs."""
    ids = list(left)
    keys = requests.select_keys(cursor, study, ids)
    links = files.select_links(cursor, study, ids)
    tables.delete_versions(cursor, study, ids)
    files.delete_links(cursor, study, ids)
    tables.insert_versions(cursor, [v for s in left.values() for v in s[:-1]], "past_runs")
    tables.insert_versions(cursor, [s[-1] for s in left.values() if s])
    numbers = {i: {v.version for v in s} for i, s in left.items()}
    chains = {i: versions.current_chain(s) for i, s in left.items()}
    kept = [
        (i, sha256, version, version not in chains[i])
        for i, sha256, version, _ in links
        if version in numbers[i]
    ]
    files.put_links(cursor, study, kept)
    requests.delete(cursor, keys - {v.request_key for stack in left.values() for v in stack})
    still = [i for i, s in left.items() if s]
    if still:
        requests.mark(cursor, study, still)
        tables.number_repeats(cursor, study, still)
    files.delete_orphans(cursor, study)


def _without_secrets(run: Run) -> Run:
    """The run without what stands in its texts by mistake: a label that is a command line, say."""
    texts = {n: getattr(run, n) for n, kind in KINDS.items() if kind is str and n not in _OWN_TEXTS}
    clean = {n: redact_text(text) for n, text in texts.items() if text}
    changed: dict[str, Any] = {n: text for n, text in clean.items() if text != texts[n]}
    return replace(run, **changed) if changed else run


def _supersedes(name: str, earlier: str) -> bool:
    """Whether a file's runs take the place of the same runs in an earlier file."""
    csv, earlier_csv = (PurePath(n).suffix.lower() == ".csv" for n in (name, earlier))
    return earlier_csv and not csv
