"""Has a candidate regressed against a baseline? Each metric at its worst load, then all of them.

Every test has an interval at level 1 - 0.05/n, n the tests made over all metrics and loads, so that
they share a 5 % error. A test is regressed where its interval lies wholly beyond the limit, passed
where wholly within it, undecided otherwise. One run a side has no interval (unless it is a
published mean with its spread), so it decides nothing.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from lib.errors import InputError
from lib.evidence.gate import Check, Matched
from lib.evidence.gate_crossing import CrossingChange, crossed_arms, crossing_changes
from lib.evidence.next_measurement import REPEATS_NEEDED, repeats_to_settle
from lib.money.gate import MOST, RELATIVE
from lib.theory import mixing

CROSSOVER = "crossover"
NO_CROSSING = "needs off and another arm on both sides, at two shared loads or more"


class Outcome(StrEnum):
    """What a test, a metric or the whole gate says; `missing` metrics could not be computed."""

    PASS = "pass"
    REGRESSED = "regressed"
    UNDECIDED = "undecided"
    MISSING = "missing"


@dataclass(frozen=True)
class Tested:
    """One metric at one cell. `ratio` is candidate over baseline; `limit` is what it may reach.

    Of a bound in dollars there is no ratio: `low`, `high` and `limit` are dollars. `repeats` is how
    many more runs a side would settle an undecided one, None where no number follows. `worse` is
    the log of how much worse the candidate is, infinite where that is not known.
    """

    name: str
    at: str
    verdict: Outcome
    baseline: float | None = None
    candidate: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    limit: float | None = None
    why: str = ""
    repeats: int | None = None
    worse: float = math.inf


@dataclass(frozen=True)
class MetricVerdict:
    """One metric: the test that decides it, and those of every load."""

    name: str
    deciding: Tested
    tests: tuple[Tested, ...] = ()

    @property
    def verdict(self) -> Outcome:
        return self.deciding.verdict


@dataclass(frozen=True)
class ChangeOfSpeed:
    """A change of speed at one cell: `acceptance` is the ratio of tau, `step_cost` that of the
    time of a step, both candidate over baseline; speed is the first over the second."""

    at: str
    acceptance: float
    step_cost: float
    share: float | None


@dataclass(frozen=True)
class Regression:
    """The verdict over all metrics, with the level that each interval has.

    `repeats_needed` is 0 where it is decided, None where more runs have no known number or are not
    what is missing.
    """

    verdict: Outcome
    metrics: tuple[MetricVerdict, ...]
    level: float
    split: ChangeOfSpeed | None
    repeats_needed: int | None


def judge(matched: Matched, checks: Sequence[Check], max_regression: float = 0.02) -> Regression:
    """Whether the candidate is worse by more than the share `max_regression`, beyond noise.

    `checks` are on $ per 1M tokens, a bound on these, TPOT and tau; crossings are found here, and
    regress only where they are lower beyond noise. Any regression decides; else anything undecided,
    a load that the candidate lacks, or no metric at all, leaves the gate undecided. A metric that
    neither side has is missing, and decides nothing. Raises InputError for the share.
    """
    if not 0 <= max_regression < 1:
        raise InputError(f"--max-regression {max_regression:g}: 0 to below 1, for example 2%")
    tested = sum(c.change is not None and c.change.se is not None for c in checks)
    level = 1 - 0.05 / max(1, tested + len(crossed_arms(matched)))
    metrics = [
        _metric(name, [_test(c, max_regression, level) for c in checks if c.name == name])
        for name in dict.fromkeys(c.name for c in checks)
    ]
    changes = crossing_changes(matched, level)
    metrics.append(_metric(CROSSOVER, [_crossing(c) for c in changes], NO_CROSSING))
    verdict = _overall(metrics, matched)
    return Regression(
        verdict,
        tuple(metrics),
        level,
        _split(checks),
        _repeats(metrics) if verdict is Outcome.UNDECIDED else 0,
    )


def _test(check: Check, max_regression: float, level: float) -> Tested:
    """One check against its limit: a factor of 1 + the share, or the bound itself."""
    sign = -1 if check.higher_is_better else 1
    most = sign * (0.0 if check.name == MOST else math.log1p(max_regression))
    bound = check.baseline if check.name == MOST else None
    limit = math.exp(most) if bound is None else float(f"{math.exp(bound.mean):.12g}")
    test = Tested(check.name, check.cell.text, Outcome.UNDECIDED, limit=limit, why=check.why)
    change = check.change
    if change is None or check.baseline is None or check.candidate is None:
        absent = check.baseline is None and check.candidate is None
        return replace(test, verdict=Outcome.MISSING if absent else Outcome.UNDECIDED)
    test = replace(test, ratio=change.multiplier, worse=sign * change.log_m)
    if check.absolute:
        values = (math.exp(m.mean) for m in (check.baseline, check.candidate))
        test = replace(test, baseline=next(values), candidate=next(values))
    ends = change.log_interval(level)
    if ends is None:
        fewest = min(check.baseline.n, check.candidate.n)
        if fewest > 1:
            why = "runs that agree to the last digit are copies, not repeats"
            return _in_dollars(replace(test, why=why))
        why = "one run a side has no interval"
        return _in_dollars(replace(test, why=why, repeats=REPEATS_NEEDED - fewest))
    test = replace(test, low=math.exp(ends[0]), high=math.exp(ends[1]))
    best, worst = sorted(sign * (end - most) for end in ends)
    if best > 0:
        return _in_dollars(replace(test, verdict=Outcome.REGRESSED))
    if worst <= 0:
        return _in_dollars(replace(test, verdict=Outcome.PASS))
    if not check.repeatable:
        return replace(test, why="counted by request: more prompts narrow it, not more runs")
    moved = replace(check.baseline, mean=check.baseline.mean + most)
    repeats = repeats_to_settle(moved, check.candidate, check.cell.load, level)
    why = "the limit is too near for the spread of these runs" if repeats.beyond else ""
    return _in_dollars(replace(test, why=why, repeats=repeats.more))


def _in_dollars(test: Tested) -> Tested:
    """Of a bound: the candidate's price with its ends beside the bound, in dollars."""
    bound = test.limit
    if test.name != MOST or bound is None:
        return test
    low, high = (None if end is None else end * bound for end in (test.low, test.high))
    return replace(test, baseline=None, ratio=None, low=low, high=high)


