"""Bytes of a result file to runs: which tool wrote this, and what does it say?"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lib import settings
from lib.errors import FileTooLarge, InputError, UnknownFormat, UnreadableFile
from lib.results import cells, foreign_database, logs, outcomes, parsing, redaction
from lib.results.cells import Rows
from lib.results.findings import Beside, Column, Findings, Flag, Key, Scrape, shorten
from lib.results.headers import IGNORE
from lib.results.mapping import SavedMapping, match, offered
from lib.results.parsing import Documents, as_dict, as_list, counted
from lib.results.tools import LISTED, READERS, table
from lib.run import Run

__all__ = ["Column", "Flag", "Reading", "read"]

_ARCHIVES = (b"PK\x03\x04", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ")
_HEAD = 2**16  # bytes that tell a log
_PICTURES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"%PDF", b"RIFF", b"BM6")
_MARKUP = re.compile(r"\s*<(?:!doctype|html|head|body|\?xml|svg|!--)", re.IGNORECASE)


@dataclass(frozen=True)
class Reading:
    """One file, read.

    `name` is the path or upload name as the person gave it; `sha256` is of the original bytes;
    `why` says by which keys the tool was recognised. `requests` holds per-request tables by run_id
    (columns arrival_s, input_tokens, output_tokens, ttft_ms, tpot_ms, e2e_ms, ok, as far as the
    file has them). `kept` is the redacted document, zstd-compressed; None where none is kept.
    `unmatched` lists a table's columns that no synonym matched, offered for mapping. `keys` are
    those that the runs were read from. A file without runs is kept only for what it says of the
    runs `beside` it, or as one `scrape` of a pair.
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
    keys: tuple[Key, ...] = ()
    beside: Beside | None = None
    scrape: Scrape | None = None


@dataclass(frozen=True)
class _Found:
    """A document's findings, with what was noticed on the way and what may be kept of it."""

    findings: Findings
    document: bytes
    flags: tuple[Flag, ...] = ()


