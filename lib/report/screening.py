"""What the theorem says about one drafter, as numbers and as the sentence that is shown."""

import csv
import math
from dataclasses import dataclass
from functools import cache, cached_property

from lib.estimate import Basis, Estimate
from lib.report.format import multiplier, number
from lib.settings import DATA
from lib.theory import measured_round, walltime
from lib.theory.walltime import Verdict

LARGEST_GAMMA = 16
PAPER = (
    "Leviathan, Kalman and Matias 2023, Fast Inference from Transformers via Speculative "
    "Decoding, arXiv 2211.17192"
)
# Measured over predicted in the 12 rows of its Tables 2 and 4, at batch 1 on one TPU-v4.
PAPER_MISS = (0.68, 1.29)
PAPER_MISS_TEXT = "−32 to +29 %"
FORMULA = "S = (1 − α^(γ+1)) / ((1 − α) · (γ·c + 1))"
ASSUMPTIONS = (
    "Verifying γ + 1 tokens costs one plain target step: low batch, memory-bound.",
    "Each draft token is accepted with the same chance α, independently.",
    "A draft step costs c target steps and drafts run one after another.",
    "Answers are long; the tokens cut off at the end of an answer do not count.",
    "Nothing here speaks of load. Where it stops paying is measured, not computed.",
)
SPEEDS_CONDITION = (
    "Output tok/s of each alone at batch 1. An approximation: it holds on the same hardware, "
    "engine, precision and context, and if drafting inside the engine costs what it costs alone."
)
BATCH_CONDITION = (
    "The target's speed by tokens a pass, for example llama-bench with -ub 1 and -ub 5: a draft of "
    "γ tokens is verified in one pass over γ + 1."
)
VERDICTS = {
    Verdict.CANDIDATE: "a candidate for a load test",
    Verdict.UNDECIDED: "too close to call",
    Verdict.REJECT: "not worth a load test",
}


@dataclass(frozen=True)
class Preset:
    """A row of Tables 2 and 4 of the paper: a drafter for T5-XXL with the speedup it measured."""

    task: str
    drafter: str
    temperature: float
    alpha: float
    gamma: int
    c: float
    measured_speedup: float

    @property
    def label(self) -> str:
        """`T5-small, English to German, T = 0`."""
        return f"{self.drafter}, {self.task}, T = {self.temperature:g}"

    @property
    def citation(self) -> str:
        """Where α, γ, c and the measured speedup stand."""
        return f"{PAPER}, Tables 2 and 4: {self.label}, target T5-XXL"


@cache
def presets() -> tuple[Preset, ...]:
    """The published rows of data/presets.csv, in order; the first is where the page starts."""
    with (DATA / "presets.csv").open(newline="", encoding="utf-8") as file:
        return tuple(
            Preset(
                task=r["task"],
                drafter=r["drafter"],
                temperature=float(r["temperature"]),
                alpha=float(r["alpha"]),
                gamma=int(r["gamma"]),
                c=float(r["c"]),
                measured_speedup=float(r["measured_speedup"]),
            )
            for r in csv.DictReader(file)
        )


