"""The price on the command line: of typed figures, or of a study, with files for a reviewer."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lib.cli.output import JsonFlag, one_line_errors, show
from lib.cli.studies import named_study
from lib.errors import FileError, InputError
from lib.run import Slo

if TYPE_CHECKING:
    from collections.abc import Callable

    from lib.report.dossier import Dossier

TYPED = "typed on the command line"


@one_line_errors
def price_command(
    study: Annotated[
        str | None, typer.Option("--study", help="Price this study; else figures are typed.")
    ] = None,
    usd_per_gpu_hour: Annotated[
        float | None, typer.Option(help="$ of one GPU-hour, with --study.")
    ] = None,
    gpu_count: Annotated[int | None, typer.Option(help="GPUs of the whole deployment.")] = None,
    usd_per_hour: Annotated[
        float | None, typer.Option(help="$ per hour of the whole deployment, without --study.")
    ] = None,
    tokens_per_second: Annotated[
        float | None, typer.Option(help="Measured output tok/s without, without --study.")
    ] = None,
    multiplier: Annotated[
        float | None, typer.Option(help="Measured throughput with over without.")
    ] = None,
    extra_usd_per_hour: Annotated[
        float | None, typer.Option(help="$ per hour more with it; none unless given.")
    ] = None,
    utilization: Annotated[
        float | None, typer.Option(help="Fraction of paid time in use; 1 for typed figures.")
    ] = None,
    tokens_per_day: Annotated[
        float | None, typer.Option(help="Output tokens a day, for the saving a month.")
    ] = None,
    load: Annotated[float | None, typer.Option(help="The operating load.")] = None,
    slo: Annotated[str | None, typer.Option(help="ttft_ms=500,tpot_ms=40[,percentile=p99]")] = None,
    override: Annotated[
        list[str] | None, typer.Option(help="A protocol field whose difference you override.")
    ] = None,
    accept_random: Annotated[
        bool, typer.Option("--accept-random", help="Use arms on random tokens; it is said.")
    ] = False,
    workbook: Annotated[
        Path | None, typer.Option(help="Write a workbook (.xlsx) with live formulas here.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write a self-contained HTML page here.")
    ] = None,
    tables: Annotated[
        Path | None, typer.Option(help="Write every table as CSV into this .zip.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Price a million output tokens with and without speculation, from measured throughput."""
    files = {"workbook": workbook, "report": report, "tables": tables}
    if study is None:
        if named := [f"--{name}" for name, path in files.items() if path is not None]:
            raise InputError(f"price {' '.join(named)}: give --study NAME, whose runs go into it")
        show(
            _typed(
                usd_per_hour, tokens_per_second, multiplier, extra_usd_per_hour or 0, utilization
            ),
            as_json,
        )
        return
    if not (usd_per_hour is tokens_per_second is multiplier is None):
        raise InputError(
            "price --study: tok/s and M are measured; type --usd-per-gpu-hour and --gpu-count, not "
            "--usd-per-hour, --tokens-per-second or --multiplier"
        )
    from lib.money.pricing import Rate

    asked = {name: path for name, path in files.items() if path is not None}
    _require_free(asked, force)
    rate = Rate(usd_per_gpu_hour, gpu_count, utilization, extra_usd_per_hour or 0.0)
    limits = Slo.parse(slo) if slo else None
    made = _dossier(
        study, rate, limits, load, tokens_per_day, frozenset(override or ()), accept_random
    )
    written = {name: str(path) for name, path in asked.items()}
    _write(made, asked)
    show({**_priced(made), "written": written}, as_json)


def _typed(
    usd_per_hour: float | None,
    tokens_per_second: float | None,
    multiplier: float | None,
    extra_usd_per_hour: float,
    utilization: float | None,
) -> dict[str, Any]:
    """The price of typed figures, as plain data."""
    from lib.money import cost

    if usd_per_hour is None or tokens_per_second is None or multiplier is None:
        raise InputError(
            "price: give --study NAME, or --usd-per-hour, --tokens-per-second and --multiplier"
        )
    used = 1.0 if utilization is None else utilization
    base = cost.cost_per_million(usd_per_hour, tokens_per_second, used)
    with_it = cost.speculative_cost_per_million(
        usd_per_hour, tokens_per_second, multiplier, extra_usd_per_hour, used
    )
    free = usd_per_hour == 0
    return {
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
        "utilization": used,
        "basis": "multiplier and utilization assumed as typed; utilization is 1 unless given",
    }


