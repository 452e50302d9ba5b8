"""Archives in memory, within limits: nothing is written to disk, no entry's name is trusted."""

import bz2
import gzip
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import cast

from lib import settings
from lib.errors import FileTooLarge, UnreadableFile
from lib.results import parsing
from lib.results.parsing import counted

_ZIP, _GZIP = b"PK\x03\x04", b"\x1f\x8b"
_ANY = (
    _ZIP,
    _GZIP,
    b"PK\x05\x06",
    b"\x28\xb5\x2f\xfd",
    b"BZh",
    b"\xfd7zXZ",
    b"7z\xbc\xaf",
    b"Rar!",
)
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, NotImplementedError),
    *(OSError, EOFError, LookupError, OverflowError, MemoryError),
)
_TAR_MAGIC = slice(257, 262)
_SMALL = 2**20  # a file of up to this size is no bomb, whatever its ratio


@dataclass(frozen=True)
class Entry:
    """A file in an archive: its path in there behind the archive's name, and how to get it.

    `read` raises FileError where this entry cannot be used; the others can.
    """

    name: str
    read: Callable[[], bytes]


def is_archive(data: bytes) -> bool:
    """Whether the bytes are a zip or gzip file, which `entries` expands."""
    return data.startswith((_ZIP, _GZIP, b"PK\x05\x06"))


def entries(name: str, source: bytes | Path) -> Iterator[Entry]:
    """The files of an archive, in its order; folders, hidden files and empty ones left out.

    Of files with one name each later one is called `NAME (2 of this name).json`.

    `source` is its bytes, or its path, from which each file is read when it is asked for.

    Raises FileTooLarge and UnreadableFile where the archive as a whole cannot be used: over a
    limit of the settings table, encrypted throughout, truncated, a workbook.
    """
    if _start(source).startswith(_GZIP):
        yield Entry(name.removesuffix(".gz"), partial(_gunzip, name, source))
        return
    try:
        archive = zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source)
        infos = [i for i in archive.infolist() if not i.is_dir() and i.file_size]
    except (*_DAMAGE, ValueError, RuntimeError) as error:
        raise UnreadableFile(f"{name}: not a whole zip file ({_said(error)})") from None
    if any(i.filename == "[Content_Types].xml" for i in infos):
        raise UnreadableFile(f"{name}: an office document; save its sheet as CSV")
    _within_limits(name, infos)
    taken: set[str] = set()
    for info in infos:
        inner = _inner_name(info.filename)
        if inner:
            full = _unlike(parsing.printable(f"{name}/{inner}"), taken)
            taken.add(full)
            yield Entry(full, partial(_unzip, full, archive, info))


def _within_limits(name: str, infos: list[zipfile.ZipInfo]) -> None:
    most, limit = (settings.number(f"DRAFTWORTH_ARCHIVE_{which}") for which in ("ENTRIES", "MB"))
    if len(infos) > most:
        raise FileTooLarge(
            f"{name}: {counted(len(infos), 'file')}; at most {most:,} are read "
            "(raise DRAFTWORTH_ARCHIVE_ENTRIES, or import in parts)"
        )
    expanded = sum(i.file_size for i in infos)
    if expanded > limit * 2**20:
        raise FileTooLarge(
            f"{name}: {expanded / 2**20:,.0f} MB when expanded; at most {limit:,} MB is read "
            "(raise DRAFTWORTH_ARCHIVE_MB, or import in parts)"
        )


def _inner_name(path: str) -> str:
    """The path in the archive without what leads out of it; empty for hidden files."""
    parts = [p for p in PurePosixPath(path.replace("\\", "/")).parts if p not in ("/", "..")]
    if any(p.startswith(".") or p == "__MACOSX" for p in parts):
        return ""
    return "/".join(parts)


def _unlike(name: str, taken: set[str]) -> str:
    """The name, or where another file in the archive has it, one that says so."""
    path, at, found = PurePosixPath(name), 1, name
    while found in taken:
        at += 1
        found = str(path.with_name(f"{path.stem} ({at} of this name){path.suffix}"))
    return found


