"""What a run measured, as far as any request completed."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lib.results.findings import Findings, Flag
from lib.run import Run

_OUTCOMES = (
    *("output_tps", "request_rps", "goodput_rps", "multiplier"),
    *("drafts", "draft_tokens", "accepted_tokens", "accepted_per_position", "histogram"),
    *("accept_length", "accept_rate"),
)
_MEASURED = frozenset({"output_tps", "request_rps", "goodput_rps", "input_len", "output_len"})


def of_completed(fields: Mapping[str, Any]) -> tuple[dict[str, Any], list[Flag]]:
    """The fields, without outcomes where no request completed: the zeros that tools then write.

    `fields` are those of one run; the flag says what was left empty.
    """
    if fields.get("completed") != 0:
        return dict(fields), []
    kept = {k: v for k, v in fields.items() if "_ms_" not in k and k not in _MEASURED}
    text = "no request completed: its zeros are no measurements, left empty"
    return kept, [Flag("nothing_completed", "warns", text, fields.get("run_id"))]


def product(mean: float, completed: int | None) -> int | None:
    """A total from a mean over the completed requests; None where it is no count."""
    if completed is None or not 0 <= mean * completed <= 2**53:
        return None
    return round(mean * completed)


def is_measured(run: Run) -> bool:
    """Whether a run has any outcome: a rate, a latency, a ratio or counts of speculation."""
    held = vars(run)
    latencies = (name for name in held if "_ms_" in name)
    return any(held[name] is not None for name in (*_OUTCOMES, *latencies))


def of_findings(found: Findings) -> Findings | None:
    """The findings with a flag for each run without an outcome; None where no run has any.

    A run that completed nothing has none either, and rightly so.
    """
    empty = [run for run in found.runs if not is_measured(run) and run.completed != 0]
    if not empty:
        return found
    if len(empty) == len(found.runs):
        return None
    text = "nothing was measured where this version writes it: no rate, no latency, no count"
    flags = (Flag("no_outcome", "warns", text, run.run_id) for run in empty)
    return replace(found, flags=(*found.flags, *flags))
