"""Commands about saved scenarios: list them, show one with what it comes to."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lib.cli.output import JsonFlag, one_line_errors, show
from lib.errors import DraftworthError, InputError

if TYPE_CHECKING:
    from lib.money.scenario import Scenario
    from lib.results.scenarios import StoredScenario
    from lib.results.store import Store

commands = typer.Typer(
    no_args_is_help=True, help="Scenarios that were saved on the price, fleet or screen page."
)


@commands.command("list")
@one_line_errors
def list_command(as_json: JsonFlag = False) -> None:
    """Every version of every saved scenario, the one saved last first."""
    from lib.results.store import Store

    store = Store.open()
    try:
        rows = store.scenarios()
    finally:
        store.close()
    show({"scenarios": [_named(row) for row in rows]}, as_json)


@commands.command("show")
@one_line_errors
def show_command(
    name: Annotated[str, typer.Argument(help="Its name, as list prints it.")],
    version: Annotated[
        int | None, typer.Option("--version", help="Which version; else the last.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """A scenario's parameters, its link and what a million tokens costs at it."""
    from lib.money.scenario import Scenario
    from lib.results.store import Store

    store = Store.open()
    try:
        row = _find(store.scenarios(), name, version)
        scenario = Scenario.from_json(row.parameters)
        said = {
            **_named(row),
            "parameters": scenario.parameters,
            "link": f"price?{scenario.query}",
            **_result(store, scenario),
        }
    finally:
        store.close()
    show(said, as_json)


def _find(rows: "tuple[StoredScenario, ...]", name: str, version: int | None) -> "StoredScenario":
    """The version of that name, the last where none is asked for. Raises InputError."""
    named = [row for row in rows if row.name == name]
    if not named:
        known = ", ".join(dict.fromkeys(row.name for row in rows)) or "none is saved yet"
        raise InputError(f"scenario {name!r}: there is none; saved are: {known}")
    found = [row for row in named if version in (None, row.version)]
    if not found:
        raise InputError(f"scenario {name!r}: its versions are 1 to {named[0].version}")
    return found[0]


def _named(row: "StoredScenario") -> dict[str, Any]:
    return {
        "name": row.name,
        "version": row.version,
        "hash": row.hash,
        "note": row.note,
        "by": row.by,
        "saved_at": f"{row.at.isoformat(timespec='seconds')}Z",
    }


def _result(store: "Store", scenario: "Scenario") -> dict[str, Any]:
    """What the price page says at the scenario; only the reason where its study is not here."""
    from lib.evidence.findings import find
    from lib.money.rates import book
    from lib.report.scenario_text import kind_of, outcome, rate_source
    from lib.results import catalogue

    try:
        study = catalogue.study(store, scenario.study)
        found = find(study, "output_tps", scenario.overrides, kind_of(scenario, study))
        source = rate_source(scenario, book(store.rates()), datetime.now(UTC).date())
        result = outcome(scenario, found, source)
    except DraftworthError as error:
        return {"answer": str(error)}
    prices = None if result.pair is None else result.pair.complete
    said: dict[str, Any] = {"answer": result.sentence}
    if result.caveat:
        said["caveat"] = result.caveat
    if result.rate_source:
        said["usd_per_gpu_hour_from"] = result.rate_source
    if result.pair is None or prices is None:
        return said
    for key, value in zip(("base", "speculative", "saving"), prices, strict=True):
        unit = "_fraction" if key == "saving" else "_usd_per_million"
        said[f"{key}{unit}"] = value.value
        said[f"{key}{unit}_interval"] = None if value.low is None else [value.low, value.high]
    said |= {"arm": result.pair.on.arm, "basis": str(prices[1].basis)}
    if (month := result.monthly) is not None:
        said["saving_usd_per_month"] = {
            "hours_scale": month.hours_scale_usd,
            "whole_servers": month.whole_servers_usd,
            "one_server": month.one_server_usd,
        }
    return said
