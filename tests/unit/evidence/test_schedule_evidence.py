"""What stands behind a tier: the measured K = 0 tax, goodput, derived batches, the fixed K."""

import pytest

from lib.errors import InputError, NotComparable
from lib.evidence.pairing import Comparison, compare
from lib.evidence.schedule import Schedule, build
from lib.evidence.three_arms import proof_of
from lib.results import published
from lib.run import LoadKind, Run, Slo, SpecState, Study
from tests.unit.evidence.test_schedule import B300, B300_LOADS, LOADS, SIMULATED, comparison, said


def with_zero(table: dict, zero: dict, loads: tuple = (2, 189), **fields: object) -> Comparison:
    """Arms by K as tok/s over `loads`, and a server that never drafts, by load."""
    data = comparison(loads, table, **fields)
    attribute = fields.get("attribute", "output_tps")
    runs = [
        Run(
            run_id=f"zero-{load}",
            spec_state=SpecState.ON,
            draft_method="eagle3",
            num_speculative_tokens=0,
            load_kind=LoadKind.CONCURRENCY,
            offered_load=load,
            **{str(attribute): value},
        )
        for load, value in zero.items()
    ]
    metric = "tpot_ms" if attribute == "tpot_ms_mean" else "output_tps"
    return compare(Study("tax", (*data.study.runs, *runs)), metric=metric)


H100_OFF, H100_ZERO = {2: 14.374, 189: 77.164}, {2: 15.317, 189: 93.820}


def h100(k4: tuple[float, float] = (9.0, 90.0)) -> Schedule:
    """The published K = 0 and off of one H100, with a made-up K = 4."""
    table = {0: tuple(H100_OFF.values()), 4: k4}
    data = with_zero(table, H100_ZERO, attribute="tpot_ms_mean")
    return build(data, 189, objective="tpot")


def test_a_measured_tax_is_used_and_printed() -> None:
    """C09."""
    built = h100(k4=(15.0, 200.0))
    zero = built.tiers[-1]
    assert zero.measured_tax[-1] == (189, pytest.approx(0.2159, abs=1e-4))
    assert zero.gain is not None
    assert zero.gain < 1
    assert said(built, "tax measured", "21.6 % at 189")
    assert said(built, "slower than one without speculation")
    assert not said(built, "tax is unmeasured")


def test_a_tax_moves_the_switch_to_k_0() -> None:
    """C09: K = 4 at 90 ms loses to off at 77.2 and wins over K = 0 at 93.8."""
    assert h100().fixed_k == 4
    table = {0: tuple(H100_OFF.values()), 4: (9.0, 90.0)}
    data = comparison((2, 189), table, attribute="tpot_ms_mean")
    assert build(data, 189, objective="tpot").tiers[-1].k == 0


def test_a_tax_above_the_gain_elsewhere_asks_for_a_separate_pool() -> None:
    """C09."""
    built = h100(k4=(14.0, 200.0))
    assert said(built, "more than it gains elsewhere", "separate pool")


def test_the_tax_at_2_and_189_of_the_published_study() -> None:
    data = published.study("vllm_h100_gemma4_31b_dsd_k0_tax")
    off = {r.offered_load: r.tpot_ms_mean for r in data.runs if r.arm == "off"}
    zero = {r.offered_load: r.tpot_ms_mean for r in data.runs if r.num_speculative_tokens == 0}
    assert (off, zero) == (H100_OFF, H100_ZERO)
    with pytest.raises(NotComparable, match="fixed K"):
        build(compare(data, metric="tpot_ms"), 189, objective="tpot")


def test_the_tax_holds_between_its_own_batches_only() -> None:
    table = {0: (100.0, 200.0, 400.0), 4: (190.0, 210.0, 250.0)}
    data = with_zero(table, {16: 180.0, 64: 380.0}, loads=(1, 16, 64))
    zero = build(data, 64).tiers[-1]
    assert (zero.k, zero.measured) == (0, (64,))
    assert zero.measured_tax == ((64, pytest.approx(400 / 380 - 1)),)
    assert zero.gain is not None
    low = with_zero({0: (100.0, 400.0), 4: (90.0, 300.0)}, {1: 95.0}, loads=(1, 64))
    built = build(low, 64)
    assert built.tiers[-1].gain is None
    assert said(built, "slower") is False


