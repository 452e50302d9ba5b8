"""Files to runs to store: the only room that knows file formats and DuckDB."""
