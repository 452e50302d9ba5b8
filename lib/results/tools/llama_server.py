"""llama.cpp's server and its speculative example: `timings`, SPEED-Bench's client, console text.

llama.cpp writes how many tokens it drafted and accepted, and seldom how often it drafted. Where no
count of drafts exists, rounds are tokens - accepted: plain steps and the prefill's token count as
rounds. Its rates are of one request (or its slot), so they become TPOT and never `output_tps`.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa

from lib.results import checks, per_request, redaction
from lib.results.findings import LARGEST_COUNT, Findings, Flag, Key, build_run, identity
from lib.results.parsing import as_count, as_dict, as_list, as_number, as_text, flat
from lib.results.tools import llama_text
from lib.run import LoadKind, Run, SpecState

TOOL = "llama.cpp"
TITLE = "llama.cpp server"
TIMINGS = (
    Key("output_tokens", ("timings", "predicted_n"), note="summed over responses"),
    Key("input_tokens", ("usage", "prompt_tokens"), note="else prompt_n + cache_n"),
    Key("draft_tokens", ("timings", "draft_n"), note="summed"),
    Key("accepted_tokens", ("timings", "draft_n_accepted"), note="summed"),
    Key("tpot_ms_mean", ("timings", "predicted_ms"), note="over predicted_n, mean of responses"),
    Key("target", ("model",)),
    Key("build", ("system_fingerprint",)),
    Key("num_speculative_tokens", ("generation_settings", "speculative.n_max")),
    Key("temperature", ("generation_settings", "temperature")),
    Key("top_p", ("generation_settings", "top_p")),
    Key("seed", ("generation_settings", "seed")),
)
CLIENT = (
    Key("offered_load", ("config", "concurrency")),
    Key("target", ("config", "model")),
    Key("temperature", ("config", "extra_inputs", "temperature")),
    Key("dataset", ("config", "bench"), note="SPEED-Bench and the name"),
    Key("domain", ("results", "category"), note="one run a category"),
    Key("output_tokens", ("results", "completion_tokens"), note="summed"),
    Key("input_tokens", ("results", "prompt_tokens"), note="summed"),
    Key("draft_tokens", ("results", "draft_n"), note="summed"),
    Key("accepted_tokens", ("results", "draft_n_accepted"), note="summed"),
    Key("tpot_ms_mean", ("results", "predicted_ms"), note="over completion_tokens, mean"),
    Key("e2e_ms_mean", ("results", "latency_s"), 1e3, "s", "of single-turn samples"),
)
_DRAFTED = "on where tokens were drafted"
_FOLLOWS = (
    Key("engine", ("any",), note="always llama.cpp"),
    Key("token_count", ("any",), note="server"),
    Key("spec_state", ("drafted tokens",), note=_DRAFTED),
    Key("drafts", ("output tokens",), note="less accepted ones, where nothing counts drafts"),
)
_OF_RESPONSES = (Key("completed", ("timings",), note="how many"),)
_OF_CLIENT = (
    Key("load_kind", ("config", "concurrency"), note="concurrency"),
    Key("num_prompts", ("results",), note="how many"),
    Key("completed", ("results", "ok"), note="how many are not false"),
    Key("failed", ("results", "ok"), note="how many are false"),
)
RESPONSES, SPEED_BENCH = "responses", "SPEED-Bench client"
LEVELS: Mapping[str, tuple[Key, ...]] = {
    RESPONSES: (*TIMINGS, *_FOLLOWS, *_OF_RESPONSES),
    SPEED_BENCH: (*CLIENT, *_FOLLOWS, *_OF_CLIENT),
    llama_text.CONSOLE: (*llama_text.CONSOLE_KEYS, *_FOLLOWS, *llama_text.CONSOLE_FOLLOWS),
    llama_text.LOG: (*llama_text.LOG_KEYS, *_FOLLOWS, *llama_text.LOG_FOLLOWS),
}
Record = Mapping[str, Any]

recognise_text = llama_text.recognise_text
kept_text = llama_text.kept_text


def recognise(values: Sequence[object]) -> bool:
    """Whether JSON values are responses with `timings`, bare timings, or the client's results."""
    first = as_dict(next(iter(flat(values[:1])), None))
    return _is_client(first) or _timings(first) is not None


def _is_client(document: Record) -> bool:
    keys = {"config", "selected_samples", "completed_samples", "summary", "results"}
    return document.keys() >= keys


def _timings(response: Record) -> Record | None:
    """The timings of a response, or a value that is bare timings; None for anything else."""
    nested = as_dict(response.get("timings"))
    if nested.keys() >= {"draft_n", "draft_n_accepted"} or _timed(nested):
        return nested
    return response if "prompt_n" in response and _timed(response) else None


