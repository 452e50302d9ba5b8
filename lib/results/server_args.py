"""What the command line of a serving engine says of a run: model, limits, speculation.

Options of `vllm serve`, `sglang.launch_server`, `trtllm-serve` and `llama-server`, read in their
documentation and argument parsers. What an option leaves to the engine's default stays unstated.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from lib.results.columns import KINDS
from lib.results.naming import LARGEST_K
from lib.results.parsing import as_count, as_dict, as_list, as_number, as_text
from lib.results.shell import has_open_option, is_open
from lib.run import SpecState

VLLM, SGLANG, TENSORRT_LLM, LLAMA_CPP = "vLLM", "SGLang", "TensorRT-LLM", "llama.cpp"
_NAMES = (
    (re.compile(r"(?i)vllm"), VLLM),
    (re.compile(r"(?i)sglang"), SGLANG),
    (re.compile(r"(?i)tensorrt[-_ ]?llm|trt[-_]?llm"), TENSORRT_LLM),
    (re.compile(r"(?i)llama[-_.]?cpp|llama-server"), LLAMA_CPP),
)
_CLIENT_WORDS = frozenset({"bench", "benchmark", "run-batch", "chat", "complete", "router"})

# option (dashes, short form without its dash) → Run's field
_OPTIONS: dict[str, dict[str, str]] = {
    VLLM: {
        **dict.fromkeys(("model",), "target"),
        **dict.fromkeys(("revision",), "target_revision"),
        **dict.fromkeys(("quantization", "q"), "target_quantization"),
        **dict.fromkeys(("max-num-seqs",), "max_num_seqs"),
        **dict.fromkeys(("tensor-parallel-size", "tp"), "tensor_parallel"),
        **dict.fromkeys(("pipeline-parallel-size", "pp"), "pipeline_parallel"),
        **dict.fromkeys(("data-parallel-size", "dp"), "data_parallel"),
        **dict.fromkeys(("max-cudagraph-capture-size",), "graph_max_batch"),
    },
    SGLANG: {
        **dict.fromkeys(("model-path", "model"), "target"),
        **dict.fromkeys(("revision",), "target_revision"),
        **dict.fromkeys(("quantization",), "target_quantization"),
        **dict.fromkeys(("max-running-requests",), "max_num_seqs"),
        **dict.fromkeys(("tp", "tp-size", "tensor-parallel-size"), "tensor_parallel"),
        **dict.fromkeys(("pp", "pp-size", "pipeline-parallel-size"), "pipeline_parallel"),
        **dict.fromkeys(("dp", "dp-size", "data-parallel-size"), "data_parallel"),
        **dict.fromkeys(("cuda-graph-max-bs",), "graph_max_batch"),
    },
    TENSORRT_LLM: {
        **dict.fromkeys(("model",), "target"),
        **dict.fromkeys(("revision",), "target_revision"),
        **dict.fromkeys(("max-batch-size",), "max_num_seqs"),
        **dict.fromkeys(("tp-size", "tensor-parallel-size"), "tensor_parallel"),
        **dict.fromkeys(("pp-size", "pipeline-parallel-size"), "pipeline_parallel"),
    },
    LLAMA_CPP: {
        **dict.fromkeys(("model", "m", "hf-repo", "hf", "hfr"), "target"),
        **dict.fromkeys(("parallel", "np"), "max_num_seqs"),
    },
}
# What may hide options of its own: a file of them, or the environment.
_FILES = {
    VLLM: ("config",),
    SGLANG: ("config",),
    TENSORRT_LLM: ("extra-llm-api-options", "config"),
    LLAMA_CPP: ("models-preset",),
}
_WITH_VALUE = re.compile(r"(--?[A-Za-z][\w.-]*+)\s++(?=\S)")
# A word that no option of ours explains but that is about it: off would be a guess.
_SPECULATES = re.compile(r"(?i)spec|draft|eagle|medusa")
Options = Mapping[str, list[str]]


def engine_name(text: str | None) -> str | None:
    """The engine that a name, module or image stands for, as this project spells it."""
    return next((name for pattern, name in _NAMES if text and pattern.search(text)), None)


def fields_of(argv: Sequence[str], engine: str | None = None) -> dict[str, Any]:
    """Run's fields that a server's command line states; empty where it starts no known server.

    `engine` (as `engine_name` spells it) is for words that hold the options alone, as a container
    whose image has its own entry point. `spec_state` is OFF where the whole command is shown
    without any speculative option; a file of options or an unknown variable leaves it open.
    """
    given = [str(word) for word in argv if isinstance(word, (str, int, float))]
    words = [part for word in given for part in _parts(word)]
    found = _server(words)
    if found is None and engine not in _OPTIONS:
        return {}
    named, at = found or (str(engine), 0)
    model, options = _options(words[at:], named)
    stated: dict[str, Any] = {"engine": named}
    if model is not None:
        stated["target"] = model
    for option, name in _OPTIONS[named].items():
        value = _typed(name, options[option][0]) if options.get(option) else None
        if value is not None:
            stated[name] = value
    stated |= _switches(named, options)
    drafting = _DRAFTING[named](options)
    if drafting is not None:
        return stated | {k: v for k, v in drafting.items() if v is not None}
    hidden = has_open_option(words[at:]) or any(option in options for option in _FILES[named])
    hidden = hidden or any(_SPECULATES.search(word) for word in words[at:])
    return stated if hidden else stated | {"spec_state": SpecState.OFF}


def _parts(word: str) -> list[str]:
    """An option and its value that stand in one word, as a variable of both gives them."""
    parts, at = [], 0
    while option := _WITH_VALUE.match(word, at):
        parts.append(option[1])
        at = option.end()
    return [*parts, word[at:]]


def option_files(argv: Sequence[str]) -> tuple[str, ...]:
    """The files of further options that a server's command line names."""
    found = _server([str(word) for word in argv])
    if found is None:
        return ()
    _, options = _options([str(word) for word in argv[found[1] :]], found[0])
    return tuple(v for option in _FILES[found[0]] for v in options.get(option, [])[:1])


