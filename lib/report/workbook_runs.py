"""The sheets of runs and of arms at each load: from files to $ per 1M, in live formulas."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lib.money.pricing import half_width
from lib.report.cells import Book, Cell, Sheet, at, column_letter
from lib.report.dossier import Dossier, Side
from lib.run import OFF, Run

RUNS, ARMS = "Runs", "Arms"
TOP = 3  # the row of the column heads


@dataclass(frozen=True)
class Column:
    """One column: its head, width, number format, and either a value or a formula with its value.

    Formulas name the other columns of their row in braces by key.
    """

    key: str
    head: str
    style: str
    value: Callable[..., Cell]
    formula: Callable[..., str | None] | None = None
    width: float = 12


def table(sheet: Sheet, columns: Sequence[Column], rows: Sequence[tuple[object, ...]]) -> None:
    """Heads at TOP, then a row each; each entry of `rows` is what the columns' callables take."""
    sheet.row(TOP, [c.head for c in columns])
    sheet.freeze(TOP + 1, 2)
    letters = {c.key: column_letter(i) for i, c in enumerate(columns)}
    for i, entry in enumerate(rows):
        number = TOP + 1 + i
        own = {key: f"{letter}{number + 1}" for key, letter in letters.items()}
        for j, column in enumerate(columns):
            text = None if column.formula is None else column.formula(*entry)
            if text is None:
                sheet.put(number, j, column.value(*entry), column.style)
            else:
                sheet.formula(number, j, text.format_map(own), column.value(*entry), column.style)


def titled_sheet(book: Book, name: str, columns: Sequence[Column], title: str, said: str) -> Sheet:
    sheet = book.sheet(name, [c.width for c in columns])
    sheet.text(0, 0, title, "title")
    sheet.text(1, 0, said)
    return sheet


def column_of(columns: Sequence[Column], key: str) -> int:
    return next(i for i, c in enumerate(columns) if c.key == key)


def _log(run: Run) -> float | None:
    value = run.output_tps or (run.multiplier if run.output_tps is None else None)
    return math.log(value) if value else None


def _per_second(run: Run) -> float | None:
    if run.output_tokens is None or not run.duration_s:
        return None
    return run.output_tokens / run.duration_s


def _file(run: Run, files: Mapping[str, str]) -> str | None:
    return files.get(run.source_sha256 or "")


RUN_COLUMNS = (
    Column("cell", "arm and load", "text", lambda s, r, f: s.name, width=22),
    Column("id", "run id", "text", lambda s, r, f: r.run_id, width=18),
    Column("arm", "arm", "text", lambda s, r, f: r.arm, width=14),
    Column("kind", "kind of load", "text", lambda s, r, f: r.load_kind, width=12),
    Column("load", "offered load", "plain", lambda s, r, f: r.offered_load, width=9),
    Column("repeat", "repeat", "plain", lambda s, r, f: r.repeat, width=7),
    Column("tps", "output tok/s", "number", lambda s, r, f: r.output_tps),
    Column(
        "ln",
        "ln of tok/s (of the ratio where there is no tok/s)",
        "log",
        lambda s, r, f: _log(r),
        lambda s, r, f: 'IF(N({tps})>0,LN({tps}),IF(AND({tps}="",N({ratio})>0),LN({ratio}),""))',
        14,
    ),
    Column("tokens", "output tokens", "whole", lambda s, r, f: r.output_tokens),
    Column("input_tokens", "input tokens", "whole", lambda s, r, f: r.input_tokens),
    Column("input_len", "input tokens a request", "number", lambda s, r, f: r.input_len),
    Column("output_len", "output tokens a request", "number", lambda s, r, f: r.output_len),
    Column("seconds", "duration, s", "number", lambda s, r, f: r.duration_s),
    Column(
        "check",
        "tokens ÷ seconds, to check tok/s",
        "number",
        lambda s, r, f: _per_second(r),
        lambda s, r, f: 'IF(AND(N({tokens})>0,N({seconds})>0),{tokens}/{seconds},"")',
        14,
    ),
    Column("gpus", "GPUs", "plain", lambda s, r, f: r.gpu_count, width=7),
    Column("usd", "$/h recorded", "money", lambda s, r, f: r.usd_per_hour),
    Column("sd", "sd of tok/s, published", "number", lambda s, r, f: r.output_tps_sd),
    Column("n", "runs behind the sd", "plain", lambda s, r, f: r.output_tps_n, width=9),
    Column("ratio", "ratio, published", "number", lambda s, r, f: r.multiplier),
    Column("completed", "requests completed", "plain", lambda s, r, f: r.completed, width=10),
    Column("failed", "failed", "plain", lambda s, r, f: r.failed, width=7),
    Column("tool", "tool", "text", lambda s, r, f: r.tool, width=14),
    Column("version", "its version", "text", lambda s, r, f: r.tool_version, width=12),
    Column(
        "started",
        "started, UTC",
        "text",
        lambda s, r, f: r.started_at.isoformat(" ", "seconds") if r.started_at else None,
        width=20,
    ),
    Column("file", "file", "text", lambda s, r, f: _file(r, f), width=26),
    Column("sha", "SHA-256 of the file", "text", lambda s, r, f: r.source_sha256, width=18),
)


