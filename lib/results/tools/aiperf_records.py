"""AIPerf's records, one a request: they belong to the run whose summary has their statistics."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lib.results import per_request
from lib.results.findings import LARGEST_COUNT, Beside, Findings, Flag, Key
from lib.results.parsing import as_count, as_dict, as_list, as_number, counted
from lib.results.per_request import Floats
from lib.results.tools import perf_nodes
from lib.results.tools.perf_nodes import Nodes
from lib.run import SpecState

TOOL = "aiperf"
RECORDS_LEVEL = "profile_export.jsonl"

ON = "on where there are any"
_ACCEPTANCE = ("spec_decode_acceptance",)
RECORD_KEYS = (
    Key("output_tokens", ("metrics", "usage_completion_tokens", "value"), note="sum"),
    Key("drafts", (*_ACCEPTANCE, "num_spec_steps"), note="sum"),
    Key("draft_tokens", (*_ACCEPTANCE, "num_draft_tokens"), note="sum"),
    Key("accepted_tokens", (*_ACCEPTANCE, "num_accepted_draft_tokens"), note="sum"),
)
RECORD_FOLLOWS = (
    Key("spec_state", (*_ACCEPTANCE, "num_spec_steps"), note=ON),
    Key(
        "num_speculative_tokens",
        (*_ACCEPTANCE, "num_draft_tokens"),
        note="/ drafts, where it is whole",
    ),
)


def find(records: Sequence[Mapping[str, object]]) -> Findings:
    """Per-request records: they belong to the run whose summary has just their statistics."""
    rows = [r for r in records if _phase(r) != "warmup" and as_dict(r.get("metrics"))]
    why = "keys metadata.request_start_ns, metrics: one record a request"
    text = f"AIPerf's records of {counted(len(rows), 'request')}, no run; they complete their run"
    if not rows:
        text = "AIPerf's records without a measured request; import profile_export_aiperf.json"
        return Findings(TOOL, RECORDS_LEVEL, why, (), flags=(Flag("not_a_run", "warns", text),))
    good = np.array([_good(r) for r in rows], dtype=bool)
    columns = _Columns(rows)
    usage = columns.of("usage_completion_tokens", "count")
    every = usage is not None and bool(good.any()) and not np.isnan(usage[good]).any()
    with np.errstate(over="ignore"):
        tokens = float(np.sum(usage[good])) if usage is not None and every else 0.0
    fields, keys = _drafted([r for r, ok in zip(rows, good, strict=True) if ok])
    if tokens > 0:
        keys = (RECORD_KEYS[0], *keys)
    run_id = perf_nodes.content_id(TOOL, columns.summary(good))
    return Findings(
        TOOL,
        RECORDS_LEVEL,
        why,
        (),
        flags=(Flag("sidecar", "warns", text),),
        keys=keys,
        beside=Beside(
            tools=(TOOL,),
            run_ids=(run_id,) if run_id else (),
            fields=possible(fields),
            output_tokens=round(tokens) if 0 < tokens <= LARGEST_COUNT else None,
            requests=_table(columns, good, usage if every else None, _drafted_each(rows)),
        ),
    )


def _phase(record: Mapping[str, object]) -> object:
    metadata = as_dict(record.get("metadata"))
    return metadata.get("phase_kind") or metadata.get("benchmark_phase")


def _good(record: Mapping[str, object]) -> bool:
    cancelled = as_dict(record.get("metadata")).get("was_cancelled") is True
    return record.get("error") is None and not cancelled


class _Columns:
    """The metrics of records as arrays; a missing value is NaN, a metric without a unit None."""

    def __init__(self, rows: Sequence[Mapping[str, object]]) -> None:
        self._rows = rows
        self._metrics = [as_dict(r.get("metrics")) for r in rows]
        self._read: dict[tuple[str, str], Floats | None] = {}

    def of(self, metric: str, wanted: str) -> Floats | None:
        if (metric, wanted) not in self._read:
            self._read[metric, wanted] = self._column(metric, wanted)
        return self._read[metric, wanted]

    def _column(self, metric: str, wanted: str) -> Floats | None:
        nodes = [as_dict(m.get(metric)) for m in self._metrics]
        units = {u if isinstance(u := n.get("unit"), str) else None for n in nodes if n}
        factor = perf_nodes.unit_factor(wanted, next(iter(units))) if len(units) == 1 else None
        if factor is None:
            return None
        return per_request.floats([as_number(n.get("value")) for n in nodes], factor)

    def start_s(self) -> Floats | None:
        starts = [as_number(as_dict(r.get("metadata")).get("request_start_ns")) for r in self._rows]
        return per_request.floats(starts, 1e-9)

    def summary(self, good: np.ndarray[Any, Any]) -> Nodes:
        """The statistics of the good requests, as the summary of their run has them."""
        found: dict[str, dict[str, Any]] = {"request_count": {"avg": int(good.sum())}}
        wanted = {"request_latency": "ms", "time_to_first_token": "ms", "inter_token_latency": "ms"}
        for metric, unit in (
            wanted | {"input_sequence_length": "mean", "output_sequence_length": "mean"}
        ).items():
            values = self.of(metric, unit)
            held = values[good & np.isfinite(values)] if values is not None else None
            if held is not None and held.size:
                with np.errstate(over="ignore"):
                    found[metric] = {"avg": held.mean(), "min": held.min(), "max": held.max()}
        return Nodes({m: {s: float(v) for s, v in n.items()} for m, n in found.items()}, {})


def _table(
    columns: _Columns,
    good: np.ndarray[Any, Any],
    usage: Floats | None,
    drafted: Mapping[str, Floats | None],
) -> pa.Table:
    """The requests; time per token by the server's count where every request has it."""
    output = usage if usage is not None else columns.of("output_sequence_length", "mean")
    return per_request.table(
        good,
        start_s=columns.start_s(),
        input_tokens=columns.of("input_sequence_length", "mean"),
        output_tokens=output,
        ttft_ms=columns.of("time_to_first_token", "ms"),
        e2e_ms=columns.of("request_latency", "ms"),
        **drafted,
    )


