"""Which methods, runners, versions and parallelism a dynamic schedule works with in vLLM.

The facts are vLLM's own page on dynamic speculative decoding, its source and the defects that its
issues name; each warning gives the number to look up in the release notes.
"""

import re
from collections.abc import Sequence

TESTED_METHODS = ("eagle", "eagle3", "dflash")
# Methods that vLLM's V2 model runner does not take.
V1_METHODS = (
    "ngram",
    "ngram_gpu",
    "draft_model",
    "suffix",
    "medusa",
    "mlp_speculator",
    "custom_class",
)
SYNCHRONOUS_METHODS = ("ngram", "suffix", "medusa", "mlp_speculator", "custom_class")
RUNNERS = ("V1", "V2")
FIRST_VERSION = (0, 25)


def version_of(text: str | None) -> tuple[int, int] | None:
    """The first two numbers of a version such as `v0.25.1` or `1.3.0rc4`; None without them."""
    found = re.search(r"(?<![\d.])(\d{1,4})\.(\d{1,4})", text or "")
    return (int(found[1]), int(found[2])) if found else None


def engine_warnings(
    method: str | None,
    engine: str | None,
    engine_version: str | None,
    has_zero: bool,
    runner: str | None = None,
    pipeline_parallel: int | None = None,
    drafted: Sequence[int] = (),
) -> tuple[str, ...]:
    """What is known to go wrong when vLLM runs a schedule with this method.

    `has_zero` says that one of the ranges has K = 0; `runner` is V1, V2 or None while unknown;
    `drafted` are the K above 0 that the schedule holds, if they are known.
    """
    found = []
    if engine and "vllm" not in engine.lower():
        found.append(f"Measured on {engine}, written for vLLM: measure again on vLLM.")
    if not engine_version:
        found.append(
            "The engine version is not recorded: check that yours has dynamic speculative decoding."
        )
    elif (version := version_of(engine_version)) is not None and version < FIRST_VERSION:
        found.append(
            f"Engine version {engine_version}: dynamic speculative decoding "
            "(vllm-project/vllm#32374) is known from 0.25 on; an earlier release refuses the key."
        )
    return (*found, *method_warnings(method, has_zero, runner, pipeline_parallel, drafted))


def method_warnings(
    method: str | None,
    has_zero: bool,
    runner: str | None = None,
    pipeline_parallel: int | None = None,
    drafted: Sequence[int] = (),
) -> tuple[str, ...]:
    """The part of `engine_warnings` that no engine version changes for certain."""
    name = (method or "").lower()
    mtp = "mtp" in name
    found = [_runner(method, name, runner, pipeline_parallel)]
    if name not in TESTED_METHODS:
        found.append(
            f"Method {method or 'not recorded'}: vLLM tested schedules with eagle, eagle3 and "
            "dflash only."
        )
    if name == "suffix":
        found.append(
            "Method suffix chooses a length per request and does not follow a schedule "
            "(vllm-project/vllm-ascend#12368)."
        )
    if name in SYNCHRONOUS_METHODS:
        found.append(f"Method {method} turns asynchronous scheduling off.")
    if (mtp or name in ("eagle", "eagle3")) and runner != "V1":
        found.append(
            "Open defect (vllm-project/vllm#51510): the V2 model runner drafts the full "
            "num_speculative_tokens whatever K is scheduled; check your release notes."
        )
    if mtp:
        found.append(
            "Open defect (vllm-project/vllm#48494): MTP with a schedule fails at CUDA graph "
            "capture in some releases."
        )
    if mtp and has_zero:
        found.append(
            "Open defect (vllm-project/vllm#49548): MTP throughput collapses where the load "
            "crosses into a K = 0 range."
        )
    if runner == "V2" and len(set(drafted)) > 2:
        found.append(
            f"{len(set(drafted))} different K: the V2 model runner captures decode graphs for "
            "each, which costs start-up time and memory."
        )
    return tuple(found)


def _runner(method: str | None, name: str, runner: str | None, pipeline: int | None) -> str:
    """What the model runner does to the CUDA graphs of an engine that holds a schedule."""
    if name in V1_METHODS:
        return (
            f"Method {method} runs on the V1 model runner only: a schedule costs the whole engine "
            "its full CUDA graphs, at batch 1 too."
        )
    if name == "eagle3" and (pipeline or 1) > 1:
        return (
            f"eagle3 with pipeline parallel {pipeline} runs on the V1 model runner only: a "
            "schedule costs the whole engine its full CUDA graphs, at batch 1 too."
        )
    if runner == "V2":
        return "The V2 model runner keeps full CUDA graphs under a schedule."
    if runner == "V1":
        return (
            "The V1 model runner runs the whole engine without full CUDA graphs under a schedule, "
            "at batch 1 too; VLLM_USE_V2_MODEL_RUNNER=1 keeps them."
        )
    return (
        "On the V1 model runner a schedule costs the whole engine its full CUDA graphs, at "
        "batch 1 too; VLLM_USE_V2_MODEL_RUNNER=1 keeps them."
    )


def data_parallel_drops(ranks: int, largest: int, instead: str) -> str:
    """What a vLLM server with several data-parallel ranks makes of a schedule."""
    return (
        f"vLLM drops the schedule with data parallel {ranks} and runs K = {largest} at every "
        f"batch: use data parallel 1, or {instead} throughout."
    )
