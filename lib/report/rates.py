"""The price book as text and tables, for the page, for CSV and for the command line alike."""

from collections.abc import Sequence
from datetime import date

from lib.money.ownership import OwnedCost, Suggestion
from lib.money.rates import PRICE_MISSING, GpuRate, PriceBook, change
from lib.report.format import money, number, percent
from lib.report.tables import Columns


def label(rate: GpuRate, on: date) -> str:
    """A rate in one line, as it is offered for choice."""
    parts = [
        f"{money(rate.usd_per_gpu_hour)} · {rate.name}",
        rate.effective_date.isoformat(),
        f"yours, version {rate.version}" if rate.version else "",
        "stale" if rate.stale(on) else "",
    ]
    return " · ".join(p for p in parts if p)


def detail(rate: GpuRate) -> str:
    """How the price follows from what was published or typed, its source and its notes."""
    parts = [
        rate.original,
        f"effective {rate.effective_date}",
        rate.source,
        f"confidence {rate.confidence}" if rate.confidence else "",
        rate.note,
    ]
    return "; ".join(p for p in parts if p)


def missing(book: PriceBook, on: date, asked: Sequence[str | None]) -> str:
    """What to say where no rate fits what was asked for."""
    named = ", ".join(a for a in asked if a) or "the price book"
    later = book.not_yet(on)
    also = f"; {later} rates are of a later date" if later else ""
    return f"{PRICE_MISSING}: no rate of {named} on {on}{also}. Type one, or leave a filter out."


def rate_table(rates: Sequence[GpuRate], on: date) -> Columns:
    """One row a rate, in the order given."""
    return {
        "$ per GPU-hour": [r.usd_per_gpu_hour for r in rates],
        "provider": [r.provider for r in rates],
        "item": [r.item for r in rates],
        "GPU": [r.gpu for r in rates],
        "term": [r.term for r in rates],
        "conditions": [r.conditions for r in rates],
        "effective": [r.effective_date for r in rates],
        "age, days": [r.age_days(on) for r in rates],
        "stale": [r.stale(on) for r in rates],
        "basis": [str(r.basis) for r in rates],
        "from": [r.original for r in rates],
        "source": [r.source for r in rates],
        "confidence": [r.confidence for r in rates],
        "note": [r.note for r in rates],
    }


def version_table(book: PriceBook, on: date) -> Columns:
    """Every version of every own rate, with what the $ per GPU-hour moved by."""
    held = {r.id for r in book.in_force(on)}
    moved: list[float | None] = []
    before: GpuRate | None = None
    for rate in book.own:
        first = before is None or rate.version == 1
        moved.append(
            None
            if first or before is None
            else change(before.usd_per_gpu_hour, rate.usd_per_gpu_hour)
        )
        before = rate
    return {
        "rate": [r.name for r in book.own],
        "version": [r.version for r in book.own],
        "state": [_state(r, held, on) for r in book.own],
        "$ per GPU-hour": [r.usd_per_gpu_hour for r in book.own],
        "change": [None if m is None else f"{m:+.1%}".replace("%", " %") for m in moved],
        "effective": [r.effective_date for r in book.own],
        "from": [r.original for r in book.own],
        "source": [r.source for r in book.own],
        "note": [r.note for r in book.own],
        "by": [r.by for r in book.own],
        "saved, UTC": [r.saved_at for r in book.own],
    }


def _state(rate: GpuRate, held: set[str], on: date) -> str:
    if rate.withdrawn:
        return "withdrawn"
    if rate.effective_date > on:
        return f"from {rate.effective_date}"
    return "in force" if rate.id in held else "replaced"


def owned_sentence(cost: OwnedCost) -> str:
    """What an hour owned costs, by part."""
    return (
        f"{money(cost.total_usd)} per GPU-hour owned: capital {money(cost.capital_usd)}, "
        f"power {money(cost.power_usd)}, hosting {money(cost.hosting_usd)}."
    )


def in_use_sentence(cost: OwnedCost, share: float) -> str:
    """The same per hour in use, and why it fills nothing."""
    return (
        f"{money(cost.in_use_usd(share))} per GPU-hour in use, at {percent(share)} of the hours. "
        "Utilisation divides the price per 1M tokens, so the hour owned is what fills $/GPU-h."
    )


def suggestion_label(row: Suggestion, name: str, unit: str) -> str:
    """A published figure in one line: the input, its value, whose it is and the date."""
    gpu = "" if row.gpu == "all" else f" {row.gpu},"
    overhead = ", facility overhead included" if row.all_in else ""
    return (
        f"{name} {number(row.value)} {unit}".rstrip()
        + f" ·{gpu} {row.item}{overhead} · {row.provider} · {row.effective_date}"
    )


def suggestion_table(rows: Sequence[Suggestion]) -> Columns:
    """One row a published figure."""
    return {
        "input": [r.key for r in rows],
        "value": [r.value for r in rows],
        "as published": [r.original for r in rows],
        "GPUs": [r.gpus for r in rows],
        "of": [r.item for r in rows],
        "GPU": [r.gpu for r in rows],
        "overhead included": [r.all_in for r in rows],
        "provider": [r.provider for r in rows],
        "date": [r.effective_date for r in rows],
        "source": [r.source for r in rows],
        "confidence": [r.confidence for r in rows],
        "note": [r.note for r in rows],
    }
