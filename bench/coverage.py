"""Are the intervals honest? Simulated sweeps with a known truth, as rows of the bench's table.

The truth is the linear step-time model of SpecDecode-Bench's simulator (Llama-3.1-8B on one H100,
vLLM): seconds of a target step, an EAGLE draft and the overhead of a step. A row states how often
an interval misses, or a verdict claims what is not so, against the 5 % that are promised.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.random import Generator

from bench.row import Row
from bench.simulated_requests import simulate
from lib import decision
from lib.decision import State
from lib.decision.regression import Outcome, judge
from lib.evidence import gate
from lib.evidence.crossover import Crossover, crossover
from lib.evidence.findings import ArmFinding, Findings
from lib.evidence.pairing import ArmComparison, Comparison
from lib.evidence.ratio import METRICS, LogRatio, welch
from lib.money.gate import in_dollars
from lib.run import LoadKind, Run, SpecState, Study

LOADS = tuple(float(2**i) for i in range(10))
NOMINAL = 5.0
SWEEPS, STUDIES, DRAWS, GATES, SAMPLES = 2_000, 4_000, 10_000, 1_000, 6_000
REQUESTS = (10, 20, 40, 100)
# Tokens a round, drafts a round: of the two simulated arms, at 200 tokens of context.
ARMS = ((2.33, 3), (2.57, 5))
CONTEXT = 200.0
STUDY_LOADS, STUDY_ARMS, STUDY_REPEATS = (2, 7, 12), (1, 2, 5), (3, 5)


def step_s(batch: float, tokens: float, context: float = CONTEXT) -> float:
    """Seconds of a target step that runs `tokens` tokens a request, with its overhead."""
    return 3.926e-8 * batch * context + 2.101e-5 * batch * tokens + 5.886e-3 + 1.207e-3


def draft_s(batch: float, gamma: int, context: float = CONTEXT) -> float:
    """Seconds that drafting adds to a round."""
    return 2.378e-9 * batch * context + 8.41e-7 * (gamma + 1) + 2.135e-3


def true_multiplier(batch: float, tau: float, gamma: int, context: float = CONTEXT) -> float:
    """M of the model at a batch size."""
    on = step_s(batch, gamma + 1, context) + draft_s(batch, gamma, context)
    return tau * step_s(batch, 1, context) / on


def true_crossing(tau: float, gamma: int) -> float:
    """The batch at which the model's M is 1, by bisection."""
    low, high = LOADS[0], LOADS[-1]
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if true_multiplier(middle, tau, gamma) > 1 else (low, middle)
    return low


def line_crossing(tau: float, gamma: int) -> float:
    """Where the straight lines between the true values at LOADS cross 1."""
    logs = [math.log(true_multiplier(x, tau, gamma)) for x in LOADS]
    i = next(i for i in range(len(logs) - 1) if logs[i] > 0 >= logs[i + 1])
    return float(2 ** (i + logs[i] / (logs[i] - logs[i + 1])))


@dataclass(frozen=True)
class Missed:
    """Fractions that miss: M's intervals, the crossing of the lines and that of the curve."""

    m: float
    lines: float
    curve: float


def missed(sweeps: int, draws: int = DRAWS, seed: int = 1) -> Missed:
    """Of simulated sweeps: 3 or 5 repeats, 1 to 4 % noise on the tok/s of each run."""
    rng = np.random.default_rng(seed)
    m = lines = curve = points = crossings = 0
    for i in range(sweeps):
        repeats, noise = STUDY_REPEATS[i % 2], rng.uniform(0.01, 0.04)
        off = {x: _runs(rng, 1.0, noise, repeats) for x in LOADS}
        for tau, gamma in ARMS:
            truth = {x: true_multiplier(x, tau, gamma) for x in LOADS}
            sweep = [_ratio(x, off[x], _runs(rng, truth[x], noise, repeats)) for x in LOADS]
            m += sum(not _covers(p.interval(), truth[p.load]) for p in sweep)
            points += len(sweep)
            falls = [c for c in crossover(sweep, draws, seed=i).crossings if c.direction == "down"]
            ends = [(c.low, c.high) for c in falls if c.low is not None and c.high is not None]
            lines += not any(_covers(e, line_crossing(tau, gamma)) for e in ends)
            curve += not any(_covers(e, true_crossing(tau, gamma)) for e in ends)
            crossings += 1
    return Missed(m / points, lines / crossings, curve / crossings)


