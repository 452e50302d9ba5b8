"""A server's metrics as Prometheus text: its series, and what each engine's series mean.

Counters are told by their exact names: a `_created` series is a moment in time, and a per-position
series is part of an aggregate, so neither is ever added to it.
"""

import math
import re
from collections.abc import Iterable, Mapping

from prometheus_client.parser import text_string_to_metric_families

from lib.errors import FileTooLarge, UnreadableFile
from lib.results.engine_metrics import ENGINES, Engine, engine_named
from lib.results.findings import Scrape

Labels = tuple[tuple[str, str], ...]
Series = tuple[str, Labels]
Values = Mapping[Series, float]

MOST_CHARACTERS = 64 * 2**20
LONGEST_LINE = 64 * 1024

_TYPE = re.compile(
    r"#\s*TYPE\s+[\w:]+\s+(?:counter|gauge|histogram|summary|untyped|unknown|info|stateset)\s*$"
)
_NUMBER = r"[-+]?(?:\d[\d.eE+-]*|\.\d+|[Nn]a[Nn]|[Ii]nf(?:inity)?)"
_SAMPLE = re.compile(rf"[A-Za-z_:][\w:]*(\{{.*\}})?\s+{_NUMBER}(?:\s+-?\d+)?(?:\s+#.*)?$")


def looks_like_exposition(text: str) -> bool:
    """Whether a text is Prometheus's: a `# TYPE` line, or labelled samples and nothing else."""
    strong = seen = 0
    for line in _first_lines(text, 60):
        if _TYPE.match(line):
            return True
        if line.startswith("#"):
            continue
        if not (sample := _SAMPLE.match(line)):
            return False
        seen += 1
        known = any(line.startswith(e.prefix) for e in ENGINES)
        strong += known or '="' in (sample[1] or "")
    return seen > 0 and strong == seen


def _first_lines(text: str, most: int) -> Iterable[str]:
    at, found = 0, 0
    while at < len(text) and found < most:
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line = text[at : min(end, at + LONGEST_LINE)].strip()
        at = end + 1
        if line:
            found += 1
            yield line


def parse(name: str, text: str) -> tuple[dict[Series, float], ...]:
    """The scrapes in a text, in its order; a series that comes again begins the next scrape.

    Values that are not finite are left out. Raises UnreadableFile, naming the line, for text that
    is no exposition format, and FileTooLarge.
    """
    if len(text) > MOST_CHARACTERS:
        raise FileTooLarge(
            f"{name}: {len(text) / 2**20:,.0f} MB of metrics; at most "
            f"{MOST_CHARACTERS // 2**20} MB are read, and one scrape has less than 1"
        )
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > LONGEST_LINE:
            raise UnreadableFile(
                f"{name}: line {number} is longer than {LONGEST_LINE:,} characters"
            )
    scrapes: list[dict[Series, float]] = [{}]
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                series = (sample.name, tuple(sorted(sample.labels.items())))
                if series in scrapes[-1]:
                    scrapes.append({})
                scrapes[-1][series] = float(sample.value)
    except (ValueError, IndexError, OverflowError, AttributeError):
        raise _broken(name, text) from None
    if any(2 * len(later) < len(scrapes[0]) for later in scrapes[1:]):
        repeated = next(iter(scrapes[1]))[0]
        raise UnreadableFile(
            f"{name}: {repeated} stands twice in one scrape; save what /metrics answers as it is"
        )
    return tuple({s: v for s, v in scrape.items() if math.isfinite(v)} for scrape in scrapes)


def _broken(name: str, text: str) -> UnreadableFile:
    for number, line in enumerate(text.split("\n"), 1):
        try:
            list(text_string_to_metric_families(line))
        except (ValueError, IndexError, OverflowError, AttributeError):
            said = " ".join(line.split())[:60]
            return UnreadableFile(
                f"{name}: line {number} is not Prometheus text ({said!r}); save what /metrics "
                "answers as it is"
            )
    return UnreadableFile(f"{name}: not Prometheus text; save what /metrics answers as it is")


def scrapes_of(values: Values) -> tuple[Scrape, ...]:
    """The values by engine, the one with most series first; none where no engine is known.

    A prefix whose colon has become an underscore on the way is given its colon back, and a counter
    its `_total`.
    """
    found: dict[str, dict[Series, float]] = {}
    for (name, labels), value in values.items():
        for engine in ENGINES:
            written = engine.prefix.replace(":", "_")
            if name.startswith((engine.prefix, written)):
                name = engine.prefix + name[len(written) :]
                name = f"{name}_total" if f"{name}_total" in engine.counters else name
                found.setdefault(engine.name, {})[name, labels] = value
                break
        else:
            if name == "process_start_time_seconds":
                found.setdefault("", {})[name, labels] = value
    started = found.pop("", {})
    by_size = sorted(found.items(), key=lambda item: -len(item[1]))
    return tuple(Scrape(name, series | started) for name, series in by_size)


