"""The command line: screen, import, compare, schedule, price.

With --json each command prints one JSON object on standard output and nothing else; messages go to
standard error. Exit status: 0 done, 1 refused (one line says why), 2 wrong usage.
"""

import json
import math
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lib.errors import DraftworthError, InputError
from lib.run import Slo
from lib.settings import SETTINGS

if TYPE_CHECKING:
    from lib.evidence.findings import ArmFinding, Findings

SETTINGS_HELP = "\n\n".join(f"{s.name} (default {s.default}): {s.help}" for s in SETTINGS)

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Does speculative decoding pay, up to which load, for how much?",
    epilog=f"Settings, read from the environment:\n\n{SETTINGS_HELP}",
)

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object, nothing else.")]
StudyName = Annotated[
    str, typer.Option("--study", help="A study of yours, or a published one (its CSV's stem).")
]


def one_line_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Turn an error of ours into one line on standard error and its exit status."""

    @wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except DraftworthError as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(2 if isinstance(error, InputError) else 1) from None

    return wrapped


def plain(value: Any) -> Any:
    """The value with what JSON lacks written out: infinity as text, NaN as null."""
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value


def show(result: dict[str, Any], as_json: bool) -> None:
    """Print the result: one JSON object, or a line a key."""
    result = plain(result)
    if as_json:
        typer.echo(json.dumps(result, ensure_ascii=False, allow_nan=False))
        return
    for key, value in result.items():
        if isinstance(value, list) and value and isinstance(value[0], dict | str):
            typer.echo(f"{key}:")
            for row in value:
                _show_row(row)
        else:
            typer.echo(f"{key}: {_short(value)}")


def _show_row(row: Any, indent: str = "  ") -> None:
    """One row on a line; the rows within it below, indented."""
    if not isinstance(row, dict):
        typer.echo(f"{indent}{row}")
        return
    inner = {k: v for k, v in row.items() if isinstance(v, list) and v and isinstance(v[0], dict)}
    flat = {k: v for k, v in row.items() if k not in inner and v not in (None, "", [])}
    typer.echo(indent + ", ".join(f"{k} {_short(v)}" for k, v in flat.items()))
    for name, rows in inner.items():
        typer.echo(f"{indent}  {name}:")
        for one in rows:
            _show_row(one, indent + "    ")


def _short(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@app.command()
@one_line_errors
def screen(
    alpha: Annotated[float, typer.Option(help="Acceptance of one draft token, 0 to 1.")],
    gamma: Annotated[int, typer.Option(help="Draft tokens a round, at least 1.")],
    c: Annotated[float, typer.Option(help="One draft step over one plain target step.")],
    max_gamma: Annotated[int, typer.Option(help="Largest gamma to search.")] = 32,
    as_json: JsonFlag = False,
) -> None:
    """Screen a drafter with the walltime theorem (low batch only; never a price)."""
    from lib.theory import walltime

    s = walltime.speedup(alpha, gamma, c)
    result: dict[str, Any] = {
        "tau": walltime.tau(alpha, gamma),
        "speedup": s,
        "break_even_c": walltime.break_even_c(alpha, gamma),
        "break_even_alpha": walltime.break_even_alpha(gamma, c),
        "best_gamma": walltime.best_gamma(alpha, c, max_gamma),
        "verdict": walltime.verdict(s).value,
        "notes": [walltime.NOTE_LOW_BATCH],
    }
    if walltime.no_gamma_wins(alpha, c):
        result["notes"].append("alpha is at most c: no gamma gives S above 1 (Corollary 3.9)")
    show(result, as_json)


@app.command("price")
@one_line_errors
def price_command(
    usd_per_hour: Annotated[float, typer.Option(help="$ per hour of the whole deployment.")],
    tokens_per_second: Annotated[float, typer.Option(help="Measured output tok/s without.")],
    multiplier: Annotated[float, typer.Option(help="Measured throughput with over without.")],
    extra_usd_per_hour: Annotated[float, typer.Option(help="$ per hour more with it.")] = 0.0,
    utilization: Annotated[float, typer.Option(help="Fraction of paid time in use.")] = 1.0,
    as_json: JsonFlag = False,
) -> None:
    """Price a million output tokens with and without speculation, from measured throughput."""
    from lib.money import cost

    base = cost.cost_per_million(usd_per_hour, tokens_per_second, utilization)
    with_it = cost.speculative_cost_per_million(
        usd_per_hour, tokens_per_second, multiplier, extra_usd_per_hour, utilization
    )
    free = usd_per_hour == 0
    show(
        {
            "base_usd_per_million": base,
            "speculative_usd_per_million": with_it,
            "saving_fraction": None
            if free
            else cost.saving_fraction(multiplier, usd_per_hour, extra_usd_per_hour),
            "break_even_extra_usd_per_hour": cost.break_even_extra_usd_per_hour(
                usd_per_hour, multiplier
            ),
            "break_even_multiplier": None
            if free
            else cost.break_even_multiplier(usd_per_hour, extra_usd_per_hour),
            "utilization": utilization,
            "basis": "multiplier and utilization assumed as typed; utilization is 1 unless given",
        },
        as_json,
    )


@app.command("import")
@one_line_errors
def import_command(
    paths: Annotated[list[Path], typer.Argument(help="Result files or folders.")],
    study: Annotated[str, typer.Option("--study", help="The study that receives the runs.")],
    arm: Annotated[
        list[str] | None,
        typer.Option(
            "--arm",
            help="'GLOB=off' or 'GLOB=METHOD[:K]'; matches path, file name, label; first wins.",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="field=value for what the files cannot know, e.g. gpu=H100."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Import result files into a study; each file whole or not at all."""
    from lib.results.importing import import_paths
    from lib.results.store import Store

    store = Store.open()
    try:
        report = import_paths(store, paths, study, arm or [], set_ or [])
    finally:
        store.close()
    show(asdict(report), as_json)
    if not report.files:
        raise typer.Exit(1)


