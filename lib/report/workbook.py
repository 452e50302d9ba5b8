"""The price as a workbook: inputs, measured runs and live formulas that reproduce the page.

Change an input and every result follows as it does on the page; the values that are stored beside
the formulas are the page's own. What the page judges (a missed SLO, failed requests, consent to
random tokens) is written down, not judged again.
"""

from collections.abc import Mapping, Sequence

from lib.estimate import Basis
from lib.evidence.ratio import TIE
from lib.money.cost import HOURS_PER_MONTH, SECONDS_PER_HOUR
from lib.report import workbook_results as computed
from lib.report import workbook_runs as measured
from lib.report.cells import Book, Cell, Sheet, at
from lib.report.dossier import PRICED_INPUTS, QUESTION, Dossier
from lib.report.format import load as load_text
from lib.report.load_figures import at_load
from lib.report.workbook_bases import bases
from lib.report.workbook_monthly import monthly

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
INPUTS, ASSUMPTIONS = "Inputs", "Assumptions"
FIRST_INPUT = 4
# Constants and choices that no one types: name for formulas, value, what it is, whose word.
CONSTANTS: tuple[tuple[str, float, str, str], ...] = (
    ("seconds_per_hour", SECONDS_PER_HOUR, "seconds in an hour", "definition"),
    ("hours_per_month", HOURS_PER_MONTH, "hours in a month", "8,760 hours a year ÷ 12"),
    ("interval_level", 0.95, "level of every interval, two-sided", "convention"),
    ("tie", TIE, "one run an arm: prices this close on the log scale are not told apart", "1 %"),
)
RULES = (
    (
        "Price",
        "$ per 1M output tokens = $/h of the deployment × 1,000,000 ÷ (3600 × measured output "
        "tok/s × utilisation). Output tokens only; Bases has the other labels.",
        "definition",
    ),
    (
        "$/h of the deployment",
        "what the runs record, if they do; else $/GPU-h × GPUs, once. The typed GPU count goes "
        "before the recorded one, unless the arms record different counts. Arms that speculate "
        "add the extra cost an hour, and the drafter's own GPUs at their $/GPU-h (that of the "
        "others where it is not typed).",
        "the price page",
    ),
    (
        "Throughput of an arm",
        "exp of the mean of ln(tok/s) over its repeated runs at one load; a published mean ± sd "
        "over n runs enters with the variance (sd ÷ mean)² ÷ n (delta method).",
        "geometric mean",
    ),
    (
        "Interval of an arm's price",
        "t interval of its own runs on the log scale, n − 1 degrees of freedom; none with one run.",
        "Student's t",
    ),
    (
        "Interval of M",
        "Welch's, on the log scale, with the degrees of freedom of Satterthwaite. These are no "
        "whole number, and T.INV.2T would cut them to one: the quantile comes from BETA.INV, as "
        "t = √(df × (1 ÷ x − 1)) with x the quantile of Beta(df ÷ 2, ½).",
        "Welch 1947, Biometrika 34:28-35",
    ),
    (
        "Saving",
        "1 − price with ÷ price without; at equal $/h that is 1 − 1 ÷ M. Its interval is M's, "
        "ends swapped; where it holds 0, the prices are too close to call.",
        "definition",
    ),
    (
        "Break-even",
        "M at which both prices are equal: $/h with ÷ $/h without. Extra $/h at which the gain is "
        "gone: $/h without × (M − 1).",
        "definition",
    ),
    (
        "Saving a month",
        "it depends on how the fleet is paid: hours scale with tokens; whole servers stay on; one "
        "server stays on either way; capacity is committed, and what is freed is room.",
        "the price page",
    ),
    (
        "Crossing and derived points",
        "a load that was measured in one arm alone has no row here: only measured points are "
        "priced.",
        "the compare page",
    ),
)


def build(dossier: Dossier, files: Mapping[str, str] | None = None) -> bytes:
    """The workbook's bytes. `files` gives the name of a source file by its SHA-256, where known."""
    book = Book()
    summary = book.sheet("Summary", [28, 68], wide=False)
    _inputs(book, dossier)
    _assumptions(book, dossier)
    places = measured.runs(book, dossier, files or {})
    placed = measured.arms(book, dossier, places)
    pairs = computed.results(book, dossier, placed, places)
    monthly(book, dossier, pairs)
    bases(book, dossier, pairs)
    _summary(summary, dossier, pairs)
    book.properties(
        title=f"Price of {dossier.found.study.name}",
        comments=f"scenario {dossier.scenario or 'no id'}, runs {dossier.digest}",
        created=dossier.written_at.replace(tzinfo=None),
    )
    return book.close()


def _summary(sheet: Sheet, dossier: Dossier, pairs: Sequence[computed.SheetPair]) -> None:
    sheet.text(0, 0, QUESTION, "title")
    sentence, estimate, _ = dossier.answer
    found = dossier.found
    facts: list[tuple[str, str]] = [
        ("Answer when written", sentence),
        ("Basis", f"{estimate.basis}: {estimate.source}" if estimate else "nothing is priced"),
        ("Derivation", estimate.how if estimate else ""),
        ("Study", found.study.title or found.study.name),
        ("", found.study.heading),
        ("Citation", " ".join(filter(None, (found.study.citation, found.study.url)))),
        (
            "Operating load",
            "not named" if dossier.load is None else at_load(dossier.load, found),
        ),
        ("Service level", dossier.slo.text if dossier.slo else "SLO unknown: none was named"),
        ("Price dates", dossier.price_dates),
        ("Scenario", dossier.scenario or "no id"),
        ("SHA-256 of the runs", dossier.digest),
        ("Written", f"{dossier.written_at:%Y-%m-%d %H:%M} UTC"),
    ]
    row = 2
    for label, text in facts:
        if text:
            sheet.text(row, 0, label)
            sheet.text(row, 1, text, "wrapped")
            row += 1
    row = _now(sheet, row + 1, dossier, pairs)
    for heading, lines in (("Notes", dossier.notes), ("How to read it", _how_to())):
        sheet.text(row, 0, heading, "head")
        sheet.text(row, 1, "", "head")
        for line in lines:
            row += 1
            sheet.text(row, 1, line, "wrapped")
        row += 2


