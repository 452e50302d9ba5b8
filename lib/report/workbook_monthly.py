"""The sheet of the saving a month: each pair in every reading, all live."""

from collections.abc import Callable, Sequence

from lib.money.cost import MonthlySaving, tokens_freed_per_hour
from lib.money.pricing import SECONDS_PER_DAY, saving_a_month
from lib.report.cells import Book, Cell
from lib.report.dossier import Dossier
from lib.report.workbook_results import SheetPair
from lib.report.workbook_runs import Column, table, titled_sheet

MONTHLY = "Monthly"


def _monthly(d: Dossier, p: SheetPair) -> MonthlySaving | None:
    return None if p.refused else saving_a_month(p.row.pair, d.tokens_per_day, d.rate.utilization)


def _freed(d: Dossier, p: SheetPair) -> float | None:
    found, pair, used = _monthly(d, p), p.row.pair, d.rate.utilization
    if found is None or used is None:
        return None
    off, on = (float(side.output_tps or 0) * used for side in (pair.off, pair.on))
    return tokens_freed_per_hour(off, on * pair.utilization_ratio, found.servers_off)


def _cash(d: Dossier, p: SheetPair) -> float | None:
    found = _monthly(d, p)
    return None if found is None else found.one_server_usd * found.servers_off


def _reading(name: str) -> Callable[[Dossier, SheetPair], Cell]:
    def value(d: Dossier, p: SheetPair) -> Cell:
        found = _monthly(d, p)
        reading: Cell = None if found is None else getattr(found, name)
        return reading

    return value


def _where_known(text: str) -> Callable[[Dossier, SheetPair], str | None]:
    def formula(d: Dossier, p: SheetPair) -> str | None:
        if p.refused:
            return None
        filled = text
        for side in ("off", "on"):
            filled = filled.replace(f"[usd {side}]", p.cell(side, "usd"))
            filled = filled.replace(
                f"[tps {side}]", f"({p.cell(side, 'tps')}*{p.cell(side, 'used')})"
            )
            filled = filled.replace(f"[price {side}]", p.cell(side, "price"))
        unknown = f'{p.cell("off", "price")}="",{p.cell("on", "price")}="",tokens_per_day=""'
        return f'IF(OR({unknown}),"",{filled})'

    return formula


DEMAND = "(tokens_per_day/86400)"
MONTHLY_COLUMNS = (
    Column("arm", "arm", "text", lambda d, p: p.row.label, width=22),
    Column("load", "load", "plain", lambda d, p: p.row.ratio.load, width=8),
    Column(
        "demand",
        "demand, output tok/s",
        "number",
        lambda d, p: None if _monthly(d, p) is None else (d.tokens_per_day or 0) / SECONDS_PER_DAY,
        _where_known(DEMAND),
    ),
    Column(
        "hours",
        "hours scale with tokens: saving, $/month",
        "dollars",
        _reading("hours_scale_usd"),
        _where_known("([price off]-[price on])*tokens_per_day/24*hours_per_month/1000000"),
        16,
    ),
    Column(
        "servers_off",
        "whole servers without",
        "plain",
        _reading("servers_off"),
        _where_known(f"MAX(1,ROUNDUP({DEMAND}/[tps off]-0.000000001,0))"),
        10,
    ),
    Column(
        "servers_on",
        "whole servers with",
        "plain",
        _reading("servers_on"),
        _where_known(f"MAX(1,ROUNDUP({DEMAND}/[tps on]-0.000000001,0))"),
        10,
    ),
    Column(
        "whole",
        "whole servers stay on: saving, $/month",
        "dollars",
        _reading("whole_servers_usd"),
        _where_known("hours_per_month*({servers_off}*[usd off]-{servers_on}*[usd on])"),
        16,
    ),
    Column(
        "one",
        "one server stays on either way: saving, $/month",
        "dollars",
        _reading("one_server_usd"),
        _where_known("hours_per_month*([usd off]-[usd on])"),
        16,
    ),
    Column(
        "short_off",
        "one server without falls short by",
        "percent",
        _reading("short_off"),
        _where_known(f"MAX(0,1-[tps off]/{DEMAND})"),
    ),
    Column(
        "short_on",
        "one server with falls short by",
        "percent",
        _reading("short_on"),
        _where_known(f"MAX(0,1-[tps on]/{DEMAND})"),
    ),
    Column(
        "cash",
        "capacity is committed: saving in cash, $/month",
        "dollars",
        _cash,
        _where_known("{one}*{servers_off}"),
        16,
    ),
    Column(
        "freed",
        "capacity is committed: room for more tokens an hour",
        "whole",
        _freed,
        _where_known("{servers_off}*([tps on]-[tps off])*seconds_per_hour"),
        16,
    ),
)


def monthly(book: Book, dossier: Dossier, pairs: Sequence[SheetPair]) -> None:
    """The saving a month of each pair, in its readings: it depends on how the fleet is paid."""
    sheet = titled_sheet(
        book,
        MONTHLY,
        MONTHLY_COLUMNS,
        "Saving a month, in its readings",
        "Which one holds depends on how the fleet is paid for. A server delivers its measured "
        "tok/s × utilisation.",
    )
    table(sheet, MONTHLY_COLUMNS, [(dossier, p) for p in pairs])
