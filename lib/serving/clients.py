"""The commands of the other tools: SGLang's server and client, GuideLLM, AIPerf.

Options as documented by each: SGLang `docs/advanced_features/speculative_decoding.md` and
`docs/developer_guide/bench_serving.md`; GuideLLM `docs/guides/v0.7.0_migration_guide.md` (the
command is `guidellm run` since 0.7) and its `--help`; AIPerf `docs/cli-options.md`.
"""

import json
import math
import shlex

from lib.errors import InputError
from lib.run import LoadKind, Study
from lib.serving.commands import (
    ADDRESS,
    GPU_NOTE,
    IN_TURN,
    RANDOM_NOTE,
    RESULTS,
    WARM_UPS,
    load_slug,
    metadata_of,
    prompts_for,
    repeated,
)
from lib.serving.setup import (
    ArmSetup,
    Blanks,
    Command,
    is_synthetic,
    on_a_command_line,
    recorded,
    recorded_length,
)

SGLANG_ADDRESS = "http://127.0.0.1:30000"
# SGLang's name of a method; a chain draft of K tokens is K steps, top-k 1, K + 1 draft tokens.
ALGORITHMS = {
    "eagle": "EAGLE",
    "eagle3": "EAGLE3",
    "mtp": "NEXTN",
    "draft_model": "STANDALONE",
    "dflash": "DFLASH",
    "ngram": "NGRAM",
}
NO_DRAFTER = ("NEXTN", "NGRAM")
NAMED_BY_FILE = "This result file does not hold the arm or the GPU: its name says the arm."


def sglang_serve(study: Study, arm: ArmSetup) -> Command:
    """`sglang.launch_server` for one arm.

    Raises InputError for K = 0 and for a schedule: SGLang takes neither.
    """
    if arm.k == 0 or arm.ranges is not None or arm.name.endswith(":schedule"):
        raise InputError(
            f"{arm.name}: SGLang has no K by batch size and no K = 0; measure it with vLLM"
        )
    blanks = Blanks()
    words = ["python", "-m", "sglang.launch_server", "--model-path"]
    words.append(blanks.fill(recorded(study, arm.name, "target"), "MODEL"))
    options = (
        ("--revision", "target_revision"),
        ("--max-running-requests", "max_num_seqs"),
        ("--tp-size", "tensor_parallel"),
        ("--pp-size", "pipeline_parallel"),
        ("--dp-size", "data_parallel"),
        ("--cuda-graph-max-bs", "graph_max_batch"),
    )
    for option, name in options:
        value = recorded(study, arm.name, name)
        if value is not None and on_a_command_line(str(value)):
            words += [option, str(value)]
    if recorded(study, arm.name, "prefix_caching") is False:
        words.append("--disable-radix-cache")
    if not arm.is_off:
        words += _sglang_speculation(study, arm, blanks)
    return Command(f"Start SGLang, {arm.name}", shlex.join(words), blanks.listed)


def sglang_bench(
    study: Study, arm: ArmSetup, load: float, kind: LoadKind, runs: int = 1, first: int = 1
) -> Command:
    """`sglang.bench_serving` for one cell."""
    blanks = Blanks()
    words = ["python", "-m", "sglang.bench_serving", "--backend", "sglang"]
    words += ["--base-url", SGLANG_ADDRESS]
    if is_synthetic(recorded(study, arm.name, "dataset")):
        lengths = _lengths(study, blanks)
        words += ["--dataset-name", "random", "--random-input-len", lengths[0]]
        words += ["--random-output-len", lengths[1], "--random-range-ratio", "1"]
    else:
        words += ["--dataset-name", "sharegpt", "--dataset-path"]
        words.append(blanks.fill(None, "DATASET_FILE"))
    words += ["--num-prompts", str(prompts_for(study, load, kind))]
    words += ["--request-rate" if kind is LoadKind.REQUEST_RATE else "--max-concurrency"]
    words += [_load(load), "--warmup-requests", str(WARM_UPS), "--flush-cache"]
    temperature = recorded(study, arm.name, "temperature")
    body = json.dumps({"temperature": _plain(temperature, blanks)})
    words += ["--extra-request-body", body, "--output-details"]
    stem = f"{arm.slug}-{load_slug(load, kind)}"
    text = repeated(words, ("--output-file", stem, ".jsonl"), runs, first)
    form = ("The prompts' file is in ShareGPT's form.",) if "sharegpt" in words else ()
    notes = (*_notes(study, arm), *form, NAMED_BY_FILE)
    return Command(f"Measure {arm.name}", text, blanks.listed, notes)


