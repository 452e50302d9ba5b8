"""Each failure mode trips once, is green once and is open where something is missing to tell."""

from dataclasses import replace

import pytest

from lib import decision
from lib.decision import Guardrail, Light
from lib.evidence.findings import Findings, find
from lib.evidence.schedule import build
from lib.money.pricing import Rate, price_pairs
from lib.run import Run, SpecState, Study
from tests.unit.test_decision import CURVE, run, sweep

LATENCY, LOAD, CLAIM, COST, STATIC = range(5)


def rail(
    number: int,
    found: Findings,
    load: float | None = None,
    *,
    latency: Findings | None = None,
    rate: Rate | None = None,
    seqs: int | None = None,
    claimed: float | None = None,
    schedule: object = "none",
) -> Guardrail:
    pairs = [
        p for a in found.arms for p in price_pairs(found, a, rate or Rate()) if p.on.load == load
    ]
    result = decision.verdict(found, load)
    return decision.guardrails(found, result, latency, pairs, schedule, claimed, seqs)[number]  # type: ignore[arg-type]


def latencies(off_ms: float, on_ms: float, **counts: object) -> tuple[Findings, Findings]:
    runs = []
    for wobble in (0.99, 1.0, 1.01):
        runs.append(run(8, 100 * wobble, tpot_ms_mean=off_ms * wobble))
        runs.append(run(8, 100 * wobble, 4, tpot_ms_mean=on_ms * wobble, **counts))
    study = Study("s", tuple(runs))
    return find(study), find(study, "tpot_ms")


def test_a_latency_loss_despite_tau() -> None:
    """12 ms against 10 ms is 20 % longer, at τ = 1 + 150/100 = 2.5."""
    found, latency = latencies(10, 12, drafts=100, draft_tokens=400, accepted_tokens=150)
    got = rail(LATENCY, found, 8, latency=latency)
    assert got.light is Light.TRIPPED
    assert got.said == "TPOT at 8 is 20 % longer with eagle3:4 despite τ 2.50."


def test_a_latency_gain_is_green_and_no_latency_is_open() -> None:
    found, latency = latencies(10, 8)
    assert rail(LATENCY, found, 8, latency=latency).light is Light.GREEN
    assert rail(LATENCY, found, 8).light is Light.OPEN
    close, close_latency = latencies(10, 10.01)
    got = rail(LATENCY, close, 8, latency=close_latency)
    assert got.light is Light.OPEN
    assert "its interval holds 1" in got.said


def test_a_gain_that_disappears_as_load_rises() -> None:
    got = rail(LOAD, sweep(CURVE))
    assert got.light is Light.TRIPPED
    assert got.said == "eagle3:4 wins at 1 (1.90×) and loses at 32 (0.80×)."


def test_a_gain_up_to_the_engines_limit_is_green() -> None:
    found = sweep({1: 1.9, 8: 1.5, 64: 1.2})  # the runs record max_num_seqs 64
    assert rail(LOAD, found).light is Light.GREEN
    assert "to 64, the engine's limit" in rail(LOAD, found).said
    above = rail(LOAD, found, seqs=256)
    assert above.light is Light.OPEN
    assert above.said == "Above 64 nothing was measured, and the engine goes to 256."
    unknown = sweep({1: 1.9, 8: 1.5}, max_num_seqs=None)
    assert "type max_num_seqs" in rail(LOAD, unknown).said


def test_one_run_an_arm_decides_no_load() -> None:
    got = rail(LOAD, sweep(CURVE, repeats=1))
    assert got.light is Light.OPEN
    assert "three runs an arm are needed" in got.said


@pytest.mark.parametrize(
    ("claimed", "light"),
    [(2.5, Light.TRIPPED), (1.9, Light.GREEN), (1.5, Light.GREEN), (None, Light.OPEN)],
)
def test_a_published_speedup_against_the_lowest_load(claimed: float | None, light: Light) -> None:
    """M 1.9 (1.86 to 1.94) at 1."""
    assert rail(CLAIM, sweep(CURVE), 16, claimed=claimed).light is light


def test_one_run_does_not_refute_a_claim() -> None:
    got = rail(CLAIM, sweep(CURVE, repeats=1), claimed=2.5)
    assert got.light is Light.OPEN
    assert "2.5× is claimed; eagle3:4 measures 1.90× at 1" in got.said


