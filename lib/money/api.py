"""A hosted API's bill on the same tokens, and how busy one's own deployment must be to beat it."""

import csv
import math
from dataclasses import dataclass
from functools import cache

from lib.errors import InputError
from lib.estimate import Basis, Estimate
from lib.money.cost import HOURS_PER_MONTH, SECONDS_PER_MONTH
from lib.settings import DATA

UNIT = "$ per 1M output tokens, input included"


@dataclass(frozen=True)
class ApiPrice:
    """List prices in $ per 1M tokens. Without a price of its own, cached input costs as input."""

    input_usd: float
    output_usd: float
    cached_usd: float | None = None
    name: str = ""
    effective_date: str = ""
    source: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        for field in ("input_usd", "output_usd", "cached_usd"):
            value = getattr(self, field)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise InputError(f"{field} = {value}: a number of at least 0 is needed")

    @property
    def cited(self) -> str:
        """Provider and model, date and source in one line; empty where it was typed."""
        parts = (self.name, self.effective_date, self.source, self.note)
        return "; ".join(p for p in parts if p)


def bill(
    price: ApiPrice, input_tokens: float, output_tokens: float, cached_share: float = 0.0
) -> float:
    """What the API charges for these tokens; `cached_share` of the input is billed as cached."""
    for name, value in (("input_tokens", input_tokens), ("output_tokens", output_tokens)):
        if not (math.isfinite(value) and value >= 0):
            raise InputError(f"{name} = {value}: a number of at least 0 is needed")
    if not 0 <= cached_share <= 1:
        raise InputError(f"cached_share = {cached_share:g}: 0 to 1")
    cached = price.input_usd if price.cached_usd is None else price.cached_usd
    input_usd = (1 - cached_share) * price.input_usd + cached_share * cached
    return (input_tokens * input_usd + output_tokens * price.output_usd) / 1e6


def api_price(price: ApiPrice, input_per_output: float, cached_share: float = 0.0) -> Estimate:
    """The API's bill for 1M output tokens and the input that comes with them."""
    usd = bill(price, input_per_output * 1e6, 1e6, cached_share)
    cached = price.input_usd if price.cached_usd is None else price.cached_usd
    return Estimate(
        usd,
        UNIT,
        Basis.PUBLISHED if price.source else Basis.ASSUMED,
        price.cited or "API prices as typed",
        how=f"{input_per_output:,.4g} input tokens per output token × ({1 - cached_share:.0%} × "
        f"${price.input_usd:g} + {cached_share:.0%} cached × ${cached:g}) + ${price.output_usd:g} "
        f"= ${usd:,.4g} per 1M output tokens",
    )


@dataclass(frozen=True)
class BreakEven:
    """From where on one's own deployment is cheaper than the API.

    `utilization` is a share of paid time, above 1 where it never is, with the ends of its interval
    where the throughput has one. `tokens_per_month` is that of output tokens; `most_per_month` is
    what the deployment can make.
    """

    utilization: float
    tokens_per_month: float
    most_per_month: float
    low: float | None = None
    high: float | None = None

    @property
    def reached(self) -> bool:
        """Whether any load reaches it."""
        return self.utilization <= 1

    @property
    def too_close(self) -> bool:
        """Whether the interval does not say on which side of always-busy it lies."""
        return self.low is not None and self.high is not None and self.low <= 1 < self.high


def break_even(
    own: Estimate, utilization: float, usd_per_hour: float, output_tps: float, api: Estimate
) -> BreakEven:
    """Utilisation and volume at which a deployment costs what the API does.

    `own` is its price per 1M output tokens at `utilization`; at full load it is their product.
    """
    if not api.value > 0:
        raise InputError("API price = 0: a price above 0 is needed to break even with")
    at_full = own.value * utilization
    ends = [None if e is None else e * utilization / api.value for e in (own.low, own.high)]
    share = at_full / api.value
    most = output_tps * SECONDS_PER_MONTH
    tokens = usd_per_hour * HOURS_PER_MONTH / api.value * 1e6
    return BreakEven(share, tokens, most, *ends)


@cache
def api_prices() -> tuple[ApiPrice, ...]:
    """The rows of data/api_prices.csv: list prices of open-weight models, with date and source."""
    with (DATA / "api_prices.csv").open(encoding="utf-8", newline="") as file:
        return tuple(
            ApiPrice(
                input_usd=float(r["input_usd_per_mtok"]),
                output_usd=float(r["output_usd_per_mtok"]),
                cached_usd=_number(r["cached_input_usd_per_mtok"]),
                name=f"{r['provider']} {r['model']}",
                effective_date=r["effective_date"],
                source=r["source"],
                note=r["note"],
            )
            for r in csv.DictReader(file)
        )


def _number(text: str) -> float | None:
    return float(text) if text else None
