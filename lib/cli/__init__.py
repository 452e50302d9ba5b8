"""The command line: the same work without a browser.

With --json each command prints one JSON object on standard output and nothing else; messages go to
standard error. Exit status: 0 done, 1 refused (one line says why), 2 wrong usage;
`gate` 1 where a candidate regressed and 3 where nothing decides; `record` returns what the command
that it runs returns.
"""

import sys

import typer

from lib.cli.files import formats, import_command, undo
from lib.cli.fleet import fleet
from lib.cli.formulas import screen
from lib.cli.gate import gate
from lib.cli.monitor import monitor
from lib.cli.price import price_command
from lib.cli.probe import probe_command
from lib.cli.probe_servers import probe_servers
from lib.cli.rates import rates
from lib.cli.record import record_command
from lib.cli.scenarios import commands as scenario_commands
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
app.command("gate")(gate)
app.command("rates")(rates)
app.command("fleet")(fleet)
app.command("probe")(probe_command)
app.command("probe-servers")(probe_servers)
app.command("monitor")(monitor)
app.add_typer(scenario_commands, name="scenario")
# What follows the program's name is the program's.
app.command("record", context_settings={"allow_interspersed_args": False})(record_command)


def main() -> None:
    """Entry point; a closed pipe ends quietly."""
    try:
        app()
    except BrokenPipeError:
        sys.stderr.close()
