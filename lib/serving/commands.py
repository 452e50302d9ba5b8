"""The exact commands of vLLM for one cell and for a sweep, as text to copy.

Options as in vLLM's own sources: `vllm/benchmarks/serve.py`, `vllm/benchmarks/sweep/serve.py` and
`vllm/config/speculative.py`; `docs/benchmarking/sweeps.md`. Every word is quoted by shlex, every
object written by json, so a name from a file stays a name.
"""

import json
import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from lib.errors import InputError
from lib.evidence.schedule import Schedule
from lib.run import LoadKind, Study
from lib.serving.setup import (
    ArmSetup,
    Blanks,
    Command,
    arm_setup,
    is_synthetic,
    on_a_command_line,
    recorded,
    recorded_length,
    speculative_config,
)

ADDRESS = "http://127.0.0.1:8000"
RESULTS = "results"
# Prompts: eight waves of the load, never under forty; a request rate is held for a minute.
WAVES, FEWEST_PROMPTS, SECONDS_OF_A_RATE = 8, 40, 60
WARM_UPS = 16
# `--dataset-name` of vllm bench serve; each but random reads a file or a name from the hub.
DATASETS = ("sharegpt", "burstgpt", "sonnet", "hf", "custom", "prefix_repetition", "spec_bench")
WITHOUT_A_FILE = ("prefix_repetition",)
METADATA = (
    *("gpu", "gpu_count", "tensor_parallel", "data_parallel", "pipeline_parallel"),
    *("max_num_seqs", "draft_model", "temperature", "dataset"),
)
GPU_NOTE = "GPU and limits are repeated as recorded: change what differs on your machine."
IN_TURN = "Restart the server for each arm, and take the arms in turn."
RANDOM_NOTE = "Random prompts: their acceptance says nothing of real traffic."


@dataclass(frozen=True)
class Sweep:
    """`vllm bench sweep serve` and the two files that it reads."""

    command: Command
    serve_params: str
    bench_params: str


SERVE_PARAMS, BENCH_PARAMS = "serve-params.json", "bench-params.json"


def serve(study: Study, arm: ArmSetup) -> Command:
    """`vllm serve` for one arm: limits and parallelism as recorded, speculation as the arm's."""
    blanks = Blanks()
    words = [*_server(study, arm.name, blanks), *_speculation(arm, blanks)]
    return Command(f"Start vLLM, {arm.name}", shlex.join(words), blanks.listed, _arm_notes(arm))


def bench(
    study: Study, arm: ArmSetup, load: float, kind: LoadKind, runs: int = 1, first: int = 1
) -> Command:
    """`vllm bench serve` for one cell: `runs` runs, numbered from `first`.

    Raises InputError for a load that is not above 0.
    """
    blanks = Blanks()
    words = [*_client(study, arm.name, blanks), *_load_words(study, load, kind)]
    words += ["--metadata", *_metadata(study, arm)]
    stem = f"{arm.slug}-{load_slug(load, kind)}"
    text = repeated(words, ("--result-filename", stem, ".json"), runs, first)
    notes = (*_workload_notes(study, kind, not arm.is_off), IN_TURN)
    return Command(f"Measure {arm.name}", text, blanks.listed, notes)


def sweep(
    study: Study,
    arms: Sequence[str],
    loads: Sequence[float],
    kind: LoadKind,
    runs: int = 3,
    schedule: Schedule | None = None,
) -> Sweep:
    """`vllm bench sweep serve` for arms × loads, one server an arm.

    Raises InputError without an arm or a load, or for a load that is not above 0.
    """
    if not arms or not loads:
        raise InputError("sweep: at least one arm and one load")
    blanks = Blanks()
    setups = [arm_setup(study, name, schedule) for name in arms]
    servers = [_server(study, s.name, blanks) for s in setups]
    shared = [] if len({tuple(s) for s in servers}) > 1 else servers[0]
    rows = []
    for setup, server in zip(setups, servers, strict=True):
        row: dict[str, object] = {"_benchmark_name": setup.name}
        if not shared:
            row |= _as_parameters(server[3:])
        if config := speculative_config(setup, blanks):
            row["speculative_config"] = config
        rows.append(row)
    client = [*_client(study, arms[-1], blanks), "--metadata", *_shared_metadata(study)]
    words = ["vllm", "bench", "sweep", "serve"]
    words += ["--serve-cmd", shlex.join(shared or servers[0][:3])]
    words += ["--bench-cmd", shlex.join(client if client[-1] != "--metadata" else client[:-1])]
    words += ["--serve-params", SERVE_PARAMS, "--bench-params", BENCH_PARAMS]
    words += ["--num-runs", str(max(1, runs)), "-o", RESULTS]
    bench_rows = [_load_parameters(study, load, kind) for load in loads]
    notes = [*_workload_notes(study, kind, any(not s.is_off for s in setups))]
    notes += [n for s in setups for n in _arm_notes(s) if n not in notes]
    return Sweep(
        Command("Sweep", shlex.join(words), blanks.listed, tuple(notes)),
        json.dumps(rows, indent=2, ensure_ascii=False),
        json.dumps(bench_rows, indent=2),
    )