def runs(book: Book, dossier: Dossier, files: Mapping[str, str]) -> dict[Side, tuple[int, int]]:
    """Every run behind a price, those of one arm and load together; their first and last row.

    `files` names the file of a digest, where known.
    """
    sheet = titled_sheet(
        book,
        RUNS,
        RUN_COLUMNS,
        "Measured runs",
        "As imported; nothing here is typed. The runs of one arm at one load stand together.",
    )
    rows: list[tuple[object, ...]] = []
    places: dict[Side, tuple[int, int]] = {}
    by_runs: dict[tuple[Run, ...], tuple[int, int]] = {}
    for side in dossier.sides:
        if side.runs not in by_runs:
            first = TOP + 1 + len(rows)
            rows += [(side, run, files) for run in side.runs]
            by_runs[side.runs] = (first, first + len(side.runs) - 1)
        places[side] = by_runs[side.runs]
    table(sheet, RUN_COLUMNS, rows)
    return places


@dataclass(frozen=True)
class _Arm:
    """A side with the cells of its runs."""

    side: Side
    first: int
    last: int

    def cell(self, key: str) -> str:
        return at(RUNS, self.first, column_of(RUN_COLUMNS, key))

    def cells(self, key: str) -> str:
        letter = column_letter(column_of(RUN_COLUMNS, key))
        return f"{RUNS}!{letter}{self.first + 1}:{letter}{self.last + 1}"

    @property
    def spread(self) -> str:
        """Where the variance comes from: the repeats, a published sd, or nothing."""
        mean = self.side.log_tps
        if mean is None or mean.variance is None:
            return ""
        reporting = [r for r in self.side.runs if r.output_tps]
        return "published" if len(reporting) == 1 else "repeats"


def _variance(a: _Arm) -> str | None:
    if a.spread == "published":
        sd, mean, n = (
            f"SUM({a.cells('sd')})",
            f"SUM({a.cells('tps')})",
            f"SUM({a.cells('n')})",
        )
        return f"({sd}/{mean})^2/{n}"
    if a.spread == "repeats":
        return f"IF(VAR({a.cells('ln')})<1E-26,0,VAR({a.cells('ln')})/{{n}})"
    return None


def _freedom(a: _Arm) -> str | None:
    if a.spread == "published":
        return f"SUM({a.cells('n')})-1"
    return "{n}-1" if a.spread == "repeats" else None


def _gpus(a: _Arm) -> str | None:
    if a.side.own_usd_per_hour is not None:
        return None
    recorded = 'IF({recorded}="","",{recorded})'
    if a.side.own_first:
        return 'IF({recorded}="",IF(gpu_count="","",gpu_count),{recorded})'
    return f'IF(gpu_count="",{recorded},gpu_count)'


ADDED = (
    "N(extra_usd_per_hour)+IF(N(drafter_gpus)=0,0,drafter_gpus*"
    'IF(drafter_usd_per_gpu_hour="",usd_per_gpu_hour,drafter_usd_per_gpu_hour))'
)
ADDED_UNKNOWN = 'AND(N(drafter_gpus)>0,usd_per_gpu_hour="",drafter_usd_per_gpu_hour="")'


def _usd_per_hour(a: _Arm) -> str:
    own = a.side.own_usd_per_hour is not None
    unknown = [] if own else ['usd_per_gpu_hour=""', '{gpus}=""']
    amount = a.cell("usd") if own else "usd_per_gpu_hour*{gpus}"
    if a.side.priced.arm != OFF:
        unknown.append(ADDED_UNKNOWN)
        amount = f"{amount}+{ADDED}"
    return f'IF(OR({",".join(unknown)}),"",{amount})' if unknown else amount


def _used(a: _Arm) -> str:
    shared = 'IF(utilization="","",utilization)'
    return shared if a.side.priced.arm == OFF else f'IF(on_utilization="",{shared},on_utilization)'


def _price(a: _Arm) -> str | None:
    if a.side.refused:
        return None
    return 'IF(OR({usd}="",{used}=""),"",{usd}*1000000/(seconds_per_hour*{tps}*{used}))'


def _end(a: _Arm, sign: str) -> str | None:
    if a.side.refused or not a.spread:
        return None
    return f'IF({{price}}="","",{{price}}*EXP({sign}{{half}}))'


