"""The store: studies with their runs, requests and files, in one embedded DuckDB file."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from io import BytesIO
from pathlib import Path, PurePath
from threading import Lock

import duckdb
import pyarrow.parquet as pq

from lib.errors import InputError, ReadOnlyStudy, StoreError, StudyNotFound
from lib.results import published, tables
from lib.results.columns import checked, runs_to_table
from lib.results.database import open_database, plain_line
from lib.results.reading import Reading
from lib.run import EDITABLE, GROUPS, Run, Slo, SpecState, Study
from lib.settings import store_path

STUDY_NAME_LENGTH = 80
EXPORTS = {
    "runs": "SELECT * FROM runs ORDER BY study, run_id",
    "requests": "SELECT * FROM requests",
    "sources": "SELECT study, sha256, name, tool, tool_version, imported_at, imported_by, runs "
    "FROM sources ORDER BY study, imported_at, name",
}


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
class RequestCounts:
    """Requests of one run: all of them, and those that succeeded within every limit."""

    total: int
    good: int


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


class Store:
    """One root connection; a cursor per call, since a DuckDB connection serves one thread.

    Writers take turns. Each write is one transaction, all of it or none, and moves the study's
    fingerprint. Every method raises StoreError where DuckDB cannot do its part.
    """

    def __init__(self, root: duckdb.DuckDBPyConnection) -> None:
        self._root = root
        self._writing = Lock()

    @classmethod
    def open(cls, path: Path | None = None) -> "Store":
        """The store at `path` (default: DRAFTWORTH_STORE), created with its folder if missing.

        Raises StoreLocked while another process holds it, StoreError where the file is not a
        store of this version. A process opens a store once and shares it between its threads.
        """
        return cls(open_database(store_path() if path is None else path))

    def close(self) -> None:
        """Release the file to other processes."""
        self._root.close()

    def add(self, reading: Reading, study: str, by: str = "") -> Added:
        """Add a file's runs and requests to a study, creating the study if it is new.

        A run whose run_id the study has already is a duplicate, except that a JSON's run replaces
        the same run from a CSV and keeps what a person stated about it. Raises InputError for a
        study name that is not allowed or a value that cannot be stored, ReadOnlyStudy for the
        name of a published study.
        """
        study = study_name(study)
        with self._transaction() as cursor:
            return _add(cursor, reading, study, by)

    def studies(self) -> tuple[str, ...]:
        """Names of the studies, the newest first."""
        with self._cursor() as cursor:
            return tables.select_studies(cursor)

    def study(self, name: str) -> Study:
        """The study with its runs, ordered by load, arm and repeat. Raises StudyNotFound."""
        with self._cursor() as cursor:
            runs = tables.select_runs(cursor, name)
            if not runs:
                raise _not_found(cursor, name)
        return Study(name, runs)

    def fingerprint(self, study: str) -> str:
        """A token that differs whenever the study does, in this store or any other."""
        with self._cursor() as cursor:
            row = cursor.execute(
                "SELECT store_id, changed FROM meta, studies WHERE study = ?", [study]
            ).fetchone()
            if row is None:
                raise _not_found(cursor, study)
        return f"{row[0]}:{row[1]}"

    def update(self, study: str, run_ids: Sequence[str], fields: Mapping[str, object]) -> int:
        """State or correct EDITABLE fields of some runs; the number of runs it holds for.

        Raises InputError that names the field, or a run id the study does not have; nothing is
        changed then.
        """
        for name in fields:
            if name not in EDITABLE:
                raise InputError(f"{name}: cannot be edited; {', '.join(EDITABLE)} can")
        values = {name: checked(name, value) for name, value in fields.items()}
        with self._transaction() as cursor:
            _own(cursor, study)
            runs = tables.select_runs(cursor, study, run_ids)
            unknown = sorted(set(run_ids) - {r.run_id for r in runs})
            if unknown:
                raise InputError(f"run {unknown[0]!r}: not in the study {study!r}")
            runs_to_table([replace(r, **values) for r in runs])  # type: ignore[arg-type]
            if not runs or not values:
                return 0
            tables.update(cursor, study, run_ids, values)
            tables.number_repeats(cursor, study)
            tables.touch(cursor, study)
            return len(runs)

    def delete_runs(self, study: str, run_ids: Sequence[str]) -> int:
        """Delete runs with their requests, and files and a study that none is left of."""
        with self._transaction() as cursor:
            _own(cursor, study)
            found = [r.run_id for r in tables.select_runs(cursor, study, run_ids)]
            if found:
                tables.delete(cursor, study, found)
                tables.touch(cursor, study)
            return len(found)

    def delete_study(self, study: str) -> int:
        """Delete a study with all it holds; the number of runs it had."""
        with self._transaction() as cursor:
            _own(cursor, study)
            runs = tables.count_runs(cursor, study)
            for table in ("requests", "runs", "sources"):
                cursor.execute(f"DELETE FROM {table} WHERE study = ?", [study])
            tables.touch(cursor, study)
            return runs

    def request_counts(
        self, study: str, run_ids: Sequence[str], slo: Slo
    ) -> dict[str, RequestCounts]:
        """Requests of each run that meet every limit of the SLO, from the stored records.

        A run is left out where the records do not decide it: it has none, or a request of it
        lacks a latency that a limit is set on. A reply of one token has no TPOT to exceed.
        """
        unknown = ["ok IS NULL"]
        met = ["ok"]
        limits: list[object] = []
        for name, limit in slo.limits.items():
            exempt = "coalesce(output_tokens <= 1, false)" if name == "tpot_ms" else "false"
            unknown.append(f"(ok AND {name} IS NULL AND NOT {exempt})")
            met.append(f"coalesce({name} <= ?, {exempt})")
            limits.append(limit)
        with self._cursor() as cursor:
            rows = cursor.execute(
                f"SELECT run_id, count(*), count(*) FILTER ({' AND '.join(met)}) FROM requests "
                "WHERE study = ? AND run_id IN (SELECT unnest(?::VARCHAR[])) GROUP BY run_id "
                f"HAVING NOT bool_or({' OR '.join(unknown)})",
                [*limits, study, list(run_ids)],
            ).fetchall()
        return {run_id: RequestCounts(total, good) for run_id, total, good in rows}

    def sources(self, study: str) -> tuple[Source, ...]:
        """The files of a study in the order of their import. Raises StudyNotFound."""
        with self._cursor() as cursor:
            rows = cursor.execute(
                "SELECT sha256, name, tool, tool_version, imported_at, imported_by, runs, "
                "redacted IS NOT NULL FROM sources WHERE study = ? ORDER BY imported_at, name",
                [study],
            ).fetchall()
            if not rows:
                raise _not_found(cursor, study)
        return tuple(Source(*row) for row in rows)

    def export(self, table: str) -> bytes:
        """One of the tables runs, requests, sources as Parquet; kept documents stay behind."""
        if table not in EXPORTS:
            raise InputError(f"table {table!r}: one of {', '.join(EXPORTS)}")
        sink = BytesIO()
        with self._cursor() as cursor:
            batches = cursor.execute(EXPORTS[table]).to_arrow_reader()
            with pq.ParquetWriter(sink, batches.schema, compression="zstd") as writer:
                for batch in batches:
                    writer.write_batch(batch)
        return sink.getvalue()

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        try:
            cursor = self._root.cursor()
            try:
                yield cursor
            finally:
                cursor.close()
        except duckdb.Error as error:
            raise StoreError(f"the store could not do that: {plain_line(error)}") from error

    @contextmanager
    def _transaction(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with self._writing, self._cursor() as cursor:
            cursor.begin()
            try:
                yield cursor
                cursor.commit()
            except BaseException:
                with suppress(duckdb.Error):  # a failed commit has rolled back already
                    cursor.rollback()
                raise


def _add(cursor: duckdb.DuckDBPyConnection, reading: Reading, study: str, by: str) -> Added:
    run_ids = list(dict.fromkeys(r.run_id for r in reading.runs))
    files = tables.select_file_names(cursor, study)
    if reading.sha256 in files:
        return Added(0, tuple(run_ids), files[reading.sha256])
    holders = tables.select_holders(cursor, study, run_ids)
    superseded = [i for i, sha in holders.items() if _supersedes(reading.name, files[sha])]
    duplicates = tuple(i for i in run_ids if i in holders and i not in superseded)
    incoming = {
        r.run_id: replace(r, study=study, source_sha256=reading.sha256)
        for r in reversed(reading.runs)  # of a run_id given twice the first stays
        if r.run_id not in duplicates
    }
    if not incoming:
        return Added(0, duplicates, files[holders[duplicates[0]]] if duplicates else None)
    if superseded:
        for earlier in tables.select_runs(cursor, study, superseded):
            incoming[earlier.run_id] = _with_stated(incoming[earlier.run_id], earlier)
        tables.delete(cursor, study, superseded)
    tables.insert(cursor, reading, study, by, [incoming[i] for i in run_ids if i in incoming])
    tables.number_repeats(cursor, study)
    tables.touch(cursor, study)
    gone = files.keys() - tables.select_file_names(cursor, study).keys()
    replaces = tuple(sorted(files[sha] for sha in gone))
    return Added(len(incoming) - len(superseded), duplicates, None, replaces)


def _supersedes(name: str, earlier: str) -> bool:
    """Whether a file's runs take the place of the same runs in an earlier file."""
    csv, earlier_csv = (PurePath(n).suffix.lower() == ".csv" for n in (name, earlier))
    return earlier_csv and not csv


