"""Figures over load show measured points, mark crossings and never draw beyond the range."""

import math
from collections.abc import Mapping, Sequence
from itertools import count

import pytest

from lib.estimate import Basis
from lib.evidence.findings import Findings, find, load_kinds
from lib.money.pricing import Rate, price_pairs
from lib.report.format import shortened
from lib.report.load_figures import (
    HEIGHT,
    MEASURED,
    at_load,
    measured_figure,
    multiplier_figure,
    off_labels,
    recorded,
    runs_by_arm,
)
from lib.report.price_figures import price_figure
from lib.report.price_text import price_answer, saving_lines
from lib.report.sentences import compare_answer, crossing_lines
from lib.report.style import BASELINE, HUES, arm_colors
from lib.report.tables import measured_table, multiplier_table, price_table
from lib.run import LoadKind, Run, SpecState, Study

ids = count()
L4 = {1: (74.7, 85.1), 2: (127.2, 108.7), 4: (209.2, 133.8), 8: (309.4, 161.6)}
PAID = Rate(usd_per_gpu_hour=1.0, gpu_count=1, utilization=0.5)


def study(
    table: Mapping[float, tuple[float | Sequence[float], float | Sequence[float]]],
    kind: LoadKind = LoadKind.CONCURRENCY,
    method: str = "eagle3",
) -> Findings:
    runs = []
    for load, (off, on) in table.items():
        for k, values in ((0, off), (4, on)):
            for tps in values if isinstance(values, Sequence) else (values,):
                spec: dict[str, object] = (
                    {
                        "spec_state": SpecState.ON,
                        "draft_method": method,
                        "num_speculative_tokens": k,
                    }
                    if k
                    else {"spec_state": SpecState.OFF}
                )
                runs.append(
                    Run(
                        run_id=f"f{next(ids)}",
                        load_kind=kind,
                        offered_load=load,
                        output_tps=tps,
                        tpot_ms_mean=1000 / tps,
                        **spec,  # type: ignore[arg-type]
                    )
                )
    return find(Study("s", tuple(runs)))


REPEATED = {
    8: ([100, 101, 99], [150, 152, 149]),
    16: ([200, 202, 198], [230, 229, 233]),
    32: ([300, 303, 297], [240, 243, 238]),
}


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_multiplier_figure(mode: str) -> None:
    figure = multiplier_figure(study(REPEATED), mode)  # type: ignore[arg-type]
    lines = [t for t in figure.data if t.mode == "lines+markers"]
    assert len(lines) == 1
    assert list(lines[0].x) == [8, 16, 32]
    assert lines[0].y[0] == pytest.approx(1.503, abs=5e-3)
    bands = [t for t in figure.data if t.fill == "toself" and t.fillcolor != "rgba(0,0,0,0)"]
    assert len(bands) == 1
    assert max(bands[0].x) == 32
    assert figure.layout.height == HEIGHT
    texts = [a.text for a in figure.layout.annotations]
    assert any(t.startswith("crosses at ") for t in texts)
    assert "<b>eagle3:4</b>" in texts
    assert "not measured" in texts


def test_one_run_an_arm_has_no_band() -> None:
    figure = multiplier_figure(study(L4), "light")
    bands = [t for t in figure.data if t.fill == "toself" and t.fillcolor != "rgba(0,0,0,0)"]
    assert bands == []


def test_an_infinite_rate_is_in_no_curve() -> None:
    found = study({1: (10, 20), math.inf: (100, 120)}, LoadKind.REQUEST_RATE)
    for figure in (
        multiplier_figure(found, "light"),
        measured_figure(found, MEASURED[0], "light"),
        price_figure(
            {"eagle3:4": price_pairs(found, found.arms[0], PAID)}, off_labels(found), "light", "x"
        ),
    ):
        for trace in figure.data:
            assert all(math.isfinite(x) for x in trace.x)


def test_names_are_shown_as_typed() -> None:
    evil = "<a href=//e.example>z</a>$x$"
    figure = multiplier_figure(study(L4, method=evil), "light")
    text = str(figure.to_plotly_json())
    assert "<a" not in text
    assert "$x$" not in text


def test_measured_figure_has_a_dot_a_run() -> None:
    found = study(REPEATED)
    figure = measured_figure(found, MEASURED[0], "light")
    dots = [t for t in figure.data if t.mode == "markers"]
    assert [len(t.x) for t in dots] == [9, 9]
    assert len(measured_table(found, MEASURED[0])["arm"]) == 18


def test_given_values_replace_the_recorded_ones() -> None:
    found = study(L4)
    run = runs_by_arm(found)["off"][0]
    goodput = next(m for m in MEASURED if m.attribute == "goodput_rps")
    assert recorded(run, goodput) is None
    assert recorded(run, goodput, {run.run_id: 2.5}) == 2.5
    assert recorded(run, goodput, {}) is None


