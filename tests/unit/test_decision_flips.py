"""What flips a verdict alone, and the sentence in front, with numbers worked by hand.

Each cell has three runs an arm at ±1 %: se(log M) = √(2·0.01²/3) = 0.00816 on 4 degrees of
freedom, so a 95 % half-width of 0.0227.
"""

from dataclasses import replace

import pytest

from lib import decision
from lib.decision import Money, State
from lib.evidence.findings import Findings, find
from lib.evidence.schedule import build
from lib.money.pricing import PricedPair, Rate, price_pairs
from lib.report.decision_text import arm_words, flip_lines, headline
from lib.run import Slo, SpecState, Study
from tests.unit.test_decision import CURVE, run, sweep


def with_tau(found: Findings, tau: float) -> Findings:
    runs = tuple(
        replace(r, accept_length=tau) if r.spec_state is SpecState.ON else r
        for r in found.study.runs
    )
    return find(replace(found.study, runs=runs))


def priced(found: Findings, load: float, extra: float = 0.0) -> list[PricedPair]:
    rate = Rate(2.0, 1, 0.6, extra)
    return [p for a in found.arms for p in price_pairs(found, a, rate) if p.on.load == load]


def said(found: Findings, load: float, extra: float | None = None, seqs: int = 0) -> str:
    result = decision.verdict(found, load)
    pairs = [] if extra is None else priced(found, load, extra)
    schedule = build(found.comparison, seqs) if seqs else "none"
    return headline(found, result, decision.claim(found, result, pairs, schedule))[0]


def test_tau_may_fall_until_the_arm_breaks_even() -> None:
    """M 1.5 at τ 2.4: R = 1.6, so τ may fall to 1.6, by a third."""
    found = with_tau(sweep({4: 1.5}), 2.4)
    result = decision.verdict(found, 4)
    stands = decision.stands(found, result)
    assert stands is not None
    (flip,) = stands.flips
    assert (flip.now, flip.then) == (pytest.approx(2.4), pytest.approx(1.6))
    assert flip.change == pytest.approx(-1 / 3)
    assert flip_lines(stands, found) == (
        "Acceptance length τ may fall by 33 % (2.40 to 1.60) before K = 4 loses at 4.",
    )


def test_money_moves_the_break_even() -> None:
    """$2 off, $2.50 with: break-even M 1.25. τ to 2.0 (-1/6), $/h to 3 (+20 %), use to 50 %."""
    found = with_tau(sweep({4: 1.5}), 2.4)
    result = decision.verdict(found, 4)
    stands = decision.stands(found, result, priced(found, 4, 0.5), utilization=0.6)
    assert stands is not None
    assert stands.break_even == pytest.approx(1.25)
    by_name = {f.name: f for f in stands.flips}
    assert by_name["acceptance length τ"].then == pytest.approx(2.0)
    assert by_name["acceptance length τ"].change == pytest.approx(-1 / 6)
    assert by_name["$/h with speculation"].then == pytest.approx(3.0)
    assert by_name["$/h with speculation"].change == pytest.approx(0.2)
    assert by_name["utilisation of the arm alone"].then == pytest.approx(0.5)
    assert stands.flips[0].name == "acceptance length τ"
    assert "loses on price at 4" in flip_lines(stands, found)[0]


def test_an_interval_across_the_break_even_leaves_no_margin() -> None:
    """M 1.01: its interval, ±2.3 %, reaches below 1."""
    found = with_tau(sweep({4: 1.01}), 2.4)
    result = decision.verdict(found, 4)
    stands = decision.stands(found, result)
    assert stands is not None
    assert stands.flips[0].beyond
    assert "No margin is left" in flip_lines(stands, found)[0]


def test_a_loss_says_what_must_rise() -> None:
    """M 0.8 at τ 2.0: R = 2.5, so τ must rise to 2.5, by a quarter."""
    found = with_tau(sweep({32: 0.8}), 2.0)
    stands = decision.stands(found, decision.verdict(found, 32))
    assert flip_lines(stands, found) == (
        "Acceptance length τ must rise by 25 % (2.00 to 2.50) before K = 4 breaks even at 32.",
    )


def test_tau_cannot_pass_k_plus_one() -> None:
    """M 0.3 at τ 2.0 would need 6.7 tokens a round; K = 4 makes at most 5."""
    found = with_tau(sweep({32: 0.3}), 2.0)
    stands = decision.stands(found, decision.verdict(found, 32))
    assert stands is not None
    assert stands.flips == ()


def test_an_unmeasured_k_zero_tax_flips_the_tier_at_the_load() -> None:
    found = sweep(CURVE)
    stands = decision.stands(found, decision.verdict(found, 32), (), build(found.comparison, 64))
    assert stands is not None
    tax = next(f for f in stands.flips if f.name == "K = 0 tax")
    assert 0 < tax.change <= 0.25  # M 0.8 at the top of the tier: off may be a quarter slower


