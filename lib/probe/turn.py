"""One measurement at a time on a device, across processes."""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lib.errors import ProbeError


@contextlib.contextmanager
def taken(key: str, name: str) -> Iterator[None]:
    """Hold the device of `key` until the end of the block or of this process.

    Raises ProbeError where another process holds it; `name` is what a person knows it by.
    """
    try:
        import fcntl
    except ImportError:  # no such locks on this system: two at once show as a spread of the times
        yield
        return
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    lock = _opened(Path(tempfile.gettempdir()) / f"draftworth-probe-{digest}.lock")
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ProbeError(
                f"a probe already runs on {name}: two at once spoil each other's times; wait for "
                "it to end, or cancel it"
            ) from None
        yield
    finally:
        os.close(lock)


def _opened(path: Path) -> int:
    # Reading is enough for a lock, and the file may be another user's.
    for flags in (os.O_RDONLY, os.O_RDONLY | os.O_CREAT):
        with contextlib.suppress(FileNotFoundError):
            return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    raise ProbeError(f"no lock can be made at {path}: set TMPDIR to a folder that exists")
