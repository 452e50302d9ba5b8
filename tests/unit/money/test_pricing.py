"""Only measured throughput is priced, at the visitor's own rates, and never past a missed SLO."""

import math
import re
from dataclasses import replace

import pytest

from lib.errors import InputError
from lib.evidence.findings import find
from lib.money.pricing import PricedPair, Rate, price_arm, price_pairs
from lib.run import LoadKind, Run, Slo, SpecState, Study

PAID = Rate(usd_per_gpu_hour=2.0, gpu_count=1, utilization=1.0)


def run(name: str, load: float, tps: float | None, k: int = 0, **fields: object) -> Run:
    spec = (
        {"spec_state": SpecState.OFF}
        if k == 0
        else {
            "spec_state": SpecState.ON,
            "draft_method": "eagle3",
            "num_speculative_tokens": k,
        }
    )
    return Run(
        run_id=name,
        load_kind=LoadKind.CONCURRENCY,
        offered_load=load,
        output_tps=tps,
        **{**spec, **fields},  # type: ignore[arg-type]
    )


def priced(runs: list[Run], rate: Rate = PAID, slo: Slo | None = None) -> tuple[PricedPair, ...]:
    found = find(Study("s", tuple(runs)))
    return price_pairs(found, found.arms[0], rate, slo)


def pair(**on: object) -> list[Run]:
    return [run("a", 8, 45.0), run("b", 8, 81.0, 4, **on)]


def test_both_prices_and_the_saving() -> None:
    (found,) = priced(pair())
    assert found.complete is not None
    off, on, saving = found.complete
    assert round(off.value, 2) == 12.35
    assert round(on.value, 2) == 6.86
    assert saving.value == pytest.approx(1 - 1 / 1.8)
    assert saving.low is None
    assert found.multiplier == pytest.approx(1.8)


def test_extra_hardware_counts_for_the_speculating_arm_only() -> None:
    runs = [run("a", 8, 45.0), run("b", 8, 45 * 1.15, 4)]
    (found,) = priced(runs, Rate(2.0, 1, 1.0, 1.2))
    assert found.complete is not None
    assert round(found.complete[0].value, 2) == 12.35
    assert round(found.complete[1].value, 2) == 17.18
    assert found.complete[2].value < 0


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (Rate(None, 1, 1.0), "type a $/GPU-h"),
        (Rate(2.0, None, 1.0), "type the GPUs"),
        (Rate(2.0, 1, None), "type the utilisation"),
        (Rate(), "type a $/GPU-h, type the GPUs, type the utilisation"),
    ],
)
def test_nothing_is_assumed(rate: Rate, words: str) -> None:
    (found,) = priced(pair(), rate)
    assert found.complete is None
    assert words in found.off.why_not
    assert words in found.on.why_not


def test_a_recorded_gpu_count_is_used_and_a_typed_one_wins() -> None:
    runs = [run("a", 8, 2000.0, gpu_count=8), run("b", 8, 3000.0, 4, gpu_count=8)]
    (found,) = priced(runs, Rate(2.0, None, 1.0))
    assert found.off.price is not None
    assert round(found.off.price.value, 2) == 2.22
    (typed,) = priced(runs, Rate(2.0, 4, 1.0))
    assert typed.off.price is not None
    assert round(typed.off.price.value, 2) == 1.11


def test_recorded_counts_that_differ_are_kept_whatever_is_typed() -> None:
    runs = [run("a", 8, 100.0, gpu_count=1), run("b", 8, 300.0, 4, gpu_count=2)]
    (found,) = priced(runs, Rate(2.0, 4, 1.0))
    assert (found.off.usd_per_hour, found.on.usd_per_hour) == (2.0, 4.0)
    assert found.break_even_multiplier == 2.0
    assert found.break_even_extra_usd_per_hour == pytest.approx(4.0)


