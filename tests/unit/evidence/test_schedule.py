"""The schedule from measured arms, against numbers worked out beforehand."""

import csv
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import stdtrit

from lib.errors import InputError, NotComparable
from lib.evidence.pairing import Comparison, compare
from lib.evidence.schedule import Schedule, build, check, speculative_config, vllm_flag
from lib.run import LoadKind, Run, SpecState, Study
from tests.unit.evidence.builders import off, on, study

SHARED = Path(__file__).resolve().parents[3] / ".." / "shared"

LOADS = (1, 2, 4, 8, 16, 32, 64)
# Output tok/s of three repeats a load; GuideLLM 0.8.1 against a simulated engine.
SIMULATED = {
    0: (
        (78.6, 78.5, 78.5),
        (155.4, 156.0, 155.6),
        (307.9, 301.2, 304.5),
        (596.0, 574.3, 599.1),
        (1023.1, 975.1, 1027.1),
        (1797.8, 1763.0, 1702.7),
        (2943.0, 2887.4, 2729.5),
    ),
    2: (
        (144.4, 142.6, 140.1),
        (278.0, 267.0, 288.2),
        (525.4, 532.1, 529.0),
        (995.0, 1009.0, 1006.8),
        (1812.4, 1744.0, 1780.2),
        (2197.1, 2016.6, 2129.3),
        (2391.2, 2343.4, 2417.0),
    ),
    4: (
        (156.2, 165.9, 154.5),
        (293.6, 289.9, 289.9),
        (596.2, 557.0, 579.9),
        (1113.5, 1069.4, 1131.8),
        (1526.1, 1416.3, 1507.7),
        (1744.7, 1768.0, 1698.8),
        (1863.0, 1855.5, 1842.7),
    ),
}
# Eight B300, DeepSeek-V4-Pro with DSpark, vLLM blog 2026-08-14, read from its figure 3.
B300_LOADS = (1, 16, 32, 64, 128, 256)
B300 = {
    0: (101, 1124, 1664, 2774, 4406, 6323),
    1: (153, 1408, 2384, 3864, 5912, 8619),
    3: (231, 1906, 3112, 4856, 7402, 9728),
    5: (251, 1939, 3071, 4931, 6846, 8766),
    6: (258, 1931, 3029, 4804, 6623, 8176),
    7: (251, 1878, 2939, 4611, 6250, 7609),
}
B300_ADAPTIVE = (269, 2037, 3361, 5197, 7417, 9719)


def arm_runs(k: int | None, load: float, values: tuple[float, ...], **fields: object) -> list[Run]:
    """Repeats of one arm at one load; k 0 is off, None speculates without a fixed K."""
    method = fields.pop("draft_method", "eagle3")
    attribute = fields.pop("attribute", "output_tps")
    common: dict = {"load_kind": LoadKind.CONCURRENCY, **fields}
    speculation: dict = {"spec_state": SpecState.OFF}
    if k != 0:
        speculation = {
            "spec_state": SpecState.ON,
            "draft_method": method,
            "num_speculative_tokens": k,
        }
    return [
        Run(
            run_id=f"{method}-{k}-{load}-{i}",
            offered_load=load,
            **speculation,
            **common,
            **{attribute: v},
        )
        for i, v in enumerate(values)
    ]


def comparison(loads: tuple, table: dict, **fields: object) -> Comparison:
    """`table`: values (or repeats) by K, one a load; None where that arm was not measured."""
    runs = []
    for k, row in table.items():
        for load, cell in zip(loads, row, strict=True):
            if cell is not None:
                values = cell if isinstance(cell, tuple) else (cell,)
                runs += arm_runs(k, load, values, **fields)
    return compare(Study("test", tuple(runs)))


def ranges(schedule: Schedule) -> list[list[int]]:
    assert schedule.ranges is not None
    return [list(r) for r in schedule.ranges]


def said(schedule: Schedule, *words: str) -> bool:
    return any(all(w in line for w in words) for line in schedule.warnings)


def k_at(schedule: Schedule, batch: int) -> int:
    return next(t.k for t in schedule.tiers if t.first <= batch <= t.last)


