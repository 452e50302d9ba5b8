"""An API's price beside one's own, in sentences and a table."""

from collections.abc import Mapping, Sequence
from typing import Any

from lib.estimate import Estimate
from lib.money.api import ApiPrice, BreakEven
from lib.report.format import money, percent, tokens


def api_sentence(
    own: Mapping[str, Estimate], api: Estimate, utilization: Mapping[str, float]
) -> str:
    """Both on one basis: 1M output tokens and the input that comes with them."""
    parts = [
        f"{money(price.value)} {name} at {percent(utilization[name])} utilisation"
        for name, price in own.items()
    ]
    return (
        f"The API bills {money(api.value)} per 1M output tokens, their input included; this "
        f"deployment costs {' and '.join(parts)}."
    )


def break_even_line(name: str, found: BreakEven) -> str:
    """From which share of paid time, and how many tokens a month, a deployment beats the API."""
    ends = ""
    if found.low is not None and found.high is not None:
        ends = f" ({percent(found.low, 1)} to {percent(found.high, 1)})"
    text = f"{name}: break-even utilisation {percent(found.utilization, 1)}{ends}"
    if found.too_close:
        return f"{text}: too close to call whether any load reaches it."
    if not found.reached:
        return f"{text}: never cheaper than the API."
    return (
        f"{text}, {tokens(found.tokens_per_month)} output tokens a month of at most "
        f"{tokens(found.most_per_month)}."
    )


def label(price: ApiPrice) -> str:
    """A list price in one line, for a choice."""
    cached = "" if price.cached_usd is None else f" / {price.cached_usd:g}"
    usd = f"${price.input_usd:g}{cached} / {price.output_usd:g}"
    return f"{price.name} · {usd} · {price.effective_date}"


def api_table(prices: Sequence[ApiPrice]) -> dict[str, list[Any]]:
    """The list prices as they ship."""
    return {
        "model": [p.name for p in prices],
        "$/1M input": [p.input_usd for p in prices],
        "$/1M cached input": [p.cached_usd for p in prices],
        "$/1M output": [p.output_usd for p in prices],
        "date": [p.effective_date for p in prices],
        "source": [p.source for p in prices],
        "note": [p.note for p in prices],
    }
