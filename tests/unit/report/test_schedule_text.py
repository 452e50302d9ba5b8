"""A schedule in words and columns."""

import math

import pytest

from lib.estimate import Basis
from lib.evidence.schedule import build
from lib.evidence.three_arms import proof_of
from lib.report.schedule_text import (
    evidence,
    filled_in,
    proof_lines,
    range_table,
    tax,
    tier_table,
    verdict,
    worth,
)
from tests.unit.evidence.test_schedule import LOADS, SIMULATED, comparison

BUILT = build(comparison(LOADS, SIMULATED), 64)


def test_every_tier_has_its_evidence_beside_it() -> None:
    table = tier_table(BUILT)
    assert table["K"] == [4, 2, 0]
    assert table["evidence"] == [
        "measured at 1, 2, 4, 8",
        "measured at 16, 32",
        "measured at 64",
    ]
    assert table["gain against off"][2] is None
    assert table["against fixed K = 2"][1] == pytest.approx(1)
    assert table["K = 0 tax"] == ["", "", "unmeasured; K = 2 wins above 6.1 %"]


def test_no_tax_column_without_k_0() -> None:
    built = build(comparison((1, 64), {0: (1, 2), 2: (3, 5), 4: (4, 4)}), 64)
    assert "K = 0 tax" not in tier_table(built)
    assert evidence(built.tiers[0]) == "measured at 1"


def test_the_verdict_does_not_count_a_free_k_0() -> None:
    assert verdict(BUILT) == (
        "Up to 11.5 % over a fixed K = 2 on output tok/s where it drafts; 19.6 % at K = 0 if that "
        "cost nothing."
    )
    found = worth(BUILT, Basis.MEASURED)
    assert found is not None
    assert found.value == pytest.approx(1.115, abs=5e-4)
    assert found.basis is Basis.DERIVED


def test_under_two_percent_everywhere_keeps_the_fixed_k() -> None:
    """C84."""
    table = {0: (100, 2000), 2: (180, 3890), 3: (195, 3850), 4: (196, 3600)}
    built = build(comparison((1, 64), table), 64)
    assert verdict(built) == (
        "At most 1.1 % over a fixed K = 3 on output tok/s, under 2 % everywhere: keep the fixed K."
    )
    first = {0: (100, 2000), 2: (180, 4000), 3: (195, 3850), 4: (200, 3600)}
    assert verdict(build(comparison((1, 64), first), 64)).startswith("Up to 3.9 % over")


def test_one_k_is_no_schedule() -> None:
    fixed = build(comparison((1, 64), {0: (1, 2), 3: (2, 3)}), 64)
    none = build(comparison((1, 64), {0: (3, 4), 3: (2, 3)}), 64)
    assert verdict(fixed) == "K = 3 at every batch: a fixed K, no schedule."
    assert "start without --speculative-config" in verdict(none)
    assert worth(fixed, Basis.MEASURED) is None


def test_ranges_in_words_and_columns() -> None:
    ranges = ((1, 1, 4), (2, 8, 2), (9, 64, 0))
    assert filled_in(ranges) == "1: K = 4; 2 to 8: K = 2; 9 to 64: K = 0"
    assert range_table(ranges) == {
        "from batch": [1, 2, 9],
        "to batch": [1, 8, 64],
        "K": [4, 2, 0],
    }
    assert tax(BUILT.tiers[0]) == ""


def test_the_proof_in_words() -> None:
    proof = proof_of(BUILT)
    assert proof is not None
    *arms, loads = proof_lines(proof)
    assert [a.split(":")[0] for a in arms] == ["off", "eagle3", "eagle3"]
    assert loads == "each at concurrency 1, 2, 4, 8, 9, 16, 32, 39, 64"
    assert math.isfinite(BUILT.gain_over_fixed)


def test_no_gain_is_said_in_words() -> None:
    drafting = build(comparison((2, 64), {0: (100, 150), 4: (180, 140)}), 64)
    assert verdict(drafting).startswith(
        "No gain over a fixed K = 4 on output tok/s where it drafts; "
    )
    open_tail = build(comparison((4,), {0: (100,), 4: (102,)}), 64)
    assert verdict(open_tail) == "No gain over a fixed K = 4 on output tok/s: keep the fixed K."
