"""Statements about samples: what each engine of a watched server had counted at a moment.

Counters are kept as they are read, so any two rows make a window, however far apart they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import pyarrow as pa
from duckdb import DuckDBPyConnection

from lib.errors import InputError

SHORTEST_STEP_S = 1.0


@dataclass(frozen=True)
class Latencies:
    """A latency histogram: `counts[i]` of `count` samples took at most `edges_s[i]` seconds."""

    count: int
    sum_s: float
    edges_s: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One engine (`replica`) of the server at `endpoint` (host:port) at `at_s`, Unix time.

    None is not counted there. `started_s` is when its process says that it started.
    """

    endpoint: str
    replica: str
    engine: str
    at_s: float
    started_s: float | None = None
    drafts: int | None = None
    draft_tokens: int | None = None
    accepted_tokens: int | None = None
    accepted_per_position: tuple[int, ...] | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    completed: int | None = None
    preemptions: int | None = None
    running: float | None = None
    waiting: float | None = None
    kv_use: float | None = None
    tau: float | None = None
    stated_tps: float | None = None
    ttft: Latencies | None = None
    tpot: Latencies | None = None
    e2e: Latencies | None = None


LATENCIES = ("ttft", "tpot", "e2e")

_TEXT = ("endpoint", "replica", "engine")
_FLOAT = ("at_s", "started_s", "running", "waiting", "kv_use", "tau", "stated_tps")
_PLAIN = tuple(f.name for f in fields(Sample) if f.name not in LATENCIES)
_KINDS = {
    **dict.fromkeys(_PLAIN, pa.int64()),
    **dict.fromkeys(_TEXT, pa.string()),
    **dict.fromkeys(_FLOAT, pa.float64()),
    "accepted_per_position": pa.list_(pa.int64()),
}
# Edges are a text: a column of few different texts takes next to no room.
_PARTS = {
    "count": pa.int64(),
    "sum_s": pa.float64(),
    "edges": pa.string(),
    "counts": pa.list_(pa.int64()),
}
_SCHEMA = pa.schema(
    [
        *_KINDS.items(),
        *((f"{n}_{part}", kind) for n in LATENCIES for part, kind in _PARTS.items()),
    ]
)


def insert(cursor: DuckDBPyConnection, samples: Sequence[Sample]) -> None:
    """Insert samples."""
    rows = [_row(sample) for sample in samples]
    cursor.register("incoming_samples", pa.Table.from_pylist(rows, schema=_SCHEMA))
    cursor.execute("INSERT INTO samples BY NAME SELECT * FROM incoming_samples")
    cursor.unregister("incoming_samples")


def _row(sample: Sample) -> dict[str, object]:
    row: dict[str, object] = {name: getattr(sample, name) for name in _PLAIN}
    for name in LATENCIES:
        found: Latencies | None = getattr(sample, name)
        if found is not None:
            row |= {
                f"{name}_count": found.count,
                f"{name}_sum_s": found.sum_s,
                f"{name}_edges": " ".join(map(repr, found.edges_s)),
                f"{name}_counts": found.counts,
            }
    return row


def select(cursor: DuckDBPyConnection, since_s: float, step_s: float) -> tuple[Sample, ...]:
    """Samples from `since_s` on, by time: of each step the last of an engine.

    Where counters fell both sides of the fall count too, so that no restart is overlooked. Raises
    InputError for a step under 1 s.
    """
    if not step_s >= SHORTEST_STEP_S:
        raise InputError(f"step {step_s:g} s: at least {SHORTEST_STEP_S:g} s is allowed")
    # Rows are chosen by their narrow columns first: the wide ones are read for those alone.
    rows = cursor.execute(
        f"SELECT {', '.join(_SCHEMA.names)} FROM samples WHERE rowid IN (SELECT rowid FROM ("
        "SELECT rowid, endpoint, replica, at_s, output_tokens FROM samples WHERE at_s >= ?) "
        "WINDOW engine_rows AS (PARTITION BY endpoint, replica ORDER BY at_s) "
        "QUALIFY lead(at_s) OVER engine_rows IS NULL "
        "OR floor(at_s / ?) < floor(lead(at_s) OVER engine_rows / ?) "
        "OR lead(output_tokens) OVER engine_rows < output_tokens "
        "OR lag(output_tokens) OVER engine_rows > output_tokens) "
        "ORDER BY at_s, endpoint, replica",
        [since_s, step_s, step_s],
    ).fetchall()
    edges: dict[str, tuple[float, ...]] = {}
    return tuple(_sample(row, edges) for row in rows)


def _sample(row: tuple[object, ...], edges: dict[str, tuple[float, ...]]) -> Sample:
    found = dict(zip(_SCHEMA.names, row, strict=True))
    positions = found["accepted_per_position"]
    plain = {name: found[name] for name in _PLAIN}
    if isinstance(positions, list):
        plain["accepted_per_position"] = tuple(positions)
    latencies = {}
    for name in LATENCIES:
        count, sum_s, text, counts = (found[f"{name}_{part}"] for part in _PARTS)
        if not isinstance(count, int) or not isinstance(sum_s, float):
            continue
        assert isinstance(text, str)
        assert isinstance(counts, list)
        if text not in edges:
            edges[text] = tuple(map(float, text.split()))
        latencies[name] = Latencies(count, sum_s, edges[text], tuple(counts))
    return Sample(**plain, **latencies)  # type: ignore[arg-type]


def prune(cursor: DuckDBPyConnection, before_s: float) -> None:
    """Delete the samples from before a moment (Unix time)."""
    cursor.execute("DELETE FROM samples WHERE at_s < ?", [before_s])