def guidellm(
    study: Study, arm: ArmSetup, load: float, kind: LoadKind, runs: int = 1, first: int = 1
) -> Command:
    """`guidellm run` (0.7 or newer) for one cell; its labels carry the arm and the GPU."""
    blanks = Blanks()
    temperature = _plain(recorded(study, arm.name, "temperature"), blanks)
    backend = {
        "kind": "openai_http",
        "target": ADDRESS,
        "model": blanks.fill(recorded(study, arm.name, "target"), "MODEL"),
        "extras": {"body": {"temperature": temperature}},
    }
    rate = kind is LoadKind.REQUEST_RATE
    if math.isinf(load):
        profile: dict[str, object] = {"kind": "throughput"}
    else:
        profile = {"kind": "poisson", "rate": load} if rate else {"kind": "concurrent"}
    if not rate and math.isfinite(load):
        profile["streams"] = int(load)
    if is_synthetic(recorded(study, arm.name, "dataset")):
        lengths = _lengths(study, blanks)
        data: dict[str, object] = {"kind": "synthetic_text"}
        data |= {"prompt_tokens": _whole(lengths[0]), "output_tokens": _whole(lengths[1])}
    else:
        data = {"kind": "json_file", "path": blanks.fill(None, "DATASET_FILE")}
    limit = {"kind": "max_requests", "count": prompts_for(study, load, kind)}
    words = ["guidellm", "run"]
    for option, value in (
        ("--backend", backend),
        ("--profile", profile),
        ("--constraint", limit),
        ("--data", data),
        ("--seed", {"kind": "static", "value": 0}),
    ):
        words += [option, json.dumps(value, ensure_ascii=False)]
    for name, text in metadata_of(study, arm).items():
        words += ["--label", f"{name}={text}"]
    stem = f"kind=json,path={RESULTS}/{arm.slug}-{load_slug(load, kind)}"
    text = repeated(words, ("--output", stem, ".json"), runs, first)
    notes = (*_notes(study, arm), *((GPU_NOTE,) if any(r.gpu for r in study.runs) else ()))
    return Command(f"Measure {arm.name}", text, blanks.listed, notes)


def aiperf(
    study: Study, arm: ArmSetup, load: float, kind: LoadKind, runs: int = 1, first: int = 1
) -> Command:
    """`aiperf profile` for one cell."""
    blanks = Blanks()
    words = ["aiperf", "profile", "--model"]
    words.append(blanks.fill(recorded(study, arm.name, "target"), "MODEL"))
    words += ["--url", ADDRESS, "--endpoint-type", "chat", "--streaming"]
    words += ["--request-rate" if kind is LoadKind.REQUEST_RATE else "--concurrency", _load(load)]
    words += ["--request-count", str(prompts_for(study, load, kind))]
    words += ["--warmup-request-count", str(WARM_UPS)]
    if is_synthetic(recorded(study, arm.name, "dataset")):
        lengths = _lengths(study, blanks)
        words += ["--synthetic-input-tokens-mean", lengths[0], "--synthetic-input-tokens-stddev"]
        words += ["0", "--output-tokens-mean", lengths[1], "--output-tokens-stddev", "0"]
        words += ["--extra-inputs", "ignore_eos:true"]
    else:
        words += ["--input-file", blanks.fill(None, "DATASET_FILE")]
        words += ["--custom-dataset-type", "single_turn"]
    temperature = _plain(recorded(study, arm.name, "temperature"), blanks)
    words += ["--extra-inputs", f"temperature:{temperature}", "--random-seed", "0"]
    stem = f"{RESULTS}/{arm.slug}-{load_slug(load, kind)}"
    text = repeated(words, ("--output-artifact-dir", stem, ""), runs, first)
    notes = (*_notes(study, arm), NAMED_BY_FILE)
    return Command(f"Measure {arm.name}", text, blanks.listed, notes)


def _sglang_speculation(study: Study, arm: ArmSetup, blanks: Blanks) -> list[str]:
    algorithm = blanks.fill(ALGORITHMS.get((arm.method or "").casefold()), "ALGORITHM")
    words = ["--speculative-algorithm", algorithm]
    if algorithm not in NO_DRAFTER:
        drafter = blanks.fill(arm.draft_model, "DRAFT_MODEL")
        words += ["--speculative-draft-model-path", drafter]
    k = blanks.fill(arm.k, "K")
    width = k + 1 if isinstance(k, int) else "K+1"
    if algorithm == "NGRAM":
        return [*words, "--speculative-num-draft-tokens", str(width)]
    topk = recorded(study, arm.name, "draft_topk") or 1
    words += ["--speculative-num-steps", str(k), "--speculative-eagle-topk", str(topk)]
    return [*words, "--speculative-num-draft-tokens", str(width)]


def _lengths(study: Study, blanks: Blanks) -> tuple[str, str]:
    return (
        str(blanks.fill(recorded_length(study, "input_len"), "INPUT_LEN")),
        str(blanks.fill(recorded_length(study, "output_len"), "OUTPUT_LEN")),
    )


def _notes(study: Study, arm: ArmSetup) -> tuple[str, ...]:
    random = is_synthetic(recorded(study, arm.name, "dataset"))
    return (*((RANDOM_NOTE,) if random and not arm.is_off else ()), IN_TURN)


def _plain(value: float | None, blanks: Blanks) -> float | int | str:
    """A temperature as JSON writes it, or its placeholder."""
    if value is None:
        return str(blanks.fill(None, "TEMPERATURE"))
    return int(value) if value == int(value) else value


def _whole(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def _load(load: float) -> str:
    return "inf" if math.isinf(load) else f"{load:g}"
