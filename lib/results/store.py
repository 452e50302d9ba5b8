"""The store: studies with their runs, requests and files, in one embedded DuckDB file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import duckdb
import pyarrow as pa

from lib.errors import InputError, ReadOnlyStudy, StudyNotFound
from lib.results import changes, exports, files, published, requests, tables
from lib.results.changes import Added, Origin, Undone
from lib.results.columns import checked, runs_to_table
from lib.results.database import open_database
from lib.results.exports import EXPORTS, OF_NO_STUDY
from lib.results.files import Import, Source
from lib.results.findings import Flag
from lib.results.kept import Kept
from lib.results.mappings import SavedMapping
from lib.results.probes import StoredProbe
from lib.results.reading import Reading
from lib.results.recall import Recall
from lib.results.requests import RequestAcceptance, RequestSet
from lib.run import EDITABLE, Run, Slo, Study
from lib.settings import store_path

__all__ = [
    "EXPORTS",
    "OF_NO_STUDY",
    "Added",
    "Import",
    "RequestCounts",
    "SavedMapping",
    "Source",
    "Store",
    "StoredProbe",
    "Undone",
    "study_name",
]

STUDY_NAME_LENGTH = 80


@dataclass(frozen=True)
class RequestCounts:
    """Requests of one run: all of them, and those that succeeded within every limit."""

    total: int
    good: int


class Store(Kept):
    """One root connection; a cursor per call, since a DuckDB connection serves one thread.

    Writers take turns. Each write is one transaction, all of it or none, and moves the study's
    fingerprint. Every method raises StoreError where DuckDB cannot do its part.
    """

    def __init__(self, root: duckdb.DuckDBPyConnection) -> None:
        super().__init__(root)
        self._runs: Recall[tuple[Run, ...]] = Recall()
        self._sets: Recall[tuple[RequestSet, ...]] = Recall()

    @classmethod
    def open(cls, path: Path | None = None) -> "Store":
        """The store at `path` (default: DRAFTWORTH_STORE), created with its folder if missing.

        Raises StoreLocked while another process holds it, StoreError where the file is not a
        store of this version. A process opens a store once and shares it between its threads.
        """
        return cls(open_database(store_path() if path is None else path))

    def add(
        self,
        reading: Reading,
        study: str,
        by: str = "",
        *,
        beside: Sequence[Reading] = (),
        import_id: str | None = None,
    ) -> Added:
        """Add a file's runs and requests to a study, creating the study if it is new.

        `beside` are the files that completed these runs; they come and go with them. A run whose
        run_id the study has already is a duplicate, except that a JSON's run replaces the same run
        from a CSV and keeps what was stated about it. What carries one `import_id` (default: a
        fresh one) can be taken back as one. Raises InputError for a study name that is not allowed
        or a value that cannot be stored, ReadOnlyStudy for the name of a published study.
        """
        study = study_name(study)
        with self._transaction() as cursor:
            return changes.add(cursor, reading, study, beside, _origin(import_id, by))

    def revise(
        self,
        study: str,
        revised: Mapping[str, Run],
        because: Reading,
        requests: Mapping[str, pa.Table] | None = None,
        by: str = "",
        import_id: str | None = None,
    ) -> int:
        """Put runs, by run_id, in the place of those of a study, because of one more file.

        The number of runs revised: those that rest on that file already stay as they are. The
        earlier ones are kept for `undo`. Fields that a person stated stay stated, and so do
        requests that `requests` has nothing for. Raises InputError for a run id that the study
        does not have, or a value that cannot be stored; nothing is changed then.
        """
        with self._transaction() as cursor:
            _own(cursor, study)
            origin = _origin(import_id, by)
            return changes.revise(cursor, study, revised, because, requests or {}, origin)

    def imports(self, study: str) -> tuple[Import, ...]:
        """What was imported into a study, the newest first. Raises StudyNotFound."""
        with self._cursor() as cursor:
            rows = files.select_imports(cursor, study)
            if not rows:
                raise _not_found(cursor, study)
        return tuple(Import(*row) for row in rows)

    def undo(self, study: str, import_id: str) -> Undone:
        """Take an import back: its runs with their requests, files and flags.

        Runs that it revised or replaced are again what they were; what another import revised
        stays revised. Repeat numbers that are given stay given. Raises InputError for an import
        that the study does not have, or not any more.
        """
        with self._transaction() as cursor:
            _own(cursor, study)
            return changes.undo(cursor, study, import_id)

    def studies(self) -> tuple[str, ...]:
        """Names of the studies, the newest first."""
        with self._cursor() as cursor:
            return tables.select_studies(cursor)

    def study(self, name: str) -> Study:
        """The study with its runs, ordered by load, arm and repeat. Raises StudyNotFound."""
        with self._cursor() as cursor:
            changed = tables.select_changed(cursor, name)
            if changed is None:
                raise _not_found(cursor, name)
            runs = self._runs.get(name, changed, lambda: tables.select_runs(cursor, name))
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
            runs = [v.run for v in tables.select_versions(cursor, study, run_ids)]
            unknown = sorted(set(run_ids) - {r.run_id for r in runs})
            if unknown:
                raise InputError(f"run {unknown[0]!r}: not in the study {study!r}")
            runs_to_table([replace(r, **values) for r in runs])  # type: ignore[arg-type]
            if not runs or not values:
                return 0
            change, _ = tables.begin_change(cursor)
            tables.update(cursor, study, run_ids, values)
            tables.number_repeats(cursor, study, run_ids)
            tables.touch(cursor, study, change)
            return len(runs)

    def delete_runs(self, study: str, run_ids: Sequence[str]) -> int:
        """Delete runs with their requests, and files and a study that none is left of."""
        with self._transaction() as cursor:
            _own(cursor, study)
            return changes.delete(cursor, study, run_ids)

    def delete_study(self, study: str) -> int:
        """Delete a study with all it holds; the number of runs it had."""
        with self._transaction() as cursor:
            _own(cursor, study)
            return changes.delete_study(cursor, study)

    def request_counts(
        self, study: str, run_ids: Sequence[str], slo: Slo
    ) -> dict[str, RequestCounts]:
        """Requests of each run that meet every limit of the SLO, from the stored records.

        A run is left out where the records do not decide it: it has none, or a request of it
        lacks a latency that a limit is set on. A reply of one token has no TPOT to exceed.
        """
        with self._cursor() as cursor:
            counts = requests.count(cursor, self._sets_of(cursor, study), run_ids, slo.limits)
        return {run_id: RequestCounts(total, good) for run_id, (total, good) in counts.items()}

    def request_acceptance(
        self, study: str, run_ids: Sequence[str]
    ) -> dict[str, RequestAcceptance]:
        """What each run's requests drafted and accepted, of those that are ok.

        A run is left out where none of its stored records states drafts and accepted tokens.
        """
        with self._cursor() as cursor:
            return requests.acceptance(cursor, self._sets_of(cursor, study), run_ids)

    def _sets_of(self, cursor: duckdb.DuckDBPyConnection, study: str) -> tuple[RequestSet, ...]:
        """The current request sets of a study; none where the store does not hold it."""
        changed = tables.select_changed(cursor, study)
        if changed is None:
            return ()
        return self._sets.get(study, changed, lambda: requests.select_sets(cursor, study))

    def sources(self, study: str) -> tuple[Source, ...]:
        """The files of a study in the order of their import. Raises StudyNotFound."""
        with self._cursor() as cursor:
            rows = cursor.execute(
                "SELECT sha256, name, tool, tool_version, imported_at, imported_by, runs, "
                f"redacted IS NOT NULL FROM sources WHERE study = ? AND {files.SHOWN} "
                "ORDER BY imported_at, name",
                [study],
            ).fetchall()
            if not rows:
                raise _not_found(cursor, study)
        return tuple(Source(*row) for row in rows)

    def flags(self, study: str) -> tuple[Flag, ...]:
        """What the study's files alone know: flags that its runs do not tell by themselves.

        Raises StudyNotFound.
        """
        with self._cursor() as cursor:
            if not tables.has_study(cursor, study):
                raise _not_found(cursor, study)
            rows = cursor.execute(EXPORTS["flags"], [study, study]).fetchall()
        return tuple(
            Flag(code, severity, message, run_id) for _, run_id, _, code, severity, message in rows
        )

    def export(self, table: str, study: str | None = None) -> bytes:
        """A table of EXPORTS, of one study or of all, or one of OF_NO_STUDY, as Parquet.

        No kept files are in them. Raises InputError for another table, StudyNotFound.
        """
        allowed = (*EXPORTS, *OF_NO_STUDY) if study is None else tuple(EXPORTS)
        if table not in allowed:
            raise InputError(f"table {table!r}: one of {', '.join(allowed)}")
        with self._cursor() as cursor:
            if study is not None and not tables.has_study(cursor, study):
                raise _not_found(cursor, study)
            return exports.parquet(cursor, table, study)


def _origin(import_id: str | None, by: str) -> Origin:
    return Origin(uuid4().hex if import_id is None else import_id, by)


def _own(cursor: duckdb.DuckDBPyConnection, study: str) -> None:
    """Raise ReadOnlyStudy or StudyNotFound unless the store holds the study."""
    if tables.has_study(cursor, study):
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