def _half(a: _Arm) -> float | None:
    mean = a.side.log_tps
    return None if mean is None else half_width(mean)


def price_part(side: Side, end: str) -> float | None:
    price = side.priced.price
    found: float | None = None if price is None else getattr(price, end)
    return found


def _used_gpus(d: Dossier, a: _Arm) -> int | None:
    if a.side.own_usd_per_hour is not None:
        return None
    typed, recorded = d.rate.gpu_count, a.side.recorded_gpus
    return recorded or typed if a.side.own_first else typed or recorded


def _mean(a: _Arm, name: str) -> float | None:
    found = a.side.log_tps
    value: float | None = None if found is None else getattr(found, name)
    return value


def _tps(a: _Arm) -> float | None:
    mean = _mean(a, "mean")
    return None if mean is None else math.exp(mean)


ARM_COLUMNS = (
    Column("cell", "arm and load", "text", lambda d, a: a.side.name, width=22),
    Column("load", "load", "plain", lambda d, a: a.side.priced.load, width=8),
    Column(
        "n",
        "runs",
        "plain",
        lambda d, a: _mean(a, "n") and len([r for r in a.side.runs if _log(r) is not None]),
        lambda d, a: f"COUNT({a.cells('ln')})" if a.side.log_tps else None,
        7,
    ),
    Column(
        "mean",
        "mean of the logs",
        "log",
        lambda d, a: _mean(a, "mean"),
        lambda d, a: f"AVERAGE({a.cells('ln')})" if a.side.log_tps else None,
        14,
    ),
    Column(
        "variance",
        "variance of that mean",
        "small",
        lambda d, a: _mean(a, "variance"),
        lambda d, a: _variance(a),
    ),
    Column(
        "df",
        "degrees of freedom",
        "plain",
        lambda d, a: _mean(a, "df"),
        lambda d, a: _freedom(a),
        9,
    ),
    Column(
        "tps",
        "output tok/s, geometric mean (or ratio)",
        "number",
        lambda d, a: _tps(a),
        lambda d, a: "EXP({mean})" if a.side.log_tps else None,
        14,
    ),
    Column(
        "half",
        "half-width of its 95 % interval, on the log",
        "log",
        lambda d, a: _half(a),
        lambda d, a: "T.INV.2T(1-interval_level,{df})*SQRT({variance})" if a.spread else None,
        14,
    ),
    Column(
        "recorded",
        "GPUs recorded",
        "plain",
        lambda d, a: a.side.recorded_gpus,
        lambda d, a: a.cell("gpus") if a.side.recorded_gpus is not None else None,
        9,
    ),
    Column("gpus", "GPUs priced", "plain", lambda d, a: _used_gpus(d, a), lambda d, a: _gpus(a), 9),
    Column(
        "usd",
        "$/h of the deployment",
        "money",
        lambda d, a: a.side.priced.usd_per_hour,
        lambda d, a: _usd_per_hour(a),
    ),
    Column(
        "used",
        "utilisation",
        "percent",
        lambda d, a: d.rate.used(a.side.priced.arm),
        lambda d, a: _used(a),
        10,
    ),
    Column(
        "price",
        "$ per 1M output tokens",
        "money",
        lambda d, a: price_part(a.side, "value"),
        lambda d, a: _price(a),
    ),
    Column(
        "low",
        "95 % low",
        "money",
        lambda d, a: price_part(a.side, "low"),
        lambda d, a: _end(a, "-"),
    ),
    Column(
        "high",
        "95 % high",
        "money",
        lambda d, a: price_part(a.side, "high"),
        lambda d, a: _end(a, ""),
    ),
    Column(
        "basis",
        "basis",
        "text",
        lambda d, a: a.side.priced.price.basis if a.side.priced.price else d.found.study.basis,
        width=10,
    ),
    Column("slo", "SLO", "text", lambda d, a: a.side.priced.slo, width=9),
    Column("why", "not priced because", "text", lambda d, a: a.side.refused, width=40),
)


def arms(book: Book, dossier: Dossier, places: Mapping[Side, tuple[int, int]]) -> dict[Side, int]:
    """Each arm at each load: mean, interval, $/h and price; the row of each side."""
    sheet = titled_sheet(
        book,
        ARMS,
        ARM_COLUMNS,
        "Arms at each load",
        "Repeated runs become one throughput by the mean of their logs; "
        "$/1M = $/h × 1,000,000 ÷ (3600 × tok/s × utilisation).",
    )
    sides = dossier.sides
    table(sheet, ARM_COLUMNS, [(dossier, _Arm(side, *places[side])) for side in sides])
    return {side: TOP + 1 + i for i, side in enumerate(sides)}
