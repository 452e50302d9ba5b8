"""How long an answer decodes with and without speculation: p50, p95 and p99, in words and cells."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lib.report.format import number, percent, significant
from lib.report.screening import PAPER_MISS, Screening
from lib.theory.rounds import DecodeTime, RoundLaw, Rounds, quantile_curve

PERCENTILES = (0.5, 0.95, 0.99)
# Axis ends, so that the axis stays still while an input is dragged.
TOPS = (64, 128, 256, 512, 1024, 2048, 4096)
FIRST_TOP = 512
PARTS = 32
# sd of τ between the requests of a data set over its τ, lowest and highest of four.
REQUESTS_DIFFER = (0.13, 0.29)
REQUESTS_SOURCE = (
    "SpecDecode-Bench's published acceptance of Llama-3.1-8B with EAGLE-3 at γ = 7, 300 to 500 "
    "requests in each of four data sets"
)

Columns = dict[str, list[Any]]


@dataclass(frozen=True)
class Decode:
    """Decode time under a screening: the figure's curves and, once N is typed, the answer's.

    Times are in plain steps until the plain step time is typed, then in ms. A round costs
    γc + 1 plain steps, or γc + v where v is.
    """

    screening: Screening

    @cached_property
    def law(self) -> RoundLaw:
        """The tokens of a round."""
        return RoundLaw.of_alpha(self.screening.alpha, self.screening.gamma)

    @property
    def step(self) -> float:
        """One plain step: in ms where it is known, else 1."""
        return self.screening.step_ms or 1.0

    @property
    def answer(self) -> DecodeTime | None:
        """The answer of N tokens, exact; None until N is typed."""
        s = self.screening
        if s.answer_tokens is None:
            return None
        return DecodeTime(Rounds(self.law, s.answer_tokens), self.step, s.c, s.verify_cost or 1.0)

    @property
    def round_cost(self) -> float:
        """One round, in the unit of `step`."""
        s = self.screening
        return self.step * (s.gamma * s.c + (s.verify_cost or 1.0))

    @property
    def top(self) -> int:
        """The longest answer drawn."""
        tokens = self.screening.answer_tokens
        return FIRST_TOP if tokens is None else next(t for t in TOPS if t >= tokens)

    @property
    def columns(self) -> Columns:
        """Decode time over answer length: plain, p50 and p95 with speculation."""
        tokens = [self.top * part // PARTS for part in range(1, PARTS + 1)]
        unit = "ms" if self.screening.step_ms else "plain_steps"
        rows = {f"p{q * 100:g}_{unit}": quantile_curve(self.law, tokens, q) for q in (0.5, 0.95)}
        return {
            "answer_tokens": tokens,
            f"without_{unit}": [n * self.step for n in tokens],
            **{name: (m * self.round_cost).tolist() for name, m in rows.items()},
        }

    def text(self, time: float) -> str:
        """A time with its unit: `5.31 s`, `812 ms`, or `186 plain steps`."""
        return (
            f"{self.cell(time)} plain steps" if self.screening.step_ms is None else self.cell(time)
        )

    def cell(self, time: float) -> str:
        """A time for a table whose head names plain steps where no step time is known."""
        if self.screening.step_ms is None:
            return significant(time)
        return f"{significant(time / 1000)} s" if time >= 1000 else f"{significant(time)} ms"


def table(decode: Decode) -> str:
    """Mean, p50, p95 and p99 with and without speculation, as Markdown; dashes until N is typed."""
    answer = decode.answer
    with_it: Sequence[str] = ["–"] * 4
    without: Sequence[str] = ["–"] * 4
    length = "N tokens"
    if answer is not None:
        times = [answer.mean_ms, *(answer.percentile_ms(q) for q in PERCENTILES)]
        with_it = [decode.cell(t) for t in times]
        without = [decode.cell(answer.plain_ms)] * 4
        length = f"{answer.rounds.tokens:,} tokens"
    if decode.screening.step_ms is None:
        length += ", in plain steps"
    v = decode.screening.verify_cost
    name = "With speculation" if v is None else f"With speculation, v = {number(v)}"
    head = "| | mean | " + " | ".join(f"p{q * 100:g}" for q in PERCENTILES) + " |"
    return "\n".join(
        (
            head.replace("| |", f"| {length} |", 1),
            "|---|---:|---:|---:|---:|",
            f"| {name} | {' | '.join(with_it)} |",
            f"| Without | {' | '.join(without)} |",
        )
    )


def notes(decode: Decode) -> list[str]:
    """What the table leaves out: the cut end, requests that differ, the theorem's own miss."""
    low, high = REQUESTS_DIFFER
    answer = decode.answer
    if answer is None:
        return ["Type an answer length N to see its mean, p50, p95 and p99."]
    rounds = answer.rounds
    spread = percent(rounds.sd / rounds.mean, 1)
    lines = [
        f"{rounds.mean:.1f} rounds on average. The last one brings {rounds.lost_tokens:.2f} tokens "
        f"past the end, which are cut: {rounds.effective_tau:.2f} tokens a round count, not τ = "
        f"{rounds.law.tau:.2f}.",
        f"The spread is that of rounds alone, sd {spread} of the mean: every request with the same "
        f"α. Requests differ more: τ's sd between them was {percent(low)} to {percent(high)} of "
        f"it in {REQUESTS_SOURCE}. Your p95 is further out than this one.",
    ]
    if decode.screening.verify_cost is None:
        lines.append(
            f"Theorem 3.8 throughout: its own miss, {PAPER_MISS[0]:g} to {PAPER_MISS[1]:g} times, "
            "is not in the spread. The time to the first token is left out."
        )
    else:
        lines.append("With your v, not Theorem 3.8. The time to the first token is left out.")
    return lines
