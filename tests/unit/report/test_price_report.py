"""What the price page says below a price: too close to call, bridge, tornado, tables."""

import json

import pytest

from lib.estimate import Basis, Estimate
from lib.evidence.findings import find
from lib.money.api import ApiPrice, api_price, break_even
from lib.money.bridge import bridge
from lib.money.charge_back import Team, by_reservation
from lib.money.energy import added
from lib.money.good_tokens import GoodShare
from lib.money.pricing import Rate, price_pairs
from lib.money.sensitivity import Range, draw, tornado
from lib.report import format as text
from lib.report import price_api, price_moves, price_tables
from lib.report.price_text import price_answer, saving_lines
from lib.run import Study
from tests.unit.money.cases import PAID, case, run

OFF, ON = [100.0, 102.0, 98.5, 101.0], [150.0, 147.0, 152.0, 149.5]
NEAR = [103.0, 98.0, 101.5, 99.0]


def answer(off: list[float], on: list[float]) -> str:
    runs = [run(f"off {i}", v, repeat=i) for i, v in enumerate(off)]
    runs += [run(f"on {i}", v, 4, repeat=i) for i, v in enumerate(on)]
    found = find(Study("s", tuple(runs)))
    priced = {a.label: price_pairs(found, a, PAID) for a in found.arms}
    return price_answer(found, priced, 8)[0]


def test_the_headline_is_too_close_to_call_where_the_saving_holds_nothing() -> None:
    assert "eagle3:4: too close to call (saving " in answer(OFF, NEAR)
    assert "eagle3:4: 33 % less (saving " in answer(OFF, ON)
    assert "too close to call (one run an arm" in answer([100.0], [100.5])
    assert "29 % more (one run an arm" in answer([100.0], [77.5])


def test_a_month_of_what_is_too_close_says_so_in_every_reading() -> None:
    lines = saving_lines(case(OFF, NEAR).pair, 1e6, 1.0)
    assert len(lines) == 4
    assert all(line.endswith("(too close to call).") for line in lines)
    assert not any("too close" in line for line in saving_lines(case(OFF, ON).pair, 1e6, 1.0))


def test_committed_capacity_is_tokens_and_no_cash() -> None:
    # $5/h, 100 against 250 tok/s, 10M tokens a day need two servers without.
    rate = Rate(5.0, 1, 1.0)
    *_, line = saving_lines(case([100.0], [250.0], rate).pair, 10e6, 1.0)
    assert line == (
        "Capacity is committed (2 servers paid either way): $0 in cash; room for 1.08 million "
        "more output tokens an hour."
    )
    extra = Rate(5.0, 1, 1.0, 0.5)
    *_, paid = saving_lines(case([100.0], [250.0], extra).pair, 10e6, 1.0)
    assert "costs $730.00 more a month in cash" in paid


@pytest.mark.parametrize("on", [ON, [80.0, 81.0]])
def test_the_bridge_is_drawn_from_the_price_without_to_the_price_with(on: list[float]) -> None:
    found = bridge(case(OFF, on, Rate(2.0, 1, 0.6, 0.3, "", 0, None, 0.5)))
    spec = json.loads(str(price_moves.bridge_figure(found, "eagle3:4", "light").to_json()))
    bars = spec["data"][1]
    ends = [b + x for b, x in zip(bars["base"], bars["x"], strict=True)]
    assert ends[0] == pytest.approx(found.off_usd)
    assert ends[-2] == pytest.approx(found.on_usd) == ends[-1]
    rows = price_moves.bridge_table(found)
    assert rows["price after it"][-1] == pytest.approx(rows["price after it"][-2])
    assert rows["step"][0] == "without"


def test_steps_carry_their_sign() -> None:
    assert price_moves.step_text(-5.494) == "−$5.49"
    assert price_moves.step_text(0.5) == "+$0.500"
    assert price_moves.step_text(0.0) == "$0"


