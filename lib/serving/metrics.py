"""A server's metrics at one moment: what each of its engines has counted so far, and its gauges.

Counters are told by their exact names, as `results.exposition` reads them: a `_created` series is
a moment in time, and a per-position series is part of an aggregate. A gauge is a point sample.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from itertools import zip_longest
from typing import Any

from lib.errors import FileTooLarge, UnreadableFile
from lib.results import exposition, keys
from lib.results.engine_metrics import ENGINES, Engine, engine_named
from lib.results.exposition import Labels, Series, Values
from lib.serving.buckets import Histogram, histogram
from lib.serving.series import NAMES

MOST_LINES = 200_000  # a busy server has some thousand
MOST_REPLICAS = 1024
STARTED = "process_start_time_seconds"
PREFIXES = tuple(engine.prefix for engine in ENGINES)
# Labels that tell one engine from another; finish reasons, ranks and positions are summed over.
PLACE = ("job", "instance", "pod", "model_name", "engine", "dp_rank")

_LARGEST = 2.0**53
_COUNTED = (
    *("drafts", "draft_tokens", "accepted_tokens"),
    *("input_tokens", "output_tokens", "completed"),
)
_MEANS = {name: f"{name}_ms_mean" for name in ("ttft", "tpot", "itl", "e2e")}
_V0_EMITTED = "vllm:spec_decode_num_emitted_tokens_total"


@dataclass(frozen=True)
class Counters:
    """What an engine has counted; None is not counted there. Names are those of a run.

    `completed` are requests with a whole answer. `itl` is per engine step in vLLM and LMDeploy,
    whatever a step emitted; `tpot` is per request in vLLM and TensorRT-LLM, per token elsewhere.
    """

    drafts: int | None = None
    draft_tokens: int | None = None
    accepted_tokens: int | None = None
    accepted_per_position: tuple[int, ...] | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    completed: int | None = None
    preemptions: int | None = None
    ttft: Histogram | None = None
    tpot: Histogram | None = None
    itl: Histogram | None = None
    e2e: Histogram | None = None

    def fallen_since(self, before: "Counters") -> str:
        """The first field that fell, or is gone: the server was restarted. Empty where none."""
        return next((n for n, new, old in _pairs(self, before) if _fell(new, old)), "")

    def since(self, before: "Counters") -> "Counters":
        """What was counted after `before`; what it did not show yet counts as 0 then."""
        return Counters(**{name: _minus(new, old) for name, new, old in _pairs(self, before)})

    def plus(self, other: "Counters") -> "Counters":
        """What both counted."""
        return Counters(**{name: _plus(a, b) for name, a, b in _pairs(self, other)})


def _pairs(first: Counters, second: Counters) -> Iterable[tuple[str, Any, Any]]:
    return ((f.name, getattr(first, f.name), getattr(second, f.name)) for f in fields(first))


def _fell(new: Any, old: Any) -> bool:
    if old is None:
        return False
    if new is None:
        return True
    if isinstance(new, tuple):
        return any(a < b for a, b in zip_longest(new, old, fillvalue=0))
    return bool(new.count < old.count if isinstance(new, Histogram) else new < old)


def _minus(new: Any, old: Any) -> Any:
    if new is None or old is None:
        return new
    if isinstance(new, tuple):
        return tuple(a - b for a, b in zip_longest(new, old, fillvalue=0))
    return new.since(old) if isinstance(new, Histogram) else new - old


def _plus(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, tuple):
        return tuple(x + y for x, y in zip_longest(a, b, fillvalue=0))
    return a.plus(b) if isinstance(a, Histogram) else a + b


@dataclass(frozen=True)
class Gauges:
    """What was so when it was asked; None is not shown. `tau` and `stated_tps` are the server's.

    `kv_use` is 0 to 1.
    """

    running: float | None = None
    waiting: float | None = None
    kv_use: float | None = None
    tau: float | None = None
    stated_tps: float | None = None

    @property
    def idle(self) -> bool:
        """Whether nothing runs: a throughput gauge then keeps its last value."""
        return self.running == 0

    @property
    def output_tps(self) -> float | None:
        """The server's own throughput gauge; 0 where nothing runs, whatever it still shows."""
        return 0.0 if self.idle and self.stated_tps is not None else self.stated_tps


@dataclass(frozen=True)
class Replica:
    """One engine of a server, or one server of a fleet."""

    engine: str
    label: str
    counters: Counters
    gauges: Gauges


@dataclass(frozen=True)
class Snapshot:
    """One scrape at `at_s` (Unix time, seconds): the replicas by the labels that tell them apart.

    `started_s` is when the process says that it started.
    """

    at_s: float
    replicas: Mapping[Labels, Replica] = field(default_factory=dict)
    started_s: float | None = None


