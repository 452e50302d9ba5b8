"""What the prices say, in sentences."""

from collections.abc import Mapping, Sequence

from lib.estimate import Estimate
from lib.evidence.findings import Findings
from lib.money.cost import MonthlySaving, tokens_freed_per_hour
from lib.money.pricing import SLO_UNKNOWN, PricedPair, saving_a_month
from lib.report.format import load as load_text
from lib.report.format import money, percent, tokens
from lib.report.load_figures import at_load
from lib.run import OFF

TOO_CLOSE = "too close to call"


def price_answer(
    found: Findings, priced: Mapping[str, Sequence[PricedPair]], load: float | None
) -> tuple[str, Estimate | None, PricedPair | None]:
    """The answer of the price page, its estimate, and the pair it rests on.

    At the named operating load, the arm with the lowest price; without a price, what is missing.
    """
    pairs = [p for rows in priced.values() for p in rows]
    if not pairs:
        why = found.comparison.open_loop_note or "no load was measured in both arms"
        return f"Nothing is priced: {why}.", None, None
    if not any(p.on.price or p.off.price for p in pairs):
        reasons = dict.fromkeys(w for p in pairs for w in (p.off.why_not, p.on.why_not) if w)
        return f"Nothing is priced: {'; '.join(reasons)}.", None, None
    if load is None:
        return "Name your operating load in the sidebar to read one price.", None, None
    here = [p for p in pairs if p.on.load == load]
    at = at_load(load, found)
    if not here:
        return f"{at} was not measured in both arms: not priced.", None, None
    both = [(p, c) for p in here if (c := p.complete) is not None]
    if not both:
        reasons = dict.fromkeys(
            f"{p.arm} {p.why_not}" for pair in here for p in (pair.off, pair.on) if p.why_not
        )
        return f"At {at}: {'; '.join(reasons)}.", None, None
    pair, (off, on, saving) = min(both, key=lambda b: b[1][1].value)
    return _sentence(pair, off, on, saving, at), on, pair


def _sentence(pair: PricedPair, off: Estimate, on: Estimate, saving: Estimate, at: str) -> str:
    word = f"{percent(abs(saving.value))} {'less' if saving.value >= 0 else 'more'}"
    text = (
        f"{money(on.value)} instead of {money(off.value)} per 1M output tokens at {at} with "
        f"{pair.on.arm}: {TOO_CLOSE if pair.too_close else word}"
    )
    if saving.low is not None and saving.high is not None:
        text += f" (saving {percent(saving.low)} to {percent(saving.high)})"
    else:
        text += " (one run an arm, so no interval)"
    if "unknown" in (pair.off.slo, pair.on.slo):
        text += f"; {SLO_UNKNOWN}"
    return text + "."


def saving_lines(
    pair: PricedPair, tokens_a_day: float | None, utilization: float | None
) -> list[str]:
    """The saving a month in its three labelled readings, or what to type to read it."""
    if tokens_a_day is None:
        return ["Type the tokens a day to read the saving a month."]
    found = saving_a_month(pair, tokens_a_day, utilization)
    if found is None:
        return []
    lines = [
        f"Hours scale with tokens: {_signed(found.hours_scale_usd)} a month.",
        f"Whole servers stay on ({found.servers_off} without, {found.servers_on} with): "
        f"{_signed(found.whole_servers_usd)} a month.",
        f"One server stays on either way: {_signed(found.one_server_usd)} a month",
    ]
    short = [
        f"{arm} falls short of the demand by {percent(gap, 1)}"
        for arm, gap in ((pair.off.arm, found.short_off), (pair.on.arm, found.short_on))
        if gap > 1e-9
    ]
    lines[-1] += f"; {', '.join(short)}." if short else "."
    lines.append(_committed(pair, found, float(utilization or 1)))
    return [f"{line[:-1]} ({TOO_CLOSE})." for line in lines] if pair.too_close else lines


def _committed(pair: PricedPair, found: MonthlySaving, utilization: float) -> str:
    """What the same paid servers bring: no cash, but capacity."""
    servers, used = found.servers_off, utilization
    freed = tokens_freed_per_hour(
        (pair.off.output_tps or 0) * used,
        (pair.on.output_tps or 0) * used * pair.utilization_ratio,
        servers,
    )
    word = "more" if freed >= 0 else "fewer"
    cash = found.one_server_usd * servers
    paid = "$0 in cash" if cash == 0 else f"{_signed(cash)} a month in cash"
    return (
        f"Capacity is committed ({servers} server{'s' if servers > 1 else ''} paid either way): "
        f"{paid}; room for {tokens(abs(freed))} {word} output tokens an hour."
    )


def _signed(usd: float) -> str:
    if usd == 0:
        return "saves $0"
    return f"{'saves' if usd > 0 else 'costs'} {money(abs(usd))}{'' if usd > 0 else ' more'}"


def unpriced_lines(priced: Mapping[str, Sequence[PricedPair]]) -> list[str]:
    """One line an arm and reason: the loads that have no price, and why."""
    found: dict[tuple[str, str], list[str]] = {}
    for arm, pairs in priced.items():
        for pair in pairs:
            for name, side in ((OFF, pair.off), (arm, pair.on)):
                if side.why_not:
                    loads = found.setdefault((name, side.why_not), [])
                    if load_text(side.load) not in loads:
                        loads.append(load_text(side.load))
    return [f"{arm} not priced at {', '.join(at)}: {why}." for (arm, why), at in found.items()]
