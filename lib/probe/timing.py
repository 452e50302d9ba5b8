"""Step times, read from a device only after all that was launched on it is done.

Draft and target steps are timed in turns, so that a clock that drifts meets both; `ratios` compares
them within a round. Samples are the mean of a block of launches; numpy only, no torch.
"""

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lib.errors import ProbeError
from lib.probe.setup import Setup

BLOCK_MS = 10.0
WARM_UPS = 10
PILOTS = 5
MOST_TOKENS = 1024  # of all requests together
LEAVES = 1.10  # v above which verification is no longer taken as free
CLEAR_V = 1.2  # a pilot above this has left 1 by more than 10 %
BISECTIONS = 2  # of the doubling in which v leaves 1: a pass more each
ENERGY_S = 2.0  # NVML's counter moves 10 to 50 times a second
DRAFT, TARGET = 0, 1  # what a block times: the draft's step, or a pass over n >= 1 tokens

Launch = Callable[[], None]


class Device(Protocol):
    """A queue of work that runs apart from its caller.

    Times exist only in what `wait` returns: a time that was not waited for cannot be had.
    """

    def mark(self) -> None:
        """Queue a mark behind what was launched so far."""

    def wait(self) -> Sequence[float]:
        """Wait until all is done; ms at which each mark since the last wait was passed, from 0."""

    def flush(self) -> None:
        """Queue work that leaves none of the weights in a cache."""


@dataclass(frozen=True)
class Progress:
    """How far a measurement is."""

    done: int
    of: int
    what: str


@dataclass(frozen=True)
class Samples:
    """ms of a step of the whole batch, one of each kind a round; `verify_ms` by tokens a request.

    Energies are J a step of the whole board, None where it does not count them.
    """

    draft_ms: tuple[float, ...]
    target_ms: tuple[float, ...]
    verify_ms: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    energy_draft_j: float | None = None
    energy_target_j: float | None = None


@dataclass(frozen=True)
class Hooks:
    """What a measurement calls back: progress, the middle of the rounds, the energy counter (J)."""

    tell: Callable[[Progress], None] = lambda _: None
    midway: Callable[[], None] = lambda: None
    energy_j: Callable[[], float | None] = lambda: None
    now_s: Callable[[], float] = time.monotonic


def block_ms(device: Device, launch: Launch, repeats: int) -> float:
    """Mean ms of one launch over `repeats`, each with cold caches; the flushes are not counted."""
    for _ in range(repeats):
        device.flush()
        device.mark()
        launch()
        device.mark()
    passed = device.wait()
    if len(passed) != 2 * repeats:
        raise ProbeError("the device lost marks of its clock: measure again")
    mean = (math.fsum(passed[1::2]) - math.fsum(passed[::2])) / repeats
    if not math.isfinite(mean) or mean <= 0:
        raise ProbeError("the device's clock did not move during a step: nothing was measured")
    return mean


