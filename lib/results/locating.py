"""Files, folders and archives of this machine as entries, each read only when it is asked for."""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from lib.errors import DraftworthError, FileError, FileTooLarge, InputError
from lib.results import archives
from lib.results.archives import Entry
from lib.results.parsing import printable
from lib.settings import number

_NOTHING = "no such file or folder"


def list_files(paths: Sequence[Path]) -> Iterator[Entry]:
    """Each file by its path relative to the argument it was found under; hidden ones are not.

    An archive stands for the files in it. What cannot be read in a folder is an entry that says so
    when it is read, and the others go on. Raises InputError for a path that is no file or folder.
    """
    for path in paths:
        try:
            mode = path.stat().st_mode
            if stat.S_ISDIR(mode):
                yield from _inside(path)
            elif stat.S_ISREG(mode):
                yield from _opened(printable(path.name), path)
            else:
                raise InputError(f"{_shown(path)}: {_kind(mode)}; a file or folder is read")
        except InputError:
            raise
        except (OSError, ValueError) as error:  # a name may hold NUL
            raise InputError(f"{_shown(path)}: {_reason(error, path)}") from None


def _inside(folder: Path) -> Iterator[Entry]:
    """The files below a folder, by their paths, links to other folders not followed."""
    refused: list[OSError] = []
    found = []
    for place, folders, files in os.walk(folder, onerror=refused.append):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(place, name) for name in files if not name.startswith(".")]
    for error in refused:
        yield from _refusal(Path(error.filename or folder), folder, error)
    for path in sorted(found):
        try:
            mode = path.stat().st_mode
            name = printable(path.relative_to(folder).as_posix())
            if stat.S_ISREG(mode):
                yield from _opened(name, path)
            else:
                refusal = FileError(f"{name}: {_kind(mode)}, not a file with results")
                yield Entry(name, partial(_refuse, refusal))
        except OSError as error:
            yield from _refusal(path, folder, error)


def _refusal(path: Path, folder: Path, error: OSError) -> Iterator[Entry]:
    name = printable(path.relative_to(folder).as_posix())
    name = printable(folder.name) if name == "." else name
    yield Entry(name, partial(_refuse, FileError(f"{name}: {_reason(error, path)}")))


def _reason(error: OSError | ValueError, path: Path) -> str:
    """Why a path cannot be read, in a few words."""
    code = error.errno if isinstance(error, OSError) else None
    if code == errno.ELOOP:
        return "a link that leads back to itself"
    if code == errno.ENOENT:
        broken = os.path.islink(path)
        return "a link to nothing; put the file itself there" if broken else _NOTHING
    if code in (errno.EACCES, errno.EPERM):
        return "not readable by this user; give the permission, or copy it"
    return (error.strerror if isinstance(error, OSError) else "") or "cannot be opened"


def _kind(mode: int) -> str:
    kinds = (
        (stat.S_ISFIFO, "a pipe (FIFO)"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    )
    return next((text for test, text in kinds if test(mode)), "neither a file nor a folder")


def _shown(path: Path) -> str:
    return printable(str(path))[:200]


def _opened(name: str, path: Path) -> Iterator[Entry]:
    try:
        with path.open("rb") as file:
            start = file.read(8)
        if archives.is_archive(start):
            _require_size(path, name)
            yield from archives.entries(name, path)
        else:
            yield Entry(name, partial(_bytes, path, name))
    except FileError as error:
        yield Entry(name, partial(_refuse, error))
    except OSError as error:
        yield Entry(name, partial(_refuse, FileError(f"{name}: {_reason(error, path)}")))


def _refuse(error: DraftworthError) -> bytes:
    raise error


def _bytes(path: Path, name: str) -> bytes:
    try:
        _require_size(path, name)
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"{name}: {_reason(error, path)}") from None


def _require_size(path: Path, name: str) -> None:
    limit, size = number("DRAFTWORTH_IMPORT_MB"), path.stat().st_size
    if size > limit * 2**20:
        raise FileTooLarge(
            f"{name}: {size / 2**20:,.0f} MB; at most {limit} MB is read "
            "(raise DRAFTWORTH_IMPORT_MB, or save without per-request detail)"
        )