def _crossing(change: CrossingChange) -> Tested:
    verdicts = {True: Outcome.REGRESSED, False: Outcome.PASS, None: Outcome.UNDECIDED}
    ratio = change.ratio
    return Tested(
        CROSSOVER,
        change.arm,
        verdicts[change.lower],
        change.baseline,
        change.candidate,
        ratio,
        change.low,
        change.high,
        1.0,
        change.why,
        worse=math.inf if ratio is None else -math.log(ratio),
    )


GRAVEST = (Outcome.REGRESSED, Outcome.UNDECIDED, Outcome.PASS, Outcome.MISSING)


def _metric(name: str, tests: Sequence[Tested], why: str = "") -> MetricVerdict:
    """The metric by its gravest test; of several as grave the one that is furthest worse."""
    if not tests:
        return MetricVerdict(name, Tested(name, "", Outcome.MISSING, why=why))
    deciding = min(tests, key=lambda t: (GRAVEST.index(t.verdict), -t.worse))
    return MetricVerdict(name, deciding, tuple(tests))


def _overall(metrics: Sequence[MetricVerdict], matched: Matched) -> Outcome:
    said = {m.verdict for m in metrics}
    if Outcome.REGRESSED in said:
        return Outcome.REGRESSED
    if Outcome.UNDECIDED in said or said == {Outcome.MISSING} or matched.not_measured:
        return Outcome.UNDECIDED
    return Outcome.PASS


def _repeats(metrics: Iterable[MetricVerdict]) -> int | None:
    """Runs a side that would settle every undecided load; crossings follow from these."""
    undecided = [
        t
        for m in metrics
        for t in m.tests
        if t.verdict is Outcome.UNDECIDED and m.name != CROSSOVER
    ]
    known = [t.repeats for t in undecided if t.repeats is not None]
    return max(known) if known and len(known) == len(undecided) else None


def _split(checks: Sequence[Check]) -> ChangeOfSpeed | None:
    """Acceptance and step cost at the cell that slowed most, where tau is known on both sides.

    Speed is that of $ per 1M, else of TPOT: both are time a token.
    """
    taus = {c.cell: c for c in checks if c.name == "tau" and c.change is not None}
    for name in (RELATIVE, "tpot_ms"):
        slowed = [(c.change.log_m, c) for c in checks if c.name == name and c.change]
        here = [(slower, c.cell) for slower, c in slowed if c.cell in taus]
        if here:
            slower, cell = max(here, key=lambda h: h[0])
            a, b = taus[cell].baseline, taus[cell].candidate
            assert a is not None
            assert b is not None
            parts = mixing.split(math.exp(a.mean), math.exp(b.mean), math.exp(-slower))
            return ChangeOfSpeed(
                cell.text, parts.tau_ratio, parts.step_ratio, parts.acceptance_share
            )
    return None