def models(values: Values) -> tuple[str | None, ...]:
    """The models behind an endpoint, or a single None where no series names one."""
    named = dict.fromkeys(dict(labels).get("model_name") for _, labels in values)
    return tuple(n for n in named if n) or (None,)


def of_model(values: Values, model: str | None) -> dict[Series, float]:
    """The series of one model, and those that name none."""
    return {s: v for s, v in values.items() if dict(s[1]).get("model_name") in (None, "", model)}


def totals(engine: Engine, values: Values) -> dict[str, float]:
    """Sums over labels by name: over engine replicas, ranks, finish reasons, in any label order.

    A histogram's own name holds its mean, `_sum` over `_count`. `_created` series and buckets are
    left out; a gauge is there only where all series of its name agree. Requests that were aborted
    or failed stand apart from those that were served, under their finished_reason.
    """
    sums: dict[str, float] = {}
    disagreeing: set[str] = set()
    for (name, labels), value in values.items():
        if name.endswith(("_created", "_bucket")):
            continue
        if name in engine.points:
            if sums.setdefault(name, value) != value:
                disagreeing.add(name)
            continue
        if reason := _not_served(dict(labels).get("finished_reason", "")):
            name = f'{name}{{finished_reason="{reason}"}}'
        sums[name] = sums.get(name, 0.0) + value
    for name in [n for n in sums if n.endswith("_count")]:
        base = name.removesuffix("_count")
        if sums[name] > 0 and f"{base}_sum" in sums:
            sums[base] = sums[f"{base}_sum"] / sums[name]
    _derive(engine, values, sums)
    return {name: value for name, value in sums.items() if name not in disagreeing}


def _not_served(reason: str) -> str:
    """`error` or `abort` where a request of that finished_reason got no whole answer."""
    said = reason.casefold()
    if re.search(r"error|fail|timeout", said):
        return "error"
    return "abort" if re.search(r"abort|cancel", said) else ""


def _derive(engine: Engine, values: Values, sums: dict[str, float]) -> None:
    tokens = sums.get("llamacpp:tokens_predicted_total", 0.0)
    seconds = sums.get("llamacpp:tokens_predicted_seconds_total")
    if seconds is not None and tokens > 0:
        sums["llamacpp:tokens_predicted_seconds_total / tokens_predicted_total"] = seconds / tokens
    drafted = _by_position(values, engine.drafted_positions, engine.position_label)
    if drafted:
        sums[f"{engine.drafted_positions}, first position"] = drafted[min(drafted)]


def per_position(engine: Engine, values: Values) -> tuple[int, ...] | None:
    """Accepted tokens by draft position, summed over labels; None where a position is missing."""
    found = _by_position(values, engine.positions, engine.position_label)
    first = min(found, default=0)
    whole = all(v >= 0 and v == int(v) for v in found.values())
    if not found or first > 1 or not whole or max(found) - first + 1 != len(found):
        return None
    return tuple(int(found[p]) for p in sorted(found))


def _by_position(values: Values, name: str, label: str) -> dict[int, float]:
    found: dict[int, float] = {}
    for (series, labels), value in values.items():
        position = dict(labels).get(label, "") if name and series == name else ""
        if re.fullmatch(r"\d{1,6}", position, re.ASCII):
            found[int(position)] = found.get(int(position), 0.0) + value
    return found


def difference(name: str, before: Scrape, after: Scrape) -> dict[Series, float]:
    """What was counted between two scrapes of a server; gauges as they were in the second.

    Raises UnreadableFile where the scrapes are of different engines, or a counter falls or is
    gone: the server was restarted in between, or the scrapes are swapped.
    """
    engine = engine_named(after.engine)
    if engine is None or before.engine != after.engine:
        raise UnreadableFile(
            f"{name}: scrapes of {before.engine or 'an unknown engine'} and of "
            f"{after.engine or 'an unknown engine'}; a window needs two of one server"
        )
    found: dict[Series, float] = {}
    for series in dict.fromkeys((*after.values, *before.values)):
        metric = series[0]
        if metric == "process_start_time_seconds":
            if abs(after.values.get(series, 0.0) - before.values.get(series, 0.0)) > 1:
                raise _restarted(name, metric, before.values.get(series), after.values.get(series))
        elif metric in engine.points:
            if series in after.values:
                found[series] = after.values[series]
        elif metric in engine.cumulative:
            new, old = after.values.get(series), before.values.get(series, 0.0)
            if new is None or new < old:
                raise _restarted(name, metric, old, new)
            found[series] = new - old
    return found


def _restarted(name: str, metric: str, old: float | None, new: float | None) -> UnreadableFile:
    said = "is gone" if new is None else f"went from {old or 0:.10g} to {new:.10g}"
    return UnreadableFile(
        f"{name}: {metric} {said} between the scrapes: the server was restarted, or they are "
        "swapped; take both in one life of the server, the first before the run"
    )
