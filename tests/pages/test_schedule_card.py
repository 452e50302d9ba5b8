"""The schedule card: what it writes for each engine, and what it says of a pasted schedule."""

import json

import yaml
from streamlit.testing.v1 import AppTest

from tests.pages.test_judged import B300, DEMO, L4, said, unescaped
from tests.pages.test_pages import start


def written(app: AppTest) -> dict[str, str]:
    return {c.language: c.value for c in app.code if c.language}


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


def test_the_three_arms_are_named() -> None:
    app = card()
    assert "sim:schedule: the schedule itself" in unescaped(app)
    assert "each at concurrency 1, 2, 4, 8, 9, 16, 32, 39, 64" in unescaped(app)


def test_goodput_asks_for_a_limit_and_takes_it() -> None:
    app = card(objective="goodput")
    assert "name a TTFT or TPOT limit" in said(app)
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
