"""Statements about runs and studies, each on one cursor inside the caller's transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import pyarrow as pa
from duckdb import DuckDBPyConnection

from lib.results.columns import KINDS, runs_from_columns, runs_to_table
from lib.results.versions import Version
from lib.run import EDITABLE, Run, SpecState

_OWN: dict[str, pa.DataType] = {
    "version": pa.int64(),
    "import_id": pa.string(),
    "revises": pa.bool_(),
    "stated": pa.list_(pa.string()),
    "carried": pa.list_(pa.string()),
    "request_key": pa.int64(),
}
VERSION_COLUMNS = (*KINDS, *_OWN)
_CELL = (
    "spec_state",
    "draft_method",
    "num_speculative_tokens",
    "schedule",
    "load_kind",
    "offered_load",
)
SOME = "run_id IN (SELECT unnest(?::VARCHAR[]))"


def select_studies(cursor: DuckDBPyConnection) -> tuple[str, ...]:
    """Names of the studies, the newest first."""
    rows = cursor.execute("SELECT study FROM studies ORDER BY created_at DESC, study").fetchall()
    return tuple(name for (name,) in rows)


def select_changed(cursor: DuckDBPyConnection, study: str) -> int | None:
    """The change of the store that moved the study last; None where there is no such study."""
    row = cursor.execute("SELECT changed FROM studies WHERE study = ?", [study]).fetchone()
    return None if row is None else row[0]


def has_study(cursor: DuckDBPyConnection, study: str) -> bool:
    """Whether the store holds the study."""
    row = cursor.execute("SELECT 1 FROM studies WHERE study = ?", [study]).fetchone()
    return row is not None


def select_runs(cursor: DuckDBPyConnection, study: str) -> tuple[Run, ...]:
    """A study's runs, ordered by load, arm and repeat."""
    found = cursor.execute(f"SELECT {', '.join(KINDS)} FROM runs WHERE study = ?", [study])
    return tuple(sorted(runs_from_columns(_columns(found, len(KINDS))), key=_position))


def select_versions(
    cursor: DuckDBPyConnection, study: str, run_ids: Sequence[str], table: str = "runs"
) -> list[Version]:
    """The current versions of these runs, or from `past_runs` those before, the oldest first."""
    names = [*VERSION_COLUMNS, *(["replaced_at"] if table == "past_runs" else [])]
    found = cursor.execute(
        f"SELECT {', '.join(names)} FROM {table} WHERE study = ? AND {SOME} ORDER BY version",
        [study, list(run_ids)],
    )
    columns = _columns(found, len(names))
    runs = runs_from_columns(columns[: len(KINDS)])
    return [
        Version(
            run,
            version,
            import_id,
            revises,
            None if stated is None else tuple(stated),
            tuple(carried or ()),
            request_key,
            replaced_at[0] if replaced_at else None,
        )
        for run, version, import_id, revises, stated, carried, request_key, *replaced_at in zip(
            runs, *columns[len(KINDS) :], strict=True
        )
    ]


def select_ids_of_import(cursor: DuckDBPyConnection, study: str, import_id: str) -> list[str]:
    """Ids of the runs that have a version, current or past, of this import."""
    rows = cursor.execute(
        "SELECT run_id FROM runs WHERE study = ? AND import_id = ? "
        "UNION SELECT run_id FROM past_runs WHERE study = ? AND import_id = ?",
        [study, import_id, study, import_id],
    ).fetchall()
    return sorted(run_id for (run_id,) in rows)


def insert_versions(
    cursor: DuckDBPyConnection, versions: Sequence[Version], table: str = "runs"
) -> None:
    """Insert rows of `runs` or of `past_runs`."""
    if not versions:
        return
    rows = runs_to_table([v.run for v in versions])
    # BY NAME leaves the rest null: half of a hundred columns are.
    rows = rows.select([n for n in rows.column_names if rows.column(n).null_count < len(rows)])
    kinds = _OWN | ({"replaced_at": pa.timestamp("us")} if table == "past_runs" else {})
    for name, kind in kinds.items():
        rows = rows.append_column(name, pa.array([getattr(v, name) for v in versions], kind))
    cursor.register("incoming_runs", rows)
    cursor.execute(f"INSERT INTO {table} BY NAME SELECT * FROM incoming_runs")


def set_past(cursor: DuckDBPyConnection, study: str, versions: Sequence[Version]) -> None:
    """Move versions that are replaced now out of `runs`."""
    at = now()
    insert_versions(cursor, [replace(v, replaced_at=at) for v in versions], "past_runs")
    delete_versions(cursor, study, [v.run.run_id for v in versions], ("runs",))


def delete_versions(
    cursor: DuckDBPyConnection,
    study: str,
    run_ids: Sequence[str],
    among: Sequence[str] = ("runs", "past_runs"),
) -> None:
    """Delete all rows of these runs."""
    for table in among:
        cursor.execute(f"DELETE FROM {table} WHERE study = ? AND {SOME}", [study, list(run_ids)])


