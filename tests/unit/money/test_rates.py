"""The price book: shipped rates are dated and sourced, own ones versioned, none is invented."""

import csv
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.errors import InputError
from lib.estimate import Basis
from lib.evidence.findings import find
from lib.money.pricing import Rate, price_pairs
from lib.money.rates import TERMS, GpuRate, PriceBook, book, change, listed_gpu
from lib.results import published
from lib.results.rates import TypedRate
from lib.results.store import Store
from lib.settings import DATA

ON = date(2026, 12, 1)
BOOK = book()
SHARED = Path(__file__).resolve().parents[4] / "shared" / "prices" / "rates.csv"


def rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("name", "count"), [("rates.csv", 290), ("api_prices.csv", 91), ("ownership.csv", 25)]
)
def test_every_shipped_row_has_a_date_and_a_source_and_none_is_of_low_confidence(
    name: str, count: int
) -> None:
    found = rows(name)
    assert len(found) == count
    for row in found:
        assert row["effective_date"]
        assert row["source"]
        assert row["confidence"] in ("high", "medium")
        assert row["currency"] in ("USD", "")


@pytest.mark.parametrize("name", ["rates.csv", "api_prices.csv"])
def test_a_price_is_dated_to_the_day(name: str) -> None:
    for row in rows(name):
        assert date.fromisoformat(row["effective_date"]).year in (2025, 2026)


def test_an_instance_is_divided_by_its_gpus_once() -> None:
    hours = {"USD/GPU-hour": 1, "USD/instance-hour": 1, "USD/instance-month": 730}
    for row in rows("rates.csv"):
        gpus = 1 if row["original_unit"] == "USD/GPU-hour" else int(row["gpu_count"])
        expected = float(row["original_value"]) / gpus / hours[row["original_unit"]]
        assert float(row["usd_per_gpu_hour"]) == pytest.approx(expected, rel=1e-6)


@pytest.mark.skipif(not SHARED.exists(), reason="the collected prices are not beside the project")
def test_the_shipped_rates_are_the_collected_ones() -> None:
    with SHARED.open(encoding="utf-8", newline="") as file:
        collected = {
            (r["item"], r["value"], r["unit"], r["date"])
            for r in csv.DictReader(file)
            if r["confidence"] != "low"
        }
    names = ("item", "original_value", "original_unit", "effective_date")
    shipped = {
        tuple(r[n] for n in names) for r in rows("rates.csv") if r["term"] != "ownership model"
    }
    assert shipped == collected


def test_the_book_reads_every_row() -> None:
    assert len({r.id for r in BOOK.published}) == len(BOOK.published) == 290
    assert {r.term for r in BOOK.published} <= set(TERMS)
    assert all(r.basis is Basis.PUBLISHED for r in BOOK.published)


def test_a_rate_is_found_by_gpu_provider_term_and_date() -> None:
    (rate,) = [r for r in BOOK.find(ON, gpu="h200", provider="aws") if r.item == "p5en.48xlarge"]
    assert rate.usd_per_gpu_hour == pytest.approx(63.296 / 8)
    assert rate.original == "63.296 USD/instance-hour ÷ 8 GPUs, as published"
    assert rate.cited(date(2026, 2, 1)).startswith(
        "AWS p5en.48xlarge, H200, on-demand, effective 2026-01-21; tsaol/aws-gpu:"
    )
    assert "stale" not in rate.cited(date(2026, 2, 1))
    assert rate.cited(ON).endswith("stale: 314 days old on 2026-12-01")
    assert BOOK.find(date(2026, 1, 20), gpu="H200", provider="AWS") == ()
    assert all(r.term == "spot" for r in BOOK.find(ON, term="spot"))


def test_a_gpu_without_a_rate_has_none_and_never_zero() -> None:
    assert BOOK.find(ON, gpu="TPU v5e") == ()
    assert all(r.usd_per_gpu_hour > 0 for r in BOOK.published)


def test_a_rate_is_stale_after_ninety_days() -> None:
    rate = BOOK.published[0]
    assert not rate.stale(rate.effective_date + timedelta(days=90))
    assert rate.stale(rate.effective_date + timedelta(days=91))


def test_a_published_price_of_a_later_date_takes_the_place_of_the_earlier() -> None:
    first = BOOK.published[0]
    later = replace(first, id="later", effective_date=date(2026, 6, 1), usd_per_gpu_hour=1.0)
    both = PriceBook((later, first))
    assert both.in_force(date(2026, 5, 31)) == (first,)
    assert both.in_force(date(2026, 6, 1)) == (later,)
    assert both.not_yet(date(2026, 5, 31)) == 1


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA A100-SXM4-80GB", "A100 80GB"),
        ("NVIDIA A100-PCIE-40GB", "A100 40GB PCIe"),
        ("NVIDIA L4", "L4"),
        ("L40S", "L40S"),
        ("Gaudi 3", None),
        ("", None),
    ],
)
def test_the_gpu_that_a_run_records_is_found_in_the_book(
    recorded: str, expected: str | None
) -> None:
    assert listed_gpu(recorded, {r.gpu for r in BOOK.published}) == expected


