"""The tables that a store gives away, as Parquet; no kept document is in them."""

from io import BytesIO

import pyarrow.parquet as pq
from duckdb import DuckDBPyConnection

from lib.results import files, probes
from lib.results.columns import KINDS, REQUEST_COLUMNS

_OF_STUDY = "(? IS NULL OR {0}.study = ?)"
_REQUEST = ", ".join(f"rows.{name}" for name in REQUEST_COLUMNS)
EXPORTS = {
    "runs": f"SELECT {', '.join(KINDS)} FROM runs "
    f"WHERE {_OF_STUDY.format('runs')} ORDER BY study, run_id",
    "requests": f"SELECT sets.study, sets.run_id, {_REQUEST} "
    "FROM requests AS rows JOIN request_sets AS sets USING (request_key) "
    f"WHERE NOT sets.past AND {_OF_STUDY.format('sets')}",
    "sources": "SELECT study, sha256, name, tool, tool_version, imported_at, imported_by, runs "
    f"FROM sources WHERE {files.SHOWN} AND {_OF_STUDY.format('sources')} "
    "ORDER BY study, imported_at, name",
    "flags": "SELECT study, run_id, sha256, code, severity, message "
    f"FROM flags WHERE {files.FLAG_SHOWN} AND {_OF_STUDY.format('flags')} "
    "ORDER BY study, sha256, run_id, code, message",
}  # each takes a study's name, twice; NULL stands for all of them
OF_NO_STUDY = {"probes": probes.ALL}


def parquet(cursor: DuckDBPyConnection, table: str, study: str | None) -> bytes:
    """A table of EXPORTS, of one study or of all, or one of OF_NO_STUDY."""
    sink = BytesIO()
    if table in OF_NO_STUDY:
        found = cursor.execute(OF_NO_STUDY[table])
    else:
        found = cursor.execute(EXPORTS[table], [study, study])
    batches = found.to_arrow_reader()
    with pq.ParquetWriter(sink, batches.schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()
