"""A server's own counters of drafting, read from /metrics just before and after an answer."""

import time
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from lib.addresses import Allowed
from lib.errors import FetchError, ProbeError
from lib.probe.completions import Server

PATIENCE_SECONDS = 3.0
_PAUSE_SECONDS = 0.05
_DRAFTS = "spec_decode_num_drafts"
_ACCEPTED = "spec_decode_num_accepted_tokens"
# Names without _total of: rounds with drafts, accepted draft tokens, generated tokens.
_NAMES = (
    (f"vllm:{_DRAFTS}", f"vllm:{_ACCEPTED}", "vllm:generation_tokens"),
    (f"llamacpp:{_DRAFTS}", f"llamacpp:{_ACCEPTED}", "llamacpp:tokens_predicted"),
    (f"lmdeploy:{_DRAFTS}", f"lmdeploy:{_ACCEPTED}", "lmdeploy:generation_tokens"),
    ("sglang:spec_verify_calls", "", "sglang:generation_tokens"),
)


@dataclass(frozen=True)
class Counts:
    """Totals of a server's life, or what a window added; None is not counted there."""

    generated: float
    drafts: float | None = None
    accepted: float | None = None

    def since(self, before: "Counts") -> "Counts":
        """What came after `before`."""
        return Counts(
            self.generated - before.generated,
            _difference(self.drafts, before.drafts),
            _difference(self.accepted, before.accepted),
        )


def _difference(after: float | None, before: float | None) -> float | None:
    return None if after is None else after - (before or 0.0)


def counts_of(text: str) -> Counts | None:
    """The totals of an exposition text, over all its replicas; None where no series is known.

    Raises ValueError for text that is none.
    """
    sums: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = sample.name.removesuffix("_total")
            sums[name] = sums.get(name, 0.0) + float(sample.value)
    for drafts, accepted, generated in _NAMES:
        if generated in sums:
            return Counts(sums[generated], sums.get(drafts), sums.get(accepted))
    return None


def read(server: Server, allowed: Allowed) -> Counts | None:
    """The totals at a server's /metrics; None where it has none that are known."""
    response = server.ask("/metrics", allowed)
    if response.status != 200:
        return None
    try:
        return counts_of(response.text)
    except (ValueError, IndexError, OverflowError, AttributeError):
        return None


def read_if_any(server: Server, allowed: Allowed) -> Counts | None:
    """As `read`, and None too where /metrics cannot be asked."""
    try:
        return read(server, allowed)
    except FetchError:
        return None


def missing(server: Server) -> ProbeError:
    """That a server does not count its drafts."""
    return ProbeError(
        f"{server.shown}: no counters of drafting at /metrics; start it with speculation and with "
        "its metrics on"
    )


def after(server: Server, allowed: Allowed, before: Counts | None, tokens: int) -> Counts:
    """The totals after an answer of `tokens` tokens: waits until all of it is counted.

    None before is nothing counted yet: some engines show a counter only once it has moved. Raises
    ProbeError where the counters fall, do not follow, or count other people's tokens too.
    """
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        found = read(server, allowed)
        added = found.since(before or Counts(0)) if found is not None else Counts(0)
        if min(added.generated, added.drafts or 0, added.accepted or 0) < 0:
            raise ProbeError(f"{server.shown}: its counters fell: it was restarted; try again")
        if added.generated > tokens:
            raise ProbeError(
                f"{server.shown}: counts {added.generated:,.0f} tokens where {tokens:,} were asked "
                "for: others use it; measure while it is idle"
            )
        if found is not None and added.generated == tokens:
            return found
        if time.monotonic() > end:
            if found is None:
                raise missing(server)
            raise ProbeError(
                f"{server.shown}: counts {added.generated:,.0f} of {tokens:,} tokens at /metrics; "
                "one server process that counts every token is needed"
            )
        time.sleep(_PAUSE_SECONDS)
