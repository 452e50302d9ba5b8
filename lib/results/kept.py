"""What a store keeps beside its studies, from mappings to samples, and its connection."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from threading import Lock

import duckdb

from lib.errors import StoreError
from lib.results import mappings, probes, rates, samples, scenarios, tables
from lib.results.database import plain_line
from lib.results.mappings import SavedMapping
from lib.results.probes import StoredProbe
from lib.results.rates import StoredRate, TypedRate
from lib.results.samples import Sample
from lib.results.scenarios import StoredScenario


class Kept:
    """One root connection; a cursor per call, since a DuckDB connection serves one thread.

    Writers take turns. Each write is one transaction, all of it or none. Every method raises
    StoreError where DuckDB cannot do its part.
    """

    def __init__(self, root: duckdb.DuckDBPyConnection) -> None:
        self._root = root
        self._writing = Lock()

    def close(self) -> None:
        """Release the file to other processes."""
        self._root.close()

    def save_mapping(
        self, signature: str, leaves: Sequence[str], mapping: Mapping[str, str], name: str
    ) -> None:
        """Keep which field a person chose for which leaf of documents of one signature.

        It takes the place of an earlier mapping of that signature. Raises InputError.
        """
        with self._transaction() as cursor:
            tables.begin_change(cursor)
            mappings.save(cursor, signature, leaves, mapping, name)

    def mappings(self) -> tuple[SavedMapping, ...]:
        """The saved mappings, the newest first."""
        with self._cursor() as cursor:
            return mappings.select(cursor)

    def delete_mapping(self, signature: str) -> None:
        """Forget a saved mapping. Raises InputError where there is none."""
        with self._transaction() as cursor:
            tables.begin_change(cursor)
            mappings.delete(cursor, signature)

    def add_probe(
        self,
        document: str,
        *,
        probe_id: str,
        taken_at: datetime,
        gpu: str,
        target: str,
        draft: str,
        by: str = "",
    ) -> bool:
        """Keep a probe's document; False where it is known already. Raises InputError."""
        with self._transaction() as cursor:
            if probes.has(cursor, probe_id):
                return False
            tables.begin_change(cursor)
            probes.insert(
                cursor,
                document,
                probe_id=probe_id,
                taken_at=taken_at,
                gpu=gpu,
                target=target,
                draft=draft,
                by=by,
            )
        return True

    def probes(self) -> tuple[StoredProbe, ...]:
        """The stored probes, the one taken last first."""
        with self._cursor() as cursor:
            return probes.select(cursor)

    def delete_probe(self, probe_id: str) -> None:
        """Forget a probe. Raises InputError where there is none."""
        with self._transaction() as cursor:
            tables.begin_change(cursor)
            probes.delete(cursor, probe_id)

    def save_rates(
        self, changes: Sequence[tuple[str | None, TypedRate]], by: str = ""
    ) -> tuple[StoredRate, ...]:
        """Keep each rate as the next version of its rate_id, or as a new rate where that is None.

        Raises InputError; nothing is kept then.
        """
        with self._transaction() as cursor:
            tables.begin_change(cursor)
            return rates.insert(cursor, changes, by)

    def rates(self) -> tuple[StoredRate, ...]:
        """Every version of every typed rate, the old ones too, rate by rate."""
        with self._cursor() as cursor:
            return rates.select(cursor)

    def save_scenario(
        self, name: str, parameters: str, digest: str, note: str = "", by: str = ""
    ) -> StoredScenario:
        """Keep a scenario as the next version of its name. Raises InputError."""
        with self._transaction() as cursor:
            tables.begin_change(cursor)
            return scenarios.insert(cursor, name, parameters, digest, note, by)

    def scenarios(self) -> tuple[StoredScenario, ...]:
        """Every version of every scenario: the name saved last first, its newest version first."""
        with self._cursor() as cursor:
            return scenarios.select(cursor)

    def add_samples(self, rows: Sequence[Sample], prune_before_s: float | None = None) -> None:
        """Keep samples of watched servers and forget those from before a moment (Unix time)."""
        with self._transaction() as cursor:
            tables.begin_change(cursor)
            if prune_before_s is not None:
                samples.prune(cursor, prune_before_s)
            samples.insert(cursor, rows)

    def samples(self, since_s: float, step_s: float = 1.0) -> tuple[Sample, ...]:
        """Samples from a moment (Unix time) on: of each `step_s` seconds the last an engine.

        Raises InputError for a step under 1 s.
        """
        with self._cursor() as cursor:
            return samples.select(cursor, since_s, step_s)

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
