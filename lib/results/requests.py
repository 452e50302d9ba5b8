"""Statements about the requests of runs: sets of rows under one key, counted as they come in."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from duckdb import DuckDBPyConnection

from lib.results.columns import requests_to_table
from lib.results.tables import SOME

LATENCIES = ("ttft_ms", "tpot_ms", "e2e_ms")
_COUNTED = ("ok", *LATENCIES)
ONE_TOKEN = "coalesce(output_tokens <= 1, false)"  # such a reply has no TPOT to exceed
TOTALS = ", ".join(
    (
        "count(*)",
        "count(*) FILTER (ok)",
        "count(*) FILTER (ok IS NULL)",
        "count(*) FILTER (ok AND ttft_ms IS NULL)",
        f"count(*) FILTER (ok AND tpot_ms IS NULL AND NOT {ONE_TOKEN})",
        "count(*) FILTER (ok AND e2e_ms IS NULL)",
    )
)  # the counts of request_sets, in its order
DENSE = 0.5  # share of wanted keys above which reading what lies between costs less than asking


@dataclass(frozen=True)
class RequestSet:
    """The requests of one run: how many, how many are ok, and what is unknown of some of them.

    `unknown` names "ok" where a request does not say, and a latency that one which is ok lacks.
    """

    run_id: str
    key: int
    total: int
    ok: int
    unknown: frozenset[str]


Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RequestAcceptance:
    """What the requests of one run drafted: arrays of one length, an element a request that is ok.

    `drafts` are rounds that had a draft, `accepted` tokens exclude the bonus, `rejected` rounds
    kept less than they drafted; the last two arrays are None where one request does not say.
    `uncounted` requests are ok and state no drafts or no accepted tokens.
    """

    accepted: Counts
    drafts: Counts
    draft_tokens: Counts | None
    rejected: Counts | None
    uncounted: int = 0


def insert(
    cursor: DuckDBPyConnection,
    study: str,
    requests: Mapping[str, pa.Table],
    keys: Mapping[str, int],
) -> None:
    """Insert the requests of the runs that have a key, and what they decide."""
    if not keys:
        return
    rows = requests_to_table(requests, keys)
    cursor.register("incoming_requests", rows)
    cursor.execute("INSERT INTO requests SELECT * FROM incoming_requests")
    totals, start = [], 0
    for run_id in keys:
        totals.append(_totals(rows.slice(start, len(requests[run_id]))))
        start += len(requests[run_id])
    columns = [list(column) for column in zip(*totals, strict=True)]
    cursor.execute(
        "INSERT INTO request_sets SELECT ?, unnest(?::VARCHAR[]), unnest(?::BIGINT[]), false, "
        + ", ".join(["unnest(?::BIGINT[])"] * len(columns)),
        [study, list(keys), list(keys.values()), *columns],
    )


def _totals(rows: pa.Table) -> tuple[int, ...]:
    """What TOTALS counts, of requests that are not stored yet."""
    ok = pc.fill_null(rows["ok"], False)
    one_token = pc.fill_null(pc.less_equal(rows["output_tokens"], 1), False)
    lacks = {n: pc.and_(ok, pc.is_null(rows[n])) for n in LATENCIES}
    lacks["tpot_ms"] = pc.and_not(lacks["tpot_ms"], one_token)
    counted = [ok, pc.is_null(rows["ok"]), *(lacks[n] for n in LATENCIES)]
    return (len(rows), *(pc.sum(c).as_py() or 0 for c in counted))


def mark(cursor: DuckDBPyConnection, study: str, run_ids: Sequence[str]) -> None:
    """Settle which sets of these runs are past: those that their current rows do not name."""
    ids = list(run_ids)
    cursor.execute(
        "UPDATE request_sets SET past = request_key NOT IN (SELECT request_key FROM runs "
        f"WHERE study = ? AND request_key IS NOT NULL AND {SOME}) WHERE study = ? AND {SOME}",
        [study, ids, study, ids],
    )


def select_keys(cursor: DuckDBPyConnection, study: str, run_ids: Sequence[str]) -> set[int]:
    """Keys of all sets of these runs, current or past."""
    rows = cursor.execute(
        f"SELECT request_key FROM request_sets WHERE study = ? AND {SOME}", [study, list(run_ids)]
    ).fetchall()
    return {key for (key,) in rows}


def delete(cursor: DuckDBPyConnection, keys: Collection[int]) -> None:
    """Delete these sets."""
    if not keys:
        return
    for table in ("requests", "request_sets"):
        cursor.execute(
            f"DELETE FROM {table} WHERE request_key BETWEEN {min(keys):d} AND {max(keys):d} "
            "AND request_key IN (SELECT unnest(?::BIGINT[]))",
            [list(keys)],
        )


def select_sets(cursor: DuckDBPyConnection, study: str) -> tuple[RequestSet, ...]:
    """The current sets of a study's runs."""
    rows = cursor.execute(
        "SELECT run_id, request_key, total, ok, ok_unknown, ttft_ms_unknown, tpot_ms_unknown, "
        "e2e_ms_unknown FROM request_sets WHERE study = ? AND NOT past",
        [study],
    ).fetchall()
    return tuple(
        RequestSet(
            run_id,
            key,
            total,
            ok,
            frozenset(n for n, u in zip(_COUNTED, unknown, strict=True) if u),
        )
        for run_id, key, total, ok, *unknown in rows
    )