def read(
    name: str,
    data: bytes,
    mapping: Mapping[str, str] | None = None,
    *,
    saved: Sequence[SavedMapping] = (),
    keep: bool = True,
) -> Reading:
    """The runs in `data`, told by its keys and never by `name`, which is for messages.

    `mapping` sends columns of a table, or keys of JSON that no reader knows, to fields by hand:
    header to a name of `fields.targets()`, optionally `NAME@ARM` with an ARM of the form off,
    METHOD or METHOD:K, or "ignore". A file that no reader knows is read by the one of the `saved`
    mappings that was made for its shape. Without `keep` no redacted document is made. Raises
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
    found = _without_secrets(lambda: _find_mapped(name, data, sha256, mapping, saved, keep))
    findings = found.findings
    return Reading(
        name,
        sha256,
        findings.tool,
        findings.tool_version,
        findings.why,
        findings.runs,
        findings.requests,
        tuple(_redacted(flag) for flag in (*found.flags, *findings.flags)),
        redaction.keep(found.document) if keep else None,
        findings.unmatched,
        findings.keys,
        findings.beside,
        findings.scrape,
    )


def _without_secrets(find: Callable[[], _Found]) -> _Found:
    """What `find` finds; an error of it quotes no secret that stands in the file."""
    try:
        return find()
    except UnknownFormat as error:
        raise UnknownFormat(redaction.redact_text(str(error)), error.columns) from None
    except (UnreadableFile, FileTooLarge, InputError) as error:
        raise type(error)(redaction.redact_text(str(error))) from None


def _redacted(flag: Flag) -> Flag:
    return replace(flag, message=redaction.redact_text(flag.message))


def _find_mapped(
    name: str,
    data: bytes,
    sha256: str,
    mapping: Mapping[str, str] | None,
    saved: Sequence[SavedMapping],
    keep: bool,
) -> _Found:
    try:
        return _find(name, data, sha256, mapping, keep)
    except UnknownFormat as error:
        known = None if mapping else match([c.header for c in error.columns], saved)
        if known is None:
            raise
        found = _find(name, data, sha256, known.mapping, keep)
        text = f"read as {known.name} was mapped by hand"
        return replace(found, flags=(*found.flags, Flag("mapping_reused", "warns", text)))


def _find(
    name: str, data: bytes, sha256: str, mapping: Mapping[str, str] | None, keep: bool
) -> _Found:
    if not data[:4096].strip() and not data.strip():
        raise UnreadableFile(f"{name}: the file is empty")
    if data.startswith(b"PAR1"):
        rows = cells.parquet_rows(name, data)
        return _Found(table.find(name, rows, sha256, mapping), _text_table(rows, 1, keep))
    if foreign_database.is_database(data):
        return _find_database(name, data, sha256, mapping, keep)
    if data.startswith(_PICTURES):
        raise UnreadableFile(f"{name}: a picture or PDF; the file that the tool wrote is read")
    if data.startswith(_ARCHIVES):
        raise UnreadableFile(f"{name}: a compressed archive; unpack it and import what is in it")
    head = data[:_HEAD].decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    if head.startswith("[") and logs.looks_like_log(head):
        raise logs.refusal(name, head)
    if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
        return _find_json(name, parsing.parse_json(name, data), sha256, mapping, keep)
    text, guessed = parsing.decode(name, data)
    found = _find_text(name, text, sha256, mapping, keep)
    flag = Flag("encoding_guessed", "warns", "not UTF-8; read as Windows-1252, check the names")
    return replace(found, flags=(*found.flags, flag)) if guessed else found


def _find_text(
    name: str, text: str, sha256: str, mapping: Mapping[str, str] | None, keep: bool
) -> _Found:
    if text.lstrip()[:1] in ("{", "["):
        documents = parsing.parse_json(name, text.encode())
        return _find_json(name, documents, sha256, mapping, keep)
    if _MARKUP.match(text):
        raise UnreadableFile(
            f"{name}: a web page or XML, not results; save the JSON or CSV that the tool wrote"
        )
    for reader in READERS:
        if hasattr(reader, "recognise_text") and reader.recognise_text(text):
            worth_keeping = getattr(reader, "kept_text", redaction.redact_text)
            kept = worth_keeping(text).encode("utf-8", "replace") if keep else b""
            return _Found(_measured(name, reader.find_text(name, text, sha256), list), kept)
    if logs.looks_like_log(text[:_HEAD]):
        raise logs.refusal(name, text[:_HEAD])
    if parsing.looks_like_yaml(text):
        return _find_json(name, parsing.parse_yaml(name, text), sha256, mapping, keep)
    rows, delimiter = parsing.parse_rows(name, text)
    for reader in READERS:
        if not mapping and hasattr(reader, "recognise_rows") and reader.recognise_rows(rows):
            headers = getattr(reader, "HEADER_ROWS", 1)
            findings = reader.find_rows(name, rows, sha256)
            findings = _measured(name, findings, lambda: [rows])
            return _Found(findings, _text_table(rows, headers, keep))
    findings = table.find(name, rows, sha256, mapping, delimiter)
    return _Found(findings, _text_table(rows, 1, keep))


def _find_json(
    name: str,
    documents: Documents,
    sha256: str,
    mapping: Mapping[str, str] | None,
    keep: bool,
) -> _Found:
    values = documents.values
    flags = _nonfinite(documents.nonfinite)
    document = redaction.dump(values) if keep else b""
    if mapping:
        chosen = [column for column, target in mapping.items() if target != IGNORE]
        rows = cells.json_rows(values, chosen)
        # A leaf's name is no header: what a person did not choose is not guessed.
        mapping = dict.fromkeys(rows[0], IGNORE) | dict(mapping)
        return _Found(table.find(name, rows, sha256, mapping), document, flags)
    for reader in READERS:
        if hasattr(reader, "recognise") and reader.recognise(values):
            findings = reader.find(name, values, sha256)
            findings = _measured(name, findings, lambda: cells.json_leaves(values))
            return _Found(findings, document, flags)
    columns = offered(*cells.json_leaves(values))
    way_out = "its keys can be mapped to fields by hand" if columns else LISTED
    raise UnknownFormat(f"{name}: no reader knows {_keys(values)}; {way_out}", columns)


def _measured(name: str, findings: Findings, tables: Callable[[], list[Rows]]) -> Findings:
    """The findings, with a flag for each run without an outcome.

    Raises UnknownFormat, with the columns of `tables` for mapping, where no run has any: a version
    that writes its outcomes elsewhere.
    """
    judged = outcomes.of_findings(findings)
    if judged is not None:
        return judged
    columns = offered(*tables())
    keys = dict.fromkeys(".".join(c.header.split(".")[:2]) for c in columns)
    found = f"; keys found: {shorten(keys)}" if keys else ""
    way_out = "; its keys can be mapped to fields by hand" if keys else f"; {LISTED}"
    raise UnknownFormat(
        f"{name}: recognised as {findings.tool} {findings.tool_version} ({findings.why}), but "
        f"nothing was measured where that version writes it{found}{way_out}",
        columns,
    )


def _find_database(
    name: str, data: bytes, sha256: str, mapping: Mapping[str, str] | None, keep: bool
) -> _Found:
    """Runs of the one table that holds some; a person's mapping names the table by its columns.

    Where several tables stand in the file, a column is called `table.column`.
    """
    held = foreign_database.read(name, data)
    tables = dict(held.tables)
    if len(tables) > 1:
        tables = {t: [[f"{t}.{c}" for c in rows[0]], *rows[1:]] for t, rows in tables.items()}
    chosen = {c for c, target in (mapping or {}).items() if target != IGNORE}
    whole: dict[str, Findings] = {}
    for own, rows in held.tables:
        mine = chosen & set(tables[own][0])
        if mapping and not mine:
            continue
        try:
            whole[own] = table.find(name, tables[own] if mapping else rows, sha256, mapping)
        except UnknownFormat:
            continue
    if len(whole) != 1:
        found = f"{counted(len(whole), 'table')} with runs among {shorten(tables) or 'none'}"
        raise UnknownFormat(
            f"{name}: a DuckDB file, {found}; map the columns of one table to fields by hand",
            offered(*tables.values()),
        )
    ((own, findings),) = whole.items()
    others = [t for t in (*tables, *held.left_out) if t != own]
    text = f"read from the table {own}; left out: {shorten(others)}"
    flags = (Flag("other_tables", "warns", text),) if others else ()
    return _Found(findings, _text_table(dict(held.tables)[own], 1, keep), flags)


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
