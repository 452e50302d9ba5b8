"""What two sets of runs must have in common to be compared, field by field (design law 7)."""

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Literal

from lib.errors import InputError
from lib.results.study_checks import LENGTH_EQUAL, LENGTH_NOTED
from lib.run import GROUPS, LoadKind, Run, distinct

Verdict = Literal["blocks", "noted", "allocation"]

LENGTHS = ("input_len", "output_len")
FIELDS = {
    "workload": (*GROUPS.workload, "slo"),
    "server": GROUPS.server,
    "allocation": GROUPS.allocation,
}
# Set by a person for a purpose of their own: open, they leave no comparison open.
OWN_PURPOSE = ("slo", "usd_per_hour")
_HASH = re.compile(r"\b([0-9a-f]{8})[0-9a-f]{12,}\b")  # a commit or digest: eight digits tell it
# One curve never mixes these; any other field may vary along it as long as each pair agrees.
ONE_CURVE = (
    *(f for f in GROUPS.workload if f not in (*LENGTHS, "tool", "tool_version")),
    *GROUPS.speculation,
)


@dataclass(frozen=True)
class Difference:
    """One protocol field in which the two arms disagree, and at which loads.

    `verdict`: blocks (not paired there, unless a person overrides it), noted (paired, printed) or
    allocation (paired; the comparison is then allocation against allocation).
    """

    field: str
    group: str
    off: str
    on: str
    loads: tuple[float, ...]
    verdict: Verdict
    overridden: bool = False

    @property
    def text(self) -> str:
        """`temperature differs: off 0, on 1 at 1, 2, 4: not paired`."""
        ends = {"blocks": "not paired", "noted": "noted", "allocation": "another allocation"}
        end = "overridden by a person" if self.overridden else ends[self.verdict]
        return (
            f"{self.field} differs: off {self.off}, on {self.on} at {load_list(self.loads)}: {end}"
        )


def require_fields(overrides: Iterable[str]) -> None:
    """Raise InputError for an override that names no protocol field."""
    fields = [n for names in FIELDS.values() for n in names]
    for name in sorted(set(overrides) - set(fields)):
        raise InputError(f"override {name!r}: one of {', '.join(fields)}")


def agreeing(off: Sequence[Run], on: Sequence[Run], overrides: frozenset[str]) -> Sequence[Run]:
    """The off runs of one load that agree best with the arm's runs there.

    In order: the same protocol on the same allocation, the same protocol, the same but for
    overridden fields; where there are none of these, all of them.
    """
    found = [(r, differences_at([r], on, overrides)) for r in off]
    same = [r for r, ds in found if all(d.verdict == "noted" for d in ds)]
    elsewhere = [r for r, ds in found if all(d.verdict != "blocks" for d in ds)]
    accepted = [r for r, ds in found if all(d.verdict != "blocks" or d.overridden for d in ds)]
    return same or elsewhere or accepted or off


def differences_at(
    off: Sequence[Run], on: Sequence[Run], overrides: frozenset[str]
) -> list[Difference]:
    """Field by field, the differences of two arms at one load."""
    load = on[0].offered_load or 0.0
    found = []
    for group, names in FIELDS.items():
        for name in names:
            a, b = known(off, name), known(on, name)
            verdict = _verdict(name, group, a, b)
            if name == "graph_max_batch":
                verdict = _graph_verdict(a, b, on[0])
            if verdict is not None:
                overridden = verdict == "blocks" and name in overrides
                found.append(
                    Difference(name, group, _text(a), _text(b), (load,), verdict, overridden)
                )
    return found


def merged(found: Iterable[Difference]) -> tuple[Difference, ...]:
    """The same difference at several loads as one."""

    def same(d: Difference) -> Hashable:
        values = () if d.field in LENGTHS else (d.off, d.on)
        return d.field, d.verdict, d.overridden, values

    return tuple(
        replace(
            group[0],
            off=", ".join(distinct(d.off for d in group)),
            on=", ".join(distinct(d.on for d in group)),
            loads=tuple(sorted(x for d in group for x in d.loads)),
        )
        for group in grouped(found, same).values()
    )


def belongs(run: Run, on: Sequence[Run], paired: Sequence[Run], overrides: frozenset[str]) -> bool:
    """Whether an off run at a load of its own lies on the curve of the off runs of this arm."""
    for group, names in FIELDS.items():
        for name in names:
            value = getattr(run, name)
            others = known(paired if group == "allocation" else [*on, *paired], name)
            if value is None or not others or name in (*overrides, *OWN_PURPOSE):
                continue
            if name in LENGTHS:
                if all(_gap([value, other]) > LENGTH_NOTED for other in others):
                    return False
            elif value not in others:
                return False
    return True


