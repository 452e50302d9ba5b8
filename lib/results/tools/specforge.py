"""SpecForge: the data behind its SpecBundle page, and the results of bench_eagle3.

Both hold static batches served by SGLang. Acceptance lengths are output tokens over verify calls,
so the bonus token is in them. The page repeats its baseline ("Wihtout EAGLE3", as it spells it)
beside every setting: the same numbers for the same model, data set and batch are one run.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lib.results import checks, keys, redaction
from lib.results.findings import Findings, Flag, Key, build_run, identity
from lib.results.naming import spell
from lib.results.parsing import as_dict, as_list, as_number, as_text, counted
from lib.run import LoadKind, Run, SpecState

TOOL = "specforge"
TITLE = "SpecForge"
PAGE, BENCH = "SpecBundle page", "bench_eagle3"
SETTING = (
    Key("offered_load", ("batch_size",), note="a static batch"),
    Key("num_speculative_tokens", ("steps",)),
    Key("draft_topk", ("topk",)),
)
METRIC = (
    Key("output_tps", ("output_throughput",)),
    Key("accept_length", ("accept_length",), note="bonus token included"),
    Key("duration_s", ("latency",)),
    Key("num_prompts", ("num_questions",)),
    Key("draft_model", ("Name",)),
)
_FOLLOWS = (
    Key("domain", ("dataset",), note="the same key"),
    Key("engine", ("metrics",), note="always SGLang"),
    Key("load_kind", ("batch_size",), note="batch"),
)
LEVELS: Mapping[str, tuple[Key, ...]] = {
    PAGE: (
        *_FOLLOWS,
        Key("spec_state", ("Name",), note="off for the baseline, else on"),
        Key("draft_method", ("Name",), note="eagle3 where the draft's name says it"),
        Key("target", ("model",), note="the key at the top"),
        Key("dataset", ("dataset",), note="the key below"),
        *SETTING,
        *(k for k in METRIC if k.field not in ("duration_s", "num_prompts")),
    ),
    BENCH: (
        *_FOLLOWS,
        Key("spec_state", ("steps",), note="0 is off; else by accept_length"),
        Key("draft_method", ("model",), note="eagle3 where the draft's name says it"),
        Key("repeat", ("metrics",), note="the position in the list, where there are several"),
        Key("dataset", ("dataset",), note="the key at the top"),
        Key("draft_model", ("model",), note="the draft's path"),
        *SETTING,
        *(k for k in METRIC if k.field != "draft_model"),
    ),
}
_SETTING_KEYS = frozenset({"batch_size", "steps", "topk", "num_draft_tokens", "metrics"})
Record = Mapping[str, Any]


def recognise(values: Sequence[object]) -> bool:
    """Whether the only JSON value is the page's data or a result of bench_eagle3."""
    document = as_dict(values[0]) if len(values) == 1 else {}
    return _is_page(document) or _is_bench(document)


def _is_page(document: Record) -> bool:
    first = as_dict(next(iter(document.values()), None))
    return _is_settings(as_dict(next(iter(first.values()), None)).get("results"))


def _is_bench(document: Record) -> bool:
    lists = [v for k, v in list(document.items())[:20] if k != "model" and isinstance(v, list)]
    return bool(lists) and _is_settings(lists[0])


def _is_settings(value: object) -> bool:
    first = as_dict(next(iter(as_list(value)), None))
    return first.keys() >= _SETTING_KEYS and isinstance(first["metrics"], list)


def find(name: str, values: Sequence[object], sha256: str) -> Findings:
    """One run an arm, data set, setting and repeat."""
    document = as_dict(values[0])
    level = PAGE if _is_page(document) else BENCH
    rows = _page(document) if level == PAGE else _bench(document)
    runs, flags, repeats = dict[str, Run](), list[Flag](), 0
    for fields, told in rows:
        parts = (fields.get(f) for f in _IDENTITY)
        run_id = identity(TOOL, level, *parts, told)
        if run_id in runs:
            repeats += 1
            continue
        run, impossible = build_run(
            fields | {"run_id": run_id, "source_sha256": sha256, "tool_version": level}
        )
        runs[run_id] = run
        flags += [*impossible, *checks.inspect(run)]
    if repeats:
        text = f"{counted(repeats, 'repeat')} of a run, as the page repeats its baseline; left out"
        flags.append(Flag("repeated_in_file", "warns", text))
    if not runs:
        flags.append(Flag("not_a_run", "warns", "no setting with metrics in it"))
    why = "settings of batch_size, steps, topk, num_draft_tokens with metrics"
    used = tuple(
        k for k in LEVELS[level] if any(getattr(r, k.field) is not None for r in runs.values())
    )
    return Findings(TOOL, level, why, tuple(runs.values()), flags=tuple(flags), keys=used)


