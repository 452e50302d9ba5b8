"""What the headers of a table mean: fields, and arms that have columns of their own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lib.errors import InputError
from lib.results.fields import (
    LOADS,
    Match,
    is_number,
    lookup,
    lookup_words,
    targets,
    unit_factor,
    words_of,
)
from lib.results.naming import ArmName, parse_arm, spell
from lib.run import SpecState

IGNORE = "ignore"
OUTCOMES = ("output_tps", "tpot_ms_mean", "tpot_ms_p50", "multiplier", "goodput_rps")
PER_GPU, PER_USER = "per GPU", "per user"
LONGEST_METHOD = 60
_FILLERS = {"static", "fixed", "with", "and", "decode", "decoding", "tokens", "draft", "num"}


@dataclass(frozen=True)
class Understood:
    """A column whose header is understood; `arm` where the header or a person names one."""

    place: int
    header: str
    match: Match
    arm: ArmName | None = None
    arm_key: str = ""

    @property
    def is_numeric(self) -> bool:
        """Whether its cells are numbers."""
        return self.match.field in LOADS or is_number(self.match.field)

    @property
    def meaning(self) -> tuple[str, str]:
        """What it says of which arm: two columns of one meaning are alike."""
        return self.match.dimension or self.match.field, self.arm_key


def understand(headers: Sequence[str], mapping: Mapping[str, str]) -> list[Understood]:
    """The columns that are understood; `mapping` overrides. The first of two alike counts.

    Raises InputError for a mapping to an unknown field.
    """
    found: list[Understood] = []
    taken: set[tuple[str, str]] = set()
    for place, header in enumerate(h.strip() for h in headers):
        column = _mapped(place, header, mapping) if header in mapping else _matched(place, header)
        if column is None or column.meaning in taken:
            continue
        taken.add(column.meaning)
        found.append(column)
    return found


def _mapped(place: int, header: str, mapping: Mapping[str, str]) -> Understood | None:
    target, at, arm_text = mapping[header].partition("@")
    if target == IGNORE:
        return None
    if target not in targets():
        raise InputError(f"column {header!r} to {target!r}: one of ignore, {', '.join(targets())}")
    match = lookup(header)
    if match is None or match.field != target:
        match = Match(target, unit_factor(header, target))
    match = replace(match, unit_assumed=False)
    if not at:
        return Understood(place, header, match)
    arm = ArmName(*parse_arm(arm_text).values())  # type: ignore[arg-type]
    return Understood(place, header, match, arm, arm_text)


def _matched(place: int, header: str) -> Understood | None:
    if (match := lookup(header)) is not None:
        return Understood(place, header, match)
    words = tuple(words_of(header))
    for cut in range(1, len(words)):
        match, prefix = lookup_words(words[cut:]), " ".join(words[:cut])
        if match and _is_outcome(match) and (arm := spell(prefix)) and prefix != "draft":
            return Understood(place, header, match, distinct(arm), prefix)
    return None


def _is_outcome(match: Match) -> bool:
    return match.field in (*OUTCOMES, "output_tps_sd") or match.field.startswith(("ttft", "e2e"))


def distinct(arm: ArmName) -> ArmName:
    """An arm whose name says more than method and K has all of it as method: two stay apart."""
    rest = [word for word in arm.rest if word not in _FILLERS]
    if arm.state is SpecState.OFF or not rest:
        return arm
    name = " ".join(filter(None, (arm.method, *rest)))
    return replace(arm, method=name.replace(":", " ").replace("=", " ")[:LONGEST_METHOD])


def is_whole(columns: Sequence[Understood]) -> bool:
    """Whether a table with these columns has a load and an outcome."""
    fields = {c.match.field for c in columns}
    load = fields & LOADS.keys() or {"offered_load", "load_kind"} <= fields
    return bool(load) and bool(fields & set(OUTCOMES))
