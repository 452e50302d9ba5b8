"""Sentences on what to measure next, and on where an arm wins that has no single limit."""

import math

import pytest

from lib import decision
from lib.decision import State
from lib.evidence.crossover import winning
from lib.evidence.findings import Findings, find
from lib.evidence.next_measurement import NextMeasurement, Repeats, Why, next_measurements
from lib.report.next_text import afterwards, cell, sentence, settle_text
from lib.report.sentences import compare_answer, crossing_lines
from lib.report.tables import multiplier_table
from lib.run import LoadKind
from tests.unit.evidence.builders import NON_MONOTONE, off, on, ratios, study
from tests.unit.test_decision import CURVE, sweep

C = LoadKind.CONCURRENCY


def measured(table: dict[float, tuple[float, float]], k: int = 4) -> Findings:
    runs = [off(x, a) for x, (a, _) in table.items()] + [on(x, b, k) for x, (_, b) in table.items()]
    return find(study(*runs))


def test_the_sentence_names_cell_runs_and_reason() -> None:
    found = measured({1: (100, 150), 2: (100, 140)})
    assert sentence(next_measurements(found)[0]) == (
        "Measure off and eagle3:4 at 4 concurrent, 3 runs each. eagle3:4 does not cross 1 inside "
        "the measured range; where it does is not known until the range is wider."
    )
    one = next_measurements(found, 2)[0]
    assert sentence(one).startswith("Repeat off and eagle3:4 at 2 concurrent, 2 more runs each.")
    assert afterwards(next_measurements(found, 2)[1:]) == (
        "After that: off and eagle3:4 at 4 concurrent; off and eagle3:4 at 1 concurrent."
    )
    assert afterwards(()) == ""


@pytest.mark.parametrize("why", list(Why))
@pytest.mark.parametrize("kind", list(LoadKind))
def test_every_reason_has_a_sentence(why: Why, kind: LoadKind) -> None:
    one = NextMeasurement(("off",), "eagle3:4", 8, kind, why, 3, Repeats(8, 3, 3, 2), (4, 16), 0.5)
    text = sentence(one)
    assert text.endswith(".")
    assert cell(one) in text
    assert "None" not in text
    bare = NextMeasurement(("off", "eagle3:4"), "eagle3:4", math.inf, kind, why)
    assert sentence(bare).count(".") >= 2


def test_what_would_settle_a_load() -> None:
    assert settle_text(Repeats(8, 3, 3, 0)) == "settled"
    assert settle_text(Repeats(8, 3, 3, 2)) == "2 more an arm"
    assert settle_text(Repeats(8, 1, 1, None)) == "2 more first"
    assert settle_text(Repeats(8, 3, 3, None, beyond=True)) == "over 100 more"
    assert settle_text(Repeats(8, 0, 0, None)) == "tok/s of both arms first"


def test_the_table_says_what_would_settle_each_load() -> None:
    table = multiplier_table(sweep(CURVE))
    assert table["would settle it"] == ["settled"] * 4 + ["over 100 more", "settled"]
    assert table["mark (95 % each)"][4] == "≈ too close to call"


def test_winning_regions() -> None:
    points = ratios({1: 1.3, 2: 1.2, 4: 0.9, 8: 1.0, 16: 1.2}, se=0.01)
    assert winning(points, 0.95) == ((1, 2), (16, 16))
    assert winning(ratios({1: 1.3, 2: 1.2}, se=0.01), 0.95) == ((1, 2),)
    assert winning(ratios({1: 0.9}, se=0.01), 0.95) == ()
    assert winning(ratios({1: 1.3}), 0.95) == ()


# C03: loses at 1 to 32, wins at 64: no "below N"
def test_c03_lists_the_winning_interval() -> None:
    found = measured(dict(NON_MONOTONE))
    lines = crossing_lines(found)
    assert "starts paying between 32 and 64" in lines[0]
    assert lines[1] == "eagle3:4: no single limit; it is ahead at 64 concurrent alone."
    answer = compare_answer(found, None)[0]
    assert "is too close to call at 8" in answer
    assert "ahead at 64" in answer
    assert not any("up to" in x for x in (*lines, answer))


def test_c03_the_verdict_lists_intervals_and_no_limit() -> None:
    found = decision.verdict(sweep({1: 1.5, 2: 1.4, 4: 0.9, 8: 0.9, 16: 1.3}), 16)
    assert found.state is State.PASSED
    assert found.up_to is None
    assert found.sentence == (
        "eagle3:4 wins at 16: 1.30×; it wins at 1 to 2 and 16, and is not shown to between."
    )
    once = decision.verdict(sweep({1: 0.85, 4: 0.94, 8: 0.99, 32: 0.82, 64: 1.06}), 64)
    assert once.sentence == "eagle3:4 wins at 64: 1.06×."
    monotone = decision.verdict(sweep(CURVE), 4)
    assert monotone.up_to == 8


