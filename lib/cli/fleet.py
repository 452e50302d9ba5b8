"""The command about a fleet: what a day of a demand costs."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lib.cli.output import JsonFlag, StudyName, one_line_errors, show
from lib.cli.studies import named_study
from lib.errors import DraftworthError, FileError, InputError
from lib.run import LoadKind, Slo

if TYPE_CHECKING:
    from lib.money.demand import Hours
    from lib.money.fleet_day import Day


def hours_of(text: str, level: str, unit: str) -> "Hours":
    """Demand from SHAPE:VALUE, from hours as a link spells them, or from a file."""
    from lib.money import demand, demand_files

    stated = next((u for u in demand.UNITS if u == unit), None)
    if stated is None:
        raise InputError(f"--unit {unit!r}: one of {', '.join(demand.UNITS)}")
    of = next((x for x in demand.LEVELS if x == level), None)
    if of is None:
        raise InputError(f"--level {level!r}: {' or '.join(demand.LEVELS)}")
    shape, colon, value = text.partition(":")
    if colon and shape in demand.SHAPES:
        try:
            found = float(value)
        except ValueError:
            raise InputError(f"--demand {text!r}: SHAPE:VALUE, such as office:5000") from None
        return demand.shaped(shape, found, of, stated)
    if os.path.isfile(text):  # false, where pathlib raises, for hours longer than a name may be
        try:
            data = Path(text).read_bytes()
        except OSError as error:
            raise FileError(f"--demand {text}: {error.strerror or error}") from None
        return demand_files.read(Path(text).name, data, stated)
    try:
        return demand.read_spelled(text, stated)
    except InputError as error:
        raise InputError(
            f"--demand {text[:80]!r} is no file, no SHAPE:VALUE ({', '.join(demand.SHAPES)}), and "
            f"as hours: {error}"
        ) from None


@one_line_errors
def fleet(
    study: StudyName,
    demand: Annotated[
        str,
        typer.Option(help="SHAPE:VALUE (office:5000), VALUE[@LOAD][xHOURS],… or a file."),
    ],
    level: Annotated[str, typer.Option(help="A shape's VALUE: average or peak.")] = "average",
    unit: Annotated[
        str, typer.Option(help="output tok/s, requests/s or running requests.")
    ] = "output tok/s",
    output_tokens: Annotated[
        float | None, typer.Option(help="Output tokens a request, for requests/s.")
    ] = None,
    tpot_ms: Annotated[
        float | None, typer.Option(help="Mean TPOT while requests ran, for running requests.")
    ] = None,
    usd_per_gpu_hour: Annotated[float | None, typer.Option(help="$ of one GPU-hour.")] = None,
    gpu_count: Annotated[int | None, typer.Option(help="GPUs of a replica.")] = None,
    extra_usd_per_hour: Annotated[
        float, typer.Option(help="$ per hour more of a replica that speculates.")
    ] = 0.0,
    headroom: Annotated[float, typer.Option(help="Above the demand, as a fraction.")] = 0.0,
    spare: Annotated[bool, typer.Option("--spare", help="One replica more (N+1).")] = False,
    reserved: Annotated[
        bool, typer.Option("--reserved", help="The day's largest number all day.")
    ] = False,
    k0_tax: Annotated[
        float | None, typer.Option(help="How much slower K = 0 is than off, as a fraction.")
    ] = None,
    slo: Annotated[str | None, typer.Option(help="ttft_ms=500,tpot_ms=40[,percentile=p99]")] = None,
    max_num_seqs: Annotated[int | None, typer.Option(help="The engine's --max-num-seqs.")] = None,
    accept_random: Annotated[
        bool, typer.Option("--accept-random", help="Use arms on random tokens.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Replicas, GPU-hours and dollars a day of a demand: off, every arm and the schedule."""
    from lib.evidence import schedule as schedules
    from lib.evidence.findings import find, load_kinds
    from lib.money.capacity import MostRequests, capacities
    from lib.money.demand import in_tokens
    from lib.money.fleet import Rules
    from lib.money.fleet_day import day_of
    from lib.money.pricing import Rate

    if max_num_seqs is not None and max_num_seqs < 1:
        raise InputError(f"--max-num-seqs {max_num_seqs}: a whole number of at least 1")
    rules = Rules(headroom, spare, reserved)
    asked = in_tokens(hours_of(demand, level, unit), demand, output_tokens, tpot_ms)
    limits = Slo.parse(slo) if slo else None
    rate = Rate(usd_per_gpu_hour, gpu_count, None, extra_usd_per_hour)
    runs = named_study(study)
    kind = next(iter(load_kinds(runs)), None)
    metric = "tpot_ms" if kind is LoadKind.REQUEST_RATE else "output_tps"
    found = find(runs, metric, kind=kind)
    most = (
        [] if max_num_seqs is None else [MostRequests(max_num_seqs, max_num_seqs, "max_num_seqs")]
    )
    sizes = capacities(found, rate, limits, most, accept_random=accept_random)
    if sizes is None:
        raise InputError(f"study {study!r}: no load has output tok/s in both arms")
    highest = int(max(c.loads[-1] for c in sizes.curves))
    try:
        built: schedules.Schedule | str = schedules.build(
            found.comparison, max_num_seqs or max(1, highest), accept_random=accept_random
        )
    except DraftworthError as error:
        built = str(error)
    show(_as_data(day_of(sizes, asked, rules, built, k0_tax), study), as_json)


def _as_data(day: "Day", study: str) -> dict[str, Any]:
    from lib.report.fleet_text import (
        fleet_answer,
        fleet_table,
        latency_lines,
        left_out_lines,
        schedule_lines,
    )

    sentence, _ = fleet_answer(day)
    columns = fleet_table(day)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return {
        "study": study,
        "demand": day.demand.said,
        "hours": day.demand.hours,
        "answer": sentence,
        "fleets": rows,
        "notes": [*schedule_lines(day), *latency_lines(day), *left_out_lines(day)],
    }
