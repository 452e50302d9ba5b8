"""The versions of a run: what an import replaced, and what is left when one is taken back."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

from lib.run import EDITABLE, GROUPS, Run, SpecState

_ARM = ("spec_state", *GROUPS.speculation)
_BLANK = {"spec_state": SpecState.UNKNOWN}


@dataclass(frozen=True)
class Version:
    """A run as one import left it.

    `version` counts the store's changes when it was written. One that `revises` was derived from
    the version below; any other was read from a file of its own. `stated` are the fields that a
    person stated, None where nobody wrote that down (a store of version 1); `carried` those that
    were taken over from the version below. `replaced_at` is UTC without a zone, None while the
    version is current.
    """

    run: Run
    version: int
    import_id: str
    revises: bool = False
    stated: tuple[str, ...] | None = ()
    carried: tuple[str, ...] = ()
    request_key: int | None = None
    replaced_at: datetime | None = None


def superseding(incoming: Version, earlier: Version) -> Version:
    """The incoming version, with what was stated about the earlier one and it does not say."""
    run = incoming.run
    names = ["repeat", *EDITABLE]
    if run.spec_state != SpecState.UNKNOWN:
        names = [n for n in names if n not in _ARM]
    carried = [n for n in names if _blank(run, n) and not _blank(earlier.run, n)]
    known = carried if earlier.stated is None else earlier.stated
    return replace(
        incoming,
        run=_taking(run, earlier.run, carried),
        stated=tuple(n for n in carried if n in known and n != "repeat"),
        carried=tuple(carried),
    )


def revising(current: Version, run: Run, version: int, import_id: str) -> Version:
    """The version that a revised run makes: what a person stated, and what it is, stays."""
    kept = {"run_id", "study", "source_sha256"}
    if run.repeat is None:
        kept.add("repeat")
    if current.stated is None:
        kept |= {n for n in EDITABLE if _blank(run, n)}
    else:
        kept.update(current.stated)
        kept.update(_ARM if "spec_state" in kept else ())
    return replace(
        current,
        run=_taking(run, current.run, kept),
        version=version,
        import_id=import_id,
        revises=True,
        carried=(),
    )


def without(stack: Sequence[Version], import_id: str) -> tuple[Version, ...]:
    """A run's versions, the oldest first, as they had been without one import.

    What was derived from a version of it goes along; what another import revised on top of its
    revision is applied to what was there before. What a person stated last stays stated.
    """
    kept: list[Version] = []
    rootless = False
    for at, version in enumerate(stack):
        below = stack[at - 1] if at else None
        if not version.revises:
            rootless = version.import_id == import_id
        if rootless or version.import_id == import_id:
            continue
        if below is None or (kept and kept[-1] is below):
            kept.append(version)
        elif version.revises:
            kept.append(_reapplied(version, below, kept[-1]))
        else:
            kept.append(_recarried(version, kept[-1] if kept else None))
    if kept and kept[-1].version != stack[-1].version:
        kept[-1] = _restated(kept[-1], stack[-1])
    return tuple(replace(v, replaced_at=None) if v is kept[-1] else v for v in kept)


def current_chain(stack: Sequence[Version]) -> set[int]:
    """Numbers of the versions that the current one is, or was derived from."""
    chain = set()
    for version in reversed(stack):
        chain.add(version.version)
        if not version.revises:
            break
    return chain


def _reapplied(version: Version, below: Version, base: Version) -> Version:
    """What `version` changed in `below`, changed in `base`."""
    changed = [
        f.name
        for f in fields(Run)
        if getattr(version.run, f.name) != getattr(below.run, f.name)
        or f.name in (version.stated or ())
    ]
    own = version.request_key != below.request_key
    return replace(
        version,
        run=_taking(base.run, version.run, changed),
        request_key=version.request_key if own else base.request_key,
    )


def _recarried(version: Version, below: Version | None) -> Version:
    """A version whose carried fields come from another version below it, or from none."""
    stated = version.stated or ()
    gone: dict[str, Any] = {n: _BLANK.get(n) for n in version.carried if n not in stated}
    own = replace(version, run=replace(version.run, **gone), carried=())
    if below is None or not version.carried:
        return own
    again = superseding(own, below)
    return replace(
        again,
        run=_taking(again.run, own.run, stated),
        stated=None
        if own.stated is None
        else tuple(dict.fromkeys((*stated, *(again.stated or ())))),
    )


def _restated(version: Version, newest: Version) -> Version:
    """A version that is current again, with what was stated about the newest one."""
    if not newest.stated:
        return version
    union = dict.fromkeys((*(version.stated or ()), *newest.stated))
    return replace(
        version,
        run=_taking(version.run, newest.run, newest.stated),
        stated=None if version.stated is None else tuple(union),
    )


def _taking(run: Run, other: Run, names: Collection[str]) -> Run:
    """`run` with these fields of `other`."""
    taken: dict[str, Any] = {name: getattr(other, name) for name in names}
    return replace(run, **taken)


def _blank(run: Run, name: str) -> bool:
    return getattr(run, name) in (None, SpecState.UNKNOWN)