def test_nothing_flips_without_a_verdict() -> None:
    found = sweep(CURVE)
    assert decision.stands(found, decision.verdict(found, None)) is None
    assert decision.stands(found, decision.verdict(found, 6)) is None


def test_the_sentence_in_front_of_a_priced_win() -> None:
    """M 1.2 at equal $/h saves 1 - 1/1.2 = 17 %; ends 1.2·e^±0.0227 give 15 to 19 %."""
    found = sweep(CURVE)
    text = said(found, 8, 0.0, 64)
    assert text.startswith(
        "Speculate with K = 4 up to 8 concurrent: saves 17 % (15 to 19 %) per output token at 8"
    )
    assert "it costs more, measured at 32" in text
    assert text.endswith("not yet proven: the K = 0 tier and the SLO.")


def test_without_a_price_it_claims_throughput_alone() -> None:
    text = said(sweep(CURVE), 8)
    assert text.startswith("Speculate with K = 4 up to 8 concurrent: 1.20× (1.17–1.23) the throu")
    assert "it is slower, measured at 32" in text
    assert "save" not in text


def test_a_gain_that_costs_more_is_not_advised() -> None:
    """M 1.2 at twice the price: 2/1.2 - 1 = 67 % more."""
    found = sweep(CURVE)
    text = said(found, 8, 2.0)
    assert text.startswith("K = 4 is faster up to 8 concurrent")
    assert "yet costs 67 % (63 to 70 %) more per output token" in text
    claim = decision.claim(found, decision.verdict(found, 8), priced(found, 8, 2.0))
    assert claim is not None
    assert claim.money is Money.COSTS


def test_a_saving_too_close_to_call_is_not_claimed() -> None:
    text = said(sweep(CURVE), 8, 0.4)
    assert "whether it saves money there is too close to call" in text
    assert "Speculate" not in text


def test_no_end_is_claimed_without_a_proven_loss() -> None:
    text = said(sweep({1: 1.9, 2: 1.8, 4: 1.5, 8: 0.995}), 2)
    assert text.startswith("Speculate with K = 4 up to 4 concurrent: 1.80×")
    assert "above" not in text


def test_a_loss_in_one_sentence() -> None:
    text = said(sweep(CURVE), 32, 0.0)
    assert text.startswith("Leave speculation off at 32 concurrent: K = 4 gives 0.80× (0.78–0.82)")
    assert "costs 25 % (22 to 28 %) more per output token" in text


def test_an_undecided_verdict_keeps_its_own_sentence() -> None:
    found = sweep(CURVE)
    assert said(found, 16) == decision.verdict(found, 16).sentence
    assert decision.claim(found, decision.verdict(found, 16)) is None


def test_the_share_covers_every_part_of_the_sentence() -> None:
    """A saving whose bar is close to M holds in fewer redraws than the win alone."""
    found = sweep({4: 1.5})
    result = decision.verdict(found, 4)
    assert result.state is State.PASSED
    far = decision.claim(found, result, priced(found, 4, 0.0))
    near = decision.claim(found, result, priced(found, 4, 0.92))  # break-even 1.46, M 1.5
    assert far is not None
    assert near is not None
    assert far.share is not None
    assert near.share is not None
    assert near.money is Money.SAVES
    assert near.share < far.share


def test_names_tell_methods_apart() -> None:
    one = sweep(CURVE)
    assert arm_words("eagle3:4", one) == "K = 4"
    runs = [*one.study.runs, *(run(4, 500, 2, draft_method="mtp") for _ in range(3))]
    assert arm_words("eagle3:4", find(Study("s", tuple(runs)))) == "eagle3 at K = 4"
    assert arm_words("dspark:schedule", one) == "dspark:schedule"


def test_a_priced_reach_ends_where_the_saving_does() -> None:
    """$2.60 against $2: break-even 1.3. M 1.5 at 4 pays, 1.2 at 8 wins without paying."""
    text = said(sweep(CURVE), 2, 0.6)
    assert text.startswith("Speculate with K = 4 up to 4 concurrent: saves 28 % (26 to 29 %)")


def test_an_arm_that_misses_the_slo_is_not_advised() -> None:
    found = sweep(CURVE, tpot_ms_p99=50.0)
    rate, slo = Rate(2.0, 1, 0.6), Slo(tpot_ms=40)
    pairs = [p for p in price_pairs(found, found.arms[0], rate, slo) if p.on.load == 8]
    result = decision.verdict(found, 8)
    claim = decision.claim(found, result, pairs)
    text = headline(found, result, claim)[0]
    assert text.startswith("K = 4 is faster up to 8 concurrent, 1.20×")
    assert text.endswith("yet misses the SLO there.")
