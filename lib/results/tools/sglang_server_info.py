"""What an SGLang server says of itself (`server_info` of a result line): its launch arguments.

The names are those of SGLang's ServerArgs, with the scheduler's own values in `internal_states`.
"""

from collections.abc import Mapping
from typing import Any

from lib.results.findings import LARGEST_COUNT, Key
from lib.results.keys import at, take
from lib.results.naming import LARGEST_K
from lib.results.parsing import as_count, as_dict, as_list, as_text
from lib.results.server_args import SGLANG
from lib.results.tools.methods import method_of
from lib.run import SpecState

PATH = "server_info"

# Only SGLang writes these: other servers answer the same address with their own shape.
_TELLING = {"internal_states", "disable_radix_cache", "mem_fraction_static"}
# With these keys the whole set of arguments is shown, so that an empty one means "not set".
_WHOLE = {"model_path", "tp_size", "speculative_algorithm", "speculative_num_steps"}
_METHODS = {"standalone": "draft_model"}
_BLOCK_METHOD = "dflash"  # one step drafts a whole block
_KEPT = (
    *("dtype", "kv_cache_dtype", "attention_backend", "mem_fraction_static", "context_length"),
    *("page_size", "chunked_prefill_size", "schedule_policy", "ep_size", "enable_dp_attention"),
    *(
        "disable_overlap_schedule",
        "disaggregation_mode",
        "disable_cuda_graph",
        "enable_torch_compile",
    ),
    *("served_model_name", "avg_spec_accept_length"),
)

TAKEN = (
    Key("target", (PATH, "model_path")),
    Key("target_revision", (PATH, "revision")),
    Key("target_quantization", (PATH, "quantization")),
    Key("engine_version", (PATH, "version")),
    Key("tensor_parallel", (PATH, "tp_size")),
    Key("data_parallel", (PATH, "dp_size")),
    Key("pipeline_parallel", (PATH, "pp_size")),
    Key("max_num_seqs", (PATH, "max_running_requests")),
    Key("graph_max_batch", (PATH, "cuda_graph_max_bs")),
    Key("graph_max_batch", (PATH, "cuda_graph_max_bs_decode")),
    Key("draft_model", (PATH, "speculative_draft_model_path")),
    Key("draft_topk", (PATH, "speculative_eagle_topk"), note="above 1: a tree of drafts"),
)
DERIVED = (
    Key("graph_max_batch", (PATH, "disable_cuda_graph"), note="true: 0"),
    Key("prefix_caching", (PATH, "disable_radix_cache"), note="the opposite"),
    Key("draft_method", (PATH, "speculative_algorithm"), note="null: off, if all else is shown"),
    Key(
        "num_speculative_tokens",
        (PATH, "speculative_num_steps"),
        note="the drafted tokens of a round",
    ),
    Key(
        "num_speculative_tokens",
        (PATH, "speculative_num_draft_tokens"),
        note="minus 1: it counts the root",
    ),
    Key("schedule", (PATH, "speculative_adaptive")),
    Key("gpu_count", (PATH, "tp_size"), note="times pp_size and dp_size; not with attention by DP"),
)
KEYS = (*TAKEN, *DERIVED)
FOLLOWS = (
    Key("engine", (PATH,), note="always SGLang"),
    Key("spec_state", (PATH, "speculative_algorithm"), note="null: off, if all else is shown"),
)


def arguments(info: object) -> dict[str, object]:
    """The launch arguments in `server_info`; empty where it is not an SGLang server's.

    Of a list the first rank's. With prefill apart they are those of the first decode server. What
    the first scheduler states counts over what was asked for.
    """
    top = as_dict((as_list(info) or [info])[0])
    decode = as_list(top.get("decode"))
    if decode:
        top = as_dict(decode[0])
    asked = top | as_dict(top.get("server_args"))
    state = as_dict((as_list(asked.get("internal_states")) or [None])[0])
    merged = asked | {name: value for name, value in state.items() if value is not None}
    if not merged.keys() & _TELLING:
        return {}
    return merged | ({"disaggregation_mode": "decode"} if decode else {})


def fields(info: object) -> tuple[dict[str, Any], tuple[Key, ...]]:
    """The fields of a run that `server_info` states, and the keys they were read from."""
    args = arguments(info)
    if not args:
        return {}, ()
    document = {PATH: args}
    found, used = take(document, TAKEN)
    caching = args.get("disable_radix_cache")
    derived: dict[str, Any] = {
        "engine": SGLANG,
        "graph_max_batch": 0 if args.get("disable_cuda_graph") is True else None,
        "prefix_caching": not caching if isinstance(caching, bool) else None,
        "gpu_count": _gpu_count(args),
        **_speculation(args),
    }
    found |= {name: value for name, value in derived.items() if value is not None}
    if found.get("spec_state") is not SpecState.ON:
        found.pop("draft_topk", None)
        found.pop("draft_model", None)
    if found.get("graph_max_batch") == 0:
        used = tuple(k for k in used if k.field != "graph_max_batch")
    taken = {k.field for k in used}
    shown = [
        k
        for k in DERIVED
        if k.field in found and k.field not in taken and at(document, k.path) is not None
    ]
    return found, (*(k for k in used if k.field in found), *shown)


def kept(info: object) -> dict[str, object] | None:
    """The arguments worth keeping that no field of a run holds; None where there are none."""
    args = arguments(info)
    names = [*_KEPT, *(n for n in args if n.startswith("speculative_"))]
    chosen = {n: args[n] for n in names if args.get(n) not in (None, "", [], {})}
    return chosen or None


def _gpu_count(args: Mapping[str, object]) -> int | None:
    """The GPUs of one whole server: with attention by data parallelism the ranks share them."""
    apart = args.get("disaggregation_mode") not in (None, "null")
    tensor = as_count(args.get("tp_size"))
    if not args.keys() >= _WHOLE or apart or not tensor or tensor < 1:
        return None
    pipeline, data = (max(as_count(args.get(k)) or 1, 1) for k in ("pp_size", "dp_size"))
    count = tensor * pipeline * (1 if args.get("enable_dp_attention") is True else data)
    return count if count <= LARGEST_COUNT else None


def _speculation(args: Mapping[str, object]) -> dict[str, Any]:
    written = as_text(args.get("speculative_algorithm"))
    algorithm = (written or "").casefold()
    if algorithm in ("", "none", "off"):
        off = bool(algorithm) or (args.keys() >= _WHOLE and args["speculative_algorithm"] is None)
        return {"spec_state": SpecState.OFF} if off else {}
    adaptive = args.get("speculative_adaptive") is True
    return {
        "spec_state": SpecState.ON,
        "draft_method": method_of(_METHODS.get(algorithm, algorithm)),
        "schedule": "adaptive" if adaptive else None,
        "num_speculative_tokens": None if adaptive else _drafted(algorithm, args),
    }


def _drafted(algorithm: str, args: Mapping[str, object]) -> int | None:
    """K: the depth of the tree, or the tokens of the chain without the root."""
    topk, steps, tokens = (
        as_count(args.get(f"speculative_{k}"))
        for k in ("eagle_topk", "num_steps", "num_draft_tokens")
    )
    steps, tokens = (n if n is not None and 0 < n <= LARGEST_K else None for n in (steps, tokens))
    chain = tokens - 1 if tokens is not None and tokens > 1 else None
    if topk is not None and topk > 1:
        return steps
    if algorithm == _BLOCK_METHOD:
        return chain
    # A match in the text is as long as it is, up to the drafted tokens.
    return steps if steps is not None or algorithm == "ngram" else chain
