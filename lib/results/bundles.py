"""What lies together: results, and the files beside them that say what the results do not.

A bundle is a file with runs and the files that completed them; the store takes it whole or not at
all. Files lie beside each other in one folder, or know each other by the tool's own run id.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

import orjson
import pyarrow as pa

from lib.errors import FileError
from lib.results import arms, gpu_samples
from lib.results.findings import COUNTS, Beside, Flag
from lib.results.gpu_samples import GpuSamples
from lib.results.parsing import as_dict, as_text
from lib.results.reading import Reading
from lib.results.token_counts import AGREE, with_server_tokens
from lib.results.tools import prometheus
from lib.run import GROUPS, Run, SpecState

_OPEN = (None, SpecState.UNKNOWN)
_WINDOW = (0.8, 1.5)  # tokens between two scrapes over a run's own, if they are about each other
_PER_TOKEN = ("tpot_ms", "output_tokens")  # of a request, as far as tokens were counted
_MOMENTS = (("before", "after"), ("start", "end"), ("pre", "post"), ("begin", "end"))


@dataclass(frozen=True)
class Bundle:
    """A file, its runs completed by the files `beside` it."""

    reading: Reading
    beside: tuple[Reading, ...] = ()


@dataclass(frozen=True)
class Joined:
    """Bundles of the files that hold runs, and the files beside which no run lies."""

    bundles: tuple[Bundle, ...] = ()
    unclaimed: tuple[Reading, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Places:
    """Runs by folder, and what their tools call them."""

    folders: Mapping[str, Mapping[str, Run]]
    benchmark_ids: frozenset[str]

    @classmethod
    def of(cls, runs: Iterable[tuple[str, Run]]) -> "Places":
        """From each run and its file's name; what two files report of one run is one."""
        folders: dict[str, dict[str, Run]] = {}
        for name, run in runs:
            folders.setdefault(folder_of(name), {})[run.run_id] = run
        known = (r for inner in folders.values() for r in inner.values())
        return cls(folders, frozenset(filter(None, map(benchmark_id, known))))


def folder_of(name: str) -> str:
    """The folder of a file's name; empty at the top."""
    parent = PurePosixPath(name.replace("\\", "/")).parent
    return "" if parent == PurePosixPath(".") else str(parent)


def join(readings: Sequence[Reading]) -> Joined:
    """The bundles of files that were found together, in their order.

    A pair of scrapes of one server, named before and after, becomes one reading of what happened
    between them; where it fits the single result in their folder it says so of that. `refused`
    says why a pair cannot be used.
    """
    readings, refused = _paired(readings)
    besides = [r for r in readings if r.beside is not None]
    results = [r for r in readings if r.beside is None]
    places = Places.of((r.name, run) for r in results for run in r.runs)
    bundles, claimed = [], set()
    for reading in results:
        completed, used = _completed(reading, besides, places)
        claimed |= {r.name for r in used}
        bundles.append(Bundle(completed, used))
    unclaimed = tuple(r for r in besides if r.name not in claimed)
    return Joined(tuple(bundles), unclaimed, refused)


def _completed(
    reading: Reading, besides: Sequence[Reading], places: Places
) -> tuple[Reading, tuple[Reading, ...]]:
    """The reading with what the files beside it say of its runs, and those of them that do."""
    used: dict[str, Reading] = {}
    runs, flags, requests = [], list(reading.flags), dict(reading.requests)
    named = {r.run_id: r.spec_state for r in arms.suggest(reading).runs} if besides else {}
    for run in reading.runs:
        recorded, why_not = _recorded(run, reading.name, besides)
        flags += why_not
        for said in (*about(run, reading.name, besides, places), *recorded):
            beside = said.beside
            assert beside is not None
            changed, found = applied(run, said, named[run.run_id])
            flags += found
            if beside.requests is not None and run.run_id not in requests:
                requests[run.run_id] = beside.requests
            elif changed == run:
                continue
            used[said.name] = said
            if changed.output_tokens != run.output_tokens and run.run_id in reading.requests:
                requests[run.run_id] = without_tokens(requests[run.run_id])
            run = changed
        runs.append(run)
    if not used and len(flags) == len(reading.flags):
        return reading, ()
    completed = replace(reading, requests=requests, flags=tuple(flags))
    return arms.settled(completed, runs), tuple(used.values())