def test_two_regions_are_listed() -> None:
    lines = crossing_lines(sweep({1: 1.5, 2: 1.4, 4: 0.9, 8: 0.9, 16: 1.3}))
    assert lines[-1] == "eagle3:4: no single limit; it wins at 1 to 2 and 16 concurrent."


# C26: at 16 active, n_max 15 makes 17 to 21 tok/s and n_max 1 makes 80, against 37 off
@pytest.mark.parametrize(("tps", "k", "m"), [(17, 15, 0.46), (21, 15, 0.57), (80, 1, 2.16)])
def test_c26_the_multiplier_at_sixteen(tps: float, k: int, m: float) -> None:
    (arm,) = measured({16: (37, tps)}, k).arms
    assert arm.points[0].multiplier == pytest.approx(m, abs=5e-3)


# C40: every arm loses: leave off, best of a bad lot 0.933
def test_c40_leave_it_off_and_name_the_best() -> None:
    lengths = {186: 159.78, 220: 172.99, 199: 207.62, 252: 191.90, 242: 171.54, 320: 177.50}
    runs = [off(1, 222.47)]
    runs += [on(1, tps, k) for k, tps in enumerate(lengths.values(), start=2)]
    runs += [off(4, 566.21), on(4, 447.9, 2), on(4, 426.46, 3)]
    found = find(study(*runs))
    measured_m = sorted(round(p.multiplier, 3) for a in found.arms for p in a.points)
    assert measured_m == [0.718, 0.753, 0.771, 0.778, 0.791, 0.798, 0.863, 0.933]
    answer = compare_answer(found, None)[0]
    assert (
        "No arm is ahead at any load: leave it off; the best, eagle3:4 at 1, is 0.933×." in answer
    )


def test_a_win_anywhere_is_not_leave_it_off() -> None:
    assert "leave it off" not in compare_answer(measured({1: (100, 110), 2: (100, 90)}), None)[0]


# C60: tau 3.0 at a step 3.2 times as long loses, and the advice on trees is printed
def test_c60_a_tree_at_load_carries_the_advice() -> None:
    runs = [off(8, 100.0, graph_max_batch=2), on(8, 94.0, graph_max_batch=2, draft_topk=10)]
    found = find(study(*runs))
    notes = found.comparison.notes
    assert any("advise no tree" in n for n in notes)
    assert any("both ran without graphs above 2" in n for n in notes)
    assert found.arms[0].points[0].multiplier == pytest.approx(3.0 / 3.2, abs=5e-3)


# C61: a graph limit in one arm alone leaves 20 out, in both it keeps it
def test_c61_rows_above_a_limit_of_one_arm_take_no_part() -> None:
    loads = (1, 2, 20)
    one = find(study(*(off(x) for x in loads), *(on(x, graph_max_batch=2) for x in loads)))
    assert [p.load for p in one.arms[0].points] == [1, 2]
    blocked = [m for m in next_measurements(one) if m.why is Why.BLOCKED]
    assert [m.load for m in blocked] == [20]
    runs = [make(x, graph_max_batch=2) for x in loads for make in (off, on)]
    both = find(study(*runs))
    assert [p.load for p in both.arms[0].points] == [1, 2, 20]
    assert any("without graphs above 2" in n for n in both.comparison.notes)


# C64: +2 % on one launch each is within noise, and three launches are asked for
def test_c64_two_percent_on_one_launch_is_within_noise() -> None:
    found = measured({4: (100, 102)})
    answer = compare_answer(found, None)[0]
    assert answer.startswith("eagle3:4 is within noise at 4 concurrent.")
    assert "At 4 the difference is up to 5 %: within noise of one launch." in answer
    assert "three are needed" in answer
    (one, *_) = next_measurements(found, 4)
    assert "three runs an arm" in sentence(one)
    (line,) = crossing_lines(found)
    assert line == (
        "eagle3:4: within noise at 4, the only load measured in both; elsewhere nothing was."
    )
    assert [p.mark() for p in found.arms[0].points] == ["within noise, one run"]
    assert "1.02× (within noise) on one run" in decision.verdict(found, 4).sentence
    (line,) = crossing_lines(measured({1: (100, 140), 2: (100, 100.5), 4: (100, 102)}))
    assert "stays ahead from 1 to 4, though too close to call at 2 and within noise at 4" in line
    (line,) = crossing_lines(measured({1: (100, 97), 4: (100, 96)}))
    assert "is within noise from 1 to 4" in line
    line = crossing_lines(measured({2: (100, 130), 4: (100, 98)}))[0]
    assert "at 4 the gain is -2.0 % with one run each: within noise" in line


# C65: gains may persist at high load; nothing switches off above a built-in number
def test_c65_no_built_in_limit() -> None:
    found = measured({64: (1000, 1150), 200: (2000, 2200)})
    (line,) = crossing_lines(found)
    assert (
        line == "eagle3:4: stays ahead from 64 to 200, no crossing; beyond, nothing was measured."
    )
    assert next_measurements(found)[0].load == 400
