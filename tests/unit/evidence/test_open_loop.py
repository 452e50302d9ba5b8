"""Runs at a request rate: what the server kept up with, what it did not, and what each compares."""

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from lib import decision
from lib.errors import NotComparable
from lib.evidence.findings import Findings, find
from lib.evidence.pairing import compare
from lib.money.pricing import Rate, price_pairs
from lib.report.price_text import price_answer
from lib.report.sentences import compare_answer, crossing_lines
from lib.run import LoadKind, Run, SpecState, Study
from tests.unit.evidence.builders import off, on, only_arm, study

RATE: dict[str, Any] = {"load_kind": LoadKind.REQUEST_RATE}

# One vLLM server of an 8B model with and without EAGLE-3 (K = 4), swept by inference-perf: asked
# rate, completed per second, mean TPOT ms, median TTFT and end-to-end s, output tok/s.
PLAIN = (
    (1.0, 1.02, 3.473, 0.031, 0.480, 64.2),
    (31.4, 31.16, 3.998, 0.029, 0.544, 1943.0),
    (61.79, 61.24, 4.988, 0.033, 0.668, 3820.7),
    (92.19, 91.36, 7.516, 0.045, 1.004, 5693.9),
    (122.59, 101.23, 9.509, 3.036, 4.268, 6316.8),
    (152.98, 101.46, 9.484, 3.035, 4.265, 6323.8),
    (183.38, 103.08, 9.293, 2.887, 4.090, 6431.1),
)
EAGLE = (
    (1.0, 1.00, 5.791, 0.037, 0.767, 62.7),
    (18.16, 17.93, 6.474, 0.036, 0.821, 1129.1),
    (35.33, 34.81, 7.502, 0.039, 0.941, 2191.2),
    (52.49, 51.64, 10.791, 0.050, 1.286, 3252.2),
    (69.65, 69.67, 15.853, 0.808, 2.688, 4208.1),
    (86.81, 67.58, 15.986, 4.546, 6.300, 4261.7),
    (103.98, 68.05, 15.975, 4.551, 6.396, 4277.6),
)


def sweep(rows: tuple[tuple[float, ...], ...], **fields: Any) -> list[Run]:
    return [
        Run(
            run_id=f"{fields['spec_state']} {asked}",
            **{**RATE, **fields},
            offered_load=asked,
            achieved_load=got,
            tpot_ms_mean=tpot,
            ttft_ms_p50=1e3 * ttft,
            e2e_ms_p50=1e3 * e2e,
            output_tps=tps,
            output_len=62.5,
        )
        for asked, got, tpot, ttft, e2e, tps in rows
    ]


@pytest.fixture(scope="module")
def pair() -> Study:
    spec = {"draft_method": "eagle3", "num_speculative_tokens": 4}
    runs = [*sweep(PLAIN, spec_state=SpecState.OFF), *sweep(EAGLE, spec_state=SpecState.ON, **spec)]
    return Study("pair", tuple(runs))


def on_tpot(pair: Study) -> Findings:
    return find(pair, "tpot_ms")


def test_off_leads_on_tpot_at_every_rate(pair: Study) -> None:
    (arm,) = on_tpot(pair).arms
    assert [(p.load, round(p.multiplier, 2)) for p in arm.points] == [(1.0, 0.60)]
    assert [p.load for p in arm.derived] == [18.16, 31.4, 35.33, 52.49, 61.79, 69.65]
    assert all(p.multiplier < 0.65 and p.mark() == "too close to call" for p in arm.derived)
    assert arm.only_derived == "behind"
    assert arm.crossover.crossings == ()
    sentence, estimate = compare_answer(on_tpot(pair), None)
    assert "Off is ahead at every rate" in sentence
    assert "hollow points decide nothing" in sentence
    assert estimate is not None
    assert estimate.value == pytest.approx(3.473 / 5.791)
    assert not any("crosses" in line for line in crossing_lines(on_tpot(pair)))


def test_unlike_rates_never_pair_point_to_point(pair: Study) -> None:
    (arm,) = on_tpot(pair).arms
    assert [c.load for c in arm.pairs.cells] == [1.0]
    assert {p.load for p in arm.points} <= {1.0}


def test_latency_under_a_queue_makes_no_hollow_point(pair: Study) -> None:
    (arm,) = on_tpot(pair).arms
    assert max(p.load for p in arm.derived) < 86.81


