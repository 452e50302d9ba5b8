"""What a live server's windows say: quantities beside the plan, and the answer in a sentence."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lib.estimate import Basis, Estimate
from lib.money.cost import cost_per_million
from lib.report.format import load as load_text
from lib.report.format import money, significant
from lib.run import Slo
from lib.serving.alerts import Alert
from lib.serving.good_requests import goodput
from lib.serving.plan import Plan
from lib.serving.windows import Window

# Codes of alerts that leave it open whether a server does as planned.
DOUBTS = (
    *("acceptance_down", "too_close", "few_rounds"),
    *("unmeasured_load", "other_draft_length", "point_sample"),
)
USD, RUNNING = "usd_per_million", "running"


@dataclass(frozen=True)
class Quantity:
    """One number of a window, what the plan has for it, and how both are named and written.

    `said` is the number in a sentence, as `{} tok/s`.
    """

    key: str
    title: str
    short: str
    said: str
    unit: str
    of: Callable[[Window], float | None]
    planned: Callable[[Plan], Estimate | None]

    def text(self, value: float) -> str:
        """The value as a card shows it."""
        if self.key == USD:
            return money(value)
        return f"{value:.3g}" if self.key == RUNNING else significant(value)

    def in_words(self, window: Window) -> str:
        """The number of a window in a sentence; empty where it has none."""
        value = self.of(window)
        return "" if value is None else self.said.format(self.text(value))

    def plan_text(self, plan: Plan | None) -> str:
        """`2.77 (2.70–2.84)`; empty where the plan does not say."""
        found = None if plan is None else self.planned(plan)
        if found is None:
            return ""
        text = self.text(found.value)
        if found.low is None or found.high is None:
            return text
        return f"{text} ({self.text(found.low)}–{self.text(found.high)})"


def quantities(usd_per_hour: float | None) -> tuple[Quantity, ...]:
    """What is shown of a window; the last one costs `usd_per_hour`, None where it is not known."""

    def usd(window: Window) -> float | None:
        tps = window.output_tps
        return (
            None if usd_per_hour is None or not tps else float(cost_per_million(usd_per_hour, tps))
        )

    return (
        Quantity("tau", "τ, tokens a round", "τ", "τ {}", "", lambda w: w.tau, lambda p: p.tau),
        Quantity("alpha", "α", "α", "α {}", "", _alpha, lambda p: p.alpha),
        Quantity(
            "tpot_ms", "Mean TPOT", "TPOT, ms", "TPOT {} ms", "ms", _tpot_ms, lambda p: p.tpot_ms
        ),
        Quantity(
            "ttft_ms", "Mean TTFT", "TTFT, ms", "TTFT {} ms", "ms", _ttft_ms, lambda p: p.ttft_ms
        ),
        Quantity(
            "output_tps",
            "Output throughput",
            "tok/s",
            "{} tok/s",
            "tok/s",
            lambda w: w.output_tps,
            lambda p: p.output_tps,
        ),
        Quantity(
            RUNNING,
            "Running requests",
            "running",
            "{} running",
            "requests",
            lambda w: w.gauges.running,
            lambda _: None,
        ),
        Quantity(
            USD,
            "$ per 1M output tokens",
            "$/1M now",
            "{} per 1M output tokens",
            "",
            usd,
            lambda p: p.usd_per_million,
        ),
    )


def _alpha(window: Window) -> float | None:
    return window.alpha.value if window.alpha is not None else None


def _tpot_ms(window: Window) -> float | None:
    counted = window.counters.tpot
    return None if counted is None else counted.mean_ms


def _ttft_ms(window: Window) -> float | None:
    counted = window.counters.ttft
    return None if counted is None else counted.mean_ms


def estimate_of(quantity: Quantity, window: Window, source: str) -> Estimate | None:
    """A quantity of a window as measured from the server's counters; a price is derived."""
    value = quantity.of(window)
    if value is None:
        return None
    ratio = window.acceptance.tau if quantity.key == "tau" and window.acceptance else None
    priced = quantity.key == USD
    return Estimate(
        value,
        "$ per 1M output tokens" if priced else quantity.unit or "tokens a round",
        Basis.DERIVED if priced else Basis.MEASURED,
        f"{source}, {window.seconds:.3g} s of its counters",
        None if ratio is None else ratio.low,
        None if ratio is None else ratio.high,
    )


