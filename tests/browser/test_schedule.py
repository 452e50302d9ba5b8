"""The schedule on the real page: copy it, and paste a broken one to read why it is."""

import json
import shlex
from typing import Any

import pytest

from tests.browser.conftest import idle
from tests.browser.test_upload import reads

pytestmark = pytest.mark.browser
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
    flag = page.get_by_test_id("stCode").filter(has_text="--speculative-config").last
    flag.hover()
    flag.get_by_role("button").click()
    name, text = shlex.split(page.evaluate("navigator.clipboard.readText()"))
    assert name == "--speculative-config"
    ranges = json.loads(text)["num_speculative_tokens_per_batch_size"]
    assert ranges == [[1, 8, 4], [9, 38, 2], [39, 64, 0]]

    page.get_by_role("tab", name="Check one").click()
    fill(page, "textbox", "A schedule in any form", BROKEN)
    reads(page, "To judge it, type num_speculative_tokens")
    fill(page, "spinbutton", "num_speculative_tokens", "3")
    reads(page, "[1, 16, 5]: K is clamped to num_speculative_tokens = 3")
    reads(page, "The engine starts with it, but not as it is written.")
