"""The same windows from a Prometheus server, over the HTTP API of range queries.

Asked are raw counters, never rate(): a rate guesses at the ends of its range and hides restarts.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from lib.addresses import Allowed, address_of
from lib.errors import FetchError, InputError
from lib.fetching import bearer, fetch
from lib.results.engine_metrics import ENGINES
from lib.results.exposition import Series
from lib.serving.history import labelled, together
from lib.serving.metrics import Snapshot, of_values
from lib.serving.series import NAMES
from lib.serving.windows import Window, between, side_by_side

MOST_STEPS = 1440
STEPS_A_QUERY = 60
SHORTEST_STEP_S = 1.0

_LABEL = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_RANKS = re.compile(r"(?:(?:^|, )(?:engine|dp_rank) [^,]*)+$")
_HISTOGRAMS = ("ttft_ms_mean", "tpot_ms_mean", "itl_ms_mean", "e2e_ms_mean")


@dataclass(frozen=True)
class Range:
    """From `start_s` to `end_s` (Unix time), a sample every `step_s`, at the ends included.

    A step shorter than Prometheus scrapes only repeats samples.
    """

    start_s: float
    end_s: float
    step_s: float

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, (self.start_s, self.end_s, self.step_s))):
            raise InputError("range: start, end and step have to be finite numbers of seconds")
        if self.step_s < SHORTEST_STEP_S:
            raise InputError(f"step {self.step_s:g} s: at least {SHORTEST_STEP_S:g} s is allowed")
        if self.end_s - self.start_s < self.step_s:
            raise InputError("range: it has to be at least one step long; ask for an earlier start")
        if self.steps > MOST_STEPS:
            raise InputError(
                f"range of {self.steps:,} steps: at most {MOST_STEPS:,} are read; ask for a step "
                f"of {math.ceil((self.end_s - self.start_s) / MOST_STEPS):,} s or more"
            )

    @property
    def steps(self) -> int:
        """How many steps lie between its ends."""
        return int((self.end_s - self.start_s) / self.step_s)

    @property
    def queries(self) -> Iterator[tuple[float, float]]:
        """First and last moment of each query, no moment in two of them."""
        for first in range(0, self.steps + 1, STEPS_A_QUERY):
            last = min(first + STEPS_A_QUERY - 1, self.steps)
            yield self.start_s + first * self.step_s, self.start_s + last * self.step_s


@dataclass(frozen=True)
class Prometheus:
    """A Prometheus server, and which of its targets are meant: labels with their exact values."""

    url: str
    allowed: Allowed
    labels: Mapping[str, str] = field(default_factory=dict)
    token: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        for name in self.labels:
            if not _LABEL.fullmatch(name):
                raise InputError(f"label {name[:40]!r}: letters, digits and _ are allowed")

    @property
    def shown(self) -> str:
        """host:port."""
        return address_of(self.url).shown

    @property
    def selector(self) -> str:
        """What selects the series of all engines in PromQL."""
        # A quoted string of PromQL escapes as JSON's does.
        named = "".join(f", {n}={json.dumps(v)}" for n, v in self.labels.items())
        return f'{{__name__=~"{"|".join(series_names())}"{named}}}'

    def windows(self, over: Range) -> tuple[Window, ...]:
        """The windows of a range, one a step; of a step without a sample the next one is longer.

        Raises FetchError, FileTooLarge, and UnreadableFile where more was accepted than drafted.
        """
        found = tuple(between(self.shown, self._snapshots(over)))
        if not found:
            raise FetchError(
                f"{self.shown}: no engine's series at two moments of that range; check the range, "
                "the labels, and that Prometheus scrapes the servers"
            )
        return found

    def _snapshots(self, over: Range) -> Iterator[Snapshot]:
        for start_s, end_s in over.queries:
            moments: dict[float, dict[Series, float]] = {}
            for series, samples in self._query(start_s, end_s, over.step_s):
                for at_s, value in samples:
                    moments.setdefault(at_s, {})[series] = value
            for at_s in sorted(moments):
                if (found := of_values(self.shown, moments[at_s], at_s)).replicas:
                    yield found

    def _query(
        self, start_s: float, end_s: float, step_s: float
    ) -> Iterator[tuple[Series, list[tuple[float, float]]]]:
        form = {"query": self.selector, "start": f"{start_s:.3f}", "end": f"{end_s:.3f}"}
        response = fetch(
            f"{self.url.rstrip('/')}/api/v1/query_range",
            self.allowed,
            method="POST",
            body=urlencode({**form, "step": f"{step_s:.3f}"}).encode(),
            headers=(("Content-Type", "application/x-www-form-urlencoded"), *bearer(self.token)),
        )
        try:
            document = json.loads(response.text)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict) or "status" not in document:
            raise FetchError(
                f"{self.shown}: no answer of a Prometheus server, status {response.status}; give "
                "the address that its /api/v1 hangs under"
            )
        if document["status"] != "success":
            said = " ".join(str(document.get("error", "no reason given")).split())[:160]
            said = "".join(c for c in said if c.isprintable())
            raise FetchError(f"{self.shown}: Prometheus refuses the query: {said}")
        data = document.get("data")
        rows = data.get("result") if isinstance(data, dict) else None
        if not isinstance(rows, list):
            raise FetchError(f"{self.shown}: its answer holds no series; is it Prometheus?")
        return filter(None, map(_row, rows))


def by_server(window: Window) -> Window:
    """A window of engines as one of servers: the data-parallel ranks of one target together."""
    found: dict[str, list[Window]] = {}
    for engine in window.parts:
        found.setdefault(_RANKS.sub("", engine.label), []).append(engine)
    return together([labelled(side_by_side(ranks), name) for name, ranks in found.items()])


def _row(row: Any) -> tuple[Series, list[tuple[float, float]]] | None:
    """A series with its samples (Unix time, finite value); None for what is none."""
    metric, values = (row.get(k) for k in ("metric", "values")) if isinstance(row, dict) else (0, 0)
    if not isinstance(metric, dict) or not isinstance(values, list):
        return None
    name = metric.get("__name__")
    labels = {n: v for n, v in metric.items() if isinstance(v, str) and n != "__name__"}
    samples = []
    for pair in values:
        try:
            at_s, value = map(float, pair)
        except (TypeError, ValueError):
            continue
        if math.isfinite(at_s) and math.isfinite(value):
            samples.append((at_s, value))
    return ((name, tuple(sorted(labels.items()))), samples) if isinstance(name, str) else None


def series_names() -> tuple[str, ...]:
    """Every series that a window is made of, by its exact name."""
    found: dict[str, None] = {}
    for engine in ENGINES:
        means = [key.path[0] for key in engine.keys if key.field in _HISTOGRAMS]
        parts = (f"{name}_{part}" for name in means for part in ("sum", "count", "bucket"))
        found |= dict.fromkeys((*sorted(engine.counters), *NAMES[engine.name].all))
        found |= dict.fromkeys(name for name in parts if " " not in name)
    return tuple(name for name in found if name)
