"""Measure next in a browser: copy a command, take the sweep's two files home."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import idle, until
from tests.browser.test_upload import reads

pytestmark = pytest.mark.browser


def test_a_command_is_copied_and_the_sweeps_files_parse(
    server: str, watched: Any, tmp_path: Path
) -> None:
    page = watched.open(
        f"{server}/compare?study=vllm_dspark_dsv4pro_b300",
        permissions=["clipboard-read", "clipboard-write"],
    )
    reads(page, "Measure off and dspark-adaptive at 512 concurrent")
    card = page.locator(".st-key-next-step")
    card.scroll_into_view_if_needed()
    code = card.get_by_test_id("stCode").first
    code.hover()
    code.get_by_role("button", name="Copy to clipboard").click()
    copied = shlex.split(page.evaluate("navigator.clipboard.readText()"))
    assert copied[:4] == ["vllm", "bench", "sweep", "serve"]
    read = {}
    for option in ("--serve-params", "--bench-params"):
        name = copied[copied.index(option) + 1]
        with page.expect_download() as waiting:
            card.get_by_role("button", name=name).click()
        waiting.value.save_as(tmp_path / name)
        assert waiting.value.suggested_filename == name
        read[option] = json.loads((tmp_path / name).read_text())
    assert [r["_benchmark_name"] for r in read["--serve-params"]] == ["off", "dspark-adaptive"]
    assert read["--bench-params"] == [{"max_concurrency": 512, "num_prompts": 4096}]
    served = shlex.split(copied[copied.index("--serve-cmd") + 1])
    assert served[:3] == ["vllm", "serve", "DeepSeek-V4-Pro"]


def test_the_decision_page_shows_its_commands(server: str, watched: Any) -> None:
    page = watched.open(f"{server}/decision?study=trtllm_l4_qwen25_1p5b_draft0p5b_load&load=1")
    reads(page, "Measure this next.")
    card = page.locator(".st-key-next-step")
    card.get_by_text("Commands to copy").click()
    idle(page)
    until(page, "document.querySelector('.st-key-next-step [data-testid=stCode]') !== null")
    assert "vllm serve Qwen2.5-1.5B-Instruct" in card.inner_text()
