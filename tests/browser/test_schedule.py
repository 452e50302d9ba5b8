"""The schedule on the real page: copy it, and paste a broken one to read why it is."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import idle
from tests.browser.test_upload import reads

pytestmark = pytest.mark.browser
COMMANDS = Path(__file__).resolve().parents[1] / "fixtures" / "commands"
FLAGS = json.loads((COMMANDS / "flags.json").read_text())
RANGES = [[1, 8, 4], [9, 38, 2], [39, 64, 0]]
BROKEN = "[[1,16,5],[17,32,4],[33,64,3],[65,128,1]]"


def fill(page: Any, role: str, name: str, text: str) -> None:
    field = page.get_by_role("tabpanel", name="Check one").get_by_role(role, name=name)
    field.fill(text)
    field.press("Control+Enter" if role == "textbox" else "Enter")
    idle(page)


def test_copy_the_schedule_and_paste_a_broken_one(server: str, watched: Any) -> None:
    page = watched.open(f"{server}/compare?study=guidellm-0.8.1-simulated&max_num_seqs=64")
    reads(page, "Up to 11.5 % over a fixed K = 2")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    flag = page.get_by_test_id("stCode").filter(has_text="--speculative-config")
    flag = flag.filter(has_not_text="vllm serve").last
    flag.hover()
    flag.get_by_role("button").click()
    name, text = shlex.split(page.evaluate("navigator.clipboard.readText()"))
    assert name == "--speculative-config"
    ranges = json.loads(text)["num_speculative_tokens_per_batch_size"]
    assert ranges == RANGES

    page.get_by_role("tab", name="Check one").click()
    fill(page, "textbox", "A schedule in any form", BROKEN)
    reads(page, "To judge it, type num_speculative_tokens")
    fill(page, "spinbutton", "num_speculative_tokens", "3")
    reads(page, "[1, 16, 5]: K is clamped to num_speculative_tokens = 3")
    reads(page, "The engine starts with it, but not as it is written.")


def test_the_proof_is_a_command_that_the_sweep_accepts(
    server: str, watched: Any, tmp_path: Path
) -> None:
    """Its options are those of `vllm bench sweep serve`, its two JSON files are lists of dicts."""
    page = watched.open(f"{server}/compare?study=guidellm-0.8.1-simulated&max_num_seqs=64")
    reads(page, "Up to 11.5 % over a fixed K = 2")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("tab", name="Prove it").click()
    panel = page.get_by_role("tabpanel", name="Prove it")
    panel.get_by_role("combobox", name="Measure it with").click()
    page.get_by_role("option", name="vLLM sweep").click()
    idle(page)
    command = panel.get_by_test_id("stCode").filter(has_text="vllm bench sweep serve")
    command.hover()
    command.get_by_role("button", name="Copy to clipboard").click()
    words = shlex.split(page.evaluate("navigator.clipboard.readText()"))
    assert words[:4] == ["vllm", "bench", "sweep", "serve"]
    given = {w for w in words if w.startswith("-")}
    assert given <= set(FLAGS["vllm bench sweep serve"]["flags"])
    for option, name in (("--serve-cmd", "vllm serve"), ("--bench-cmd", "vllm bench serve")):
        inner = shlex.split(words[words.index(option) + 1])
        assert " ".join(inner).startswith(name)
        assert {w for w in inner if w.startswith("-")} <= set(FLAGS[name]["flags"])
    rows = {}
    for option in ("--serve-params", "--bench-params"):
        name = words[words.index(option) + 1]
        with page.expect_download() as waiting:
            panel.get_by_role("button", name=name).click()
        waiting.value.save_as(tmp_path / name)
        rows[option] = json.loads((tmp_path / name).read_text())
    arms = {r["_benchmark_name"]: r.get("speculative_config") for r in rows["--serve-params"]}
    assert list(arms) == ["off", "sim:2", "sim:schedule"]
    assert arms["off"] is None
    assert arms["sim:schedule"]["num_speculative_tokens_per_batch_size"] == RANGES
    assert [r["max_concurrency"] for r in rows["--bench-params"]] == [1, 2, 4, 8, 9, 16, 32, 39, 64]
