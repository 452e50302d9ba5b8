"""Statements about saved scenarios: every save a version of its name, none ever overwritten."""

import json
from dataclasses import dataclass
from datetime import datetime

from duckdb import DuckDBPyConnection

from lib.errors import InputError
from lib.results.tables import now

NAME_LENGTH, NOTE_LENGTH, BY_LENGTH = 80, 500, 200
PARAMETERS_LENGTH = 20_000

_COLUMNS = "name, version, parameters, hash, note, saved_by, saved_at"


@dataclass(frozen=True)
class StoredScenario:
    """One version of a scenario: versions count from 1, `at` is UTC without a zone.

    `parameters` is a JSON object in its canonical form, `hash` that of it.
    """

    name: str
    version: int
    parameters: str
    hash: str
    note: str
    by: str
    at: datetime


def insert(
    cursor: DuckDBPyConnection, name: str, parameters: str, digest: str, note: str, by: str
) -> StoredScenario:
    """Insert the next version of a name, the first where it is new. Raises InputError."""
    name, note, by = name.strip(), note.strip(), by.strip()
    if not name:
        raise InputError("scenario name: it is empty; type one")
    for what, text, most in (
        ("scenario name", name, NAME_LENGTH),
        ("scenario note", note, NOTE_LENGTH),
        ("scenario author", by, BY_LENGTH),
    ):
        if len(text) > most or not text.isprintable():
            raise InputError(f"{what} {text[:40]!r}: up to {most} printable characters on one line")
    _check(parameters)
    query = "SELECT coalesce(max(version), 0) FROM scenarios WHERE name = ?"
    (last,) = cursor.execute(query, [name]).fetchone() or (0,)
    row = StoredScenario(name, last + 1, parameters, digest, note, by, now())
    cursor.execute(
        f"INSERT INTO scenarios ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [row.name, row.version, row.parameters, row.hash, row.note, row.by, row.at],
    )
    return row


def _check(parameters: str) -> None:
    try:
        good = isinstance(json.loads(parameters), dict) and bool(parameters.encode())
    except ValueError:
        good = False
    if not good or len(parameters) > PARAMETERS_LENGTH:
        raise InputError(
            f"scenario: its parameters must be a JSON object of up to {PARAMETERS_LENGTH:,} "
            "characters"
        )


def select(cursor: DuckDBPyConnection) -> tuple[StoredScenario, ...]:
    """Every version of every scenario: the name saved last first, its newest version first."""
    rows = cursor.execute(
        f"SELECT {_COLUMNS} FROM scenarios "
        "ORDER BY max(saved_at) OVER (PARTITION BY name) DESC, name, version DESC"
    ).fetchall()
    return tuple(StoredScenario(*row) for row in rows)
