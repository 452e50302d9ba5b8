"""Which runs are paired, which are refused, and what is said about it."""

import math
from typing import Any

import pytest

from lib.errors import InputError, NotComparable
from lib.evidence.pairing import compare
from lib.evidence.ratio import log_ratios
from lib.run import GROUPS, LoadKind, Run
from tests.unit.evidence.builders import off, on, only_arm, study


def loads(arm: Any) -> list[float]:
    return [c.load for c in arm.cells]


def test_every_arm_is_compared_with_off_at_equal_load() -> None:
    found = compare(
        study(off(1), off(1), off(8), on(1, k=2), on(8, k=2), on(1, k=10), on(2, k=10), off(4))
    )
    assert found.baseline == "off"
    assert [a.arm for a in found.arms] == ["eagle3:2", "eagle3:10"]
    two, ten = found.arms
    assert [(c.load, len(c.off), len(c.on)) for c in two.cells] == [(1, 2, 1), (8, 1, 1)]
    assert loads(ten) == [1]
    assert [r.offered_load for r in ten.on_only] == [2]
    assert sorted(r.offered_load or 0 for r in ten.off_only) == [4, 8]
    assert found.arm("eagle3:10") is ten
    with pytest.raises(InputError, match="eagle3:2, eagle3:10"):
        found.arm("mtp:1")


def test_scheduled_zero_is_an_arm_of_its_own() -> None:
    found = compare(study(off(1), on(1, k=0), on(1, k=2)))
    assert [a.arm for a in found.arms] == ["eagle3:0", "eagle3:2"]


def test_without_a_baseline_or_another_arm() -> None:
    with pytest.raises(NotComparable, match=r"edit table.*GLOB=off"):
        compare(study(on(1)))
    with pytest.raises(NotComparable, match=r"edit table.*GLOB=METHOD:K"):
        compare(study(off(1)))
    with pytest.raises(NotComparable, match="GLOB=off"):
        compare(study())


def test_unassigned_runs_are_listed_and_not_paired() -> None:
    lost = Run(run_id="lost", load_kind=LoadKind.CONCURRENCY, offered_load=1, output_tps=1.0)
    found = compare(study(off(1), on(1), lost))
    assert found.unassigned == (lost,)
    assert [len(a.cells) for a in found.arms] == [1]


def test_empty_and_loadless_runs_are_left_out_with_a_note() -> None:
    found = compare(study(off(1), on(1), off(2), on(2, completed=0), on(4, load_kind=None), off(4)))
    assert loads(found.arms[0]) == [1]
    assert any("1 of the runs completed no request" in n for n in found.notes)
    assert any("load_kind and offered_load" in n for n in found.notes)


EXACT = [f for f in (*GROUPS.workload, *GROUPS.server) if f not in ("input_len", "output_len")]
PAIRS: dict[str, tuple[Any, Any]] = {
    "temperature": (0.0, 1.0),
    "top_p": (0.9, 1.0),
    "max_num_seqs": (64, 256),
    "prefix_caching": (True, False),
    "graph_max_batch": (0, 8),
}


@pytest.mark.parametrize("field", EXACT)
def test_workload_and_server_fields_must_agree(field: str) -> None:
    a, b = PAIRS.get(field, ("one", "two"))
    runs = (off(1, **{field: a}), on(1, **{field: b}))
    arm = only_arm(*runs)
    (d,) = arm.differences
    assert (d.field, d.verdict, d.loads, d.overridden) == (field, "blocks", (1,), False)
    assert (arm.cells, arm.blocked, arm.on_only, arm.off_only) == ((), (1,), (), ())
    freed = only_arm(*runs, overrides=[field])
    assert loads(freed) == [1]
    assert [(d.verdict, d.overridden) for d in freed.differences] == [("blocks", True)]
    other = only_arm(*runs, overrides=["target" if field != "target" else "build"])
    assert other.cells == ()


def test_temperature_0_against_1_is_refused_and_missing_is_not_recorded() -> None:
    arm = only_arm(off(1, temperature=0.0), on(1, temperature=1.0))
    assert arm.differences[0].text == "temperature differs: off 0, on 1 at 1: not paired"
    for a, b in ((0.0, None), (None, 1.0), (None, None)):
        found = compare(study(off(1, temperature=a), on(1, temperature=b)))
        assert loads(found.arms[0]) == [1]
        assert found.differences == ()
        assert "temperature" in found.not_recorded
    assert "temperature" not in compare(study(off(1), on(1))).not_recorded