def answer(
    now: Window | None,
    source: str,
    plan: Plan | None,
    found: Sequence[Alert],
    shown: Sequence[Quantity],
) -> tuple[str, Estimate | None]:
    """Whether it still pays, and the number that it rests on; None while nothing is measured."""
    if now is None:
        return "Nothing was measured in the last minute.", None
    if now.idle:
        return f"Idle: nothing runs on {source}.", None
    named = {q.key: q for q in shown}
    parts = [said for k in ("tau", "output_tps", USD) if (said := named[k].in_words(now))]
    if not parts:
        return f"{source} counts neither drafts nor tokens.", None
    key = "tau" if now.tau is not None else "output_tps"
    counts = [(sum(a.severity == s for a in found), s) for s in ("alert", "warning")]
    wrong = ", ".join(f"{n} {word}{'s' if n > 1 else ''}" for n, word in counts if n)
    start = wrong or _standing(now, plan, found)
    return f"{start}: {', '.join(parts)}.", estimate_of(named[key], now, source)


def _standing(now: Window, plan: Plan | None, found: Sequence[Alert]) -> str:
    """How a server stands of which nothing is wrong: as planned only where that was compared."""
    if plan is not None and now.speculation in ("none", "not counted"):
        return "No draft was counted"
    return "Now" if plan is None or doubts(now, plan, found) else "As planned"


def doubts(now: Window, plan: Plan, found: Sequence[Alert]) -> tuple[str, ...]:
    """What keeps it open whether a server does as planned, in sentences."""
    said = [a.sentence for a in found if a.code in DOUBTS]
    if plan.tau is None or now.tau is None:
        said.append("τ is not compared: the study or the server does not count it.")
    return tuple(said)


def plan_lines(plan: Plan) -> tuple[str, ...]:
    """The plan in a line, and what it rests on."""
    said = [q.said.format(t) for q in quantities(plan.usd_per_hour) if (t := q.plan_text(plan))]
    at = "" if plan.load is None else f" at {load_text(plan.load)}"
    first = f"{plan.arm}{at}: {', '.join(said) or 'nothing of it was measured'}."
    return first, "; ".join(plan.sources)


def live_line(now: Window, source: str, shown: Sequence[Quantity]) -> str:
    """What a watched server does now, for the gate of the decision."""
    keys = ("tau", "tpot_ms", "output_tps", USD)
    said = [words for q in shown if q.key in keys and (words := q.in_words(now))]
    return f"{source}, the last {now.seconds:.3g} s: {', '.join(said) or 'idle'}."


def ago(seconds: float) -> str:
    """`3 s ago`, `2 min ago`."""
    for size, word in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {word} ago"
    return f"{max(seconds, 0):.0f} s ago"


def window_columns(
    window: Window, shown: Sequence[Quantity], plan: Plan | None
) -> dict[str, list[str]]:
    """A window as a table: each quantity, its value, and the plan's."""
    rows = [(q, value) for q in shown if (value := q.of(window)) is not None]
    return {
        "what": [q.title for q, _ in rows],
        "measured": [f"{q.text(value)} {q.unit}".strip() for q, value in rows],
        "plan": [q.plan_text(plan) for q, _ in rows],
    }


def undecided_lines(tracks: Mapping[str, Sequence[Window]], slo: Slo) -> tuple[str, ...]:
    """What kept goodput's two ends apart at the end of each track; a request meets every limit."""
    said = []
    for name, windows in tracks.items():
        good = next((g for w in reversed(windows) if (g := goodput(w, slo)) is not None), None)
        if good is not None and not good.decided:
            said.append(f"{name}: undecided between the two lines. {'; '.join(good.undecided)}.")
    return tuple(said)
