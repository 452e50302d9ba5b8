"""Bytes to Python values, tolerantly: JSON as tools write it, text tables as spreadsheets do."""

import codecs
import csv
import io
import json
import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile

import orjson

from lib import settings
from lib.errors import FileTooLarge, UnreadableFile
from lib.results import yaml_events

MOST_ROWS = 100_000
WRITABLE_DEPTH = 240  # orjson writes at most 254 levels
DELIMITERS = (",", ";", "\t", "|")
TEXT_BYTES = bytes(b for b in range(256) if b >= 32 or b in b"\t\n\r\f")

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
YAML_SAMPLE, MOST_LINES = 2**16, 200
_YAML_START = re.compile(r"---(\s|$)|%YAML ")
_YAML_KEY = re.compile(r"([\"']?[A-Za-z_][\w./-]*[\"']?):(?:\s|$)")
_YAML_ITEM = re.compile(r"-(\s|$)|\.\.\.\s*$|[\]}]")
_LOG_LEVEL = re.compile(r"(?i)(info|debug|warn|warning|error|trace|critical|fatal|notice):\s+\S")
_BLANKS = re.compile(r"\s*")
_LONE_SURROGATE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)

csv.field_size_limit(2**24)


@dataclass(frozen=True)
class Documents:
    """The JSON values of a file in order; `nonfinite` counts its NaN and Infinity literals.

    NaN has become None, Infinity the text "Infinity", for it can mean an unlimited load.
    """

    values: tuple[object, ...]
    nonfinite: int = 0


def decode(name: str, data: bytes) -> tuple[str, bool]:
    """Text of `data` without its byte order mark; True when the encoding had to be guessed.

    UTF-8, or what a byte order mark says, or Windows-1252 as spreadsheets write it. Raises
    UnreadableFile for anything else.
    """
    encoding = next((e for bom, e in _BOMS if data.startswith(bom)), "utf-8")
    try:
        text, guessed = data.decode(encoding), False
    except UnicodeDecodeError:
        if encoding != "utf-8" or not _looks_like_text(data):
            raise UnreadableFile(
                f"{name}: not {encoding} text; save it as UTF-8 (CSV, JSON) or as Parquet"
            ) from None
        text, guessed = data.decode("cp1252", "replace"), True
    if not text.strip("\ufeff \t\r\n"):
        raise UnreadableFile(f"{name}: the file is empty")
    if "\0" in text:
        raise UnreadableFile(
            f"{name}: holds NUL bytes, so it is binary or UTF-16 without its mark; save it as UTF-8"
        )
    return text, guessed


def _looks_like_text(data: bytes) -> bool:
    if data.translate(None, TEXT_BYTES):
        return False
    foreign = len(data.translate(None, bytes(range(128))))
    return foreign <= 0.15 * len(data)


def parse_json(name: str, data: bytes) -> Documents:
    """The JSON values of `data`: one, or several after each other (JSON lines, appended objects).

    Accepts NaN, Infinity, a byte order mark, control characters and lone surrogates in strings,
    whole numbers of any size (as floats beyond 64 bits) and repeated keys (the last one counts).
    Raises UnreadableFile for truncated or invalid JSON and for nesting deeper than
    DRAFTWORTH_JSON_DEPTH.
    """
    body = data.removeprefix(codecs.BOM_UTF8)
    documents = _whole(body)
    if documents is None:
        finite, count = _without_nonfinite(body)
        documents = (count and _whole(finite, count)) or _json_lines(finite, count)
    if documents is None:
        documents = _tolerant(name, data)
    _check_depth(name, documents.values)
    return documents


def _whole(body: bytes | bytearray, nonfinite: int = 0) -> Documents | None:
    try:
        return Documents((orjson.loads(body),), nonfinite)
    except orjson.JSONDecodeError:
        return None


def _json_lines(body: bytes | bytearray, nonfinite: int) -> Documents | None:
    """One value a line, as appending tools write it; None where that is not so."""
    lines = [line for line in body.splitlines() if line.strip()]
    try:
        values = tuple(orjson.loads(line) for line in lines) if len(lines) > 1 else ()
    except orjson.JSONDecodeError:
        return None
    return Documents(values, nonfinite) if values else None


