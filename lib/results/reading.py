"""Bytes of a result file to runs: which tool wrote this, and what does it say?"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lib import settings
from lib.errors import FileTooLarge, UnknownFormat, UnreadableFile
from lib.results import cells, parsing, redaction
from lib.results.findings import KNOWN, Column, Findings, Flag, shorten
from lib.results.parsing import as_dict, as_list, counted
from lib.results.tools import guidellm, table, vllm_bench
from lib.run import Run

__all__ = ["Column", "Flag", "Reading", "read"]

_ARCHIVES = (b"PK\x03\x04", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ")
_MARKUP = re.compile(r"\s*<(?:!doctype|html|head|body|\?xml|svg|!--)", re.IGNORECASE)


@dataclass(frozen=True)
class Reading:
    """One file, read.

    `name` is the path or upload name as the person gave it; `sha256` is of the original bytes;
    `why` says by which keys the tool was recognised. `requests` holds per-request tables by run_id
    (columns arrival_s, input_tokens, output_tokens, ttft_ms, tpot_ms, e2e_ms, ok, as far as the
    file has them). `kept` is the redacted document, zstd-compressed; None where none is kept.
    `unmatched` lists a table's columns that no synonym matched, offered for mapping.
    """

    name: str
    sha256: str
    tool: str
    tool_version: str
    why: str
    runs: tuple[Run, ...]
    requests: Mapping[str, pa.Table]
    flags: tuple[Flag, ...]
    kept: bytes | None
    unmatched: tuple[Column, ...] = ()


@dataclass(frozen=True)
class _Found:
    """A document's findings, with what was noticed on the way and what may be kept of it."""

    findings: Findings
    document: bytes
    flags: tuple[Flag, ...] = ()


def read(
    name: str, data: bytes, mapping: Mapping[str, str] | None = None, *, keep: bool = True
) -> Reading:
    """The runs in `data`, told by its keys and never by `name`, which is for messages.

    `mapping` sends columns of a table, or keys of JSON that no reader knows, to fields by hand:
    header to a name of `fields.targets()`, optionally `NAME@ARM` with an ARM of the form off,
    METHOD or METHOD:K, or "ignore". Without `keep` no redacted document is made. Raises
    UnreadableFile, UnknownFormat (with the columns that may be mapped), FileTooLarge; InputError
    for a mapping to something else.
    """
    limit = settings.number("DRAFTWORTH_IMPORT_MB")
    if len(data) > limit * 2**20:
        raise FileTooLarge(
            f"{name}: {len(data) / 2**20:,.0f} MB; at most {limit} MB is read "
            "(raise DRAFTWORTH_IMPORT_MB, or save without per-request detail)"
        )
    sha256 = hashlib.sha256(data).hexdigest()
    keep = keep and len(data) <= settings.number("DRAFTWORTH_KEEP_MB") * 2**20
    found = _find(name, data, sha256, mapping, keep)
    findings = found.findings
    return Reading(
        name,
        sha256,
        findings.tool,
        findings.tool_version,
        findings.why,
        findings.runs,
        findings.requests,
        (*found.flags, *findings.flags),
        redaction.keep(found.document) if keep else None,
        findings.unmatched,
    )


def _find(
    name: str, data: bytes, sha256: str, mapping: Mapping[str, str] | None, keep: bool
) -> _Found:
    if not data[:4096].strip() and not data.strip():
        raise UnreadableFile(f"{name}: the file is empty")
    if data.startswith(b"PAR1"):
        rows = cells.parquet_rows(name, data)
        return _Found(table.find(name, rows, sha256, mapping), _text_table(rows, 1, keep))
    if data.startswith(_ARCHIVES):
        raise UnreadableFile(f"{name}: a compressed archive; unpack it and import what is in it")
    if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
        return _find_json(name, data, sha256, mapping, keep)
    text, guessed = parsing.decode(name, data)
    if text.lstrip()[:1] in ("{", "["):
        return _find_json(name, text.encode(), sha256, mapping, keep)
    if _MARKUP.match(text):
        raise UnreadableFile(
            f"{name}: a web page or XML, not results; save the JSON or CSV that the tool wrote"
        )
    found = _find_text(name, text, sha256, mapping, keep)
    flag = Flag("encoding_guessed", "warns", "not UTF-8; read as Windows-1252, check the names")
    return _Found(found.findings, found.document, (flag,)) if guessed else found


def _find_json(
    name: str, data: bytes, sha256: str, mapping: Mapping[str, str] | None, keep: bool
) -> _Found:
    documents = parsing.parse_json(name, data)
    values = documents.values
    flags = _nonfinite(documents.nonfinite)
    document = redaction.dump(values) if keep else b""
    if mapping:
        rows = cells.json_rows(values)
        return _Found(table.find(name, rows, sha256, mapping), document, flags)
    if len(values) == 1 and guidellm.recognise(values[0]):
        return _Found(guidellm.find(name, as_dict(values[0]), sha256), document, flags)
    flat = [v for value in values for v in (as_list(value) or [value])]
    if any(vllm_bench.recognise(v) for v in flat):
        return _Found(vllm_bench.find(name, flat, sha256), document, flags)
    if (beside := vllm_bench.find_sidecar(flat)) is not None:
        return _Found(beside, document, flags)
    columns = table.offered(cells.json_rows(values))
    way_out = "; its keys can be mapped to fields by hand" if columns else ""
    raise UnknownFormat(
        f"{name}: no reader knows {_keys(values)}; known are {KNOWN}{way_out}", columns
    )


def _find_text(
    name: str, text: str, sha256: str, mapping: Mapping[str, str] | None, keep: bool
) -> _Found:
    rows, delimiter = parsing.parse_rows(name, text)
    if not mapping and guidellm.recognise_csv(rows):
        findings = guidellm.find_csv(name, rows, sha256)
        return _Found(findings, _text_table(rows, 3, keep))
    records = table.vllm_records(rows)
    if not mapping and any(vllm_bench.recognise(r) for r in records):
        findings = vllm_bench.find(name, records, sha256)
    else:
        findings = table.find(name, rows, sha256, mapping, delimiter)
    return _Found(findings, _text_table(rows, 1, keep))


def _text_table(rows: Sequence[Sequence[str]], headers: int, keep: bool) -> bytes:
    return redaction.dump_rows(rows, headers) if keep else b""


def _nonfinite(count: int) -> tuple[Flag, ...]:
    values = f"{counted(count, 'value')} {'is' if count == 1 else 'are'}"
    text = f"{values} NaN or infinite; read as missing, an infinite rate as unlimited"
    return (Flag("nonfinite_values", "warns", text),) if count else ()


def _keys(values: Sequence[object]) -> str:
    """What stands at the top of a JSON document, for the message that refuses it."""
    first = values[0]
    if isinstance(first, dict):
        return f"the keys {shorten(first)}" if first else "an object without keys"
    items = as_list(first)
    keys = dict.fromkeys(k for item in items[:100] for k in as_dict(item))
    if keys:
        return f"a list of {counted(len(items), 'object')} with the keys {shorten(keys)}"
    kind = {float: "numbers", int: "numbers", str: "texts", list: "lists"}
    held = {kind.get(type(i), "values") for i in items[:100]} or {"nothing"}
    return f"a list of {' and '.join(sorted(held))}, which has no keys"