def test_each_arm_keeps_its_own_usd_per_hour() -> None:
    runs = [run("a", 8, 100.0, usd_per_hour=5.0), run("b", 8, 100.0, 4, usd_per_hour=10.0)]
    (found,) = priced(runs, Rate(None, None, 1.0))
    assert found.complete is not None
    assert found.complete[2].value == pytest.approx(-1.0)


@pytest.mark.parametrize("usd_per_hour", [1.6, 63.296, 12345.5])
@pytest.mark.parametrize("used", [0.5, 0.675, 0.9999])
def test_the_derivation_names_enough_digits_to_derive_the_price_again(
    usd_per_hour: float, used: float
) -> None:
    rate = Rate(usd_per_hour, 1, used)
    price = price_arm("off", 8, [run("a", 8, 1276.764)], rate).price
    assert price is not None
    said = re.match(r"\$(.+)/h × .* × (.+) tok/s × (.+) % util.* = \$(.+) per", price.how)
    assert said
    hourly, tps, percent = (float(x.replace(",", "")) for x in said.groups()[:3])
    assert f"{hourly * 1e6 / (3600 * tps * percent / 100):,.4g}" == said[4]


def test_a_load_that_misses_the_slo_is_not_priced_for_that_arm() -> None:
    slo = Slo(tpot_ms=20)
    runs = [run("a", 8, 45.0, tpot_ms_p99=25.0), run("b", 8, 81.0, 4, tpot_ms_p99=15.0)]
    (found,) = priced(runs, slo=slo)
    assert (found.off.slo, found.on.slo) == ("missed", "met")
    assert found.off.price is None
    assert found.off.why_not == "misses the SLO"
    assert found.on.price is not None
    assert found.complete is None


def test_an_unknown_slo_is_said_and_priced() -> None:
    (found,) = priced(pair(), slo=Slo(tpot_ms=20))
    assert (found.off.slo, found.on.slo) == ("unknown", "unknown")
    assert found.complete is not None


def test_failed_requests_block_the_price() -> None:
    (found,) = priced(pair(completed=98, failed=2))
    assert found.on.price is None
    assert "failed" in found.on.why_not
    (fine,) = priced(pair(completed=599, failed=1))
    assert fine.on.price is not None


def test_ratios_are_compared_never_priced() -> None:
    runs = [run("b", 8, None, 4, multiplier=1.8)]
    (found,) = priced(runs)
    assert found.complete is None
    assert found.multiplier == pytest.approx(1.8)
    assert "never priced" in found.on.why_not


def test_intervals_come_from_the_repeats() -> None:
    runs = [run(f"a{i}", 8, 100.0 + i) for i in range(3)]
    runs += [run(f"b{i}", 8, 150.0 + i, 4) for i in range(3)]
    (found,) = priced(runs)
    assert found.complete is not None
    off, on, saving = found.complete
    for estimate in (off, on, saving):
        assert estimate.low is not None
        assert estimate.high is not None
        assert estimate.low < estimate.value < estimate.high
    # The saving's ends are those of M, swapped.
    point = find(Study("s", tuple(runs))).arms[0].points[0]
    ends = point.interval()
    assert ends is not None
    assert saving.low == pytest.approx(1 - 1 / ends[0])
    assert saving.high == pytest.approx(1 - 1 / ends[1])
    assert math.isclose(saving.value, 1 - 1 / point.multiplier)


def test_derived_points_have_no_price() -> None:
    runs = [run("a1", 1, 10.0), run("a4", 4, 40.0), run("b1", 1, 20.0, 4), run("b2", 2, 30.0, 4)]
    assert [p.on.load for p in priced(runs)] == [1]


def test_an_arm_that_lost_the_race_to_infinity_is_kept_apart() -> None:
    runs = [
        run("a", math.inf, 45.0),
        run("b", math.inf, 81.0, 4),
    ]
    runs = [Run(**{**_fields(r), "load_kind": LoadKind.REQUEST_RATE}) for r in runs]
    (found,) = priced(runs)
    assert found.on.load == math.inf
    assert found.complete is not None


