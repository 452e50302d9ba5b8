"""The command that runs a benchmark and records the GPUs beside it."""

from pathlib import Path
from typing import Annotated

import typer

from lib.cli.output import one_line_errors


@one_line_errors
def record_command(
    command: Annotated[list[str], typer.Argument(help="The benchmark and its arguments.")],
    out: Annotated[Path, typer.Option("--out", help="The record: a new file, JSON lines.")],
    gpus: Annotated[
        str | None,
        typer.Option("--gpus", help="UUIDs, separated by commas; every GPU of this host if none."),
    ] = None,
    every: Annotated[float, typer.Option("--every", help="Seconds between two samples.")] = 1.0,
) -> None:
    """Run a benchmark with memory, power and energy of the GPUs recorded beside it.

    What it reads, prints and returns is the benchmark's own. Import the record with its results.
    """
    from lib.probe.record import record

    uuids = [u.strip() for u in (gpus or "").split(",") if u.strip()]
    status = record(command, out, uuids, every, lambda line: typer.echo(line, err=True))
    raise typer.Exit(status)
