import json

import pytest
from streamlit.testing.v1 import AppTest

from lib.ui.navigation import MENU, Row
from tests.pages.conftest import ROOT, SHELL


def start(page: str | None = None, **link: str) -> AppTest:
    app = AppTest.from_file(str(SHELL), default_timeout=60)
    for name, text in link.items():
        app.query_params[name] = text
    app.run()
    if page is not None:
        app.switch_page(str(ROOT / "pages" / f"{page}.py")).run()
    return app


def metric(app: AppTest, label: str) -> str:
    return next(m.value for m in app.metric if m.label == label)


def sliders(app: AppTest) -> dict[str, dict[str, object]]:
    found = (json.loads(e.proto.json) for e in app.get("bidi_component"))
    return {f["key"]: f for f in found if "key" in f}


def figures(app: AppTest) -> list[dict[str, object]]:
    found = (json.loads(e.proto.json) for e in app.get("bidi_component"))
    return [f for f in found if "spec" in f]


@pytest.mark.parametrize("row", MENU, ids=lambda r: r.name)
def test_every_page_renders(row: Row) -> None:
    app = start(row.name)
    assert not app.exception
    assert not app.error
    assert app.title[0].value.endswith("?")
    assert all(f["alt"] for f in figures(app))


def test_the_first_page_opens_at_the_root() -> None:
    app = start()
    assert not app.exception
    assert app.title


def test_screen_starts_on_the_published_example() -> None:
    app = start("screen")
    assert metric(app, "Speedup S") == "3.16×"
    assert metric(app, "Best γ, 1 to 16") == "9"
    assert metric(app, "Per output token") == "–"
    assert app.selectbox(key="preset").value == "T5-small, English to German, T = 0"
    assert len(figures(app)) == 4
    assert {k: s["value"] for k, s in sliders(app).items()} == {
        "alpha": 0.75,
        "gamma": 7,
        "c": 0.02,
        "step_ms": None,
        "answer_tokens": None,
        "verify_cost": None,
    }


def test_a_link_fills_the_sliders_and_bad_text_is_noted() -> None:
    app = start("screen", alpha="0.9", gamma="3", c="80", step_ms="30")
    assert sliders(app)["alpha"]["value"] == 0.9
    assert sliders(app)["c"]["value"] == 0.02
    assert metric(app, "Per output token").endswith(" ms")
    assert app.selectbox(key="preset").value is None
    first = start(alpha="0.9", c="80")
    assert any("c = 80" in caption.value for caption in first.caption)


def test_an_answer_length_fills_the_table_and_a_verify_cost_adds_a_line() -> None:
    app = start("screen", alpha="0.7", gamma="4", c="0.1", step_ms="30", answer_tokens="1000")
    table = next(m.value for m in app.markdown if m.value.startswith("| 1,000 tokens"))
    assert "| With speculation | 15.2 s | 15.2 s | 15.9 s | 16.2 s |" in table
    assert any("Requests differ more" in c.value for c in app.caption)
    assert not any("Not Theorem 3.8" in m.value for m in app.markdown)
    app = start("screen", alpha="0.9", gamma="1", c="0", verify_cost="2.2")
    assert any("cannot pay at this verify cost" in m.value for m in app.markdown)
    assert any(m.value.startswith("| N tokens, in plain steps") for m in app.markdown)


def test_round_cost_is_drawn_where_tau_is_known() -> None:
    app = start("compare", study="vllm_h100_qwen25_7b_ngram_extractive")
    assert not app.exception
    assert any("a round costs 4.96 plain steps" in m.value for m in app.markdown)
    assert any(f["title"] == "Round cost R beside S" for f in figures(app))


def test_round_cost_says_why_it_is_not_drawn() -> None:
    app = start("compare")
    assert any(c.value.startswith("Round cost R is not drawn: τ is not") for c in app.caption)
    assert not any(f["title"] == "Round cost R beside S" for f in figures(app))


def test_values_survive_another_page() -> None:
    app = start("screen", alpha="0.9")
    other = next((r.name for r in MENU if r.name != "screen"), None)
    if other is None:
        pytest.skip("the menu has one page")
    app.switch_page(str(ROOT / "pages" / f"{other}.py")).run()
    app.switch_page(str(ROOT / "pages" / "screen.py")).run()
    assert sliders(app)["alpha"]["value"] == 0.9


def test_a_preset_sets_the_sliders_and_its_citation() -> None:
    app = start("screen")
    app.selectbox(key="preset").select("T5-large, English to German, T = 1").run()
    found = sliders(app)
    assert (found["alpha"]["value"], found["gamma"]["value"], found["c"]["value"]) == (
        0.71,
        3,
        0.11,
    )
    assert all(found[k]["revision"] == 1 for k in ("alpha", "gamma", "c"))
    assert any("1.4×" in c.value for c in app.caption)


def test_alpha_not_above_c_says_that_no_length_pays() -> None:
    app = start("screen", alpha="0.1", c="0.1")
    assert any("no draft length pays while α ≤ c" in m.value for m in app.markdown)
    assert any("Corollary 3.9" in c.value for c in app.caption)


def test_v_from_a_batch_benchmark() -> None:
    """C20: four tokens a pass at 174.78 tok/s, one at 169.98."""
    app = start("screen")
    assert next(b for b in app.button if b.label == "Use v").disabled
    for key, value in (("batch_rows", 4), ("batch_tps", 174.78), ("single_tps", 169.98)):
        app.number_input(key=key).set_value(value)
    app.run()
    assert any("at most **1.03×**" in m.value for m in app.markdown)
    next(b for b in app.button if b.label == "Use v ≈ 3.89 at γ = 3").click().run()
    assert not app.exception
    assert sliders(app)["gamma"]["value"] == 3
    assert sliders(app)["verify_cost"]["value"] == pytest.approx(3.89, abs=0.005)


def test_c_from_two_speeds() -> None:
    app = start("screen")
    button = next(b for b in app.button if b.label == "Use c")
    assert button.disabled
    app.number_input(key="target_tps").set_value(50.0)
    app.number_input(key="drafter_tps").set_value(500.0).run()
    next(b for b in app.button if b.label == "Use c ≈ 0.100").click().run()
    assert sliders(app)["c"]["value"] == 0.1
    app.number_input(key="drafter_tps").set_value(25.0).run()
    assert next(b for b in app.button if "no draft pays" in b.label).disabled


def test_simulation_on_request() -> None:
    app = start("screen")
    assert not any("standard error" in m.value for m in app.markdown)
    next(b for b in app.button if b.label == "Simulate").click().run()
    line = next(m.value for m in app.markdown if "standard error" in m.value)
    assert "α = 0.75, γ = 7, c = 0.02" in line
    assert not app.exception
