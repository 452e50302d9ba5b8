"""Typed rates in the store: every version of each is kept, in order, and none is overwritten."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from lib.errors import InputError
from lib.results.rates import TypedRate
from lib.results.store import Store

P5EN = TypedRate(
    provider="AWS",
    gpu="H200",
    term="reserved",
    price_per_gpu_hour=63.296 / 8,
    effective_date=date(2026, 1, 21),
    item="p5en.48xlarge",
    source="contract 17",
    note='it\'s; "x"',
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path / "store.duckdb")
    yield opened
    opened.close()


def test_an_edit_is_a_new_version_and_the_old_one_stays(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    store = Store.open(path)
    assert store.rates() == ()
    (first,) = store.save_rates([(None, P5EN)], by="ann")
    later = replace(P5EN, price_per_gpu_hour=54.92 / 8, effective_date=date(2026, 7, 1))
    other = replace(
        P5EN, provider="Lambda", currency="EUR", usd_per_unit=1.1, converted_on=date(2026, 1, 5)
    )
    store.save_rates([(None, other), (first.rate_id, later)], by="bob")
    store.close()
    store = Store.open(path)
    old, new, another = store.rates()
    store.close()
    assert old == first
    assert (old.version, new.version, another.version) == (1, 2, 1)
    assert (old.typed, new.typed, another.typed) == (P5EN, later, other)
    assert (old.by, new.by) == ("ann", "bob")
    assert old.rate_id == new.rate_id != another.rate_id
    assert old.at <= new.at


def test_a_rate_is_withdrawn_by_a_version_that_says_so(store: Store) -> None:
    (first,) = store.save_rates([(None, P5EN)])
    store.save_rates([(first.rate_id, replace(P5EN, withdrawn=True))])
    assert [r.typed.withdrawn for r in store.rates()] == [False, True]


def test_all_of_a_save_or_none(store: Store) -> None:
    with pytest.raises(InputError, match="there is none"):
        store.save_rates([(None, P5EN), ("nobody's", P5EN)])
    with pytest.raises(InputError, match="by"):
        store.save_rates([(None, P5EN)], by="two\nlines")
    assert store.rates() == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"provider": " "}, "provider is empty"),
        ({"gpu": ""}, "gpu is empty"),
        ({"price_per_gpu_hour": 0.0}, "above 0"),
        ({"price_per_gpu_hour": float("nan")}, "above 0"),
        ({"usd_per_unit": -1.0}, "usd_per_unit = -1"),
        ({"currency": "EUR"}, "type what 1 EUR was worth"),
        ({"currency": "EUR", "usd_per_unit": 1.1}, "the day of that"),
        ({"usd_per_unit": 1.1}, "not converted"),
        ({"price_per_gpu_hour": 1e300}, "0.000001 to 1,000,000 are allowed"),
        (
            {
                "price_per_gpu_hour": 1e-300,
                "currency": "EUR",
                "usd_per_unit": 1e-300,
                "converted_on": date(2026, 11, 2),
            },
            "rate: 0 \\$ per GPU-hour",
        ),
        ({"note": "two\nlines"}, "printable"),
        ({"source": "s" * 201}, "up to 200"),
        ({"item": "\ud800"}, "printable"),
    ],
)
def test_what_cannot_be_kept_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(P5EN, **change)
