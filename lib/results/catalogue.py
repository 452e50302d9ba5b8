"""All studies there are: the visitor's own first, then the published ones and the demo."""

from dataclasses import dataclass

from lib.errors import StudyNotFound
from lib.results import published
from lib.results.store import Store
from lib.run import Study


@dataclass(frozen=True)
class StudyName:
    """A study as it is offered for choice, before its runs are read."""

    name: str
    read_only: bool = False
    title: str = ""
    note: str = ""


def names(store: Store | None) -> tuple[StudyName, ...]:
    """The store's studies, the newest first, then the read-only ones in their own order.

    Without a store (another process holds it) the read-only ones are still there.
    """
    own = () if store is None else store.studies()
    cited = [c for c in published.citations().values() if c.study not in own]
    return (
        *(StudyName(name) for name in own),
        *(StudyName(c.study, True, c.title, c.note) for c in cited),
    )


def study(store: Store, name: str) -> Study:
    """The study of that name, the visitor's own first. Raises StudyNotFound."""
    if name in store.studies():
        return store.study(name)
    if name in published.studies():
        return published.study(name)
    known = ", ".join(n.name for n in names(store))
    raise StudyNotFound(f"study {name!r}: there is none; the studies are: {known}")


def fingerprint(store: Store, name: str) -> str:
    """A token that differs whenever the study does; read-only studies never do."""
    return store.fingerprint(name) if name in store.studies() else "read-only"
