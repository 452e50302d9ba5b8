"""The acceptance page: three ways in, the traffic mix, and alpha carried to screen."""

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from lib.results.importing import import_paths
from lib.results.store import Store
from tests.pages.conftest import ROOT
from tests.pages.test_pages import figures, metric, start

GSM = (0.663, 0.428, 0.271, 0.177, 0.110, 0.071, 0.046)
CODE = (0.594, 0.372, 0.255, 0.189, 0.144, 0.116, 0.090)
HOSTILE = "![i](http://192.0.2.9/p.png) <b>$x$</b>"


def said(app: AppTest) -> str:
    parts = (*app.markdown, *app.caption, *app.info, *app.warning)
    return "\n".join(p.value for p in parts)


def result(
    folder: Path, name: str, rates: tuple[float, ...], drafts: int, **fields: object
) -> None:
    record = json.loads((ROOT / "tests" / "fixtures" / "vllm" / "eagle3-c8.json").read_text())
    accepted = [int(drafts * rate) for rate in rates]
    record |= {
        "dataset": name,
        "dataset_name": name,
        "spec_decode_num_drafts": drafts,
        "spec_decode_draft_tokens": drafts * len(rates),
        "spec_decode_accepted_tokens": sum(accepted),
        "spec_decode_acceptance_rate": 100 * sum(accepted) / drafts / len(rates),
        "spec_decode_acceptance_length": 1 + sum(accepted) / drafts,
        "spec_decode_per_position_acceptance_rates": [a / drafts for a in accepted],
        "total_output_tokens": drafts + sum(accepted),
        **fields,
    }
    (folder / f"{len(list(folder.iterdir()))}.json").write_text(json.dumps(record))


@pytest.fixture
def mine(own_store: None, tmp_path: Path) -> str:
    """A study of one arm on two domains, one of them with a name that is markup."""
    folder = tmp_path / "files"
    folder.mkdir()
    result(folder, "gsm8k", GSM, 18042)
    result(folder, HOSTILE, CODE, 45462)
    store = Store.open()
    import_paths(store, [folder], "mine", ["*=eagle3:7"])
    store.close()
    return "mine"


def test_a_first_visit_reads_a_published_drafter() -> None:
    app = start("acceptance")
    assert not app.exception
    assert metric(app, "Tokens a round τ") == "2.880"
    assert metric(app, "α") == "0.784"
    assert "It misleads: it would promise" in said(app)
    assert "Apache-2.0 licence" in said(app)
    assert len(figures(app)) == 2


def test_a_link_names_the_published_drafter() -> None:
    app = start("acceptance", acceptance_model="Qwen3-8B", c="0.1")
    assert metric(app, "Draft length γ") == "8"
    assert len(figures(app)) == 3


def test_runs_of_the_study_in_hand(mine: str) -> None:
    app = start("acceptance", study=mine)
    assert not app.exception
    assert metric(app, "Tokens a round τ") == "2.762"
    assert metric(app, "(τ − 1) / γ") == "0.252"
    assert metric(app, "τ of this mix") == "2.762"
    assert "assumes every request alike" in said(app)
    assert "![i]" not in said(app)
    first = next(s for s in app.slider if "gsm8k" in s.label)
    second = next(s for s in app.slider if s is not first)
    first.set_value(100)
    second.set_value(0).run()
    assert metric(app, "τ of this mix") == "2.766"
    app.selectbox(key="acceptance_domain").select("gsm8k").run()
    assert metric(app, "Tokens a round τ") == "2.766"
    assert not app.exception


