"""Acceptance rates as tables write them: fractions, percentages, and lengths that are neither."""

import re
from dataclasses import replace

from lib.errors import InputError
from lib.results.cells import Numbers, Rows
from lib.results.fields import Match, convert, words_of
from lib.results.headers import Understood
from lib.results.tools.table_notes import Notes

PERCENT = 0.01
LARGEST_LENGTH = 20.0  # an unnamed number above it is no accepted length, so a percentage
_WORDS = frozenset({"%", "pct", "percent", "percentage"})
_SAID = re.compile(r"%|pct|percent", re.IGNORECASE)


def in_percent(column: Understood, rows: Rows, numbers: Numbers, notes: Notes) -> Understood:
    """A column of acceptance rates with the factor of percent, where it is in percent.

    It is where its header says so, or where nothing says anything, every value is above 1 and the
    largest above 20. Anything else may be the length that TensorRT-LLM calls a rate.
    """
    if column.match.field != "accept_rate":
        return column
    texts = [row[column.place].strip() for row in rows[1:] if column.place < len(row)]
    if not _WORDS.intersection(words_of(column.header)):
        stated = [n for text in texts if (n := numbers.parse(text)) is not None]
        said = any(_SAID.search(text) for text in texts)
        if said or not stated or min(stated) <= 1 or max(stated) <= LARGEST_LENGTH:
            return column
        notes.percent_assumed.append(column.header)
    return replace(column, match=replace(column.match, factor=PERCENT))


def rate_of(text: str, match: Match, numbers: Numbers, notes: Notes) -> float | None:
    """A cell's acceptance rate, 0 to 1; None, and noted, where it is above 1.

    Raises InputError where it is no number.
    """
    number = numbers.parse(text)
    if number is None or {"x", "$"} & numbers.dressing(text):
        raise InputError(f"accept_rate = {text!r}: a fraction or a percentage is needed")
    rate = number * (PERCENT if _SAID.search(text) else match.factor)
    if rate > 1 and match.factor != PERCENT and not _SAID.search(text):
        notes.rates_above.append(text[:40])
        return None
    value: float = convert("accept_rate", rate)
    return value
