"""One dropped file: where its bytes wait, and what reading it gave. Nothing is drawn here."""

import hashlib
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from lib.errors import FileError, InputError, UnknownFormat
from lib.results import archives, published
from lib.results.headers import IGNORE
from lib.results.mapping import SavedMapping, match, signature
from lib.results.parsing import counted
from lib.results.reading import Column, Flag, Reading, read
from lib.run import SIMULATED
from lib.settings import number

LOG = logging.getLogger("draftworth")
DEMO = "demo:"
DIGITS = re.compile(r"(\d{1,9})")
# Asked for in the table, said by the mapper, and said of the files beside.
SAID_ELSEWHERE = ("arm_unknown", "mapping_reused", "sidecar", "not_a_run", "taken_from_beside")


@dataclass(frozen=True)
class Pending:
    """A file that waits to be read: an upload of its own, or an entry of an archive.

    `key` is the upload's id, for an entry with its place behind it. `refusal` is set where there
    is nothing to get.
    """

    key: str
    upload: str
    name: str
    get: Callable[[], bytes] = bytes
    refusal: str = ""
    simulated: bool = False

    @property
    def in_archive(self) -> bool:
        """Whether an archive brought it."""
        return self.key != self.upload


@dataclass(frozen=True)
class Dropped:
    """One file: its reading, or why it is refused.

    `columns` are those that a person may map, `mapping` is what was mapped of them, `taught` the
    mapping of another file that this one was read by. `data` is kept while something can be mapped.
    """

    name: str
    sha256: str
    upload: str
    data: bytes = b""
    reading: Reading | None = None
    refusal: str = ""
    columns: tuple[Column, ...] = ()
    mapping: Mapping[str, str] = field(default_factory=dict)
    taught: SavedMapping | None = None
    in_archive: bool = False
    simulated: bool = False

    @property
    def leaves(self) -> tuple[str, ...]:
        """The headers or keys that may be mapped."""
        return tuple(c.header for c in self.columns)

    @property
    def is_unknown(self) -> bool:
        """Whether no reader knows it and a person may map it."""
        return self.reading is None and bool(self.columns)

    @property
    def shape(self) -> str:
        """The signature of what may be mapped; files of one shape are mapped at once."""
        return signature(self.leaves)


@dataclass(frozen=True)
class Outcome:
    """What adding did: new runs and files, notes on files, and the error that ended it early.

    `import_id` names what can be undone; empty where nothing was added.
    """

    study: str
    runs: int = 0
    files: int = 0
    completed: int = 0
    notes: tuple[str, ...] = ()
    error: str = ""
    import_id: str = ""


def waiting(upload: str, name: str, data: bytes) -> list[Pending]:
    """What an upload brings: itself, or the files of an archive by their paths in it."""
    limit, demo = number("DRAFTWORTH_UPLOAD_MB"), upload.startswith(DEMO)
    if len(data) > limit * 2**20:
        text = (
            f"{name}: over {limit} MB; import it on the command line, drop it as a zip, or raise "
            "the limit"
        )
        return [Pending(upload, upload, name, refusal=text)]
    if not archives.is_archive(data):
        return [Pending(upload, upload, name, lambda: data, simulated=demo)]
    demo = demo or _is_demo_archive(data)
    try:
        entries = list(archives.entries(name, data))
    except FileError as error:
        return [Pending(upload, upload, name, refusal=str(error))]
    except Exception:  # a broken archive must not take the other files with it
        LOG.exception("opening %r failed", name)
        text = f"{name}: could not be opened; the log has the reason"
        return [Pending(upload, upload, name, refusal=text)]
    if not entries:
        return [Pending(upload, upload, name, refusal=f"{name}: an archive without files")]
    if len(entries) == 1 and "/" not in entries[0].name:  # a .gz is the file in it
        return [Pending(upload, upload, entries[0].name, entries[0].read)]
    return [
        Pending(f"{upload}/{at}", upload, entry.name, entry.read, simulated=demo)
        for at, entry in enumerate(entries)
    ]


def _is_demo_archive(data: bytes) -> bool:
    """Whether it is the demo as it is offered for download: simulated, and must say so."""
    demo = published.DEMO_ARCHIVE
    return len(data) == demo.stat().st_size and data == demo.read_bytes()


