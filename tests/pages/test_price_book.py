"""The price book on the price page: a rate is chosen, edited or worked out, with its source."""

from datetime import date
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from lib.money.rates import book
from lib.results.rates import TypedRate
from lib.results.store import Store
from tests.pages.test_judged import L4, PAID, said, unescaped
from tests.pages.test_pages import sliders, start

ON = "2026-12-01"
G6 = next(r for r in book().published if (r.item, r.conditions) == ("g6.xlarge", "on-demand"))
CONTRACT = TypedRate(
    provider="AWS",
    gpu="L4",
    term="reserved",
    price_per_gpu_hour=0.5,
    effective_date=date(2026, 11, 1),
    source="contract",
)
NEW = {
    "provider": "Lambda",
    "gpu": "L4",
    "term": "spot",
    "price_per_gpu_hour": 0.4,
    "effective_date": "2026-10-01",
}


def opened(**link: str) -> AppTest:
    app = start("price", study=L4, load="1", **{**PAID, "priced_on": ON, **link})
    app.session_state["price-book"] = True
    return app.run()


def link_of(app: AppTest, name: str) -> str:
    found = app.query_params[name]
    return found[0] if isinstance(found, list) else found


def press(app: AppTest, key: str) -> AppTest:
    return app.button(key=key).click().run()


def test_the_book_is_closed_at_first_and_opens_on_the_gpu_of_the_study() -> None:
    assert "rate-gpu" not in start("price", study=L4, load="1", **PAID).session_state
    app = opened()
    assert not app.exception
    assert app.selectbox(key="rate-gpu").value == "L4"
    assert app.selectbox(key="rate-pick").label == "Rate, one of 11"
    assert app.selectbox(key="rate-pick").value is None


def test_a_chosen_rate_fills_the_price_and_says_source_date_and_age() -> None:
    app = opened()
    app.selectbox(key="rate-pick").set_value(G6.id).run()
    assert "0.8048 USD/instance-hour, as published; effective 2026-01-21" in unescaped(app)
    assert "Stale: 314 days old on 2026-12-01." in said(app)
    press(app, "rate-use")
    assert not app.exception
    assert sliders(app)["usd_per_gpu_hour"]["value"] == 0.8048
    assert (
        "$/GPU-h: AWS g6.xlarge, L4, on-demand, effective 2026-01-21; tsaol/aws-gpu:"
        in unescaped(app)
    )
    assert "stale: 314 days old on 2026-12-01" in unescaped(app)
    for basis in ("assumed", "published"):  # the rate is sourced, the utilisation stays typed
        assert f"-badge[some inputs {basis}]" in said(app)
    assert ":orange-badge[stale]" in said(app)
    assert link_of(app, "rate") == G6.id


def test_a_link_carries_the_rate_and_a_typed_price_drops_it() -> None:
    link = {"usd_per_gpu_hour": "0.8048", "rate": G6.id}
    app = start("price", study=L4, load="1", **{**PAID, **link})
    assert "AWS g6.xlarge, L4, on-demand, effective 2026-01-21" in unescaped(app)
    app.switch_page("../../pages/decision.py").run()
    assert link_of(app, "rate") == G6.id
    other = start("price", study=L4, load="1", **{**PAID, "rate": G6.id})
    assert "g6.xlarge" not in unescaped(other)
    assert "rate" not in other.query_params


@pytest.mark.parametrize("page", ["price", "decision", "fleet"])
def test_a_stale_rate_is_marked_on_every_page_that_prices_with_it(page: str) -> None:
    link = {"usd_per_gpu_hour": "0.8048", "rate": G6.id, "demand_tps": "20000"}
    for day, stale in (("2026-12-01", True), ("2026-02-01", False)):
        app = start(page, study=L4, load="1", priced_on=day, **{**PAID, **link})
        assert not app.exception
        assert "$/GPU-h: AWS g6.xlarge, L4, on-demand, effective 2026-01-21" in unescaped(app)
        assert (":orange-badge[stale]" in said(app)) is (stale and page != "decision")
        assert ("stale: 314 days old on 2026-12-01" in unescaped(app)) is stale
    typed = start(page, study=L4, load="1", **{**PAID, **link, "rate": ""})
    assert "g6.xlarge" not in unescaped(typed)


def test_a_filter_that_nothing_fits_says_price_missing() -> None:
    app = opened(priced_on="2024-01-01")
    assert "price missing: no rate of the price book on 2024-01-01" in unescaped(app)
    assert "290 rates are of a later date" in unescaped(app)


def test_an_age_follows_the_pricing_date() -> None:
    app = opened()
    app.selectbox(key="rate-pick").set_value(G6.id).run()
    press(app, "rate-use")
    app.date_input(key="rate-date").set_value(date(2026, 2, 1)).run()
    assert "effective 2026-01-21" in unescaped(app)
    assert "stale" not in unescaped(app)
    assert link_of(app, "priced_on") == "2026-02-01"