def tensorrt_options(document: object) -> dict[str, Any]:
    """Run's fields that TensorRT-LLM's file of options states (`--extra_llm_api_options`)."""
    written = as_dict(document)
    config = as_dict(written.get("speculative_config"))
    found: dict[str, Any] = {
        "max_num_seqs": as_count(written.get("max_batch_size")),
        "tensor_parallel": as_count(written.get("tensor_parallel_size")),
        "pipeline_parallel": as_count(written.get("pipeline_parallel_size")),
    }
    reuse = as_dict(written.get("kv_cache_config")).get("enable_block_reuse")
    found["prefix_caching"] = reuse if isinstance(reuse, bool) else None
    kind = as_text(config.get("decoding_type"))
    if kind is None:
        found["spec_state"] = SpecState.OFF if written and not config else None
    else:
        drafter = config.get("speculative_model") or config.get("speculative_model_dir")
        layers = as_count(config.get("num_nextn_predict_layers"))
        found |= {
            "spec_state": SpecState.ON,
            "draft_method": {"drafttarget": "draft_model"}.get(kind.lower(), kind.lower()),
            "draft_model": as_text(drafter),
            "num_speculative_tokens": _k(config.get("max_draft_len")) or _k(layers),
            "schedule": _written(config.get("draft_len_schedule")),
        }
    return {k: v for k, v in found.items() if v is not None}


def _server(words: Sequence[str]) -> tuple[str, int] | None:
    """The engine that these words start, and where its own words begin."""
    for at, word in enumerate(words):
        name = word.rpartition("/")[2]
        following = words[at + 1] if at + 1 < len(words) else ""
        if _CLIENT_WORDS & {following, *name.split(".")} or name.startswith("sglang_router"):
            continue
        if (name, following) in (("vllm", "serve"), ("trtllm-serve", "serve")):
            return (VLLM if name == "vllm" else TENSORRT_LLM), at + 2
        if name == "sglang" and following == "serve":
            return SGLANG, at + 2
        if name in ("trtllm-serve", "llama-server"):
            return (TENSORRT_LLM if name == "trtllm-serve" else LLAMA_CPP), at + 1
        if re.match(r"(vllm\.entrypoints\.(openai\.)?\w*api_server|dynamo\.vllm)$", name):
            return VLLM, at + 1
        if re.match(r"(sglang\.launch_server|dynamo\.sglang)$", name):
            return SGLANG, at + 1
    return None


