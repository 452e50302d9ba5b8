"""Spec-Bench's and EAGLE's answer files: JSON lines of questions, one request at a time.

`accept_lengths` is the list of tokens that each round of a turn gave. Whether the bonus token is in
it depends on the method's own code, so it is never taken for granted: the file's `new_tokens` may
settle it, for rounds and accepted tokens must add up to them. Where they do not, the length stands
as stated, without counts, and a flag says that one may have to be added.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lib.results import checks, per_request, redaction
from lib.results.findings import LARGEST_COUNT, Findings, Flag, Key, build_run, identity
from lib.results.parsing import as_count, as_dict, as_list, as_number, as_text, counted, flat
from lib.run import LoadKind, SpecState

TOOL = "spec-bench"
TITLE = "Spec-Bench and EAGLE answers"
SPEC_BENCH, EAGLE = "accept_lengths", "idxs"
SHARED = (
    Key("label", ("model_id",)),
    Key("output_tokens", ("choices", "new_tokens"), note="summed over turns"),
    Key("duration_s", ("choices", "wall_time"), note="summed over turns, one at a time"),
    Key("completed", ("choices", "new_tokens"), note="turns"),
    Key("output_len", ("choices", "new_tokens"), note="mean of the turns"),
    Key("output_tps", ("choices", "new_tokens"), note="summed, over the summed wall_time"),
    Key("e2e_ms_mean", ("choices", "wall_time"), 1e3, "s", "mean of the turns"),
    Key("load_kind", ("choices",), note="a batch"),
    Key("offered_load", ("choices",), note="of one"),
)
_SETTLED = "where new_tokens settle it"
LEVELS: Mapping[str, tuple[Key, ...]] = {
    SPEC_BENCH: (
        *SHARED,
        Key("accept_length", ("choices", "accept_lengths"), note="mean; the bonus may be missing"),
        Key("drafts", ("choices", "accept_lengths"), note=f"how many, {_SETTLED}"),
        Key("accepted_tokens", ("choices", "accept_lengths"), note=f"summed, {_SETTLED}"),
        Key("accepted_per_position", ("choices", "accept_lengths"), note=_SETTLED),
        Key("spec_state", ("choices", "accept_lengths"), note="on above one token a round"),
        Key("histogram", ("choices", "accept_lengths"), note="rounds by accepted tokens"),
    ),
    EAGLE: (
        *SHARED,
        Key("accept_length", ("choices", "decoding_steps"), note="new_tokens over it"),
        Key("accept_length", ("choices", "idxs"), note="new_tokens over (idxs + 1)"),
        Key("spec_state", ("choices", "idxs"), note="on above one token a round"),
    ),
}
SLACK = 0.02
LONGEST_DRAFT = 256
Record = Mapping[str, Any]


def recognise(values: Sequence[object]) -> bool:
    """Whether JSON values are answers with new_tokens and wall_time."""
    return _is_answer(next(iter(flat(values[:1])), None))


def _is_answer(value: object) -> bool:
    record = as_dict(value)
    first = as_dict(next(iter(as_list(record.get("choices"))), None))
    return "question_id" in record and first.keys() >= {"new_tokens", "wall_time"}


def find(name: str, values: Sequence[object], sha256: str) -> Findings:
    """One run of all answers of a model_id."""
    records = [as_dict(v) for v in flat(values)]
    groups: dict[str | None, list[Record]] = {}
    for record in records:
        if _is_answer(record):
            groups.setdefault(as_text(record.get("model_id")), []).append(record)
    runs, flags, used = [], list[Flag](), dict[Key, None]()
    tables: dict[str, pa.Table] = {}
    for model, answers in groups.items():
        run_id = identity(TOOL, sha256, model)
        choices = [as_dict(c) for a in answers for c in as_list(a.get("choices"))]
        fields, notes, level = _fields(choices)
        if (table := _requests(choices, fields.get("accepted_tokens"))) is not None:
            tables[run_id] = table
        run, found = build_run(
            fields
            | {
                "run_id": run_id,
                "source_sha256": sha256,
                "tool": TOOL,
                "tool_version": level,
                "label": model,
                "extra": redaction.extra(_left(answers)),
            }
        )
        runs.append(run)
        flags += [*found, *checks.inspect(run)]
        flags += [Flag(code, "warns", text, run_id) for code, text in notes]
        used |= dict.fromkeys(LEVELS[level])
    if others := len(records) - sum(map(len, groups.values())):
        flags.append(
            Flag("other_values", "warns", f"{counted(others, 'value')} of another kind; left out")
        )
    level = str(runs[0].tool_version) if runs else SPEC_BENCH
    why = "question_id and choices with new_tokens, wall_time"
    return Findings(TOOL, level, why, tuple(runs), tables, tuple(flags), keys=tuple(used))


def _left(answers: Sequence[Record]) -> dict[str, object]:
    categories = Counter(as_text(a.get("category")) for a in answers)
    return {"categories": {k: n for k, n in categories.items() if k}, "questions": len(answers)}


def _numbers(value: object) -> list[float]:
    """The numbers of a list, or the one number that stands in its place."""
    listed = value if isinstance(value, list) else [value]
    numbers = (as_number(v) for v in listed)
    return [n for n in numbers if n is not None and 0 <= n <= LARGEST_COUNT]


def _all(choices: Iterable[Record], key: str) -> list[float]:
    return [n for c in choices for n in _numbers(c.get(key))]


def _fields(choices: Sequence[Record]) -> tuple[dict[str, Any], list[tuple[str, str]], str]:
    """Run's fields, what to say of them, and by which key acceptance is told."""
    tokens, seconds = _all(choices, "new_tokens"), _all(choices, "wall_time")
    total, took = sum(tokens), sum(seconds)
    whole = bool(tokens) and len(tokens) == len(seconds)
    fields = {
        "output_tokens": as_count(total) if tokens else None,
        "duration_s": took if whole else None,
        "output_tps": total / took if whole and took > 0 else None,
        "e2e_ms_mean": 1e3 * took / len(seconds) if whole else None,
        "output_len": total / len(tokens) if tokens else None,
        "completed": len(tokens) or None,
        "load_kind": LoadKind.BATCH,
        "offered_load": 1.0,
    }
    lengths = _all(choices, "accept_lengths")
    if lengths:
        found, notes = _accepted(lengths, total, len(tokens))
        return fields | found, notes, SPEC_BENCH
    steps = _all(choices, "decoding_steps")
    idxs = _all(choices, "idxs")
    rounds = sum(steps) if len(steps) == len(tokens) else sum(idxs) + len(idxs)
    if not (rounds and tokens and len(tokens) in (len(steps), len(idxs))):
        return fields, [], EAGLE
    length = total / rounds
    if length <= 1.005:
        return fields, [("no_speculation", "one token a round: no draft was accepted")], EAGLE
    text = (
        f"acceptance length {length:.4g} is new tokens over rounds counted by index; if the tool "
        "counts them from 1, or leaves the bonus token out, it is another"
    )
    stated = {"accept_length": length, "spec_state": SpecState.ON}
    return fields | stated, [("bonus_in_doubt", text)], EAGLE


