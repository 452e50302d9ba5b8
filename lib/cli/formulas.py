"""Commands that need no files: the theorem and the price."""

from typing import Annotated, Any

import typer

from lib.cli.output import JsonFlag, one_line_errors, show


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
