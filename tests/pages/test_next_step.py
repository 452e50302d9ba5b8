"""Measure next, on the compare and the decision page."""

import html
import json
import shlex
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from lib.results import published
from tests.pages.test_judged import B300, DEMO, L4, unescaped
from tests.pages.test_pages import start

K_ZERO = "vllm_h100_gemma4_31b_dsd_k0_tax"


def codes(app: AppTest) -> list[str]:
    return [c.value for c in app.code if c.language == "bash"]


def tool(app: AppTest) -> Any:
    return next(s for s in app.selectbox if s.label == "Tool")


def test_compare_names_the_cell_and_its_commands() -> None:
    app = start("compare", study=B300)
    assert any(s.value == "Measure next" for s in app.subheader)
    assert "Measure off and dspark-adaptive at 512 concurrent, 3 runs each." in unescaped(app)
    sweep = next(c for c in codes(app) if c.startswith("vllm bench sweep serve"))
    assert "--num-runs 3" in sweep
    assert {d.label for d in app.get("download_button")} >= {
        "serve-params.json",
        "bench-params.json",
    }


def test_the_operating_load_moves_the_cell() -> None:
    app = start("compare", study=L4, load="4")
    assert "Repeat off and draft_model:4 at batch 4, 2 more runs each." in unescaped(app)


def test_another_tool_and_another_cell() -> None:
    app = start("compare", study=L4)
    tool(app).select("AIPerf").run()
    assert not app.exception
    assert any("aiperf profile" in c for c in codes(app))
    cells = next(s for s in app.selectbox if s.label == "Cell")
    cells.select_index(2).run()
    assert not app.exception
    assert any("-c4-" in c for c in codes(app))
    tool(app).select("vLLM bench serve").run()
    servers = [shlex.split(c) for c in codes(app) if c.startswith("vllm serve")]
    assert len(servers) == 2
    assert "--speculative-config" in servers[1]


def test_arms_and_loads_of_the_sweep_are_chosen() -> None:
    app = start("compare", study=B300)
    arms = next(m for m in app.multiselect if m.label == "Arms")
    assert list(arms.value) == ["off", "dspark-adaptive"]
    arms.set_value([]).run()
    assert not app.exception
    assert "at least one arm and one load" in unescaped(app)


def test_a_tool_unlike_the_studys_is_said_not_to_pair() -> None:
    app = start("compare", study=DEMO)
    assert tool(app).value == "GuideLLM"
    tool(app).select("AIPerf").run()
    assert "runs of another tool do not pair" in unescaped(app)


def test_a_schedules_k_zero_is_asked_for() -> None:
    app = start("compare", study=DEMO, max_num_seqs="64")
    cells = next(s for s in app.selectbox if s.label == "Cell")
    assert "sim:0 at 64 concurrent" in cells.options
    cells.select("sim:0 at 64 concurrent").run()
    tool(app).select("vLLM bench serve").run()
    server = shlex.split(next(c for c in codes(app) if c.startswith("vllm serve")))
    config = json.loads(server[server.index("--speculative-config") + 1])
    assert {r[2] for r in config["num_speculative_tokens_per_batch_size"]} == {0}
    assert config["num_speculative_tokens"] == 4
    tool(app).select("SGLang bench_serving").run()
    assert not app.exception
    assert "SGLang has no K by batch size" in unescaped(app)


def test_nothing_compared_says_why_no_cell_follows() -> None:
    app = start("compare", study=K_ZERO)
    assert not app.exception
    assert "no cell to measure follows" in unescaped(app)


def test_the_table_says_what_would_settle_each_load() -> None:
    app = start("compare", study=DEMO)
    (frame, *_) = app.dataframe
    assert set(frame.value["would settle it"]) >= {"settled"}


def test_the_decision_page_names_it_under_the_verdict() -> None:
    app = start("decision", study=L4, load="1")
    said = html.unescape("\n".join(m.value for m in app.markdown))
    assert "**Measure this next.** Repeat off and draft_model:4 at batch 1" in said.replace(
        "\u2060", ""
    )
    assert any(c.startswith("vllm serve") for c in codes(app))


@pytest.mark.parametrize("name", published.studies())
@pytest.mark.parametrize("label", ["vLLM sweep", "SGLang bench_serving", "GuideLLM"])
def test_every_study_has_commands_in_every_tool(name: str, label: str) -> None:
    app = start("compare", study=name)
    tools = [s for s in app.selectbox if s.label == "Tool"]
    if not tools:
        assert "no cell to measure follows" in unescaped(app) or "Nothing is open" in unescaped(app)
        return
    tools[0].select(label).run()
    assert not app.exception
    assert not app.error