def test_simulated_sweep_with_ties_as_wide_as_the_noise() -> None:
    built = build(comparison(LOADS, SIMULATED), 64)
    assert ranges(built) == [[1, 8, 4], [9, 38, 2], [39, 64, 0]]
    assert built.num_speculative_tokens == 4
    assert built.tail_unmeasured is None
    assert [t.measured for t in built.tiers] == [(1, 2, 4, 8), (16, 32), (64,)]
    found = check([list(r) for r in built.ranges or ()], 4, 64)
    assert found.valid
    assert found.effective == built.ranges


def test_simulated_sweep_with_point_values_and_one_percent_ties() -> None:
    built = build(comparison(LOADS, SIMULATED), 64, noise_ties=False)
    assert ranges(built) == [[1, 9, 4], [10, 44, 2], [45, 64, 0]]


def test_k_0_is_carried_up_where_off_wins_at_the_top() -> None:
    built = build(comparison(LOADS, SIMULATED), 256)
    assert ranges(built) == [[1, 8, 4], [9, 38, 2], [39, 256, 0]]
    assert built.tail_unmeasured == (65, 256)
    assert said(built, "65 to 256", "unmeasured", "carried up from 64")


def test_the_simulated_numbers_are_those_of_the_recorded_sweep() -> None:
    folder = SHARED / "sweeps" / "guidellm-0.8.1"
    if not folder.exists():
        pytest.skip("the recorded sweep is not at hand")
    text = (SHARED / "sweeps" / "README.md").read_text()
    for k, name in ((2, "k2"), (4, "k4"), (0, "base")):
        column = {0: 2, 2: 3, 4: 4}[k]
        for load, values in zip(LOADS, SIMULATED[k], strict=True):
            row = next(line for line in text.splitlines() if line.startswith(f"| {load} |"))
            assert row.split("|")[column].split() == [f"{v:.1f}" for v in values], name


def test_tier_gain_is_a_geometric_mean_against_off() -> None:
    table = {0: (100.0, 400.0), 3: (200.0, 900.0)}
    built = build(comparison((1, 4), table), 4)
    at_2 = math.sqrt(2 * 2.25)
    at_3 = math.exp(math.log(2) + math.log(2.25 / 2) * math.log2(3) / 2)
    assert built.tiers[0].gain == pytest.approx((2 * at_2 * at_3 * 2.25) ** (1 / 4))


def test_tax_at_which_the_next_k_wins() -> None:
    table = {0: (100.0, 400.0), 2: (150.0, 320.0), 4: (200.0, 300.0)}
    built = build(comparison((1, 64), table), 64)
    zero = built.tiers[-1]
    assert (zero.k, zero.gain, zero.next_k) == (0, None, 2)
    off_over_k2 = [
        math.exp(math.log(100 / 150) + math.log(400 / 320 * 1.5) * math.log2(b) / 6)
        for b in range(zero.first, 65)
    ]
    mean = math.prod(off_over_k2) ** (1 / len(off_over_k2))
    assert zero.tax == pytest.approx(mean - 1)
    assert 0 < zero.tax < 0.25
    assert said(built, "K = 0 is not speculation off", "unmeasured")
    assert said(built, f"{zero.first} to 64", "K = 2 wins", f"{100 * zero.tax:.1f} %")


def test_a_k_0_tier_that_only_ties_bears_no_tax() -> None:
    table = {0: (100.0, 400.0), 2: (150.0, 401.0)}
    built = build(comparison((1, 64), table), 64)
    assert built.tiers[-1].k == 0
    assert built.tiers[-1].tax == 0


def test_eight_b300() -> None:
    table = {**B300, None: B300_ADAPTIVE}
    built = build(comparison(B300_LOADS, table, draft_method="dspark"), 256)
    assert [k_at(built, load) for load in B300_LOADS] == [6, 5, 3, 5, 3, 3]
    assert ranges(built) == [[1, 4, 6], [5, 18, 5], [19, 56, 3], [57, 66, 5], [67, 256, 3]]
    assert built.num_speculative_tokens == 6
    assert said(built, "do not compete", "dspark")
    assert said(built, "dspark", "eagle, eagle3 and dflash only")


def test_the_b300_numbers_are_those_of_the_published_table() -> None:
    path = SHARED / "published" / "vllm_dspark_dsv4pro_b300.csv"
    if not path.exists():
        pytest.skip("the published tables are not at hand")
    found: dict[str, list[float]] = {}
    with path.open() as file:
        for row in csv.DictReader(file):
            found.setdefault(row["arm"], []).append(float(row["agg_output_tok_s"]))
    named = {"nospec" if k == 0 else f"k{k}": list(map(float, v)) for k, v in B300.items()}
    assert found == {**named, "adaptive": list(B300_ADAPTIVE)}


