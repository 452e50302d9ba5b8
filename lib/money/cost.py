"""What a million tokens costs, from measured throughput.

Money is US dollars. Throughput is the aggregate output tokens per second of the whole deployment
(or input, or total tokens: the caller labels the basis). A multiplier M is throughput with
speculation over throughput without, at the same load and the same service level. The theorem's S
does not enter anywhere here.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lib.errors import InputError

SECONDS_PER_HOUR = 3600.0
HOURS_PER_MONTH = 730.0  # 8,760 hours a year over 12
SECONDS_PER_MONTH = HOURS_PER_MONTH * SECONDS_PER_HOUR


def _checked(name: str, value: npt.ArrayLike, *, zero: bool) -> npt.NDArray[np.float64]:
    allowed = "a number of at least 0" if zero else "a number above 0"
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} = {value!r}: {allowed} is needed") from None
    wrong = ~np.isfinite(array) | (array < 0) | ((array == 0) & (not zero))
    if np.any(wrong):
        raise InputError(f"{name} = {float(array[wrong].flat[0]):g}: {allowed} is needed")
    return array


def _out(array: Any) -> Any:
    return float(array) if np.ndim(array) == 0 else array


def cost_per_million(
    usd_per_hour: npt.ArrayLike, tokens_per_second: npt.ArrayLike, utilization: npt.ArrayLike = 1.0
) -> Any:
    """$ per 1M tokens: usd_per_hour 10^6 / (3600 tokens_per_second utilization).

    `usd_per_hour` is the price of the whole deployment (price per GPU times GPUs, once).
    `utilization` in (0, 1] is the fraction of paid time spent at that throughput.
    """
    used = _checked("utilization", utilization, zero=False)
    if np.any(used > 1):
        first = float(used[used > 1].flat[0])
        hint = f"; was {first:g} % meant, {first / 100:g}?" if first <= 100 else ""
        raise InputError(f"utilization = {first:g}: above 0 and at most 1{hint}")
    price = _checked("usd_per_hour", usd_per_hour, zero=True)
    speed = _checked("tokens_per_second", tokens_per_second, zero=False)
    with np.errstate(over="ignore"):
        cost = price * 1e6 / (SECONDS_PER_HOUR * speed * used)
    if not np.all(np.isfinite(cost)):
        raise InputError("usd_per_hour over tokens_per_second is too large to be a price")
    return _out(cost)


def speculative_cost_per_million(
    base_usd_per_hour: npt.ArrayLike,
    base_tokens_per_second: npt.ArrayLike,
    multiplier: npt.ArrayLike,
    extra_usd_per_hour: npt.ArrayLike = 0.0,
    utilization: npt.ArrayLike = 1.0,
) -> Any:
    """$ per 1M tokens with speculation: (base + extra) / (base throughput times M)."""
    m = _checked("multiplier", multiplier, zero=False)
    extra = _checked("extra_usd_per_hour", extra_usd_per_hour, zero=True)
    base = _checked("base_usd_per_hour", base_usd_per_hour, zero=True)
    speed = _checked("base_tokens_per_second", base_tokens_per_second, zero=False)
    return cost_per_million(base + extra, speed * m, utilization)


def break_even_extra_usd_per_hour(
    base_usd_per_hour: npt.ArrayLike, multiplier: npt.ArrayLike
) -> Any:
    """Extra $/h at which the gain is gone: base (M - 1); negative where M < 1."""
    m = _checked("multiplier", multiplier, zero=False)
    return _out(_checked("base_usd_per_hour", base_usd_per_hour, zero=True) * (m - 1.0))


def break_even_multiplier(
    base_usd_per_hour: npt.ArrayLike, extra_usd_per_hour: npt.ArrayLike
) -> Any:
    """M that pays for the extra hardware: (base + extra) / base."""
    base = _checked("base_usd_per_hour", base_usd_per_hour, zero=False)
    return _out((base + _checked("extra_usd_per_hour", extra_usd_per_hour, zero=True)) / base)


def saving_fraction(
    multiplier: npt.ArrayLike,
    base_usd_per_hour: npt.ArrayLike = 1.0,
    extra_usd_per_hour: npt.ArrayLike = 0.0,
) -> Any:
    """Fraction of the $ per 1M that speculation removes: 1 - (base + extra) / (base M).

    At equal cost it is 1 - 1/M, never M - 1; negative where speculation costs more.
    """
    m = _checked("multiplier", multiplier, zero=False)
    base = _checked("base_usd_per_hour", base_usd_per_hour, zero=False)
    extra = _checked("extra_usd_per_hour", extra_usd_per_hour, zero=True)
    return _out(1.0 - (base + extra) / (base * m))


def _servers(demand_tps: float, tps: float) -> int:
    """Whole servers for a demand; rounding of the last digit buys none."""
    return max(1, math.ceil(demand_tps / tps - 1e-9))


@dataclass(frozen=True)
class MonthlySaving:
    """Dollars a month that speculation saves on one demand, in three readings.

    Which one holds depends on how the fleet is paid for, so all three are always shown.
    `demand_tps` is the average output tokens per second that must be served. `short_*` is the
    fraction of the demand that one server of an arm cannot serve.
    """

    hours_scale_usd: float
    whole_servers_usd: float
    one_server_usd: float
    servers_off: int
    servers_on: int
    short_off: float
    short_on: float


def monthly_saving(
    demand_tps: float,
    off_usd_per_hour: float,
    off_tps: float,
    on_usd_per_hour: float,
    on_tps: float,
) -> MonthlySaving:
    """The saving a month where hours scale with tokens, whole servers stay on, one stays on."""
    demand = float(_checked("demand_tps", demand_tps, zero=False))
    off = cost_per_million(off_usd_per_hour, off_tps)
    on = cost_per_million(on_usd_per_hour, on_tps)
    servers_off, servers_on = _servers(demand, off_tps), _servers(demand, on_tps)
    return MonthlySaving(
        hours_scale_usd=(off - on) * demand * SECONDS_PER_MONTH / 1e6,
        whole_servers_usd=HOURS_PER_MONTH
        * (servers_off * off_usd_per_hour - servers_on * on_usd_per_hour),
        one_server_usd=HOURS_PER_MONTH * (off_usd_per_hour - on_usd_per_hour),
        servers_off=servers_off,
        servers_on=servers_on,
        short_off=max(0.0, 1.0 - off_tps / demand),
        short_on=max(0.0, 1.0 - on_tps / demand),
    )


def tokens_freed_per_hour(
    off_tokens_per_second: float, on_tokens_per_second: float, servers: int = 1
) -> float:
    """Output tokens an hour that the same paid servers could serve on top; negative if fewer.

    What speculation brings where the capacity is committed: no cash, more of it left. Both are
    tokens per second of one server as used, so with its utilisation in.
    """
    return servers * (on_tokens_per_second - off_tokens_per_second) * SECONDS_PER_HOUR


def training_usd_per_hour(training_usd: float, months: float) -> float:
    """$/h of a drafter's training spread over the months that it serves."""
    usd = float(_checked("training_usd", training_usd, zero=True))
    return usd / (float(_checked("months", months, zero=False)) * HOURS_PER_MONTH)


def training_usd_per_million(training_usd: float, tokens: float) -> float:
    """$ per 1M tokens of a drafter's training spread over the tokens that it will serve."""
    usd = float(_checked("training_usd", training_usd, zero=True))
    return usd * 1e6 / float(_checked("tokens", tokens, zero=False))


def training_break_even_tokens(training_usd: float, off_usd: float, on_usd: float) -> float:
    """Tokens after which the training is paid back: $ 10^6 / (price without - price with).

    Prices in $ per 1M tokens; infinite where speculation is no cheaper.
    """
    usd = float(_checked("training_usd", training_usd, zero=True))
    gain = off_usd - on_usd
    return usd * 1e6 / gain if gain > 0 else math.inf
