"""Reports of `trtllm-bench --report_json`: one object with the units in the keys.

Its "acceptance rate" of older versions is a length: output tokens over iterations. Rates per GPU
and per user stay aside, and so does the total rate, which counts input tokens.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lib.results import checks, redaction
from lib.results.findings import LARGEST_COUNT, Findings, Flag, Key, build_run, identity
from lib.results.keys import at, latency_keys, take
from lib.results.naming import LARGEST_K
from lib.results.parsing import as_dict, as_number, as_text, counted, flat
from lib.results.server_args import TENSORRT_LLM
from lib.results.tools.methods import method_of
from lib.run import SpecState

TOOL = "trtllm-bench"
TITLE = "TensorRT-LLM trtllm-bench"
Record = Mapping[str, Any]

OLD, NEW = "acceptance_percentiles", "acceptance_length_percentiles"
_TIMES = {"mean": "average", "p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99"}
_DECODING = "decoding_stats"

_COMMON = (
    Key("target", ("engine", "model")),
    Key("target", ("engine", "model_path")),
    Key("engine_version", ("engine", "version")),
    Key("target_quantization", ("engine", "quantization")),
    Key("gpu", ("machine", "name")),
    Key("gpu_count", ("world_info", "world_size")),
    Key("tensor_parallel", ("world_info", "tp_size")),
    Key("pipeline_parallel", ("world_info", "pp_size")),
    Key("max_num_seqs", ("world_info", "max_batch_size")),
    Key("num_prompts", ("request_info", "num_requests")),
    Key("running_mean", ("request_info", "avg_num_concurrent_requests")),
    Key("input_len", ("request_info", "avg_input_length")),
    Key("output_len", ("request_info", "avg_output_length")),
    Key("duration_s", ("performance", "total_latency_ms"), 1e-3, "ms"),
    Key("request_rps", ("performance", "request_throughput_req_s")),
    Key("output_tps", ("performance", "system_output_throughput_tok_s"), note="output alone"),
    Key("e2e_ms_mean", ("performance", "avg_request_latency_ms")),
    *latency_keys("e2e", ("performance", "request_latency_percentiles_ms"), _TIMES),
    Key("ttft_ms_mean", ("streaming_metrics", "avg_ttft_ms")),
    *latency_keys("ttft", ("streaming_metrics", "ttft_percentiles"), _TIMES),
    Key("tpot_ms_mean", ("streaming_metrics", "avg_tpot_ms")),
    *latency_keys("tpot", ("streaming_metrics", "tpot_percentiles"), _TIMES),
    Key("draft_method", (_DECODING, "mode")),
)
_LENGTHS = (
    Key("accept_length", (_DECODING, NEW, "average"), note="mean of the requests"),
    Key("accept_length", (_DECODING, OLD, "average"), note="called a rate; first token left out"),
    Key("accept_length", (_DECODING, "acceptance_rate"), note="called a rate"),
)
_RATE = (Key("accept_rate", (_DECODING, "draft_acceptance_rate_percentiles", "average")),)
_COUNTS = (
    Key(
        "draft_tokens",
        (_DECODING, "num_draft_tokens_percentiles", "average"),
        note="times the requests",
    ),
    Key(
        "accepted_tokens",
        (_DECODING, "num_accepted_draft_tokens_percentiles", "average"),
        note="times the requests",
    ),
)
_TIMES_REQUESTS = "times the requests"
_FOLLOWS = (
    Key("engine", ("engine",), note="always TensorRT-LLM"),
    Key("dataset", ("dataset", "dataset_path"), note="the file's name"),
    Key("completed", ("request_info", "num_requests")),
    Key("input_tokens", ("request_info", "avg_input_length"), note=_TIMES_REQUESTS),
    Key("output_tokens", ("request_info", "avg_output_length"), note=_TIMES_REQUESTS),
    Key("token_count", ("request_info", "avg_output_length"), note="server"),
    Key("spec_state", (_DECODING,), note="on where it is written"),
)
_COUNTED = (
    Key("drafts", ("request_info", "avg_output_length"), note="output tokens less accepted ones"),
    Key(
        "num_speculative_tokens",
        (_DECODING, "num_draft_tokens_percentiles", "average"),
        note="drafted tokens / drafts, where it is whole",
    ),
)
LEVELS: Mapping[str, tuple[Key, ...]] = {
    OLD: (*_COMMON, *_FOLLOWS, *_LENGTHS[1:]),
    NEW: (*_COMMON, *_FOLLOWS, _LENGTHS[0], *_RATE, *_COUNTS, *_COUNTED),
}

_PARTS = {"engine", "world_info", "request_info", "performance"}
_REQUEST = {"num_input_tokens", "start_timestamp", "end_timestamp", "decode_iteration"}


def recognise(values: Sequence[object]) -> bool:
    """Whether JSON values are reports of this tool, or the requests it can write beside one."""
    inner = flat(values)
    return any(_is_report(v) for v in inner) or _are_requests(inner)


def _is_report(value: object) -> bool:
    record = as_dict(value)
    return record.keys() >= _PARTS and isinstance(record["performance"], dict)


def _are_requests(values: Sequence[object]) -> bool:
    return bool(values) and all(as_dict(v).keys() >= _REQUEST for v in values[:100])


def find(name: str, values: Sequence[object], sha256: str) -> Findings:
    """Runs of the reports; a file of requests is recognised, but holds no run."""
    inner = flat(values)
    reports = [as_dict(v) for v in inner if _is_report(v)]
    if not reports:
        text = "the requests of a trtllm-bench run, no run itself; import its --report_json"
        why = "a list of records with the keys decode_iteration, start_timestamp of trtllm-bench"
        return Findings(TOOL, "requests", why, (), flags=(Flag("sidecar", "warns", text),))
    runs, flags, used = {}, list[Flag](), dict[Key, None]()
    for position, report in enumerate(reports):
        run_id = _run_id(report, sha256, position)
        if run_id in runs:
            flags.append(Flag("repeated_in_file", "warns", f"{name} holds a run twice", run_id))
            continue
        fields, keys = _fields(report)
        run, found = build_run(fields | {"run_id": run_id, "source_sha256": sha256})
        runs[run_id] = run
        used |= dict.fromkeys(keys)
        flags += [*found, *checks.inspect(run), *_flags(report, run_id)]
    if len(reports) < len(inner):
        text = f"{counted(len(inner) - len(reports), 'value')} of another kind; left out"
        flags.append(Flag("other_values", "warns", text))
    version = _version(reports[0])
    why = f"keys {', '.join(sorted(_PARTS))} of trtllm-bench"
    return Findings(TOOL, version, why, tuple(runs.values()), flags=tuple(flags), keys=tuple(used))


def _version(report: Record) -> str:
    return as_text(at(report, ("engine", "version"))) or "no version"


def _run_id(report: Record, sha256: str, position: int) -> str:
    """By content: a report has no date, but its whole time is told to the nanosecond."""
    paths = (
        ("performance", "total_latency_ms"),
        ("performance", "avg_request_latency_ms"),
        ("request_info", "num_requests"),
        ("request_info", "avg_output_length"),
    )
    numbers = [as_number(at(report, p)) for p in paths]
    model = as_text(at(report, ("engine", "model")))
    if None in numbers:
        return identity(TOOL, sha256, position)
    return identity(TOOL, model, *numbers)


def _fields(report: Record) -> tuple[dict[str, Any], tuple[Key, ...]]:
    """Run's fields that a report states, and the keys they were read from."""
    found, used = take(report, _COMMON)
    requests = found.get("num_prompts")
    output = _total(found.get("output_len"), requests)
    spec, spec_used = _speculation(report, output, requests)
    fields = {
        **found,
        **spec,
        "tool": TOOL,
        "tool_version": _version(report),
        "engine": TENSORRT_LLM,
        "draft_method": method_of(found.get("draft_method")),
        "dataset": _dataset(report),
        "completed": requests,
        "input_tokens": _total(found.get("input_len"), requests),
        "output_tokens": output,
        "token_count": "server" if output is not None else None,
        "extra": redaction.extra(_left(report)),
    }
    return fields, (*used, *spec_used)