def _now(sheet: Sheet, row: int, dossier: Dossier, pairs: Sequence[computed.SheetPair]) -> int:
    """The answer's figures, live; the row after them."""
    _, _, answered = dossier.answer
    index = next((i for i, p in enumerate(pairs) if p.row.pair is answered), None)
    if index is None or answered is None:
        return row
    sheet.row(row, ["Now, from the inputs", f"{answered.on.arm} at {load_text(answered.on.load)}"])
    place = measured.TOP + 1 + index
    entry = (dossier, pairs[index])
    for column in computed.RESULT_COLUMNS:
        if column.formula is None or column.style in ("log", "text"):
            continue
        row += 1
        sheet.text(row, 0, column.head)
        cell = at(computed.RESULTS, place, measured.column_of(computed.RESULT_COLUMNS, column.key))
        style = f"{column.style}-left"
        sheet.formula(row, 1, f'IF({cell}="","",{cell})', column.value(*entry), style)
    return row + 2


def _how_to() -> tuple[str, ...]:
    return (
        "Yellow cells on Inputs may be changed: Arms, Results, Monthly and Bases follow.",
        "Runs holds what was measured; Arms turns the runs of one arm at one load into a "
        "throughput and a price; Results sets each arm against off; Monthly values the difference; "
        "Bases divides the same bill by other tokens.",
        "Every number on these four is a formula: select it to see what it rests on.",
        "Assumptions says why each formula is as it is, and on whose word.",
        "Whether a load met the SLO, and why one has no price, was judged when this was written.",
    )


def _inputs(book: Book, dossier: Dossier) -> None:
    sheet = book.sheet(INPUTS, [30, 16, 24, 12, 70, 14])
    sheet.text(0, 0, "Inputs", "title")
    sheet.text(
        1,
        0,
        "Yellow cells enter the formulas and may be changed; an empty one is not typed, and what "
        "needs it stays empty.",
    )
    sheet.row(FIRST_INPUT - 1, ["label", "value", "unit", "basis", "source", "as of"])
    sheet.freeze(FIRST_INPUT)
    for i, one in enumerate(dossier.inputs):
        row = FIRST_INPUT + i
        sheet.text(row, 0, one.label)
        styles = ("input", "input-percent") if one.key in PRICED_INPUTS else ("plain", "percent")
        sheet.put(row, 1, one.value, styles[one.unit.startswith("%")])
        sheet.text(row, 2, one.unit)
        sheet.text(row, 3, one.basis if one.value is not None else "")
        sheet.text(row, 4, one.source, "wrapped")
        sheet.text(row, 5, one.dated)
        if one.key in PRICED_INPUTS:
            book.name(one.key, at(INPUTS, row, 1, fixed=True))
    row = FIRST_INPUT + len(dossier.inputs)
    for label, value, source in _said(dossier):
        sheet.text(row, 0, label)
        sheet.put(row, 1, value, "plain")
        sheet.text(row, 3, Basis.ASSUMED if value not in (None, "not named", "none") else "")
        sheet.text(row, 4, source, "wrapped")
        row += 1


def _said(dossier: Dossier) -> list[tuple[str, Cell, str]]:
    """What a person said beside the numbers."""
    overridden = sorted({d.field for d in dossier.found.comparison.differences if d.overridden})
    return [
        (
            "Operating load",
            "not named" if dossier.load is None else dossier.load,
            "chosen from the measured loads",
        ),
        (
            "Service level",
            dossier.slo.text if dossier.slo else "not named",
            "as typed; the runs' own percentiles are judged by it",
        ),
        ("Overridden differences", ", ".join(overridden) or "none", "as stated by a person"),
        ("Stated equal", ", ".join(sorted(dossier.stated)) or "none", "as stated by a person"),
    ]


def _assumptions(book: Book, dossier: Dossier) -> None:
    sheet = book.sheet(ASSUMPTIONS, [30, 14, 90, 44])
    sheet.text(0, 0, "Assumptions", "title")
    sheet.text(1, 0, "What the figures rest on beside the inputs and the measured runs.")
    sheet.row(3, ["what", "value", "meaning", "source"])
    sheet.freeze(4)
    row = 4
    for name, value, meaning, source in CONSTANTS:
        sheet.text(row, 0, name)
        sheet.put(row, 1, value, "plain")
        sheet.text(row, 2, meaning, "wrapped")
        sheet.text(row, 3, source, "wrapped")
        book.name(name, at(ASSUMPTIONS, row, 1, fixed=True))
        row += 1
    for what, meaning, source in RULES:
        sheet.text(row, 0, what)
        sheet.text(row, 2, meaning, "wrapped")
        sheet.text(row, 3, source, "wrapped")
        row += 1
    if dossier.found.study.citation:
        sheet.text(row, 0, "Measured by")
        sheet.text(row, 2, dossier.found.study.title, "wrapped")
        sheet.text(row, 3, dossier.found.study.citation, "wrapped")