def count(
    cursor: DuckDBPyConnection,
    sets: Sequence[RequestSet],
    run_ids: Sequence[str],
    limits: Mapping[str, float],
) -> dict[str, tuple[int, int]]:
    """Requests of each run, and those that are ok and within every limit.

    Runs whose records do not decide that are left out. What they lack was counted as they came in,
    so only the rows themselves are left to scan, by the range of their keys.
    """
    wanted, asked = set(run_ids), {"ok", *limits}
    decided = [s for s in sets if s.run_id in wanted and s.unknown.isdisjoint(asked)]
    if not limits or not decided:
        return {s.run_id: (s.total, s.ok) for s in decided}
    good = _good(cursor, sorted(s.key for s in decided), limits)
    return {s.run_id: (s.total, good.get(s.key, 0)) for s in decided}


def _good(
    cursor: DuckDBPyConnection, keys: Sequence[int], limits: Mapping[str, float]
) -> dict[int, int]:
    """Requests that are ok and within every limit, by key; a key without any may be missing."""
    low, high = keys[0], keys[-1]
    rows_of = f"request_key BETWEEN {low:d} AND {high:d}"
    values: list[object] = list(limits.values())
    if len(keys) < DENSE * (high - low + 1):
        rows_of += " AND request_key IN (SELECT unnest(?::BIGINT[]))"
        values.append(list(keys))
    # Not in WHERE: counting what is read anyway costs half of choosing rows first.
    met = " AND ".join(("ok", *map(_within, limits)))
    rows = cursor.execute(
        f"SELECT request_key, count(*) FILTER ({met}) FROM requests WHERE {rows_of} "
        "GROUP BY request_key",
        values,
    ).fetchall()
    return dict(rows)


def _within(latency: str) -> str:
    assert latency in LATENCIES
    within = f"{latency} <= ?"
    return f"coalesce({within}, {ONE_TOKEN})" if latency == "tpot_ms" else within


def acceptance(
    cursor: DuckDBPyConnection, sets: Sequence[RequestSet], run_ids: Sequence[str]
) -> dict[str, RequestAcceptance]:
    """What the ok requests of each run drafted; runs that none states it of are left out."""
    wanted = set(run_ids)
    by_key = {s.key: s for s in sets if s.run_id in wanted and s.ok}
    if not by_key:
        return {}
    rows = cursor.execute(
        "SELECT request_key, accepted_tokens, drafts, draft_tokens, rejected_rounds FROM requests "
        f"WHERE request_key BETWEEN {min(by_key):d} AND {max(by_key):d} AND drafts IS NOT NULL "
        "AND accepted_tokens IS NOT NULL AND ok AND request_key IN (SELECT unnest(?::BIGINT[])) "
        "ORDER BY request_key",
        [list(by_key)],
    ).to_arrow_table()
    if not len(rows):
        return {}
    keys, starts = np.unique(rows["request_key"].to_numpy(), return_index=True)
    ends = [*starts[1:].tolist(), len(rows)]
    found = {}
    for key, start, end in zip(keys.tolist(), starts.tolist(), ends, strict=True):
        part, held = rows.slice(start, end - start), by_key[key]
        tokens, rejected = (
            None if part[n].null_count else part[n].to_numpy()
            for n in ("draft_tokens", "rejected_rounds")
        )
        found[held.run_id] = RequestAcceptance(
            part["accepted_tokens"].to_numpy(),
            part["drafts"].to_numpy(),
            tokens,
            rejected,
            held.ok - len(part),
        )
    return found
