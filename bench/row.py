"""One row of the speed table, and how both of its sides are measured."""

import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Row:
    """One measured ratio, of milliseconds or of `unit`; `goal` is the largest that is wanted.

    A row without a goal is for reading alone.
    """

    what: str
    ours: float
    floor: str
    least: float
    goal: float | None
    unit: str = "ms"

    @property
    def ratio(self) -> float:
        return self.ours / self.least

    @property
    def digits(self) -> int:
        """Decimals that its figures are printed with."""
        return 0 if self.least >= 20 else 2

    @property
    def met(self) -> bool:
        """Whether the goal is met, where there is one."""
        return self.goal is None or self.ratio <= self.goal

    def as_json(self) -> dict[str, Any]:
        """The row as plain data, with its ratio and whether it meets the goal."""
        return {**asdict(self), "ratio": self.ratio, "met": self.met}


def interleaved(
    ours: Callable[[], float], floor: Callable[[], float], rounds: int
) -> tuple[float, float]:
    """Medians of alternating measurements: what else the machine does hits both alike."""
    pairs = [(ours(), floor()) for _ in range(rounds)]
    return statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs)
