"""The series of each engine that no run has a field for, by their exact names."""

from collections.abc import Mapping
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Names:
    """Series of an engine that no run has a field for. The first name that is there counts."""

    running: tuple[str, ...]
    waiting: tuple[str, ...]
    kv_use: tuple[str, ...] = ()
    tau: tuple[str, ...] = ()
    output_tps: tuple[str, ...] = ()
    preemptions: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """Every name."""
        return tuple(name for f in fields(self) for name in getattr(self, f.name))


NAMES: Mapping[str, Names] = {
    "vLLM": Names(
        ("vllm:num_requests_running",),
        ("vllm:num_requests_waiting", "vllm:num_requests_waiting_by_reason"),
        ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
        preemptions=("vllm:num_preemptions_total",),
    ),
    "SGLang": Names(
        ("sglang:num_running_reqs",),
        ("sglang:num_queue_reqs",),
        ("sglang:token_usage",),
        ("sglang:spec_accept_length",),
        ("sglang:gen_throughput",),
        ("sglang:num_retracted_requests_total",),
    ),
    "TensorRT-LLM": Names(
        ("trtllm_num_requests_running",),
        ("trtllm_num_requests_waiting",),
        ("trtllm_kv_cache_utilization",),
        ("trtllm_spec_decode_acceptance_length",),
    ),
    "llama.cpp": Names(
        ("llamacpp:requests_processing",),
        ("llamacpp:requests_deferred",),
        ("llamacpp:kv_cache_usage_ratio",),
        output_tps=("llamacpp:predicted_tokens_seconds",),
    ),
    "LMDeploy": Names(
        ("lmdeploy:num_requests_running",),
        ("lmdeploy:num_requests_waiting",),
        ("lmdeploy:gpu_cache_usage_perc",),
        ("lmdeploy:spec_decode_mean_accept_length",),
    ),
}