def claimed(studies: int, seed: int = 2) -> float:
    """Fraction of studies without any difference whose verdict claims a win or a loss.

    2, 7 or 12 loads, 1, 2 or 5 arms, 3 or 5 repeats; noise grows over the loads from 0.5 to 3.5 %;
    the operating load is the middle one.
    """
    rng = np.random.default_rng(seed)
    kinds = list(product(STUDY_LOADS, STUDY_ARMS, STUDY_REPEATS))
    claims = 0
    for i in range(studies):
        count, arms, repeats = kinds[i % len(kinds)]
        loads = [float(2**j) for j in range(count)]
        noise = dict(zip(loads, np.linspace(0.005, 0.035, count), strict=True))
        off = {x: _runs(rng, 1.0, noise[x], repeats) for x in loads}
        points = [
            [_ratio(x, off[x], _runs(rng, 1.0, noise[x], repeats)) for x in loads]
            for _ in range(arms)
        ]
        found = findings(points)
        state = decision.verdict(found, loads[count // 2]).state
        claims += state in (State.PASSED, State.FAILED)
    return claims / studies


GATE_LOADS = (128.0, 256.0, 512.0)  # about the first arm's crossing
MOST = 0.02


def regressed(gates: int, slower: float = 1.0, seed: int = 3) -> float:
    """Fraction of gates that call a candidate regressed, all of whose runs are `slower`.

    Off and one arm at three loads, 3 or 5 repeats a side, noise of 0.5 to 3.5 % on the tok/s of a
    run; the limit is 2 %.
    """
    rng = np.random.default_rng(seed)
    called = 0
    for i in range(gates):
        repeats, noise = STUDY_REPEATS[i % 2], rng.uniform(0.005, 0.035)
        old, new = (
            [
                run
                for load, on in product(GATE_LOADS, (False, True))
                for run in _gate_runs(rng, side, load, on, noise, repeats, speed)
            ]
            for side, speed in (("old", 1.0), ("new", 1 / slower))
        )
        matched = gate.match(Study("simulated", (*old, *new)), old, new)
        speeds = [in_dollars(c, None) for c in gate.checks(matched) if c.name == "output_tps"]
        called += judge(matched, speeds, MOST).verdict is Outcome.REGRESSED
    return called / gates


def _gate_runs(
    rng: Generator, side: str, load: float, on: bool, noise: float, repeats: int, speed: float
) -> list[Run]:
    tau, gamma = ARMS[0]
    mean = speed * (true_multiplier(load, tau, gamma) if on else 1.0)
    return [
        Run(
            run_id=f"{side} {load} {on} {i}",
            spec_state=SpecState.ON if on else SpecState.OFF,
            load_kind=LoadKind.CONCURRENCY,
            offered_load=load,
            output_tps=tps,
        )
        for i, tps in enumerate(_runs(rng, mean, noise, repeats))
    ]


def findings(arms: Sequence[Sequence[LogRatio]]) -> Findings:
    """Findings of simulated points, one list an arm, off included in each."""
    pairs = [ArmComparison(f"arm:{i + 1}", LoadKind.CONCURRENCY, ()) for i in range(len(arms))]
    found = [
        ArmFinding(p.arm, p, tuple(points), (), Crossover((), None))
        for p, points in zip(pairs, arms, strict=True)
    ]
    return Findings(
        Comparison(Study("simulated"), tuple(pairs)), METRICS["output_tps"], tuple(found)
    )


def coverage_rows() -> list[Row]:
    """What 2,000 sweeps, 4,000 studies, 1,000 gates and 6,000 samples of requests miss, in percent.

    5 % are promised.
    """
    found = missed(SWEEPS)
    rows = [
        ("95 % intervals of M that miss the truth", found.m, 1.4),
        ("crossings of the true points missed", found.lines, 1.4),
        ("crossings of the true curve missed", found.curve, 2.0),
        ("verdicts that claim a difference where none is", claimed(STUDIES), 1.0),
        ("gates that call an equal candidate regressed", regressed(GATES), 1.0),
        ("gates that call a candidate at the limit regressed", regressed(GATES, 1 + MOST), 1.0),
        *((f"intervals of α of {n} requests that miss", alpha_missed(n), 1.4) for n in REQUESTS),
    ]
    return [
        Row(what, 100 * share, "1 less the level", NOMINAL, goal, "%") for what, share, goal in rows
    ]


def alpha_missed(requests: int, seed: int = 4) -> float:
    """Share of samples of requests, whose own α differ, of which the interval misses the truth."""
    return 1 - simulate(requests, draws=SAMPLES, rng=np.random.default_rng(seed)).by_request


def _runs(rng: Generator, mean: float, noise: float, repeats: int) -> list[float]:
    return list(mean * np.exp(noise * rng.standard_normal(repeats)))


def _ratio(load: float, off: Sequence[float], on: Sequence[float]) -> LogRatio:
    return LogRatio(load, *welch(on, off), len(off), len(on))


def _covers(ends: tuple[float, float] | None, truth: float) -> bool:
    return ends is not None and ends[0] <= truth <= ends[1]
