"""The command that needs no files: the theorem."""

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
