"""Commands about a study: where speculation pays, and the schedule that follows."""

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lib.cli.output import JsonFlag, StudyName, one_line_errors, show
from lib.errors import InputError
from lib.run import Slo

if TYPE_CHECKING:
    from lib.evidence.findings import ArmFinding, Findings
    from lib.evidence.schedule import Schedule
    from lib.run import Study


def named_study(name: str) -> Any:
    """A study by name: read-only ones without touching the store."""
    from lib.results import catalogue, published
    from lib.results.store import Store

    if name in published.studies():
        return published.study(name)
    store = Store.open()
    try:
        return catalogue.study(store, name)
    finally:
        store.close()


def comparison(found: "Findings", slo: Slo | None = None) -> dict[str, Any]:
    """A study's findings as plain data; ends censored by the measured range are in words."""
    from lib.report.sentences import crossing_lines

    return {
        "study": found.study.name,
        "basis": found.study.basis.value,
        "metric": found.metric.name,
        "baseline": found.comparison.baseline,
        "arms": [_arm(arm, slo) for arm in found.arms],
        "differences": [{**asdict(d), "text": d.text} for d in found.comparison.differences],
        "not_recorded": list(found.comparison.not_recorded),
        "unassigned_runs": len(found.comparison.unassigned),
        "notes": [
            *crossing_lines(found),
            *filter(None, [found.how]),
            *found.comparison.notes,
            *filter(None, [found.study.caveat, found.study.note]),
        ],
    }


def _arm(arm: "ArmFinding", slo: Slo | None) -> dict[str, Any]:
    from lib.money.pricing import slo_state

    cells = {c.load: c for c in arm.pairs.cells}
    finite = [p.load for p in arm.points if math.isfinite(p.load)]
    points = []
    for p in arm.points:
        low, high = p.interval() or (None, None)
        row: dict[str, Any] = {
            "load": p.load,
            "multiplier": p.multiplier,
            "low": low,
            "high": high,
            "runs": [p.n_off, p.n_on],
            "mark": p.mark(),
        }
        if slo is not None:
            cell = cells[p.load]
            row["slo"] = [slo_state(cell.off, slo), slo_state(cell.on, slo)]
        points.append(row)

    def end(value: float | None) -> float | str | None:
        if value is None or math.isfinite(value):
            return value
        return f"above {finite[-1]:g}" if value > 0 else f"below {finite[0]:g}"

    return {
        "arm": arm.arm,
        "protocol": arm.pairs.protocol,
        "load_kind": arm.pairs.load_kind.value,
        "points": points,
        "crossings": [
            {
                "between": list(c.between),
                "at": c.at,
                "low": end(c.low),
                "high": end(c.high),
                "direction": c.direction,
                "share_without": c.censored_share,
                "measure_at": c.measure_at,
            }
            for c in arm.crossover.crossings
        ],
        "outside": arm.crossover.outside,
        "without_ratio": [asdict(g) for g in arm.without_ratio],
    }