def test_not_recorded_lists_what_some_pair_lacks() -> None:
    found = compare(study(off(1, gpu="H100"), on(1, gpu="H100"), off(2, gpu="H100"), on(2)))
    assert "gpu" in found.not_recorded
    assert "target" not in found.not_recorded
    assert not {"slo", "usd_per_hour"} & set(found.not_recorded)


def test_dataset_or_domain_will_do() -> None:
    both = {"dataset": None, "domain": "code"}
    assert not {"dataset", "domain"} & set(compare(study(off(1), on(1))).not_recorded)
    found = compare(study(off(1, **both), on(1, **both)))
    assert not {"dataset", "domain"} & set(found.not_recorded)
    neither = compare(study(off(1, dataset=None), on(1, dataset=None)))
    assert "dataset" in neither.not_recorded


@pytest.mark.parametrize(
    ("base", "spec", "verdict"),
    [
        (1000.0, 1000.0, None),
        (1000.0, 980.0, None),  # 2 %
        (1000.0, 979.0, "noted"),
        (1000.0, 947.0, "noted"),  # 5.3 %
        (900.0, 1000.0, "noted"),  # 10 %
        (1000.0, 899.0, "blocks"),
        (300.0, 1023.0, "blocks"),
    ],
)
@pytest.mark.parametrize("field", ["input_len", "output_len"])
def test_lengths(field: str, base: float, spec: float, verdict: str | None) -> None:
    arm = only_arm(off(1, **{field: base}), on(1, **{field: spec}))
    assert [d.verdict for d in arm.differences] == ([verdict] if verdict else [])
    assert loads(arm) == ([] if verdict == "blocks" else [1])


def test_lengths_compare_the_mean_over_repeats() -> None:
    runs = [make(1, output_len=v) for v in (98.0, 100.0, 102.0) for make in (off, on)]
    assert only_arm(*runs).differences == ()


def test_unequal_lengths_pair_with_a_note_and_their_ratio() -> None:
    arm = only_arm(off(1, 69.79, output_len=1000.0), on(1, 61.79, output_len=947.0))
    assert log_ratios(arm)[0].multiplier == pytest.approx(0.885, abs=5e-4)
    assert arm.differences[0].text == "output_len differs: off 1000, on 947 at 1: noted"


def test_another_tool_is_refused() -> None:
    arm = only_arm(off(1, tool="guidellm"), on(1, tool="aiperf"))
    assert arm.differences[0].text.startswith("tool differs: off guidellm, on aiperf")
    assert arm.cells == ()


def test_another_objective_is_refused() -> None:
    arm = only_arm(off(1, slo="ttft 500"), on(1, slo="ttft 900"))
    assert [d.field for d in arm.differences] == ["slo"]
    assert arm.blocked == (1,)


@pytest.mark.parametrize(
    ("field", "a", "b"),
    [("gpu", "H100", "L4"), ("gpu_count", 1, 2), ("tensor_parallel", 1, 2), ("usd_per_hour", 2, 3)],
)
def test_another_allocation_pairs_and_says_so(field: str, a: Any, b: Any) -> None:
    found = compare(study(off(1, **{field: a}), on(1, **{field: b})))
    assert loads(found.arms[0]) == [1]
    assert [d.verdict for d in found.differences] == ["allocation"]
    assert found.allocation_differs
    assert not compare(study(off(1, **{field: a}), on(1, **{field: a}))).allocation_differs


def test_only_the_loads_that_differ_are_refused() -> None:
    arm = only_arm(
        *(off(x, engine_version="1") for x in (1, 2, 4, 8)),
        *(on(x, engine_version="1" if x < 4 else "2") for x in (1, 2, 4, 8)),
    )
    assert loads(arm) == [1, 2]
    assert arm.blocked == (4, 8)
    assert [d.loads for d in arm.differences] == [(4, 8)]


