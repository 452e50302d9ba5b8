"""Scrapes as rows of the store, and the rows as windows again."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from lib.results.exposition import Labels
from lib.results.samples import Latencies, Sample
from lib.serving.buckets import Histogram
from lib.serving.metrics import Counters, Gauges, Replica, Snapshot
from lib.serving.windows import Window, between, side_by_side

_GAUGES = ("running", "waiting", "kv_use", "tau", "stated_tps")
_COUNTERS = (
    *("drafts", "draft_tokens", "accepted_tokens", "accepted_per_position"),
    *("input_tokens", "output_tokens", "completed", "preemptions"),
)


def samples_of(endpoint: str, found: Snapshot) -> tuple[Sample, ...]:
    """One row an engine. ITL is left out: under speculation it is no latency of a token."""
    return tuple(
        Sample(
            endpoint=endpoint,
            replica=one.label,
            engine=one.engine,
            at_s=found.at_s,
            started_s=found.started_s,
            ttft=_latencies(one.counters.ttft),
            tpot=_latencies(one.counters.tpot),
            e2e=_latencies(one.counters.e2e),
            **{name: getattr(one.counters, name) for name in _COUNTERS},
            **{name: getattr(one.gauges, name) for name in _GAUGES},
        )
        for one in found.replicas.values()
    )


def _latencies(found: Histogram | None) -> Latencies | None:
    if found is None:
        return None
    counts = tuple(map(round, found.counts))
    return Latencies(round(found.count), found.sum_s, found.edges_s, counts)


def snapshots_of(rows: Iterable[Sample]) -> tuple[Snapshot, ...]:
    """The scrapes of one server again, by time. An engine is told by its label and name."""
    ordered = sorted(rows, key=lambda row: row.at_s)
    return tuple(
        _snapshot(at_s, list(group)) for at_s, group in groupby(ordered, key=lambda row: row.at_s)
    )


def _snapshot(at_s: float, rows: Sequence[Sample]) -> Snapshot:
    replicas: dict[Labels, Replica] = {
        (("engine", row.engine), ("replica", row.replica)): _replica(row) for row in rows
    }
    return Snapshot(at_s, replicas, rows[0].started_s)


def _replica(row: Sample) -> Replica:
    return Replica(
        row.engine,
        row.replica,
        Counters(
            ttft=_histogram(row.ttft),
            tpot=_histogram(row.tpot),
            e2e=_histogram(row.e2e),
            **{name: getattr(row, name) for name in _COUNTERS},
        ),
        Gauges(**{name: getattr(row, name) for name in _GAUGES}),
    )


def _histogram(found: Latencies | None) -> Histogram | None:
    if found is None:
        return None
    return Histogram(found.count, found.sum_s, found.edges_s, found.counts)


def windows_of_samples(rows: Iterable[Sample]) -> dict[str, tuple[Window, ...]]:
    """Each server's windows, oldest first, by host:port; their labels are that too.

    One whose counts cannot be is left out, as it was when it was scraped.
    """
    by_server: dict[str, list[Sample]] = {}
    for row in rows:
        by_server.setdefault(row.endpoint, []).append(row)
    return {
        shown: tuple(
            labelled(w, shown) for w in between(shown, snapshots_of(found), leave_out=True)
        )
        for shown, found in by_server.items()
    }


def labelled(window: Window, shown: str) -> Window:
    """A window of one server under its host:port."""
    return replace(window, label=shown)


def of_one_server(window: Window) -> Window:
    """A server's window as that of a fleet of one: its engines are no servers of their own."""
    return together([labelled(window, "")])


def together(by_server: Sequence[Window]) -> Window:
    """Servers over the same time as one: the parts are the servers, each with its engines."""
    return labelled(side_by_side(by_server), "")
