"""tau and alpha of stored runs whose requests were counted one by one."""

from dataclasses import replace

import numpy as np
import pytest

from lib.estimate import Basis
from lib.evidence.acceptance import TREE, Acceptance
from lib.evidence.acceptance_groups import SEVERAL, groups, pooled
from lib.results.requests import RequestAcceptance
from lib.run import LoadKind, Run, SpecState, Study
from lib.theory.acceptance import Method

# 190 accepted in 137 rounds: tau = 2.3869; residuals -19.635, 20.657, -1.022; se = 0.2549;
# logit(1.3869 / 3) = -0.1511, t_2 = 4.3027: half 1.4709.
ACCEPTED, ROUNDS, REJECTED = [40, 90, 60], [43, 50, 44], [38, 30, 33]
RUN = Run(
    run_id="a",
    label="chat",
    spec_state=SpecState.ON,
    draft_method="eagle3",
    num_speculative_tokens=3,
    drafts=137,
    draft_tokens=411,
    accepted_tokens=190,
    dataset="chat",
    load_kind=LoadKind.CONCURRENCY,
    offered_load=1,
)


def counts(**changed: object) -> RequestAcceptance:
    given: dict = {"draft_tokens": [3 * n for n in ROUNDS], "rejected": REJECTED}
    given |= {"accepted": ACCEPTED, "drafts": ROUNDS} | changed
    arrays = {n: np.array(v) if isinstance(v, list) else v for n, v in given.items()}
    return RequestAcceptance(**arrays)


def found(run: Run, requests: RequestAcceptance | None, *more: Run) -> Acceptance:
    runs = (run, *more)
    by_run = {} if requests is None else {r.run_id: requests for r in runs}
    whole = pooled(runs, Basis.MEASURED, "eagle3", by_run)
    assert whole is not None
    return whole


def test_tau_and_alpha_have_intervals_by_request() -> None:
    got = found(RUN, counts())
    tau = (got.tau.value, got.tau.se, got.tau.low, got.tau.high)
    assert tau == pytest.approx((2.3869, 0.2549, 1.4948, 3.3674), abs=2e-4)
    assert got.tau.method is Method.REQUESTS
    assert got.alpha is not None
    # A / (A + F) = 190 / 291; residuals -10.928, 11.649, -0.722; se = 0.0673.
    assert (got.alpha.value, got.alpha.se) == pytest.approx((0.6529, 0.0673), abs=1e-4)
    assert got.alpha.method is Method.REQUESTS
    assert (got.gamma, got.rounds, got.tokens, dict(got.lengths)) == (
        3,
        137,
        327,
        {3: got.tau.value},
    )
    assert got.source == "eagle3: 1 run, 3 requests"
    assert got.given[0].value == "190 in 137 rounds of 3 requests"


def test_without_rejections_alpha_is_inverted_at_the_ends_of_tau() -> None:
    """tau(alpha, 3) = 1 + a + a^2 + a^3 is 1.4948 at 0.3548, 3.3674 at 0.8889."""
    got = found(RUN, counts(rejected=None))
    assert got.alpha is not None
    assert got.alpha.method is Method.INVERTED
    for alpha, tau in ((got.alpha.low, got.tau.low), (got.alpha.high, got.tau.high)):
        assert alpha is not None
        assert 1 + alpha + alpha**2 + alpha**3 == pytest.approx(tau)


def test_positions_of_the_run_give_alpha_where_requests_state_no_rejection() -> None:
    by_position = replace(RUN, accepted_per_position=(91, 61, 38))
    got = found(by_position, counts(rejected=None))
    assert got.alpha is not None
    assert (got.alpha.value, got.alpha.method) == (pytest.approx(190 / (190 + 99)), Method.ALIKE)
    assert got.tau.method is Method.REQUESTS
    assert len(got.lengths) == 3


def test_runs_without_counts_by_request_are_as_they_were() -> None:
    for requests in (None, counts(drafts=[0] * 3, accepted=[0] * 3)):
        assert found(RUN, requests).tau.method is Method.ALIKE
    other = replace(RUN, run_id="b")
    whole = pooled([RUN, other], Basis.MEASURED, "x", {"a": counts()})
    assert whole is not None
    assert whole.tau.method is Method.ALIKE, "one of the runs has none"


def test_repeats_of_the_same_traffic_narrow_no_interval() -> None:
    repeats = [replace(RUN, run_id=name) for name in "bc"]
    one, three = found(RUN, counts()), found(RUN, counts(), *repeats)
    assert (three.tau.low, three.tau.high) == pytest.approx((one.tau.low, one.tau.high))
    assert three.alpha is not None
    assert one.alpha is not None
    assert three.alpha.high == pytest.approx(one.alpha.high)
    assert "narrow no interval" in three.remarks[-1]
    elsewhere = [replace(r, domain=r.run_id) for r in repeats]
    assert found(RUN, counts(), *elsewhere).tau.high < one.tau.high  # type: ignore[operator]


def test_a_draft_length_that_the_requests_do_not_bear_out_is_dropped() -> None:
    run = replace(RUN, draft_tokens=None)
    got = found(run, counts(draft_tokens=[100, 140, 120], rejected=None))
    assert (got.gamma, got.alpha, dict(got.lengths)) == (None, None, {})
    assert got.no_alpha == "the requests drafted 2.63 a round, not γ = 3: τ only"
    assert got.tau.method is Method.REQUESTS
    counted = found(run, counts(draft_tokens=[100, 140, 120]))
    assert counted.alpha is not None, "rejections count at any draft length"


def test_more_accepted_than_drafts_allow_is_left_out() -> None:
    got = found(RUN, counts(accepted=[200, 200, 200]))
    assert got.tau.value == pytest.approx(1 + 190 / 137)
    assert got.tau.method is Method.ALIKE
    assert "above γ + 1" in got.remarks[-1]


def test_trees_and_several_lengths_have_no_alpha() -> None:
    tree = found(replace(RUN, draft_topk=4), counts())
    assert (tree.alpha, tree.no_alpha, tree.tau.method) == (None, TREE, Method.REQUESTS)
    longer = replace(RUN, run_id="b", num_speculative_tokens=6, draft_tokens=822)
    several = found(RUN, counts(), longer)
    assert (several.alpha, several.no_alpha) == (None, SEVERAL)


def test_what_is_not_counted_or_does_not_agree_is_said() -> None:
    got = found(replace(RUN, accepted_tokens=160), counts(uncounted=2))
    assert got.tau.value == pytest.approx(1 + 190 / 137)
    assert "counters say τ = 2.168, their requests 2.387" in got.remarks[-2]
    assert got.remarks[-1].startswith("2 of 5 requests state no drafts")


def test_groups_of_a_study_take_them() -> None:
    (group,) = groups(Study("s", (RUN,)), {"a": counts()})
    assert group.acceptance.tau.method is Method.REQUESTS