def test_the_off_run_that_agrees_is_chosen() -> None:
    other, same = off(1, 50.0, dataset="code"), off(1, 100.0, dataset="chat")
    arm = only_arm(other, same, on(1, dataset="chat"))
    assert arm.cells[0].off == (same,)
    assert arm.differences == ()


def test_an_override_does_not_pool_what_disagrees_with_what_agrees() -> None:
    other, same = off(1, 50.0, dataset="code"), off(1, 100.0, dataset="chat")
    arm = only_arm(other, same, on(1, dataset="chat"), overrides=["dataset"])
    assert arm.cells[0].off == (same,)


def test_an_override_prefers_the_off_run_that_differs_in_nothing_else() -> None:
    near, far = off(1, dataset="code"), off(1, dataset="code", engine="sglang")
    arm = only_arm(far, near, on(1, dataset="chat"), overrides=["dataset"])
    assert arm.cells[0].off == (near,)


def test_an_arm_that_does_not_say_which_of_two_datasets_is_refused() -> None:
    arm = only_arm(off(1, dataset="code"), off(1, dataset="chat"), on(1, dataset=None))
    assert arm.cells == ()
    assert [(d.off, d.on) for d in arm.differences] == [("code | chat", "not recorded")]


def test_each_dataset_is_a_comparison_of_its_own() -> None:
    runs = [
        make(x, tps * f, dataset=name)
        for x in (1, 2)
        for name, f in (("chat", 1.0), ("code", 3.0))
        for make, tps in ((off, 100.0), (on, 150.0))
    ]
    found = compare(study(*runs, off(4, dataset="code")))
    assert [(a.arm, a.protocol) for a in found.arms] == [
        ("eagle3:4", "dataset chat"),
        ("eagle3:4", "dataset code"),
    ]
    for arm in found.arms:
        assert loads(arm) == [1, 2]
        assert [p.multiplier for p in log_ratios(arm)] == pytest.approx([1.5, 1.5])
    assert [len(a.off_only) for a in found.arms] == [0, 1]
    assert any("dataset code" in n for n in found.notes)


def test_each_gpu_pairs_with_itself() -> None:
    runs = [
        make(x, tps * f, gpu=name)
        for x in (1, 2)
        for name, f in (("H100", 1.0), ("L4", 0.1))
        for make, tps in ((off, 100.0), (on, 150.0))
    ]
    found = compare(study(*runs))
    assert [(a.protocol, loads(a)) for a in found.arms] == [
        ("gpu H100", [1, 2]),
        ("gpu L4", [1, 2]),
    ]
    assert [c.off[0].gpu for a in found.arms for c in a.cells] == ["H100", "H100", "L4", "L4"]
    assert not found.allocation_differs


def test_a_grid_of_lengths_is_split_and_a_drift_of_lengths_is_not() -> None:
    grid = [
        make(x, input_len=n * (1 + x / 100))
        for x in (1.0, 2.0)
        for n in (400.0, 900.0)
        for make in (off, on)
    ]
    assert [loads(a) for a in compare(study(*grid)).arms] == [[1, 2], [1, 2]]
    drift = [make(x, output_len=n) for x, n in ((1.0, 100.0), (2.0, 130.0)) for make in (off, on)]
    assert loads(only_arm(*drift)) == [1, 2]


def test_two_draft_models_are_no_repeats() -> None:
    found = compare(study(off(1), on(1, draft_model="a"), on(1, draft_model="b")))
    assert [a.protocol for a in found.arms] == ["draft_model a", "draft_model b"]


def test_a_server_setting_may_vary_along_a_curve() -> None:
    runs = [make(x, max_num_seqs=x) for x in (1, 2, 4) for make in (off, on)]
    assert loads(only_arm(*runs)) == [1, 2, 4]


def test_a_load_of_its_own_must_lie_on_the_same_curve() -> None:
    arm = only_arm(off(1), on(1), on(3), off(2), off(4, temperature=1.0), off(8, engine="sglang"))
    assert [r.offered_load for r in arm.off_only] == [2]