def test_best_k_differs_by_batch() -> None:
    table = {0: (100, 2000), 2: (180, 4000), 3: (195, 3850), 4: (200, 3600)}
    built = build(comparison((1, 64), table), 64)
    assert ranges(built) == [[1, 1, 4], [2, 11, 3], [12, 64, 2]]
    lines = {k: np.log2(ends) for k, ends in table.items()}  # over log2 batch, 0 to 6
    for (first, second), batch in {(4, 3): 3.12, (3, 2): 16.69}.items():
        gap = lines[first] - lines[second]
        assert 2 ** (6 * gap[0] / (gap[0] - gap[1])) == pytest.approx(batch, abs=5e-3)
    assert built.best_fixed_k == 3
    assert built.gain_over_fixed == pytest.approx(4000 / 3850 - 1)
    assert not said(built, "keep a fixed K")
    assert said(built, "Nothing was measured inside", "2 to 11")


def test_a_schedule_that_gains_under_two_percent_is_not_worth_it() -> None:
    table = {0: (100, 2000), 2: (180, 3890), 3: (195, 3850), 4: (196, 3600)}
    built = build(comparison((1, 64), table), 64)
    assert ranges(built) == [[1, 25, 3], [26, 64, 2]]
    assert built.best_fixed_k == 3
    assert built.gain_over_fixed == pytest.approx(3890 / 3850 - 1)
    assert said(built, "more than 1.1 %", "keep a fixed K = 3", '"num_speculative_tokens": 3')


def test_mixture_of_experts_may_win_at_every_load() -> None:
    table = {0: (100, 900, 3000), 1: (121, 1000, 3300), 4: (150, 1080, 2550)}
    built = build(comparison((1, 32, 200), table), 200)
    assert [t.k for t in built.tiers] == [4, 1]
    assert built.tiers[-1].last == 200


def test_higher_tpot_is_worse() -> None:
    table = {0: (10.0, 20.0), 3: (5.0, 30.0)}
    data = comparison((1, 64), table, attribute="tpot_ms_mean")
    built = build(data, 64, objective="tpot")
    assert [t.k for t in built.tiers] == [3, 0]
    assert (built.tiers[0].gain or 0) > 1
    with pytest.raises(NotComparable, match="output throughput"):
        build(data, 64)


def test_published_ratios_stand_against_off_at_one() -> None:
    runs = tuple(
        Run(
            run_id=f"{k}-{load}",
            spec_state=SpecState.ON,
            draft_method="eagle",
            num_speculative_tokens=k,
            load_kind=LoadKind.BATCH,
            offered_load=load,
            multiplier=m,
        )
        for k, load, m in ((2, 1, 1.5), (2, 64, 0.8), (5, 1, 2.0), (5, 64, 0.5))
    )
    built = build(compare(Study("ratios", runs)), 64)
    table = {0: (1, 1), 2: (1.5, 0.8), 5: (2.0, 0.5)}
    assert ranges(built) == ranges(build(comparison((1, 64), table), 64))
    assert [t.k for t in built.tiers] == [5, 2, 0]


def test_an_arm_competes_inside_its_own_range_only() -> None:
    table = {0: (100, 300, 1000), 2: (120, 360, 1200), 4: (None, 400, None), 5: (None, 420, 1100)}
    built = build(comparison((1, 4, 16), table), 16)
    assert [k_at(built, b) for b in (1, 3, 4, 16)] == [2, 2, 5, 2]


def test_an_arm_is_interpolated_at_a_load_it_was_not_measured_at() -> None:
    table = {0: (100, 400, 1600), 3: (200, None, 3200), 1: (110, 440, 1700)}
    built = build(comparison((1, 4, 16), table), 16)
    assert built.fixed_k == 3


def test_lowest_k_is_carried_down() -> None:
    table = {0: (500, 1000), 3: (800, 900)}
    built = build(comparison((8, 64), table), 64)
    assert ranges(built)[0] == [1, ranges(built)[0][1], 3]
    assert built.tiers[0].measured == (8,)
    assert said(built, "below batch 8", "K = 3", "carried down")
    low = build(comparison((8, 64), table), 4)
    assert (low.fixed_k, low.ranges) == (3, None)
    assert (low.tiers[0].last, low.tiers[0].gain, low.tiers[0].measured) == (4, None, ())
    assert said(low, "below batch 8", "carried down")