def _accepted(
    lengths: Sequence[float], total: float, turns: int
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Counts where `new_tokens` settle what the lengths are; else the mean as stated, and a doubt.

    With the bonus token in them the lengths add up to the new tokens; without it, the lengths and
    one a round do. Up to 2 % and a token a turn may differ: prefill, and what is cut at the end.
    """
    rounds, summed = len(lengths), sum(lengths)
    slack = SLACK * total + 2 * turns
    with_bonus = abs(summed - total) <= slack
    without = abs(summed + rounds - total) <= slack
    counts = Counter(int(n) for n in lengths if n == int(n) <= LONGEST_DRAFT)
    mean = summed / rounds
    if with_bonus and mean <= 1.005:
        return {}, [("no_speculation", "one token a round: no draft was accepted")]
    whole = sum(counts.values()) == rounds and (0 not in counts or without)
    if with_bonus == without or not whole:
        text = (
            f"mean acceptance length {mean:.4g} as stated; whether the bonus token is in it cannot "
            f"be told from {total:.6g} new tokens in {rounds:,} rounds, so add 1 if it is not"
        )
        return {"accept_length": mean, "spec_state": SpecState.ON}, [("bonus_in_doubt", text)]
    bonus = 1 if with_bonus else 0
    histogram = [0] * (max(counts) - bonus + 1)
    for length, times in counts.items():
        histogram[length - bonus] = times
    said = "holds" if with_bonus else "leaves out"
    text = f"the list {said} the bonus token: {total:.6g} new tokens in {rounds:,} rounds settle it"
    found = {
        "spec_state": SpecState.ON,
        "drafts": rounds,
        "accepted_tokens": int(summed) - bonus * rounds,
        "histogram": tuple(histogram),
        "accepted_per_position": tuple(sum(histogram[i:]) for i in range(1, len(histogram)))
        or None,
    }
    return found, [("bonus_settled", text)]


def _requests(choices: Sequence[Record], accepted: int | None) -> pa.Table | None:
    """A row a turn; `accepted` are the tokens accepted in all of them, where that is settled."""
    tokens, seconds = _all(choices, "new_tokens"), _all(choices, "wall_time")
    if len(tokens) < 2 or len(tokens) != len(seconds):
        return None
    return per_request.table(
        np.ones(len(tokens), dtype=bool),
        output_tokens=per_request.floats(tokens),
        e2e_ms=per_request.floats(seconds, 1e3),
        **({} if accepted is None else _drafted(choices, accepted)),
    )


def _drafted(choices: Sequence[Record], accepted: int) -> dict[str, per_request.Floats | None]:
    """Rounds and accepted tokens of each turn.

    The lengths of a question's turns stand in one list: `decoding_steps` say where a turn ends.
    """
    bonus = 1 if sum(_all(choices, "accept_lengths")) > accepted else 0
    rounds, kept = list[float | None](), list[float | None]()
    for choice in choices:
        lengths = _numbers(choice.get("accept_lengths"))
        turns = len(_numbers(choice.get("new_tokens")))
        steps = [int(n) for n in _numbers(choice.get("decoding_steps"))]
        steps = [len(lengths)] if turns == 1 else steps
        if len(steps) != turns or sum(steps) != len(lengths):
            rounds += [None] * turns
            kept += [None] * turns
            continue
        ends = np.cumsum(steps).tolist()
        rounds += steps
        kept += [sum(lengths[e - n : e]) - bonus * n for e, n in zip(ends, steps, strict=True)]
    return {"drafts": per_request.floats(rounds), "accepted_tokens": per_request.floats(kept)}
