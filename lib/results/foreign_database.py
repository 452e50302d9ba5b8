"""Tables of a DuckDB file that a person brings, read in a process of its own.

The file is a stranger's: it may be cut off, of a newer version, or made to crash what opens it. So
a child opens a copy of it, read-only, with one thread, bounded memory and time, and without access
to other files, the network or extensions; only base tables are read, never a view. The child hands
back text as JSON, and whatever happens to it is one line here.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lib import settings
from lib.errors import FileTooLarge, UnreadableFile

Rows = Sequence[Sequence[str]]

MAGIC = b"DUCK"
MAGIC_AT = 8
MOST_TABLES = 64
MOST_ROWS = 100_000
MOST_COLUMNS = 1000
LONGEST_CELL = 1000
SECONDS = 30
LARGEST_ANSWER = 256 * 2**20  # bytes of text
MEMORY = "1GB"
ADDRESS_SPACE = 8 * 2**30
WAY_OUT = "export its tables as CSV or Parquet and import those"

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "access_mode": "READ_ONLY",
    "autoload_known_extensions": False,
    "autoinstall_known_extensions": False,
    "allow_community_extensions": False,
    "allow_unsigned_extensions": False,
    "python_enable_replacements": False,
    "memory_limit": MEMORY,
    "threads": 1,
}
_BASE_TABLES = f"""
    SELECT schema_name, table_name, column_count FROM duckdb_tables()
    WHERE NOT internal AND NOT temporary AND database_name = current_database()
    ORDER BY schema_name, table_name LIMIT {MOST_TABLES + 1}
"""


@dataclass(frozen=True)
class Tables:
    """A database's tables by name, each a header and rows of text, and those that were left out.

    A table outside of the schema `main` is named `schema.table`.
    """

    tables: tuple[tuple[str, Rows], ...]
    left_out: tuple[str, ...] = ()


def is_database(data: bytes) -> bool:
    """Whether bytes begin as a DuckDB file does."""
    return data[MAGIC_AT : MAGIC_AT + len(MAGIC)] == MAGIC


def tables(name: str, data: bytes) -> list[tuple[str, Rows]]:
    """The tables of `read`. Raises as `read` does."""
    return list(read(name, data).tables)


def read(name: str, data: bytes, seconds: float = SECONDS) -> Tables:
    """The base tables of a DuckDB file with at most 100,000 rows and 1000 columns, 64 of them.

    Larger ones are left out and named. `seconds` is the most that opening and reading may take.
    Raises UnreadableFile for a file that cannot be opened or has no table, FileTooLarge where
    every table is too large.
    """
    if not is_database(data):
        raise UnreadableFile(f"{name}: not a DuckDB file; {WAY_OUT}")
    with tempfile.TemporaryDirectory(prefix="draftworth-") as folder:
        path = Path(folder) / "foreign.duckdb"
        path.write_bytes(data)
        answer = _answer(name, path, seconds)
    if "error" in answer:
        raise UnreadableFile(f"{name}: no DuckDB file that opens ({answer['error']}); {WAY_OUT}")
    found = tuple((str(t["name"]), t["rows"]) for t in answer["tables"])
    left_out = tuple(map(str, answer["left_out"]))
    if not found and left_out:
        raise FileTooLarge(
            f"{name}: {', '.join(left_out[:3])}: at most {MOST_ROWS:,} rows and {MOST_COLUMNS} "
            "columns of a table are read, one row a run; aggregate it"
        )
    if not found:
        raise UnreadableFile(f"{name}: a DuckDB file without a table; views are not read")
    return Tables(found, left_out)


def _answer(name: str, path: Path, seconds: float) -> dict[str, Any]:
    """What the child says of the file at `path`. Raises UnreadableFile where it says nothing."""
    said = path.with_name("answer.json")
    command = [sys.executable, "-m", "lib.results.foreign_database", str(path), str(said)]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=settings.ROOT,
            env=_environment(path.parent),
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UnreadableFile(
            f"{name}: reading this DuckDB file takes longer than {seconds:g} s; {WAY_OUT}"
        ) from None
    except OSError as error:
        raise UnreadableFile(f"{name}: no process to read it in ({error.strerror})") from None
    try:
        whole = done.returncode == 0 and said.stat().st_size <= LARGEST_ANSWER
        answer = json.loads(said.read_bytes()) if whole else None
    except (OSError, ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise UnreadableFile(
            f"{name}: the database engine ends while reading it, so it is damaged or too large; "
            f"{WAY_OUT}"
        )
    return answer


def _environment(folder: Path) -> dict[str, str]:
    """The child's environment: nothing of ours, and a home of its own."""
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH")}
    return {**kept, "HOME": str(folder), "TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}


def main(path: str, answer: str) -> None:
    """The child: reads the file at `path` and writes JSON to `answer`."""
    _limit_itself()
    try:
        said: dict[str, object] = _tables(path)
    except Exception as error:  # whatever a hostile file brings about is one line
        lines = str(error).strip().splitlines() or [type(error).__name__]
        text = re.sub(re.escape(path) + r"|\"?foreign\.duckdb\"?", "it", lines[0])
        said = {"error": "".join(c for c in text[:200] if c.isprintable())}
    Path(answer).write_text(json.dumps(said, ensure_ascii=False), "utf-8", "replace")


def _limit_itself() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_ANSWER, LARGEST_ANSWER))
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))


def _tables(path: str) -> dict[str, object]:
    import duckdb

    connection = duckdb.connect(path, read_only=True, config=_CONFIG)
    # Only now: with external access off DuckDB could not have reached the file itself.
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    found: list[dict[str, object]] = []
    left_out = []
    listed = connection.execute(_BASE_TABLES).fetchall()
    room = LARGEST_ANSWER // 4
    for schema, table, columns in listed[:MOST_TABLES]:
        named = str(table) if schema == "main" else f"{schema}.{table}"
        rows = _rows(connection, schema, table, room) if columns <= MOST_COLUMNS else None
        if rows is None:
            left_out.append(named)
            continue
        room -= sum(len(cell) for row in rows for cell in row)
        found.append({"name": named, "rows": rows})
    if len(listed) > MOST_TABLES:
        left_out.append(f"tables after the first {MOST_TABLES}")
    return {"tables": found, "left_out": left_out}


def _rows(connection: Any, schema: str, table: str, room: int) -> Rows | None:
    """Header and rows of a table as text; None where it has too many."""
    source = f"{_quoted(schema)}.{_quoted(table)}"
    names = [row[0] for row in connection.execute(f"DESCRIBE {source}").fetchall()]
    cells = ", ".join(
        f"left(TRY_CAST({_quoted(n)} AS VARCHAR), {LONGEST_CELL}) AS c{i}"
        for i, n in enumerate(names)
    )
    cursor = connection.execute(f"SELECT {cells} FROM {source} LIMIT {MOST_ROWS + 1}")
    rows: list[list[str]] = [names]
    for batch in iter(lambda: cursor.fetchmany(2000), []):
        rows += [["" if cell is None else cell for cell in row] for row in batch]
        room -= sum(len(cell) for row in rows[-len(batch) :] for cell in row)
        if len(rows) > MOST_ROWS + 1 or room < 0:
            return None
    return rows


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


if __name__ == "__main__":
    main(*sys.argv[1:3])