@dataclass(frozen=True)
class Screening:
    """α, γ, c; everything else follows. Where known: the plain step time in ms, the tokens of an
    answer and the measured cost v of a verify pass in plain steps.

    Raises InputError, naming the argument, when one of them is outside its range.
    """

    alpha: float
    gamma: int
    c: float
    step_ms: float | None = None
    answer_tokens: int | None = None
    verify_cost: float | None = None

    def __post_init__(self) -> None:
        walltime.speedup(self.alpha, self.gamma, self.c)
        if self.verify_cost is not None:
            measured_round.most_speedup(self.gamma, self.c, self.verify_cost)

    @cached_property
    def preset(self) -> Preset | None:
        """The published row with exactly these inputs, if there is one."""
        mine = (self.alpha, self.gamma, self.c)
        return next((p for p in presets() if (p.alpha, p.gamma, p.c) == mine), None)

    @cached_property
    def tau(self) -> float:
        """Mean tokens a round, bonus included."""
        return float(walltime.tau(self.alpha, self.gamma))

    @cached_property
    def speedup(self) -> float:
        """S of Theorem 3.8."""
        return float(walltime.speedup(self.alpha, self.gamma, self.c))

    @property
    def interval(self) -> tuple[float, float]:
        """S as far off as the theorem was in its own paper."""
        return self.speedup * PAPER_MISS[0], self.speedup * PAPER_MISS[1]

    @cached_property
    def break_even_c(self) -> float:
        """The draft cost at which S = 1."""
        return float(walltime.break_even_c(self.alpha, self.gamma))

    @cached_property
    def break_even_alpha(self) -> float | None:
        """The acceptance at which S = 1; None where c > 1."""
        found = float(walltime.break_even_alpha(self.gamma, self.c))
        return None if math.isnan(found) else found

    @cached_property
    def best_gamma(self) -> int:
        """The draft length from 1 to LARGEST_GAMMA with the largest S."""
        return int(walltime.best_gamma(self.alpha, self.c, LARGEST_GAMMA))

    @cached_property
    def best_speedup(self) -> float:
        """S at the best draft length."""
        return float(walltime.speedup(self.alpha, self.best_gamma, self.c))

    @cached_property
    def no_gamma_wins(self) -> bool:
        """Corollary 3.9: α is not above c."""
        return bool(walltime.no_gamma_wins(self.alpha, self.c))

    @property
    def ms_per_token(self) -> float | None:
        """Mean decode time of one output token with speculation, step (γc + 1) / τ, in ms."""
        return None if self.step_ms is None else self.step_ms / self.speedup

    @property
    def measured_speedup(self) -> float | None:
        """S of a round of γc + v plain steps; None while v is not known. Not Theorem 3.8."""
        if self.verify_cost is None:
            return None
        found = measured_round.measured_speedup(self.tau, self.gamma, self.c, self.verify_cost)
        return float(found)

    @property
    def verify_line(self) -> str:
        """The second line, clearly apart from the theorem; empty while v is not known."""
        s, v = self.measured_speedup, self.verify_cost
        if s is None or v is None:
            return ""
        text = f"With your verification cost v = {number(v)}: **{multiplier(s)}**. "
        text += "Not Theorem 3.8, whose v is 1."
        most = float(measured_round.most_speedup(self.gamma, self.c, v))
        if most <= 1:
            return (
                f"{text} It cannot pay at this verify cost: at most {multiplier(most)} with every "
                f"draft accepted at γ = {self.gamma}."
            )
        if v > measured_round.VERIFY_IS_NOT_FREE:
            text += f" At v above {measured_round.VERIFY_IS_NOT_FREE:g} the theorem is out of range"
            text += ": it takes verifying for free."
        return text

    @property
    def sentence(self) -> str:
        """The answer: `S = 3.16× at low batch if α holds: a candidate for a load test.`"""
        s = multiplier(self.speedup)
        if self.no_gamma_wins:
            return f"S = {s} at low batch: no draft length pays while α ≤ c."
        verdict = VERDICTS[walltime.verdict(self.speedup)]
        return f"S = {s} at low batch if α holds: {verdict}."

    @property
    def note(self) -> str:
        """How far to trust it, and what the paper measured for exactly these inputs."""
        low, high = self.interval
        span = f"{multiplier(low)} to {multiplier(high)}"
        text = f"The theorem missed its own paper's measurements by {PAPER_MISS_TEXT}: {span}."
        if self.preset:
            text += f" Measured for these inputs: {self.preset.measured_speedup:g}×."
        if self.no_gamma_wins:
            text += " Corollary 3.9 needs α > c."
        return text

    @property
    def estimate(self) -> Estimate:
        """S with its interval and derivation."""
        low, high = self.interval
        return Estimate(
            value=self.speedup,
            unit="×",
            basis=Basis.THEOREM,
            source=f"Theorem 3.8 of {PAPER}; interval: how far it missed there",
            low=low,
            high=high,
            how=(
                f"{FORMULA}\n"
                f"  = (1 − {number(self.alpha)}^{self.gamma + 1}) / "
                f"((1 − {number(self.alpha)}) · ({self.gamma}·{number(self.c)} + 1))\n"
                f"τ = {self.tau:.4f} tokens a round"
            ),
        )

    @property
    def inputs(self) -> dict[str, Estimate]:
        """α, γ and c with where they come from: the publication or the sliders."""
        basis = Basis.PUBLISHED if self.preset else Basis.ASSUMED
        source = self.preset.citation if self.preset else "slider"
        values = {"α": self.alpha, "γ": float(self.gamma), "c": self.c}
        return {
            name: Estimate(value=value, unit="", basis=basis, source=source)
            for name, value in values.items()
        }


def cost_from_speeds(target_tps: float, drafter_tps: float) -> float:
    """c from output tokens per second of each alone at batch 1; see SPEEDS_CONDITION."""
    return target_tps / drafter_tps


@dataclass(frozen=True)
class BatchVerify:
    """v of a pass over gamma + 1 tokens, in plain steps, from a batch benchmark."""

    gamma: int
    cost: float

    @property
    def text(self) -> str:
        """What a free drafter could gain at most: `With every draft accepted … at most 0.86×`."""
        most = float(measured_round.most_speedup(self.gamma, 0.0, self.cost))
        pays = "" if most > 1 else ": no acceptance makes it pay"
        return (
            f"v = {self.cost:.2f} plain steps at γ = {self.gamma}. With every draft accepted and "
            f"drafting for free, at most **{multiplier(most)}**{pays}."
        )


def verify_from_batch(rows: int, tps: float, single_tps: float) -> BatchVerify:
    """v = n r_1 / r_n for n = `rows` tokens a pass. Raises InputError where one is not above 0."""
    return BatchVerify(rows - 1, float(measured_round.verify_curve(rows, tps, single_tps)))


def cross_check_text(screening: Screening, simulated: float, standard_error: float) -> str:
    """The Monte Carlo result beside the closed form."""
    off = simulated - screening.speedup
    errors = abs(off) / standard_error if standard_error else 0.0
    return (
        f"At α = {number(screening.alpha)}, γ = {screening.gamma}, c = {number(screening.c)}: "
        f"simulated S = **{simulated:.4f}×**, standard error {standard_error:.4f}. The formula "
        f"says **{screening.speedup:.4f}×**, {errors:.1f} standard errors away."
    )
