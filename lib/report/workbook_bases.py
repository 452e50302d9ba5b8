"""The sheet of token bases: the same bill per output, weighted and total token, all live."""

from collections.abc import Callable, Sequence

from lib.money.bases import TokenPrices, token_prices
from lib.report.cells import Book
from lib.report.dossier import Dossier
from lib.report.workbook_results import SheetPair
from lib.report.workbook_runs import Column, table, titled_sheet

BASES = "Bases"
# What a price per output token is divided by, and what else must then be known.
DIVISORS = {
    "output": ("1", ""),
    "weighted": ("(1+input_weight*{ratio})", ',{ratio}="",input_weight=""'),
    "total": ("(1+{ratio})", ',{ratio}=""'),
}


def _recorded(p: SheetPair) -> str | None:
    """Input tokens per output token from the counts of the runs, else from their mean lengths."""
    runs = (*p.row.off.runs, *p.row.on.runs)
    if p.row.input_per_output is None:
        return None
    counted = all(r.input_tokens is not None and r.output_tokens for r in runs)
    keys = ("input_tokens", "tokens") if counted else ("input_len", "output_len")
    over, under = ("+".join(f"SUM({cells})" for cells in p.runs(key)) for key in keys)
    return f"({over})/({under})"


def _ratio(p: SheetPair) -> str:
    return _recorded(p) or 'IF(input_per_output="","",input_per_output)'


def _prices(d: Dossier, p: SheetPair, side: str) -> TokenPrices | None:
    price = getattr(p.row, side).priced.price
    ratio = d.input_per_output(p.row)
    if p.refused or price is None or ratio is None:
        return None
    return token_prices(price, ratio, d.value("input_weight"))


def _price(side: str, basis: str) -> Callable[[Dossier, SheetPair], float | None]:
    def value(d: Dossier, p: SheetPair) -> float | None:
        prices = _prices(d, p, side)
        if basis == "output" and not p.refused:
            return p.price(side)
        found = None if prices is None else getattr(prices, basis)
        return None if found is None else float(found.value)

    return value


def _divided(side: str, basis: str) -> Callable[[Dossier, SheetPair], str | None]:
    def formula(d: Dossier, p: SheetPair) -> str | None:
        if p.refused:
            return None
        price = p.cell(side, "price")
        by, missing = DIVISORS[basis]
        return f'IF(OR({price}=""{missing}),"",{price}/{by})'

    return formula


def _column(side: str, basis: str) -> Column:
    words = {"off": "without", "on": "with"}[side]
    head = f"$ per 1M {basis} tokens, {words}"
    return Column(f"{basis}_{side}", head, "money", _price(side, basis), _divided(side, basis), 14)


BASES_COLUMNS = (
    Column("arm", "arm", "text", lambda d, p: p.row.label, width=22),
    Column("load", "load", "plain", lambda d, p: p.row.ratio.load, width=8),
    Column(
        "ratio",
        "input tokens per output token",
        "log",
        lambda d, p: d.input_per_output(p.row),
        lambda d, p: _ratio(p),
        14,
    ),
    *(_column(side, basis) for basis in DIVISORS for side in ("off", "on")),
)


def bases(book: Book, dossier: Dossier, pairs: Sequence[SheetPair]) -> None:
    """Both prices of each pair on each token basis."""
    sheet = titled_sheet(
        book,
        BASES,
        BASES_COLUMNS,
        "The same bill over other tokens",
        "Divided by 1 + weight × input tokens per output token; total tokens weigh 1. Compare only "
        "prices with the same label.",
    )
    table(sheet, BASES_COLUMNS, [(dossier, p) for p in pairs])
