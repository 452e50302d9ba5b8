"""A watched folder: what is dropped there is imported, once it has come to rest."""

import hashlib
import logging
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread

from lib.errors import DraftworthError
from lib.results.archives import Entry
from lib.results.importing import ImportReport, import_entries
from lib.results.locating import list_files
from lib.results.store import Store

LOG = logging.getLogger("draftworth")
SECONDS = 2.0
REMEMBERED = 50
BY = "inbox"

Stamp = tuple[int, int]  # size, time of the last change


@dataclass(frozen=True)
class Arrival:
    """What one look brought into a study; `error` says why nothing could be."""

    study: str
    at: datetime
    report: ImportReport
    error: str = ""


class Inbox:
    """The folder and what came of it. A subfolder is a study of its own.

    A study's files are taken together, once none of them has changed between two looks.
    """

    def __init__(self, store: Store, folder: Path) -> None:
        self.folder = folder
        self.arrivals: deque[Arrival] = deque(maxlen=REMEMBERED)
        self._store = store
        self._stop = Event()
        self._last: dict[Path, Stamp] = {}
        self._taken: dict[Path, Stamp] = {}

    def start(self) -> None:
        """Look every two seconds, on a thread of its own, until `stop`."""
        Thread(target=self._watch, name="inbox", daemon=True).start()

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()

    def look(self) -> None:
        """Import what has come to rest since the look before."""
        now = {path: stamp for path in self._files() if (stamp := _stamp(path)) is not None}
        by_study: dict[str, list[Path]] = {}
        for path in now:
            by_study.setdefault(self._study_of(path), []).append(path)
        for study, paths in by_study.items():
            new = [p for p in paths if self._taken.get(p) != now[p]]
            if new and all(self._last.get(p) == now[p] for p in paths):
                self._taken |= {p: now[p] for p in new}
                self._import(study, new)
        self._last = now

    def _watch(self) -> None:
        while not self._stop.wait(SECONDS):
            try:
                self.look()
            except Exception:  # the next look may go well
                LOG.exception("looking into the inbox failed")

    def _files(self) -> Iterator[Path]:
        for path in sorted(self.folder.rglob("*")):
            hidden = any(p.startswith(".") for p in path.relative_to(self.folder).parts)
            if path.is_file() and not hidden:
                yield path

    def _study_of(self, path: Path) -> str:
        inner = path.relative_to(self.folder).parts
        return inner[0] if len(inner) > 1 else self.folder.name

    def _import(self, study: str, paths: list[Path]) -> None:
        report, error = ImportReport(), ""
        try:
            entries = list(self._entries(study, paths))
            if entries:
                report = import_entries(self._store, entries, study, BY)
        except DraftworthError as caught:
            error = str(caught)
        if error or report.files or report.refused:
            self.arrivals.appendleft(Arrival(study, datetime.now(UTC), report, error))

    def _entries(self, study: str, paths: list[Path]) -> Iterator[Entry]:
        """The files, named by their path below the study's folder, that the study has not yet."""
        held = set()
        if study in self._store.studies():
            held = {source.sha256 for source in self._store.sources(study)}
        for path in paths:
            folder = path.parent.relative_to(self.folder).parts[1:]
            for entry in list_files([path]):
                try:
                    data = entry.read()
                except DraftworthError:
                    yield entry  # the import says why it is refused
                    continue
                if hashlib.sha256(data).hexdigest() not in held:
                    yield replace(entry, name="/".join([*folder, entry.name]))


def _stamp(path: Path) -> Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns
