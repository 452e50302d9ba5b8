"""The schedule card: what it writes for each engine, and what it says of a pasted schedule."""

import json
from dataclasses import replace

import yaml
from streamlit.testing.v1 import AppTest

from lib.evidence import trtllm_schedule
from lib.results import published
from tests.pages.test_judged import B300, DEMO, L4, said, unescaped
from tests.pages.test_pages import start


def written(app: AppTest) -> dict[str, str]:
    """The first text of each language: what is to deploy comes before what proves it."""
    found: dict[str, str] = {}
    for block in app.code:
        found.setdefault(block.language or "", block.value)
    return found


def card(**link: str) -> AppTest:
    app = start("compare", **{"study": DEMO, "max_num_seqs": "64", **link})
    assert not app.exception
    return app


def paste(text: str, k: int | None = None, seqs: int | None = None) -> AppTest:
    app = start("compare", study=L4)
    app.text_area(key="schedule-text").set_value(text).run()
    if k is not None:
        app.number_input(key="check-k").set_value(k).run()
    if seqs is not None:
        app.number_input(key="check-seqs").set_value(seqs).run()
    assert not app.exception
    return app


def test_the_gain_is_named_without_a_free_k_0() -> None:
    app = card()
    assert "Up to 11.5 % over a fixed K = 2 on output tok/s where it drafts" in unescaped(app)
    assert "simulated engine: no GPU was measured" in said(app)


def test_vllm_as_json_flag_and_python() -> None:
    found = written(card())
    assert json.loads(found["json"])["num_speculative_tokens"] == 4
    assert (
        "'num_speculative_tokens_per_batch_size': [[1, 8, 4], [9, 38, 2], [39, 64, 0]]"
        in (found["python"])
    )


def test_tensorrt_llm_waits_for_its_version() -> None:
    app = start("compare", study=B300, max_num_seqs="256")
    assert "Type the version" in said(app)
    app.text_input(key="trtllm_version").set_value("1.3.0rc4").run()
    table = yaml.safe_load(written(app)["yaml"])["speculative_config"]["draft_len_schedule"]
    assert table == {4: 6, 18: 5, 56: 3, 66: 5, 256: 3}
    app.text_input(key="trtllm_version").set_value("1.2.1").run()
    table = yaml.safe_load(written(app)["yaml"])["speculative_config"]["draft_len_schedule"]
    assert table == {1: 6, 5: 5, 19: 3, 57: 5, 67: 3}


def test_sglang_says_plainly_that_it_cannot() -> None:
    assert "SGLang takes no table from batch size to draft length" in said(card())


def test_a_drafter_that_no_study_records_is_named_beside_the_text() -> None:
    app = start("compare", study=B300, max_num_seqs="256", trtllm_version="1.3.0")
    said_of = [c.value for c in app.caption if "drafter's model is not recorded" in c.value]
    options = ("`model`", "`speculative_model`")
    assert [o for o in options if any(o in c for c in said_of)] == list(options)


def test_the_three_arms_are_named() -> None:
    app = card()
    assert "sim:schedule: the schedule itself" in unescaped(app)
    assert "each at concurrency 1, 2, 4, 8, 9, 16, 32, 39, 64" in unescaped(app)


def test_the_proof_is_ready_to_copy_in_the_tool_of_choice() -> None:
    app = card()
    tool = next(s for s in app.selectbox if s.label == "Measure it with")
    assert tool.value == "GuideLLM"
    assert sum("guidellm run" in c.value for c in app.code) >= 3
    tool.select("vLLM sweep").run()
    assert not app.exception
    texts = [c.value for c in app.code]
    assert any(t.startswith("vllm bench sweep serve") for t in texts)
    arms = next(json.loads(t) for t in texts if t.startswith("[") and "sim:schedule" in t)
    assert [a["_benchmark_name"] for a in arms] == ["off", "sim:2", "sim:schedule"]
    keys = {d.label for d in app.get("download_button")}
    assert keys >= {"serve-params.json", "bench-params.json"}
    tool = next(s for s in app.selectbox if s.label == "Measure it with")
    tool.select("SGLang bench_serving").run()
    assert not app.exception
    assert "measure it with vLLM" in unescaped(app)


def test_a_recorded_tensorrt_llm_version_decides_what_a_key_means() -> None:
    rows = published.study(B300).runs
    named = [replace(r, engine="tensorrt_llm", engine_version="1.3.0rc2") for r in rows]
    assert trtllm_schedule.recorded_version(named) == "1.3.0rc2"
    assert trtllm_schedule.meaning_of("1.3.0rc2") == trtllm_schedule.LAST
    two = [*named, replace(rows[0], engine="TensorRT-LLM", engine_version="1.2.1")]
    assert trtllm_schedule.recorded_version(two) is None
    assert trtllm_schedule.recorded_version(rows) is None


def test_goodput_asks_for_a_limit_and_takes_it() -> None:
    app = card(objective="goodput")
    assert "name a limit on TTFT, TPOT" in said(app)
    app = card(objective="goodput", slo_tpot_ms="40")
    assert "Goodput by percentile at p99 TPOT ≤ 40 ms" in unescaped(app)
    assert "[9, 39, 2]" in written(app)["json"]


def test_tpot_is_built_from_its_own_pairs() -> None:
    assert "on mean TPOT" in said(card(objective="tpot"))


def test_an_open_tail_is_asked_for() -> None:
    app = start("compare", study=B300, max_num_seqs="512")
    assert "257 to 512 are unmeasured" in said(app)
    assert "json" not in written(app)
    app.selectbox(key="tail").set_value("off").run()
    assert "[257, 512, 0]" in written(app)["json"]


def test_vllms_broken_example_is_explained() -> None:
    app = paste("[[1,16,5],[17,32,4],[33,64,3],[65,128,1]]", 3, 128)
    assert "clamped to num_speculative_tokens = 3; raise that to 5" in unescaped(app)
    assert "not as it is written" in app.success[0].value
    table = next(d.value for d in app.dataframe if list(d.value.columns)[-1] == "K")
    assert table.values.tolist() == [[1, 64, 3], [65, 128, 1]]


def test_a_pasted_command_brings_its_own_numbers() -> None:
    app = paste(
        "vllm serve m --max-num-seqs 64 --speculative-config "
        '\'{"method":"mtp","num_speculative_tokens":2,'
        '"num_speculative_tokens_per_batch_size":[[1,8,2],[9,64,0]]}\''
    )
    assert app.success
    assert "vllm#49548" in unescaped(app)


def test_numbers_that_are_missing_are_asked_for() -> None:
    assert "To judge it, type num_speculative_tokens" in unescaped(paste("[[1,16,3]]"))
    assert "must start at 1" in unescaped(paste("[[2,16,3]]"))


def test_a_pasted_name_is_text() -> None:
    app = paste('{"![i](http://host/p.png)": 3}')
    assert "not known" in said(app)
    assert "![i](" not in said(app)
