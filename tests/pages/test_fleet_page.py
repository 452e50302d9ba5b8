"""The fleet page: the answer on a demand, its empty states, and a link that reproduces it."""

import math

import pytest
from streamlit.testing.v1 import AppTest

from lib.money.demand import read_spelled
from lib.results import published
from tests.pages.test_judged import DEMO, L4, said, unescaped
from tests.pages.test_pages import figures, sliders, start

EAGLE = "eagle3_sglang_h100_llama31_8b"
PAID = {"usd_per_gpu_hour": "3", "gpu_count": "1"}


def fleet(**link: str) -> AppTest:
    app = start("fleet", **{"study": DEMO, "demand_tps": "20000", **link})
    assert not app.exception
    assert not app.error
    return app


def rows(app: AppTest) -> dict[str, dict[str, object]]:
    frame = next(d.value for d in app.dataframe if "what binds" in d.value)
    return {r["arm"]: r for r in frame.to_dict("records")}


@pytest.mark.parametrize("name", published.studies())
def test_every_study_renders(name: str) -> None:
    app = fleet(study=name, **PAID, max_num_seqs="256", k0_tax="0.05")
    assert all(f["alt"] for f in figures(app))


def test_it_asks_for_the_demand_first() -> None:
    app = start("fleet", study=DEMO)
    assert "type the tokens a second that are asked for" in unescaped(app)
    assert "demand_tps" in sliders(app)


def test_ratios_size_nothing() -> None:
    assert "no load was measured in both arms with its output tok/s" in unescaped(
        fleet(study=EAGLE)
    )


def test_three_daily_costs_in_the_table_and_the_sentence() -> None:
    app = fleet(**PAID, slo_tpot_ms="15")
    found = rows(app)
    # 273.65 and 269.87 replica-hours, rounded up hour by hour.
    assert found["off"]["$ a day"] == 867
    assert found["sim:2"]["$ a day"] == 855
    assert found["schedule"]["$ a day"] == 855
    assert found["off"]["what binds"] == "SLO: missed at 64"
    assert "Too close to call: with sim:2 the fleet saves between -$33.00" in unescaped(app)
    assert "simulated engine" in said(app)


def test_without_a_price_there_are_gpu_hours() -> None:
    app = fleet(study=L4)
    text = unescaped(app)
    assert "2,980 instead of 1,565 GPU-hours a day with draft_model:4: 90 % more" in text
    assert "Type a $/GPU-h to read dollars" in text


def test_a_tax_that_nobody_knows_prices_no_schedule() -> None:
    app = fleet(**PAID)
    assert "The schedule needs at least 180 GPU-hours a day" in unescaped(app)
    assert math.isnan(rows(app)["schedule"]["$ a day"])  # type: ignore[arg-type]
    app = fleet(**PAID, k0_tax="0.08")
    assert rows(app)["schedule"]["$ a day"] == pytest.approx(576)
    assert "Against no speculation the schedule costs $36.00 more a day" in unescaped(app)


def test_reserved_for_the_peak_and_a_spare() -> None:
    app = fleet(**PAID, paid="reserved for peak", spare="true")
    assert rows(app)["off"]["$ a day"] == 16 * 24 * 3


def test_a_link_carries_own_hours() -> None:
    text = "5200@4x8,12000@32x8,30000@64x8"
    app = fleet(demand="own hours", demand_hours=text, **PAID, k0_tax="0")
    assert rows(app)["off"]["replicas at peak"] == 18
    assert app.query_params["demand_hours"] == text
    assert rows(app)["sim:2"]["replicas at peak"] == 13


def test_a_bad_link_is_one_line() -> None:
    app = start("fleet", study=DEMO, demand="own hours", demand_hours="5,many")
    assert not app.exception
    assert "Ignored in this link: demand, entry 2" in unescaped(app)


def test_a_shape_is_taken_over_to_be_edited() -> None:
    app = fleet(**PAID)
    app.button[0].click().run()
    assert not app.exception
    assert app.selectbox(key="demand").value == "own hours"
    hours = read_spelled(app.session_state["demand_hours"])
    assert sum(hours.values) / 24 == pytest.approx(20000, rel=1e-4)
    assert rows(app)["off"]["GPU-hours a day"] == 180


def test_requests_take_the_recorded_length_of_an_answer() -> None:
    app = start("fleet", study=DEMO, demand_unit="requests/s", demand_rps="100", **PAID)
    assert not app.exception
    # 100 requests of 64 tokens are 6,400 tok/s on average.
    assert rows(app)["off"]["fractional"] == pytest.approx(24 * 6400 / 2851.8, rel=1e-3)
    app = start("fleet", study=L4, demand_unit="requests/s", demand_rps="100", **PAID)
    assert "type output tokens a request" in unescaped(app)


def test_what_moves_it_and_the_memory() -> None:
    app = fleet(
        **PAID,
        what_if="0.1",
        memory_target="llama-3.1-8b",
        memory_draft="eagle3-llama-3.1-8b",
        gpu_gib="24",
        memory_share="0.9",
        request_tokens="1024",
    )
    frame = next(d.value for d in app.dataframe if "change" in d.value)
    assert next(iter(frame["change"])) == "as it is"
    assert len(frame) == 7
    text = unescaped(app)
    assert "Memory holds" in text
    assert "with the drafter instead of" in text
    assert "memory holds" in rows(app)["sim:2"]["what binds"]
