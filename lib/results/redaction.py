"""What is kept of a file: secrets replaced, prompts and generated texts dropped."""

import csv
import io
from collections.abc import Mapping, Sequence
from contextlib import suppress

import orjson
import pyarrow as pa

from lib import settings
from lib.results.parsing import as_number
from lib.results.secret_text import REDACTED, is_secret, is_secret_option, is_weak, redact_text
from lib.results.written_text import are_prose, is_prose, is_text, may_name_text, replaced

__all__ = ["REDACTED", "is_secret", "redact_text"]

LONGEST_LIST = 256
LARGEST_EXTRA = 64 * 1024
MOST_OF_A_NAME = 200
LONGEST_COUNT = 12  # digits; a longer number may be a key
_HEADER_OPTIONS = ("-H", "--header", "--headers", "--extra-header", "--extra-headers")
_NAMES_A_VALUE = ("name", "key", "header", "variable", "option")


def redact(value: object) -> object:
    """A copy of a JSON value without secrets, prompts and generated texts.

    Recurses once a level; a reader has limited the depth before.
    """
    if isinstance(value, dict):
        hidden = _hidden(value)
        return {
            str(k): _redact_item(str(k), v) if k not in hidden or not v else REDACTED
            for k, v in value.items()
            if not is_text(str(k), v)
        }
    if isinstance(value, list):
        return _redact_list(value)
    return _redact_string(value) if isinstance(value, str) else value


def _redact_string(text: str) -> str:
    """A text without secrets; JSON that is written into it is redacted as such.

    A long text in words is what a person asked or a model wrote, whatever it is called.
    """
    if text[:1] in ("{", "["):
        with suppress(orjson.JSONDecodeError, TypeError, RecursionError):
            inner = orjson.loads(text)
            redacted = redact(inner)
            return text if redacted == inner else orjson.dumps(redacted).decode()
    return replaced(text) if is_prose(text) else redact_text(text)


def _hidden(value: Mapping[str, object]) -> tuple[str, ...]:
    """Keys whose values are secrets by what stands beside them in a Kubernetes manifest.

    `{name: API_TOKEN, value: …}` is a variable, `kind: Secret` an object of nothing else.
    """
    if "value" in value:
        names = (value[n] for n in _NAMES_A_VALUE if n in value)
        if any(isinstance(n, str) and (is_secret(n) or is_secret_option(n)) for n in names):
            return ("value",)
    return ("data", "stringData") if value.get("kind") == "Secret" else ()


def _redact_item(key: str, value: object) -> object:
    if value in (None, "", False, True) or isinstance(value, (int, float)) or not is_secret(key):
        return redact(value)
    # `token` may hold statistics and `keys` their names: there the texts alone are secrets.
    return _without_strings(value) if is_weak(key) else REDACTED


def _without_strings(value: object) -> object:
    if isinstance(value, dict):
        return {str(k): _without_strings(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_without_strings(v) for v in value]
    return REDACTED if isinstance(value, str) and value else value


def _redact_list(values: list[object]) -> list[object]:
    if {dict, list, str}.isdisjoint(map(type, values)):
        return values
    if are_prose(values):
        return [replaced(v) if isinstance(v, str) and v else redact(v) for v in values]
    redacted = [redact(v) for v in values]
    for at, value in enumerate(values[:-1]):
        if isinstance(value, str) and isinstance(values[at + 1], str) and _announces(values, at):
            redacted[at + 1] = REDACTED
    return redacted


def _announces(values: Sequence[object], at: int) -> bool:
    """Whether the word at `at` names the secret that the next is: an option, a header of a pair."""
    word = str(values[at])[:MOST_OF_A_NAME].strip()
    if word.startswith("-"):
        return is_secret_option(word) and "=" not in word
    paired = len(values) == 2 or (at > 0 and values[at - 1] in _HEADER_OPTIONS)
    return paired and " " not in word and is_secret(word.rstrip(":"))


def redact_rows(rows: Sequence[Sequence[str]], headers: int = 1) -> list[list[str]]:
    """Rows of a text table without secrets and texts; the first `headers` rows name the columns.

    A cell that holds a JSON object or list is redacted as such.
    """
    names = [
        [row[c].strip() for row in rows[:headers] if c < len(row)] for c in range(_width(rows))
    ]
    secret = [[n for n in column if is_secret(n)] for column in names]
    # Of several header rows the words are groups of statistics.
    text = [[n for n in column if headers == 1 and may_name_text(n)] for column in names]
    kept = [list(row) for row in rows[:headers]]
    for row in rows[headers:]:
        kept.append([_cell(cell, secret[c], text[c]) for c, cell in enumerate(row)])
    return kept


def dump_rows(rows: Sequence[Sequence[str]], headers: int = 1) -> bytes:
    """Redacted rows as CSV."""
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows(redact_rows(rows, headers))
    return out.getvalue().encode("utf-8", "replace")


def _width(rows: Sequence[Sequence[str]]) -> int:
    return max((len(row) for row in rows), default=0)


def _cell(cell: str, secrets: Sequence[str], texts: Sequence[str]) -> str:
    """A cell of a column with these secret names; a count under `token` or `prompt` stays."""
    if not cell:
        return ""
    if secrets or texts:
        counts = len(cell) <= LONGEST_COUNT and as_number(cell) is not None
        if not counts and any(is_text(name, cell) for name in texts):
            return ""
        if secrets and not (counts and all(map(is_weak, secrets))):
            return REDACTED
    return _redact_string(cell.lstrip())


def keep(document: bytes) -> bytes | None:
    """A redacted document, compressed with zstd; None where DRAFTWORTH_KEEP_MB is 0."""
    if settings.number("DRAFTWORTH_KEEP_MB") == 0:
        return None
    return pa.Codec("zstd", compression_level=1).compress(document, asbytes=True)


def dump(documents: Sequence[object]) -> bytes:
    """JSON of redacted documents, one a line."""
    return b"\n".join(orjson.dumps(redact(d)) for d in documents)


def extra(values: Mapping[str, object]) -> str | None:
    """What was not understood as one JSON object, redacted; None if nothing is left.

    Lists of more than 256 items are left out (they are per-request data), and so are the largest
    values while the whole is over 64 KiB.
    """
    kept = {
        key: orjson.dumps(value)
        for key, value in as_object(redact(dict(values))).items()
        if value is not None and not (isinstance(value, list) and len(value) > LONGEST_LIST)
    }
    while sum(map(len, kept.values())) > LARGEST_EXTRA:
        del kept[max(kept, key=lambda k: len(kept[k]))]
    if not kept:
        return None
    parsed = {key: orjson.loads(value) for key, value in sorted(kept.items())}
    return orjson.dumps(parsed).decode()


def as_object(value: object) -> dict[str, object]:
    """A redacted object; empty for anything else."""
    return value if isinstance(value, dict) else {}
