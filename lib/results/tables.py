"""The store's statements, each on one cursor inside the caller's transaction."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from duckdb import DuckDBPyConnection

from lib.results.columns import KINDS, requests_to_table, run_from_row, runs_to_table
from lib.results.reading import Reading
from lib.run import Run


def select_studies(cursor: DuckDBPyConnection) -> tuple[str, ...]:
    """Names of the studies, the newest first."""
    rows = cursor.execute("SELECT study FROM studies ORDER BY created_at DESC, study").fetchall()
    return tuple(name for (name,) in rows)


def select_runs(
    cursor: DuckDBPyConnection, study: str, run_ids: Sequence[str] | None = None
) -> tuple[Run, ...]:
    """A study's runs, or those of these ids, ordered by load, arm and repeat."""
    query = f"SELECT {', '.join(KINDS)} FROM runs WHERE study = ?"
    if run_ids is None:
        rows = cursor.execute(query, [study]).fetchall()
    else:
        some = f"{query} AND run_id IN (SELECT unnest(?::VARCHAR[]))"
        rows = cursor.execute(some, [study, list(run_ids)]).fetchall()
    return tuple(sorted((run_from_row(row) for row in rows), key=_position))


def count_runs(cursor: DuckDBPyConnection, study: str) -> int:
    """How many runs the study has."""
    row = cursor.execute("SELECT count(*) FROM runs WHERE study = ?", [study]).fetchone()
    assert row is not None
    return int(row[0])


def select_file_names(cursor: DuckDBPyConnection, study: str) -> dict[str, str]:
    """Names of the study's files by digest."""
    return dict(
        cursor.execute("SELECT sha256, name FROM sources WHERE study = ?", [study]).fetchall()
    )


def select_holders(
    cursor: DuckDBPyConnection, study: str, run_ids: Sequence[str]
) -> dict[str, str]:
    """Digest of the file that each of these runs rests on, for those that the study has."""
    return dict(
        cursor.execute(
            "SELECT run_id, source_sha256 FROM runs "
            "WHERE study = ? AND run_id IN (SELECT unnest(?::VARCHAR[]))",
            [study, list(run_ids)],
        ).fetchall()
    )


def insert(
    cursor: DuckDBPyConnection, reading: Reading, study: str, by: str, runs: Sequence[Run]
) -> None:
    """Insert a file with those of its runs that the study takes, and their requests."""
    source: list[Any] = [
        study,
        reading.sha256,
        reading.name,
        reading.tool,
        reading.tool_version,
        reading.kept,
        _now(),
        by,
        len(reading.runs),
    ]
    cursor.execute(f"INSERT INTO sources VALUES ({', '.join('?' for _ in source)})", source)
    cursor.register("incoming_runs", runs_to_table(runs))
    cursor.execute("INSERT INTO runs BY NAME SELECT * FROM incoming_runs")
    requests = requests_to_table(study, reading.requests, [r.run_id for r in runs])
    cursor.register("incoming_requests", requests)
    cursor.execute("INSERT INTO requests BY NAME SELECT * FROM incoming_requests")


def update(
    cursor: DuckDBPyConnection, study: str, run_ids: Sequence[str], values: Mapping[str, object]
) -> None:
    """Set columns of these runs. The names go into the statement: they must be columns."""
    columns = [v.value if isinstance(v, Enum) else v for v in values.values()]
    cursor.execute(
        f"UPDATE runs SET {', '.join(f'{name} = ?' for name in values)} "
        "WHERE study = ? AND run_id IN (SELECT unnest(?::VARCHAR[]))",
        [*columns, study, list(run_ids)],
    )


def delete(cursor: DuckDBPyConnection, study: str, run_ids: Sequence[str]) -> None:
    """Delete these runs, their requests, and the files that no run rests on any more."""
    for table in ("requests", "runs"):
        cursor.execute(
            f"DELETE FROM {table} WHERE study = ? AND run_id IN (SELECT unnest(?::VARCHAR[]))",
            [study, list(run_ids)],
        )
    cursor.execute(
        "DELETE FROM sources WHERE study = ? "
        "AND sha256 NOT IN (SELECT source_sha256 FROM runs WHERE study = ?)",
        [study, study],
    )


def number_repeats(cursor: DuckDBPyConnection, study: str) -> None:
    """Give runs of a known arm and load the next repeat number, where they have none."""
    cursor.execute(
        """
        UPDATE runs SET repeat = numbered.repeat FROM (
            SELECT run_id, coalesce(max(repeat) OVER cell, 0) + row_number() OVER (
                PARTITION BY spec_state, draft_method, num_speculative_tokens, schedule,
                    load_kind, offered_load, repeat IS NULL
                ORDER BY started_at, run_id
            ) AS repeat
            FROM runs WHERE study = ? AND spec_state <> 'unknown' AND offered_load IS NOT NULL
            WINDOW cell AS (
                PARTITION BY spec_state, draft_method, num_speculative_tokens, schedule,
                    load_kind, offered_load
            )
        ) AS numbered
        WHERE runs.study = ? AND runs.run_id = numbered.run_id AND runs.repeat IS NULL
        """,
        [study, study],
    )


def touch(cursor: DuckDBPyConnection, study: str) -> None:
    """Move the study's fingerprint; a study without runs is none."""
    cursor.execute("UPDATE meta SET changes = changes + 1")
    if not count_runs(cursor, study):
        cursor.execute("DELETE FROM studies WHERE study = ?", [study])
    elif study in select_studies(cursor):
        cursor.execute(
            "UPDATE studies SET changed = (SELECT changes FROM meta) WHERE study = ?", [study]
        )
    else:
        cursor.execute(
            "INSERT INTO studies SELECT ?, ?::TIMESTAMP, changes FROM meta", [study, _now()]
        )


def _position(run: Run) -> tuple[Any, ...]:
    k = -1 if run.num_speculative_tokens is None else run.num_speculative_tokens
    load = (run.load_kind or "", run.offered_load or 0.0)
    arm = (run.spec_state, run.draft_method or "", k, run.schedule or "")
    return (*load, *arm, run.repeat or 0, run.run_id)


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)