def _dossier(
    name: str,
    rate: Any,
    slo: Slo | None,
    load: float | None,
    tokens_per_day: float | None,
    overrides: frozenset[str],
    accept_random: bool,
) -> "Dossier":
    from lib import decision
    from lib.evidence.findings import find
    from lib.money.pricing import price_pairs
    from lib.money.scenario import Scenario
    from lib.report.dossier import Dossier, input_rows, utc_now

    found = find(named_study(name), overrides=overrides)
    priced = {
        a.label: price_pairs(found, a, rate, slo, accept_random=accept_random) for a in found.arms
    }
    now = utc_now()
    values: dict[str, float | int | None] = {
        "usd_per_gpu_hour": rate.usd_per_gpu_hour,
        "gpu_count": rate.gpu_count,
        "utilization": rate.utilization,
        "extra_usd_per_hour": rate.extra_usd_per_hour or None,
        "tokens_per_day": tokens_per_day,
    }
    limits = {f"slo_{n}": v for n, v in slo.limits.items()} if slo else {}
    chosen = Scenario.of(
        {
            **values,
            **limits,
            **({"slo_percentile": slo.percentile} if slo else {}),
            **{"study": name, "load": load, "override": sorted(overrides)},
            "random_ok": accept_random or None,
        }
    )
    here = [p for rows in priced.values() for p in rows if load is None or p.on.load == load]
    result = decision.verdict(found, load)
    schedule = "A schedule is written by the command schedule."
    return Dossier(
        found=found,
        priced=priced,
        rate=rate,
        inputs=input_rows(values, TYPED, f"{now:%Y-%m-%d}"),
        written_at=now,
        slo=slo,
        load=load,
        tokens_per_day=tokens_per_day,
        accept_random=accept_random,
        scenario=chosen.hash,
        gates=decision.gates(found, result, None, here, schedule, None, rate),
    )


def _priced(made: "Dossier") -> dict[str, Any]:
    """The price of a study, as plain data."""
    from lib.report.price_text import saving_lines
    from lib.report.tables import price_table

    sentence, estimate, pair = made.answer
    table = price_table(dict(made.priced))
    monthly = [] if pair is None else saving_lines(pair, made.tokens_per_day, made.rate.utilization)
    return {
        "study": made.found.study.name,
        "answer": sentence,
        "basis": None if estimate is None else estimate.basis.value,
        "prices": [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)],
        "saving_a_month": monthly,
        "scenario": made.scenario,
        "sha256_of_the_runs": made.digest,
        "notes": list(made.notes),
    }


def _require_free(paths: dict[str, Path], force: bool) -> None:
    taken: dict[str, str] = {}
    for name, path in paths.items():
        if os.path.isdir(path) or not os.path.isdir(path.parent):
            raise FileError(f"--{name} {path}: name a file in a folder that exists")
        if os.path.exists(path) and not force:
            raise FileError(f"--{name} {path}: it exists; name another, or --force to replace it")
        first = taken.setdefault(os.path.realpath(path), name)
        if first != name:
            raise FileError(f"--{name} {path}: --{first} goes there; name another")


def _write(made: "Dossier", paths: dict[str, Path]) -> None:
    """Build everything, then write it: a failure on the way leaves no half of it."""
    from lib.report import page, tables_zip
    from lib.report import workbook as workbooks

    builders: dict[str, Callable[[], bytes]] = {
        "workbook": lambda: workbooks.build(made, _files(made)),
        "report": lambda: page.build(made).encode(),
        "tables": lambda: tables_zip.build(made),
    }
    built = {name: builders[name]() for name in paths}
    for name, data in built.items():
        try:
            paths[name].write_bytes(data)
        except OSError as error:
            raise FileError(f"--{name} {paths[name]}: {error.strerror or error}") from None


def _files(made: "Dossier") -> dict[str, str]:
    """Names of the study's files by their digest, where the store holds it."""
    from lib.results.store import Store

    if made.found.study.read_only:
        return {}
    store = Store.open()
    try:
        return {s.sha256: s.name for s in store.sources(made.found.study.name)}
    finally:
        store.close()