def prompts_for(study: Study, load: float, kind: LoadKind) -> int:
    """Requests of a run: as recorded at that load, else enough waves of it."""
    if not load > 0:
        raise InputError(f"load = {load}: above 0 is allowed")
    here = [r.num_prompts for r in study.runs if r.offered_load == load and r.load_kind is kind]
    stated = [n for n in here if n]
    if stated:
        return max(stated)
    if math.isinf(load):
        return 1000
    waves = SECONDS_OF_A_RATE if kind is LoadKind.REQUEST_RATE else WAVES
    return max(FEWEST_PROMPTS, math.ceil(waves * load))


def repeated(words: Sequence[str], named: tuple[str, str, str], runs: int, first: int = 1) -> str:
    """One command, or a loop of several that number their result files.

    `named` is the option that names the result, its value's beginning and its end.
    """
    option, stem, end = named
    if runs <= 1:
        return shlex.join([*words, option, f"{stem}-r{first}{end}"])
    file = f'{shlex.quote(stem)}-r"$run"{end}'
    last = first + runs - 1
    return f"for run in $(seq {first} {last}); do {shlex.join(words)} {option} {file}; done"


def load_slug(load: float, kind: LoadKind) -> str:
    """A load as part of a file name: `c8` in flight, `rate4` requests a second."""
    text = "inf" if math.isinf(load) else f"{load:g}"
    return f"rate{text}" if kind is LoadKind.REQUEST_RATE else f"c{text}"


def metadata_of(study: Study, arm: ArmSetup) -> dict[str, str]:
    """What a result should carry of its set-up, under names that the import reads back."""
    found = {"arm": arm.name}
    if arm.k is not None and not arm.is_off:
        found["num_speculative_tokens"] = str(arm.k)
    for name in METADATA:
        if arm.is_off and name == "draft_model":
            continue
        value = recorded(study, arm.name, name)
        if value is not None and on_a_command_line(str(value)):
            found[name] = f"{value:g}" if isinstance(value, float) else str(value)
    return found


def _server(study: Study, arm: str, blanks: Blanks) -> list[str]:
    words = ["vllm", "serve", blanks.fill(recorded(study, arm, "target"), "MODEL")]
    options = (
        ("--revision", "target_revision"),
        ("--max-num-seqs", "max_num_seqs"),
        ("--tensor-parallel-size", "tensor_parallel"),
        ("--pipeline-parallel-size", "pipeline_parallel"),
        ("--data-parallel-size", "data_parallel"),
        ("--max-cudagraph-capture-size", "graph_max_batch"),
    )
    for option, name in options:
        value = recorded(study, arm, name)
        if value is not None and on_a_command_line(str(value)):
            words += [option, str(value)]
    caching = recorded(study, arm, "prefix_caching")
    if caching is not None:
        words.append(f"--{'' if caching else 'no-'}enable-prefix-caching")
    return words


def _as_parameters(options: Sequence[str]) -> dict[str, object]:
    """Options of a server as a row of the sweep's file: a word without a value is a switch."""
    found: dict[str, object] = {}
    at = 0
    while at < len(options):
        name = options[at].removeprefix("--")
        following = options[at + 1] if at + 1 < len(options) else "--"
        if following.startswith("--"):
            found[name.removeprefix("no-").replace("-", "_")] = not name.startswith("no-")
            at += 1
        else:
            found[name.replace("-", "_")] = int(following) if following.isdecimal() else following
            at += 2
    return found


def _speculation(arm: ArmSetup, blanks: Blanks) -> list[str]:
    config = speculative_config(arm, blanks)
    return ["--speculative-config", json.dumps(config, ensure_ascii=False)] if config else []


def _client(study: Study, arm: str, blanks: Blanks) -> list[str]:
    words = ["vllm", "bench", "serve", "--base-url", ADDRESS]
    words += ["--model", blanks.fill(recorded(study, arm, "target"), "MODEL")]
    words += _dataset(study, arm, blanks)
    words += ["--temperature", _number(recorded(study, arm, "temperature"), "TEMPERATURE", blanks)]
    top_p = recorded(study, arm, "top_p")
    words += ["--top-p", f"{top_p:g}"] if top_p is not None else []
    words += ["--seed", str(recorded(study, arm, "seed") or 0), "--num-warmups", str(WARM_UPS)]
    words += ["--percentile-metrics", "ttft,tpot,itl,e2el", "--metric-percentiles", "50,90,95,99"]
    return [*words, "--save-result", "--result-dir", RESULTS]


def _dataset(study: Study, arm: str, blanks: Blanks) -> list[str]:
    """The prompts: random ones of the recorded lengths, a dataset vLLM knows, or a file."""
    name = recorded(study, arm, "dataset")
    if is_synthetic(name):
        lengths = [
            str(blanks.fill(recorded_length(study, field), blank))
            for field, blank in (("input_len", "INPUT_LEN"), ("output_len", "OUTPUT_LEN"))
        ]
        words = ["--dataset-name", "random", "--input-len", lengths[0]]
        return [*words, "--output-len", lengths[1], "--ignore-eos"]
    bare = (name or "").casefold().replace("-", "_").replace(" ", "_")
    known = bare if bare in DATASETS else "custom"
    words = ["--backend", "openai-chat", "--endpoint", "/v1/chat/completions"]
    words += ["--dataset-name", known]
    if known not in WITHOUT_A_FILE:
        words += ["--dataset-path", blanks.fill(None, "DATASET_FILE")]
    return words


def _load_words(study: Study, load: float, kind: LoadKind) -> list[str]:
    words = ["--num-prompts", str(prompts_for(study, load, kind))]
    option = "--request-rate" if kind is LoadKind.REQUEST_RATE else "--max-concurrency"
    return [*words, option, "inf" if math.isinf(load) else f"{load:g}"]


def _load_parameters(study: Study, load: float, kind: LoadKind) -> dict[str, object]:
    value: object = "inf" if math.isinf(load) else int(load) if load == int(load) else load
    name = "request_rate" if kind is LoadKind.REQUEST_RATE else "max_concurrency"
    return {name: value, "num_prompts": prompts_for(study, load, kind)}


def _metadata(study: Study, arm: ArmSetup) -> list[str]:
    return [f"{name}={value}" for name, value in metadata_of(study, arm).items()]


def _shared_metadata(study: Study) -> list[str]:
    """What every arm of a sweep shares: one client command serves them all."""
    names = [n for n in METADATA if n != "draft_model"]
    shared = {name: v for name in names if (v := _one(study, name)) is not None}
    return [f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in shared.items()]


def _one(study: Study, name: str) -> object:
    found = {v for r in study.runs if (v := getattr(r, name)) is not None}
    value = found.pop() if len(found) == 1 else None
    return value if value is not None and on_a_command_line(str(value)) else None


def _number(value: float | None, placeholder: str, blanks: Blanks) -> str:
    return str(blanks.fill(None if value is None else f"{value:g}", placeholder))


def _arm_notes(arm: ArmSetup) -> tuple[str, ...]:
    notes = []
    if arm.k == 0:
        notes.append("K = 0 is a schedule of zeros: the drafter is loaded and nothing is verified.")
    if arm.name.endswith(":schedule"):
        notes.append("A schedule is measured as its own arm, never assumed from the others.")
    return tuple(notes)


def _workload_notes(study: Study, kind: LoadKind, drafting: bool) -> tuple[str, ...]:
    notes = []
    datasets = sorted({r.dataset for r in study.runs if r.dataset})
    if drafting and any(is_synthetic(d) for d in datasets):
        notes.append(RANDOM_NOTE)
    named = ", ".join(d for d in datasets if not is_synthetic(d))
    if named:
        notes.append(f"The study's prompts: {named}.")
    elif not datasets:
        notes.append("The study does not record its prompts: take the same for both arms.")
    if kind is LoadKind.BATCH:
        notes.append("A static batch is held here as that many requests in flight.")
    if any(r.gpu for r in study.runs):
        notes.append(GPU_NOTE)
    return tuple(notes)