def test_no_throughput_where_it_is_the_demand(pair: Study) -> None:
    found = find(pair)
    assert {r.offered_load for r in found.comparison.open_loop if r.arm == "off"} == {
        1.0,
        31.4,
        61.79,
        92.19,
    }
    assert len(found.comparison.open_loop) == 9
    assert not any(a.points or a.derived for a in found.arms)
    (note,) = [n for n in found.comparison.notes if "demand" in n]
    assert note.startswith("9 runs left out of throughput and price: the server kept up")
    assert "compare on Mean TPOT" in note
    assert note.endswith("most tok/s of a saturated server: off 6431.1, eagle3:4 4277.6")
    sentence, estimate = compare_answer(found, None)
    assert estimate is None
    assert note in sentence


def test_the_verdict_at_such_a_rate_says_why(pair: Study) -> None:
    found = decision.verdict(find(pair), 1.0)
    assert found.state is decision.State.UNDECIDED
    assert found.sentence.startswith("At 1 requests/s the server kept up with the demand")
    assert "Mean TPOT" in found.sentence
    assert "was not measured in both arms" in decision.verdict(find(pair), 122.59).sentence


def test_price_page_and_gate_say_why_nothing_is_priced(pair: Study) -> None:
    found = find(pair)
    priced = {a.label: price_pairs(found, a, Rate(2.0, 1, 1.0)) for a in found.arms}
    sentence, estimate, _ = price_answer(found, priced, 1.0)
    assert estimate is None
    assert sentence == f"Nothing is priced: {found.comparison.open_loop_note}."
    gates = decision.gates(found, decision.verdict(found, 1.0), None, [], "no schedule")
    assert "tok/s equals the demand" in gates[3].missing


def test_with_nothing_left_the_reason_is_the_answer() -> None:
    runs = [make(x, achieved_load=x, **RATE) for x in (1.0, 2.0) for make in (off, on)]
    with pytest.raises(NotComparable, match=r"4 runs left out of throughput.*Mean TPOT"):
        compare(study(*runs))
    assert len(compare(study(*runs), metric="tpot_ms").arms[0].cells) == 2
    assert len(compare(study(*runs), metric="goodput_rps").arms[0].cells) == 2
    with pytest.raises(NotComparable, match="no usable run is off"):
        compare(study(*runs[1::2]))


def test_rates_that_both_missed_are_paired_on_throughput() -> None:
    arm = only_arm(off(99.0, achieved_load=70.0, **RATE), on(99.0, achieved_load=80.0, **RATE))
    assert [c.load for c in arm.cells] == [99.0]
    beside = find(study(off(8.0), on(8.0), off(4.0, achieved_load=4.0, **RATE)))
    assert [p.load for p in beside.arms[0].points] == [8.0]
    assert "1 run left out of throughput" in " ".join(beside.comparison.notes)


def test_an_infinite_rate_is_no_demand() -> None:
    arm = only_arm(*(make(math.inf, achieved_load=50.0, **RATE) for make in (off, on)))
    assert [c.load for c in arm.cells] == [math.inf]


# what a queue and a late first token leave out


def test_c62_waiting_above_running_leaves_latency_out() -> None:
    waits = {"running_mean": 337.0, "waiting_mean": 633.0}
    runs = (off(970, tpot_ms_mean=9.0), on(970, tpot_ms_mean=8.0, **waits))
    found = find(study(*runs), "tpot_ms")
    assert found.arms[0].points == ()
    assert any("eagle3:4 at 970: queue-bound" in n for n in found.comparison.notes)
    assert len(find(study(*runs)).arms[0].points) == 1  # throughput stands


def test_c71_a_late_first_token_leaves_tpot_out() -> None:
    late = {"ttft_ms_mean": 34_690.0, "e2e_ms_mean": 35_940.0}
    runs = (off(8, tpot_ms_mean=9.0), on(8, tpot_ms_mean=8.0, **late))
    found = find(study(*runs), "tpot_ms")
    assert found.arms[0].points == ()
    assert any("reasoning tokens may count" in n for n in found.comparison.notes)
    sound = (runs[0], on(8, tpot_ms_mean=8.0, ttft_ms_mean=28_640.0, e2e_ms_mean=35_940.0))
    assert len(find(study(*sound), "tpot_ms").arms[0].points) == 1


def test_a_copy_is_no_repeat() -> None:
    same: dict[str, Any] = {
        "started_at": datetime(2026, 3, 1, tzinfo=UTC),
        "duration_s": 20.0,
        "output_tokens": 2000,
    }
    found = compare(study(off(8, **same), off(8, **same), on(8)))
    assert len(found.arms[0].cells[0].off) == 1
    assert "1 run left out: the same run under a second id" in found.notes