def test_a_schedule_of_zeros_is_k_0_too() -> None:
    data = with_zero({0: (100.0, 400.0), 4: (190.0, 300.0)}, {}, loads=(1, 64))
    zeros = Run(
        run_id="zeros",
        spec_state=SpecState.ON,
        draft_method="eagle3",
        num_speculative_tokens=4,
        schedule="[[1, 64, 0]]",
        load_kind=LoadKind.CONCURRENCY,
        offered_load=64,
        output_tps=390.0,
    )
    built = build(compare(Study("zeros", (*data.study.runs, zeros))), 64)
    assert built.tiers[-1].measured_tax == ((64, pytest.approx(400 / 390 - 1)),)
    assert not said(built, "do not compete")


def test_gain_per_tier_against_the_best_fixed_k() -> None:
    """C84."""
    table = {0: (100, 2000), 2: (180, 4000), 3: (195, 3850), 4: (200, 3600)}
    built = build(comparison((1, 64), table), 64)
    four, three, two = built.tiers
    assert four.gain_over_fixed == pytest.approx(200 / 195)
    assert three.gain_over_fixed == pytest.approx(1)
    assert 1 < (two.gain_over_fixed or 0) < 4000 / 3850
    assert built.measured_gain_over_fixed == built.gain_over_fixed
    assert not built.keep_fixed


def test_k_0_at_an_unmeasured_tax_is_no_measured_gain() -> None:
    built = build(comparison(LOADS, SIMULATED), 64)
    assert built.gain_over_fixed == pytest.approx(0.196, abs=5e-4)
    assert built.measured_gain_over_fixed == pytest.approx(0.115, abs=5e-4)
    assert built.tiers[-1].gain_over_fixed is None


def served(tpot: dict[int, tuple[float, ...]], rps: dict[int, tuple[float, ...]]) -> Comparison:
    """Arms over loads 1, 8, 64 as p99 TPOT and requests per second."""
    runs = []
    for k, values in tpot.items():
        on = {"spec_state": SpecState.OFF}
        if k:
            on = {"spec_state": SpecState.ON, "draft_method": "eagle3", "num_speculative_tokens": k}
        runs += [
            Run(
                run_id=f"{k}-{load}",
                load_kind=LoadKind.CONCURRENCY,
                offered_load=load,
                tpot_ms_p99=t,
                request_rps=x,
                **on,
            )
            for load, t, x in zip((1, 8, 64), values, rps[k], strict=True)
        ]
    return compare(Study("served", tuple(runs)), metric="goodput_rps")


RPS = {0: (1.0, 6.0, 30.0), 4: (2.0, 9.0, 20.0)}


def test_goodput_counts_no_load_at_which_the_slo_is_missed() -> None:
    data = served({0: (9, 12, 30), 4: (5, 8, 60)}, RPS)
    built = build(data, 64, objective="goodput", slo=Slo(tpot_ms=40))
    assert [(t.first, t.last, t.k) for t in built.tiers] == [(1, 8, 4), (9, 64, 0)]
    assert said(built, "by percentile")
    strict = build(data, 64, objective="goodput", slo=Slo(tpot_ms=20), tail="carry")
    assert [(t.first, t.last, t.k) for t in strict.tiers] == [(1, 64, 4)]
    assert said(strict, "9 to 64", "no arm that is known to meet the SLO")
    with pytest.raises(NotComparable, match="looser limit"):
        build(data, 64, objective="goodput", slo=Slo(tpot_ms=1))


def test_where_off_misses_the_slo_there_is_no_gain() -> None:
    data = served({0: (50, 50, 30), 4: (5, 8, 60)}, RPS)
    built = build(data, 64, objective="goodput", slo=Slo(tpot_ms=40))
    assert built.tiers[0].gain is None
    assert said(built, "off misses the SLO")
    assert built.ranges is None
    assert said(built, "9 to 64", "no arm that is known to meet the SLO", "--max-num-seqs 8")


