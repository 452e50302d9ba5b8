"""One label, many meanings: what each engine calls acceptance, and how it becomes tau.

tau is mean tokens a round with the bonus token. Everything is converted to it first; the rate on
the common definition is (tau - 1) / gamma, and alpha is fitted to tau. See `NAMES`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from lib.errors import InputError
from lib.theory.acceptance import WHOLE, fixed_gamma

# Drafters that propose all positions in one pass: their cost does not grow with gamma.
PARALLEL = ("dflash", "dspark", "peagle", "p-eagle", "medusa", "pard")
# The context decides what is drafted: n-gram look-up and suffix trees.
LOOKUP = ("ngram", "n-gram", "suffix", "prompt lookup", "prompt_lookup")


@dataclass(frozen=True)
class Name:
    """A number as a source prints it. `most` is the largest value it can take at gamma.

    `gamma_matters` says that the conversion needs the draft length, `varies` that the engine
    shortens drafts by itself.
    """

    key: str
    engine: str
    called: str
    how: str
    to_tau: Callable[[float, int], float]
    most: Callable[[int], float]
    gamma_matters: bool = True
    percent: bool = False
    varies: bool = False
    caution: str = ""

    @property
    def title(self) -> str:
        """`vLLM V1: draft acceptance rate`."""
        return f"{self.engine}: {self.called}"

    def tau(self, value: float, gamma: int | None) -> float:
        """The printed value as tokens a round. Raises InputError that says what it may be."""
        if self.gamma_matters and gamma is None:
            raise InputError(
                f"{self.called} of {self.engine}: the draft length γ is needed to read it; type γ"
            )
        most = self.most(gamma) if gamma is not None else float("inf")
        if not 0 <= value <= most * (1 + WHOLE):
            raise InputError(
                f"{self.called} = {value:g}: {self._allowed(value, most, (gamma or 0) + 1)}"
            )
        tau = self.to_tau(value, gamma or 0)
        if tau < 1 - 1e-9:
            raise InputError(
                f"{self.called} = {value:g}: with the bonus token a round has at least 1 token. "
                "Does this length leave it out? Choose the name without the bonus token"
            )
        return min(max(tau, 1.0), gamma + 1.0) if gamma is not None else max(tau, 1.0)

    def _allowed(self, value: float, most: float, longest: float) -> str:
        if self.percent:
            return "0 to 100 %"
        if self.gamma_matters and value > most:
            what = "an accepted length" if value <= longest else "a percentage"
            return f"0 to {most:g}; was {what} meant? Choose that name"
        return f"0 to {most:g}"


def _rate(key: str, engine: str, called: str, *, varies: bool = False) -> Name:
    how = "accepted / drafted: τ = 1 + rate · γ"
    return Name(key, engine, called, how, lambda r, g: 1 + r * g, lambda g: 1.0, varies=varies)


def _length(key: str, engine: str, called: str, how: str = "bonus token included: τ") -> Name:
    return Name(key, engine, called, how, lambda x, g: x, lambda g: g + 1.0, gamma_matters=False)


def _without_bonus(key: str, engine: str, called: str) -> Name:
    how = "bonus token left out: τ = length + 1"
    return Name(key, engine, called, how, lambda x, g: x + 1, lambda g: g, gamma_matters=False)


NAMES: tuple[Name, ...] = (
    _rate("vllm_rate", "vLLM V1", "draft acceptance rate (fraction)"),
    _length("vllm_length", "vLLM V1", "mean acceptance length"),
    Name(
        "vllm_bench_percent",
        "vllm bench serve",
        "acceptance rate (%)",
        "percent of accepted / drafted: τ = 1 + rate / 100 · γ",
        lambda r, g: 1 + r / 100 * g,
        lambda g: 100.0,
        percent=True,
    ),
    _without_bonus("vllm_old_length", "vLLM before the bonus fix", "mean acceptance length"),
    Name(
        "vllm_v0_efficiency",
        "vLLM V0",
        "system efficiency",
        "emitted / most that could be emitted: τ = efficiency · (γ + 1)",
        lambda e, g: e * (g + 1),
        lambda g: 1.0,
        caution="its acceptance rate counts matches past the first rejection and is not read",
    ),
    _length("sglang_length", "SGLang", "accept length"),
    Name(
        "sglang_rate",
        "SGLang, newer",
        "accept rate",
        "(length − 1) / (draft tokens − 1), γ = draft tokens − 1: τ = 1 + rate · γ",
        lambda r, g: 1 + r * g,
        lambda g: 1.0,
    ),
    Name(
        "sglang_old_rate",
        "SGLang, older log",
        "accept rate",
        "length / draft tokens with the bonus token, γ = draft tokens − 1: τ = rate · (γ + 1)",
        lambda r, g: r * (g + 1),
        lambda g: 1.0,
    ),
    _length("trtllm_rate", "trtllm-bench", "acceptance rate", "output tokens / iterations: τ"),
    _rate("llamacpp_rate", "llama.cpp", "draft acceptance", varies=True),
    _rate("lmdeploy_rate", "LMDeploy", "draft acceptance rate"),
    _rate("other_rate", "another engine", "accepted / drafted", varies=True),
    _length("eagle_length", "EAGLE papers", "average acceptance length τ"),
    _without_bonus("eagle_no_bonus", "EAGLE code", "accept length without bonus"),
)
BY_KEY = {name.key: name for name in NAMES}


@dataclass(frozen=True)
class Inferred:
    """Rounds where no counter has them: tokens less accepted, llama.cpp and the like.

    They include plain steps and the token of the prefill, so `per_round` is a little low. `gamma`
    is the whole draft length where it agrees with that, or exactly so without the token of the
    prefill; else None.
    """

    rounds: float
    tau: float
    per_round: float
    gamma: int | None


def inferred_rounds(tokens: float, drafted: float, accepted: float) -> Inferred:
    """Rounds, tau and drafts a round from generated, drafted and accepted tokens."""
    rounds = tokens - accepted
    if rounds < 1 or not 0 <= accepted <= drafted:
        raise InputError(
            f"generated {tokens:g}, drafted {drafted:g}, accepted {accepted:g}: at most what was "
            "drafted is accepted, and fewer than generated"
        )
    one_less = drafted / (rounds - 1) if rounds > 1 else 0.0
    exact = int(one_less) if one_less >= 1 and one_less == int(one_less) else None
    gamma = fixed_gamma(drafted, rounds) or exact
    return Inferred(rounds, tokens / rounds, drafted / rounds, gamma)


@dataclass(frozen=True)
class Reading:
    """What a rate means at one draft length: tau, and the cost of a round in plain steps."""

    gamma: int
    tau: float
    round_cost: float | None


def readings(rate: float, gamma: int, speedup: float | None = None) -> tuple[Reading, ...]:
    """A rate, and where known a measured speedup, at the stated draft length and at 1.

    Both stand until the number of rounds is known: engines shorten drafts by themselves.
    """
    return tuple(
        Reading(g, tau := 1 + rate * g, tau / speedup if speedup else None)
        for g in dict.fromkeys((gamma, 1))
    )


def is_parallel(method: str | None) -> bool:
    """Whether a method drafts all positions in one pass."""
    return _one_of(method, PARALLEL)


def is_lookup(method: str | None) -> bool:
    """Whether a method copies from the context, so that the first position decides."""
    return _one_of(method, LOOKUP)


def _one_of(method: str | None, names: tuple[str, ...]) -> bool:
    said = (method or "").casefold().replace("_", "-")
    return any(name.replace("_", "-") in said for name in names)
