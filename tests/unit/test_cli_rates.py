"""The price book on the command line."""

import json
from datetime import date
from pathlib import Path

import pytest

from lib.results.rates import TypedRate
from lib.results.store import Store
from tests.unit.test_cli import run

OWN = TypedRate(
    provider="us",
    gpu="H100",
    term="reserved",
    price_per_gpu_hour=2.0,
    effective_date=date(2026, 9, 1),
)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "store.duckdb"
    monkeypatch.setenv("DRAFTWORTH_STORE", str(path))
    return path


def test_published_rates_are_listed_without_making_a_store(store: Path) -> None:
    result = run("rates", "--gpu", "h200", "--provider", "AWS", "--on", "2026-04-01", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    (rate,) = [r for r in found["rates"] if r["item"] == "p5en.48xlarge"]
    assert rate["usd_per_gpu_hour"] == pytest.approx(7.912)
    assert (rate["effective_date"], rate["age_days"], rate["stale"]) == ("2026-01-21", 70, False)
    assert rate["source"].startswith("tsaol/aws-gpu:")
    assert found["notes"] == []
    assert not store.exists()


def test_own_rates_come_first(store: Path) -> None:
    opened = Store.open(store)
    opened.save_rates([(None, OWN)], by="ann")
    opened.close()
    found = json.loads(run("rates", "--gpu", "H100", "--on", "2026-12-01", "--json").stdout)
    first, second = found["rates"][:2]
    assert (first["provider"], first["version"], first["basis"]) == ("us", 1, "assumed")
    assert (second["version"], second["basis"]) == (None, "published")


def test_a_gpu_without_a_rate_is_price_missing(store: Path) -> None:
    found = json.loads(run("rates", "--gpu", "Gaudi 3", "--json").stdout)
    assert found["rates"] == []
    assert "price missing" in found["notes"][0]


def test_a_store_that_cannot_be_read_is_said(store: Path) -> None:
    store.write_bytes(b"not a database")
    found = json.loads(run("rates", "--gpu", "H100", "--json").stdout)
    assert found["rates"]
    assert "your own rates are not listed" in found["notes"][0]


def test_a_date_that_is_none_is_refused(store: Path) -> None:
    result = run("rates", "--on", "soon")
    assert result.exit_code == 2
    assert "YYYY-MM-DD" in result.stderr
