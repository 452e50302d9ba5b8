"""The scenario of an llm-d benchmark report: load generator, load, servers and their GPUs."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lib.results.findings import Flag, Key
from lib.results.images import engine_of
from lib.results.keys import at
from lib.results.parsing import as_count, as_dict, as_list, as_number, as_text
from lib.results.server_args import engine_name, fields_of
from lib.run import LoadKind, SpecState

_STANDARD = ("scenario", "load", "standardized")
_ARGS = ("scenario", "load", "args")
_ENGINE = ("scenario", "stack", "standardized")
_HOST = ("scenario", "host", "accelerator")
_PARALLEL = {"tensor_parallel": "tp", "data_parallel": "dp", "pipeline_parallel": "pp"}
LOAD: dict[str, tuple[Key, ...]] = {
    "0.1": (
        Key("offered_load", (*_ARGS, "max_concurrency")),
        Key("offered_load", (*_ARGS, "request_rate"), unit="requests/s"),
        Key("offered_load", (*_ARGS, "load", "stages", "rate"), unit="requests/s"),
        Key("dataset", (*_ARGS, "data", "type")),
    ),
    "0.2": (
        Key("offered_load", (*_STANDARD, "concurrency")),
        Key("offered_load", (*_STANDARD, "rate_qps"), unit="requests/s"),
        Key("dataset", ("scenario", "load", "native", "config", "data", "type")),
        Key("dataset", ("scenario", "load", "native", "args", "dataset-name")),
        Key("dataset", (*_STANDARD, "source")),
    ),
}
STACK: dict[str, tuple[Key, ...]] = {
    "0.1": (
        Key("target", ("scenario", "model", "name")),
        Key("target_quantization", ("scenario", "model", "quantization")),
        Key("engine", ("scenario", "platform", "engine", "name")),
        Key("engine_version", ("scenario", "platform", "engine", "version")),
        Key("gpu", (*_HOST, "model")),
        Key("gpu_count", (*_HOST, "count"), note="summed over the hosts, one a replica"),
        *(Key(f, (*_HOST, "parallelism", written)) for f, written in _PARALLEL.items()),
    ),
    "0.2": (
        Key("target", (*_ENGINE, "model", "name")),
        Key("engine", (*_ENGINE, "tool")),
        Key("build", (*_ENGINE, "tool_version"), note="the image"),
        Key("engine_version", (*_ENGINE, "tool_version"), note="the tag of the engine's image"),
        Key("gpu", (*_ENGINE, "accelerator", "model")),
        Key(
            "gpu_count",
            (*_ENGINE, "accelerator", "count"),
            note="of one replica where it equals tp x pp x dp_local, then times replicas",
        ),
        *(
            Key(f, (*_ENGINE, "accelerator", "parallelism", written))
            for f, written in _PARALLEL.items()
        ),
    ),
}
_SPECULATION = (
    *("spec_state", "draft_method", "draft_model", "num_speculative_tokens", "schedule"),
    *("draft_topk", "draft_tensor_parallel", "max_num_seqs", "prefix_caching"),
)
_OPTION = "an option of the server's command line; never off"
FOLLOWS: dict[str, tuple[Key, ...]] = {
    kind: (
        Key("load_kind", load, note="concurrency, or request rate where a rate is held"),
        *(Key(name, args, note=_OPTION) for name in _SPECULATION),
    )
    for kind, load, args in (
        ("0.1", _ARGS, ("scenario", "platform", "engine", "args")),
        ("0.2", _STANDARD, ("scenario", "stack", "native", "args")),
    )
}
Fields = dict[str, Any]


def load_fields(
    document: Mapping[str, Any], kind: str
) -> tuple[Fields, tuple[Key, ...], str, str | None]:
    """Fields of the load, the keys used, the generator's name and version.

    `achieved_load` is True where the achieved rate belongs to the load.
    """
    if kind == "0.1":
        load = as_dict(at(document, ("scenario", "load")))
        generator, version = as_text(load.get("name")) or "", None
        rate, concurrency, dataset = _load_01(load)
    else:
        load = as_dict(at(document, _STANDARD))
        generator = as_text(load.get("tool")) or ""
        version = as_text(load.get("tool_version"))
        rate, concurrency = load.get("rate_qps"), as_number(load.get("concurrency"))
        dataset = _dataset_02(document, load)
    fields = _held(rate, concurrency, generator)
    if dataset:
        fields["dataset"] = dataset
    used = [k for k in LOAD[kind] if k.field in fields and _states(document, k, fields)]
    return fields, tuple(used), generator, version


def _states(document: Mapping[str, Any], key: Key, fields: Fields) -> bool:
    written = at(document, key.path)
    return written == fields[key.field] or as_number(written) == fields[key.field]


def _load_01(load: Mapping[str, Any]) -> tuple[object, float | None, str | None]:
    args = as_dict(load.get("args"))
    rate, concurrency = args.get("request_rate"), as_number(args.get("max_concurrency"))
    stage = as_count(as_dict(load.get("metadata")).get("stage"))
    stages = as_list(as_dict(args.get("load")).get("stages"))
    if stage is not None and 0 <= stage < len(stages):
        said = as_dict(stages[stage])
        rate, concurrency = said.get("rate"), as_number(said.get("concurrency_level"))
    return rate, concurrency, as_text(as_dict(args.get("data")).get("type"))


def _dataset_02(document: Mapping[str, Any], load: Mapping[str, Any]) -> str | None:
    native = as_dict(at(document, ("scenario", "load", "native")))
    named = as_text(at(native, ("config", "data", "type"))) or as_text(
        at(native, ("args", "dataset-name"))
    )
    return named or ("random" if load.get("source") == "random" else None)


def _held(rate: object, concurrency: float | None, generator: str) -> Fields:
    """What was held. A concurrent stage of inference-perf writes the rate of its burst as well."""
    number = as_number(rate)
    limited = concurrency is not None and concurrency > 0
    if limited and (number is None or generator == "inference-perf"):
        return {"load_kind": LoadKind.CONCURRENCY, "offered_load": concurrency}
    if number is not None and number > 0:
        kind = LoadKind.REQUEST_RATE
        return {"load_kind": kind, "offered_load": number, "achieved_load": True}
    if str(rate).casefold() in ("inf", "infinity"):
        return {"load_kind": LoadKind.REQUEST_RATE, "offered_load": math.inf}
    return {}


def stack_fields(
    document: Mapping[str, Any], kind: str
) -> tuple[Fields, tuple[Key, ...], list[Flag]]:
    """Fields of the servers, as far as they agree; the keys used; what was doubtful."""
    servers, flags = _stack_01(document) if kind == "0.1" else _stack_02(document)
    fields: Fields = {}
    for name in dict.fromkeys(n for server in servers for n in server):
        said = [server.get(name) for server in servers]
        if said[0] is not None and said.count(said[0]) == len(said):
            fields[name] = said[0]
    counts = [server.get("gpu_count") for server in servers]
    fields.pop("gpu_count", None)
    if servers and None not in counts:
        fields["gpu_count"] = sum(count for count in counts if count) or None
    model = as_dict(at(document, ("scenario", "model")))
    if kind == "0.1":
        fields["target"] = as_text(model.get("name"))
        fields["target_quantization"] = as_text(model.get("quantization"))
        if fields["target"] == "unknown":  # what the writer puts where it does not know
            fields["target"] = None
    fields = {k: v for k, v in fields.items() if v is not None}
    return fields, tuple(k for k in STACK[kind] if k.field in fields), flags


def _stack_01(document: Mapping[str, Any]) -> tuple[list[Fields], list[Flag]]:
    """Each host with its GPUs; an engine's name is its image."""
    scenario = as_dict(document.get("scenario"))
    hosts = [as_dict(h) for h in as_list(at(scenario, ("host", "accelerator")))]
    engines = [as_dict(e) for e in as_list(at(scenario, ("platform", "engine")))]
    servers = []
    for at_, host in enumerate(hosts or [{} for _ in engines]):
        engine = engines[at_] if at_ < len(engines) else (engines or [{}])[0]
        name = _named(engine.get("name"))
        known, version = engine_of(name or "")
        count = as_count(host.get("count"))
        server: Fields = {
            "engine": known or name,
            "engine_version": as_text(engine.get("version")) or version,
            "gpu": as_text(host.get("model")),
            "gpu_count": count if count and count > 0 else None,
            **_parallel(as_dict(host.get("parallelism"))),
            **_arguments(as_dict(engine.get("args")), name),
        }
        servers.append(server)
    return servers, []