def _total(mean: float | None, count: int | None) -> int | None:
    if mean is None or count is None or not 0 <= mean * count <= LARGEST_COUNT:
        return None
    return round(mean * count)


def _speculation(
    report: Record, output: int | None, requests: int | None
) -> tuple[dict[str, Any], tuple[Key, ...]]:
    """What the decoding statistics say; they are written where the engine drafts.

    Each request accepted its output tokens less its iterations, so the iterations of all are the
    output tokens less those accepted; the drafted tokens are K for each of them.
    """
    if not as_dict(report.get(_DECODING)):
        return {}, ()
    found, used = take(report, (*_LENGTHS, *_RATE))
    found["spec_state"] = SpecState.ON
    drafted, accepted = (_total(as_number(at(report, k.path)), requests) for k in _COUNTS)
    rounds = output - accepted if output is not None and accepted is not None else 0
    if drafted is None or accepted is None or rounds <= 0:
        return found, used
    k = drafted / rounds
    if not 1 <= round(k) <= LARGEST_K or abs(k / round(k) - 1) > 0.005:
        return found, used
    counts = {"drafts": rounds, "draft_tokens": drafted, "accepted_tokens": accepted}
    return found | counts | {"num_speculative_tokens": round(k)}, (*used, *_COUNTS)


def _dataset(report: Record) -> str | None:
    """The data set's file, without its folders."""
    path = as_text(at(report, ("dataset", "dataset_path")))
    return path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1] or None if path else None


def _flags(report: Record, run_id: str) -> list[Flag]:
    text = (
        "the report does not state --concurrency, only the mean in flight: state the load by hand"
    )
    found = [Flag("load_not_stated", "warns", text, run_id)]
    decoding = as_dict(report.get(_DECODING))
    if NEW not in decoding and decoding.keys() & {OLD, "acceptance_rate"}:
        text = (
            "trtllm-bench calls it an acceptance rate, but it is a length: output tokens over "
            "iterations"
        )
        found.append(Flag("rate_is_length", "warns", text, run_id))
    return found


def _left(report: Record) -> dict[str, object]:
    """The parts of the report without what fields hold; a part keeps its name in the key."""
    taken = {k.path[:2] for k in (*_COMMON, *_LENGTHS)}
    return {
        part if name is None else f"{part}.{name}": value
        for part, values in report.items()
        for name, value in (
            as_dict(values).items() if isinstance(values, dict) else [(None, values)]
        )
        if (part, name) not in taken
    }