def type_in(app: AppTest, **state: Any) -> None:
    """What a person did to the table of own rates since it was drawn."""
    empty: dict[str, Any] = {"edited_rows": {}, "added_rows": [], "deleted_rows": []}
    app.session_state["own-rates-0"] = {**empty, **state}


@pytest.fixture
def kept(own_store: None) -> str:
    store = Store.open()
    (row,) = store.save_rates([(None, CONTRACT)], by="ann")
    store.close()
    return row.rate_id


def test_own_rates_are_offered_first_with_every_version_listed(kept: str) -> None:
    app = opened()
    options = app.selectbox(key="rate-pick").options
    assert options[0] == "$0.500 · AWS, L4, reserved · 2026-11-01 · yours, version 1"
    app.selectbox(key="rate-pick").set_value(f"{kept}-1").run()
    press(app, "rate-use")
    assert "$/GPU-h: AWS, L4, reserved, effective 2026-11-01, version 1; contract" in unescaped(app)
    assert "Every version, the old ones too" in said(app)


def test_an_edit_and_a_new_row_are_saved_as_versions(kept: str) -> None:
    app = opened()
    app.text_input(key="own-rates-by").set_value("bob").run()
    new = {**NEW, "currency": "eur", "usd_per_unit": 1.1, "converted_on": "2026-10-01"}
    type_in(app, edited_rows={0: {"price_per_gpu_hour": 0.434}}, added_rows=[new])
    press(app, "own-rates-save")
    assert [s.value for s in app.success] == ["2 new versions saved."]
    versions = next(d.value for d in app.dataframe if "version" in d.value)
    assert list(versions["version"]) == [1, 2, 1]
    assert list(versions["state"]) == ["replaced", "in force", "in force"]
    assert list(versions["change"])[1] == "-13.2 %"
    assert list(versions["by"]) == ["ann", "bob", "bob"]
    assert list(versions["$ per GPU-hour"])[2] == pytest.approx(0.44)


def test_a_deleted_row_is_withdrawn_and_stays_listed(kept: str) -> None:
    app = opened()
    type_in(app, deleted_rows=[0])
    press(app, "own-rates-save")
    versions = next(d.value for d in app.dataframe if "version" in d.value)
    assert list(versions["state"]) == ["replaced", "withdrawn"]
    assert "yours" not in " ".join(app.selectbox(key="rate-pick").options)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"provider": "x"}, "row 2: gpu, term, price per gpu hour, effective date: type it"),
        ({**NEW, "currency": "EUR"}, "row 2: rate: currency EUR: prices are in USD"),
        ({**NEW, "price_per_gpu_hour": 0}, "row 2: rate: price_per_gpu_hour = 0"),
        ({**NEW, "effective_date": "soon"}, "row 2: effective date: a date is needed"),
    ],
)
def test_a_row_that_cannot_be_kept_says_why_and_changes_nothing(
    kept: str, row: dict[str, object], message: str
) -> None:
    app = opened()
    type_in(app, added_rows=[row], deleted_rows=[0])
    press(app, "own-rates-save")
    assert message in unescaped(app)
    versions = next(d.value for d in app.dataframe if "version" in d.value)
    assert list(versions["state"]) == ["in force"]


def test_saving_nothing_says_so(kept: str) -> None:
    app = press(opened(), "own-rates-save")
    assert "nothing was changed" in said(app)
    assert not app.exception


OWNED = {
    "owned_capex_usd": "280000",
    "owned_gpus": "8",
    "owned_life_years": "4",
    "owned_residual": "0.1",
    "owned_capital_rate": "0.08",
    "owned_power_kw": "1.275",
    "owned_pue": "1.3",
    "owned_usd_per_kwh": "0.0929",
}


def test_owned_hardware_starts_empty_and_says_what_it_needs() -> None:
    app = opened()
    assert "Type Purchase price, GPUs that it buys, Life, Residual value" in said(app)


def test_owned_hardware_fills_the_price() -> None:
    app = opened(**OWNED, owned_in_use="0.7")
    assert "$1.27 per GPU-hour owned: capital $1.12, power $0.154, hosting $0" in unescaped(app)
    assert "$1.82 per GPU-hour in use, at 70 % of the hours." in unescaped(app)
    press(app, "owned-use")
    assert sliders(app)["usd_per_gpu_hour"]["value"] == pytest.approx(1.27163, abs=2e-5)
    assert "$/GPU-h: owned hardware, 8 GPUs for $280,000 over 4 years" in unescaped(app)


def test_a_power_that_includes_overhead_sets_pue_to_one_and_keeps_it() -> None:
    app = opened(**OWNED)
    picked = app.selectbox(key="owned-published")
    at = next(i for i, o in enumerate(picked.options) if "facility overhead included" in o)
    picked.set_value(at).run()
    press(app, "owned-published-use")
    assert sliders(app)["owned_power_kw"]["value"] == 1.73
    assert sliders(app)["owned_pue"]["value"] == 1.0
    assert "power $0.161" in unescaped(app)
