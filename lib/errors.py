"""Every error that Draftworth raises on purpose.

DraftworthError
├── InputError            an argument or field is outside its range
├── FileError             a file cannot be used
│   ├── UnreadableFile    empty, truncated, not text, too deep
│   ├── UnknownFormat     readable, but no reader knows its keys
│   └── FileTooLarge      over a limit of the settings table
├── StoreError            the store cannot do what was asked
│   ├── StoreLocked       another process holds it
│   ├── StudyNotFound     no study of that name
│   └── ReadOnlyStudy     a published or demo study cannot be changed
├── NotComparable         the runs do not allow the comparison that was asked for
├── ProbeError            a measurement here cannot be made, or failed
└── FetchError            an address may not be asked, or did not answer as needed

A message names the input, what is allowed and the way out, in one line.
"""

from typing import Any


class DraftworthError(Exception):
    """Base of the tree; the interface shows its text, never a traceback."""


class InputError(DraftworthError, ValueError):
    """An argument or field is outside its range."""


class FileError(DraftworthError):
    """A file cannot be used."""


class UnreadableFile(FileError):
    """The bytes are empty, truncated, not text or nested too deep."""


class UnknownFormat(FileError):
    """The file reads well, but no reader knows its keys.

    `columns` holds what a person may map to fields by hand (header and samples), if anything.
    """

    def __init__(self, message: str, columns: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.columns = columns


class FileTooLarge(FileError):
    """The file is over a limit of the settings table."""


class StoreError(DraftworthError):
    """The store cannot do what was asked."""


class StoreLocked(StoreError):
    """Another process holds the store."""


class StudyNotFound(StoreError):
    """No study of that name."""


class ReadOnlyStudy(StoreError):
    """A published or demo study cannot be changed."""


class NotComparable(DraftworthError):
    """The runs do not allow the comparison that was asked for."""


class ProbeError(DraftworthError):
    """A measurement here cannot be made, or failed."""


class FetchError(DraftworthError):
    """An address may not be asked, or did not answer as needed."""
