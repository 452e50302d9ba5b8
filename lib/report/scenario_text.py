"""What a scenario comes to in dollars, and two of them side by side."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from math import isclose

from lib.estimate import Estimate
from lib.evidence.findings import Findings, load_kinds
from lib.money.cost import MonthlySaving
from lib.money.pricing import SLO_UNKNOWN, PricedPair, price_pairs, saving_a_month
from lib.money.rates import PriceBook
from lib.money.scenario import Scenario, differences
from lib.report.format import money, percent
from lib.report.load_figures import LOAD_TITLES
from lib.report.price_text import TOO_CLOSE, price_answer
from lib.results.scenarios import StoredScenario
from lib.run import LoadKind, Study

NOW = "as it stands now"
MONTHLY = (
    ("Saving a month, hours scale with tokens", "hours_scale_usd"),
    ("Saving a month, whole servers stay on", "whole_servers_usd"),
    ("Saving a month, one server stays on either way", "one_server_usd"),
)


@dataclass(frozen=True)
class Outcome:
    """The price page's answer at a scenario: its sentence, the pair behind it, the saving a month.

    Without a `pair` the sentence says what is missing. `caveat` is that of the study: what must
    stand beside its numbers. `rate_source` is whose the $/GPU-h is and how old; empty if typed.
    """

    sentence: str
    pair: PricedPair | None = None
    monthly: MonthlySaving | None = None
    caveat: str = ""
    rate_source: str = ""


def kind_of(scenario: Scenario, study: Study) -> LoadKind | None:
    """The kind of load that a scenario looks at: as named, else that with the most runs."""
    named = {title: kind for kind, title in LOAD_TITLES.items()}
    kinds = load_kinds(study)
    found = named.get(scenario.text("load_kind") or "")
    return found if found in kinds else next(iter(kinds), None)


def rate_source(scenario: Scenario, book: PriceBook, today: date) -> str:
    """Whose the $/GPU-h of a scenario is, with its date and age; empty where it was typed."""
    day, named = scenario.text("priced_on"), scenario.text("rate")
    rate = book.by_id(named) if named else None
    typed = scenario.number("usd_per_gpu_hour")
    if rate is None or typed is None or not isclose(rate.as_typed, typed, rel_tol=1e-9):
        return ""
    with suppress(ValueError):
        today = date.fromisoformat(day or "")
    return rate.cited(today)


def outcome(scenario: Scenario, found: Findings, source: str = "") -> Outcome:
    """What the price page says of a study at a scenario, whose $/GPU-h is from `source`.

    Raises DraftworthError.
    """
    paid, slo = replace(scenario.rate, source=source), scenario.slo
    agreed = scenario.accept_random
    priced = {
        arm.label: price_pairs(found, arm, paid, slo, accept_random=agreed) for arm in found.arms
    }
    sentence, _, pair = price_answer(found, priced, scenario.load)
    if pair is None:
        return Outcome(sentence, caveat=found.study.caveat, rate_source=source)
    tokens = scenario.number("tokens_per_day")
    monthly = saving_a_month(pair, tokens, paid.utilization)
    return Outcome(sentence, pair, monthly, found.study.caveat, source)


def title(stored: StoredScenario) -> str:
    """`quoted in June, version 2`."""
    return f"{stored.name}, version {stored.version}"


def version_table(rows: Sequence[StoredScenario]) -> dict[str, list[object]]:
    """Columns of every version, as given."""
    columns: dict[str, Callable[[StoredScenario], object]] = {
        "scenario": lambda s: s.name,
        "version": lambda s: s.version,
        "note": lambda s: s.note,
        "by": lambda s: s.by,
        "saved, UTC": lambda s: f"{s.at:%Y-%m-%d %H:%M}",
        "hash": lambda s: s.hash,
    }
    return {name: [value(row) for row in rows] for name, value in columns.items()}


def side_by_side(
    a: tuple[str, Scenario, Outcome], b: tuple[str, Scenario, Outcome]
) -> dict[str, list[str]]:
    """What differs, then what both come to: a row each, two named scenarios as columns."""
    rows = [(d.label, d.before or "not set", d.after or "not set") for d in differences(a[1], b[1])]
    both = (_results(a[2]), _results(b[2]))
    rows += [(label, both[0].get(label, "–"), both[1].get(label, "–")) for label in _labels(both)]
    names = (f"A: {a[0]}", f"B: {b[0]}")
    return {
        "input or result": [row[0] for row in rows],
        names[0]: [row[1] for row in rows],
        names[1]: [row[2] for row in rows],
    }


def change_lines(a: Outcome, b: Outcome) -> list[str]:
    """What B changes of A in dollars, or why one of them has none."""
    lines = [
        f"{name} is not priced. {side.sentence}"
        for name, side in (("A", a), ("B", b))
        if side.pair is None
    ]
    before, after = (None if s.pair is None else s.pair.complete for s in (a, b))
    if before is None or after is None:
        return lines
    for label, old, new in (
        ("Without speculation", before[0].value, after[0].value),
        ("With speculation", before[1].value, after[1].value),
    ):
        lines.append(f"{label}, per 1M output tokens: {_moved(old, new)}.")
    was, is_now = (f"{percent(p[2].value)}{_doubt(s)}" for p, s in ((before, a), (after, b)))
    lines.append(f"Saving: {was} → {is_now}{', no change' if was == is_now else ''}.")
    if a.monthly is not None and b.monthly is not None:
        doubt = _doubt(a) or _doubt(b)
        for label, key in MONTHLY:
            moved = _moved(getattr(a.monthly, key), getattr(b.monthly, key))
            lines.append(f"{label}: {moved}{doubt}.")
    return lines


def _doubt(found: Outcome) -> str:
    """What stands beside a saving that is not told from none."""
    return f" ({TOO_CLOSE})" if found.pair is not None and found.pair.too_close else ""


def _moved(old: float, new: float) -> str:
    text = f"{money(old)} → {money(new)}"
    if money(old) == money(new):
        return f"{text}, no change"
    return f"{text}, {money(abs(new - old))} {'more' if new > old else 'less'}"


def _labels(results: Sequence[dict[str, str]]) -> list[str]:
    return list(dict.fromkeys(label for found in results for label in found))


def _results(found: Outcome) -> dict[str, str]:
    prices = None if found.pair is None else found.pair.complete
    if found.pair is None or prices is None:
        return {"Price": found.sentence}
    off, on, saving = prices
    met = (found.pair.off.slo, found.pair.on.slo)
    rows = {
        "Arm": found.pair.on.arm,
        "$ per 1M output tokens, off": _interval(off, money),
        "$ per 1M output tokens, with": _interval(on, money),
        "Saving": f"{_interval(saving, percent)}{_doubt(found)}",
        "Service level": SLO_UNKNOWN if "unknown" in met else "met",
        "$/GPU-h from": found.rate_source or "as typed",
        "Basis of the prices": ", ".join(filter(None, (str(on.basis), found.caveat))),
    }
    if found.monthly is not None:
        rows |= {
            label: f"{money(getattr(found.monthly, key))}{_doubt(found)}" for label, key in MONTHLY
        }
    return rows


def _interval(value: Estimate, text: Callable[[float], str]) -> str:
    if value.low is None or value.high is None:
        return text(value.value)
    return f"{text(value.value)} ({text(value.low)} to {text(value.high)})"
