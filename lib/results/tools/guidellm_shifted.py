"""Lines of GuideLLM's CSV whose columns are not those that the headers name.

Versions 0.5 and 0.6 write the headers of the first benchmark only, and leave out a metric's four
columns for a status in which it sums to 0. So the columns of a later benchmark are shifted. What
stands before the metrics and after them is in place; in between, blocks of four (mean, median,
deviation, percentiles) are found by what must hold among the successful requests' means: input +
output tokens = total tokens, and TTFT + (n - 1) ITL = n TPOT for n output tokens.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from lib.results.keys import at
from lib.results.parsing import as_count, as_number

Block = Sequence[str]
_STATISTICS = ("Mean", "Median", "Std Dev", "Percentiles")
_LATENCY = ("Request Latency", "Successful Sec")
_TIMES = (
    ("Time to First Token", "Successful ms"),
    ("Time per Output Token", "Successful ms"),
    ("Inter Token Latency", "Successful ms"),
)
_TOKENS = (
    ("Token Metrics", "Successful Input Tokens"),
    ("Token Metrics", "Successful Output Tokens"),
    ("Token Metrics", "Successful Total Tokens"),
)
_REQUESTS = ("Server Throughput", "Successful Requests/Sec")
_RATE = ("Token Throughput", "Successful Output Tokens/Sec")
_EXACT = 1e-6
_MOST_BLOCKS = 400  # 60 metrics in three statuses are 180
_ROUGHLY = 0.25  # how far a mean rate may lie from count / duration


def realigned(
    headers: Sequence[Sequence[str]],
    line: Sequence[str],
    document: Callable[[Sequence[Sequence[str]], Sequence[str]], dict[str, Any]],
) -> tuple[dict[str, Any], bool]:
    """The line's document with the blocks that could be told, and whether all wanted ones were."""
    start = next((i for i, h in enumerate(headers) if h[2] in _STATISTICS), len(headers))
    after = next((i for i, h in enumerate(headers) if h[0] == "Scheduler State"), len(headers))
    end = len(line) - (len(headers) - after)
    found = document(headers[:start], line[:start])
    if end < start or (end - start) % len(_STATISTICS):
        return found, False
    found |= {k: v for k, v in document(headers[after:], line[end:]).items() if k not in found}
    blocks = [line[i : i + len(_STATISTICS)] for i in range(start, end, len(_STATISTICS))]
    if len(blocks) > _MOST_BLOCKS or not all(b[-1].startswith("[") for b in blocks):
        return found, False
    places = _places(found, [as_number(block[0]) for block in blocks])
    names = [(*name, statistic) for name in places for statistic in _STATISTICS]
    cells = [cell for place in places.values() for cell in blocks[place]]
    return found | document(names, cells), len(places) == len(_TIMES) + len(_TOKENS) + 3


def _places(found: Mapping[str, Any], means: Sequence[float | None]) -> dict[tuple[str, str], int]:
    """Which block holds which metric of the successful requests."""
    counts = [as_count(at(found, ("Request Counts", s))) or 0 for s in _ORDER]
    completed, duration = counts[0], as_number(at(found, ("Timings", "Duration", "Sec")))
    if completed <= 0 or not duration or duration <= 0 or not means:
        return {}
    reach = sum(count > 0 for count in counts)  # the blocks that one metric may have
    places = {_LATENCY: 0}
    both = _token_and_time_blocks(means, reach, completed)
    if both is None:
        return places
    tokens, times = both
    places |= dict(zip((*_TOKENS, *_TIMES), (*tokens, *times), strict=True))
    into, out = (means[i] or 0.0 for i in tokens[:2])
    between = range(times[2] + 1, min(times[2] + reach + 1, tokens[0]))
    rates = [i for i in between if _near(means[i], completed / duration)]
    places |= {_REQUESTS: rates[0]} if len(rates) == 1 else {}
    outputs = {
        output
        for i in range(tokens[2] + 1, min(tokens[2] + reach + 1, len(means)))
        if _near(means[i], into * completed / duration)
        for output in range(i + 1, min(i + reach + 1, len(means)))
        if _near(means[output], out * completed / duration)
    }
    return places | ({_RATE: outputs.pop()} if len(outputs) == 1 else {})


_ORDER = ("Successful", "Incomplete", "Errored")


def _triples(count: int, reach: int) -> Iterator[tuple[int, int, int]]:
    """Places of three metrics that follow each other, the earliest first."""
    for i in range(1, count):
        for j in range(i + 1, min(i + reach + 1, count)):
            for k in range(j + 1, min(j + reach + 1, count)):
                yield i, j, k


def _token_and_time_blocks(
    means: Sequence[float | None], reach: int, completed: int
) -> tuple[tuple[int, int, int], tuple[int, int, int]] | None:
    """The earliest token blocks whose output length the time blocks before them agree with."""
    for tokens in _token_blocks(means, reach, completed):
        times = next(_time_blocks(means[: tokens[0]], reach, means[tokens[1]] or 0.0), None)
        if times is not None:
            return tokens, times
    return None


def _token_blocks(
    means: Sequence[float | None], reach: int, completed: int
) -> Iterator[tuple[int, int, int]]:
    for places in _triples(len(means), reach):
        into, out, total = (means[i] for i in places)
        if into is None or out is None or total is None or not into > 0 or not out > 0:
            continue
        whole = all(abs(n * completed - round(n * completed)) < 1e-3 for n in (into, out))
        if whole and abs(into + out - total) <= _EXACT * total:
            yield places


def _time_blocks(
    means: Sequence[float | None], reach: int, tokens: float
) -> Iterator[tuple[int, int, int]]:
    for places in _triples(len(means), reach):
        first, each, gap = (means[i] for i in places)
        if first is None or each is None or gap is None:
            continue
        total = each * tokens
        if total > 0 and abs(first + gap * (tokens - 1) - total) <= _EXACT * total:
            yield places


def _near(value: float | None, expected: float) -> bool:
    return value is not None and abs(value - expected) <= _ROUGHLY * expected