def test_records_that_count_drafts_give_the_interval_by_request(
    own_store: None, tmp_path: Path
) -> None:
    """40 records of 20 rounds at K = 4, of which 30, 40 or 50 drafts are kept."""
    fixtures, folder = ROOT / "tests" / "fixtures" / "aiperf", tmp_path / "files"
    folder.mkdir()
    lines = (fixtures / "k4-c8-records.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    histograms = ({"0": 10, "2": 5, "4": 5}, {"0": 10, "4": 10}, {"1": 10, "4": 10})
    for i, row in enumerate(rows):
        held = histograms[i % 3]
        row["spec_decode_acceptance"] = {
            "num_spec_steps": 20,
            "num_draft_tokens": 80,
            "num_accepted_draft_tokens": sum(int(j) * n for j, n in held.items()),
            "num_spec_tokens": 4,
            "acceptance_histogram": held,
        }
    (folder / "profile_export.jsonl").write_text("\n".join(map(json.dumps, rows)))
    summary = (fixtures / "k4-c8.json").read_text()
    (folder / "profile_export_aiperf.json").write_text(summary)
    store = Store.open()
    import_paths(store, [folder], "counted", ["*=eagle3:4"])
    store.close()
    app = start("acceptance", study="counted")
    assert not app.exception
    assert metric(app, "Tokens a round τ") == "2.987", "1 + 1590 / 800"
    assert metric(app, "α") == "0.772", "A / (A + F) = 1590 / (1590 + 470)"
    assert "counts by request" in said(app)
    assert "every request alike" not in said(app)


def test_a_study_without_acceptance_says_what_to_do() -> None:
    app = start("acceptance", acceptance_way="Study")
    assert not app.exception
    assert "No run of this study states acceptance" in said(app)


def test_typed_counters() -> None:
    app = start("acceptance", acceptance_way="Counters")
    assert "Type the accepted tokens" in said(app)
    app.text_input(key="typed_positions").set_value("477 319 195").run()
    assert "rounds: type the drafts" in said(app)
    app.number_input(key="typed_drafts").set_value(713).run()
    assert metric(app, "α") == "0.657"
    assert metric(app, "(τ − 1) / γ") == "0.463"
    assert "α = 0.657 (0.632–0.680)" in said(app)
    app.number_input(key="typed_topk").set_value(4).run()
    assert "tree draft" in said(app)
    assert metric(app, "α") == "–"
    assert not app.exception


def test_pasted_text() -> None:
    app = start("acceptance", acceptance_way="Counters")
    app.get_by_key("acceptance_kind").set_value("Text").run()
    app.text_area(key="pasted_text").set_value("[39, 1, 0, 3]").run()
    assert metric(app, "Tokens a round τ") == "1.233"
    app.text_area(key="pasted_text").set_value(f"{HOSTILE} no metrics").run()
    assert "nothing about acceptance found" in said(app)
    assert not app.exception


def test_a_quoted_rate_needs_its_draft_length() -> None:
    app = start("acceptance", acceptance_way="Counters")
    app.get_by_key("acceptance_kind").set_value("Quoted value").run()
    app.number_input(key="quoted_value").set_value(0.252).run()
    assert "type γ" in said(app)
    app.number_input(key="quoted_gamma").set_value(7).run()
    assert metric(app, "α") == "0.650"
    assert metric(app, "Tokens a round τ") == "2.764"
    app.number_input(key="quoted_value").set_value(25.2).run()
    assert "was a percentage meant" in said(app)


def test_alpha_is_carried_to_screen_with_its_source() -> None:
    app = start("acceptance", acceptance_way="Counters")
    app.number_input(key="typed_drafts").set_value(713)
    app.text_input(key="typed_positions").set_value("477 319 195").run()
    app.button(key="use-alpha").click().run()
    assert app.session_state["alpha"] == pytest.approx(0.6567, abs=5e-5)
    assert app.session_state["gamma"] == 3
    app.switch_page(str(ROOT / "pages" / "screen.py")).run()
    assert not app.exception
    assert "α, γ from acceptance page: counters as typed (assumed)" in said(app)
    app.selectbox(key="preset").select("T5-large, English to German, T = 1").run()
    assert "from acceptance page" not in said(app)


def test_links_carry_what_was_chosen_and_typed() -> None:
    app = start("acceptance", acceptance_variant="EAGLE3, thinking off", acceptance_gamma="8")
    assert metric(app, "Tokens a round τ") == "3.510"
    typed = start(
        "acceptance", acceptance_way="Counters", typed_drafts="713", typed_positions="477 319 195"
    )
    assert metric(typed, "α") == "0.657"
    bad = start("acceptance", acceptance_model="nowhere", acceptance_gamma="99", typed_drafts="x")
    assert metric(bad, "Tokens a round τ") == "2.880"
    assert not bad.exception


def test_every_group_and_a_split_on_request(mine: str) -> None:
    app = start("acceptance", study=mine)
    assert len(app.dataframe) == 1
    app.session_state["acceptance-every"] = app.session_state["acceptance-two"] = True
    app.run()
    assert not app.exception
    assert len(app.dataframe) == 2
    assert "step time" in said(app)
