"""Answers of two lengths from two servers, in turns: what a step takes once the rest cancels.

One request at a time. The difference of the times of both lengths over the difference of their
tokens is the time of a decode step; whatever an answer costs once (prompt, network, scheduling)
cancels. What a server adds to every step does not.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lib.addresses import Allowed
from lib.errors import InputError, ProbeError
from lib.probe import counters
from lib.probe.completions import Answer, Endpoint, Server, connect
from lib.probe.counters import Counts
from lib.probe.result import Interval
from lib.settings import DATA

LIMITS = {"short": (1, 4096), "long": (8, 32_768), "repeats": (5, 200), "max_seconds": (10, 3600)}

OnProgress = Callable[[int, int, str], None]
Floats = NDArray[np.float64]

_DRAWS = 10_000
_SEED = 1729
_LEAST_SHARE = 0.5  # of the tokens that were asked for
_OTHERS = 1.01


@dataclass(frozen=True, kw_only=True)
class Asking:
    """What is asked: answers of `short` and of `long` tokens, `repeats` times, prompt by prompt.

    No prompts are those of data/prompts.txt. `gpu` and `dtype` are what a person says about both
    servers; `max_seconds` bounds everything.
    """

    short: int = 16
    long: int = 144
    repeats: int = 12
    max_seconds: int = 600
    prompts: tuple[str, ...] = ()
    gpu: str = ""
    dtype: str = ""

    def __post_init__(self) -> None:
        for name, (low, high) in LIMITS.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise InputError(f"{name} = {value}: allowed is a whole number, {low} to {high:,}")
        if self.long < 2 * self.short:
            raise InputError(f"long = {self.long}: at least twice short, {2 * self.short:,}")
        if not all(prompt.strip() for prompt in self.prompts):
            raise InputError("prompts: one is empty; leave it out")

    def prompt(self, repeat: int) -> str:
        """The prompt of a repeat."""
        prompts = self.prompts or standard_prompts()
        return prompts[repeat % len(prompts)]


def standard_prompts() -> tuple[str, ...]:
    """The prompts of data/prompts.txt."""
    return tuple((DATA / "prompts.txt").read_text(encoding="utf-8").splitlines())


@dataclass(frozen=True)
class Pair:
    """A prompt at both lengths on one server, and what it counted in between where it counts."""

    short: Answer
    long: Answer
    counted: Counts | None = None

    @property
    def tokens(self) -> int:
        """Tokens of the long answer that the short one lacks."""
        return self.long.tokens - self.short.tokens

    @property
    def ms(self) -> float:
        """Their time."""
        return 1000 * (self.long.seconds - self.short.seconds)


class Line:
    """One server being asked: its answers by repeat, and its counters where it must draft.

    Without `drafts` it must not draft; then its counters, if it has any, are only compared at the
    end.
    """

    def __init__(
        self, server: Server, allowed: Allowed, drafts: bool, deadline: float, prompt: str
    ) -> None:
        self.pairs: list[Pair] = []
        self._drafts = drafts
        self._last = (counters.read if drafts else counters.read_if_any)(server, allowed)
        self.end: Endpoint = connect(server, allowed, deadline, prompt)
        self._asked = 1  # by connecting
        if drafts:
            self._last = counters.after(server, allowed, self._last, self._asked)

    def answer(self, prompt: str, tokens: int) -> tuple[Answer, Counts | None]:
        """An answer, and what it added to the counters of drafting."""
        found = self.end.complete(prompt, tokens)
        self._asked += found.tokens
        if not self._drafts or self._last is None:
            return found, None
        before = self._last
        self._last = counters.after(self.end.server, self.end.allowed, before, found.tokens)
        if found.tokens > 1 and self._last.drafts is None:
            raise counters.missing(self.end.server)
        return found, self._last.since(before)

    def check(self, asking: Asking) -> None:
        """Raise ProbeError where the answers tell nothing about a step."""
        shown = self.end.server.shown
        if min(p.tokens for p in self.pairs) < _LEAST_SHARE * (asking.long - asking.short):
            fewest = min(p.long.tokens for p in self.pairs)
            raise ProbeError(
                f"{shown}: stops after {fewest:,} of {asking.long:,} tokens; ask for shorter "
                "answers, or with other prompts"
            )
        if min(p.ms for p in self.pairs) <= 0:
            raise ProbeError(
                f"{shown}: {asking.long:,} tokens took no longer than {asking.short:,}; "
                "ask for longer answers, while it is idle"
            )

    def others(self) -> bool:
        """Whether a server that must not draft answered others too; ProbeError if it drafts."""
        now = counters.read_if_any(self.end.server, self.end.allowed)
        if now is None or self._last is None:
            return False
        added = now.since(self._last)
        if added.drafts:
            raise ProbeError(
                f"{self.end.server.shown}: drafts tokens itself; this one must be started without "
                "speculation"
            )
        return added.generated > _OTHERS * self._asked

    @property
    def step_ms(self) -> Floats:
        """Time of a step by repeat."""
        return np.array([p.ms / p.tokens for p in self.pairs])

    def early(self, asking: Asking) -> tuple[str, ...]:
        """A sentence where it stopped before the length that was asked for."""
        fewest = min(p.long.tokens for p in self.pairs)
        if fewest == asking.long:
            return ()
        return (
            f"{self.end.model} stopped early, after {fewest:,} of {asking.long:,} tokens at the "
            "earliest; the tokens it counted are used.",
        )


def ask(
    servers: Sequence[Server],
    drafts: Sequence[bool],
    allowed: Allowed,
    asking: Asking,
    on_progress: OnProgress,
) -> list[Line]:
    """Ask both servers at both lengths, in turns, the next repeat the other way round."""
    if servers[0].base == servers[1].base and servers[0].model == servers[1].model:
        raise InputError(f"{servers[0].shown}: named twice; two servers are compared")
    deadline = time.monotonic() + asking.max_seconds
    on_progress(0, asking.repeats, "connecting")
    lines = [
        Line(server, allowed, must_draft, deadline, asking.prompt(0))
        for server, must_draft in zip(servers, drafts, strict=True)
    ]
    for repeat in range(asking.repeats):
        on_progress(repeat, asking.repeats, "asking both servers")
        _repeat(lines, asking, repeat)
    on_progress(asking.repeats, asking.repeats, "asked")
    for line in lines:
        line.check(asking)
    return lines


def _repeat(lines: Sequence[Line], asking: Asking, repeat: int) -> None:
    prompt = asking.prompt(repeat)
    for line in lines:
        line.answer(prompt, 1)  # what is cached of a prompt is then cached for both lengths
    turns = [(line, tokens) for tokens in (asking.short, asking.long) for line in lines]
    if repeat % 2:
        turns.reverse()
    found = {(line, tokens): line.answer(prompt, tokens) for line, tokens in turns}
    for line in lines:
        short, before = found[line, asking.short]
        long, after = found[line, asking.long]
        counted = after.since(before) if after is not None and before is not None else None
        line.pairs.append(Pair(short, long, counted))


def picks(repeats: int) -> NDArray[np.int64]:
    """Repeats drawn with replacement, (draws, repeats), seeded."""
    return np.random.default_rng(_SEED).integers(repeats, size=(_DRAWS, repeats))


def interval(value: float, drawn: Floats) -> Interval:
    """A value with the middle 95 % of its redraws."""
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Interval(float(value), float(low), float(high))


def versions(**lines: Line) -> dict[str, str]:
    """Engine and version by role, where the server says."""
    return {role: line.end.version for role, line in lines.items() if line.end.version}


def notes(
    lines: Iterable[Line], asking: Asking, spread: float | None, busy: bool
) -> tuple[str, ...]:
    """Sentences on what may make the times wrong; `spread` where it is too wide."""
    said = [sentence for line in lines for sentence in line.early(asking)]
    if spread is not None:
        said.append(f"unstable: a step's time spreads by {spread:.0%} (IQR over median)")
    if busy:
        said.append("busy: a server answered others meanwhile; measure while both are idle")
    return tuple(said)
