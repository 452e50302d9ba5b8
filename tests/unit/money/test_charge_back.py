"""Charge-back: both bases, and the parts sum to the bill."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.errors import InputError
from lib.money.charge_back import Team, by_reservation, by_use, parse

TEAMS = (Team("A", 3, 1), Team("B", 1, 1))


def test_reserved_used_and_idle() -> None:
    # llm-d/llm-d#1646, opencost/opencost#3845: a $10/h node of 8 units, 4 of them idle.
    apart = by_reservation(10, 8, TEAMS)
    assert (apart.parts, apart.idle) == ((3.75, 1.25), 5.0)
    shared = by_reservation(10, 8, TEAMS, share_idle=True)
    assert (shared.parts, shared.idle) == ((7.50, 2.50), 0.0)
    used = by_use(10, 8, TEAMS)
    assert (used.parts, used.idle) == ((1.25, 1.25), 7.50)


@given(
    st.floats(0, 1e6),
    st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), min_size=1, max_size=6),
    st.floats(1, 3),
)
def test_the_parts_sum_to_the_bill(
    total: float, held: list[tuple[float, float]], room: float
) -> None:
    teams = [Team(str(i), r, u) for i, (r, u) in enumerate(held)]
    capacity = room * max(1.0, sum(r for r, _ in held), sum(u for _, u in held))
    bills = [by_reservation(total, capacity, teams), by_use(total, capacity, teams)]
    if any(r for r, _ in held):
        bills.append(by_reservation(total, capacity, teams, share_idle=True))
    for found in bills:
        assert sum(found.parts) + found.idle == pytest.approx(total, rel=1e-9, abs=1e-9)


def test_speculation_lowers_use_and_not_the_reservation() -> None:
    before, after = (by_use(10, 8, [Team("A", 3, u)]).parts[0] for u in (2.0, 1.0))
    assert after < before
    bills = [by_reservation(10, 8, [Team("A", 3, u)]).parts[0] for u in (2.0, 1.0)]
    assert bills[0] == bills[1]


def test_teams_are_read_from_a_line() -> None:
    assert parse("A, 3, 1; B, 1, 1;") == TEAMS
    assert parse("Search, EU, 2, 0.5") == (Team("Search, EU", 2, 0.5),)
    assert parse("") == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A, 3", "name, reserved, used"),
        ("A, three, 1", "name, reserved, used"),
        ("A, 3, 1; A, 1, 1", "stands twice"),
        (", 3, 1", "a name is missing"),
        ("A, -1, 1", "reserved = -1"),
        ("A, nan, 1", "reserved = nan"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse(text)


def test_more_than_the_capacity_is_refused() -> None:
    with pytest.raises(InputError, match=r"reserved sum to 4, above the capacity of 2"):
        by_reservation(10, 2, TEAMS)
    with pytest.raises(InputError, match="capacity = 0"):
        by_use(10, 0, TEAMS)
    with pytest.raises(InputError, match="nothing is reserved"):
        by_reservation(10, 2, [Team("A", 0, 1)], share_idle=True)