def snapshot(name: str, text: str, at_s: float) -> Snapshot:
    """The engines of an exposition text. Of several scrapes in it the last counts.

    `name` is for messages. Raises UnreadableFile where a line of an engine's is broken or no known
    engine is found, and FileTooLarge.
    """
    if text.count("\n") > MOST_LINES:
        raise FileTooLarge(
            f"{name}: more than {MOST_LINES:,} lines of metrics, the most that are read; "
            "check that the address is the one you mean"
        )
    wanted = (*PREFIXES, *(p.replace(":", "_") for p in PREFIXES), STARTED)
    lines = [line for line in map(str.lstrip, text.split("\n")) if line.startswith(wanted)]
    found = of_values(name, exposition.parse(name, "\n".join(lines) + "\n")[-1], at_s)
    if not found.replicas:
        raise UnreadableFile(
            f"{name}: no speculation metrics found, and none of a known engine; known names begin "
            f"with {', '.join(PREFIXES)}"
        )
    return found


def of_values(name: str, values: Values, at_s: float) -> Snapshot:
    """The engines of series that were read already; none where none is known.

    Raises FileTooLarge where their labels tell more engines apart than any fleet has.
    """
    replicas: dict[Labels, Replica] = {}
    started: float | None = None
    for scrape in exposition.scrapes_of(values):
        engine = engine_named(scrape.engine)
        assert engine is not None, "scrapes are made of known engines"
        started = next((v for (n, _), v in scrape.values.items() if n == STARTED), started)
        for place, series in _by_place(name, scrape.values).items():
            label = ", ".join(f"{written} {value}" for written, value in place)
            found = Replica(engine.name, label, _counters(engine, series), _gauges(engine, series))
            key = (("", engine.name), *place) if place in replicas else place
            replicas[key] = found
    return Snapshot(at_s, replicas, started)


def _by_place(name: str, values: Values) -> dict[Labels, dict[Series, float]]:
    """The series of each replica. Those with fewer labels go to the one replica that they fit."""
    found: dict[Labels, dict[Series, float]] = {}
    for series, value in values.items():
        if series[0] == STARTED or not 0 <= value <= _LARGEST:
            continue
        labels = dict(series[1])
        place = tuple((label, labels[label]) for label in PLACE if labels.get(label))
        found.setdefault(place, {})[series] = value
    if len(found) > MOST_REPLICAS:
        raise FileTooLarge(
            f"{name}: {len(found):,} engines by the labels {', '.join(PLACE)}; at most "
            f"{MOST_REPLICAS:,} are told apart"
        )
    longest = max(map(len, found), default=0)
    for place in sorted((p for p in found if len(p) < longest), key=len):
        wider = [other for other in found if other != place and set(place) < set(other)]
        if len(wider) == 1:
            found[wider[0]] |= found.pop(place)
    return found


def _counters(engine: Engine, series: Values) -> Counters:
    document = exposition.totals(engine, series)
    fields_found, _ = keys.take(document, engine.keys)
    counted: dict[str, Any] = {name: fields_found.get(name) for name in _COUNTED}
    counted |= {name: _histogram(engine, mean, document, series) for name, mean in _MEANS.items()}
    if _V0_EMITTED in document and counted["drafts"] is None:
        counted["accepted_tokens"] = None  # V0 goes on counting after a rejection
    preempted = (document[n] for n in NAMES[engine.name].preemptions if n in document)
    return Counters(
        **counted,
        accepted_per_position=exposition.per_position(engine, series),
        preemptions=next(map(round, preempted), None),
    )


def _histogram(
    engine: Engine, mean: str, document: Mapping[str, float], series: Values
) -> Histogram | None:
    """The first histogram that the engine's table has for a mean, and that is there."""
    for name in (key.path[0] for key in engine.keys if key.field == mean):
        total, _, over = name.partition(" / ")
        if over:
            sum_s, count = document.get(total), document.get(f"{engine.prefix}{over}")
        else:
            sum_s, count = document.get(f"{name}_sum"), document.get(f"{name}_count")
        if sum_s is not None and count is not None:
            return histogram(count, sum_s, _buckets(f"{name}_bucket", series))
    return None


def _buckets(name: str, series: Values) -> list[tuple[float, float]]:
    found: dict[float, float] = {}
    for (written, labels), value in series.items():
        if written != name:
            continue
        try:
            edge = float(dict(labels).get("le", ""))
        except ValueError:
            continue
        if math.isfinite(edge):
            found[edge] = found.get(edge, 0.0) + value
    return list(found.items())


def _gauges(engine: Engine, series: Values) -> Gauges:
    names = NAMES[engine.name]
    return Gauges(
        *(
            next((v for n in said if (v := _gauge(n, series)) is not None), None)
            for said in (names.running, names.waiting, names.kv_use, names.tau, names.output_tps)
        )
    )


def _gauge(name: str, series: Values) -> float | None:
    """A gauge of one replica: the same from each rank, a sum over the reasons of waiting."""
    found: dict[str, float] = {}
    for (written, labels), value in series.items():
        if written == name:
            reason = dict(labels).get("reason", "")
            found[reason] = max(value, found.get(reason, 0.0))
    return sum(found.values()) if found else None