def _without_nonfinite(body: bytes) -> tuple[bytes | bytearray, int]:
    """`body` with NaN as null and Infinity as text, where they stand outside of strings; how many.

    Counting quotes between the literals tells in from out: an escaped one is no end of a string.
    A body of 100 MB must not be held in pieces as well: they are written where they belong.
    """
    literals = (b"NaN", b"Infinity")
    places = sorted((at, word) for word in literals for at in _places(body, word))
    written, done, in_string = [], 0, False
    for at, word in places:
        between = body[done:at]
        quotes = between.replace(b"\\\\", b"").replace(b'\\"', b"").count(b'"')
        in_string ^= quotes % 2 == 1
        done = at + len(word)
        if not in_string:
            sign = b"-" if between.endswith(b"-") else b""
            text = b"null" if word == b"NaN" else b'"%b%b"' % (sign, word)
            written.append((at - len(sign), done, text))
    return (_spliced(body, written), len(written)) if written else (body, 0)


def _spliced(body: bytes, written: Sequence[tuple[int, int, bytes]]) -> bytearray:
    """`body` with these texts in the place of what lies between two positions."""
    out = bytearray(len(body) + sum(len(text) - (end - start) for start, end, text in written))
    view, done, at = memoryview(body), 0, 0
    for start, end, text in (*written, (len(body), len(body), b"")):
        for part in (view[done:start], text):
            out[at : at + len(part)] = part
            at += len(part)
        done = end
    return out


def _places(body: bytes, word: bytes) -> Iterator[int]:
    at = body.find(word)
    while at >= 0:
        yield at
        at = body.find(word, at + len(word))


def _tolerant(name: str, data: bytes) -> Documents:
    text, _ = decode(name, data)
    if "\\u" in text:
        text = _LONE_SURROGATE.sub(r"\\ufffd", text)
    nonfinite = 0

    def constant(literal: str) -> str | None:
        nonlocal nonfinite
        nonfinite += 1
        return None if literal == "NaN" else literal

    decoder = json.JSONDecoder(
        parse_constant=constant,
        parse_int=lambda digits: int(digits) if len(digits) < 19 else float(digits),
        strict=False,
    )
    values, at, end = [], 0, len(text.rstrip())
    try:
        while at < end:
            blanks = _BLANKS.match(text, at)
            value, at = decoder.raw_decode(text, blanks.end() if blanks else at)
            values.append(value)
    except json.JSONDecodeError as error:
        raise _where(name, error, end, len(values)) from None
    except RecursionError:
        raise _too_deep(name) from None
    return Documents(tuple(values), nonfinite)


def _where(name: str, error: json.JSONDecodeError, end: int, whole: int) -> UnreadableFile:
    place = f"line {error.lineno}, column {error.colno}"
    before = f" after {counted(whole, 'whole object')}" if whole else ""
    if error.pos >= end or error.msg.startswith("Unterminated"):
        return UnreadableFile(
            f"{name}: truncated JSON, it breaks off in the value at {place}{before}; copy it again"
        )
    return UnreadableFile(f"{name}: not valid JSON at {place}{before} ({error.msg.lower()})")


def _too_deep(name: str) -> UnreadableFile:
    limit = settings.number("DRAFTWORTH_JSON_DEPTH")
    return UnreadableFile(
        f"{name}: JSON nested deeper than {limit} levels; no benchmark writes that "
        "(limit: DRAFTWORTH_JSON_DEPTH)"
    )


def _check_depth(name: str, values: tuple[object, ...]) -> None:
    limit = min(settings.number("DRAFTWORTH_JSON_DEPTH"), WRITABLE_DEPTH)
    level, depth = [v for v in values if type(v) in (dict, list)], 0
    while level:
        depth += 1
        if depth > limit:
            raise _too_deep(name)
        level = [inner for outer in level for inner in _containers(outer)]


def _containers(value: object) -> Iterator[object]:
    items = value.values() if isinstance(value, dict) else value
    assert isinstance(items, (list, type({}.values())))
    # A set of types is C-fast over the millions of numbers that a detailed file holds.
    if not {dict, list}.isdisjoint(map(type, items)):
        yield from (item for item in items if type(item) in (dict, list))