def _with_stated(run: Run, earlier: Run) -> Run:
    """The run with what a person stated about its earlier copy and it does not say itself."""
    names = ["repeat", *EDITABLE]
    if run.spec_state is not SpecState.UNKNOWN:
        names = [n for n in names if n not in ("spec_state", *GROUPS.speculation)]
    stated = {n: getattr(earlier, n) for n in names if getattr(run, n) in (None, SpecState.UNKNOWN)}
    return replace(run, **stated)


def _own(cursor: duckdb.DuckDBPyConnection, study: str) -> None:
    """Raise ReadOnlyStudy or StudyNotFound unless the store holds the study."""
    if study in tables.select_studies(cursor):
        return
    if study in published.studies():
        raise _read_only(study)
    raise _not_found(cursor, study)


def _not_found(cursor: duckdb.DuckDBPyConnection, study: str) -> StudyNotFound:
    held = ", ".join(tables.select_studies(cursor)) or "none yet: import files to make one"
    return StudyNotFound(f"study {study!r}: not in the store; its studies are: {held}")


def _read_only(study: str) -> ReadOnlyStudy:
    return ReadOnlyStudy(f"study {study!r}: published, so it cannot be changed; use another name")


def study_name(study: str) -> str:
    """The name as it is kept. Raises InputError, or ReadOnlyStudy for a published study."""
    name = study.strip()
    if not 1 <= len(name) <= STUDY_NAME_LENGTH or not name.isprintable():
        raise InputError(
            f"study name {study[:100]!r}: 1 to {STUDY_NAME_LENGTH} printable characters, "
            "not only blanks"
        )
    if name in published.studies():
        raise _read_only(name)
    return name