def test_price_figure_leaves_out_what_has_no_price() -> None:
    found = study(L4)
    none = {a.label: price_pairs(found, a, Rate()) for a in found.arms}
    assert len(price_figure(none, off_labels(found), "light", "x").data) == 0
    some = {a.label: price_pairs(found, a, PAID) for a in found.arms}
    figure = price_figure(some, off_labels(found), "light", "x")
    assert [t.name for t in figure.data] == ["off", "eagle3:4"]
    assert figure.layout.yaxis.ticktext[0].startswith("$")
    table = price_table(some)
    assert len({len(c) for c in table.values()}) == 1
    assert table["not priced because"] == [""] * 4


def test_colours_are_the_arms_own() -> None:
    colors = arm_colors(["off", "eagle3:4", "mtp:4", "adaptive"], "light")
    assert colors["off"] == BASELINE["light"]
    assert colors["eagle3:4"] == HUES["light"][3]
    assert len(set(colors.values())) == 4
    again = arm_colors(["off", "eagle3:4"], "light")
    assert again["eagle3:4"] == colors["eagle3:4"]


def test_the_answer_of_a_published_sweep() -> None:
    sentence, estimate = compare_answer(study(L4, LoadKind.BATCH, "draft_model"), None)
    assert sentence == (
        "draft_model:4 is ahead at batch 1 and is behind at 2 to 8 (crosses at 1.369, between "
        "measured points). One run an arm: three are needed for an interval."
    )
    assert estimate is not None
    assert estimate.value == pytest.approx(85.1 / 74.7)
    assert estimate.low is None


def test_the_answer_with_repeats() -> None:
    found = study(REPEATED)
    sentence, estimate = compare_answer(found, 32)
    assert sentence.startswith("eagle3:4 wins at 8 to 16 and loses at 32 concurrent (crosses at ")
    assert "One run" not in sentence
    assert estimate is not None
    assert estimate.high is not None
    assert estimate.high < 1
    (line,) = crossing_lines(found)
    assert "stops paying between 16 and 32" in line
    assert "95 %" in line


def test_no_crossing_is_said_with_the_range() -> None:
    (line,) = crossing_lines(study({1: (10, 20), 2: (20, 30)}))
    assert line == ("eagle3:4: stays ahead from 1 to 2, no crossing; beyond, nothing was measured.")


def test_a_wide_bracket_gets_no_point() -> None:
    found = study({1: (10, 20), 8: (40, 30)})
    (line,) = crossing_lines(found)
    assert "measure at 2.83" in line
    assert "crosses between 1 and 8" in compare_answer(found, None)[0]


def test_table_has_one_row_a_point() -> None:
    table = multiplier_table(study(REPEATED))
    assert {len(c) for c in table.values()} == {3}
    assert table["mark (95 % each)"][0] == "▲ wins"
    assert table["SLO off"] == ["unknown"] * 3


def test_price_answer() -> None:
    found = study(L4)
    priced = {a.label: price_pairs(found, a, PAID) for a in found.arms}
    sentence, estimate, pair = price_answer(found, priced, 1)
    assert sentence == (
        "$6.53 instead of $7.44 per 1M output tokens at 1 concurrent with eagle3:4: 12 % less "
        "(one run an arm, so no interval); SLO unknown."
    )
    assert estimate is not None
    assert estimate.basis is Basis.MEASURED
    assert pair is not None
    assert price_answer(found, priced, 3)[1] is None
    assert "Name your operating load" in price_answer(found, priced, None)[0]
    nothing = {a.label: price_pairs(found, a, Rate()) for a in found.arms}
    assert "type a $/GPU-h" in price_answer(found, nothing, 1)[0]


def test_three_readings_of_the_saving() -> None:
    found = study({8: (100, 250)})
    rate = Rate(usd_per_gpu_hour=5.0, gpu_count=1, utilization=1.0)
    (pair,) = price_pairs(found, found.arms[0], rate)
    assert saving_lines(pair, 10e6, 1.0) == [
        "Hours scale with tokens: saves $2,535 a month.",
        "Whole servers stay on (2 without, 1 with): saves $3,650 a month.",
        "One server stays on either way: saves $0 a month; "
        "off falls short of the demand by 13.6 %.",
        "Capacity is committed (2 servers paid either way): $0 in cash; "
        "room for 1.08 million more output tokens an hour.",
    ]
    # The first reading is the difference of the two prices per 1M, at any utilisation.
    (half,) = price_pairs(found, found.arms[0], Rate(5.0, 1, 0.5))
    assert half.complete is not None
    off, on, _ = half.complete
    monthly = (off.value - on.value) * 10 * 365 / 12
    assert saving_lines(half, 10e6, 0.5)[0] == (
        f"Hours scale with tokens: saves ${monthly:,.0f} a month."
    )
    assert "Type the tokens a day" in saving_lines(pair, None, 1.0)[0]