def update(
    cursor: DuckDBPyConnection, study: str, run_ids: Sequence[str], values: Mapping[str, object]
) -> None:
    """State columns of these runs. The names go into the statement: they must be columns."""
    columns = [v.value if isinstance(v, Enum) else v for v in values.values()]
    cursor.execute(
        f"UPDATE runs SET {', '.join(f'{name} = ?' for name in values)}, "
        "stated = CASE WHEN stated IS NULL THEN NULL "
        "ELSE list_distinct(list_concat(stated, ?::VARCHAR[])) END "
        f"WHERE study = ? AND {SOME}",
        [*columns, [n for n in values if n in EDITABLE], study, list(run_ids)],
    )


def numbered(cursor: DuckDBPyConnection, study: str, runs: Sequence[Run]) -> list[Run]:
    """The runs, those of a known arm and load with the next repeat number where they have none.

    Only the cells of these runs are looked at, so a file costs the same in a large study.
    """
    open_runs = [
        r
        for r in runs
        if r.repeat is None and r.spec_state != SpecState.UNKNOWN and r.offered_load is not None
    ]
    if not open_runs:
        return list(runs)
    rows = cursor.execute(
        f"SELECT {', '.join(_CELL)}, max(repeat) FROM runs WHERE study = ? "
        "AND offered_load IN (SELECT unnest(?::DOUBLE[])) AND repeat IS NOT NULL GROUP BY ALL",
        [study, list({r.offered_load for r in open_runs})],
    ).fetchall()
    last: dict[tuple[Any, ...], int] = {tuple(cell): repeat for *cell, repeat in rows}
    for run in runs:
        if run.repeat is not None:
            last[_cell(run)] = max(run.repeat, last.get(_cell(run), 0))
    given = {}
    for run in sorted(open_runs, key=_moment):
        last[_cell(run)] = given[run.run_id] = last.get(_cell(run), 0) + 1
    return [replace(r, repeat=given.get(r.run_id, r.repeat)) for r in runs]


def number_repeats(cursor: DuckDBPyConnection, study: str, run_ids: Sequence[str]) -> None:
    """Give these runs the next repeat number of their cell, where they have none."""
    runs = [v.run for v in select_versions(cursor, study, run_ids) if v.run.repeat is None]
    given: dict[int, list[str]] = {}
    for run in numbered(cursor, study, runs):
        if run.repeat is not None:
            given.setdefault(run.repeat, []).append(run.run_id)
    for repeat, ids in given.items():
        cursor.execute(
            f"UPDATE runs SET repeat = ? WHERE study = ? AND {SOME}", [repeat, study, ids]
        )


def begin_change(cursor: DuckDBPyConnection, request_keys: int = 0) -> tuple[int, int]:
    """The number of this change of the store, and the first of so many new request keys."""
    cursor.execute(
        "UPDATE meta SET changes = changes + 1, request_keys = request_keys + ?", [request_keys]
    )
    row = cursor.execute("SELECT changes, request_keys FROM meta").fetchone()
    assert row is not None
    return row[0], row[1] - request_keys + 1


def touch(cursor: DuckDBPyConnection, study: str, change: int) -> None:
    """Move the study's fingerprint to a change; a study without runs is none."""
    if cursor.execute("SELECT 1 FROM runs WHERE study = ? LIMIT 1", [study]).fetchone() is None:
        cursor.execute("DELETE FROM studies WHERE study = ?", [study])
    elif has_study(cursor, study):
        cursor.execute("UPDATE studies SET changed = ? WHERE study = ?", [change, study])
    else:
        cursor.execute("INSERT INTO studies VALUES (?, ?, ?)", [study, now(), change])


def now() -> datetime:
    """The time in UTC, without a zone, as the store keeps it."""
    return datetime.now(UTC).replace(tzinfo=None)


def _columns(found: DuckDBPyConnection, count: int) -> list[Sequence[Any]]:
    """A result's `count` columns. Arrow takes longer over a hundred columns of a hundred rows."""
    rows = found.fetchall()
    return list(zip(*rows, strict=True)) if rows else [()] * count


def _cell(run: Run) -> tuple[Any, ...]:
    return tuple(getattr(run, name) for name in _CELL)


def _moment(run: Run) -> tuple[bool, datetime, str]:
    at = run.started_at
    if at is not None and at.tzinfo is not None:
        at = at.astimezone(UTC).replace(tzinfo=None)
    return (at is None, at or datetime.min, run.run_id)


def _position(run: Run) -> tuple[Any, ...]:
    k = -1 if run.num_speculative_tokens is None else run.num_speculative_tokens
    load = (run.load_kind or "", run.offered_load or 0.0)
    arm = (run.spec_state, run.draft_method or "", k, run.schedule or "")
    return (*load, *arm, run.repeat or 0, run.run_id)