def taken(
    pending: Pending, earlier: Mapping[str, Dropped], saved: Sequence[SavedMapping]
) -> Dropped:
    """The file, read; or why it is refused. `earlier` are the files before it, by digest.

    A copy of a file with runs counts once. A copy of a file that speaks of the runs beside it may
    lie in many folders.
    """
    blank = Dropped(
        pending.name,
        "",
        pending.upload,
        refusal=pending.refusal,
        in_archive=pending.in_archive,
        simulated=pending.simulated,
    )
    if pending.refusal:
        return blank
    try:
        data = pending.get()
    except FileError as error:
        return replace(blank, refusal=str(error))
    except Exception:  # a damaged entry must not take the others with it
        LOG.exception("unpacking %r failed", pending.name)
        text = f"{pending.name}: could not be unpacked; the log has the reason"
        return replace(blank, refusal=text)
    sha256 = hashlib.sha256(data).hexdigest()
    same = earlier.get(sha256)
    if same is not None and (same.reading is None or same.reading.runs):
        text = f"{pending.name}: the same file as {same.name}, dropped twice; it counts once"
        return replace(blank, refusal=text)
    return read_file(replace(blank, sha256=sha256, data=data), saved=saved)


def read_file(
    file: Dropped, mapping: Mapping[str, str] | None = None, saved: Sequence[SavedMapping] = ()
) -> Dropped:
    """The file read from its kept bytes, by a mapping or by the one remembered for its shape."""
    blank = replace(file, reading=None, refusal="", mapping={}, taught=None)
    try:
        if mapping:
            return _with(blank, read(file.name, file.data, mapping), mapping)
        try:
            return _with(blank, read(file.name, file.data))
        except UnknownFormat as error:
            found = _as_remembered(replace(blank, columns=error.columns), saved)
            if found is None:
                raise
            return found
    except UnknownFormat as error:
        columns = error.columns or (file.columns if mapping else ())
        data = file.data if columns else b""
        return replace(blank, refusal=str(error), columns=columns, data=data, taught=None)
    except (FileError, InputError) as error:
        data = file.data if mapping else b""
        return replace(blank, refusal=str(error), data=data, taught=None)
    except Exception:  # a file that breaks its reader must not take the others with it
        LOG.exception("reading %r failed", file.name)
        text = f"{file.name}: could not be read; the log has the reason"
        return replace(blank, refusal=text, data=b"", columns=(), taught=None)


def _as_remembered(file: Dropped, saved: Sequence[SavedMapping]) -> Dropped | None:
    """The file read by the mapping remembered for its shape; None where none does."""
    known = match(file.leaves, saved)
    if known is None:
        return None
    try:
        reading = read(file.name, file.data, known.mapping)
    except (FileError, InputError):
        return None  # of that shape, and yet another file: it is mapped anew
    text = f"read as {known.name} was mapped by hand"
    flags = (*reading.flags, Flag("mapping_reused", "warns", text))
    return _with(replace(file, taught=known), replace(reading, flags=flags), known.mapping)


def _with(file: Dropped, reading: Reading, mapping: Mapping[str, str] | None = None) -> Dropped:
    """The file with its reading. What may be mapped stays offered once something was mapped."""
    if file.simulated:
        runs = tuple(replace(r, engine=r.engine or SIMULATED) for r in reading.runs)
        reading = replace(reading, runs=runs)
    columns = file.columns or reading.unmatched
    data = file.data if columns else b""
    return replace(file, reading=reading, columns=columns, data=data, mapping=dict(mapping or {}))


def kinds(flags: Sequence[Flag], elsewhere: Sequence[str] = SAID_ELSEWHERE) -> list[list[Flag]]:
    """Flags, those of one kind together; the codes that are said elsewhere are left out."""
    found: dict[tuple[str, str], list[Flag]] = {}
    for flag in flags:
        if flag.code not in elsewhere:
            found.setdefault((flag.severity, flag.code), []).append(flag)
    return list(found.values())


def natural(name: str) -> list[tuple[int, str]]:
    """Sorts c2 before c16."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in DIGITS.split(name)]


def chosen(mapping: Mapping[str, str]) -> dict[str, str]:
    """The part of a mapping that sends a column to a field."""
    return {header: target for header, target in mapping.items() if target != IGNORE}


def runs_text(count: int) -> str:
    """`1 run`, `2 runs`."""
    return counted(count, "run")


def common_folder(names: Sequence[str]) -> str:
    """The folders that all of several paths begin with, the last slash included."""
    if len(names) < 2:
        return ""
    first, *others = (name.split("/")[:-1] for name in names)
    depth = next(
        (at for at, part in enumerate(first) if any(o[at : at + 1] != [part] for o in others)),
        len(first),
    )
    return "".join(f"{part}/" for part in first[:depth])


def short_name(name: str) -> str:
    """The file's own name, with its folder where it has one."""
    return "/".join(PurePosixPath(name).parts[-2:])