def test_a_tornado_and_its_table() -> None:
    made = case(OFF, ON, Rate(2.0, 1, 1.0, 0.3))
    bars = tornado(made, [Range("usd_per_gpu_hour", "Price", 1.5, 3.0, "as typed")], "with")
    spec = json.loads(str(price_moves.tornado_figure(bars, 4.3, "with", "dark").to_json()))
    assert spec["data"][0]["y"][-1] == "Price"
    assert spec["data"][0]["text"][-1] == "1.5"
    rows = price_moves.tornado_table(bars, "with")
    assert rows["range from"][0] == "as typed"
    assert "95 % interval of 4 runs" in rows["range from"]


def test_draws_in_a_sentence_and_a_figure() -> None:
    found = draw(case(OFF, ON), ())
    assert found is not None
    said = price_moves.draws_sentence(found)
    assert said.startswith("In 10,000 draws the saving is 33 % in the median")
    assert "cheaper in 100 %" in said
    assert sum(price_moves.draws_table(found)["draws"]) == pytest.approx(9_900, abs=5)
    assert price_moves.draws_figure(found, "eagle3:4", "light").layout.height
    near = draw(case(OFF, NEAR), ())
    assert near is not None
    assert 0.1 < near.cheaper_share < 0.9


def test_an_api_in_sentences() -> None:
    own = Estimate(0.992, "$ per 1M output tokens", Basis.MEASURED, "runs")
    api = api_price(ApiPrice(0.0, 0.90), 0.0)
    dear = break_even(own, 1.0, 2.5, 700, api)
    assert price_api.break_even_line("off", dear) == (
        "off: break-even utilisation 110.2 %: never cheaper than the API."
    )
    cheap = Estimate(0.8, own.unit, own.basis, own.source)
    line = price_api.break_even_line("eagle3:4", break_even(cheap, 1.0, 2.5, 868, api))
    assert line == (
        "eagle3:4: break-even utilisation 88.9 %, 2.03 billion output tokens a month of at most "
        "2.28 billion."
    )
    wide = Estimate(0.9, own.unit, own.basis, own.source, 0.8, 1.0)
    assert "too close to call" in price_api.break_even_line(
        "off", break_even(wide, 1.0, 2.5, 771, api)
    )
    said = price_api.api_sentence({"without": own}, api, {"without": 1.0})
    assert "$0.900 per 1M output tokens" in said
    assert "$0.992 without at 100 % utilisation" in said


def test_what_is_not_recorded_is_said() -> None:
    assert "not recorded" in price_tables.decode_sentence(None)
    assert "cannot cut more than 30 %" in price_tables.decode_sentence(0.3)
    rows = price_tables.energy_table({"off": None})
    assert rows["J per output token"] == ["not recorded"]
    nothing = price_tables.added_sentence(added([run("a", 1.0)], [run("b", 1.0, 4)]))
    assert nothing.startswith("Extra GPU memory is not recorded; extra power is not recorded.")
    more = added(
        [run("a", 1.0, gpu_mem_gib=60.0, power_w=300.0)],
        [run("b", 1.0, 4, gpu_mem_gib=64.0, power_w=340.0)],
        *(4.0, 80.0, 0.25),
    )
    said = price_tables.added_sentence(more)
    assert "+4.00 GiB with speculation, +$0.200/h of the GPUs' price" in said
    assert "+40.0 W, +$0.0100/h of electricity" in said


@pytest.mark.parametrize(
    ("share", "named", "words"),
    [
        (None, True, "the runs do not tell"),
        (None, False, "name a limit on TTFT"),
        (GoodShare(0.0, True, "counted"), True, "no request met it"),
    ],
)
def test_good_tokens_without_a_price(share: GoodShare | None, named: bool, words: str) -> None:
    assert words in price_tables.good_sentence("off", None, share, named=named)


def test_a_bill_sums_in_its_table() -> None:
    teams = (Team("A", 3, 1), Team("B", 1, 1))
    rows = price_tables.bill_table(teams, {"by reservation": by_reservation(10, 8, teams)})
    assert rows["by reservation"] == ["$3.75", "$1.25", "$5.00", "$10.00"]


@pytest.mark.parametrize(
    ("count", "said"),
    [(850, "850"), (12_345, "12,300"), (2.284e9, "2.28 billion"), (1e6, "1.00 million")],
)
def test_tokens_in_words(count: float, said: str) -> None:
    assert text.tokens(count) == said
