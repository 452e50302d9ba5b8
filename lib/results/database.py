"""Opening the store's file: configuration, lock and schema, and what to say when it fails."""

import re
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import duckdb

from lib.errors import StoreError, StoreLocked
from lib.results import upgrade

SCHEMA = Path(__file__).with_name("schema.sql")
SCHEMA_VERSION = 3
CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoload_known_extensions": False,
    "autoinstall_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,
}
WAY_OUT = "name another store with DRAFTWORTH_STORE"


def open_database(path: Path) -> duckdb.DuckDBPyConnection:
    """A connection to the store at `path`, created with its folder and tables if missing.

    Raises StoreLocked while another process holds it, StoreError where the file is not a store
    that this version reads.
    """
    connection = _connect(path)
    try:
        # Only now: with external access off DuckDB could not have reached the file itself.
        connection.execute("SET enable_external_access = false")
        _check_schema(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def plain_line(error: Exception) -> str:
    """What a DuckDB error says, without its pointers into SQL and documentation."""
    return str(error).strip().splitlines()[0].split(" See also ")[0]


def _connect(path: Path) -> duckdb.DuckDBPyConnection:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return duckdb.connect(str(path), config=CONFIG)
    except OSError as error:
        raise StoreError(f"{path}: cannot be created ({error.strerror}); {WAY_OUT}") from None
    except duckdb.Error as error:
        said = plain_line(error)
        if "Could not set lock" not in said:
            raise StoreError(f"{path}: not a store that opens ({said}); {WAY_OUT}") from None
        holder = re.search(r"PID (\d+)", said)
        who = f"process {holder[1]}" if holder else "another process"
        raise StoreLocked(
            f"{path}: in use by {who}; stop that, or work in its pages, or {WAY_OUT}"
        ) from None


def _check_schema(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Create the tables in an empty database, bring an older store up to this version.

    Refuses a database that holds something else.
    """
    if not connection.execute("SELECT 1 FROM information_schema.tables").fetchone():
        connection.begin()
        connection.execute(SCHEMA.read_text(encoding="utf-8"))
        connection.execute("INSERT INTO meta VALUES (?, ?, 0, 0)", [SCHEMA_VERSION, uuid4().hex])
        connection.commit()
        return
    try:
        row = connection.execute("SELECT schema_version, store_id, changes FROM meta").fetchone()
    except duckdb.Error:
        row = None
    if row is None:
        raise StoreError(f"{path}: a database, but not a store of this program; {WAY_OUT}")
    if row[0] in upgrade.STEPS:
        _upgrade(connection, path, row[0])
    elif row[0] != SCHEMA_VERSION:
        raise StoreError(
            f"{path}: a store of version {row[0]}, and this program reads version "
            f"{SCHEMA_VERSION}; update the program, or {WAY_OUT}"
        )


def _upgrade(connection: duckdb.DuckDBPyConnection, path: Path, held: int) -> None:
    connection.begin()
    try:
        schema = SCHEMA.read_text(encoding="utf-8")
        upgrade.STEPS[held](connection, schema, SCHEMA_VERSION)
        connection.commit()
    except duckdb.Error as error:
        with suppress(duckdb.Error):  # a failed commit has rolled back already
            connection.rollback()
        raise StoreError(
            f"{path}: a store of version {held} that cannot be brought to version {SCHEMA_VERSION} "
            f"({plain_line(error)}); it is as it was; {WAY_OUT}"
        ) from None