def test_counted_goodput_decides_by_its_own_numbers() -> None:
    data = served({0: (9, 12, 30), 4: (5, 8, 60)}, RPS)
    counts = {f"{k}-{n}": x for k, row in RPS.items() for n, x in zip((1, 8, 64), row, strict=True)}
    counts["4-64"] = 31.0
    built = build(data, 64, objective="goodput", slo=Slo(tpot_ms=40), good_rps=counts)
    assert built.fixed_k == 4
    assert said(built, "counted from per-request records")


def test_goodput_needs_a_limit() -> None:
    with pytest.raises(InputError, match="no SLO is named"):
        build(served({0: (9, 12, 30), 4: (5, 8, 60)}, RPS), 64, objective="goodput")


def rates(**fields: dict) -> Comparison:
    """Off and K = 3 over request rates, TPOT in ms, with end-to-end times where given."""
    runs = []
    for k, tpot in ((0, (10.0, 14.0, 30.0)), (3, (6.0, 11.0, 40.0))):
        on = {"spec_state": SpecState.OFF}
        if k:
            on = {"spec_state": SpecState.ON, "draft_method": "eagle3", "num_speculative_tokens": k}
        for rate, t in zip((1, 4, 8), tpot, strict=True):
            runs.append(
                Run(
                    run_id=f"{k}-{rate}",
                    load_kind=LoadKind.REQUEST_RATE,
                    offered_load=rate,
                    tpot_ms_mean=t,
                    request_rps=rate,
                    **on,
                    **{n: f(t) for n, f in fields.items()},
                )
            )
    return compare(Study("rates", tuple(runs)), metric="tpot_ms")


def test_request_rates_compete_at_their_own_batches_by_littles_law() -> None:
    built = build(rates(e2e_ms_mean=lambda t: 200 * t), 64, objective="tpot")
    assert built.derived
    assert said(built, "off: offered load → running batch, derived from Little's law: 1 → 2")
    assert said(built, "eagle3:3", "1 → 1.2, 4 → 8.8, 8 → 64")
    # At 48 requests off takes 30 ms and the arm 33, between 11 ms at 8.8 and 40 ms at 64.
    assert [t.k for t in built.tiers] == [3, 0]
    assert built.tiers[0].measured == (2, 11.2)
    assert built.tail_unmeasured == (49, 64)


def test_request_rates_without_a_batch_make_no_schedule() -> None:
    with pytest.raises(NotComparable, match="concurrency or batch"):
        build(rates(), 64, objective="tpot")


def test_loads_above_max_num_seqs_are_cut_and_said() -> None:
    data = comparison((8, 64, 256), {0: (1, 8, 8), 3: (2, 9, 9)}, max_num_seqs=64)
    built = build(data, 64)
    assert built.fixed_k == 3
    assert built.tail_unmeasured is None
    assert said(built, "256 is left out")


def test_three_arms_prove_a_schedule() -> None:
    built = build(comparison(LOADS, SIMULATED), 128)
    proof = proof_of(built)
    assert proof is not None
    assert [a.name for a in proof.arms] == ["off", "eagle3:2", "eagle3:schedule"]
    assert proof.loads == (1, 2, 4, 8, 9, 16, 32, 39, 64, 128)
    assert proof_of(build(comparison((1, 64), {0: (1, 2), 3: (2, 3)}), 64)) is None


def test_the_eight_b300_tiers_carry_their_evidence() -> None:
    built = build(comparison(B300_LOADS, B300, draft_method="dspark"), 256)
    assert [t.measured for t in built.tiers] == [(1,), (16,), (32,), (64,), (128, 256)]
    assert all(t.gain and t.gain > 1.5 for t in built.tiers)
    assert built.best_fixed_k == 5


def test_the_runner_and_its_arguments() -> None:
    data = comparison(LOADS, SIMULATED)
    assert said(build(data, 64, runner="V2"), "keeps full CUDA graphs")
    assert not said(build(data, 64, runner="V1"), "51510")
    with pytest.raises(InputError, match="runner 'V3'"):
        build(data, 64, runner="V3")