def about(run: Run, name: str, besides: Iterable[Reading], places: Places) -> list[Reading]:
    """The files among `besides` that speak of this run of the file `name`, the nearest first.

    By the run's id, or the tool's own; else by folder, `places` being all runs by folder: of one
    tool's files the nearest folder's count, and none where two of them lie there, since nothing
    tells which of them is meant. What was counted during one run needs that run to be alone.
    """
    named, near = [], dict[str, list[tuple[int, Reading]]]()
    for said in besides:
        beside, folder = said.beside, folder_of(said.name)
        if beside is None or beside.gpus is not None:
            continue
        if beside.run_ids or beside.benchmark_id in places.benchmark_ids:
            named += [said] if names(beside, run) else []
        elif not beside.tools or run.tool in beside.tools:
            distance = _distance(folder, folder_of(name))
            if distance is None:
                continue
            if beside.is_of_one_run and (
                distance or not _is_alone(beside, places.folders.get(folder, {}))
            ):
                continue
            near.setdefault(said.tool, []).append((distance, said))
    found = []
    for rows in near.values():
        least = min(distance for distance, _ in rows)
        nearest = [said for distance, said in rows if distance == least]
        found += [(least, nearest[0])] if len(nearest) == 1 else []
    return [*named, *(said for _, said in sorted(found, key=lambda row: row[0]))]


def _recorded(run: Run, name: str, besides: Sequence[Reading]) -> tuple[list[Reading], list[Flag]]:
    """The one record of GPUs in the run's folder or above that covers it; or why there is none."""
    told = []
    for said in besides:
        samples = said.beside.gpus if said.beside else None
        if samples is not None and _distance(folder_of(said.name), folder_of(name)) is not None:
            told.append((said, samples.during(run)))
    if not told or all(getattr(run, field) is not None for field in gpu_samples.FIELDS):
        return [], []
    covering = [said for said, during in told if during.fields]
    if len(covering) == 1:
        return covering, []
    first, during = told[0]
    more = f" and {len(told) - 1} more" if len(told) > 1 else ""
    why = "more than one record covers the run" if covering else during.said
    text = f"no memory, power or energy from {first.name}{more}: {why}"
    return [], [Flag("gpus_not_taken", "warns", text, run.run_id)]


def names(beside: Beside, run: Run) -> bool:
    """Whether it means this run by its id, or by what the tool calls the measurement."""
    own = benchmark_id(run) if beside.benchmark_id else ""
    return run.run_id in beside.run_ids or bool(own and own == beside.benchmark_id)


def _is_alone(beside: Beside, runs: Mapping[str, Run]) -> bool:
    """Whether one run lies in the folder that may be meant, and none that is surely another's."""
    meant = [r for r in runs.values() if not beside.tools or r.tool in beside.tools]
    return len(meant) == 1 and not (beside.benchmark_id and benchmark_id(meant[0]))


def benchmark_id(run: Run) -> str:
    """What the tool calls the run's measurement; empty where its file does not say."""
    if not run.extra or '"benchmark_id"' not in run.extra:
        return ""
    return as_text(as_dict(orjson.loads(run.extra)).get("benchmark_id")) or ""


def _distance(folder: str, inner: str) -> int | None:
    """How many folders `inner` lies below `folder`; None where it does not lie in it."""
    outer, own = (tuple(filter(None, f.split("/"))) for f in (folder, inner))
    return len(own) - len(outer) if own[: len(outer)] == outer else None


def applied(
    run: Run, said: Reading, named: SpecState = SpecState.UNKNOWN
) -> tuple[Run, list[Flag]]:
    """The run with what a file beside it says, and flags that tell what was taken and what not.

    `named` is what the names of the run's own file say of its arm: a set-up that says the opposite
    is another arm's. A count of the server's own in the run's file stands.
    """
    beside = said.beside
    assert beside is not None
    if beside.gpus is not None:
        return _with_gpus(run, said, beside.gpus)
    stated = beside.fields.get("spec_state")
    state = named if run.spec_state is SpecState.UNKNOWN else run.spec_state
    contradicts = {state, stated} == {SpecState.ON, SpecState.OFF}
    shut = {"spec_state", *GROUPS.speculation} if contradicts or state is SpecState.OFF else set()
    new = {
        name: value
        for name, value in beside.fields.items()
        if name not in shut and getattr(run, name) in _OPEN and value not in _OPEN
    }
    filled, flags = replace(run, **new), []
    if beside.output_tokens is not None:
        filled = with_server_tokens(filled, beside.output_tokens)
        if filled.output_tokens and abs(beside.output_tokens / filled.output_tokens - 1) > AGREE:
            text = (
                f"{said.name} counts {beside.output_tokens:,} output tokens, the run's own server "
                f"count is {filled.output_tokens:,}: other traffic ran beside it; its own is kept"
            )
            flags.append(Flag("server_counts_differ", "warns", text, run.run_id))
    if contradicts:
        text = (
            f"{said.name} shows a server with speculation {stated}; the run's own names say {state}"
        )
        flags.append(Flag("beside_contradicts", "warns", text, run.run_id))
    if filled != run:
        flags.append(_taken(run, filled, new, said))
    return filled, flags