def _options(words: Sequence[str], engine: str) -> tuple[str | None, dict[str, list[str]]]:
    """The model given without an option, and each option's values (empty: a switch)."""
    model = None
    positional = engine in (VLLM, TENSORRT_LLM) and words and not words[0].startswith("-")
    if positional and not is_open(words[0]):
        model = as_text(words[0])
    found: dict[str, list[str]] = {}
    values: list[str] = []
    for word in words:
        if re.match(r"--?[A-Za-z]", word):
            option, equals, value = word.partition("=")
            name = option.lstrip("-").replace("_", "-").casefold()
            values = found[name] = [value] if equals else []
        else:
            values.append(word)
    return model, found


def _typed(name: str, text: str) -> Any:
    """A value as the field's own type; None for a variable, or what the field cannot be."""
    if is_open(text):
        return None
    if KINDS[name] is int:
        number = as_count(text)
        return number if number and number > 0 else None
    return as_text(text)


def _switches(engine: str, options: Options) -> dict[str, Any]:
    found: dict[str, Any] = {}
    on, off = {
        VLLM: ("enable-prefix-caching", "no-enable-prefix-caching"),
        SGLANG: ("", "disable-radix-cache"),
    }.get(engine, ("", ""))
    for option, state in ((on, True), (off, False)):
        if option in options:
            said = (options[option] or ["true"])[0].casefold()
            found["prefix_caching"] = state if said not in ("false", "0") else not state
    if engine == VLLM:
        found |= _vllm_graphs(options)
    if engine == SGLANG and (sizes := _numbers(options.get("cuda-graph-bs", []))):
        found["graph_max_batch"] = max(sizes)
    if {VLLM: "enforce-eager", SGLANG: "disable-cuda-graph"}.get(engine) in options:
        found["graph_max_batch"] = 0
    return found


def _vllm_graphs(options: Options) -> dict[str, Any]:
    """The largest batch with a graph of its own, from the list or the compilation's settings."""
    values = options.get("compilation-config") or options.get("cc") or options.get("o") or [""]
    written = _json(values[0])
    sizes = _numbers(as_list(written.get("cudagraph_capture_sizes")))
    largest = as_count(written.get("max_cudagraph_capture_size"))
    sizes += [largest] if largest else _numbers(options.get("cuda-graph-sizes", []))
    return {"graph_max_batch": max(sizes)} if sizes else {}


def _numbers(values: Sequence[object]) -> list[int]:
    counts = (as_count(value) for value in values)
    return [count for count in counts if count is not None and count > 0]


def _json(text: object) -> dict[str, Any]:
    try:
        return as_dict(orjson.loads(text)) if isinstance(text, str) else {}
    except orjson.JSONDecodeError:
        return {}


def _k(value: object) -> int | None:
    number = as_count(value)
    return number if number is not None and 0 < number <= LARGEST_K else None


def _written(value: object) -> str | None:
    """A schedule as it was written: JSON on one line."""
    if isinstance(value, str):
        return as_text(value)
    try:
        return orjson.dumps(value).decode()[:1000] if value else None
    except (TypeError, orjson.JSONEncodeError):
        return None


def _vllm(options: Options) -> dict[str, Any] | None:
    """`--speculative-config` as JSON or by dotted options, the short forms, the flags of 2024."""
    config = dict(_dotted(options))
    for short, name in (("method", "method"), ("model", "model"), ("tokens", _TOKENS)):
        if values := options.get(f"spec-{short}"):
            config[name] = values[0]
    for old, name in _OLD_VLLM.items():
        if values := options.get(old):
            config[name] = values[0]
    given = options.get("speculative-config") or options.get("sc")
    if given:
        text = " ".join(given).strip()
        if is_open(text):
            return {}
        config |= _json(text) or _loose(text)
    if not config and given is None:
        return None
    if not config and text.casefold() in ("", "null", "none", "{}"):
        return {"spec_state": SpecState.OFF}
    plain = {k: v for k, v in config.items() if not (isinstance(v, str) and is_open(v))}
    return _vllm_config(plain)


_TOKENS = "num_speculative_tokens"
_OLD_VLLM = {
    "speculative-model": "model",
    "num-speculative-tokens": _TOKENS,
    "speculative-draft-tensor-parallel-size": "draft_tensor_parallel_size",
    "speculative-max-model-len": "max_model_len",
}


