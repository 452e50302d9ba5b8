"""Who pays for a shared deployment: by what was reserved, or by what was used."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lib.errors import InputError

SHAPE = "name, reserved, used, teams apart by a semicolon: A, 3, 1; B, 1, 1"


@dataclass(frozen=True)
class Team:
    """A team's part of the capacity, in the same unit: what it reserves and what it uses."""

    name: str
    reserved: float
    used: float

    def __post_init__(self) -> None:
        if not self.name:
            raise InputError(f"charge-back: a name is missing; {SHAPE}")
        for field in ("reserved", "used"):
            value = getattr(self, field)
            if not (math.isfinite(value) and value >= 0):
                raise InputError(f"{self.name}: {field} = {value}: a number of at least 0")


@dataclass(frozen=True)
class Bill:
    """$ by team in the order given, and of what is nobody's; the parts sum to the total.

    `idle` is not reserved where it is by reservation, not used where it is by use; 0 where it is
    shared out.
    """

    parts: tuple[float, ...]
    idle: float


def by_reservation(
    total_usd: float, capacity: float, teams: Sequence[Team], *, share_idle: bool = False
) -> Bill:
    """Each team pays for what it reserves; `share_idle` spreads the rest in that proportion."""
    return _bill(total_usd, capacity, [t.reserved for t in teams], "reserved", share_idle)


def by_use(total_usd: float, capacity: float, teams: Sequence[Team]) -> Bill:
    """Each team pays for what it uses; what nobody uses stays apart."""
    return _bill(total_usd, capacity, [t.used for t in teams], "used", share_idle=False)


def _bill(
    total_usd: float, capacity: float, held: Sequence[float], what: str, share_idle: bool
) -> Bill:
    if not (math.isfinite(total_usd) and total_usd >= 0):
        raise InputError(f"total = {total_usd}: a number of at least 0 is needed")
    if not (math.isfinite(capacity) and capacity > 0):
        raise InputError(f"capacity = {capacity}: a number above 0 is needed")
    taken = math.fsum(held)
    if taken > capacity * (1 + 1e-12):
        raise InputError(
            f"the teams' {what} sum to {taken:g}, above the capacity of {capacity:g}: type more "
            "capacity or less of it"
        )
    if share_idle and not taken:
        raise InputError(f"nothing is {what}: there is nothing to share the idle part by")
    whole = taken if share_idle else capacity
    parts = tuple(total_usd * (h / whole) for h in held)
    return Bill(parts, 0.0 if share_idle else total_usd * ((capacity - taken) / capacity))


def parse(text: str) -> tuple[Team, ...]:
    """Teams from `name, reserved, used; name, reserved, used`; InputError names what is wrong."""
    teams: list[Team] = []
    for each in filter(None, (part.strip() for part in text.split(";"))):
        name, *numbers = (part.strip() for part in each.rsplit(",", 2))
        try:
            reserved, used = map(float, numbers)
        except ValueError:
            raise InputError(f"team {each[:40]!r}: {SHAPE}") from None
        if any(t.name == name for t in teams):
            raise InputError(f"team {name[:40]!r} stands twice: name each once")
        teams.append(Team(name, reserved, used))
    return tuple(teams)