def _stack_02(document: Mapping[str, Any]) -> tuple[list[Fields], list[Flag]]:
    servers, flags = [], list[Flag]()
    for component in map(as_dict, as_list(at(document, ("scenario", "stack")))):
        said = as_dict(component.get("standardized"))
        if said.get("kind") != "inference_engine":
            continue
        accelerator = as_dict(said.get("accelerator"))
        count, doubtful = _gpus(said, accelerator)
        tool, build = _named(said.get("tool")), _named(said.get("tool_version"))
        known, version = engine_of(build or "")
        if doubtful:
            flags.append(Flag("gpu_count_unclear", "warns", doubtful))
        server: Fields = {
            "engine": engine_name(tool) or known or tool,
            "engine_version": version,
            "build": build,
            "target": as_text(as_dict(said.get("model")).get("name")),
            "gpu": as_text(accelerator.get("model")),
            "gpu_count": count,
            **(_parallel(as_dict(accelerator.get("parallelism"))) if count else {}),
            **_arguments(as_dict(at(component, ("native", "args"))), tool or build),
        }
        servers.append(server)
    return servers, flags


def _gpus(said: Mapping[str, Any], accelerator: Mapping[str, Any]) -> tuple[int | None, str]:
    """All GPUs of a component, and why they are not known.

    The schema calls the count the total, its writer puts that of one replica (tp x pp x dp_local);
    which of them it is, the parallelism says.
    """
    count = as_count(accelerator.get("count"))
    replicas = as_count(said.get("replicas")) or 1
    if not count or count < 0:
        return None, ""  # 0 is written where no deployment was described
    parallel = as_dict(accelerator.get("parallelism"))
    tp, pp, dp, workers = (
        _size(parallel, key) for key in (("tp",), ("pp",), ("dp_local",), ("workers",))
    )
    pod = tp * pp * dp
    total = pod * workers * replicas
    if count in (pod, pod * workers, total):
        return total, ""
    if replicas == 1 and workers == 1:
        return count, ""
    text = (
        f"{count} GPUs and {replicas} replicas: whether the count is of one replica or of all is "
        "not written; state gpu_count"
    )
    return None, text


def _size(parallel: Mapping[str, Any], names: Sequence[str]) -> int:
    sizes = [as_count(parallel.get(name)) for name in names]
    return next((min(s, 2**20) for s in sizes if s is not None and s > 0), 1)


def _named(value: object) -> str | None:
    """A name with at least a letter: where it knows no image, the writer puts `//:`."""
    text = as_text(value)
    return text if text and any(c.isalnum() for c in text) else None


def _parallel(parallelism: Mapping[str, Any]) -> Fields:
    found = {name: as_count(parallelism.get(key)) for name, key in _PARALLEL.items()}
    return {name: size for name, size in found.items() if size and size > 0}


def _arguments(args: Mapping[str, Any], engine: str | None) -> Fields:
    """What the engine's recorded arguments state; they need not be all, so never "off"."""
    argv = []
    for option, value in args.items():
        argv.append(f"--{str(option).lstrip('-')}")
        argv += [] if value is None else [str(value).strip()]
    stated = fields_of(argv, engine_name(engine)) if argv else {}
    if stated.get("spec_state") is not SpecState.ON:
        stated.pop("spec_state", None)
    return {k: v for k, v in stated.items() if k in _SPECULATION}
