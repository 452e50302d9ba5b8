"""How many requests of a window met an SLO, as far as a server's histograms tell."""

from dataclasses import dataclass

from lib.run import Slo
from lib.serving.buckets import Histogram
from lib.serving.windows import Window

PER_REQUEST_TPOT = frozenset({"vLLM", "TensorRT-LLM"})


@dataclass(frozen=True)
class Goodput:
    """Between `low` and `high` of `finished` requests met every limit, in `seconds`.

    `undecided` says what keeps the two apart.
    """

    low: float
    high: float
    finished: float
    seconds: float
    undecided: tuple[str, ...] = ()

    @property
    def decided(self) -> bool:
        """Whether the number is known exactly."""
        return self.low == self.high

    @property
    def rps(self) -> tuple[float, float]:
        """Good requests a second: at least, and at most."""
        return self.low / self.seconds, self.high / self.seconds


def goodput(window: Window, slo: Slo) -> Goodput | None:
    """Bounds that hold whichever requests were slow in which latency; None where none finished.

    A request misses the SLO by any of its limits, so at most the misses together are missed. TTFT
    is counted at the first token, the others at the end: requests that ran when the window began
    may have had theirs before it, so that many more are unknown.
    """
    c = window.counters
    ended = [h for n in ("e2e", "tpot") if (h := getattr(c, n)) and _by_request(window, n, h)]
    finished = float(ended[0].count if ended else c.completed or 0)
    if not finished:
        return None
    low, high = finished, finished
    said: list[str] = []
    for name, limit_ms in slo.limits.items():
        latency = name.removesuffix("_ms")
        counted: Histogram | None = getattr(c, latency)
        shown = latency.upper()
        if not _by_request(window, latency, counted):
            said.append(f"{shown}: {window.engine} counts none by request")
            low = 0.0
            continue
        assert counted is not None
        least, most = counted.within(limit_ms)
        late = counted.count - least
        unseen = max(finished - counted.count, 0.0)  # of one token, so without a TPOT
        if latency == "ttft":
            running = finished if window.running_before is None else window.running_before
            unseen = min(running, finished)
            late += unseen
            if unseen:
                said.append(f"{shown}: {unseen:g} requests ran when the window began")
        low, high = low - late, min(high, most + unseen)
        if least != most:
            said.append(_between(shown, limit_ms, counted))
    low = min(max(low, 0.0), high)
    if low < high and not said:
        said.append("each limit is counted apart: the same requests may have missed several")
    return Goodput(low, high, finished, window.seconds, tuple(said))


def _by_request(window: Window, latency: str, counted: Histogram | None) -> bool:
    whole = latency != "tpot" or set(window.engines) <= PER_REQUEST_TPOT
    return counted is not None and bool(counted.edges_s) and whole


def _between(shown: str, limit_ms: float, counted: Histogram) -> str:
    low, high = counted.around_ms(limit_ms)
    end = f"and {high:.6g} ms" if high is not None else "ms and above"
    return f"{shown} ≤ {limit_ms:.6g} ms lies between {low:.6g} {end}, where the server counts"