def splits(runs: Sequence[Run]) -> list[str]:
    """The fields that split the runs of one arm into curves of their own.

    Those of ONE_CURVE wherever they vary, the others where two runs at one load contradict each
    other.
    """
    loads = grouped(runs, lambda r: r.offered_load).values()
    others = (n for names in FIELDS.values() for n in names if n not in OWN_PURPOSE)
    names = [n for n in ONE_CURVE if len(known(runs, n)) > 1]
    names += [
        n for n in others if n not in ONE_CURVE and any(_contradict(known(g, n), n) for g in loads)
    ]
    return names


def by_protocol(
    runs: Sequence[Run], overrides: frozenset[str] = frozenset()
) -> dict[str, list[Run]]:
    """The runs of one arm by protocol: one part a curve, its name what tells it apart.

    A field that a person overrides splits nothing; its difference is printed with the pair.
    """
    names = [n for n in splits(runs) if n not in overrides]
    classes = {n: _classes(known(runs, n), n) for n in names}
    return grouped(
        runs,
        lambda r: ", ".join(f"{n} {classes[n].get(getattr(r, n), 'not recorded')}" for n in names),
    )


def not_recorded(paired: Sequence[Run]) -> tuple[str, ...]:
    """Protocol fields that some paired run does not state. A dataset or a domain will do.

    Who counted the tokens is left out: where nothing says it, one tool counts in one way.
    """
    left_out = (*OWN_PURPOSE, "domain", "token_count")
    fields = [n for names in FIELDS.values() for n in names if n not in left_out]
    return tuple(
        n
        for n in fields
        if any(
            getattr(r, n) is None and not (n == "dataset" and r.domain is not None) for r in paired
        )
    )


def _verdict(name: str, group: str, off: list[Any], on: list[Any]) -> Verdict | None:
    """What the known values of two arms mean for the pair. Runs that contradict each other inside
    one arm are no repeats, so they block."""
    if name in LENGTHS:
        gap = _gap([fmean(off), fmean(on)]) if off and on else 0.0
        if max(gap, _gap(off), _gap(on)) > LENGTH_NOTED:
            return "blocks"
        return "noted" if gap > LENGTH_EQUAL else None
    if len({*off, *on}) < 2:
        return None
    repeats = name in OWN_PURPOSE or (len(off) < 2 and len(on) < 2)
    return "allocation" if group == "allocation" and repeats else "blocks"


def _graph_verdict(off: list[Any], on: list[Any], run: Run) -> Verdict | None:
    """What unlike limits of graph capture mean: below the smaller one both arms run with graphs.

    Under a request rate nothing says how many requests a step held.
    """
    stated = {*off, *on}
    if not stated or (len(stated) == 1 and bool(off) == bool(on)):
        return None
    if run.load_kind is LoadKind.REQUEST_RATE or run.offered_load is None:
        return "blocks" if len(stated) > 1 else None
    if run.offered_load > min(stated):
        return "blocks"
    return "noted" if len(stated) > 1 else None


def _contradict(values: list[Any], name: str) -> bool:
    return _gap(values) > LENGTH_NOTED if name in LENGTHS else len(values) > 1


def _classes(values: list[Any], name: str) -> dict[Any, str]:
    """The name of each value's class: itself, or for lengths the shortest of those near it."""
    if name not in LENGTHS:
        return {v: _text([v]) for v in values}
    named: dict[Any, str] = {}
    previous = None
    for value in sorted(values):
        if previous is None or _gap([previous, value]) > LENGTH_NOTED:
            label = _text([value])
        named[value], previous = label, value
    return named


def _gap(values: Sequence[float]) -> float:
    """Largest relative distance, in units of the largest."""
    return 1 - min(values) / max(values) if values and max(values) > 0 else 0.0


def _text(values: Sequence[Any]) -> str:
    if not values:
        return "not recorded"
    return " | ".join(
        f"{v:.6g}"
        if isinstance(v, float)
        else ("no", "yes")[v]
        if isinstance(v, bool)
        else _HASH.sub(r"\1", str(v))
        for v in values
    )


def known(runs: Iterable[Run], name: str) -> list[Any]:
    """The values that the runs state for a field, each once."""
    return list(dict.fromkeys(v for r in runs if (v := getattr(r, name)) is not None))


def load_list(loads: Iterable[float]) -> str:
    return ", ".join(f"{x:g}" for x in loads)


def grouped(items: Iterable[Any], key: Callable[[Any], Any]) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups
