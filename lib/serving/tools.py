"""The tools that a measurement can be made with, and the commands of each for one cell."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lib.errors import InputError
from lib.evidence.next_measurement import REPEATS_NEEDED, NextMeasurement
from lib.evidence.schedule import Schedule
from lib.evidence.three_arms import Proof
from lib.results.server_args import SGLANG, VLLM, engine_name
from lib.run import LoadKind, Run, Study, distinct
from lib.serving import clients, commands
from lib.serving.commands import Sweep, sweep
from lib.serving.setup import ArmSetup, Command, arm_setup

Client = Callable[[Study, ArmSetup, float, LoadKind, int, int], Command]


@dataclass(frozen=True)
class Tool:
    """A benchmark client, the server that it is pointed at, and how the import names it."""

    label: str
    serve: Callable[[Study, ArmSetup], Command]
    bench: Client
    tools: tuple[str, ...]
    engine: str = VLLM


SWEEP, ONE_CELL = "vLLM sweep", "vLLM bench serve"
TOOLS: dict[str, Tool] = {
    t.label: t
    for t in (
        Tool(ONE_CELL, commands.serve, commands.bench, ("vllm-bench-serve",)),
        Tool(
            "SGLang bench_serving",
            clients.sglang_serve,
            clients.sglang_bench,
            ("sglang-bench-serving",),
            SGLANG,
        ),
        Tool("GuideLLM", commands.serve, clients.guidellm, ("guidellm", "guidellm-csv")),
        Tool("AIPerf", commands.serve, clients.aiperf, ("aiperf",)),
    )
}
CHOICES = (SWEEP, *TOOLS)


def usual(study: Study) -> str:
    """The tool that the study was measured with, where it is one of these; else vLLM's sweep."""
    used = {r.tool for r in study.runs}
    for tool in TOOLS.values():
        if tool.label != ONE_CELL and used & set(tool.tools):
            return tool.label
    engines = {(r.engine or "").casefold() for r in study.runs}
    return "SGLang bench_serving" if engines == {"sglang"} else SWEEP


def steps(
    study: Study, one: NextMeasurement, label: str, schedule: Schedule | None = None
) -> tuple[Command, ...]:
    """Server and client commands of each arm that the measurement asks for, in order.

    Raises InputError for a tool that is not in TOOLS, or that cannot run the arm.
    """
    if label not in TOOLS:
        raise InputError(f"tool {label!r}: one of {', '.join(TOOLS)}")
    found: list[Command] = []
    for name in one.arms:
        arm = arm_setup(study, name, schedule)
        found.append(TOOLS[label].serve(study, arm))
        found += _benches(study, arm, (one.load,), one.load_kind, one.runs or 1, label)
    return tuple(found)


def proof_steps(
    study: Study, proof: Proof, arm: str, label: str, schedule: Schedule
) -> tuple[Command, Command]:
    """The server of one arm of a schedule's proof, and the client at every load, a line each.

    Raises InputError for a tool that is not in TOOLS, or that cannot run the arm.
    """
    if label not in TOOLS:
        raise InputError(f"tool {label!r}: one of {', '.join(TOOLS)}")
    study = _with_limit(study, schedule)
    setup = arm_setup(study, arm, schedule)
    serve = TOOLS[label].serve(study, setup)
    each = _benches(study, setup, proof.loads, LoadKind.CONCURRENCY, REPEATS_NEEDED, label)
    return serve, Command(
        each[0].title,
        "\n".join(c.text for c in each),
        tuple(distinct(p for c in each for p in c.placeholders)),
        tuple(distinct(n for c in each for n in c.notes)),
    )


def proof_sweep(study: Study, proof: Proof, schedule: Schedule) -> Sweep:
    """vLLM's sweep over the arms and loads of a schedule's proof."""
    return sweep(
        _with_limit(study, schedule),
        [a.name for a in proof.arms],
        proof.loads,
        LoadKind.CONCURRENCY,
        REPEATS_NEEDED,
        schedule,
    )


def sweep_for(
    study: Study,
    one: NextMeasurement,
    arms: Sequence[str] | None = None,
    loads: Sequence[float] | None = None,
    schedule: Schedule | None = None,
) -> Sweep:
    """vLLM's sweep over the measurement's cell, or over the arms and loads that are wanted."""
    return sweep(
        study,
        one.arms if arms is None else arms,
        (one.load,) if loads is None else loads,
        one.load_kind,
        one.runs or REPEATS_NEEDED,
        schedule,
    )


def mismatch(study: Study, label: str) -> str:
    """What to know where the study was measured with another tool or engine; else empty."""
    tool = TOOLS[ONE_CELL if label == SWEEP else label]
    used = sorted({r.tool for r in study.runs if r.tool})
    engines = sorted({r.engine for r in study.runs if r.engine})
    said = []
    if engines and not any(engine_name(e) == tool.engine for e in engines):
        said.append(
            f"The study's server was {', '.join(engines)}, this one is {tool.engine}: runs of "
            "another engine do not pair."
        )
    if used and not set(used) & set(tool.tools):
        said.append(
            f"The study was measured with {', '.join(used)}: runs of another tool do not pair."
            if used != ["table"]
            else "The study comes from a file that you mapped, or a table: measure it with the "
            "tool that wrote that, at the load named here; runs of another tool do not pair."
        )
    return " ".join(said)


def _benches(
    study: Study,
    arm: ArmSetup,
    loads: Sequence[float],
    kind: LoadKind,
    runs: int,
    label: str,
) -> list[Command]:
    """The client at each load; result files are numbered after the runs that are there."""
    bench = TOOLS[label].bench
    return [
        bench(study, arm, load, kind, runs, len(_runs(study, arm.name, load, kind)) + 1)
        for load in loads
    ]


def _with_limit(study: Study, schedule: Schedule) -> Study:
    """The study as the schedule's servers must be started: with its max_num_seqs."""
    limit = schedule.max_num_seqs
    return replace(study, runs=tuple(replace(r, max_num_seqs=limit) for r in study.runs))


def _runs(study: Study, arm: str, load: float, kind: LoadKind) -> list[Run]:
    return [
        r for r in study.runs if r.arm == arm and r.offered_load == load and r.load_kind is kind
    ]