def test_infinite_rate_pairs_with_infinite_only() -> None:
    rate = {"load_kind": LoadKind.REQUEST_RATE}
    found = compare(study(off(math.inf, **rate), on(8.0, **rate), on(math.inf, **rate)))
    (arm,) = found.arms
    assert loads(arm) == [math.inf]
    assert [r.offered_load for r in arm.on_only] == [8]
    assert any("margin" in n for n in found.notes)


def test_kinds_of_load_are_never_mixed() -> None:
    rate = {"load_kind": LoadKind.REQUEST_RATE}
    arm = only_arm(off(8), on(8, **rate))
    assert arm.cells == ()
    assert arm.blocked == (8,)
    assert arm.differences[0].text.startswith(
        "load_kind differs: off concurrency, on request_rate at 8"
    )
    found = compare(study(off(8), on(8), off(8, **rate), on(8, **rate)))
    assert [(a.load_kind, loads(a)) for a in found.arms] == [
        ("concurrency", [8]),
        ("request_rate", [8]),
    ]


def test_graph_limit_in_one_arm_refuses_the_loads_above_it() -> None:
    found = compare(
        study(*(off(x) for x in (1, 2, 20)), *(on(x, graph_max_batch=2) for x in (1, 2, 20)))
    )
    (arm,) = found.arms
    assert loads(arm) == [1, 2]
    (d,) = arm.differences
    assert (d.field, d.group, d.off, d.on, d.loads) == (
        "graph_max_batch",
        "server",
        "not recorded",
        "2",
        (20,),
    )


def test_unlike_graph_limits_refuse_only_the_loads_above_the_smaller() -> None:
    """C61, with the limit recorded in both arms."""
    runs = [r for x in (1, 2, 20) for r in (off(x, graph_max_batch=256), on(x, graph_max_batch=2))]
    (arm,) = compare(study(*runs)).arms
    assert loads(arm) == [1, 2]
    assert {d.verdict: d.loads for d in arm.differences} == {"noted": (1, 2), "blocks": (20,)}


def test_graph_limit_in_both_arms_keeps_the_load_and_the_badge() -> None:
    runs = [make(x, graph_max_batch=2) for x in (1, 2, 20) for make in (off, on)]
    found = compare(study(*runs))
    assert loads(found.arms[0]) == [1, 2, 20]
    assert "eagle3:4 at 20: baseline and speculation both ran without graphs above 2" in found.notes


def test_tree_draft_and_queue_are_noted() -> None:
    waits = {"ttft_ms_p50": 600.0, "e2e_ms_p50": 1000.0}
    found = compare(study(off(8, **waits), on(8, draft_topk=8)))
    assert any("tree draft" in n for n in found.notes)
    assert any("eagle3:4 at 8: queue-bound" in n for n in found.notes)
    calm = compare(study(off(1), on(1, draft_topk=8, ttft_ms_p50=40.0, e2e_ms_p50=900.0)))
    assert calm.notes == ()


def test_published_ratios_need_no_off_run() -> None:
    found = compare(study(on(2, None, multiplier=1.4), on(4, None, multiplier=1.2)))
    assert [(c.load, c.off, len(c.on)) for c in found.arms[0].cells] == [(2, (), 1), (4, (), 1)]
    assert any("never priced" in n for n in found.notes)


def test_published_ratio_beside_measured_loads() -> None:
    arm = only_arm(off(1), on(1), on(2, None, multiplier=1.2), off(2))
    assert [(c.load, len(c.off)) for c in arm.cells] == [(1, 1), (2, 0)]


def test_override_of_no_field_is_refused() -> None:
    with pytest.raises(InputError, match="override 'temprature': one of target"):
        compare(study(off(1), on(1)), frozenset({"temprature"}))


def test_an_overridden_difference_among_repeats_splits_no_arm() -> None:
    runs = [make(x, build=b) for x in (1, 8) for b in ("aaa", "bbb") for make in (off, on)]
    apart = compare(study(*runs))
    assert {a.protocol for a in apart.arms} == {"build aaa", "build bbb"}
    assert {len(c.on) for a in apart.arms for c in a.cells} == {1}
    (together,) = compare(study(*runs), frozenset({"build"})).arms
    assert [(len(c.off), len(c.on)) for c in together.cells] == [(2, 2), (2, 2)]
    (difference,) = together.differences
    assert (difference.field, difference.overridden) == ("build", True)
