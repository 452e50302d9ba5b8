"""The sheet of results: multipliers, prices, savings and break-evens, all live."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from scipy.special import stdtrit

from lib.evidence.ratio import difference
from lib.report.cells import Book, at, column_letter
from lib.report.dossier import Dossier, PairRow, Side
from lib.report.price_text import TOO_CLOSE
from lib.report.workbook_runs import (
    ARM_COLUMNS,
    ARMS,
    RUN_COLUMNS,
    RUNS,
    Column,
    column_of,
    price_part,
    table,
    titled_sheet,
)

RESULTS = "Results"
LEVEL = 0.95


@dataclass(frozen=True)
class SheetPair:
    """A pair with the rows of its sides on the Arms sheet; None where a side has no run."""

    row: PairRow
    off: int | None
    on: int
    places: Mapping[Side, tuple[int, int]]

    def runs(self, key: str) -> list[str]:
        """The cells of a column of Runs, of off and of the arm."""
        letter = column_letter(column_of(RUN_COLUMNS, key))
        rows = [self.places[s] for s in (self.row.off, self.row.on) if s.runs]
        return [f"{RUNS}!{letter}{first + 1}:{letter}{last + 1}" for first, last in rows]

    def price(self, side: str) -> float | None:
        """$ per 1M output tokens of a side, off or on."""
        return price_part(getattr(self.row, side), "value")

    def cell(self, side: str, key: str) -> str:
        number = self.off if side == "off" else self.on
        if number is None:
            raise ValueError(f"{self.row.label}: no run is {side}")
        return at(ARMS, number, column_of(ARM_COLUMNS, key))

    @property
    def refused(self) -> bool:
        return bool(self.row.off.refused or self.row.on.refused) or self.off is None

    @property
    def has_interval(self) -> bool:
        return self.row.ratio.se is not None

    def why(self) -> str:
        sides = (("off", self.row.off), (self.row.label, self.row.on))
        return "; ".join(f"{name} {s.refused}" for name, s in sides if s.refused)


def _standard_error(p: SheetPair) -> str | None:
    if not p.has_interval:
        return None
    return f"SQRT({p.cell('off', 'variance')}+{p.cell('on', 'variance')})"


def _welch(p: SheetPair) -> str | None:
    if not p.has_interval:
        return None
    parts = [f"{p.cell(s, 'variance')}^2/{p.cell(s, 'df')}" for s in ("off", "on")]
    return f"{{se}}^4/({'+'.join(parts)})"


def _ratio_df(p: SheetPair) -> float | None:
    off, on = p.row.off.log_tps, p.row.on.log_tps
    return None if off is None or on is None else difference(on, off)[2]


def _quantile(p: SheetPair) -> float | None:
    df = _ratio_df(p)
    return None if df is None else float(stdtrit(df, (1 + LEVEL) / 2))


def _bound(p: SheetPair, end: int) -> float | None:
    ends = p.row.ratio.interval()
    return None if ends is None else ends[end]


def _saving_end(p: SheetPair, m: str) -> str | None:
    if p.refused or not p.has_interval:
        return None
    return f'IF({{saving}}="","",1-{{with}}/{{without}}*{{m}}/{{{m}}})'


def _close(p: SheetPair) -> str:
    held = "AND({saving_low}<=0,{saving_high}>=0)"
    if not p.has_interval:
        held = "IF({saving}<1,ABS(LN(1-{saving}))<=tie,FALSE)"
    return f'IF({{saving}}="","",IF({held},"{TOO_CLOSE}",""))'


def _said(p: SheetPair, end: str) -> float | None:
    saving = p.row.pair.saving
    found: float | None = None if saving is None else getattr(saving, end)
    return found


def _from_arm(key: str, side: str) -> Callable[[Dossier, SheetPair], str | None]:
    def formula(d: Dossier, p: SheetPair) -> str | None:
        if side == "off" and p.off is None:
            return None
        return f'IF({p.cell(side, key)}="","",{p.cell(side, key)})'

    return formula


def _even(p: SheetPair) -> str | None:
    if p.off is None:
        return None
    off, on = p.cell("off", "usd"), p.cell("on", "usd")
    ratio = _utilization_ratio(p)
    return f'IF(OR({off}="",{on}=""),"",IF({off}=0,"",{on}/{off}/{ratio}))'


def _even_extra(p: SheetPair) -> str | None:
    if p.off is None:
        return None
    off = p.cell("off", "usd")
    return f'IF({off}="","",{off}*({{m}}*{_utilization_ratio(p)}-1))'


def _utilization_ratio(p: SheetPair) -> str:
    off, on = p.cell("off", "used"), p.cell("on", "used")
    return f'IF(OR({off}="",{on}=""),1,{on}/{off})'


RESULT_COLUMNS = (
    Column("arm", "arm", "text", lambda d, p: p.row.label, width=22),
    Column("load", "load", "plain", lambda d, p: p.row.ratio.load, width=8),
    Column(
        "m",
        "M, throughput with ÷ without",
        "ratio",
        lambda d, p: p.row.ratio.multiplier,
        lambda d, p: (
            f"EXP({p.cell('on', 'mean')}-{p.cell('off', 'mean')})"
            if p.off is not None
            else f"EXP({p.cell('on', 'mean')})"
        ),
        14,
    ),
    Column(
        "se",
        "standard error of ln M",
        "log",
        lambda d, p: p.row.ratio.se,
        lambda d, p: _standard_error(p),
        14,
    ),
    Column(
        "df",
        "degrees of freedom (Welch)",
        "log",
        lambda d, p: _ratio_df(p),
        lambda d, p: _welch(p),
        14,
    ),
    Column(
        "t",
        "t quantile, two-sided",
        "log",
        lambda d, p: _quantile(p),
        lambda d, p: (
            "SQRT({df}*(1/BETA.INV(1-interval_level,{df}/2,0.5)-1))" if p.has_interval else None
        ),
        14,
    ),
    Column(
        "m_low",
        "M, 95 % low",
        "ratio",
        lambda d, p: _bound(p, 0),
        lambda d, p: "{m}*EXP(-{t}*{se})" if p.has_interval else None,
    ),
    Column(
        "m_high",
        "M, 95 % high",
        "ratio",
        lambda d, p: _bound(p, 1),
        lambda d, p: "{m}*EXP({t}*{se})" if p.has_interval else None,
    ),
    Column(
        "without",
        "$/1M output, without",
        "money",
        lambda d, p: price_part(p.row.off, "value"),
        _from_arm("price", "off"),
    ),
    Column(
        "with",
        "$/1M output, with",
        "money",
        lambda d, p: price_part(p.row.on, "value"),
        _from_arm("price", "on"),
    ),
    Column(
        "saving",
        "saving",
        "percent",
        lambda d, p: _said(p, "value"),
        lambda d, p: (
            None
            if p.refused
            else 'IF(OR({without}="",{with}=""),"",IF({without}=0,"",1-{with}/{without}))'
        ),
    ),
    Column(
        "saving_low",
        "saving, 95 % low",
        "percent",
        lambda d, p: _said(p, "low"),
        lambda d, p: _saving_end(p, "m_low"),
    ),
    Column(
        "saving_high",
        "saving, 95 % high",
        "percent",
        lambda d, p: _said(p, "high"),
        lambda d, p: _saving_end(p, "m_high"),
    ),
    Column(
        "close",
        "told apart",
        "text",
        lambda d, p: TOO_CLOSE if p.row.pair.saving and p.row.pair.too_close else None,
        lambda d, p: None if p.refused else _close(p),
        16,
    ),
    Column(
        "even",
        "break-even M",
        "ratio",
        lambda d, p: p.row.break_evens[0],
        lambda d, p: _even(p),
    ),
    Column(
        "even_extra",
        "break-even extra, $/h",
        "money",
        lambda d, p: p.row.break_evens[1],
        lambda d, p: _even_extra(p),
    ),
    Column("slo_off", "SLO without", "text", lambda d, p: p.row.off.priced.slo, width=9),
    Column("slo_on", "SLO with", "text", lambda d, p: p.row.on.priced.slo, width=9),
    Column("why", "not priced because", "text", lambda d, p: p.why(), width=40),
)


def results(
    book: Book,
    dossier: Dossier,
    placed: Mapping[Side, int],
    places: Mapping[Side, tuple[int, int]],
) -> list[SheetPair]:
    """Each arm against off at each load: M, prices, saving, break-evens."""
    sheet = titled_sheet(
        book,
        RESULTS,
        RESULT_COLUMNS,
        "Results",
        "M is measured; its interval is Welch's on the log scale. The saving has that of M, ends "
        "swapped.",
    )
    pairs = [SheetPair(r, placed.get(r.off), placed[r.on], places) for r in dossier.rows]
    table(sheet, RESULT_COLUMNS, [(dossier, p) for p in pairs])
    return pairs
