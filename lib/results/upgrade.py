"""A store of an older version becomes one of this version, in the transaction of the caller."""

from duckdb import DuckDBPyConnection

from lib.results.requests import TOTALS

_TABLES_1 = ("meta", "studies", "sources", "runs", "requests")
_REQUEST_COUNTS_3 = ("drafts", "draft_tokens", "accepted_tokens", "rejected_rounds")


def from_version_1(cursor: DuckDBPyConnection, schema: str, version: int) -> None:
    """Copy the tables of version 1 into those of `schema`.

    Version 1 knew neither imports nor what was stated by whom: each file becomes an import of its
    own, and `stated` stays NULL. Requests, there under study and run_id, get keys in run order.
    """
    for table in _TABLES_1:
        cursor.execute(f"ALTER TABLE {table} RENAME TO {table}_1")
    cursor.execute(schema)
    cursor.execute(
        "CREATE TABLE keys_1 AS SELECT study, run_id, row_number() OVER (ORDER BY first_row) "
        "AS request_key FROM (SELECT study, run_id, min(rowid) AS first_row FROM requests_1 "
        "GROUP BY study, run_id)"
    )
    cursor.execute(
        "INSERT INTO meta SELECT ?, store_id, changes, (SELECT count(*) FROM keys_1) FROM meta_1",
        [version],
    )
    cursor.execute("INSERT INTO studies BY NAME SELECT * FROM studies_1")
    cursor.execute("INSERT INTO sources BY NAME SELECT * FROM sources_1")
    cursor.execute(
        "INSERT INTO runs BY NAME SELECT runs_1.*, 0 AS version, left(source_sha256, 16) AS "
        "import_id, false AS revises, []::VARCHAR[] AS carried, request_key FROM runs_1 "
        "LEFT JOIN keys_1 ON keys_1.study = runs_1.study AND keys_1.run_id = runs_1.run_id"
    )
    cursor.execute(
        "INSERT INTO requests BY NAME SELECT requests_1.* EXCLUDE (study, run_id), request_key "
        "FROM requests_1 JOIN keys_1 USING (study, run_id) ORDER BY request_key, requests_1.rowid"
    )
    cursor.execute(
        f"INSERT INTO request_sets SELECT study, run_id, request_key, false, {TOTALS} "
        "FROM requests JOIN keys_1 USING (request_key) GROUP BY ALL ORDER BY request_key"
    )
    cursor.execute("INSERT INTO run_files SELECT study, run_id, source_sha256, 0, false FROM runs")
    cursor.execute(
        "INSERT INTO imports SELECT study, left(sha256, 16), imported_at, imported_by FROM sources"
    )
    for table in (*_TABLES_1, "keys"):
        cursor.execute(f"DROP TABLE {table}_1")


def from_version_2(cursor: DuckDBPyConnection, schema: str, version: int) -> None:
    """Add the tables and columns that version 2 had not.

    Its requests say nothing of drafts: a file that does must be imported again.
    """
    cursor.execute(schema)
    for column in _REQUEST_COUNTS_3:
        cursor.execute(f"ALTER TABLE requests ADD COLUMN {column} BIGINT")
    cursor.execute("UPDATE meta SET schema_version = ?", [version])


STEPS = {1: from_version_1, 2: from_version_2}  # each leads to the present version at once