def _timed(timings: Record) -> bool:
    rates = {"predicted_ms", "predicted_per_second"}
    return "predicted_n" in timings and not rates.isdisjoint(timings)


def find(name: str, values: Sequence[object], sha256: str) -> Findings:
    """One run of all responses of a model, or one run a category of SPEED-Bench."""
    documents = [as_dict(v) for v in flat(values)]
    if _is_client(documents[0]):
        return _client(documents[0], sha256)
    groups: dict[str | None, list[Record]] = {}
    for document in documents:
        if _timings(document) is not None:
            groups.setdefault(_model(document.get("model")), []).append(document)
    runs, tables, flags = [], {}, list[Flag]()
    for model, responses in groups.items():
        run_id = identity(TOOL, sha256, model)
        run, said = _built(_response_fields(responses) | {"target": model}, run_id, sha256)
        flags += said
        runs.append(run)
        table = _requests([_request(r) for r in responses])
        if table is not None:
            tables[run_id] = table
    others = len(documents) - sum(map(len, groups.values()))
    if others:
        flags.append(Flag("other_values", "warns", f"{others} values without timings; left out"))
    why = "timings with predicted_n of llama.cpp's server"
    return Findings(TOOL, RESPONSES, why, tuple(runs), tables, tuple(flags), keys=TIMINGS)


def find_text(name: str, text: str, sha256: str) -> Findings:
    """Runs of console text: one a report of the speculative example, or one of a server's log."""
    level, blocks = llama_text.read(text)
    runs, flags = [], list[Flag]()
    for position, fields in enumerate(blocks):
        run, said = _built(fields, identity(TOOL, sha256, level, position), sha256)
        runs.append(run)
        flags += said
    why = f"lines of llama.cpp's {level}"
    return Findings(
        TOOL, level, why, tuple(runs), flags=tuple(flags), keys=LEVELS[level] if runs else ()
    )


def _built(fields: dict[str, Any], run_id: str, sha256: str) -> tuple[Run, tuple[Flag, ...]]:
    """The run of what was summed; rounds are filled in where nothing counts them."""
    fields = {k: v for k, v in fields.items() if v is not None}
    accepted, tokens = fields.get("accepted_tokens"), fields.get("output_tokens")
    said = []
    if not fields.get("draft_tokens"):
        for key in ("drafts", "draft_tokens", "accepted_tokens", "num_speculative_tokens"):
            fields.pop(key, None)
    else:
        fields["spec_state"] = SpecState.ON
        if accepted is not None and "drafts" not in fields and (tokens or 0) > accepted:
            fields["drafts"] = tokens - accepted
            text = (
                f"no count of drafts: {tokens:,} tokens less {accepted:,} accepted are taken as "
                "rounds, plain steps and the prefill's token among them"
            )
            said.append(Flag("rounds_inferred", "warns", text, run_id))
    shared = {"tool": TOOL, "engine": "llama.cpp", "run_id": run_id, "source_sha256": sha256}
    run, found = build_run(fields | shared)
    return run, (*found, *checks.inspect(run), *said)


def _model(value: object) -> str | None:
    """A model's name; of a path to a file the last part, for the rest is a machine's."""
    text = as_text(value)
    if text and text.casefold().endswith(".gguf"):
        return PurePosixPath(text.replace("\\", "/")).name
    return text


def _total(values: Iterable[object]) -> int | None:
    """The sum of whole numbers; None where there is none."""
    numbers = [n for v in values if (n := as_count(v)) is not None and 0 <= n <= LARGEST_COUNT]
    return sum(numbers) if numbers else None


def _mean(values: Iterable[float | None]) -> float | None:
    stated = [v for v in values if v is not None]
    return sum(stated) / len(stated) if stated else None


def _per_token(milliseconds: object, tokens: object) -> float | None:
    took, count = as_number(milliseconds), as_count(tokens)
    return took / count if took is not None and count and count > 0 else None


def _request(response: Record) -> Record:
    """One response's numbers, under the names of the client's results."""
    timings = _timings(response) or {}
    usage = as_dict(response.get("usage"))
    asked = as_count(usage.get("prompt_tokens"))
    if asked is None:
        asked = _total((timings.get("prompt_n"), timings.get("cache_n")))
    predicted = timings.get("predicted_ms")
    if as_number(predicted) is None:
        rate, count = (as_number(timings.get(k)) for k in ("predicted_per_second", "predicted_n"))
        predicted = 1e3 * count / rate if rate and count is not None else None
    return {
        "ok": True,
        "prompt_tokens": asked,
        "completion_tokens": timings.get("predicted_n"),
        "predicted_ms": predicted,
        "draft_n": timings.get("draft_n"),
        "draft_n_accepted": timings.get("draft_n_accepted"),
    }


