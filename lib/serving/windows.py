"""What a server did between two scrapes, engine by engine, and what several windows add up to.

Rates over engines and over time are ratios of sums. A counter that fell means that its server was
restarted: it counts from 0 in that window, and the window says so.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, reduce
from typing import Literal

from lib.errors import InputError, UnreadableFile
from lib.evidence.acceptance import Acceptance, of_run
from lib.results.engine_metrics import accepted_of_verify_calls
from lib.results.exposition import Labels
from lib.run import Run, SpecState, distinct
from lib.serving.metrics import Counters, Gauges, Replica, Snapshot
from lib.theory.acceptance import Ratio, fixed_gamma
from lib.theory.mixing import FEW_DRAFTED, Coverage, coverage

Speculation = Literal["counted", "point sample", "none", "not counted"]

_SAME_START_SECONDS = 1.0


@dataclass(frozen=True)
class Window:
    """`seconds` of one engine, or of all `parts` together, from `began_at_s` (Unix time) on.

    `counters` were counted in it; `gauges` are means of the point samples at the ends of the
    windows that it is made of. `running_before` are the requests that ran when it began, and
    `restarts` how often a counter fell.
    """

    label: str
    engine: str
    began_at_s: float
    seconds: float
    counters: Counters
    gauges: Gauges
    running_before: float | None = None
    restarts: int = 0
    parts: tuple["Window", ...] = ()

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise InputError(
                f"window of {self.seconds:g} s: the later scrape has to be after the earlier one"
            )

    @property
    def engines(self) -> tuple[str, ...]:
        """The names of its engines, each once."""
        return tuple(self.engine.split(", "))

    @property
    def output_tps(self) -> float | None:
        """Generated tokens a second, by the counter."""
        return self._rate(self.counters.output_tokens)

    @property
    def request_rps(self) -> float | None:
        """Requests completed a second."""
        return self._rate(self.counters.completed)

    def _rate(self, count: int | None) -> float | None:
        return None if count is None else count / self.seconds

    @property
    def idle(self) -> bool:
        """Whether nothing runs and nothing was generated."""
        return self.gauges.idle and not self.counters.output_tokens

    @property
    def speculation(self) -> Speculation:
        """Whether drafts were counted; else whether only a gauge tells, and of a running server."""
        counted = (self.counters.drafts, self.counters.draft_tokens)
        if any(counted):
            return "counted"
        if counted != (None, None):
            return "none"
        if self.gauges.tau is not None and self.gauges.tau > 1 and not self.idle:
            return "point sample"
        return "not counted"

    @cached_property
    def run(self) -> Run:
        """The window as a run, for all that takes one: acceptance, checks, prices."""
        c, g = self.counters, self.gauges
        accepted = c.accepted_tokens
        if accepted is None:
            accepted = accepted_of_verify_calls(c.drafts, c.output_tokens, c.completed)
        drafted = self.speculation == "counted"
        shown = self.speculation == "point sample"
        means = {n: getattr(c, n) for n in ("ttft", "tpot", "itl", "e2e")}
        return Run(
            run_id=self.label or "window",
            tool="prometheus",
            token_count="server",
            engine=self.engine,
            spec_state=SpecState.ON if drafted or shown else SpecState.UNKNOWN,
            num_speculative_tokens=fixed_gamma(c.draft_tokens or 0, c.drafts or 0),
            completed=c.completed,
            duration_s=self.seconds,
            input_tokens=c.input_tokens,
            output_tokens=c.output_tokens,
            output_tps=self.output_tps,
            request_rps=self.request_rps,
            running_mean=g.running,
            waiting_mean=g.waiting,
            drafts=c.drafts,
            draft_tokens=c.draft_tokens,
            accepted_tokens=accepted,
            accepted_per_position=c.accepted_per_position if drafted else None,
            accept_length=g.tau if shown else None,
            **{f"{n}_ms_mean": h.mean_ms for n, h in means.items() if h is not None},
        )

    @cached_property
    def acceptance(self) -> Acceptance | None:
        """What its counts say of acceptance; None without a draft in it."""
        if self.speculation not in ("counted", "point sample"):
            return None
        found = of_run(self.run)
        where = self.label or self.engine
        return found and replace(found, source=f"{where}, {self.seconds:.4g} s at /metrics")

    @property
    def tau(self) -> float | None:
        """Mean tokens a round, bonus token included, over the steps that drafted."""
        return self.acceptance.tau.value if self.acceptance else None

    @property
    def alpha(self) -> Ratio | None:
        """alpha with its interval; None where draft lengths vary, or without a draft."""
        return self.acceptance.alpha if self.acceptance else None

    @property
    def coverage(self) -> Coverage | None:
        """How much of the output the counted drafts made: steps without a draft are not counted.

        All of it where they made more: drafts accepted past the end of an answer are counted.
        """
        c = self.counters
        if not c.drafts or c.accepted_tokens is None or not c.output_tokens or self.tau is None:
            return None
        if c.drafts + c.accepted_tokens >= c.output_tokens:
            return Coverage(1.0, self.tau)
        return coverage(c.drafts, c.accepted_tokens, c.output_tokens)

    @property
    def notes(self) -> tuple[str, ...]:
        """What must be known to read its numbers, in sentences."""
        said = []
        if self.restarts:
            often = "once" if self.restarts == 1 else f"{self.restarts} times"
            said.append(
                f"counters fell {often}: the server was restarted and counts from 0 since, or the "
                "address leads to several servers in turn"
            )
        if self.idle:
            said.append("idle: nothing runs and nothing was generated")
        if self.speculation == "none":
            said.append("no speculation in this window: its counters did not move")
        elif self.speculation == "not counted":
            said.append(
                f"no speculation metrics found: {self.engine} does not speculate, or its version "
                "does not count it"
            )
        elif self.speculation == "point sample":
            said.append("τ is a point sample of a gauge, of the server's last batches")
        made = self.coverage
        if made is not None and made.share < FEW_DRAFTED:
            said.append(
                f"speculation made {made.share:.0%} of {self.counters.output_tokens:,} tokens: "
                f"over all steps {made.tokens_per_step:.4g} tokens a step, not {self.tau:.4g}"
            )
        return tuple(said)

    @property
    def _seen(self) -> Gauges:
        """The gauges without a tau that an idle server only still shows."""
        return replace(self.gauges, tau=None) if self.idle else self.gauges

    def then(self, later: "Window") -> "Window":
        """Both together, one after the other; engines that only one of them has are kept."""
        seconds = self.seconds + later.seconds
        share = self.seconds / seconds
        mine, theirs = ({p.label: p for p in w.parts} for w in (self, later))
        parts = []
        for label in dict.fromkeys((*mine, *theirs)):
            first, second = mine.get(label), theirs.get(label)
            if first is not None and second is not None:
                parts.append(first.then(second))
            elif (alone := first or second) is not None:
                parts.append(replace(alone, began_at_s=self.began_at_s, seconds=seconds))
        return Window(
            self.label,
            ", ".join(distinct((*self.engines, *later.engines))),
            self.began_at_s,
            seconds,
            self.counters.plus(later.counters),
            _mean(self._seen, later._seen, share),
            self.running_before,
            self.restarts + later.restarts,
            tuple(parts),
        )


def _mean(first: Gauges, second: Gauges, share: float) -> Gauges:
    found = {}
    for f in fields(Gauges):
        a, b = getattr(first, f.name), getattr(second, f.name)
        found[f.name] = (b if a is None else a) if None in (a, b) else share * a + (1 - share) * b
    return Gauges(**found)


def window(name: str, before: Snapshot, after: Snapshot) -> Window:
    """What every engine did between two scrapes of one server, and all together.

    An engine that only the later scrape has counts from then on. `name` is for messages. Raises
    InputError where `after` is not later, UnreadableFile where more was accepted than drafted.
    """
    times = (before.started_s, after.started_s)
    again = None not in times and abs((times[1] or 0) - (times[0] or 0)) > _SAME_START_SECONDS
    seconds = after.at_s - before.at_s
    parts = []
    for place, now in after.replicas.items():
        part = _part(before.at_s, seconds, before.replicas.get(place), now, again)
        _possible(name, part)
        parts.append(part)
    return side_by_side(parts)


def _part(
    began_at_s: float, seconds: float, then: Replica | None, now: Replica, again: bool
) -> Window:
    running: float | None = 0.0
    restarts = 0
    if then is None:
        counters = now.counters.since(now.counters)
    elif again or then.engine != now.engine or now.counters.fallen_since(then.counters):
        counters, restarts = now.counters, 1
    else:
        counters, running = now.counters.since(then.counters), then.gauges.running
    return Window(
        now.label, now.engine, began_at_s, seconds, counters, now.gauges, running, restarts
    )


def _possible(name: str, part: Window) -> None:
    c = part.counters
    counts = (("accepted", c.accepted_tokens, "drafted tokens", c.draft_tokens),)
    first = c.accepted_per_position[0] if c.accepted_per_position else None
    for what, some, of_what, of in (
        *counts,
        ("accepted at the first position", first, "drafts", c.drafts),
    ):
        if some is not None and of is not None and some > of:
            raise UnreadableFile(
                f"{name}: {some:,} {what} of {of:,} {of_what} between two scrapes: over 100 %, "
                "which no engine does; scrape one server process, not several in turn"
            )


def side_by_side(parts: Sequence[Window]) -> Window:
    """Engines or servers over the same time as one: sums of counts, so ratios of sums.

    KV use is that of the fullest; a gauge of tau stands where all agree.
    """
    if not parts:
        raise InputError("no engine was seen in both scrapes; ask the server again")
    gauges = [p.gauges for p in parts]
    taus = {g.tau for g in gauges}
    return Window(
        parts[0].label if len(parts) == 1 else "",
        ", ".join(distinct(p.engine for p in parts)),
        min(p.began_at_s for p in parts),
        max(p.seconds for p in parts),
        reduce(Counters.plus, (p.counters for p in parts)),
        Gauges(
            _sum(g.running for g in gauges),
            _sum(g.waiting for g in gauges),
            max((g.kv_use for g in gauges if g.kv_use is not None), default=None),
            taus.pop() if len(taus) == 1 else None,
            _sum(g.output_tps for g in gauges),
        ),
        _sum(p.running_before for p in parts),
        sum(p.restarts for p in parts),
        tuple(parts),
    )


def _sum(values: Iterable[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) if known else None


def total(windows: Sequence[Window]) -> Window:
    """Windows one after the other as one. Raises InputError without any."""
    if not windows:
        raise InputError("no window: two scrapes at least are needed")
    return reduce(Window.then, windows)


def between(name: str, snapshots: Iterable[Snapshot], leave_out: bool = False) -> Iterator[Window]:
    """The windows between scrapes as they come, oldest first.

    An engine that was not seen for a while goes on from where it was seen last. A window in which
    more was accepted than drafted raises UnreadableFile, or is left out if `leave_out`.
    """
    last: Snapshot | None = None
    seen: dict[Labels, Replica] = {}
    for now in snapshots:
        if last is not None:
            try:
                yield window(name, replace(last, replicas=seen), now)
            except UnreadableFile:
                if not leave_out:
                    raise
        seen = {**seen, **now.replicas}
        last = now
