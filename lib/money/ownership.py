"""Owned hardware to $ per GPU-hour: capital, power and hosting.

Capital is recovered over the life in equal yearly payments: the capital recovery factor
r (1 + r)^n / ((1 + r)^n - 1) on the price less the present value of what it is sold for at the
end (standard engineering economics). Hours are all 8,760 of a year; the share of them in use
divides the result, as utilisation does in a price per 1M tokens, so it is applied once only.
"""

import csv
import math
from dataclasses import dataclass
from functools import cache

from lib.errors import InputError
from lib.estimate import Basis, Estimate
from lib.money.cost import HOURS_PER_MONTH
from lib.settings import DATA

HOURS_PER_YEAR = 12 * HOURS_PER_MONTH
UNIT = "$ per GPU-hour"
POWER_ONLY = "power only"


@dataclass(frozen=True, kw_only=True)
class OwnedHardware:
    """What owning costs. Money in US dollars, fractions in 0 to 1, power of one GPU in kW.

    `capex_usd` buys `gpus` GPUs. `capital_rate` is the cost of capital a year. `power_kw` is the
    average draw, host included, times `pue`; where it is `all_in` facility overhead is in it
    already and PUE must be 1. Hosting is by kW of `power_kw` or by GPU, or both.
    """

    capex_usd: float
    gpus: int
    life_years: float
    residual: float
    capital_rate: float
    power_kw: float
    pue: float
    usd_per_kwh: float
    hosting_usd_per_kw_month: float = 0.0
    hosting_usd_per_gpu_month: float = 0.0
    all_in: bool = False

    def __post_init__(self) -> None:
        for name in ("capex_usd", "gpus", "life_years"):
            _check(name, getattr(self, name), above=True)
        for name in ("capital_rate", "hosting_usd_per_kw_month", "hosting_usd_per_gpu_month"):
            _check(name, getattr(self, name))
        for name in ("power_kw", "usd_per_kwh"):
            _check(name, getattr(self, name))
        if not 0 <= self.residual <= 1:
            raise InputError(f"residual = {self.residual:g}: a fraction of 0 to 1 is needed")
        if not (math.isfinite(self.pue) and self.pue >= 1):
            raise InputError(f"pue = {self.pue:g}: at least 1")
        if self.all_in and self.pue != 1:
            raise InputError(
                f"pue = {self.pue:g}: this kW per GPU includes facility overhead already; "
                "type PUE 1, or the server's own kW"
            )


@dataclass(frozen=True)
class OwnedCost:
    """$ per GPU-hour of every hour owned, by part."""

    capital_usd: float
    power_usd: float
    hosting_usd: float

    @property
    def total_usd(self) -> float:
        """$ per GPU-hour owned."""
        return self.capital_usd + self.power_usd + self.hosting_usd

    def in_use_usd(self, share: float) -> float:
        """$ per GPU-hour in use, where that share of all hours is; InputError outside (0, 1]."""
        if not 0 < share <= 1:
            raise InputError(f"share of hours in use = {share:g}: above 0 and at most 1")
        return self.total_usd / share


def _check(name: str, value: float, *, above: bool = False) -> None:
    if not math.isfinite(value) or value < 0 or (above and value == 0):
        allowed = "above 0" if above else "of at least 0"
        raise InputError(f"{name} = {value:g}: a number {allowed} is needed")


def capital_recovery_factor(rate: float, years: float) -> float:
    """Share of the price to pay each year: r (1 + r)^n / ((1 + r)^n - 1); 1 / n at r = 0."""
    _check("rate", rate)
    _check("years", years, above=True)
    if rate < 1e-12:  # straight line to every digit; below, the quotient loses its own
        return 1.0 / years
    return rate / -math.expm1(-years * math.log1p(rate))


def owned_cost(hardware: OwnedHardware) -> OwnedCost:
    """Capital, power and hosting per GPU-hour owned."""
    h = hardware
    worth_today = h.residual * math.exp(-h.life_years * math.log1p(h.capital_rate))
    yearly = h.capex_usd * (1 - worth_today) * capital_recovery_factor(h.capital_rate, h.life_years)
    hosting = h.hosting_usd_per_kw_month * h.power_kw + h.hosting_usd_per_gpu_month
    return OwnedCost(
        capital_usd=yearly / h.gpus / HOURS_PER_YEAR,
        power_usd=power_usd_per_gpu_hour(h.power_kw, h.pue, h.usd_per_kwh),
        hosting_usd=hosting / HOURS_PER_MONTH,
    )


