"""The price page below its answer: each tab computes what it says, and refuses in one line."""

import html
import json

import pytest
from streamlit.testing.v1 import AppTest

from lib.money.bridge import ORDER
from lib.ui.price_tabs import PARTS
from tests.pages.test_pages import figures, metric, sliders, start

DEMO = "guidellm-0.8.1-simulated"
L4 = "trtllm_l4_qwen25_1p5b_draft0p5b_load"
PAID = {"usd_per_gpu_hour": "2", "gpu_count": "1", "utilization": "0.6"}


def tab(name: str, study: str = DEMO, **link: str) -> AppTest:
    app = start("price", study=study, load="8" if study == DEMO else "1", **PAID, **link)
    app.session_state["price-tabs"] = name
    app.run()
    assert not app.exception
    return app


def said(app: AppTest) -> str:
    blocks = [*app.markdown, *app.info, *app.caption, *app.error]
    return html.unescape("\n".join(str(b.value) for b in blocks)).replace("\u2060", "")


def table(app: AppTest, column: str) -> dict[str, list[object]]:
    found = next(d.value for d in app.dataframe if column in d.value.columns)
    return {name: list(found[name]) for name in found.columns}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("study", [DEMO, L4])
def test_every_tab_opens_with_nothing_typed(name: str, study: str) -> None:
    app = tab(name, study)
    assert not app.error
    assert all(f["alt"] for f in figures(app))


def test_without_a_price_the_tabs_say_what_they_wait_for() -> None:
    app = start("price", study=DEMO, load="8")
    assert "With a price at the operating load: what moves it" in said(app)
    assert not app.tabs


def test_the_decode_share_stands_before_the_saving() -> None:
    assert "Decoding is 96 % of a request's time" in said(tab("Break-evens"))


def test_the_first_tab_has_the_bridge_and_what_the_runs_alone_move() -> None:
    app = tab("What moves it")
    _price, steps, bars, _draws = (json.loads(str(f["spec"]))["data"] for f in figures(app))
    assert steps[1]["y"][1:-1] == list(ORDER)
    assert bars[0]["y"] == ["tok/s with"]
    assert "speculation is cheaper in 100 %" in said(app)


def test_one_run_an_arm_moves_nothing_until_a_range_is_typed() -> None:
    app = tab("What moves it", L4)
    assert "Nothing has a range yet" in said(app)
    ranged = tab("What moves it", L4, usd_per_gpu_hour_low="1.5", usd_per_gpu_hour_high="3")
    assert "In 10,000 draws" in said(ranged)
    assert "M is taken as it was measured" in said(ranged)


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ({"usd_per_gpu_hour_low": "3", "usd_per_gpu_hour_high": "1"}, "at least 3, at most 1"),
        ({"usd_per_gpu_hour_low": "3", "usd_per_gpu_hour_high": "4"}, "= 2 lies outside 3 to 4"),
        ({"utilization_low": "0.3"}, "Utilisation: type both ends"),
    ],
)
def test_a_range_that_cannot_be_used_is_said(link: dict[str, str], words: str) -> None:
    assert words in said(tab("What moves it", **link))


def test_break_evens_with_the_interval_of_m() -> None:
    rows = table(tab("Break-evens", extra_usd_per_hour="0.3"), "break-even")
    assert rows["what"] == ["M", "Extra $/h", "Utilisation with", "$/GPU-h", "Tokens a round τ"]
    assert rows["break-even"][0] == "1.15×"
    assert rows["low"][1] is not None
    assert "not known" in str(rows["reading"][4])


def test_the_token_bases_are_labelled() -> None:
    rows = table(tab("Token basis", input_weight="0.25"), "basis")
    assert [str(b)[:20] for b in rows["basis"]] == [
        "$ per 1M output toke",
        "$ per 1M weighted to",
        "$ per 1M total token",
    ]
    typed = tab("Token basis", L4)
    assert "do not record their input tokens" in said(typed)
    assert "input_per_output" in sliders(typed)


def test_goodput_and_energy_say_what_is_not_recorded() -> None:
    app = tab("Goodput and energy", slo_tpot_ms="40")
    assert "at least 99.0 % of the requests did" in said(app)
    assert table(app, "J per output token")["J per output token"] == ["not recorded"] * 2
    assert "name a limit on TTFT" in said(tab("Goodput and energy"))


def test_an_api_is_compared_on_the_same_tokens() -> None:
    app = tab("Against an API")
    assert "Choose a list price below" in said(app)
    app.selectbox(key="api-pick").set_value(0).run()
    app.button(key="api-use").click().run()
    assert not app.exception
    text = said(app)
    assert "The API bills $2.46 per 1M output tokens, their input included" in text
    assert "break-even utilisation" in text
    assert sliders(app)["api_output_usd"]["value"] == 1.68
    badges = [m.value for m in app.markdown if "-badge[" in m.value]
    assert ":gray-badge[published]" in badges
    dear = tab("Against an API", api_input_usd="0", api_output_usd="0.5")
    assert "off: break-even utilisation" in said(dear)
    assert "never cheaper than the API" in said(dear)
    free = tab("Against an API", api_input_usd="0", api_output_usd="0")
    assert "a price above 0 is needed" in said(free)


def test_training_and_charge_back() -> None:
    bill = {"charge_capacity": "8", "charge_teams": "A, 3, 1; B, 1, 1"}
    training = {"training_usd": "5000", "training_tokens": "10000000000"}
    app = tab("Training and charge-back", **bill, **training)
    rows = table(app, "team")
    assert rows["team"] == ["A", "B", "idle", "sum"]
    assert rows["by reservation, $/h"] == ["$0.750", "$0.250", "$1.00", "$2.00"]
    assert rows["by use, $/h"][2:] == ["$1.50", "$2.00"]
    assert "it is $0.500 per 1M" in said(app)
    wrong = tab("Training and charge-back", charge_capacity="2", charge_teams="A, 3, 1")
    assert "reserved sum to 3, above the capacity of 2" in said(wrong)
    garbled = tab("Training and charge-back", charge_capacity="2", charge_teams="![x](y)")
    assert "name, reserved, used" in said(garbled)


def test_the_drafters_own_gpus_are_in_the_price() -> None:
    plain, more = (tab("Break-evens", **link) for link in ({}, {"drafter_gpus": "1"}))
    off, on = (metric(app, "Break-even M") for app in (plain, more))
    assert (off, on) == ("1.00×", "2.00×")
    assert " % more" in said(more)


def test_a_committed_fleet_has_a_reading_of_its_own() -> None:
    app = tab("Break-evens", tokens_per_day="10000000")
    assert "Capacity is committed (1 server paid either way): $0 in cash" in said(app)
    assert "more output tokens an hour" in said(app)
