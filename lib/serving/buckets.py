"""Latency histograms as servers count them: exact means, and shares known between bucket edges."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from lib.errors import InputError


@dataclass(frozen=True)
class Histogram:
    """Samples by latency: `counts[i]` of them took at most `edges_s[i]` seconds.

    The edges rise and are finite; `count` is all samples and `sum_s` their seconds together. A
    server that counts no buckets has no edges.
    """

    count: float
    sum_s: float
    edges_s: tuple[float, ...] = ()
    counts: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        rising = all(a < b for a, b in pairwise(self.edges_s))
        paired = len(self.edges_s) == len(self.counts)
        if self.sum_s < 0 or not paired or not rising or not _grows(self.counts, self.count):
            raise InputError("histogram: rising edges, each with the samples up to it, are needed")

    @property
    def mean_ms(self) -> float | None:
        """Milliseconds a sample; None without samples."""
        return self.sum_s / self.count * 1e3 if self.count else None

    def quantile_ms(self, share: float) -> tuple[float, float | None] | None:
        """Between which edges the quantile lies, in ms; None above where no edge bounds it.

        None without samples or buckets: nothing in between is interpolated.
        """
        if not 0 < share <= 1:
            raise InputError(f"quantile = {share}: above 0 and at most 1 is allowed")
        if not self.count or not self.edges_s:
            return None
        at = bisect_left(self.counts, share * self.count)
        low = self.edges_s[at - 1] * 1e3 if at else 0.0
        return low, self.edges_s[at] * 1e3 if at < len(self.edges_s) else None

    def within(self, limit_ms: float) -> tuple[float, float]:
        """How many samples took at most `limit_ms`: at least, and at most. Equal on an edge."""
        below, above = self._beside(limit_ms)
        least = self.counts[below - 1] if below else 0.0
        return least, self.counts[above] if above < len(self.counts) else self.count

    def around_ms(self, limit_ms: float) -> tuple[float, float | None]:
        """The edges beside a limit, in ms: the last one up to it, the first one from it on."""
        below, above = self._beside(limit_ms)
        low = self.edges_s[below - 1] * 1e3 if below else 0.0
        return low, self.edges_s[above] * 1e3 if above < len(self.edges_s) else None

    def _beside(self, limit_ms: float) -> tuple[int, int]:
        """How many edges lie up to the limit, and the index of the first one from it on."""
        limit_s = limit_ms / 1e3
        return bisect_right(self.edges_s, limit_s), bisect_left(self.edges_s, limit_s)

    def since(self, before: "Histogram | None") -> "Histogram":
        """The samples that came after `before`."""
        return self if before is None else self._with(before, -1.0)

    def plus(self, other: "Histogram") -> "Histogram":
        """The samples of both."""
        return self._with(other, 1.0)

    def _with(self, other: "Histogram", sign: float) -> "Histogram":
        """Counts up to an edge add up wherever both have that edge; other edges are left out."""
        theirs = dict(zip(other.edges_s, other.counts, strict=True))
        mine = zip(self.edges_s, self.counts, strict=True)
        return histogram(
            self.count + sign * other.count,
            max(self.sum_s + sign * other.sum_s, 0.0),
            [(edge, n + sign * theirs[edge]) for edge, n in mine if edge in theirs],
        )


def histogram(count: float, sum_s: float, buckets: Sequence[tuple[float, float]]) -> Histogram:
    """A histogram of edges with the samples up to each; without any where they contradict."""
    rows = sorted(buckets)
    edges, counts = tuple(e for e, _ in rows), tuple(n for _, n in rows)
    if not _grows(counts, count):
        return Histogram(count, sum_s)
    return Histogram(count, sum_s, edges, counts)


def _grows(counts: Sequence[float], count: float) -> bool:
    return all(a <= b for a, b in pairwise((0.0, *counts, count)))