def power_usd_per_gpu_hour(power_kw: float, pue: float, usd_per_kwh: float) -> float:
    """$ of electricity for one GPU in an hour: kW × PUE × $/kWh."""
    return power_kw * pue * usd_per_kwh


def owned_estimate(hardware: OwnedHardware) -> Estimate:
    """$ per GPU-hour owned, with the formula and its figures; basis assumed: its inputs are."""
    h, parts = hardware, owned_cost(hardware)
    crf = capital_recovery_factor(h.capital_rate, h.life_years)
    lines = (
        f"Recovery factor at {h.capital_rate:.4g} a year over {h.life_years:g} years: {crf:.6g}",
        f"Capital: ${h.capex_usd:,.2f} × (1 − {h.residual:g} ÷ (1 + {h.capital_rate:g})^"
        f"{h.life_years:g}) × {crf:.6g} ÷ {h.gpus} GPUs ÷ {HOURS_PER_YEAR:g} h = "
        f"${parts.capital_usd:.6g}",
        f"Power: {h.power_kw:g} kW × PUE {h.pue:g} × ${h.usd_per_kwh:g}/kWh = "
        f"${parts.power_usd:.6g}",
        f"Hosting: (${h.hosting_usd_per_kw_month:g}/kW-month × {h.power_kw:g} kW + "
        f"${h.hosting_usd_per_gpu_month:g}/GPU-month) ÷ {HOURS_PER_MONTH:g} h = "
        f"${parts.hosting_usd:.6g}",
        f"Sum: ${parts.total_usd:.6g} per GPU-hour owned",
    )
    source = f"owned hardware, {h.gpus} GPUs for ${h.capex_usd:,.0f} over {h.life_years:g} years"
    return Estimate(parts.total_usd, UNIT, Basis.ASSUMED, source, how="\n".join(lines))


def power_only(energy_kwh: float, usd_per_kwh: float, tokens: float) -> Estimate:
    """$ of electricity per 1M tokens of measured energy: kWh × $/kWh × 10^6 / tokens.

    Not a price: without the hardware's share it cannot be held against one.
    """
    _check("energy_kwh", energy_kwh)
    _check("usd_per_kwh", usd_per_kwh)
    _check("tokens", tokens, above=True)
    usd = energy_kwh * usd_per_kwh
    return Estimate(
        usd * 1e6 / tokens,
        f"$ per 1M tokens, {POWER_ONLY}",
        Basis.DERIVED,
        "energy as measured, $/kWh as typed; the hardware is not in it",
        how=f"{energy_kwh:g} kWh × ${usd_per_kwh:g}/kWh = ${usd:.4g}, ÷ {tokens:g} tokens × 10⁶",
    )


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """A published figure for one input of the calculator.

    `key` is the input's, `value` in its unit; `effective_date` as the source gives it, which may
    be a year or `undated`. `all_in`: a kW that includes facility overhead.
    """

    key: str
    value: float
    provider: str
    item: str
    gpu: str
    gpus: int | None
    all_in: bool
    original: str
    effective_date: str
    source: str
    confidence: str
    note: str

    @property
    def cited(self) -> str:
        """Who says it of what, the date and the source, in one line."""
        return f"{self.provider}: {self.item}, {self.effective_date}; {self.source}"


@cache
def suggestions() -> tuple[Suggestion, ...]:
    """The rows of data/ownership.csv."""
    with (DATA / "ownership.csv").open(encoding="utf-8", newline="") as file:
        return tuple(
            Suggestion(
                key=r["key"],
                value=float(r["value"]),
                provider=r["provider"],
                item=r["item"],
                gpu=r["gpu"],
                gpus=int(r["gpu_count"]) if r["gpu_count"] else None,
                all_in=r["all_in"] == "yes",
                original=f"{r['original_value']} {r['original_unit']}",
                effective_date=r["effective_date"],
                source=r["source"],
                confidence=r["confidence"],
                note=r["note"],
            )
            for r in csv.DictReader(file)
        )