@one_line_errors
def compare(
    study: StudyName,
    metric: Annotated[str, typer.Option(help="output_tps, tpot_ms or goodput_rps.")] = "output_tps",
    slo: Annotated[str | None, typer.Option(help="ttft_ms=500,tpot_ms=40[,percentile=p99]")] = None,
    override: Annotated[
        list[str] | None,
        typer.Option(
            help="A protocol field whose difference you override; printed with the result."
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Multiplier per load, crossings and protocol differences of a study."""
    from lib.evidence.competing import GOODPUT
    from lib.evidence.findings import at_slo, find

    limits = Slo.parse(slo) if slo else None
    found = find(named_study(study), metric, frozenset(override or ()))
    if metric == GOODPUT:
        found = at_slo(found, limits, _good_rps(found.study, limits))
    show(comparison(found, limits), as_json)


@one_line_errors
def schedule(
    max_num_seqs: Annotated[int | None, typer.Option(help="The engine's --max-num-seqs.")] = None,
    study: Annotated[str | None, typer.Option("--study", help="The study to build from.")] = None,
    objective: Annotated[
        str, typer.Option(help="throughput, tpot, or goodput at the --slo.")
    ] = "throughput",
    slo: Annotated[str | None, typer.Option(help="ttft_ms=500,tpot_ms=40[,percentile=p99]")] = None,
    tail: Annotated[
        str | None, typer.Option(help="Above the measured range: off or carry the last K.")
    ] = None,
    method: Annotated[str | None, typer.Option(help="Which draft method, if several.")] = None,
    protocol: Annotated[str | None, typer.Option(help="Which protocol, if several.")] = None,
    override: Annotated[
        list[str] | None, typer.Option(help="A protocol field whose difference you override.")
    ] = None,
    runner: Annotated[str | None, typer.Option(help="vLLM's model runner: V1 or V2.")] = None,
    check: Annotated[
        str | None,
        typer.Option("--check", help="Judge this schedule, in any engine's form, or a command."),
    ] = None,
    num_speculative_tokens: Annotated[
        int | None, typer.Option(help="With --check, where the text lacks it.")
    ] = None,
    trtllm_version: Annotated[
        str | None, typer.Option(help="TensorRT-LLM's version: it decides what a key means.")
    ] = None,
    accept_random: Annotated[
        bool,
        typer.Option("--accept-random", help="Use arms on random tokens; the result says so."),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Write the engine's batch-size schedule from a study, or check one."""
    from lib.evidence import schedule as schedules
    from lib.evidence.pairing import compare as pair

    if (study is None) == (check is None):
        raise InputError("schedule: give --study NAME to build one or --check TEXT to judge one")
    if check is not None:
        _judge(check, num_speculative_tokens, max_num_seqs, trtllm_version, runner, as_json)
        return
    if max_num_seqs is None:
        raise InputError("schedule --study: --max-num-seqs N is needed")
    if objective not in schedules.OBJECTIVES:
        raise InputError(f"objective {objective!r}: one of {', '.join(schedules.OBJECTIVES)}")
    found = named_study(str(study))
    limits = Slo.parse(slo) if slo else None
    built = schedules.build(
        pair(found, frozenset(override or ()), schedules.OBJECTIVES[objective]),
        max_num_seqs,
        objective,
        tail=tail,
        method=method,
        protocol=protocol,
        slo=limits,
        good_rps=_good_rps(found, limits) if objective == "goodput" else None,
        runner=runner,
        accept_random=accept_random,
    )
    show(_written(built, trtllm_version), as_json)


def _written(built: "Schedule", trtllm_version: str | None) -> dict[str, Any]:
    """A schedule as plain data, with its evidence and the arms that would prove it."""
    from lib.evidence import trtllm_schedule
    from lib.evidence.three_arms import proof_of
    from lib.report.schedule_text import verdict

    blocked = [built.blocked_export] if built.blocked_export else []
    proof = proof_of(built)
    written: dict[str, Any] = {
        "num_speculative_tokens": built.num_speculative_tokens,
        "num_speculative_tokens_per_batch_size": None if blocked else built.ranges,
        "tail_unmeasured": built.tail_unmeasured,
        "verdict": verdict(built),
        "objective": built.objective,
        "best_fixed_k": built.best_fixed_k,
        "gain_over_fixed": built.gain_over_fixed,
        "tiers": [asdict(t) for t in built.tiers],
        "measure": None if proof is None else asdict(proof),
        "warnings": [*blocked, *(w for w in built.warnings if w not in blocked)],
    }
    meaning = trtllm_schedule.meaning_of(trtllm_version)
    if meaning is not None and built.ranges is not None:
        written["draft_len_schedule"] = trtllm_schedule.schedule_of(built.ranges, meaning)
    return written


def _judge(
    text: str,
    num_speculative_tokens: int | None,
    max_num_seqs: int | None,
    trtllm_version: str | None,
    runner: str | None,
    as_json: bool,
) -> None:
    """Print the engine's verdict on a pasted schedule; exit 1 where it refuses."""
    from lib.evidence.pasted_schedule import judge

    found = judge(text, num_speculative_tokens, max_num_seqs, trtllm_version, runner)
    if found.needs and not found.all_errors:
        raise InputError(f"schedule --check: {' and '.join(found.needs)} needed beside the text")
    checked = found.check
    show(
        {
            "valid": not found.all_errors,
            "engine": found.engine,
            "form": found.form,
            "errors": list(found.all_errors),
            "warnings": [*(checked.warnings if checked else ()), *found.notes],
            "effective": list(checked.effective) if checked else [],
        },
        as_json,
    )
    if found.all_errors:
        raise typer.Exit(1)


def _good_rps(found: "Study", slo: Slo | None) -> dict[str, float]:
    """Good requests per second by run id, counted from the stored per-request records."""
    from lib.results.store import Store

    if slo is None or found.read_only:
        return {}
    store = Store.open()
    try:
        counts = store.request_counts(found.name, [r.run_id for r in found.runs], slo)
    finally:
        store.close()
    seconds = {r.run_id: r.duration_s for r in found.runs}
    return {
        run_id: count.good / took
        for run_id, count in counts.items()
        if (took := seconds.get(run_id)) and count.total
    }
