"""The monitor's sentences, cards and figures from known windows."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lib.estimate import Basis, Estimate
from lib.report import monitor_figures as figures
from lib.report import monitor_text as text
from lib.run import Slo
from lib.serving.alerts import Alert
from lib.serving.metrics import snapshot
from lib.serving.plan import Plan
from lib.serving.windows import Window, window
from tests.unit.serving.metrics_standin import histogram, vllm

TTFT = "vllm:time_to_first_token_seconds"
NOON_S = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()


def counted(rounds: int) -> str:
    """After so many rounds at K = 3: one token in two accepted at each next position."""
    positions = (rounds // 2, rounds // 4, rounds // 8)
    accepted = sum(positions)
    done = rounds // 10
    return vllm(
        rounds, 3 * rounds, accepted, rounds + accepted, done, positions, running=4
    ) + histogram(TTFT, {0.1: done // 2, 0.5: done}, done, 0.2 * done)


def live(at_s: float = NOON_S, rounds: int = 800, seconds: float = 5.0) -> Window:
    first = snapshot("m", counted(0), at_s)
    return window("m", first, snapshot("m", counted(rounds), at_s + seconds))


def measured(
    value: float, unit: str = "", low: float | None = None, high: float | None = None
) -> Estimate:
    return Estimate(value, unit, Basis.MEASURED, "3 runs", low, high)


PLAN = Plan(
    "mine",
    "eagle3:3",
    8.0,
    tau=measured(2.5, "tokens", 2.4, 2.6),
    tpot_ms=measured(7.5, "ms"),
    output_tps=measured(1024, "tok/s"),
    usd_per_million=measured(0.81, "$ per 1M output tokens"),
    usd_per_hour=3.0,
    sources=("study mine: 3 runs",),
)
SHOWN = text.quantities(3.0)
BY_KEY = {q.key: q for q in SHOWN}


def test_a_window_in_numbers() -> None:
    now = live()
    assert BY_KEY["tau"].of(now) == pytest.approx(1.875)
    # 1,500 tokens in 5 s at $3 an hour.
    assert BY_KEY["output_tps"].of(now) == pytest.approx(300)
    assert BY_KEY[text.USD].of(now) == pytest.approx(3e6 / (3600 * 300))
    assert BY_KEY["ttft_ms"].of(now) == pytest.approx(200)
    assert text.quantities(None)[-1].of(now) is None
    assert BY_KEY["tau"].plan_text(PLAN) == "2.50 (2.40–2.60)"
    assert BY_KEY["alpha"].plan_text(PLAN) == BY_KEY["tau"].plan_text(None) == ""


def test_the_answer_says_how_it_stands() -> None:
    now = live()
    sentence, estimate = text.answer(now, "127.0.0.1:8000", PLAN, (), SHOWN)
    assert sentence == "As planned: τ 1.88, 300 tok/s, $2.78 per 1M output tokens."
    assert estimate is not None
    assert (estimate.value, estimate.basis) == (pytest.approx(1.875), Basis.MEASURED)
    assert estimate.source == "127.0.0.1:8000, 5 s of its counters"
    assert text.answer(now, "s", None, (), SHOWN)[0].startswith("Now: τ 1.88")
    two = (Alert("drafter_dead", "alert", "x"), Alert("restarted", "warning", "y"))
    assert text.answer(now, "s", PLAN, two, SHOWN)[0].startswith("1 alert, 1 warning: τ")
    few = (Alert("few_rounds", "note", "40 rounds"),)
    assert text.answer(now, "s", PLAN, few, SHOWN)[0].startswith("Now: τ")
    assert text.doubts(now, PLAN, few) == ("40 rounds",)
    bare = replace(now, counters=replace(now.counters, drafts=0, draft_tokens=0, accepted_tokens=0))
    assert text.answer(bare, "s", PLAN, (), SHOWN)[0] == (
        "No draft was counted: 300 tok/s, $2.78 per 1M output tokens."
    )
    assert text.answer(None, "s", PLAN, (), SHOWN) == (
        "Nothing was measured in the last minute.",
        None,
    )


def test_an_idle_server_claims_nothing() -> None:
    still = snapshot("m", counted(800).replace("running{", "running_{"), NOON_S)
    idle = window("m", still, replace(still, at_s=NOON_S + 5))
    idle = replace(idle, gauges=replace(idle.gauges, running=0.0))
    assert text.answer(idle, "s", PLAN, (), SHOWN) == ("Idle: nothing runs on s.", None)


def test_the_plan_in_a_line() -> None:
    first, sources = text.plan_lines(PLAN)
    assert first == (
        "eagle3:3 at 8: τ 2.50 (2.40–2.60), TPOT 7.50 ms, 1,020 tok/s, $0.810 per 1M output tokens."
    )
    assert sources == "study mine: 3 runs"
    assert text.live_line(live(), "s", SHOWN) == (
        "s, the last 5 s: τ 1.88, 300 tok/s, $2.78 per 1M output tokens."
    )


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(3.4, "3 s ago"), (119, "119 s ago"), (180, "3 min ago"), (9000, "2 h ago")],
)
def test_ages(seconds: float, said: str) -> None:
    assert text.ago(seconds) == said


def test_a_line_breaks_where_nothing_was_scraped() -> None:
    tracks = {"a:1": (live(), live(NOON_S + 5), live(NOON_S + 60)), "b:2": (live(),)}
    times = figures.Times(NOON_S, NOON_S + 900)
    figure = figures.quantity_figure(tracks, BY_KEY["tau"], PLAN, times, "light")
    first, second = figure.data
    assert list(first.y) == [pytest.approx(1.875)] * 2 + [None, pytest.approx(1.875)]
    assert first.x[0] == "2026-03-01 12:00:05"
    assert len(second.y) == 1
    band, line = figure.layout.shapes
    assert (band.y0, band.y1) == (2.4, 2.6)
    assert line.y0 == line.y1 == 2.5
    words = [a.text for a in figure.layout.annotations]
    assert words[0] == "plan"
    assert "a:1" in words[1]
    alt = figures.quantity_alt(tracks, BY_KEY["tau"], PLAN)
    assert "now a:1 1.88, b:2 1.88. The plan has 2.50 (2.40–2.60)." in alt


def test_many_servers_are_named_in_rows() -> None:
    tracks = {f"10.0.0.{n}:8000": (live(),) for n in range(10)}
    figure = figures.position_figure(tracks, "light")
    (names,) = figure.layout.annotations
    assert names.text.count("<br>") == 2
    assert names.text.endswith("and 2 more")
    assert figure.layout.margin.t == 58


def test_names_of_servers_are_data() -> None:
    tracks = {"<b>%{x}": (live(),), "b": (live(),)}
    times = figures.Times(NOON_S, NOON_S + 900)
    for figure in (
        figures.quantity_figure(tracks, BY_KEY["tau"], None, times, "dark"),
        figures.goodput_figure(tracks, Slo(ttft_ms=100), times, "dark"),
        figures.position_figure(tracks, "dark"),
    ):
        assert "<b>%{x}" not in figure.to_json()


def test_acceptance_by_position_is_a_ratio_of_sums() -> None:
    windows = (live(), live(NOON_S + 5, 80))
    assert figures.position_shares(windows) == [
        pytest.approx((400 + 40) / 880),
        pytest.approx((200 + 20) / 880),
        pytest.approx((100 + 10) / 880),
    ]
    assert figures.position_shares(()) == []
    assert figures.position_columns({"a": windows})["position"] == [1, 2, 3]


def test_draft_lengths_that_vary_are_told() -> None:
    texts = ((0, 0, (0, 0)), (100, 200, (80, 40)), (200, 300, (160, 40)))
    scrapes = [
        snapshot("m", vllm(n, drafted, sum(taken), 300, positions=taken), 5.0 * at)
        for at, (n, drafted, taken) in enumerate(texts)
    ]
    both, one = (window("m", *scrapes[at : at + 2]) for at in (0, 1))
    assert not figures.lengths_vary([both])
    assert figures.lengths_vary([both, one])
    assert figures.position_shares([both, one]) == [0.8, 0.2]
    assert not figures.lengths_vary([])


def test_goodput_lies_between_two_lines_and_says_why() -> None:
    slo = Slo(ttft_ms=300)
    (at_s, (low, high)), *_ = figures.goodput_rows((live(),), slo)
    assert at_s == NOON_S + 5
    assert 0 <= low < high <= 16
    (line,) = text.undecided_lines({"a": (live(),)}, slo)
    assert line.startswith("a: undecided between the two lines. TTFT")
    columns = figures.goodput_columns({"a": (live(),)}, slo)
    assert columns["goodput req/s, at most"] == [high]


def test_every_window_goes_home_as_columns() -> None:
    columns = figures.columns({"a": (live(), live(NOON_S + 5))}, SHOWN)
    assert {len(c) for c in columns.values()} == {2}
    assert columns["tau"] == [pytest.approx(1.875)] * 2
    table = text.window_columns(live(), SHOWN, PLAN)
    assert table["measured"][0] == "1.88"
    assert table["plan"][0] == "2.50 (2.40–2.60)"
