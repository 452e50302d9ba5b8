"""Cells of a workbook: text that no spreadsheet runs, numbers, and formulas with their values."""

import math
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import xlsxwriter

from lib.report.format import csv_cell

MOST_CHARACTERS = 32_000  # a cell holds 32,767
LINE_POINTS = 15
Cell = str | float | int | None

FORMATS: dict[str, dict[str, Any]] = {
    "text": {"valign": "top"},
    "wrapped": {"text_wrap": True, "valign": "top"},
    "title": {"bold": True, "font_size": 16},
    "head": {"bold": True, "text_wrap": True, "valign": "top", "bottom": 1, "bg_color": "#EEF1F4"},
    "whole": {"num_format": "#,##0", "valign": "top"},
    "number": {"num_format": "#,##0.000", "valign": "top"},
    "plain": {"num_format": "General", "valign": "top"},
    "log": {"num_format": "0.000000000", "valign": "top"},
    "small": {"num_format": "0.000E+00", "valign": "top"},
    "money": {"num_format": "$#,##0.0000", "valign": "top"},
    "dollars": {"num_format": "$#,##0.00", "valign": "top"},
    "ratio": {"num_format": '0.0000"×"', "valign": "top"},
    "percent": {"num_format": "0.00%", "valign": "top"},
    "input": {
        "align": "left",
        "bg_color": "#FFF6D6",
        "border": 1,
        "border_color": "#C9B458",
        "valign": "top",
    },
    "input-percent": {
        "align": "left",
        "bg_color": "#FFF6D6",
        "border": 1,
        "border_color": "#C9B458",
        "num_format": "0.0###%",
        "valign": "top",
    },
}


def plain_text(text: str) -> str:
    """The text as a cell may hold it: no start of a formula, no lone surrogate, not too long."""
    clean = text.encode("utf-8", "replace").decode()
    if len(clean) > MOST_CHARACTERS:
        clean = f"{clean[:MOST_CHARACTERS]}…"
    return str(csv_cell(clean))


class Book:
    """A workbook in memory, without macros, links or external references."""

    def __init__(self) -> None:
        self._bytes = BytesIO()
        self._book = xlsxwriter.Workbook(
            self._bytes,
            {
                "in_memory": True,
                "strings_to_formulas": False,
                "strings_to_urls": False,
                "strings_to_numbers": False,
                "use_future_functions": True,
            },
        )
        styles = {**FORMATS, **{f"{n}-left": {**f, "align": "left"} for n, f in FORMATS.items()}}
        self._formats = {name: self._book.add_format(f) for name, f in styles.items()}

    def sheet(self, name: str, widths: list[float], *, wide: bool = True) -> "Sheet":
        """A new sheet with column widths in characters, printed one page wide."""
        made = self._book.add_worksheet(name)
        for column, width in enumerate(widths):
            made.set_column(column, column, width)
        if wide:
            made.set_landscape()
        made.set_paper(9)
        made.fit_to_pages(1, 0)
        made.set_footer("&L&A&RPage &P of &N")
        return Sheet(made, self._formats, widths)

    def name(self, name: str, reference: str) -> None:
        """Name a cell for formulas, as `Inputs!$B$4`."""
        self._book.define_name(name, f"={reference}")

    def properties(self, **fields: Any) -> None:
        """Title, comments and the time of writing."""
        self._book.set_properties(fields)

    def close(self) -> bytes:
        """The finished file."""
        self._book.close()
        return self._bytes.getvalue()


class Sheet:
    """One sheet. Rows and columns count from 0; text never becomes a formula or a link."""

    def __init__(self, sheet: Any, formats: dict[str, Any], widths: Sequence[float]) -> None:
        self._sheet, self._formats, self._widths = sheet, formats, widths
        self._lines: dict[int, int] = {}

    def text(self, row: int, column: int, text: str, style: str = "text") -> None:
        """Text as it is; one that would start a formula gets an apostrophe."""
        self._sheet.write_string(row, column, plain_text(text), self._formats[style])
        if self._formats[style].text_wrap:
            self._make_room(row, len(text) / self._widths[column])

    def _make_room(self, row: int, widths: float) -> None:
        """Not every program fits the height of a row to wrapped text when it opens a file."""
        lines = math.ceil(widths)
        if lines > self._lines.get(row, 1):
            self._lines[row] = lines
            self._sheet.set_row(row, min(lines, 20) * LINE_POINTS)

    def put(self, row: int, column: int, value: Cell, style: str = "plain") -> None:
        """A number or text; an empty cell for None. An infinite number is text."""
        if value is None:
            self._sheet.write_blank(row, column, None, self._formats[style])
        elif isinstance(value, str):
            self.text(row, column, value, style if style in ("head", "wrapped") else "text")
        elif not math.isfinite(value):
            self.text(row, column, "no limit")
        else:
            self._sheet.write_number(row, column, value, self._formats[style])

    def formula(self, row: int, column: int, text: str, value: Cell, style: str) -> None:
        """A live formula with the value that it has now; empty for None."""
        shown = "" if value is None else value
        self._sheet.write_formula(row, column, f"={text}", self._formats[style], shown)

    def row(self, row: int, texts: list[str], style: str = "head") -> None:
        """A row of texts from the first column on."""
        for column, text in enumerate(texts):
            self.text(row, column, text, style)

    def freeze(self, row: int, column: int = 0) -> None:
        """Keep the rows above and the columns left of a cell in sight, and on every print."""
        self._sheet.freeze_panes(row, column)
        self._sheet.repeat_rows(row - 1)


def at(sheet: str, row: int, column: int, *, fixed: bool = False) -> str:
    """A cell of a sheet for a formula: `Runs!H5`, or `Runs!$H$5`."""
    letter, digits = column_letter(column), row + 1
    return f"{sheet}!${letter}${digits}" if fixed else f"{sheet}!{letter}{digits}"


def column_letter(column: int) -> str:
    """`A` for 0, `AA` for 26."""
    text = ""
    left = column + 1
    while left:
        left, digit = divmod(left - 1, 26)
        text = chr(65 + digit) + text
    return text
