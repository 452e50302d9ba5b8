"""What the metrics of each serving engine mean: series by field of a run.

Names and meanings are those of the engines' own collectors.
"""

import re
from dataclasses import dataclass
from functools import cached_property

from lib.results.findings import Key

_DRAFTS = "spec_decode_num_drafts_total"
_DRAFTED = "spec_decode_num_draft_tokens_total"
_ACCEPTED = "spec_decode_num_accepted_tokens_total"
_PER_POSITION = "spec_decode_num_accepted_tokens_per_pos_total"


@dataclass(frozen=True)
class Engine:
    """An engine's series. `keys` are cumulative, `gauges` are what was so when it was scraped.

    `positions` counts accepted tokens by draft position, in the label `position_label`;
    `drafted_positions` does so for drafted ones. `kept` series and the `counted` ones
    fill no field of a run by themselves.
    """

    name: str
    prefix: str
    keys: tuple[Key, ...]
    gauges: tuple[Key, ...] = ()
    positions: str = ""
    position_label: str = "position"
    drafted_positions: str = ""
    kept: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()

    @property
    def table(self) -> tuple[Key, ...]:
        """Every key, as documentation shows them."""
        note = f"by label {self.position_label}"
        per_position = (Key("accepted_per_position", (self.positions,), note=note),)
        return (*self.keys, *(per_position if self.positions else ()), *self.gauges)

    @cached_property
    def points(self) -> frozenset[str]:
        """Names of the gauges that are read."""
        named = {key.path[0] for key in self.gauges} | {*self.kept}
        return frozenset(n for n in named if not n.endswith("_total"))

    @cached_property
    def counters(self) -> frozenset[str]:
        """Names of the counters that are read."""
        named = {re.split(r"[{,/]", key.path[0])[0].strip() for key in self.keys}
        named |= {self.positions, self.drafted_positions, *self.kept, *self.counted}
        return frozenset(n for n in named if n.endswith("_total"))

    @cached_property
    def cumulative(self) -> frozenset[str]:
        """Names of the series that only grow while a server lives, as far as they are read."""
        histograms = {key.path[0] for key in self.keys if not key.path[0].endswith("_total")}
        parts = {f"{name}{part}" for name in histograms for part in ("_sum", "_count")}
        return self.counters | parts


def _mean(field: str, *histograms: str, note: str = "") -> tuple[Key, ...]:
    said = f"sum over count; {note}" if note else "sum over count"
    return tuple(Key(field, (name,), 1e3, "s", said) for name in histograms)


def _counters(prefix: str) -> tuple[Key, ...]:
    """The counters of vLLM's scheme, which llama.cpp and LMDeploy have taken over."""
    return (
        Key("drafts", (f"{prefix}{_DRAFTS}",)),
        Key("draft_tokens", (f"{prefix}{_DRAFTED}",)),
        Key("accepted_tokens", (f"{prefix}{_ACCEPTED}",), note="bonus token excluded"),
        Key("input_tokens", (f"{prefix}prompt_tokens_total",)),
    )


def _requests(prefix: str) -> tuple[Key, ...]:
    done = f"{prefix}request_success_total"
    return (
        Key("completed", (done,), note="without finished_reason abort and error"),
        Key("failed", (f'{done}{{finished_reason="error"}}',)),
    )


