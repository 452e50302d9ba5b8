"""Statements about stored probes: the documents themselves, and what a list of them shows."""

from dataclasses import dataclass
from datetime import UTC, datetime

from duckdb import DuckDBPyConnection

from lib.errors import InputError
from lib.results.tables import now

_NAMED = "probe_id, taken_at, imported_at, imported_by, gpu, target, draft, document"
ALL = f"SELECT {_NAMED} FROM probes ORDER BY taken_at DESC, imported_at DESC, probe_id"


@dataclass(frozen=True)
class StoredProbe:
    """A probe's JSON document as it came, with what names it. Times are UTC without a zone."""

    probe_id: str
    taken_at: datetime
    imported_at: datetime
    imported_by: str
    gpu: str
    target: str
    draft: str
    document: str


def has(cursor: DuckDBPyConnection, probe_id: str) -> bool:
    """Whether the probe is in the store."""
    query = "SELECT 1 FROM probes WHERE probe_id = ?"
    return cursor.execute(query, [probe_id]).fetchone() is not None


def insert(
    cursor: DuckDBPyConnection,
    document: str,
    *,
    probe_id: str,
    taken_at: datetime,
    gpu: str,
    target: str,
    draft: str,
    by: str,
) -> None:
    """Insert a probe that is not there yet. Raises InputError."""
    if not probe_id or taken_at.tzinfo is None:
        raise InputError("probe: an id and a time with its zone are needed")
    texts = (probe_id, by, gpu, target, draft, document)
    try:
        "".join(texts).encode()
    except UnicodeError:
        raise InputError("probe: text in valid Unicode is allowed") from None
    taken = taken_at.astimezone(UTC).replace(tzinfo=None)
    row = [probe_id, taken, now(), by, gpu, target, draft, document]
    cursor.execute(f"INSERT INTO probes ({_NAMED}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)


def select(cursor: DuckDBPyConnection) -> tuple[StoredProbe, ...]:
    """The stored probes, the one taken last first."""
    return tuple(StoredProbe(*row) for row in cursor.execute(ALL).fetchall())


def delete(cursor: DuckDBPyConnection, probe_id: str) -> None:
    """Delete a probe. Raises InputError where there is none."""
    if not has(cursor, probe_id):
        raise InputError(f"probe {probe_id[:100]!r}: there is none; it may be deleted already")
    cursor.execute("DELETE FROM probes WHERE probe_id = ?", [probe_id])