def test_loads_have_their_unit() -> None:
    assert at_load(8, study(L4)) == "8 concurrent"
    assert at_load(8, study(L4, LoadKind.BATCH)) == "batch 8"
    assert at_load(math.inf, study(L4, LoadKind.REQUEST_RATE)) == "no request limit"
    assert at_load(4, study(L4, LoadKind.REQUEST_RATE)) == "4 requests/s"


def test_off_runs_that_must_not_mix_have_their_own_curve() -> None:
    runs = []
    for dataset, off_tps, on_tps in (("chat", 100, 150), ("code", 300, 600)):
        runs.append(
            Run(
                run_id=f"o{dataset}",
                load_kind=LoadKind.CONCURRENCY,
                offered_load=4,
                output_tps=off_tps,
                dataset=dataset,
                spec_state=SpecState.OFF,
            )
        )
        runs.append(
            Run(
                run_id=f"n{dataset}",
                load_kind=LoadKind.CONCURRENCY,
                offered_load=4,
                output_tps=on_tps,
                dataset=dataset,
                spec_state=SpecState.ON,
                draft_method="mtp",
                num_speculative_tokens=2,
            )
        )
    found = find(Study("s", tuple(runs)))
    labels = off_labels(found)
    assert len(set(labels.values())) == 2
    by_arm = runs_by_arm(found)
    assert [[r.output_tps for r in by_arm[name]] for name in labels.values()] == [[100], [300]]
    priced = {a.label: price_pairs(found, a, PAID) for a in found.arms}
    figure = price_figure(priced, labels, "light", "x")
    drawn = {t.name: t.y[0] for t in figure.data}
    assert len(drawn) == 4
    for label, arm in labels.items():
        (pair,) = priced[label]
        assert pair.off.price is not None
        assert drawn[arm] == pair.off.price.value


def test_a_kind_of_load_is_looked_at_alone() -> None:
    runs = (
        *study({4: (100, 80), 8: (200, 150)}).study.runs,
        *study({4: (2000, 4800)}, LoadKind.REQUEST_RATE).study.runs,
    )
    both = Study("s", runs)
    assert load_kinds(both) == (LoadKind.CONCURRENCY, LoadKind.REQUEST_RATE)
    slow = find(both, kind=LoadKind.CONCURRENCY)
    assert slow.loads == (4, 8)
    assert slow.arms[0].points[0].multiplier == pytest.approx(0.8)
    fast = find(both, kind=LoadKind.REQUEST_RATE)
    assert fast.arms[0].points[0].multiplier == pytest.approx(2.4)
    assert sorted(r.output_tps or 0 for r in runs_by_arm(slow)["off"]) == [100, 200]


def test_a_long_name_beside_a_curve_keeps_its_ends() -> None:
    long = "a_method_whose_name_goes_on_and_on"
    figure = multiplier_figure(study(L4, method=long), "light")
    drawn = [a.text for a in figure.layout.annotations if a.text.startswith("<b>")]
    assert drawn == ["<b>a_method_…_and_on:4</b>"]
    assert f"{long}:4" in str(figure.to_plotly_json())
    assert figure.layout.margin.r < 200


def test_names_that_would_look_alike_stay_whole() -> None:
    pair = ("eagle3_on_code_revision_2:4", "eagle3_on_chat_revision_2:4")
    assert shortened(pair) == {n: n for n in pair}
    assert shortened(("off", "eagle3:4")) == {"off": "off", "eagle3:4": "eagle3:4"}
    escaped = "&#60;b&#62; a long name of data:4"
    assert shortened((escaped,)) == {escaped: escaped}


def test_the_crossing_is_named_where_there_is_room() -> None:
    first = multiplier_figure(study({1: (10, 12), 2: (10, 8), 4: (10, 5)}), "light")
    last = multiplier_figure(study({1: (10, 15), 2: (10, 13), 4: (10, 11), 8: (10, 9.9)}), "light")

    def mark(figure: object) -> object:
        found = figure.layout.annotations  # type: ignore[attr-defined]
        return next(a for a in found if a.text.startswith("crosses at"))

    assert mark(first).xanchor == "left"  # type: ignore[attr-defined]
    assert mark(last).xanchor == "right"  # type: ignore[attr-defined]
    assert mark(last).ay < 0  # type: ignore[attr-defined]


def test_an_infinite_rate_has_no_unit() -> None:
    found = study({math.inf: (100, 130)}, LoadKind.REQUEST_RATE)
    assert "is ahead at no limit on the request rate." in compare_answer(found, None)[0]