def test_throughput_gain_but_cost_regression() -> None:
    """$2 off, $2.60 with: 1.3× is needed and 1.2× measured."""
    found = sweep(CURVE)
    got = rail(COST, found, 8, rate=Rate(2.0, 1, 0.5, 0.6))
    assert got.light is Light.TRIPPED
    assert "1.30× is needed to break even: faster and dearer" in got.said
    assert rail(COST, found, 8, rate=Rate(2.0, 1, 0.5)).light is Light.GREEN
    assert rail(COST, found, 8, rate=Rate(2.0, 1, 0.5, 0.4)).light is Light.OPEN
    assert rail(COST, found, 32, rate=Rate(2.0, 1, 0.5)).light is Light.GREEN


def test_the_cost_is_open_without_a_load_or_a_price() -> None:
    found = sweep(CURVE)
    assert "Name your operating load" in rail(COST, found).said
    got = rail(COST, found, 8)
    assert got.light is Light.OPEN
    assert "type a $/GPU-h" in got.said


def scheduled(*cells: tuple[float, int, int, int, int], **fields: object) -> Findings:
    """Load, drafts, draft tokens, accepted and output tokens of a schedule's arm."""
    base = sweep({1: 1.5, 64: 1.1})
    extra: list[Run] = []
    for load, drafts, drafted, accepted, output in cells:
        one = run(load, 120 * load, 4, drafts=drafts, draft_tokens=drafted)
        extra.append(
            replace(
                one,
                schedule="[[1, 16, 4], [17, 64, 2]]",
                accepted_tokens=accepted,
                output_tokens=output,
                **fields,  # type: ignore[arg-type]
            )
        )
    return find(Study("s", (*base.study.runs, *extra)))


def test_a_schedule_that_does_not_follow_the_load() -> None:
    """4 tokens a round at 1 and at 64, and all of the output from rounds that draft."""
    got = rail(STATIC, scheduled((1, 100, 400, 150, 250), (64, 1000, 4000, 1500, 2500)))
    assert got.light is Light.TRIPPED
    assert "drafts 4 tokens a round at 1, 4 at 64: it does not follow the load" in got.said


def test_a_schedule_that_follows_the_load() -> None:
    got = rail(STATIC, scheduled((1, 100, 400, 150, 250), (64, 1000, 2000, 900, 1900)))
    assert got.light is Light.GREEN
    assert "4 tokens a round at 1, 2 at 64" in got.said


def test_rounds_without_drafts_are_in_no_counter() -> None:
    """K = 4 in every counted round, but a tenth of the output from them at 64: K = 0 elsewhere."""
    got = rail(STATIC, scheduled((1, 100, 400, 150, 250), (64, 100, 400, 150, 2500)))
    assert got.light is Light.GREEN
    assert "10 to 100 % of the output" in got.said
    silent = rail(STATIC, scheduled((1, 100, 400, 150, 250), (64, 0, 0, 0, 2500)))
    assert silent.light is Light.GREEN


def test_one_tier_or_one_load_cannot_tell() -> None:
    alone = rail(STATIC, scheduled((1, 100, 400, 150, 250)))
    assert alone.light is Light.OPEN
    within = rail(STATIC, scheduled((1, 100, 400, 150, 250), (8, 100, 400, 150, 250)))
    assert within.light is Light.OPEN
    assert "one K by its own ranges" in within.said


def test_data_parallel_makes_a_schedule_static() -> None:
    got = rail(STATIC, scheduled((1, 100, 400, 150, 250), data_parallel=2))
    assert got.light is Light.TRIPPED
    assert "data parallel 2" in got.said


def test_no_schedule_measured_is_open_and_a_fixed_k_green() -> None:
    found = sweep(CURVE)
    assert rail(STATIC, found).light is Light.OPEN
    fixed = sweep({1: 1.9, 64: 1.2})
    built = build(fixed.comparison, 64)
    assert built.fixed_k == 4
    assert rail(STATIC, fixed, schedule=built).light is Light.GREEN


def test_five_rails_each_named_once() -> None:
    found = sweep(CURVE)
    rails = decision.guardrails(found, decision.verdict(found, None), None, [], "none")
    assert len({r.title for r in rails}) == 5
    assert all(r.said for r in rails)
    assert all(r.spec_state is not SpecState.UNKNOWN for r in found.study.runs)