def _drafted_each(records: Sequence[Mapping[str, object]]) -> dict[str, Floats | None]:
    """Draft counts of each record, under their names in the table of requests."""
    held = [as_dict(r.get(_ACCEPTANCE[0])) for r in records]
    found = {
        key.field: per_request.floats([as_count(d.get(key.path[-1])) for d in held])
        for key in RECORD_KEYS[1:]
    }
    return found | {"rejected_rounds": per_request.floats([_rejected(d) for d in held])}


def _rejected(counts: Mapping[str, object]) -> int | None:
    """Rounds that kept less than they drafted; None where the record does not decide it.

    It does step by step, or by its histogram where every step drafted as many as it may.
    """
    steps, tokens, most = (
        as_count(counts.get(k)) for k in ("num_spec_steps", "num_draft_tokens", "num_spec_tokens")
    )
    if not steps:
        return steps
    kept, offered = (
        [as_count(n) for n in as_list(counts.get(k))]
        for k in ("per_step_accepted", "per_step_drafted")
    )
    if len(kept) == len(offered) == steps and None not in (*kept, *offered):
        return sum(a < b for a, b in zip(kept, offered, strict=True))  # type: ignore[operator]
    histogram = {k: as_count(n) for k, n in as_dict(counts.get("acceptance_histogram")).items()}
    whole = sum(n for n in histogram.values() if n is not None) == steps
    if not most or tokens != most * steps or not whole:
        return None
    return steps - (histogram.get(str(most)) or 0)


def _drafted(records: Sequence[Mapping[str, object]]) -> tuple[dict[str, Any], tuple[Key, ...]]:
    """Draft counts summed over the records that carry them."""
    held = [d for r in records if (d := as_dict(r.get("spec_decode_acceptance")))]
    found: dict[str, Any] = {}
    for key in RECORD_KEYS[1:]:
        values = [as_count(d.get(key.path[-1])) for d in held]
        known = [v for v in values if v is not None and v >= 0]
        if known and len(known) == len(values):
            found[key.field] = sum(known)
    if not found.get("drafts"):
        return {}, ()
    keys = tuple(k for k in RECORD_KEYS[1:] if k.field in found)
    return found | {"spec_state": SpecState.ON} | fixed_k(found), keys


def possible(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields without numbers that a run cannot hold."""
    most = {"accept_rate": 1.0}
    return {
        name: value
        for name, value in fields.items()
        if not isinstance(value, (int, float)) or 0 <= value <= most.get(name, LARGEST_COUNT)
    }


def fixed_k(fields: Mapping[str, Any]) -> dict[str, int]:
    k = (fields.get("draft_tokens") or 0) / fields["drafts"]
    return {"num_speculative_tokens": round(k)} if k and _whole(k) else {}


def _whole(k: float) -> bool:
    return 0 < round(k) <= 1000 and abs(k / round(k) - 1) <= 0.005