def test_max_num_seqs_below_the_highest_load_cuts() -> None:
    built = build(comparison(LOADS, SIMULATED), 20)
    assert ranges(built) == [[1, 8, 4], [9, 20, 2]]
    assert built.tail_unmeasured is None
    assert built.num_speculative_tokens == 4


TOPS = {0: (100, 1000), 2: (150, 1500), 5: (200, 1100)}


def test_an_open_tail_writes_no_ranges() -> None:
    built = build(comparison((1, 16), TOPS), 64)
    assert (built.ranges, built.fixed_k) == (None, None)
    assert built.tail_unmeasured == (17, 64)
    assert [t.k for t in built.tiers] == [5, 2]
    assert built.tiers[-1].last == 16
    assert said(built, "17 to 64", "--tail off", "--tail carry", "--max-num-seqs 16")
    with pytest.raises(InputError, match="tail"):
        speculative_config(built, "eagle3", None)


@pytest.mark.parametrize(("tail", "k"), [("off", 0), ("carry", 2)])
def test_a_person_decides_the_tail(tail: str, k: int) -> None:
    built = build(comparison((1, 16), TOPS), 64, tail=tail)
    assert built.tiers[0].k == 5
    assert k_at(built, 16) == 2
    assert k_at(built, 64) == k
    assert built.tiers[-1].last == 64
    assert built.tail_unmeasured == (17, 64)
    assert said(built, "17 to 64", "unmeasured", f"K = {k}")
    assert check([list(r) for r in built.ranges or ()], built.num_speculative_tokens, 64).valid


def test_the_tail_needs_no_choice_up_to_the_highest_load() -> None:
    assert build(comparison((1, 16), TOPS), 16) == build(comparison((1, 16), TOPS), 16, tail="off")


def test_all_zero_is_no_speculation() -> None:
    built = build(comparison((1, 64), {0: (100, 900), 4: (90, 500)}), 128)
    assert (built.ranges, built.fixed_k, built.num_speculative_tokens) == (None, 0, 0)
    assert said(built, "start without --speculative-config")
    assert speculative_config(built, "eagle3", None) == {}


def test_one_range_is_a_fixed_k() -> None:
    data = comparison((1, 64), {0: (100, 900), 4: (190, 1500)}, draft_model="org/head")
    built = build(data, 64)
    assert (built.ranges, built.fixed_k, built.num_speculative_tokens) == (None, 4, 4)
    config = {"method": "eagle3", "model": "org/head", "num_speculative_tokens": 4}
    assert speculative_config(built, "eagle3", "org/head") == config
    assert said(built, "K = 4 at every batch", vllm_flag(config))
    assert not said(built, "hypothesis")


def test_a_short_run_joins_its_neighbours_within_the_tie() -> None:
    # K = 2 is as good as K = 4 at load 8 alone, and there K = 4 loses nothing.
    table = {0: (1, 1, 1, 1, 1), 2: (1.5, 1.5, 2.0, 1.5, 1.5), 4: (2.0, 2.0, 2.0, 2.0, 1.4)}
    built = build(comparison((1, 4, 8, 16, 64), table), 64)
    assert [t.k for t in built.tiers] == [4, 2]


def test_more_than_six_ranges_become_the_fewest() -> None:
    loads = tuple(2**i for i in range(9))
    ones = (2.0, 1.8, 1.8, 2.0, 1.8, 1.8, 2.0, 1.8, 2.0)
    twos = (2.0, 2.0, 1.8, 2.0, 2.0, 1.8, 2.0, 2.0, 2.0)
    table = {0: (1,) * 9, 1: ones, 2: twos, 3: (2.0,) * 8 + (1.7,)}
    built = build(comparison(loads, table), 256)
    assert [t.k for t in built.tiers] == [3, 2]
    assert said(built, "ranges became 2", "under 1 %")


def test_schedule_config_and_flag() -> None:
    built = build(comparison(LOADS, SIMULATED), 64)
    config = speculative_config(built, "eagle3", "org/it's")
    assert config == {
        "method": "eagle3",
        "model": "org/it's",
        "num_speculative_tokens": 4,
        "num_speculative_tokens_per_batch_size": [[1, 8, 4], [9, 38, 2], [39, 64, 0]],
    }


