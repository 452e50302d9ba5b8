"""Statements about saved mappings: which field a person chose for which leaf of a document."""

from collections.abc import Mapping, Sequence

import orjson
from duckdb import DuckDBPyConnection

from lib.errors import InputError
from lib.results.mapping import SavedMapping
from lib.results.tables import now

NAME_LENGTH = 80


def save(
    cursor: DuckDBPyConnection,
    signature: str,
    leaves: Sequence[str],
    mapping: Mapping[str, str],
    name: str,
) -> None:
    """Save a mapping in the place of that signature's earlier one. Raises InputError."""
    name = name.strip()
    if not 1 <= len(name) <= NAME_LENGTH or not name.isprintable():
        raise InputError(f"mapping name {name[:100]!r}: 1 to {NAME_LENGTH} printable characters")
    if not signature:
        raise InputError("mapping: a signature is needed, it tells which documents it is for")
    try:
        texts = [orjson.dumps(part).decode() for part in (list(leaves), dict(mapping))]
        (name + signature).encode()
    except (TypeError, UnicodeError):
        raise InputError("mapping: text in valid Unicode is allowed") from None
    cursor.execute("DELETE FROM mappings WHERE signature = ?", [signature])
    cursor.execute("INSERT INTO mappings VALUES (?, ?, ?, ?, ?)", [signature, *texts, name, now()])


def select(cursor: DuckDBPyConnection) -> tuple[SavedMapping, ...]:
    """The saved mappings, newest first."""
    rows = cursor.execute(
        "SELECT signature, leaves, mapping, name, saved_at FROM mappings "
        "ORDER BY saved_at DESC, name"
    ).fetchall()
    return tuple(
        SavedMapping(signature, tuple(orjson.loads(leaves)), orjson.loads(mapping), name, at)
        for signature, leaves, mapping, name, at in rows
    )


def delete(cursor: DuckDBPyConnection, signature: str) -> None:
    """Delete a mapping. Raises InputError where there is none."""
    query = "SELECT 1 FROM mappings WHERE signature = ?"
    if cursor.execute(query, [signature]).fetchone() is None:
        raise InputError(f"mapping {signature[:100]!r}: there is none; it may be deleted already")
    cursor.execute("DELETE FROM mappings WHERE signature = ?", [signature])