def _unzip(name: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    if info.flag_bits & 1:
        raise UnreadableFile(f"{name}: encrypted; pack it again without a password")
    try:
        if info.compress_type in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
            return _checked(name, _expanded(archive, info), info.compress_size)
        with archive.open(info) as stream:
            most = _most(info.compress_size)
            return _checked(name, stream.read(most + 1), info.compress_size)
    except _DAMAGE as error:
        raise UnreadableFile(f"{name}: damaged in its archive ({_said(error)})") from None
    except (RuntimeError, ValueError) as error:
        raise UnreadableFile(f"{name}: cannot be unpacked ({_said(error)})") from None


def _start(source: bytes | Path) -> bytes:
    if isinstance(source, bytes):
        return source[:8]
    with source.open("rb") as file:
        return file.read(8)


def _gunzip(name: str, source: bytes | Path) -> bytes:
    try:
        data = source if isinstance(source, bytes) else source.read_bytes()
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            return _checked(name, stream.read(_most(len(data)) + 1), len(data))
    except _DAMAGE as error:
        raise UnreadableFile(f"{name}: not a whole gzip file ({_said(error)})") from None


def _expanded(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """A file packed with bzip2 or LZMA, up to its limit.

    The library would expand it whole before it looks at a limit: 513 bytes can be half a gigabyte.
    """
    stored = copy(info)
    stored.compress_type, stored.file_size = zipfile.ZIP_STORED, info.compress_size
    stored.CRC = cast(int, None)  # that of the file, not of what is packed
    with archive.open(stored) as stream:
        packed = stream.read()
    most = _most(info.compress_size)
    opened: bz2.BZ2Decompressor | lzma.LZMADecompressor = bz2.BZ2Decompressor()
    if info.compress_type == zipfile.ZIP_LZMA:
        opened, packed = _lzma(packed, most)
    data = opened.decompress(packed, most + 1)
    while len(data) <= most and not opened.eof and not opened.needs_input:
        data += opened.decompress(b"", most + 1 - len(data))
    whole = data[: info.file_size]
    if len(data) <= most and zlib.crc32(whole) != info.CRC:
        raise zipfile.BadZipFile("Bad CRC-32")
    return whole if len(data) <= most else data


def _lzma(packed: bytes, most: int) -> tuple[lzma.LZMADecompressor, bytes]:
    """The decompressor that the head of the data asks for, and the data behind the head.

    The head has a version, the length of the properties (both 2 bytes), and them: lc, lp and pb in
    one byte, the dictionary's size in four. No more of a dictionary is needed than is read.
    """
    length, coded, dictionary = struct.unpack("<2xHBL", packed[:9])
    lc, lp, pb = coded % 9, coded // 9 % 5, coded // 45
    size = min(max(dictionary, 4096), max(most, 4096))
    chain = [{"id": lzma.FILTER_LZMA1, "dict_size": size, "lc": lc, "lp": lp, "pb": pb}]
    return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=chain), packed[4 + length :]


def _most(compressed: int) -> int:
    """The bytes that a file of so many packed ones may expand to."""
    limit = settings.number("DRAFTWORTH_ENTRY_MB") * 2**20
    return min(limit, max(compressed * settings.number("DRAFTWORTH_ARCHIVE_RATIO"), _SMALL))


def _checked(name: str, data: bytes, compressed: int) -> bytes:
    """What a file expanded to, of which at most one byte over the limit was read.

    A declared size is not believed.
    """
    limit = settings.number("DRAFTWORTH_ENTRY_MB") * 2**20
    ratio = settings.number("DRAFTWORTH_ARCHIVE_RATIO")
    if len(data) > limit:
        raise FileTooLarge(
            f"{name}: over {limit // 2**20} MB when expanded (raise DRAFTWORTH_ENTRY_MB, or "
            "import it unpacked)"
        )
    if len(data) > _most(compressed):
        raise FileTooLarge(
            f"{name}: expands to over {ratio} times its size, as no result file does; import it "
            "unpacked (limit: DRAFTWORTH_ARCHIVE_RATIO)"
        )
    if data.startswith(_ANY) or data[_TAR_MAGIC] == b"ustar":
        raise UnreadableFile(f"{name}: an archive inside an archive; unpack the outer one")
    return data


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:100] or type(error).__name__
