"""The price book on the command line: published rates and one's own, with date and source."""

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lib.cli.output import JsonFlag, one_line_errors, show
from lib.errors import InputError, StoreError
from lib.settings import store_path

if TYPE_CHECKING:
    from lib.money.rates import GpuRate
    from lib.results.rates import StoredRate


@one_line_errors
def rates(
    gpu: Annotated[str | None, typer.Option(help="Of this GPU, for example H100.")] = None,
    provider: Annotated[str | None, typer.Option(help="Of this provider.")] = None,
    term: Annotated[
        str | None,
        typer.Option(help="on-demand, reserved, spot, marketplace, index, ownership model, other."),
    ] = None,
    on: Annotated[
        str | None, typer.Option("--on", help="Pricing date, YYYY-MM-DD; else today in UTC.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """List $ per GPU-hour in force on a day: your own rates first, then published ones."""
    from lib.money.rates import book
    from lib.report.rates import missing

    day = _day(on)
    stored, note = _stored()
    held = book(stored)
    found = held.find(day, gpu=gpu, provider=provider, term=term)
    notes = [note] if note else []
    if not found:
        notes.append(missing(held, day, (gpu, provider, term)))
    show({"on": day.isoformat(), "rates": [_plain(r, day) for r in found], "notes": notes}, as_json)


def _day(on: str | None) -> date:
    if on is None:
        return datetime.now(UTC).date()
    try:
        return date.fromisoformat(on)
    except ValueError:
        raise InputError(f"--on {on[:40]!r}: a date as YYYY-MM-DD is needed") from None


def _stored() -> "tuple[tuple[StoredRate, ...], str]":
    """One's own rates and, where the store cannot be read, why they are not listed."""
    from lib.results.store import Store

    if not store_path().exists():
        return (), ""
    try:
        store = Store.open()
    except StoreError as error:
        return (), f"your own rates are not listed: {error}"
    try:
        return store.rates(), ""
    finally:
        store.close()


def _plain(rate: "GpuRate", day: date) -> dict[str, Any]:
    return {
        "usd_per_gpu_hour": rate.usd_per_gpu_hour,
        "provider": rate.provider,
        "item": rate.item,
        "gpu": rate.gpu,
        "term": rate.term,
        "conditions": rate.conditions,
        "effective_date": rate.effective_date.isoformat(),
        "age_days": rate.age_days(day),
        "stale": rate.stale(day),
        "basis": str(rate.basis),
        "from": rate.original,
        "source": rate.source,
        "confidence": rate.confidence,
        "version": rate.version or None,
        "note": rate.note,
        "id": rate.id,
    }
