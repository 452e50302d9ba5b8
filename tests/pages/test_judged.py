"""Compare, price and decision on the studies that ship: what they say and what they leave open."""

import html
import json

import pytest
from streamlit.testing.v1 import AppTest

from lib.results import published
from tests.pages.test_pages import figures, metric, start

L4 = "trtllm_l4_qwen25_1p5b_draft0p5b_load"
B300 = "vllm_dspark_dsv4pro_b300"
DEMO = "guidellm-0.8.1-simulated"
PAID = {"usd_per_gpu_hour": "1", "gpu_count": "1", "utilization": "0.6"}


def said(app: AppTest) -> str:
    blocks = [*app.markdown, *app.info, *app.caption, *app.warning, *app.error]
    return "\n".join(str(b.value) for b in blocks)


def unescaped(app: AppTest) -> str:
    """What the page says, as it reads: markup escapes undone."""
    return html.unescape(said(app)).replace("\u2060", "")


@pytest.mark.parametrize("page", ["compare", "price", "decision", "results"])
@pytest.mark.parametrize("name", published.studies())
def test_every_study_renders_on_every_page(name: str, page: str) -> None:
    app = start(page, study=name, load="1", **PAID, max_num_seqs="256", slo_tpot_ms="40")
    assert not app.exception
    assert not app.error
    assert app.session_state["study"] == name


def test_the_first_visit_sees_a_judged_published_sweep() -> None:
    app = start("decision")
    assert "is ahead at batch 1" in unescaped(app)
    assert "crosses at 1.369" in unescaped(app)
    assert "Name your operating load" in said(app)
    assert "Name the operating load, type a $/GPU-h" in unescaped(app)
    (figure,) = figures(app)
    assert "crosses at 1.369" in str(figure["spec"])


def test_compare_names_the_crossing_and_the_schedule() -> None:
    app = start("compare", study=DEMO, max_num_seqs="64")
    assert "simulated engine" in said(app)
    assert len(figures(app)) == 2
    assert any("[[1, 8, 4], [9, 38, 2], [39, 64, 0]]" in c.value for c in app.code)
    flag = next(c.value for c in app.code if c.value.startswith("--speculative-config '"))
    config = json.loads(flag.removeprefix("--speculative-config ").strip("'"))
    assert config["num_speculative_tokens"] == 4


def test_compare_on_tpot() -> None:
    app = start("compare", study=DEMO, metric="Mean TPOT")
    assert app.session_state["metric"] == "tpot_ms"
    assert any("mean tpot" in str(f).lower() for f in figures(app))


def test_a_study_without_the_metric_says_so() -> None:
    app = start("compare", study=L4, metric="Mean TPOT")
    assert not app.exception
    assert "Mean TPOT is not recorded in both arms at any load" in said(app)


def test_price_starts_empty_and_says_what_it_blocks() -> None:
    app = start("price", study=L4, load="1")
    assert "type a $/GPU-h, type the utilisation" in unescaped(app)
    assert not app.metric


def test_price_of_a_published_sweep() -> None:
    app = start("price", study=L4, load="1", **PAID)
    assert metric(app, "$/1M output, off") == "$6.20"
    assert metric(app, "$/1M output, with") == "$5.44"
    assert metric(app, "Saving") == "12 %"


def test_price_uses_the_recorded_gpu_count() -> None:
    app = start("price", study=B300, load="1", usd_per_gpu_hour="4", utilization="1")
    assert metric(app, "$/1M output, off") == f"${4 * 8 * 1e6 / 3600 / 101:.2f}"


def test_a_missed_slo_takes_the_price_away() -> None:
    app = start("price", study=DEMO, load="64", **PAID, slo_tpot_ms="14")
    assert "misses the SLO" in said(app)
    assert not app.metric


def test_ratios_are_never_priced() -> None:
    app = start("price", study="eagle3_sglang_h100_llama31_8b", load="2", **PAID)
    assert "never priced" in said(app)
    assert not app.metric


def test_the_decision_asks_for_what_is_not_recorded() -> None:
    app = start("decision", study=DEMO, load="8")
    assert "Undecided" in said(app)
    assert "protocol fields are not recorded" in said(app)


def test_stating_them_lets_the_verdict_stand() -> None:
    app = start("decision", study=DEMO, load="8")
    box = app.multiselect(key="stated")
    box.set_value(box.options).run()
    assert not app.exception
    assert "wins at 8" in said(app)
    assert "Undecided: sim" not in said(app)
    assert "of redraws" in said(app)


def test_a_published_example_does_not_pass_the_screen_gate() -> None:
    app = start("decision", study=L4)
    assert "published example of other models" in said(app)


def test_the_checker_judges_as_the_engine() -> None:
    app = start("compare", study=L4)
    app.text_area(key="schedule-text").set_value("[[1,16,3],[10,64,0]]").run()
    app.number_input(key="check-k").set_value(3).run()
    app.number_input(key="check-seqs").set_value(64).run()
    assert not app.exception
    assert any("overlap" in e.value for e in app.error)
    app.text_area(key="schedule-text").set_value("[[1,16,3],[17,64,0]]").run()
    assert app.success


def test_another_study_forgets_a_load_it_does_not_have() -> None:
    app = start("compare", study=DEMO, load="64")
    assert app.session_state["load"] == 64
    app.selectbox(key="study").set_value(L4).run()
    assert not app.exception
    assert not app.error
    assert app.session_state["load"] is None


def test_a_typed_multiplier_is_labelled_assumed_beside_a_measured_answer() -> None:
    link = {**PAID, "assumed_multiplier": "1.8", "assumed_tps": "45"}
    app = start("price", study=L4, load="1", **link)
    assert not app.exception
    assert "if M were 1.8" in unescaped(app)
    assert any("assumed" in str(m.value) for m in app.markdown)
    assert metric(app, "$/1M output, off") == "$6.20"


def test_no_utilisation_is_assumed_for_a_typed_multiplier() -> None:
    link = {"usd_per_gpu_hour": "2", "gpu_count": "1"}
    app = start("price", study=L4, assumed_multiplier="1.8", assumed_tps="45", **link)
    assert "if M were" not in unescaped(app)
    assert "the GPUs and the utilisation" in unescaped(app)


def test_what_is_stated_in_the_link_counts_at_once_and_for_that_study_alone() -> None:
    app = start("decision", study=DEMO, load="8", stated=["gpu"])
    assert "13 protocol fields are not recorded" in said(app)
    app.selectbox(key="study").set_value(B300).run()
    assert not app.session_state["stated"]
    assert app.session_state["load"] is None


def test_a_link_to_a_study_that_is_not_here_says_so() -> None:
    app = start("price", study="somebody-elses", load="1", **PAID)
    assert not app.exception
    assert any("is not here" in w.value for w in app.warning)
