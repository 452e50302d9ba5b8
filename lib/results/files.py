"""Statements about what runs rest on: files, their flags, and the imports that brought them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
from duckdb import DuckDBPyConnection

from lib.results import checks
from lib.results.findings import Flag
from lib.results.reading import Reading
from lib.results.redaction import redact_text
from lib.results.tables import SOME, now
from lib.run import Run

# What the pages work out anew from the runs as they are now.
FROM_NAMES = frozenset({"arm_unknown", "arm_contradicted"})
# A file is shown while a run as it is now rests on it.
SHOWN = (
    "EXISTS (SELECT 1 FROM run_files AS link WHERE link.study = sources.study "
    "AND link.sha256 = sources.sha256 AND NOT link.past)"
)
FLAG_SHOWN = (
    "EXISTS (SELECT 1 FROM run_files AS link WHERE link.study = flags.study "
    "AND link.sha256 = flags.sha256 AND NOT link.past "
    "AND (flags.run_id IS NULL OR link.run_id = flags.run_id))"
)
_FLAGS = pa.schema(
    {name: pa.string() for name in ("study", "run_id", "sha256", "code", "severity", "message")}
)
Link = tuple[str, str, int, bool]  # run_id, sha256, version, past


@dataclass(frozen=True)
class Source:
    """A file that runs of a study rest on.

    `runs` counts what the file reported, `imported_at` is UTC without a zone, `kept` says whether
    the redacted document is in the store.
    """

    sha256: str
    name: str
    tool: str
    tool_version: str
    imported_at: datetime
    imported_by: str
    runs: int
    kept: bool


@dataclass(frozen=True)
class Import:
    """What was brought to a study as one, and can be taken back as one.

    `at` is UTC without a zone. `files` and `runs` count what is left of it, runs that a later
    import replaced included.
    """

    id: str
    at: datetime
    by: str
    files: int
    runs: int


def select_shown(cursor: DuckDBPyConnection, study: str, digests: Sequence[str]) -> dict[str, str]:
    """Names of those of these files that runs rest on as they are now, by digest."""
    there = select_names(cursor, study, digests)
    if not there:
        return {}
    rows = cursor.execute(
        "SELECT DISTINCT sha256 FROM run_files WHERE study = ? AND NOT past "
        "AND sha256 IN (SELECT unnest(?::VARCHAR[]))",
        [study, list(there)],
    ).fetchall()
    return {sha256: there[sha256] for (sha256,) in rows}


def select_names(cursor: DuckDBPyConnection, study: str, digests: Sequence[str]) -> dict[str, str]:
    """Names of those of these files that the study has, by digest."""
    rows = cursor.execute(
        "SELECT sha256, name FROM sources WHERE study = ? "
        "AND sha256 IN (SELECT unnest(?::VARCHAR[]))",
        [study, list(digests)],
    ).fetchall()
    return dict(rows)


def select_holders(
    cursor: DuckDBPyConnection, study: str, run_ids: Sequence[str]
) -> dict[str, tuple[str, str]]:
    """Digest and name of the file that each of these runs was read from, where there is one."""
    rows = cursor.execute(
        f"WITH held AS (SELECT run_id, source_sha256 FROM runs WHERE study = ? AND {SOME}) "
        "SELECT run_id, source_sha256, name FROM held JOIN sources ON sha256 = source_sha256 "
        "WHERE study = ?",
        [study, list(run_ids), study],
    ).fetchall()
    return {run_id: (sha256, name) for run_id, sha256, name in rows}


def put_sources(
    cursor: DuckDBPyConnection,
    study: str,
    by: str,
    readings: Mapping[str, tuple[Reading, int]],
) -> set[str]:
    """Insert files, each with the count of runs it reported, unless they are there; the new ones.

    What only a file knows is stored with it.
    """
    new = readings.keys() - select_names(cursor, study, list(readings)).keys()
    for sha256 in (s for s in readings if s in new):
        reading, count = readings[sha256]
        cursor.execute(
            "INSERT INTO sources VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                study,
                sha256,
                reading.name,
                reading.tool,
                reading.tool_version,
                reading.kept,
                now(),
                by,
                count,
            ],
        )
    return new


def put_flags(
    cursor: DuckDBPyConnection, study: str, sha256: str, flags: Sequence[Flag], runs: Iterable[Run]
) -> None:
    """Store a file's flags about itself and about these runs, once each.

    Left out is what `checks.inspect` says of the runs anyway, and what depends on their names.
    """
    runs = tuple(runs)
    seen = {(f.run_id, f.code) for run in runs for f in checks.inspect(run)}
    about = {None, *(run.run_id for run in runs)}
    kept = [
        (study, f.run_id, sha256, f.code, f.severity, redact_text(f.message))
        for f in dict.fromkeys(flags)
        if f.run_id in about and f.code not in FROM_NAMES and (f.run_id, f.code) not in seen
    ]
    if kept:
        columns = list(zip(*kept, strict=True))
        cursor.register("incoming_flags", pa.table([pa.array(c) for c in columns], schema=_FLAGS))
        cursor.execute(
            "INSERT INTO flags SELECT * FROM incoming_flags AS new WHERE NOT EXISTS ("
            "SELECT 1 FROM flags WHERE flags.study = new.study AND flags.sha256 = new.sha256 "
            "AND flags.run_id IS NOT DISTINCT FROM new.run_id AND flags.code = new.code "
            "AND flags.message = new.message)"
        )


def put_links(cursor: DuckDBPyConnection, study: str, links: Sequence[Link]) -> None:
    """Say which files runs rest on."""
    if not links:
        return
    cursor.execute(
        "INSERT INTO run_files SELECT ?, unnest(?::VARCHAR[]), unnest(?::VARCHAR[]), "
        "unnest(?::BIGINT[]), unnest(?::BOOLEAN[])",
        [study, *(list(column) for column in zip(*links, strict=True))],
    )


def set_past(cursor: DuckDBPyConnection, study: str, run_ids: Sequence[str]) -> None:
    """What these runs rested on, they rest on no more: something else takes their place."""
    cursor.execute(
        f"UPDATE run_files SET past = true WHERE study = ? AND {SOME}", [study, list(run_ids)]
    )


def select_links(cursor: DuckDBPyConnection, study: str, run_ids: Sequence[str]) -> list[Link]:
    """The links of these runs."""
    return cursor.execute(
        f"SELECT run_id, sha256, version, past FROM run_files WHERE study = ? AND {SOME}",
        [study, list(run_ids)],
    ).fetchall()


def delete_links(cursor: DuckDBPyConnection, study: str, run_ids: Sequence[str]) -> None:
    """Forget what these runs rest on."""
    cursor.execute(f"DELETE FROM run_files WHERE study = ? AND {SOME}", [study, list(run_ids)])


def put_import(cursor: DuckDBPyConnection, study: str, import_id: str, by: str) -> None:
    """Write down an import, once."""
    cursor.execute(
        "INSERT INTO imports SELECT ?, ?, ?::TIMESTAMP, ? WHERE NOT EXISTS "
        "(SELECT 1 FROM imports WHERE study = ? AND import_id = ?)",
        [study, import_id, now(), by, study, import_id],
    )


def select_imports(
    cursor: DuckDBPyConnection, study: str
) -> list[tuple[str, datetime, str, int, int]]:
    """Id, time, person, files and runs of each import that something is left of, newest first."""
    return cursor.execute(
        """
        WITH brought AS (
            SELECT run_id, version, import_id FROM runs WHERE study = ?
            UNION SELECT run_id, version, import_id FROM past_runs WHERE study = ?
        ), linked AS (SELECT run_id, version, sha256 FROM run_files WHERE study = ?)
        SELECT import_id, any_value(imported_at) AS since, any_value(imported_by),
            count(DISTINCT sha256), count(DISTINCT run_id)
        FROM imports JOIN brought USING (import_id) LEFT JOIN linked USING (run_id, version)
        WHERE imports.study = ? GROUP BY import_id ORDER BY since DESC, max(version) DESC
        """,
        [study, study, study, study],
    ).fetchall()


def delete_orphans(cursor: DuckDBPyConnection, study: str) -> None:
    """Delete files and flags that no run or past run rests on, and imports with nothing left."""
    cursor.execute(
        "DELETE FROM sources WHERE study = ? "
        "AND sha256 NOT IN (SELECT sha256 FROM run_files WHERE study = ?)",
        [study, study],
    )
    cursor.execute(
        "DELETE FROM flags WHERE study = ? AND NOT EXISTS (SELECT 1 FROM run_files AS link "
        "WHERE link.study = flags.study AND link.sha256 = flags.sha256 "
        "AND (flags.run_id IS NULL OR link.run_id = flags.run_id))",
        [study],
    )
    cursor.execute(
        "DELETE FROM imports WHERE study = ? AND import_id NOT IN ("
        "SELECT import_id FROM runs WHERE study = ? "
        "UNION SELECT import_id FROM past_runs WHERE study = ?)",
        [study, study, study],
    )
