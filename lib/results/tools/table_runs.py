"""Runs of a table's rows: what a row says once its cells are read, and which run it is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from lib.results import checks, redaction
from lib.results.acceptance_checks import AGREES, counted_tau
from lib.results.findings import Flag, build_run, identity
from lib.results.parsing import counted
from lib.run import GROUPS, Run, SpecState

TOOL = "table"
_WITH_BONUS = ("SGLang", "TensorRT-LLM")  # engines whose every version counts it in


@dataclass
class Draft:
    """A run in the making: its line, the header's name of its arm, what its cells say.

    `emitted` where a column holds vLLM V0's emitted tokens.
    """

    line: int
    arm_key: str
    fields: dict[str, Any]
    per_gpu: float | None = None
    emitted: bool = False
    extra: dict[str, object] = field(default_factory=dict)


def decode_time(fields: Mapping[str, Any]) -> float | None:
    """TPOT in ms by mean end-to-end time, TTFT and output length, where none is stated.

    The length is the stated one, else output tokens over completed requests (all of them where
    none failed). None where it does not follow.
    """
    e2e, ttft = fields.get("e2e_ms_mean"), fields.get("ttft_ms_mean")
    if e2e is None or ttft is None or any(name.startswith("tpot_ms_") for name in fields):
        return None
    length, tokens = fields.get("output_len"), fields.get("output_tokens")
    requests = fields.get("completed")
    if requests is None and fields.get("failed") == 0:
        requests = fields.get("num_prompts")
    if length is None and tokens is not None and requests:
        length = tokens / requests
    if length is None or length <= 1 or e2e <= ttft:
        return None
    found: float = (e2e - ttft) / (length - 1)
    return found


def finish(drafts: Sequence[Draft], sha256: str) -> tuple[list[Run], list[Flag]]:
    """Runs of the drafts: per-GPU rates resolved, each run once, a repeated baseline too."""
    runs: list[Run] = []
    flags: list[Flag] = []
    ratios = 0
    lines: dict[str, int] = {}
    for draft in drafts:
        fields = dict(draft.fields)
        if draft.per_gpu is not None:
            if count := fields.get("gpu_count"):
                fields["output_tps"] = draft.per_gpu * count
            else:
                ratio = _ratio_to_off(draft, drafts)
                ratios += 1
                if ratio is None:
                    continue
                fields["multiplier"] = ratio
        emitted = _emitted(fields) if draft.emitted else None
        fields |= emitted or {}
        run_id = content_id(fields)
        if run_id in lines:
            if not (draft.arm_key and fields.get("spec_state") is SpecState.OFF):
                flags.append(_repeated(draft.line, lines[run_id], run_id))
            continue
        lines[run_id] = draft.line
        made = {"run_id": run_id, "source_sha256": sha256, "tool": TOOL}
        run, found = build_run(fields | made | {"extra": redaction.extra(draft.extra)})
        runs.append(run)
        flags += [*found, *checks.inspect(run), *_zero_k(run)]
        flags += [] if emitted is None else [_by_emitted(run)]
    if ratios:
        text = "token rates are per GPU and the GPU count is not stated: kept as ratios to off"
        flags.append(Flag("per_gpu_rate", "blocks pricing", text))
    return runs, [*flags, *_bonus(runs)]


def content_id(fields: Mapping[str, Any]) -> str:
    """A run's id from what it says: saving a table anew makes no new measurements.

    Numbers count to nine digits, for units and decimal marks round them differently.
    """
    said = sorted((name, _plain(v)) for name, v in fields.items() if v is not None)
    return identity(TOOL, *(part for part in said if part[0] != "zone_known"))


def _plain(value: object) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return f"{value:.9g}"
        except OverflowError:
            return str(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return str(value)


def _repeated(line: int, first: int, run_id: str) -> Flag:
    text = (
        f"line {line} says what line {first} says: one run; give each repeat its number in a "
        "column repeat if it was measured again"
    )
    return Flag("repeated_in_file", "warns", text, run_id)


def _ratio_to_off(draft: Draft, drafts: Sequence[Draft]) -> float | None:
    """An arm's per-GPU rate over the baseline's; None for the baseline itself or without one.

    The baseline is that of the same load, model, data and hardware.
    """
    if draft.fields.get("spec_state") is not SpecState.ON or draft.per_gpu is None:
        return None
    alike = ("load_kind", "offered_load", "gpu", *GROUPS.workload)
    own = [draft.fields.get(k) for k in alike]
    for other in drafts:
        same = [other.fields.get(k) for k in alike] == own
        if same and other.fields.get("spec_state") is SpecState.OFF and other.per_gpu:
            return draft.per_gpu / other.per_gpu
    return None


def _zero_k(run: Run) -> list[Flag]:
    if run.num_speculative_tokens != 0 or run.spec_state is not SpecState.UNKNOWN:
        return []
    text = "K = 0: say whether that is off (no speculation) or a schedule's zero"
    return [Flag("k_zero", "blocks pairing", text, run.run_id)]


def _emitted(fields: Mapping[str, Any]) -> dict[str, Any] | None:
    """Counts by vLLM V0's emitted tokens, where its accepted ones go past the first rejection.

    A draft is K tokens, and all but one of the tokens that it emitted were accepted.
    """
    emitted, drafted = fields.get("output_tokens"), fields.get("draft_tokens")
    k, accepted = fields.get("num_speculative_tokens"), fields.get("accepted_tokens")
    if not (emitted and drafted and k) or "drafts" in fields:
        return None
    drafts = round(drafted / k)
    if not 0 < drafts <= emitted or (accepted is not None and accepted + drafts <= emitted):
        return None
    return {"drafts": drafts, "accepted_tokens": emitted - drafts}


def _by_emitted(run: Run) -> Flag:
    text = (
        f"accepted tokens counted as emitted less one a draft ({run.output_tokens} - {run.drafts}):"
        " vLLM V0 counts matches past the first rejection as accepted"
    )
    return Flag("accepted_by_emitted", "warns", text, run.run_id)


def _bonus(runs: Sequence[Run]) -> list[Flag]:
    """Whether lengths may leave out the bonus token, for all runs at once."""
    doubted = [run for run in runs if _lacks_proof(run)]
    if not doubted:
        return []
    more = f" (and {counted(len(doubted) - 1, 'other')})" if len(doubted) > 1 else ""
    text = (
        f"acceptance length {doubted[0].accept_length:.4g}{more} is read with the bonus token in "
        "it; add 1 where your engine leaves it out"
    )
    return [Flag("bonus_in_doubt", "warns", text, doubted[0].run_id if not more else None)]


def _lacks_proof(run: Run) -> bool:
    """Whether neither counts nor engine, K or rate show that a stated length has the bonus token.

    Without it a length is at most K. One below 1 lacks it, which every run is checked for.
    """
    length, k, rate = run.accept_length, run.num_speculative_tokens, run.accept_rate
    if length is None or length < 1 or k == 0 or run.spec_state is SpecState.OFF:
        return False
    if counted_tau(run) is not None or run.engine in _WITH_BONUS or (k and length > k):
        return False
    return not (k and rate is not None and abs(1 + rate * k - length) <= AGREES * length)