def looks_like_yaml(text: str) -> bool:
    """Whether the text begins as a YAML document: `---`, or several lines that are its keys.

    A log's `INFO: x` on every line, and a table below a line `GPU: H100`, are none: reading them as
    YAML takes a hundred times as long as looking at their first lines.
    """
    sample = io.StringIO(text[:YAML_SAMPLE])
    lines = [ln for ln in sample if ln.strip() and not ln.lstrip().startswith("#")][:MOST_LINES]
    if not lines or _YAML_START.match(lines[0]):
        return bool(lines)
    document = takewhile(lambda line: not _YAML_START.match(line), lines)  # the first of them
    outer = [line for line in document if not line[0].isspace()]
    keys = [match[1] for line in outer if (match := _YAML_KEY.match(line))]
    other = len(outer) - len(keys) - sum(_YAML_ITEM.match(line) is not None for line in outer)
    if not _YAML_KEY.match(lines[0]) or len(lines) < 2 or 10 * other > len(outer):
        return False
    return 2 * len(set(keys)) > len(keys) and _LOG_LEVEL.match(lines[0]) is None


def parse_yaml(name: str, text: str) -> Documents:
    """The documents of a YAML file, as `parse_json` gives them; dates and times become text.

    Raises UnreadableFile for text that is not YAML, for aliases (a few of them can stand for
    billions of values) and for nesting deeper than DRAFTWORTH_JSON_DEPTH.
    """
    try:
        read = yaml_events.read(text, min(settings.number("DRAFTWORTH_JSON_DEPTH"), WRITABLE_DEPTH))
    except yaml_events.NotYaml as error:
        raise (
            _too_deep(name) if error.deep else UnreadableFile(f"{name}: not YAML ({error})")
        ) from None
    values = tuple(value for value in read.documents if value is not None)
    if not values:
        raise UnreadableFile(f"{name}: YAML without a value")
    return Documents(values, read.nonfinite)


def parse_rows(name: str, text: str) -> tuple[list[list[str]], str]:
    """Rows of delimited text (blank ones left out) and the delimiter found.

    The delimiter is the one of `, ; tab |` that cuts most of the first lines into as many cells as
    the header; a first line `sep=;` decides it. Raises UnreadableFile, FileTooLarge.
    """
    hint = re.match(r"sep=(.)\r?\n", text)
    body = text[hint.end() :] if hint else text
    delimiter = hint.group(1) if hint else _sniff(name, body)
    rows = [row for row in _csv(name, body, delimiter) if any(cell.strip() for cell in row)]
    return rows, delimiter


def _sniff(name: str, text: str) -> str:
    best, score = ",", (0.0, 1)
    for delimiter in DELIMITERS:
        widths = [len(r) for r in islice(_csv(name, text, delimiter), 20) if any(r)]
        if not widths or widths[0] < 2:
            continue
        agreement = (sum(w == widths[0] for w in widths) / len(widths), widths[0])
        if agreement > score:
            best, score = delimiter, agreement
    return best


def _csv(name: str, text: str, delimiter: str) -> Iterator[list[str]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        for count, row in enumerate(reader):
            if count > MOST_ROWS:
                raise FileTooLarge(
                    f"{name}: more than {MOST_ROWS:,} rows; one row a run is read, so aggregate it"
                )
            yield row
    except csv.Error as error:
        raise UnreadableFile(f"{name}: line {reader.line_num} is not CSV ({error})") from None


def counted(count: int, noun: str) -> str:
    """`1 value`, `2 values`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def as_number(value: object) -> float | None:
    """A finite number from a number or its text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def as_count(value: object) -> int | None:
    """A whole number from a number or its text; None for anything else."""
    number = as_number(value)
    return int(number) if number is not None and number == int(number) else None


def as_text(value: object) -> str | None:
    """A short text, trimmed and without NUL; None for an empty one and for other types."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    return str(value)[:1000].replace("\0", "").strip() or None


def as_dict(value: object) -> dict[str, object]:
    """`value` if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[object]:
    """`value` if it is a JSON list, else an empty one."""
    return value if isinstance(value, list) else []


def printable(name: str) -> str:
    """A path as text that can be stored and shown on one line, whatever bytes it is made of."""
    text = os.fsencode(name).decode("utf-8", "replace")
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def flat(values: Sequence[object]) -> list[object]:
    """The values of a document, those in a list at its top each by itself."""
    return [inner for value in values for inner in (as_list(value) or [value])]