VLLM = Engine(
    "vLLM",
    "vllm:",
    (
        *_counters("vllm:"),
        Key("output_tokens", ("vllm:generation_tokens_total",)),
        *_requests("vllm:"),
        *_mean("ttft_ms_mean", "vllm:time_to_first_token_seconds"),
        *_mean("tpot_ms_mean", "vllm:request_time_per_output_token_seconds", note="per request"),
        *_mean(
            "itl_ms_mean",
            "vllm:inter_token_latency_seconds",
            "vllm:time_per_output_token_seconds",
            note="per engine step, whatever it emitted",
        ),
        *_mean("e2e_ms_mean", "vllm:e2e_request_latency_seconds"),
    ),
    positions=f"vllm:{_PER_POSITION}",
    kept=(
        *("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"),
        *("vllm:spec_decode_draft_acceptance_rate", "vllm:spec_decode_efficiency"),
    ),
    counted=("vllm:spec_decode_num_emitted_tokens_total",),  # V0
)
SGLANG = Engine(
    "SGLang",
    "sglang:",
    (
        Key("drafts", ("sglang:spec_verify_calls_total",), note="added when a request ends"),
        Key("input_tokens", ("sglang:prompt_tokens_total",)),
        Key("output_tokens", ("sglang:generation_tokens_total",)),
        Key("completed", ("sglang:num_requests_total",)),
        *_mean("ttft_ms_mean", "sglang:time_to_first_token_seconds"),
        *_mean(
            "tpot_ms_mean",
            "sglang:inter_token_latency_seconds",
            "sglang:time_per_output_token_seconds",
            note="its inter-token latency is divided by the tokens of a step",
        ),
        *_mean("e2e_ms_mean", "sglang:e2e_request_latency_seconds"),
    ),
    (
        Key("accept_length", ("sglang:spec_accept_length",), note="gauge, of the last batches"),
        Key("num_speculative_tokens", ("sglang:spec_num_steps",), note="gauge"),
    ),
    kept=(
        *("sglang:num_running_reqs", "sglang:num_queue_reqs", "sglang:gen_throughput"),
        *("sglang:token_usage", "sglang:spec_accept_rate", "sglang:spec_num_draft_tokens"),
        "sglang:num_aborted_requests_total",
    ),
)
TENSORRT_LLM = Engine(
    "TensorRT-LLM",
    "trtllm_",
    (
        Key("drafts", ("trtllm_spec_decode_drafted_tokens_total, first position",)),
        Key("draft_tokens", ("trtllm_spec_decode_num_draft_tokens_total",)),
        Key("draft_tokens", ("trtllm_spec_decode_drafted_tokens_total",)),
        Key("accepted_tokens", ("trtllm_spec_decode_num_accepted_tokens_total",)),
        Key("accepted_tokens", ("trtllm_spec_decode_accepted_tokens_total",)),
        Key("input_tokens", ("trtllm_prompt_tokens_total",)),
        Key("output_tokens", ("trtllm_generation_tokens_total",)),
        *_requests("trtllm_"),
        *_mean("ttft_ms_mean", "trtllm_time_to_first_token_seconds"),
        *_mean("tpot_ms_mean", "trtllm_time_per_output_token_seconds", note="per request"),
        *_mean("e2e_ms_mean", "trtllm_e2e_request_latency_seconds"),
    ),
    (Key("accept_length", ("trtllm_spec_decode_acceptance_length",), note="gauge"),),
    positions="trtllm_spec_decode_accepted_tokens_total",
    position_label="token_position",
    drafted_positions="trtllm_spec_decode_drafted_tokens_total",
    kept=(
        *("trtllm_num_requests_running", "trtllm_num_requests_waiting"),
        *("trtllm_kv_cache_utilization", "trtllm_spec_decode_draft_overhead"),
    ),
)
LLAMA_CPP = Engine(
    "llama.cpp",
    "llamacpp:",
    (
        *_counters("llamacpp:"),
        Key("output_tokens", ("llamacpp:tokens_predicted_total",)),
        Key(
            "tpot_ms_mean",
            ("llamacpp:tokens_predicted_seconds_total / tokens_predicted_total",),
            1e3,
            "s",
            "mean over tokens of the slots' own times",
        ),
    ),
    positions=f"llamacpp:{_PER_POSITION}",
    counted=("llamacpp:tokens_predicted_seconds_total",),
    kept=(
        *("llamacpp:requests_processing", "llamacpp:requests_deferred"),
        *("llamacpp:n_busy_slots_per_decode", "llamacpp:predicted_tokens_seconds"),
    ),
)
LMDEPLOY = Engine(
    "LMDeploy",
    "lmdeploy:",
    (
        *_counters("lmdeploy:"),
        Key("output_tokens", ("lmdeploy:generation_tokens_total",)),
        *_requests("lmdeploy:"),
        *_mean("ttft_ms_mean", "lmdeploy:time_to_first_token_seconds"),
        *_mean("itl_ms_mean", "lmdeploy:iter_token_latency", note="per engine step"),
        *_mean("e2e_ms_mean", "lmdeploy:e2e_request_latency_seconds"),
    ),
    (
        Key("accept_length", ("lmdeploy:spec_decode_mean_accept_length",), note="gauge"),
        Key("accept_rate", ("lmdeploy:spec_decode_mean_accept_rate",), note="gauge"),
    ),
    positions=f"lmdeploy:{_PER_POSITION}",
    kept=(
        *("lmdeploy:num_requests_running", "lmdeploy:num_requests_waiting"),
        "lmdeploy:gpu_cache_usage_perc",
    ),
)
ENGINES = (VLLM, SGLANG, TENSORRT_LLM, LLAMA_CPP, LMDEPLOY)


def engine_named(name: str) -> Engine | None:
    """The engine of a scrape."""
    return next((e for e in ENGINES if e.name == name), None)


def accepted_of_verify_calls(
    verify_calls: int | None, output_tokens: int | None, completed: int | None
) -> int | None:
    """SGLang counts verify calls, not accepted tokens: those are what is left of the output.

    Every finished request has one token of its prefill and one bonus token a verify call. None
    where a count is missing, or they do not fit.
    """
    if not verify_calls or output_tokens is None or completed is None:
        return None
    left = output_tokens - completed - verify_calls
    return left if left >= 0 else None