def _fields(r: Run) -> dict[str, object]:
    return {name: getattr(r, name) for name in r.__dataclass_fields__}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"usd_per_gpu_hour": -1.0}, "usd_per_gpu_hour"),
        ({"gpu_count": 0}, "gpu_count"),
        ({"utilization": 0.0}, "utilization"),
        ({"utilization": 60.0}, "utilization"),
        ({"extra_usd_per_hour": math.nan}, "extra_usd_per_hour"),
    ],
)
def test_rates_are_checked(fields: dict[str, float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Rate(**fields)  # type: ignore[arg-type]


def test_a_price_recorded_for_one_arm_only_is_not_set_against_a_typed_one() -> None:
    runs = [run("a", 8, 100.0, usd_per_hour=1.0), run("b", 8, 150.0, 4)]
    (found,) = priced(runs)
    assert found.complete is None
    assert "one arm only" in found.on.why_not


# C62: a queue-bound run is the cheapest only while nobody names a service level

QUEUED = {"ttft_ms_p50": 5_899_711.0, "e2e_ms_p50": 5_950_000.0}


def test_c62_queue_bound_is_priced_without_an_objective_only() -> None:
    (free,) = priced(pair(**QUEUED))
    assert free.complete is not None
    (named,) = priced(pair(**QUEUED, tpot_ms_p99=20.0), slo=Slo(tpot_ms=40.0))
    assert named.on.price is None
    assert named.on.slo == "met"
    assert named.on.why_not == (
        "queue-bound (median TTFT is 99% of the median end-to-end latency): not priced while an "
        "SLO is named"
    )
    (unknown,) = priced(pair(**QUEUED), slo=Slo(ttft_ms=5000.0, percentile="p99"))
    assert unknown.on.price is None


def test_a_limit_on_the_first_token_that_is_met_has_judged_the_queue() -> None:
    short = {"ttft_ms_p50": 60.0, "ttft_ms_p99": 90.0, "e2e_ms_p50": 100.0}
    (found,) = priced(pair(**short), slo=Slo(ttft_ms=500.0))
    assert found.on.slo == "met"
    assert found.on.price is not None


def test_a_demand_is_not_priced() -> None:
    """At 31.4 requests/s the server kept up: $/1M would be the price of the demand."""
    rate = {"load_kind": LoadKind.REQUEST_RATE, "achieved_load": 31.2}
    runs = [replace(r, offered_load=31.4, **rate) for r in pair()]  # type: ignore[arg-type]
    only = price_arm("eagle3:4", 31.4, runs[1:], PAID)
    assert only.price is None
    assert "equal the demand" in only.why_not
    missed = [replace(r, achieved_load=20.0) for r in runs]
    assert price_arm("eagle3:4", 31.4, missed[1:], PAID).price is not None


def test_random_tokens_are_priced_with_consent_alone() -> None:
    """C52: the speculating arm waits for a person's word; off rests on no acceptance."""
    runs = [run("a", 8, 45.0, dataset="random"), run("b", 8, 81.0, 4, dataset="random")]
    found = find(Study("s", tuple(runs)))
    (refused,) = price_pairs(found, found.arms[0], PAID)
    assert refused.on.price is None
    assert "random tokens" in refused.on.why_not
    assert refused.saving is None
    assert refused.off.price is not None
    (accepted,) = price_pairs(found, found.arms[0], PAID, accept_random=True)
    assert accepted.complete is not None
    off, on, saving = accepted.complete
    assert round(on.value, 2) == 6.86
    assert "accepted by a person" in on.source
    assert "accepted by a person" in saving.source
    assert "random" not in off.source
    assert accepted.multiplier == refused.multiplier == pytest.approx(1.8)


def test_consent_frees_no_other_refusal() -> None:
    runs = [run("a", 8, 45.0), run("b", 8, 81.0, 4, dataset="random")]
    found = find(Study("s", tuple(runs)))
    for arm in found.arms:
        for each in price_pairs(found, arm, Rate(), accept_random=True):
            assert each.on.price is None
            assert "type a $/GPU-h" in each.on.why_not
