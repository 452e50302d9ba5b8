"""The command line: the same work without a browser.

With --json each command prints one JSON object on standard output and nothing else; messages go to
standard error. Exit status: 0 done, 1 refused (one line says why), 2 wrong usage.
"""

import sys

import typer

from lib.cli.files import formats, import_command, undo
from lib.cli.formulas import price_command, screen
from lib.cli.studies import compare, schedule
from lib.settings import SETTINGS

SETTINGS_HELP = "\n\n".join(f"{s.name} (default {s.default}): {s.help}" for s in SETTINGS)

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Does speculative decoding pay, up to which load, for how much?",
    epilog=f"Settings, read from the environment:\n\n{SETTINGS_HELP}",
)
app.command("screen")(screen)
app.command("price")(price_command)
app.command("import")(import_command)
app.command("undo")(undo)
app.command("formats")(formats)
app.command("compare")(compare)
app.command("schedule")(schedule)


def main() -> None:
    """Entry point; a closed pipe ends quietly."""
    try:
        app()
    except BrokenPipeError:
        sys.stderr.close()