def _with_gpus(run: Run, said: Reading, samples: GpuSamples) -> tuple[Run, list[Flag]]:
    during = samples.during(run)
    new: dict[str, Any] = {n: v for n, v in during.fields.items() if getattr(run, n) is None}
    if not new:
        return run, []
    text = f"{', '.join(new)} from {said.name} ({during.said})"
    return replace(run, **new), [Flag("taken_from_beside", "warns", text, run.run_id)]


def _taken(run: Run, filled: Run, new: Mapping[str, Any], said: Reading) -> Flag:
    plain = [n for n in new if n not in COUNTS]
    counts = ["the draft counts"] if len(plain) < len(new) else []
    tokens = ["the server's token count"] if filled.output_tokens != run.output_tokens else []
    taken = ", ".join([*plain, *counts, *tokens]) or "the token count's source"
    return Flag("taken_from_beside", "warns", f"{taken} from {said.name}", run.run_id)


def without_tokens(table: pa.Table) -> pa.Table:
    """Per-request records without what rests on a client's own token count."""
    for name in _PER_TOKEN:
        if name in table.column_names:
            at = table.column_names.index(name)
            empty = pa.nulls(len(table), table.schema.field(name).type)
            table = table.set_column(at, name, empty)
    return table


def _paired(readings: Sequence[Reading]) -> tuple[list[Reading], dict[str, str]]:
    """The readings with each pair of scrapes as one; why a pair could not be."""
    scrapes = [r for r in readings if r.scrape is not None]
    pairs, refused = [], dict[str, str]()
    for before, after in _pairs(scrapes):
        try:
            pairs.append((before, after, _between(before, after)))
        except FileError as error:
            refused[after.name] = str(error)
    results = Counter(folder_of(r.name) for r in readings if r.runs and r.scrape is None)
    single = {
        folder_of(r.name): r
        for r in readings
        if len(r.runs) == 1 and r.scrape is None and results[folder_of(r.name)] == 1
    }
    in_folder = Counter(folder_of(after.name) for _, after, _ in pairs)
    out = {id(r): r for r in readings}
    for before, after, between in pairs:
        del out[id(before)]
        folder = folder_of(after.name)
        result = single.get(folder) if in_folder[folder] == 1 else None
        fits = result is not None and _is_window_of(between, result.runs[0])
        out[id(after)] = _beside(between, result.runs[0]) if result and fits else between
    return [r for r in out.values() if r.name not in refused], refused


def _is_window_of(between: Reading, run: Run) -> bool:
    """Whether the server generated about the run's tokens between the scrapes, of one model."""
    if len(between.runs) != 1:
        return False
    generated = between.runs[0].output_tokens
    if not generated or not run.output_tokens:
        return True
    return _WINDOW[0] <= generated / run.output_tokens <= _WINDOW[1]


def _pairs(scrapes: Sequence[Reading]) -> list[tuple[Reading, Reading]]:
    """Scrapes of one folder whose names differ by before and after alone."""
    named: dict[tuple[str, str, int], dict[str, Reading]] = {}
    for reading in scrapes:
        words = re.split(r"([^a-z0-9]+)", PurePosixPath(reading.name).name.casefold())
        for which, moments in enumerate(_MOMENTS):
            for moment in moments:
                if words.count(moment) == 1:
                    rest = "".join("*" if w == moment else w for w in words)
                    key = folder_of(reading.name), rest, which
                    named.setdefault(key, {})[moment] = reading
    found, taken = [], set[int]()
    for (_, _, which), by_moment in named.items():
        first, last = (by_moment.get(m) for m in _MOMENTS[which])
        if first and last and not {id(first), id(last)} & taken:
            taken |= {id(first), id(last)}
            found.append((first, last))
    return found


def _between(before: Reading, after: Reading) -> Reading:
    assert before.scrape is not None
    assert after.scrape is not None
    both = hashlib.sha256(f"{before.sha256}{after.sha256}".encode()).hexdigest()
    name = f"{before.name} to {PurePosixPath(after.name).name}"
    found = prometheus.window(before.scrape, after.scrape, after.name, both)
    return replace(
        after,
        name=name,
        sha256=both,
        why=found.why,
        runs=found.runs,
        flags=found.flags,
        keys=found.keys,
        scrape=None,
    )


def _beside(between: Reading, run: Run) -> Reading:
    """What the server counted between two scrapes, as said of the one run measured then.

    Its tokens are not taken over: warm-up and other traffic in the window are among them.
    """
    (counted_run,) = between.runs
    names = (*COUNTS, "spec_state", "running_mean", "waiting_mean")
    fields: dict[str, Any] = {n: getattr(counted_run, n) for n in names}
    said = Beside(run_ids=(run.run_id,), fields=fields)
    flag = Flag("sidecar", "warns", "what the server counted between two scrapes")
    return replace(between, runs=(), requests={}, flags=(flag,), beside=said)