_IDENTITY = (
    *("target", "dataset", "draft_model", "spec_state", "offered_load", "num_speculative_tokens"),
    *("draft_topk", "output_tps", "accept_length", "duration_s", "repeat"),
)
_Row = tuple[dict[str, Any], object]


def _page(document: Record) -> Iterator[_Row]:
    for model, datasets in document.items():
        for dataset, held in as_dict(datasets).items():
            for setting in map(as_dict, as_list(as_dict(held).get("results"))):
                for metric in map(as_dict, as_list(setting.get("metrics"))):
                    shared = {"target": as_text(model)} | _about(dataset)
                    yield _row(setting, metric, shared, _arm_of_name(metric))


def _bench(document: Record) -> Iterator[_Row]:
    draft = as_text(document.get("model"))
    for dataset, settings in document.items():
        for setting in map(as_dict, as_list(settings)):
            metrics = [as_dict(m) for m in as_list(setting.get("metrics"))]
            for position, metric in enumerate(metrics, 1):
                shared = _about(dataset) | {"repeat": position if len(metrics) > 1 else None}
                yield _row(setting, metric, shared, _arm_of_steps(setting, metric, draft))


def _about(dataset: str) -> dict[str, Any]:
    return {"dataset": as_text(dataset), "domain": as_text(dataset)}


def _row(
    setting: Record, metric: Record, shared: Mapping[str, Any], arm: Mapping[str, Any]
) -> _Row:
    held, _ = keys.take(setting, SETTING)
    measured, _ = keys.take({k: v for k, v in metric.items() if k != "Name"}, METRIC)
    if arm.get("spec_state") is SpecState.OFF:
        held = {"offered_load": held.get("offered_load")}
    if held.get("offered_load"):
        held["load_kind"] = LoadKind.BATCH
    drafting = arm.get("spec_state") is not SpecState.OFF
    told = as_number(setting.get("num_draft_tokens")) if drafting else None
    left = {"num_draft_tokens": told, "accuracy": as_number(metric.get("accuracy"))}
    fields = {
        **held,
        **measured,
        **{k: v for k, v in shared.items() if v is not None},
        **arm,
        "tool": TOOL,
        "engine": "SGLang",
        "extra": redaction.extra(left),
    }
    return fields, told


def _arm_of_name(metric: Record) -> dict[str, Any]:
    """`Wihtout EAGLE3` is off; any other name is a draft's repository."""
    name = as_text(metric.get("Name")) or ""
    named = spell(re.sub(r"(?i)\bwihtout\b", "without", name))
    if "/" in name or named is None or named.state is not SpecState.OFF:
        return _drafting(name) if name else {}
    # A baseline that accepted drafts is none; then nothing says which arm it is.
    length = as_number(metric.get("accept_length"))
    return {} if length is not None and length > 1.005 else {"spec_state": SpecState.OFF}


def _arm_of_steps(setting: Record, metric: Record, draft: str | None) -> dict[str, Any]:
    """Steps of 0 start the server without speculation; where none are stated, tau may tell."""
    steps, length = as_number(setting.get("steps")), as_number(metric.get("accept_length"))
    if steps == 0:
        return {"spec_state": SpecState.OFF}
    if steps is None and not (length or 0) > 1:
        return {}
    return _drafting(draft or "")


def _drafting(name: str) -> dict[str, Any]:
    method = "eagle3" if re.search(r"(?i)eagle-?3", name) else None
    found = {"draft_model": name or None, "draft_method": method, "spec_state": SpecState.ON}
    return {k: v for k, v in found.items() if v is not None}
