"""What a server's /metrics answers: vLLM, SGLang, TensorRT-LLM, llama.cpp, LMDeploy.

One scrape counts since the server started, warm-up and earlier runs included: it gives acceptance
and mean latencies, no load and no throughput. Two scrapes, one before and one after a run, give
what happened in between (`window`). A gauge is what was so at one moment, and is said to be.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lib.errors import UnreadableFile
from lib.results import checks, exposition, keys, redaction
from lib.results.engine_metrics import (
    ENGINES,
    Engine,
    accepted_of_verify_calls,
    engine_named,
)
from lib.results.exposition import Values
from lib.results.findings import Findings, Flag, Key, Scrape, build_run, identity, shorten
from lib.results.naming import LARGEST_K
from lib.run import Run, SpecState

TOOL = "prometheus"
TITLE = "Prometheus metrics"
_FOLLOWS = (
    Key("target", ("label model_name",), note="one run a model"),
    Key("engine", ("prefix of the series",)),
    Key("token_count", ("any series",), note="server"),
    Key("spec_state", ("the counters of drafts",), note="on where they moved; never off"),
    Key(
        "num_speculative_tokens",
        ("the counters of drafts",),
        note="drafted tokens / drafts, where it is whole",
    ),
)
LEVELS: Mapping[str, tuple[Key, ...]] = {
    engine.name: (*engine.table, *_FOLLOWS) for engine in ENGINES
}

PREFIXES = ", ".join(engine.prefix for engine in ENGINES)
WHOLE_K = 0.005
SPECULATED_SHARE = 0.9
_SPECULATION = ("drafts", "draft_tokens", "accepted_tokens", "accept_length", "accept_rate")
_EMITTED = "vllm:spec_decode_num_emitted_tokens_total"
_EFFICIENCY = "vllm:spec_decode_efficiency"
_SINCE_START = (
    "one scrape counts since the server started, warm-up and earlier runs included; import a "
    "scrape from before the run beside it for the run alone"
)


def recognise_text(text: str) -> bool:
    """Whether a text is Prometheus's exposition format, of whichever program."""
    return exposition.looks_like_exposition(text)


def find_text(name: str, text: str, sha256: str) -> Findings:
    """The counts since the server's start, one run a model; of several scrapes, the window.

    Raises UnreadableFile, FileTooLarge.
    """
    scrapes = exposition.parse(name, text)
    found = exposition.scrapes_of(scrapes[-1])
    if not found:
        return _foreign(scrapes[-1])
    if len(scrapes) > 1:
        first = [s for s in exposition.scrapes_of(scrapes[0]) if s.engine == found[0].engine]
        if not first:
            raise UnreadableFile(f"{name}: holds scrapes of different engines; save one a file")
        flag = Flag("several_scrapes", "warns", f"{len(scrapes)} scrapes: from first to last")
        return window(first[0], found[0], name, sha256, (flag,))
    others = [s.engine for s in found[1:]]
    flags = [Flag("other_engines", "warns", f"also holds {shorten(others)}")] if others else []
    return _findings(found[0].engine, found[0].values, sha256, flags, found[0])


def window(
    before: Scrape, after: Scrape, name: str, sha256: str, flags: Sequence[Flag] = ()
) -> Findings:
    """What a server did between two scrapes, one run a model. Raises UnreadableFile.

    `name` is for messages; `sha256` stands for the pair, and the runs' ids follow from it.
    """
    values = exposition.difference(name, before, after)
    return _findings(after.engine, values, sha256, flags, None)


def _foreign(values: Values) -> Findings:
    text = (
        f"metrics of no known engine ({shorten(sorted({n for n, _ in values}), 4) or 'empty'}), "
        f"no speculation metrics found; known names begin with {PREFIXES}"
    )
    why = "Prometheus text without an engine's series"
    return Findings(TOOL, "no engine", why, (), flags=(Flag("not_a_run", "warns", text),))


def _findings(
    name: str, values: Values, sha256: str, flags: Sequence[Flag], scrape: Scrape | None
) -> Findings:
    """The runs of an engine's series; `scrape` is given where they count since its start."""
    engine = engine_named(name)
    assert engine is not None, "scrapes are made of known engines"
    runs, said, used = [], [*flags], dict[Key, None]()
    for model in exposition.models(values):
        series = exposition.of_model(values, model)
        fields, found, notes = _fields(engine, series, since_start=scrape is not None)
        used |= dict.fromkeys(found)
        shared = {"target": model, "engine": engine.name, "token_count": "server", "tool": TOOL}
        run, impossible = build_run(
            fields
            | shared
            | {
                "run_id": identity(TOOL, sha256, engine.name, model),
                "source_sha256": sha256,
                "tool_version": engine.name,
            }
        )
        notes = [*([("since_start", _SINCE_START)] if scrape else []), *notes, *_share(run)]
        said += [*impossible, *checks.inspect(run)]
        said += [Flag(code, "warns", text, run.run_id) for code, text in notes]
        runs.append(run)
    what = "since the server's start" if scrape else "between two scrapes"
    why = f"series {engine.prefix}… of {engine.name}, {what}"
    return Findings(
        TOOL,
        engine.name,
        why,
        tuple(runs),
        flags=tuple(said),
        keys=tuple(used),
        scrape=scrape,
    )