def _study(name: str) -> Any:
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
    }


@app.command()
@one_line_errors
def compare(
    study: StudyName,
    metric: Annotated[str, typer.Option(help="output_tps or tpot_ms.")] = "output_tps",
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
    from lib.evidence.findings import find

    found = find(_study(study), metric, frozenset(override or ()))
    show(comparison(found, Slo.parse(slo) if slo else None), as_json)


@app.command()
@one_line_errors
def schedule(
    max_num_seqs: Annotated[int, typer.Option(help="The engine's --max-num-seqs.")],
    study: Annotated[str | None, typer.Option("--study", help="The study to build from.")] = None,
    objective: Annotated[str, typer.Option(help="throughput or tpot.")] = "throughput",
    tail: Annotated[
        str | None, typer.Option(help="Above the measured range: off or carry the last K.")
    ] = None,
    method: Annotated[str | None, typer.Option(help="Which draft method, if several.")] = None,
    protocol: Annotated[str | None, typer.Option(help="Which protocol, if several.")] = None,
    override: Annotated[
        list[str] | None, typer.Option(help="A protocol field whose difference you override.")
    ] = None,
    check: Annotated[
        str | None, typer.Option("--check", help="Judge this schedule as the engine would.")
    ] = None,
    num_speculative_tokens: Annotated[int | None, typer.Option(help="With --check.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Write the engine's batch-size schedule from a study, or check one."""
    from lib.evidence import engine_schedule
    from lib.evidence import schedule as schedules
    from lib.evidence.pairing import compare as pair

    if (study is None) == (check is None):
        raise InputError("schedule: give --study NAME to build one or --check JSON to judge one")
    if check is not None:
        if num_speculative_tokens is None:
            raise InputError("schedule --check: --num-speculative-tokens N is needed")
        judged = engine_schedule.check(check, num_speculative_tokens, max_num_seqs)
        show(asdict(judged), as_json)
        if not judged.valid:
            raise typer.Exit(1)
        return
    pairs = pair(_study(str(study)), frozenset(override or ()))
    built = schedules.build(
        pairs, max_num_seqs, objective, tail=tail, method=method, protocol=protocol
    )
    blocked = [built.blocked_export] if built.blocked_export else []
    show(
        {
            "num_speculative_tokens": built.num_speculative_tokens,
            "num_speculative_tokens_per_batch_size": None if blocked else built.ranges,
            "tail_unmeasured": built.tail_unmeasured,
            "warnings": [*blocked, *(w for w in built.warnings if w not in blocked)],
        },
        as_json,
    )


def main() -> None:
    """Entry point; a closed pipe ends quietly."""
    try:
        app()
    except BrokenPipeError:
        sys.stderr.close()