_SUMMED = {
    "output_tokens": "completion_tokens",
    "input_tokens": "prompt_tokens",
    "draft_tokens": "draft_n",
    "accepted_tokens": "draft_n_accepted",
}


def _summed(requests: Sequence[Record]) -> dict[str, Any]:
    return {
        **{field: _total(r.get(key) for r in requests) for field, key in _SUMMED.items()},
        "tpot_ms_mean": _mean(
            _per_token(r.get("predicted_ms"), r.get("completion_tokens")) for r in requests
        ),
        "completed": len(requests),
        "token_count": "server",
    }


def _response_fields(responses: Sequence[Record]) -> dict[str, Any]:
    settings = [as_dict(r.get("generation_settings")) for r in responses]
    k = _same(
        as_count(s.get("speculative.n_max", as_dict(s.get("speculative")).get("n_max")))
        for s in settings
    )
    seed = _same(as_count(s.get("seed")) for s in settings)
    timings = [_timings(r) or {} for r in responses]
    return _summed([_request(r) for r in responses]) | {
        "tool_version": RESPONSES,
        "build": _same(as_text(r.get("system_fingerprint")) for r in responses),
        "num_speculative_tokens": k,
        "temperature": _same(as_number(s.get("temperature")) for s in settings),
        "top_p": _same(as_number(s.get("top_p")) for s in settings),
        "seed": seed if seed is not None and 0 <= seed < 2**32 - 1 else None,
        "extra": redaction.extra(
            {
                "prompt_ms": _mean(as_number(t.get("prompt_ms")) for t in timings),
                "cache_n": _total(t.get("cache_n") for t in timings),
            }
        ),
    }


def _same(values: Iterable[Any]) -> Any:
    """The value that all state alike; None otherwise."""
    found = list(dict.fromkeys(values))
    return found[0] if len(found) == 1 else None


def _requests(requests: Sequence[Record]) -> pa.Table | None:
    if len(requests) < 2:
        return None
    good = [r.get("ok") is not False for r in requests]
    columns = {
        field: per_request.floats([as_number(r.get(key)) for r in requests])
        for field, key in _SUMMED.items()
    }
    tpot = [_per_token(r.get("predicted_ms"), r.get("completion_tokens")) for r in requests]
    return per_request.table(
        good, **columns, tpot_ms=per_request.floats(tpot), e2e_ms=_latency(requests)
    )


def _latency(requests: Sequence[Record]) -> per_request.Floats | None:
    """Latencies of samples that were a single turn; null for a conversation's."""
    seconds = [as_number(r.get("latency_s")) if r.get("turns") == 1 else None for r in requests]
    return per_request.floats(seconds, 1e3)


def _client(document: Record, sha256: str) -> Findings:
    """The client's own results, by category; its summary rounds nothing but adds nothing."""
    config = as_dict(document["config"])
    results = [as_dict(r) for r in as_list(document["results"])]
    groups: dict[str | None, list[Record]] = {}
    for result in results:
        groups.setdefault(as_text(result.get("category")), []).append(result)
    runs, tables, flags = [], {}, list[Flag]()
    for category, asked in groups.items():
        run_id = identity(TOOL, SPEED_BENCH, sha256, category)
        run, said = _built(_client_fields(config, category, asked), run_id, sha256)
        runs.append(run)
        flags += said
        if (table := _requests(asked)) is not None:
            tables[run_id] = table
    if not runs:
        flags.append(Flag("not_a_run", "warns", "no per-request results; save with --output"))
    why = "keys selected_samples, summary, results of llama.cpp's SPEED-Bench client"
    return Findings(TOOL, SPEED_BENCH, why, tuple(runs), tables, tuple(flags), keys=CLIENT)


def _client_fields(config: Record, category: str | None, asked: Sequence[Record]) -> dict[str, Any]:
    good = [r for r in asked if r.get("ok") is not False]
    single = [as_number(r.get("latency_s")) for r in good if r.get("turns") == 1]
    concurrency, bench = as_number(config.get("concurrency")), as_text(config.get("bench"))
    held = {"load_kind": LoadKind.CONCURRENCY, "offered_load": concurrency}
    return _summed(good) | {
        **(held if concurrency else {}),
        "tool_version": SPEED_BENCH,
        "target": _model(config.get("model")),
        "dataset": f"SPEED-Bench {bench}" if bench else "SPEED-Bench",
        "domain": category,
        "temperature": as_number(as_dict(config.get("extra_inputs")).get("temperature")),
        "num_prompts": len(asked),
        "failed": len(asked) - len(good),
        "e2e_ms_mean": _mean(None if s is None else s * 1e3 for s in single)
        if len(single) == len(good)
        else None,
        "extra": redaction.extra({"osl": config.get("osl"), "category": config.get("category")}),
    }
