"""What a reader found in one document: runs, flags, columns nobody understood."""

import hashlib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from lib.results.gpu_samples import GpuSamples
from lib.results.secret_text import redact_text
from lib.run import Run

Severity = Literal["blocks pricing", "blocks pairing", "warns"]

COUNTS = ("drafts", "draft_tokens", "accepted_tokens", "accepted_per_position", "histogram")
LONGEST_SHOWN = 4096  # characters of a name that are looked at
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]?|\x1b.?")
LARGEST_COUNT = 2**53  # the largest whole number that JSON carries exactly
_LARGEST = {"offered_load": math.inf, "achieved_load": math.inf, "accept_rate": 1.0}


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
    """A header or a JSON leaf that a person may map: a few of its values, and what it may be."""

    header: str
    samples: tuple[str, ...]
    suggestion: str = ""


@dataclass(frozen=True)
class Key:
    """Where a tool writes a field of a run: a path of keys, and the factor to the field's unit.

    `unit` is the source's own unit where it is not the field's. `note` says what is special.
    """

    field: str
    path: tuple[str, ...]
    factor: float = 1.0
    unit: str = ""
    note: str = ""


@dataclass(frozen=True)
class Beside:
    """What a file says of the runs that lie beside it; it is no run itself.

    About the runs `run_ids` where it names them. Else what the server counted is about the one run
    of `tools` (empty: of any tool) in its folder, and a set-up about every such run there and in
    the folders below that have no such file of their own. `fields` fill what a run does not state.
    `benchmark_id` is the tool's own name of the one measurement meant, as a run keeps it in
    `extra`: it speaks of no other. `output_tokens`, counted by the server, takes the place of a
    client's own count. `requests` are the run's per-request records. `gpus` are samples over time:
    what they say of a run in its folder or below is told by the run's own time.
    """

    tools: tuple[str, ...] = ()
    run_ids: tuple[str, ...] = ()
    benchmark_id: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    output_tokens: int | None = None
    requests: pa.Table | None = None
    gpus: GpuSamples | None = None

    @property
    def is_of_one_run(self) -> bool:
        """Whether it was counted during one measurement, unlike a set-up that several share."""
        counted = self.output_tokens is not None or self.requests is not None
        return counted or any(self.fields.get(name) is not None for name in COUNTS)


@dataclass(frozen=True)
class Scrape:
    """One scrape of a server's metrics: `values` by series name and sorted labels."""

    engine: str
    values: Mapping[tuple[str, tuple[tuple[str, str], ...]], float]


@dataclass(frozen=True)
class Findings:
    """What a tool's reader hands back; `Reading` adds the file's name, digest and kept copy.

    `requests` holds one table a run, by run_id: arrival_s, input_tokens, output_tokens, ttft_ms,
    tpot_ms, e2e_ms, ok, as far as the file has them. `keys` are those that the runs were read from.
    A file without runs has a flag that says what it is; `beside` is what it says of others.
    """

    tool: str
    tool_version: str
    why: str
    runs: tuple[Run, ...]
    requests: Mapping[str, pa.Table] = field(default_factory=dict)
    flags: tuple[Flag, ...] = ()
    unmatched: tuple[Column, ...] = ()
    keys: tuple[Key, ...] = ()
    beside: Beside | None = None
    scrape: Scrape | None = None


def identity(*parts: object) -> str:
    """A run's id: 16 hex digits that depend on `parts` alone, so every re-read gives the same."""
    return hashlib.sha256(repr(parts).encode("utf-8", "replace")).hexdigest()[:16]


def build_run(values: Mapping[str, Any]) -> tuple[Run, tuple[Flag, ...]]:
    """The run of `values` (Run's fields; None is not stated), and a flag for what cannot be true.

    A number that is negative, not finite (a load may be infinite) or beyond 2^53 is left empty, and
    so is an acceptance rate above 1.
    """
    stated, dropped = {}, []
    for name, value in values.items():
        if value is None:
            continue
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            top = _LARGEST.get(name, LARGEST_COUNT)
            floor_ok = value > 0 if name == "offered_load" else value >= 0
            if not (floor_ok and value <= top):
                shown = f"{value:.6g}" if abs(value) < 10**300 else "a number of over 300 digits"
                dropped.append(f"{name} = {shown}")
                continue
        stated[name] = value
    run = Run(**stated)
    if not dropped:
        return run, ()
    text = f"{', '.join(dropped)}: not possible, left empty"
    return run, (Flag("impossible_value", "warns", text, run.run_id),)


def shorten(names: Iterable[object], most: int = 12) -> str:
    """Names from a file for a message: at most `most` of them, each as `shown`."""
    listed = list(names)
    text = ", ".join(map(shown, listed[:most]))
    return f"{text} and {len(listed) - most:,} more" if len(listed) > most else text


def shown(content: object) -> str:
    """What a file holds as a message may quote it: one line of at most 40 characters.

    A file's first line may be an environment's: secrets are replaced. What would steer a terminal
    or turn a line around (control, bidirectional, zero-width characters) is left out.
    """
    text = " ".join(_ANSI.sub("", str(content)[:LONGEST_SHOWN]).split())
    plain = redact_text("".join(c for c in text if c.isprintable()))
    return plain if len(plain) <= 40 else f"{plain[:39]}…"
