"""A running server's metrics, asked for once or over and over."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from lib.addresses import Allowed, address_of
from lib.errors import DraftworthError, FetchError, FileError, InputError
from lib.fetching import bearer, fetch
from lib.probe.completions import TOKEN
from lib.serving.metrics import Snapshot, snapshot
from lib.serving.windows import Window, between

PATHS = ("/metrics", "/prometheus/metrics")  # TensorRT-LLM has the second
SECONDS = (1.0, 86_400.0)

_REFUSED = (401, 403)
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Endpoint:
    """A server whose metrics may be asked for: its address with or without the path of them.

    Raises FetchError for an address with a query.
    """

    url: str
    allowed: Allowed
    token: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if "?" in self.url:  # it might carry a secret, and a path is hung under the address
            raise FetchError("address: has a query; leave out ? and what follows")

    @property
    def shown(self) -> str:
        """host:port."""
        return address_of(self.url).shown

    def scrape(self, at_s: float) -> Snapshot:
        """Its metrics now, which is `at_s`. Raises FetchError, UnreadableFile, FileTooLarge."""
        base = self.url.rstrip("/").removesuffix("/v1")
        named = base.endswith(PATHS)
        status = 0
        for path in ("",) if named else PATHS:
            response = fetch(base + path, self.allowed, headers=bearer(self.token))
            status = response.status
            if status == 200:
                return snapshot(self.shown, response.text, at_s)
            if status != 404:
                break
        if status in _REFUSED:
            raise FetchError(
                f"{self.shown}: refuses with status {status}; give it a token that it takes "
                f"({TOKEN} on the command line)"
            )
        raise FetchError(
            f"{self.shown}: no metrics, status {status}; start llama.cpp with --metrics, SGLang "
            "with --enable-metrics, vLLM without --disable-log-stats"
        )


def watch(
    endpoint: Endpoint,
    seconds: float,
    every_s: float,
    on_miss: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Window]:
    """The windows of the next `seconds`, one every `every_s` and the last where they end.

    A scrape that fails is told to `on_miss` and left out: the window after it is longer. Raises
    FetchError or FileError where the first one or every later one fails, UnreadableFile where more
    was accepted than drafted, InputError for times out of range.
    """
    low, high = SECONDS
    if not low <= seconds <= high:
        raise InputError(f"--for {seconds:g}: {low:g} to {high:,.0f} seconds are allowed")
    if not low <= every_s <= seconds:
        raise InputError(f"--every {every_s:g}: {low:g} to --for = {seconds:g} seconds are allowed")
    return between(endpoint.shown, _scrapes(endpoint, seconds, every_s, on_miss, sleep))


def _scrapes(
    endpoint: Endpoint,
    seconds: float,
    every_s: float,
    on_miss: Callable[[str], None],
    sleep: Callable[[float], None],
) -> Iterator[Snapshot]:
    began_s, began = time.time(), time.monotonic()
    yield endpoint.scrape(began_s)
    missed: DraftworthError | None = None
    answered = False
    for step in range(1, math.ceil(seconds / every_s - _ROUNDING) + 1):
        sleep(max(began + min(step * every_s, seconds) - time.monotonic(), 0.0))
        try:
            found = endpoint.scrape(began_s + time.monotonic() - began)
        except (FetchError, FileError) as error:
            missed = error
            on_miss(str(error))
            continue
        answered = True
        yield found
    if missed is not None and not answered:
        raise missed
