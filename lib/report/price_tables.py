"""What lies under a price, as tables and sentences: break-evens, bases, energy, good tokens."""

from collections.abc import Mapping, Sequence
from typing import Any

from lib.estimate import Estimate
from lib.money.bases import TokenPrices, overall_speedup
from lib.money.break_even import BreakEven
from lib.money.charge_back import Bill, Team
from lib.money.energy import Added, Energy
from lib.money.good_tokens import GoodShare
from lib.report.format import estimate as estimate_text
from lib.report.format import money, number, percent, significant

Columns = dict[str, list[Any]]
NOT_RECORDED = "not recorded"


def break_even_table(found: Sequence[BreakEven]) -> Columns:
    """One row a break-even: where it lies, the ends of M's interval, which side is cheaper."""
    return {
        "what": [b.name for b in found],
        "break-even": [_shown(b.at) for b in found],
        "low": [None if b.at is None else _end(b.at, b.at.low) for b in found],
        "high": [None if b.at is None else _end(b.at, b.at.high) for b in found],
        "reading": [b.says or b.why_not for b in found],
    }


def _shown(value: Estimate | None) -> str | None:
    return None if value is None else _end(value, value.value)


def _end(of: Estimate, value: float | None) -> str | None:
    if value is None:
        return None
    return estimate_text(Estimate(value, of.unit, of.basis, of.source))


def basis_table(off: TokenPrices, on: TokenPrices) -> Columns:
    """One row a token basis: the price without and with, with the interval of each."""
    rows = [(off.output, on.output), (off.total, on.total)]
    if off.weighted is not None and on.weighted is not None:
        rows.insert(1, (off.weighted, on.weighted))
    return {
        "basis": [w.unit for w, _ in rows],
        "without": [money(w.value) for w, _ in rows],
        "with": [money(o.value) for _, o in rows],
        "without, interval": [interval(w) for w, _ in rows],
        "with, interval": [interval(o) for _, o in rows],
    }


def interval(value: Estimate) -> str | None:
    """`$6.61 to $7.12`; None without an interval."""
    if value.low is None or value.high is None:
        return None
    return f"{money(value.low)} to {money(value.high)}"


def decode_sentence(share: float | None) -> str:
    """What drafting can touch at all, said before any saving is promised."""
    if share is None:
        return (
            "The share of decoding is not recorded: mean TTFT with mean end-to-end time, or with "
            "mean TPOT and the output length, would tell it. Drafting shortens decoding alone."
        )
    twice = 1.0 - 1.0 / overall_speedup(share, 2.0)
    return (
        f"Decoding is {percent(share)} of a request's time without speculation; the rest is "
        f"prefill and waiting. A faster decode alone cannot cut more than {percent(share)} of it, "
        f"and one twice as fast cuts {percent(twice)}."
    )


def ratio_sentence(ratio: float, typed: bool) -> str:
    """On how many input tokens an output token the other bases rest."""
    word = "as typed" if typed else "as the runs recorded"
    return f"{significant(ratio)} input tokens per output token, {word}."


def energy_table(arms: Mapping[str, Energy | None]) -> Columns:
    """One row an arm: J per token, kWh and $ of electricity per 1M output tokens."""
    found = list(arms.values())
    return {
        "arm": list(arms),
        "J per output token": [
            NOT_RECORDED if e is None else significant(e.joules_per_token) for e in found
        ],
        "kWh per 1M output tokens": [None if e is None else estimate_text(e.kwh) for e in found],
        "$ per 1M, power only": [
            None if e is None or e.usd is None else money(e.usd.value) for e in found
        ],
        "from": [None if e is None else e.kwh.source for e in found],
    }


def added_sentence(found: Added) -> str:
    """Memory and power that speculation takes, and what they are worth; never added to a price."""
    parts = []
    if found.memory_gib is None:
        parts.append(f"Extra GPU memory is {NOT_RECORDED}")
    else:
        worth = found.memory_usd_per_hour
        paid = "" if worth is None else f", {_signed(worth)}/h of the GPUs' price"
        parts.append(f"GPU memory {_signed_number(found.memory_gib)} GiB with speculation{paid}")
    if found.power_w is None:
        parts.append(f"extra power is {NOT_RECORDED}")
    else:
        worth = found.power_usd_per_hour
        paid = "" if worth is None else f", {_signed(worth)}/h of electricity"
        parts.append(f"power {_signed_number(found.power_w)} W{paid}")
    return f"{'; '.join(parts)}. A measured throughput bears both: neither is added to the price."


def _signed(usd: float) -> str:
    return f"{'+' if usd >= 0 else ''}{money(usd)}"


def _signed_number(value: float) -> str:
    return f"{'+' if value >= 0 else ''}{significant(value)}"


def good_sentence(arm: str, price: Estimate | None, share: GoodShare | None, *, named: bool) -> str:
    """The price of tokens that met the service level, or why there is none.

    `named` says whether a person named a limit.
    """
    if price is None or share is None:
        why = "the runs do not tell how many requests met it"
        if share is not None:
            why = "no request met it"
        elif not named:
            why = "name a limit on TTFT, TPOT or the end-to-end time in the sidebar"
        return f"{arm}: no price of tokens that met the SLO: {why}."
    most, least = ("", "") if share.exact else ("at most ", "at least ")
    ends = "" if interval(price) is None else f" ({interval(price)})"
    return (
        f"{arm}: {most}{money(price.value)}{ends} per 1M output tokens that met the SLO; "
        f"{least}{percent(share.value, 1)} of the requests did ({share.how})."
    )


def bill_table(teams: Sequence[Team], bills: Mapping[str, Bill], idle: str = "idle") -> Columns:
    """One row a team, one for what is nobody's and the sum; one column a basis."""
    out: Columns = {
        "team": [*(t.name for t in teams), idle, "sum"],
        "reserved": [*(number(t.reserved) for t in teams), None, None],
        "used": [*(number(t.used) for t in teams), None, None],
    }
    for name, bill in bills.items():
        parts = [*bill.parts, bill.idle]
        out[name] = [money(usd) for usd in (*parts, sum(parts))]
    return out