def rungs(gamma: int, batch: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Tokens a request of the passes to time: those of a round, and on by doubling up to 1024."""
    needed = tuple(range(2, gamma + 2))
    further = []
    n = 2 * (gamma + 1)
    while n * batch <= MOST_TOKENS:
        further.append(n)
        n *= 2
    return needed, tuple(further)


def stages(setup: Setup) -> int:
    """Steps of progress: two models to load, the warm-up, the rounds, and the end."""
    return setup.samples + 4


def order(kinds: Sequence[int], turn: int) -> list[int]:
    """The kinds as a round takes them: the first moves on each round, the way turns each cycle."""
    at = turn % len(kinds)
    turned = [*kinds[at:], *kinds[:at]]
    return turned[::-1] if turn // len(kinds) % 2 else turned


@dataclass(frozen=True)
class _Block:
    launch: Launch
    repeats: int
    pilot_ms: float
    wall_s: float


class _Blocks:
    """What is timed each round, in rising tokens."""

    def __init__(self, device: Device, now_s: Callable[[], float]) -> None:
        self.device = device
        self.now_s = now_s
        self.by_kind: dict[int, _Block] = {}

    def add(self, kind: int, launch: Launch) -> None:
        """Warm a step up and size its block."""
        for _ in range(WARM_UPS):
            launch()
        self.device.wait()
        once = statistics.median(block_ms(self.device, launch, 1) for _ in range(3))
        repeats = max(1, math.ceil(BLOCK_MS / once))
        began = self.now_s()
        pilots = [block_ms(self.device, launch, repeats) for _ in range(PILOTS)]
        wall = (self.now_s() - began) / PILOTS
        self.by_kind[kind] = _Block(launch, repeats, statistics.median(pilots), wall)

    def v(self, tokens: int) -> float:
        return self.by_kind[tokens].pilot_ms / self.by_kind[TARGET].pilot_ms

    @property
    def round_s(self) -> float:
        return math.fsum(block.wall_s for block in self.by_kind.values())

    def sample(self, kind: int) -> float:
        block = self.by_kind[kind]
        return block_ms(self.device, block.launch, block.repeats)


def measure(
    device: Device,
    draft: Launch,
    target: Callable[[int], Launch],
    setup: Setup,
    *,
    most_tokens: int,
    deadline_s: float,
    hooks: Hooks | None = None,
) -> Samples:
    """Time the draft's step, the plain target step and verify passes, `setup.samples` of each.

    `target(n)` gives a pass over n tokens of each request; passes grow past gamma + 1 until v has
    clearly left 1, then halve the gap in which it did, up to `most_tokens` and as far as the time
    allows. `deadline_s` is a time of `hooks.now_s`. Raises ProbeError where what a round needs
    cannot be done by then.
    """
    hooks = hooks or Hooks()
    of = stages(setup)
    hooks.tell(Progress(2, of, "warming up"))
    blocks = _Blocks(device, hooks.now_s)
    blocks.add(TARGET, target(1))
    blocks.add(DRAFT, draft)
    needed, further = rungs(setup.gamma, setup.batch)
    for tokens in needed:
        _in_time(hooks, deadline_s, setup)
        blocks.add(tokens, target(tokens))
    _refuse_long(blocks, hooks, deadline_s, setup)
    _climb(blocks, target, [n for n in further if n <= most_tokens], hooks, deadline_s, setup)

    taken: dict[int, list[float]] = {kind: [] for kind in blocks.by_kind}
    for turn in range(setup.samples):
        _in_time(hooks, deadline_s, setup)
        for kind in order(tuple(blocks.by_kind), turn):
            taken[kind].append(blocks.sample(kind))
        if turn == setup.samples // 2:
            hooks.midway()
        hooks.tell(Progress(turn + 3, of, f"round {turn + 1} of {setup.samples}"))
    target_j, draft_j = (_energy_j(blocks, kind, hooks, deadline_s) for kind in (TARGET, DRAFT))
    hooks.tell(Progress(of, of, "done"))
    samples = {kind: tuple(ms) for kind, ms in sorted(taken.items())}
    return Samples(
        draft_ms=samples.pop(DRAFT),
        target_ms=samples.pop(TARGET),
        verify_ms=samples,
        energy_draft_j=draft_j,
        energy_target_j=target_j,
    )


def _climb(
    blocks: _Blocks,
    target: Callable[[int], Launch],
    further: Sequence[int],
    hooks: Hooks,
    deadline_s: float,
    setup: Setup,
) -> None:
    """Add longer passes until the last has clearly left v = 1, or time or memory ends; then, in
    log tokens, halve the gap in which v leaves 1: within a doubling it may lie anywhere."""

    def add(tokens: int, longest_s: float) -> bool:
        left = deadline_s - hooks.now_s()
        # The warm-up of a pass takes about as long as 20 of its blocks.
        if setup.samples * (blocks.round_s + longest_s) + 20 * longest_s > left:
            return False
        try:
            launch = target(tokens)
        except ProbeError:  # no room for a pass that no round needs
            return False
        blocks.add(tokens, launch)
        return True

    for tokens in further:
        last = max(blocks.by_kind)
        # A doubled pass takes at most twice as long.
        if blocks.v(last) > CLEAR_V or not add(tokens, 2 * blocks.by_kind[last].wall_s):
            break
    for _ in range(BISECTIONS):
        timed = sorted(blocks.by_kind.keys() - {DRAFT})
        above = next((n for n in timed if blocks.v(n) > LEAVES), None)
        if above is None:
            return
        below = timed[timed.index(above) - 1]
        middle = round(math.sqrt(below * above))
        if middle in (below, above) or not add(middle, blocks.by_kind[above].wall_s):
            return


def _refuse_long(blocks: _Blocks, hooks: Hooks, deadline_s: float, setup: Setup) -> None:
    need, left = setup.samples * blocks.round_s, deadline_s - hooks.now_s()
    if need > left:
        raise ProbeError(
            f"{setup.samples} samples take about {need:,.0f} s and {max(left, 0):,.0f} s of "
            f"max_seconds = {setup.max_seconds} are left: allow more, or choose a smaller gamma, "
            "batch, context or model"
        )


def _in_time(hooks: Hooks, deadline_s: float, setup: Setup) -> None:
    if hooks.now_s() > deadline_s:
        raise ProbeError(
            f"not done within max_seconds = {setup.max_seconds}: allow more, or choose a smaller "
            "gamma, batch, context or model"
        )


def _energy_j(blocks: _Blocks, kind: int, hooks: Hooks, deadline_s: float) -> float | None:
    """J a launch over steps that follow each other; None where the board does not count."""
    if hooks.now_s() + 2 * ENERGY_S > deadline_s:
        return None
    block, steps = blocks.by_kind[kind], 0
    before = hooks.energy_j()
    if before is None:
        return None
    ends = hooks.now_s() + ENERGY_S
    while hooks.now_s() < ends:
        for _ in range(block.repeats):
            block.launch()
        blocks.device.wait()
        steps += block.repeats
    after = hooks.energy_j()
    return (after - before) / steps if after is not None and after > before else None
