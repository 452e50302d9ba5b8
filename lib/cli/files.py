"""Commands about result files: import them, take an import back, say what is read."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from lib.cli.output import JsonFlag, OwnStudy, one_line_errors, show


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
    map_: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            help="LEAF=FIELD for a JSON or table that no reader knows, e.g. 'run.rate=output_tps'; "
            "remembered for the next file of that shape.",
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Import result files, folders and archives into a study; each file whole or not at all."""
    from lib.results.importing import import_paths
    from lib.results.store import Store

    store = Store.open()
    try:
        tell = _progress if sys.stderr.isatty() else None
        report = import_paths(
            store, paths, study, arm or [], set_ or [], tell=tell, mapping=map_ or []
        )
    finally:
        store.close()
    show(asdict(report), as_json)
    if not report.files:
        if not report.refused:
            typer.echo("error: no file found; name files, or a folder or archive of them", err=True)
        raise typer.Exit(1)


def _progress(done: int, of: int, name: str) -> None:
    """The file that is being read, on one line of a terminal."""
    sys.stderr.write(f"\r\033[K{done + 1} of {of}: {name[:60]}")
    if done + 1 == of:
        sys.stderr.write("\r\033[K")
    sys.stderr.flush()


@one_line_errors
def undo(
    study: OwnStudy,
    import_id: Annotated[
        str | None, typer.Option("--import", help="Its id, as printed by import; else the last.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Take an import back: its runs go, what they replaced returns."""
    from lib.results.store import Store

    store = Store.open()
    try:
        last = store.imports(study)[0].id
        undone = store.undo(study, import_id or last)
    finally:
        store.close()
    show({"study": study, "import_id": import_id or last, **asdict(undone)}, as_json)


@one_line_errors
def formats() -> None:
    """Print which tool and version gives which field of a run, as Markdown."""
    from lib.results.formats import markdown

    typer.echo(markdown(), nl=False)
