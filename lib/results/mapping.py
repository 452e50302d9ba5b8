"""A person's own mapping of a custom file, remembered by the file's shape."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

from lib.results import redaction
from lib.results.cells import Rows
from lib.results.fields import suggest
from lib.results.findings import Column
from lib.results.headers import IGNORE, OUTCOMES

ALIKE = 0.8
MOST_OFFERED = 1000  # columns of a file; nobody maps more by hand


@dataclass(frozen=True)
class SavedMapping:
    """Columns or leaves sent to fields by hand once, for every file of that shape.

    `signature` stands for `leaves`, all columns of the file it was made for; `name` is that file's,
    `saved_at` is UTC without a zone.
    """

    signature: str
    leaves: tuple[str, ...]
    mapping: Mapping[str, str]
    name: str
    saved_at: datetime | None = None


def signature(leaves: Sequence[str]) -> str:
    """16 hex digits that stand for a set of columns, whatever their order."""
    text = "\n".join(sorted(set(leaves)))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def match(leaves: Sequence[str], saved: Sequence[SavedMapping]) -> SavedMapping | None:
    """The saved mapping for a file with these columns; None where none fits.

    One of exactly this shape; else the one of the most alike shape that shares four in five of all
    columns, if every column that it sends to a field is there.
    """
    own = set(leaves)
    digest = signature(leaves)
    found: tuple[float, SavedMapping] | None = None
    for candidate in saved:
        if candidate.signature == digest:
            return _for_another_file(candidate)
        other = set(candidate.leaves)
        alike = len(own & other) / max(len(own | other), 1)
        wanted = {c for c, target in candidate.mapping.items() if target != IGNORE}
        if alike >= ALIKE and wanted <= own and (found is None or alike > found[0]):
            found = alike, candidate
    return _for_another_file(found[1]) if found else None


def _for_another_file(saved: SavedMapping) -> SavedMapping:
    """The mapping without an arm that was that file's own; columns of several arms keep theirs."""
    named = {t.partition("@")[2] for t in saved.mapping.values() if "@" in t}
    if len(named) != 1:
        return saved
    return replace(saved, mapping={c: t.partition("@")[0] for c, t in saved.mapping.items()})


def offered(*tables: Rows) -> tuple[Column, ...]:
    """Every column with samples and what it may stand for, for mapping by hand.

    The first table is a document's own, the others are of the lists in it: something is suggested
    for the items of a list only where they seem to be runs, and the document itself does not.
    """
    found: list[Column] = []
    for rows in filter(None, tables):
        columns = columns_at(rows, range(len(rows[0])))
        are_runs = bool({c.suggestion for c in columns} & set(OUTCOMES))
        whole = bool({c.suggestion for c in found} & set(OUTCOMES))
        plain = bool(found) and (whole or not are_runs)
        found += [replace(c, suggestion="") for c in columns] if plain else columns
    return tuple(found[:MOST_OFFERED])


def columns_at(rows: Rows, places: Sequence[int]) -> tuple[Column, ...]:
    """The columns at these places, at most 1,000 of those that have a name.

    No secret and no text that was asked or written is a sample.
    """
    named = list(islice((p for p in places if rows[0][p].strip()), MOST_OFFERED))
    first = [[row[p] if p < len(row) else "" for p in named] for row in rows[:50]]
    redacted = redaction.redact_rows(first)
    found: list[Column] = []
    taken: set[str] = set()
    for at, name in enumerate(first[0]):
        cells = (row[at].strip()[:60] for row in redacted[1:])
        samples = dict.fromkeys(c for c in cells if c)
        header = name.strip()[:200]
        likely = suggest(header) if samples else ""
        likely = "" if likely in taken else likely
        taken.add(likely)
        found.append(Column(header, tuple(islice(samples, 3)), likely))
    return tuple(found)