def _dotted(options: Options) -> Iterator[tuple[str, object]]:
    for option, values in options.items():
        if option.startswith("speculative-config.") and values:
            yield option.partition(".")[2].replace("-", "_"), values[0]


def _vllm_config(config: Mapping[str, Any]) -> dict[str, Any]:
    model = as_text(config.get("model"))
    method = as_text(config.get("method"))
    if model in ("ngram", "[ngram]"):
        model, method = None, method or "ngram"
    return {
        "spec_state": SpecState.ON,
        "draft_method": method,
        "draft_model": model,
        "num_speculative_tokens": _k(config.get(_TOKENS)),
        "schedule": _written(config.get("num_speculative_tokens_per_batch_size")),
        "draft_tensor_parallel": _k(config.get("draft_tensor_parallel_size")),
        "draft_max_positions": as_count(config.get("max_model_len")),
    }


def _loose(text: str) -> dict[str, Any]:
    """What can still be told of a JSON object whose quotes a shell has taken."""
    keys = ("method", "model", _TOKENS, "draft_tensor_parallel_size")
    found = {k: re.search(rf"\b{k}['\"]?\s*:\s*['\"]?([^\s,'\"}}]+)", text) for k in keys}
    return {k: match[1] for k, match in found.items() if match}


def _sglang(options: Options) -> dict[str, Any] | None:
    def first(*names: str) -> str | None:
        value = next((options[n][0] for n in names if options.get(n)), None)
        return None if value is None or is_open(value) else value

    given = any(o.startswith("speculative-") for o in options)
    algorithm = first("speculative-algorithm", "speculative-algo")
    if not given or (algorithm or "").casefold() == "none":
        return {"spec_state": SpecState.OFF} if given else None
    if algorithm is None:
        return {}
    method = {"standalone": "draft_model"}.get(algorithm.casefold(), algorithm.casefold())
    topk = _k(first("speculative-eagle-topk"))
    steps = _k(first("speculative-num-steps"))
    verified = _k(first("speculative-num-draft-tokens"))
    if steps is None and topk == 1 and verified is not None and method != "ngram":
        steps = verified - 1  # the count of draft tokens holds the root
    return {
        "spec_state": SpecState.ON,
        "draft_method": method,
        "draft_model": as_text(first("speculative-draft-model-path", "speculative-draft-model")),
        "num_speculative_tokens": steps or None,
        "draft_topk": topk,
        "schedule": "adaptive" if "speculative-adaptive" in options else None,
    }


def _tensorrt(options: Options) -> dict[str, Any] | None:
    """Speculation stands in the file of options; an engine built before may have its own."""
    built = (options.get("backend") or [""])[0].casefold() in ("tensorrt", "trt")
    return {} if built else None


def _llama(options: Options) -> dict[str, Any] | None:
    def first(*names: str) -> str | None:
        value = next((options[n][0] for n in names if options.get(n)), None)
        return None if value is None or is_open(value) else value

    drafters = ("model-draft", "md", "spec-draft-model", "hf-repo-draft", "hfd", "hfrd")
    kinds = ("spec-type", "spec-default")
    given = [o for o in options if o in (*drafters, *kinds) or o.startswith("lookup-cache")]
    kind = first("spec-type")
    if not given or (kind or "").casefold() == "none":
        return {"spec_state": SpecState.OFF} if given else None
    if kind is None and not any(o in options for o in drafters):
        return {}
    number = as_number(first("draft-max", "draft", "draft-n", "spec-draft-n-max"))
    return {
        "spec_state": SpecState.ON,
        "draft_method": _LLAMA_METHODS.get((kind or "draft-simple").casefold(), kind),
        "draft_model": as_text(first(*drafters)),
        "num_speculative_tokens": _k(number),
    }


_LLAMA_METHODS = {
    "draft": "draft_model",
    "draft-simple": "draft_model",
    "draft-eagle3": "eagle3",
    "draft-mtp": "mtp",
    "draft-dflash": "dflash",
}
_DRAFTING = {VLLM: _vllm, SGLANG: _sglang, TENSORRT_LLM: _tensorrt, LLAMA_CPP: _llama}