def _fields(
    engine: Engine, series: Values, since_start: bool
) -> tuple[dict[str, Any], tuple[Key, ...], list[tuple[str, str]]]:
    """Run's fields, the keys used, and what to say of them."""
    document = exposition.totals(engine, series)
    fields, used = keys.take(document, (*engine.keys, *engine.gauges))
    kept: dict[str, object] = {n: document[n] for n in engine.kept if n in document}
    notes = _stale(document)
    if _EMITTED in document and "drafts" not in fields:
        notes += _legacy(fields, document, since_start)
    if engine.name == "SGLang":
        notes += _verified(fields)
    positions = exposition.per_position(engine, series)
    if _speculated(fields):
        fields["spec_state"] = SpecState.ON
        fields |= _counted(fields, positions)
        if fields.get("drafts"):  # the counts decide; a gauge is of another window
            kept |= {f: fields.pop(f) for f in ("accept_length", "accept_rate") if f in fields}
    else:
        notes.append(("no_speculation", _silence(engine, fields, document, since_start)))
        for name in (*_SPECULATION, "num_speculative_tokens"):
            fields.pop(name, None)
    gauges = [k.path[0] for k in used if k in engine.gauges and k.field in fields]
    if gauges:
        text = f"{shorten(gauges)}: a point sample of a gauge, of the server's last batches"
        notes.append(("point_sample", text))
    if positions and engine.positions and "accepted_per_position" in fields:
        used = (*used, *(k for k in engine.table if k.field == "accepted_per_position"))
    return fields | {"extra": redaction.extra(kept)}, used, notes


def _speculated(fields: Mapping[str, Any]) -> bool:
    counted = any((fields.get(f) or 0) > 0 for f in ("drafts", "draft_tokens"))
    return counted or (fields.get("accept_length") or 0) > 1


def _counted(fields: dict[str, Any], positions: tuple[int, ...] | None) -> dict[str, Any]:
    """Per-position counts that agree with the drafts, and K where every draft had as many."""
    drafts, drafted = fields.get("drafts"), fields.get("draft_tokens")
    found: dict[str, Any] = {}
    if positions and drafts and max(positions) <= drafts:
        found["accepted_per_position"] = positions
    k = drafted / drafts if drafted and drafts else 0.0
    if 1 <= round(k) <= LARGEST_K and abs(k / round(k) - 1) <= WHOLE_K:
        found.setdefault("num_speculative_tokens", round(k))
    return found


def _silence(
    engine: Engine, fields: Mapping[str, Any], document: Mapping[str, float], since_start: bool
) -> str:
    stated = any(f in fields for f in _SPECULATION)
    if stated:
        where = "since the server's start" if since_start else "in this window"
        return f"no speculation {where}: its counters do not move"
    return (
        f"no speculation metrics found among {len(document)} series of {engine.name}: it did not "
        "speculate, or its version does not count it; say which"
    )


def _verified(fields: dict[str, Any]) -> list[tuple[str, str]]:
    drafts, tokens, requests = (fields.get(f) for f in ("drafts", "output_tokens", "completed"))
    accepted = accepted_of_verify_calls(drafts, tokens, requests)
    if accepted is None:
        return []
    fields["accepted_tokens"] = accepted
    text = (
        f"accepted tokens are {tokens:,} generated less {requests:,} of prefill and {drafts:,} "
        "bonus tokens; requests still running bias them a little"
    )
    return [("accepted_inferred", text)]


def _legacy(
    fields: dict[str, Any], document: Mapping[str, float], since_start: bool
) -> list[tuple[str, str]]:
    """vLLM V0 counts matches past the first rejection as accepted, and no drafts.

    Its efficiency is emitted / (drafted / K * (K + 1)); K follows from it, drafts are drafted / K,
    and of what a draft emitted all but one token was accepted.
    """
    fields.pop("accepted_tokens", None)
    emitted, drafted = document[_EMITTED], fields.get("draft_tokens") or 0
    share = document.get(_EFFICIENCY, 0.0) * drafted / emitted if emitted > 0 else 0.0
    k = share / (1 - share) if since_start and 0 < share < 1 else 0.0
    text = "vLLM V0: its accepted tokens go on after a rejection and are left out"
    if 1 <= round(k) <= LARGEST_K and abs(k / round(k) - 1) <= 0.02:
        drafts = round(drafted / round(k))
        if 0 < drafts <= emitted:
            fields |= {"drafts": drafts, "accepted_tokens": round(emitted) - drafts}
            text = f"{text}; from {round(emitted):,} emitted tokens and efficiency, K = {round(k)}"
    return [("v0_counts", text)]


def _stale(document: Mapping[str, float]) -> list[tuple[str, str]]:
    rate, running = (document.get(f"sglang:{n}") for n in ("gen_throughput", "num_running_reqs"))
    if not rate or running != 0:
        return []
    text = f"sglang:gen_throughput {rate:.6g} while nothing runs: its last value, the server idles"
    return [("stale_gauge", text)]


def _share(run: Run) -> list[tuple[str, str]]:
    """What tau leaves out: steps without a draft are not counted."""
    drafts, accepted, tokens = run.drafts, run.accepted_tokens, run.output_tokens
    if not drafts or accepted is None or not tokens or tokens <= accepted:
        return []
    share = (drafts + accepted) / tokens
    if share >= SPECULATED_SHARE:
        return []
    text = (
        f"speculation made {share:.0%} of {tokens:,} tokens: over all steps "
        f"{tokens / (tokens - accepted):.4g} tokens a step, not {1 + accepted / drafts:.4g}"
    )
    return [("partly_speculated", text)]
