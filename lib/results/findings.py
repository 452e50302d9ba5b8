"""What a reader found in one document: runs, flags, columns nobody understood."""

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from lib.run import Run

Severity = Literal["blocks pricing", "blocks pairing", "warns"]

KNOWN = "vLLM bench serve (JSON), GuideLLM 0.7 or later (JSON, CSV), tables with one row a run"
LARGEST_COUNT = 2**53  # the largest whole number that JSON carries exactly


@dataclass(frozen=True)
class Flag:
    """Something about a file, or one of its runs, that a person should know.

    `run_id` names the run it is about; None means the whole file.
    """

    code: str
    severity: Severity
    message: str
    run_id: str | None = None


@dataclass(frozen=True)
class Column:
    """A table's header that no synonym matched, with a few of its values as text."""

    header: str
    samples: tuple[str, ...]


@dataclass(frozen=True)
class Findings:
    """What a tool's reader hands back; `Reading` adds the file's name, digest and kept copy.

    `requests` holds one table a run, by run_id: arrival_s, input_tokens, output_tokens, ttft_ms,
    tpot_ms, e2e_ms, ok, as far as the file has them.
    """

    tool: str
    tool_version: str
    why: str
    runs: tuple[Run, ...]
    requests: Mapping[str, pa.Table] = field(default_factory=dict)
    flags: tuple[Flag, ...] = ()
    unmatched: tuple[Column, ...] = ()


def identity(*parts: object) -> str:
    """A run's id: 16 hex digits that depend on `parts` alone, so every re-read gives the same."""
    return hashlib.sha256(repr(parts).encode("utf-8", "replace")).hexdigest()[:16]


def build_run(values: Mapping[str, Any]) -> tuple[Run, tuple[Flag, ...]]:
    """The run of `values` (Run's fields; None is not stated), and a flag for what cannot be true.

    A number that is negative, not finite (a load may be infinite) or beyond 2^53 is left empty.
    """
    stated, dropped = {}, []
    for name, value in values.items():
        if value is None:
            continue
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            top = math.inf if name in ("offered_load", "achieved_load") else LARGEST_COUNT
            floor_ok = value > 0 if name == "offered_load" else value >= 0
            if not (floor_ok and value <= top):
                dropped.append(f"{name} = {value:.6g}")
                continue
        stated[name] = value
    run = Run(**stated)
    if not dropped:
        return run, ()
    text = f"{', '.join(dropped)}: not possible, left empty"
    return run, (Flag("impossible_value", "warns", text, run.run_id),)


def shorten(names: Iterable[object], most: int = 12) -> str:
    """Names for a message: at most `most` of them, each cut to 40 characters."""
    listed = [" ".join(str(n).split()) for n in names]
    shown = ", ".join(n if len(n) <= 40 else f"{n[:39]}…" for n in listed[:most])
    return f"{shown} and {len(listed) - most} more" if len(listed) > most else shown