P5EN = TypedRate(
    provider="AWS",
    item="p5en.48xlarge",
    gpu="H200",
    term="reserved",
    price_per_gpu_hour=63.296 / 8,
    effective_date=date(2026, 1, 21),
    source="contract",
)
G6E = replace(P5EN, item="g6e.12xlarge", gpu="L40S", price_per_gpu_hour=10.4926 / 4)


@pytest.fixture
def repriced(tmp_path: Path) -> PriceBook:
    store = Store.open(tmp_path / "store.duckdb")
    p5en, g6e = store.save_rates([(None, P5EN), (None, G6E)], by="ann")
    moved = {"effective_date": date(2026, 7, 1)}
    store.save_rates(
        [
            (p5en.rate_id, replace(P5EN, price_per_gpu_hour=54.92 / 8, **moved)),  # type: ignore[arg-type]
            (g6e.rate_id, replace(G6E, price_per_gpu_hour=6.610 / 4, **moved)),  # type: ignore[arg-type]
        ],
        by="bob",
    )
    found = book(store.rates())
    store.close()
    return found


def own(held: PriceBook, gpu: str, on: date) -> GpuRate:
    (rate,) = [r for r in held.find(on, gpu=gpu) if r.version]
    return rate


@pytest.mark.parametrize(("gpu", "fall"), [("H200", -0.132), ("L40S", -0.370)])
def test_a_contract_that_moves_reprices_every_run_and_keeps_the_old_rate(
    repriced: PriceBook, gpu: str, fall: float
) -> None:
    old, new = own(repriced, gpu, date(2026, 6, 30)), own(repriced, gpu, date(2026, 7, 1))
    assert (old.version, new.version) == (1, 2)
    assert change(old.usd_per_gpu_hour, new.usd_per_gpu_hour) == pytest.approx(fall, abs=5e-4)
    found = find(published.study("trtllm_l4_qwen25_1p5b_draft0p5b_load"), "output_tps")
    priced = {
        rate.version: price_pairs(
            found, found.arms[0], Rate(rate.usd_per_gpu_hour, 8, 0.6, source=rate.cited(ON))
        )
        for rate in (old, new)
    }
    assert priced[1]
    for before, after in zip(priced[1], priced[2], strict=True):
        for was, now in ((before.off, after.off), (before.on, after.on)):
            assert was.price is not None
            assert now.price is not None
            assert now.price.value / was.price.value - 1 == pytest.approx(fall, abs=5e-4)
            assert "effective 2026-01-21, version 1; contract" in was.price.source
            assert "effective 2026-07-01, version 2; contract" in now.price.source
    assert len(repriced.own) == 4
    assert repriced.by_id(old.id) == old
    assert old.basis is Basis.ASSUMED


def test_own_rates_come_first_and_a_withdrawn_one_is_gone(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store.duckdb")
    (kept,) = store.save_rates([(None, P5EN)])
    assert book(store.rates()).find(ON, gpu="H200")[0].version == 1
    gone = replace(P5EN, withdrawn=True, effective_date=date(2026, 8, 1))
    store.save_rates([(kept.rate_id, gone)])
    held = book(store.rates())
    store.close()
    assert held.find(ON, gpu="H200")[0].version == 0
    assert held.find(date(2026, 7, 31), gpu="H200")[0].version == 1
    assert len(held.own) == 2


def test_another_currency_is_priced_by_its_typed_rate_with_its_date(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="type what 1 EUR was worth in USD and the day of that"):
        replace(P5EN, currency="EUR")
    euro = replace(P5EN, price_per_gpu_hour=2.0, currency="EUR", usd_per_unit=1.1, converted_on=ON)
    store = Store.open(tmp_path / "store.duckdb")
    store.save_rates([(None, euro)])
    (rate,) = book(store.rates()).own
    store.close()
    assert rate.usd_per_gpu_hour == pytest.approx(2.2)
    assert "2 EUR per GPU-hour × 1.1 $ per EUR on 2026-12-01 = $2.2" in rate.original


@given(st.floats(0.01, 100), st.floats(0.01, 100))
def test_a_price_per_million_moves_as_its_rate_does(old: float, new: float) -> None:
    assert old * (1 + change(old, new)) == pytest.approx(new)


def test_there_is_no_change_from_nothing() -> None:
    with pytest.raises(InputError, match="old_usd"):
        change(0.0, 1.0)
