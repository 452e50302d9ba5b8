"""Putting what was dropped into a study, bundle by bundle, with a tally of what came of it."""

from collections.abc import Callable, Iterable, Sequence
from uuid import uuid4

from lib.results import importing
from lib.results.bundles import Bundle
from lib.results.reading import Reading
from lib.results.store import Store
from lib.ui.dropped import Outcome, runs_text

Tell = Callable[[int, int, str], None]


class Adding:
    """One import in progress. Whatever ends it, `outcome` says how far it came."""

    def __init__(self, store: Store, study: str, tell: Tell) -> None:
        self.notes: list[str] = []
        self._store, self._study, self._tell = store, study, tell
        self._import_id = uuid4().hex
        self._runs = self._files = self._completed = 0
        self._again: dict[str, tuple[Reading, set[str]]] = {}

    def add(self, ready: Sequence[Bundle]) -> None:
        """Add bundles, each whole or not at all."""
        for at, bundle in enumerate(ready):
            name = bundle.reading.name
            self._tell(at, len(ready), name)
            added = self._store.add(
                bundle.reading, self._study, beside=bundle.beside, import_id=self._import_id
            )
            self._runs, self._files = self._runs + added.new, self._files + bool(added.new)
            if not added.new:  # its runs are there already
                for said in bundle.beside:
                    _, runs = self._again.setdefault(said.name, (said, set()))
                    runs.update(added.duplicates)
            if added.duplicate_of is not None:
                self.notes.append(f"{name}: the same runs as {added.duplicate_of}, not added again")
            elif added.duplicates:
                there = runs_text(len(added.duplicates))
                self.notes.append(f"{name}: {there} there already, not added again")
            self.notes += [f"{name}: takes the place of {other}" for other in added.replaces]

    def revise(self, unclaimed: Iterable[Reading]) -> None:
        """Complete runs that the study has already with what lies beside none of the new ones."""
        later = {said.name: (said, set[str]()) for said in unclaimed} | self._again
        for at, (said, again) in enumerate(later.values()):
            self._tell(at, len(later), said.name)
            done = importing.revise(
                self._store, self._study, said, again, import_id=self._import_id
            )
            self._completed += done.changed
            text = f"completed {runs_text(done.changed)} of the study ({done.what})"
            rest = "says nothing new of its runs" if done.beside else "no run lies beside it"
            self.notes.append(f"{said.name}: {text if done.changed else rest}")

    def outcome(self, error: str = "") -> Outcome:
        """What came of it so far; with an id where something can be undone."""
        import_id = self._import_id if self._runs or self._completed else ""
        return Outcome(
            self._study,
            self._runs,
            self._files,
            self._completed,
            tuple(self.notes),
            error,
            import_id,
        )
