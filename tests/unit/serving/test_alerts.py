"""Every alert tripped once and green once, and what lost acceptance costs a day."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.estimate import Basis, Estimate
from lib.run import LoadKind
from lib.serving.alerts import SEVERITIES, Alert, alerts
from lib.serving.history import labelled, together
from lib.serving.metrics import Counters, Gauges
from lib.serving.plan import Plan
from lib.serving.windows import Window

QUALIFIED = Plan(
    "s",
    "K=5",
    16.0,
    LoadKind.CONCURRENCY,
    tau=Estimate(3.51, "tokens", Basis.MEASURED, "3 runs of K=5 at 16"),
    alpha=Estimate(0.779, "", Basis.MEASURED, "3 runs of K=5 at 16"),
    usd_per_hour=2.0,
    off_usd_per_hour=2.0,
    gamma=5,
    c=0.1,
    v=1.0,
)


def estimate(value: float, low: float | None = None, high: float | None = None) -> Estimate:
    return Estimate(value, "plain steps", Basis.DERIVED, "K=5 and off", low, high)


def engine(
    tau: float,
    k: int = 5,
    *,
    rounds: int = 10_000,
    running: float = 16,
    before: float | None = None,
    share: float = 1.0,
    label: str = "engine 0",
    **stated: object,
) -> Window:
    """10 s of an engine that drafts `k` a round; `share` of its output comes from rounds."""
    accepted = round((tau - 1) * rounds)
    made = rounds + accepted
    c = Counters(rounds, rounds * k, accepted, output_tokens=round(made / share), completed=10)
    found = Window(label, "vLLM", 0.0, 10.0, c, Gauges(running=running), before or running)
    return replace(found, **stated)  # type: ignore[arg-type]


def server(*engines: Window, shown: str = "a:8000") -> Window:
    return labelled(together(engines), shown)


def fleet(*engines: Window) -> Window:
    return together([server(*engines)])


def codes(found: tuple[Alert, ...]) -> set[str]:
    return {a.code for a in found}


def one(code: str, found: tuple[Alert, ...]) -> Alert:
    (alert,) = (a for a in found if a.code == code)
    return alert


@pytest.mark.parametrize(
    ("tau", "severity", "said"),
    [
        (3.51, None, ""),
        (2.82, "warning", "19.7% less. A round costs 1.5 plain steps: S 1.88."),
        (2.69, "warning", "23.4% less. A round costs 1.5 plain steps: S 1.79."),
        (2.45, "warning", "30.2% less. A round costs 1.5 plain steps: S 1.63."),
        (1.00, "alert", "The drafter is dead: τ 1.00"),
    ],
)
def test_a_length_below_its_qualified_value(tau: float, severity: str | None, said: str) -> None:
    found = alerts([fleet(engine(tau))], QUALIFIED)
    assert (found[0].severity if found else None) == severity
    assert {a.severity == "alert" for a in found} <= {severity == "alert"}, "only the last is red"
    if found:
        assert said in found[0].sentence
        usd = found[0].usd_per_day
        assert usd is not None
        assert usd.value == pytest.approx(48 * (1 - tau / 3.51), rel=1e-3)
        assert usd.basis is Basis.DERIVED
        assert "at a fixed round cost" in usd.how
    if tau == 1.00:
        assert codes(found) == {"drafter_dead", "below_break_even"}
        assert "Switch speculation off" in found[0].sentence


def test_lost_acceptance_is_the_price_now_less_that_at_the_plans_tau() -> None:
    (found,) = alerts([fleet(engine(2.82))], QUALIFIED)
    window = engine(2.82)
    tps = window.output_tps or 0.0
    now = 2.0 * 1e6 / (3600 * tps)
    then = now * 2.82 / 3.51
    assert found.usd_per_day is not None
    assert found.usd_per_day.value == pytest.approx((now - then) * tps * 86_400 / 1e6)
    assert found.usd_per_day.low is not None
    assert found.usd_per_day.high is not None
    assert found.usd_per_day.low < found.usd_per_day.value < found.usd_per_day.high


@given(st.floats(1.1, 6.0), st.floats(0.01, 1000))
def test_a_loss_is_never_negative_nor_above_the_price_of_the_day(tau: float, usd: float) -> None:
    found = alerts([fleet(engine(tau))], replace(QUALIFIED, usd_per_hour=usd))
    for alert in found:
        if alert.code == "acceptance_down":
            assert alert.usd_per_day is not None
            assert 0 < alert.usd_per_day.value < 24 * usd


@pytest.mark.parametrize("rate", [{"usd_per_hour": None}, {"tau": None}])
def test_no_price_no_dollars(rate: dict[str, None]) -> None:
    for alert in alerts([fleet(engine(1.0))], replace(QUALIFIED, **rate)):  # type: ignore[arg-type]
        assert alert.usd_per_day is None


MEASURED = replace(QUALIFIED, round_cost={8.0: estimate(1.4), 32.0: estimate(2.6, 2.4, 2.8)})


@pytest.mark.parametrize(
    ("tau", "running", "code"),
    [
        (3.4, 8, None),
        (3.4, 8.4, None),  # as good as 8
        (3.4, 16, None),  # between two measured loads, above both
        (2.5, 16, "too_close"),  # between their costs
        (1.2, 16, "below_break_even"),
        (2.3, 32, "below_break_even"),
        (2.7, 32, "too_close"),
        (1.395, 8, "too_close"),  # one run an arm: within 1 %
        (1.3, 8, "below_break_even"),
        (3.4, 64, "unmeasured_load"),
        (1.2, 64, "unmeasured_load"),  # outside nothing is claimed
        (3.4, 4, "unmeasured_load"),
    ],
)
def test_tau_against_the_cost_of_a_round(tau: float, running: float, code: str | None) -> None:
    found = alerts([fleet(engine(tau, running=running))], replace(MEASURED, tau=None))
    assert codes(found) == ({code} if code else set())


def test_a_fall_is_read_beside_the_round_costs_around_the_load() -> None:
    found = one("acceptance_down", alerts([fleet(engine(3.0))], MEASURED))
    assert "A round costs 1.4 to 2.8 plain steps: S 1.07 to 2.14." in found.sentence


def test_below_break_even_costs_what_off_would_save() -> None:
    found = one("below_break_even", alerts([fleet(engine(2.3, running=32))], MEASURED))
    assert found.usd_per_day is not None
    assert found.usd_per_day.value == pytest.approx(48 * (1 - 2.3 / 2.6))
    by_theorem = one("below_break_even", alerts([fleet(engine(1.2))], QUALIFIED))
    assert by_theorem.usd_per_day is None, "no measured round cost, no price"


def test_few_rounds_settle_nothing() -> None:
    assert codes(alerts([fleet(engine(1.0, rounds=50))], QUALIFIED)) == {"few_rounds"}
    assert codes(alerts([fleet(engine(3.3, rounds=100))], QUALIFIED)) == set(), "noise, not a fall"


def test_steps_without_drafts_leave_the_length_blind() -> None:
    found = alerts([fleet(engine(2.5, rounds=1000, share=0.25))], QUALIFIED)
    assert "25% of the output: over all steps 1.176 tokens" in one("few_drafted", found).sentence
    assert one("acceptance_down", found).usd_per_day is None
    assert "few_drafted" not in codes(alerts([fleet(engine(3.5))], QUALIFIED))


def test_a_gauge_is_a_point_sample_and_stale_when_idle() -> None:
    busy = Window(
        "", "SGLang", 0.0, 10.0, Counters(output_tokens=100), Gauges(running=4, tau=2.0), 4
    )
    found = alerts([fleet(busy)], QUALIFIED)
    assert codes(found) == {"acceptance_down", "point_sample"}
    assert one("acceptance_down", found).usd_per_day is None
    idle = replace(
        busy,
        gauges=Gauges(running=0, tau=2.0, stated_tps=200.0),
        counters=Counters(output_tokens=0),
    )
    (said,) = alerts([fleet(idle)], QUALIFIED)
    assert (said.code, said.severity) == ("idle", "note")


def test_a_server_that_does_not_speculate_as_planned() -> None:
    plain = engine(1.0, counters=Counters(output_tokens=500))
    found = one("not_speculating", alerts([fleet(plain)], QUALIFIED))
    assert found.severity == "warning"
    still = engine(1.0, counters=Counters(0, 0, 0, output_tokens=500))
    assert codes(alerts([fleet(still)], QUALIFIED)) == {"not_speculating"}
    assert alerts([fleet(plain)]) == ()
    uncounted = replace(QUALIFIED, tau=None, alpha=None, gamma=5)
    assert codes(alerts([fleet(plain)], uncounted)) == {"not_speculating"}
    assert alerts([fleet(plain)], replace(uncounted, gamma=0)) == ()
    assert codes(alerts([fleet(plain)], SCHEDULED)) == {"not_speculating"}
    at_k_0 = engine(1.0, running=32, counters=Counters(output_tokens=500))
    assert alerts([fleet(at_k_0)], SCHEDULED) == ()


def test_another_draft_length_is_not_compared() -> None:
    found = alerts([fleet(engine(1.8, k=2))], QUALIFIED)
    assert codes(found) == {"other_draft_length"}
    assert "drafts 2 a round" in found[0].sentence


SCHEDULED = replace(QUALIFIED, schedule=((1, 8, 5), (9, 24, 2), (25, 64, 0)))


@pytest.mark.parametrize(
    ("running", "k", "said"),
    [
        (4, 5, ""),
        (16, 2, ""),
        (16, 5, "at 16 running it has K = 2 and 5 are drafted"),
        (32, 5, "at 32 running it has K = 0 and drafts are counted"),
        (100, 5, "at 100 running it has K = 0 and drafts are counted"),
        (32, 0, ""),
        (4, 0, "at 4 running it has K = 5 and nothing is drafted"),
    ],
)
def test_a_schedule_that_is_not_run(running: float, k: int, said: str) -> None:
    drafting = engine(1.8, k=max(k, 1), running=running)
    still = replace(drafting, counters=Counters(0, 0, 0, output_tokens=500))
    window = fleet(still if k == 0 else drafting)
    found = alerts([window, window], SCHEDULED)
    assert ("schedule_inactive" in codes(found)) is bool(said)
    if said:
        assert said in one("schedule_inactive", found).sentence
    assert "schedule_inactive" not in codes(alerts([window], SCHEDULED)), "one window may be chance"
    assert "schedule_inactive" not in codes(alerts([window, window], QUALIFIED))


def test_a_batch_that_crosses_a_range_says_nothing() -> None:
    window = fleet(engine(1.8, running=32, before=4))
    assert "schedule_inactive" not in codes(alerts([window, window], SCHEDULED))


def test_a_schedule_under_data_parallel_is_lost() -> None:
    ranks = [engine(3.5, label=f"model_name m, engine {i}", running=4) for i in range(2)]
    found = one("schedule_lost", alerts([fleet(*ranks)], SCHEDULED))
    assert "data parallel 2 and runs K = 5 at every batch" in found.sentence
    stated = replace(SCHEDULED, data_parallel=4)
    assert "schedule_lost" in codes(alerts([fleet(engine(3.5, running=4))], stated))
    assert "schedule_lost" not in codes(alerts([fleet(engine(3.5, running=4))], SCHEDULED))
    assert "schedule_lost" not in codes(alerts([fleet(*ranks)], QUALIFIED))


def test_a_restart_counts_while_it_is_in_the_windows() -> None:
    window = replace(fleet(engine(3.5)), began_at_s=1000.0)
    found = one("restarted", alerts([window], QUALIFIED, restarts={"a:8000": 1005.0}))
    assert found.severity == "warning"
    assert found.sentence.startswith("a:8000 was restarted")
    assert alerts([window], QUALIFIED, restarts={"a:8000": 990.0}) == ()
    seen = together([replace(server(engine(3.5)), restarts=1)])
    assert codes(alerts([seen], QUALIFIED)) == {"restarted"}


def test_a_failing_scrape_is_said_without_any_window() -> None:
    (found,) = alerts([], None, {"a:8000": "a:8000: nothing listens there"})
    assert (found.code, found.severity) == ("scrape_failing", "alert")
    assert found.sentence == "Scrape failing: a:8000: nothing listens there"
    assert alerts([], QUALIFIED, {}) == ()


def test_of_several_servers_the_bad_one_is_named_and_the_worst_comes_first() -> None:
    good, dead = server(engine(3.5)), server(engine(1.0), shown="b:8000")
    found = alerts([together([good, dead])], QUALIFIED, {}, {"a:8000": 5.0})
    assert all(a.sentence.startswith("b:8000: ") for a in found if a.code != "restarted")
    ranks = [SEVERITIES.index(a.severity) for a in found]
    assert ranks == sorted(ranks)
    assert found[0].severity == "alert"


def test_without_a_plan_a_dead_drafter_is_seen_all_the_same() -> None:
    assert codes(alerts([fleet(engine(1.0))])) == {"drafter_dead"}
    assert alerts([fleet(engine(1.5))]) == ()