def test_data_parallel_blocks_the_export_but_shows_the_ranges() -> None:
    built = build(comparison(LOADS, SIMULATED, draft_method="mtp", data_parallel=2), 64)
    assert ranges(built) == [[1, 8, 4], [9, 38, 2], [39, 64, 0]]
    assert "data parallel 2" in (built.blocked_export or "")
    assert built.blocked_export in built.warnings
    with pytest.raises(InputError, match="data parallel 2"):
        speculative_config(built, "mtp", None)


def test_mtp_with_k_0_is_exported_with_its_open_defects() -> None:
    data = comparison(LOADS, SIMULATED, draft_method="mtp", data_parallel=1, engine_version="0.25")
    built = build(data, 64)
    assert built.blocked_export is None
    assert said(built, "Open defect", "MTP", "K = 0")
    assert not said(built, "version is not recorded")
    assert speculative_config(built, "mtp", None)["num_speculative_tokens"] == 4


def test_warnings_that_hold_for_every_schedule() -> None:
    built = build(comparison(LOADS, SIMULATED), 64)
    assert said(built, "hypothesis", "own arm")
    assert said(built, "V1 model runner", "full CUDA graphs")
    assert said(built, "version is not recorded")
    assert not said(built, "tested schedules with")


def two_methods() -> Comparison:
    runs = [r for load, v in ((1, 100.0), (16, 900.0)) for r in arm_runs(0, load, (v,))]
    for method, factor in (("eagle", 1.5), ("eagle3", 1.7)):
        for load, v in ((1, 100.0), (16, 900.0)):
            runs += arm_runs(3, load, (v * factor,), draft_method=method)
    return compare(Study("two", tuple(runs)))


def test_one_draft_method_a_schedule() -> None:
    with pytest.raises(NotComparable, match="eagle; eagle3"):
        build(two_methods(), 16)
    built = build(two_methods(), 16, method="eagle")
    assert built.tiers[0].gain == pytest.approx(1.5)
    assert said(built, "Left out", "eagle3:3 (concurrency)")
    with pytest.raises(NotComparable, match="'dflash': one of eagle; eagle3"):
        build(two_methods(), 16, method="dflash")


def test_no_schedule_across_allocations() -> None:
    runs = [
        *arm_runs(0, 1, (100.0,), gpu_count=1),
        *arm_runs(2, 1, (300.0,), gpu_count=2),
    ]
    data = compare(Study("allocations", tuple(runs)))
    assert data.allocation_differs
    with pytest.raises(NotComparable, match="gpu_count"):
        build(data, 8)


def test_no_schedule_across_draft_models() -> None:
    runs = [
        *arm_runs(0, 1, (100.0,)),
        *arm_runs(2, 1, (150.0,), draft_model="a"),
        *arm_runs(3, 1, (170.0,), draft_model="b"),
    ]
    with pytest.raises(NotComparable, match="draft models a, b"):
        build(compare(Study("models", tuple(runs))), 1)


def test_no_schedule_across_data_sets() -> None:
    runs = [
        *arm_runs(0, 1, (100.0,), dataset="chat"),
        *(r for r in arm_runs(2, 1, (150.0,), dataset="chat")),
        *arm_runs(0, 2, (190.0,), dataset="code"),
        *arm_runs(3, 2, (300.0,), dataset="code"),
    ]
    with pytest.raises(NotComparable, match="dataset is chat for eagle3:2 and code for eagle3:3"):
        build(compare(Study("data", tuple(runs))), 2)


def test_request_rates_are_no_batches() -> None:
    data = comparison((1, 64), {0: (1, 2), 3: (2, 3)}, load_kind=LoadKind.REQUEST_RATE)
    with pytest.raises(NotComparable, match="concurrency or batch"):
        build(data, 64)


def test_adaptive_arms_alone_make_no_schedule() -> None:
    with pytest.raises(NotComparable, match="fixed K"):
        build(comparison((1, 64), {0: (1, 2), None: (2, 3)}), 64)


@pytest.mark.parametrize(
    "arguments",
    [
        {"max_num_seqs": 0},
        {"max_num_seqs": True},
        {"max_num_seqs": 1.5},
        {"max_num_seqs": 64, "objective": "itl"},
        {"max_num_seqs": 64, "tail": "zero"},
    ],
)
def test_arguments_out_of_range(arguments: dict) -> None:
    with pytest.raises(InputError, match=str(next(reversed(arguments)))):
        build(comparison((1, 64), TOPS), **arguments)


