"""Runs, readings and requests that the tests of the store are made of."""

from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq

from lib.results.reading import Reading
from lib.results.store import Store
from lib.run import LoadKind, Run, SpecState


def a_run(run_id: str, **stated: object) -> Run:
    known = {"spec_state": SpecState.OFF, "load_kind": LoadKind.CONCURRENCY, "offered_load": 4.0}
    return Run(run_id=run_id, **{**known, **stated})  # type: ignore[arg-type]


def a_reading(name: str, *runs: Run, **parts: object) -> Reading:
    given: dict = {"sha256": f"digest of {name}", "tool": "a-tool", "tool_version": "1"}
    given |= {"why": "", "requests": {}, "flags": (), "kept": b"a kept document"}
    return Reading(name=name, runs=runs, **{**given, **parts})


def some_requests(count: int, **columns: list) -> pa.Table:
    given: dict[str, list] = {"ok": [True] * count, "ttft_ms": [float(i) for i in range(count)]}
    return pa.table({**given, **columns})


def exported(store: Store, table: str, study: str | None = None) -> pa.Table:
    return pq.read_table(BytesIO(store.export(table, study)))
