"""llama-bench of llama.cpp: JSON, JSON lines and CSV; its SQL and Markdown are refused.

A text-generation row (`n_gen` tokens without a prompt) measures how fast one sequence decodes. That
is a time per output token, and it becomes the run's TPOT. It is not what a deployment serves: there
is no prompt, no second request and no speculation in it, so `output_tps` stays empty and the run
can never be priced. Prompt-processing rows, and rows that mix both, are no runs.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from lib.errors import UnknownFormat
from lib.results import checks, keys, redaction
from lib.results.findings import Findings, Flag, Key, build_run, identity
from lib.results.parsing import as_count, as_dict, as_number, as_text, counted, flat
from lib.run import LoadKind, Run, SpecState

TOOL = "llama-bench"
TITLE = "llama-bench"
KEYS = (
    Key("target", ("model_filename",), note="the file's name without its folder"),
    Key("build", ("build_commit",)),
    Key("engine_version", ("build_number",)),
    Key("gpu", ("gpu_info",)),
    Key("output_len", ("n_gen",)),
    Key("tpot_ms_mean", ("avg_ns",), 1e-6, "ns", "of a repetition, over n_gen"),
)
_FOLLOWS = (
    Key("tpot_ms_mean", ("avg_ts",), note="1000 over it, without avg_ns"),
    Key("started_at", ("test_time",), note="UTC"),
    Key("engine", ("build_commit",), note="always llama.cpp"),
    Key("spec_state", ("n_gen",), note="always off: it cannot draft"),
    Key("load_kind", ("n_gen",), note="a batch"),
    Key("offered_load", ("n_gen",), note="of one"),
)
LEVELS: Mapping[str, tuple[Key, ...]] = {"text generation": (*KEYS, *_FOLLOWS)}

_TELLING = frozenset({"build_commit", "model_filename", "n_prompt", "n_gen"})
_MEASURED = frozenset({"avg_ns", "avg_ts", "samples_ns"})
_UNDERSTOOD = frozenset({*(key.path[0] for key in KEYS), "n_prompt", "test_time"})
_SQL = re.compile(r"\s*(?:CREATE TABLE IF NOT EXISTS|INSERT INTO)\s+\w+\s*\([^)]*\bbuild_commit\b")
_MARKDOWN = re.compile(r"\s*\|\s*model\s*\|\s*size\s*\|\s*params\s*\|.*\|\s*test\s*\|\s*t/s\s*\|")


def recognise(values: Sequence[object]) -> bool:
    """Whether JSON values are rows of llama-bench."""
    return any(_is_row(v) for v in flat(values[:1])[:3])


def _is_row(value: object) -> bool:
    names = as_dict(value).keys()
    return names >= _TELLING and not names.isdisjoint(_MEASURED)


def recognise_rows(rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows are llama-bench's CSV."""
    return bool(rows) and {*rows[0]} >= _TELLING and not _MEASURED.isdisjoint(rows[0])


def recognise_text(text: str) -> bool:
    """Whether a text is llama-bench's SQL or Markdown."""
    start = text[:4096]
    return bool(_SQL.match(start) or _MARKDOWN.match(start))


def find_text(name: str, text: str, sha256: str) -> Findings:
    """Never: raises UnknownFormat with the way out."""
    form = "SQL" if _SQL.match(text[:4096]) else "Markdown, which rounds its rates"
    raise UnknownFormat(f"{name}: llama-bench's {form}; run it with -o json or -o csv instead")


def find_rows(name: str, rows: Sequence[Sequence[str]], sha256: str) -> Findings:
    """Runs of the CSV, whose cells are the JSON's values as text."""
    records = [dict(zip(rows[0], row, strict=False)) for row in rows[1:]]
    return find(name, records, sha256)


def find(name: str, values: Sequence[object], sha256: str) -> Findings:
    """One run a text-generation row."""
    records = [as_dict(v) for v in flat(values)]
    runs, flags, used = dict[str, Run](), list[Flag](), dict[Key, None]()
    for position, record in enumerate(records):
        if as_count(record.get("n_prompt")) != 0 or not (as_count(record.get("n_gen")) or 0) > 0:
            continue
        fields, found = _fields(record)
        used |= dict.fromkeys(found)
        run_id = _run_id(record, fields, sha256, position)
        if run_id in runs:
            flags.append(Flag("repeated_in_file", "warns", f"{name} holds a run twice", run_id))
            continue
        run, impossible = build_run(fields | {"run_id": run_id, "source_sha256": sha256})
        flags += [*impossible, *checks.inspect(run)]
        runs[run_id] = run
    flags += _said(len(runs), len(records) - len(runs))
    why = f"keys {', '.join(sorted(_TELLING))} of llama-bench"
    level = next(iter(LEVELS))
    return Findings(TOOL, level, why, tuple(runs.values()), flags=tuple(flags), keys=tuple(used))


def _said(runs: int, others: int) -> list[Flag]:
    if not runs:
        text = "no text-generation row (n_gen above 0, n_prompt 0); run llama-bench with -n"
        return [Flag("not_a_run", "warns", text)]
    text = "a decode rate of one sequence without prompt time: compares steps, is never priced"
    rest = f"; {counted(others, 'other row')} left out" if others else ""
    return [Flag("decode_only", "warns", f"{text}{rest}")]


def _run_id(
    record: Mapping[str, object], fields: Mapping[str, Any], sha256: str, position: int
) -> str:
    moment, took = as_text(record.get("test_time")), as_number(record.get("avg_ns"))
    if moment is None or took is None:
        return identity(TOOL, sha256, position)
    numbers = [as_number(record.get(k)) for k in ("n_gen", "n_depth", "n_threads", "n_gpu_layers")]
    return identity(TOOL, moment, took, fields.get("target"), *numbers)


def _fields(record: Mapping[str, object]) -> tuple[dict[str, Any], tuple[Key, ...]]:
    """Run's fields of a row, and the keys used. The mean is of times, or 1000 / mean rate."""
    fields, used = keys.take(record, KEYS)
    tokens, rate = fields["output_len"], as_number(record.get("avg_ts"))
    if "tpot_ms_mean" in fields:
        fields["tpot_ms_mean"] /= tokens
    elif rate and rate > 0:
        fields["tpot_ms_mean"] = 1e3 / rate
    if "target" in fields:
        fields["target"] = PurePosixPath(fields["target"].replace("\\", "/")).name
    left = {
        k: v
        for k, v in record.items()
        if k not in _UNDERSTOOD and v not in ("", None) and not k.startswith("samples_")
    }
    moment = _moment(record.get("test_time"))
    measured = {
        "tool": TOOL,
        "tool_version": next(iter(LEVELS)),
        "started_at": moment,
        "zone_known": moment is not None,
        "engine": "llama.cpp",
        "spec_state": SpecState.OFF,
        "load_kind": LoadKind.BATCH,
        "offered_load": 1.0,
        "extra": redaction.extra(left),
    }
    return fields | measured, used


def _moment(value: object) -> datetime | None:
    """`2025-01-11T09:48:42Z`."""
    try:
        moment = datetime.fromisoformat(as_text(value) or "")
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