TPS = st.floats(50, 5000)
TAILS = st.sampled_from([None, "off", "carry"])


@st.composite
def sweeps(draw: st.DrawFn, holes: bool) -> tuple[tuple[int, ...], dict]:
    loads = tuple(sorted(draw(st.sets(st.integers(1, 96), min_size=1, max_size=5))))
    ks = draw(st.sets(st.integers(1, 7), min_size=1, max_size=4))
    repeats = draw(st.sampled_from([1, 3]))
    base = draw(st.lists(TPS, min_size=len(loads), max_size=len(loads)))

    def cell(centre: float, may_miss: bool) -> tuple[float, ...] | None:
        if may_miss and draw(st.integers(0, 3)) == 0:
            return None
        factor = draw(st.sampled_from([0.6, 0.9, 0.97, 0.995, 1.0, 1.005, 1.03, 1.2, 1.8]))
        noise = [draw(st.floats(0.95, 1.05)) for _ in range(repeats)]
        return tuple(centre * factor * n for n in noise)

    table: dict = {0: [cell(x, False) for x in base]}
    for k in ks:
        table[k] = [cell(x, holes) for x in base]
    if not any(c is not None for k in ks for c in table[k]):
        table[min(ks)] = table[0]
    return loads, table


@settings(deadline=None)
@given(sweeps(holes=True), st.integers(1, 128), TAILS, st.booleans())
def test_what_is_built_is_valid(sweep: tuple, max_num_seqs: int, tail: str, noise: bool) -> None:
    built = build(comparison(*sweep), max_num_seqs, tail=tail, noise_ties=noise)
    spans = [(t.first, t.last) for t in built.tiers]
    assert spans[0][0] == 1
    assert all(a[1] + 1 == b[0] for a, b in pairwise(spans))
    assert built.num_speculative_tokens == max(t.k for t in built.tiers)
    if built.ranges is None:
        assert built.fixed_k is not None or tail is None
        assert "--" in built.warnings[0]
        return
    found = check(speculative_config(built, "eagle3", None), 1, max_num_seqs)
    assert found.errors == ()
    assert found.effective == built.ranges


def half_width(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    """Of the 95 % Welch interval of log(a/b) at equal n = 3, by the normal equations."""
    if len(a) == 1:
        return 0.0
    variances = []
    for values in (a, b):
        logs = [math.log(v) for v in values]
        mean = sum(logs) / 3
        variances.append(sum((x - mean) ** 2 for x in logs) / 2 / 3)
    total = sum(variances)
    if total < 1e-30:
        return 0.0
    df = total**2 / sum(v**2 / 2 for v in variances)
    return float(stdtrit(df, 0.975)) * math.sqrt(total)


@settings(deadline=None)
@given(sweeps(holes=False), st.booleans())
def test_at_every_measured_load_k_is_within_the_tie_of_the_best(sweep: tuple, noise: bool) -> None:
    loads, table = sweep
    built = build(comparison(loads, table), max(loads), tail="off", noise_ties=noise)
    for i, load in enumerate(loads):
        cells = {k: row[i] for k, row in table.items()}
        level = {k: sum(map(math.log, c)) / len(c) for k, c in cells.items()}
        best = max(level, key=lambda k: level[k])
        k = k_at(built, load)
        width = half_width(cells[k], cells[best]) if noise else 0.0
        assert level[best] - level[k] <= max(-math.log(0.99), width) + 1e-6


def test_random_tokens_make_a_schedule_with_consent_alone() -> None:
    """C52: comparing is free; the schedule waits for a person's word and then carries the note."""

    def measured(dataset: str) -> Study:
        rows = ((off, 1, 10.0), (off, 8, 80.0), (on, 1, 20.0), (on, 8, 60.0))
        return study(*(make(load, tps, dataset=dataset) for make, load, tps in rows))

    plain, random = measured("sharegpt"), measured("random")
    assert not any("random tokens" in w for w in build(compare(plain), 8).warnings)
    with pytest.raises(NotComparable, match="--accept-random"):
        build(compare(random), 8)
    accepted = build(compare(random), 8, accept_random=True)
    assert any("your own prompts" in w for w in accepted.warnings)
    assert len(compare(random).arms[0].cells) == 2
    assert plain.caveat == ""
    assert "random tokens" in random.caveat
