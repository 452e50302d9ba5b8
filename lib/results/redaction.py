"""What is kept of a file: secrets replaced, prompts and generated texts dropped."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

import orjson
import pyarrow as pa

from lib import settings
from lib.results.fields import words_of

REDACTED = "[redacted]"
LONGEST_LIST = 256
LARGEST_EXTRA = 64 * 1024

# Keys whose texts are what a person asked or a model wrote.
TEXT_KEYS = frozenset(
    {
        *("prompt", "prompts", "messages", "content", "question", "answer", "text", "texts"),
        *("generated_text", "generated_texts", "generated_outputs", "input_text", "output_text"),
        *("output", "outputs", "reasoning_output", "request_args", "tool_calls", "choices"),
        *("response", "responses", "completion", "completions", "raw_prompt", "payload", "body"),
        *("input", "inputs", "system_prompt", "query", "queries", "chat_history"),
    }
)
_SECRET_WORDS = frozenset(
    {
        *("password", "passwd", "passphrase", "secret", "secrets", "authorization", "apikey"),
        *("credential", "credentials", "bearer", "cookie", "cookies"),
    }
)
_SECRET_PAIRS = frozenset({("api", "key"), ("access", "key"), ("private", "key"), ("auth", "key")})
_SECRET_NAME = (
    r"(?:[\w.-]*[_.-])?(?:api[-_]?key|access[-_]?key(?:[-_]id)?|private[-_]?key|token|passw(?:or)?d"
    r"|passphrase|secret|authorization|credentials?)"
)
_PATTERNS = (
    (re.compile(r"(?i)\b((?:bearer|basic)\s+)[\w.~+/=-]{8,}"), r"\1"),
    (re.compile(rf"(?i)(--?{_SECRET_NAME}(?:\s*=\s*|\s+))(?:\"[^\"]*\"|'[^']*'|[^\s\"']+)"), r"\1"),
    (re.compile(rf"(?i)([\"']{_SECRET_NAME}[\"']\s*:\s*)(?:\"(?:[^\"\\]|\\.)*\"|'[^']*')"), r"\1"),
    (re.compile(rf"(?i)(\b{_SECRET_NAME}\s*[=:]\s*)(?:\"[^\"]*\"|'[^']*'|[^\s\"',;&]+)"), r"\1"),
    (re.compile(r"\b()(?:sk-[\w-]{16,}|hf_\w{16,}|gh[pousr]_\w{20,}|AKIA[0-9A-Z]{16})"), r"\1"),
    (re.compile(r"(://)[^/\s:@]+:[^/\s@]+(?=@)"), r"\1"),
)
_SUSPECT = re.compile(
    r"(?i)key|token|passw|passphrase|secret|auth|credential|bearer|basic|://|sk-|hf_|gh[pousr]_|AKIA"
)
_SECRET_OPTION = re.compile(rf"(?i)--?{_SECRET_NAME}")


@lru_cache(maxsize=4096)  # a document repeats its keys once a request
def is_secret(key: str) -> bool:
    """Whether a key's value is a secret: `api_key`, `HF_TOKEN`, `Authorization`, never `tokens`."""
    words = words_of(key)
    paired = any(pair in _SECRET_PAIRS for pair in pairwise(words))
    return paired or not _SECRET_WORDS.isdisjoint(words) or words[-1:] == ["token"]


def redact_text(text: str) -> str:
    """A text with the secrets in it replaced: options, environment, headers, URLs, known shapes."""
    if not _SUSPECT.search(text):
        return text
    for pattern, kept in _PATTERNS:
        text = pattern.sub(kept + REDACTED, text)
    return text


def redact(value: object) -> object:
    """A copy of a JSON value without secrets, prompts and generated texts.

    Recurses once a level; a reader has limited the depth before.
    """
    if isinstance(value, dict):
        return {
            str(k): _redact_item(str(k), v) for k, v in value.items() if not _is_text(str(k), v)
        }
    if isinstance(value, list):
        return _redact_list(value)
    return redact_text(value) if isinstance(value, str) else value


def _redact_item(key: str, value: object) -> object:
    if value in (None, "", False, True) or not is_secret(key):
        return redact(value)
    numeric = isinstance(value, (int, float))
    # `time_per_output_token` holds statistics: only a text can be the token of an account.
    counts = words_of(key)[-1:] == ["token"] and not isinstance(value, str)
    return redact(value) if numeric or counts else REDACTED


def _redact_list(values: list[object]) -> list[object]:
    if {dict, list, str}.isdisjoint(map(type, values)):
        return values
    redacted = [redact(v) for v in values]
    for at, value in enumerate(values[:-1]):
        if isinstance(value, str) and _SECRET_OPTION.fullmatch(value.strip()):
            redacted[at + 1] = REDACTED
    return redacted


@lru_cache(maxsize=4096)
def _names_text(key: str) -> bool:
    return key.casefold().replace("-", "_") in TEXT_KEYS


def _is_text(key: str, value: object) -> bool:
    if not _names_text(key):
        return False
    if isinstance(value, list):
        return any(isinstance(v, (str, dict, list)) for v in value)
    return isinstance(value, str)


def redact_rows(rows: Sequence[Sequence[str]], headers: int = 1) -> list[list[str]]:
    """Rows of a text table without secrets and texts; the first `headers` rows name the columns.

    A cell that holds a JSON object or list is redacted as such.
    """
    names = [
        [row[c].strip() for row in rows[:headers] if c < len(row)] for c in range(_width(rows))
    ]
    secret = [any(is_secret(n) for n in column if n) for column in names]
    text = [any(n.casefold().replace(" ", "_") in TEXT_KEYS for n in column) for column in names]
    if headers > 1:
        text = [False] * len(text)  # there the words are groups of statistics
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


def _cell(cell: str, secret: bool, text: bool) -> str:
    if text or not cell:
        return ""
    if secret:
        return REDACTED
    if cell.lstrip()[:1] in ("{", "["):
        try:
            return orjson.dumps(redact(orjson.loads(cell))).decode()
        except (orjson.JSONDecodeError, TypeError, RecursionError):
            pass
    return redact_text(cell)


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
