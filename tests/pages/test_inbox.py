"""The watched folder on the results page: what it brought, what it refused, or why it is none."""

import shutil
from pathlib import Path

import pytest

from lib.ui import inbox
from tests.pages.test_pages import start

RESULT = Path(__file__).resolve().parents[1] / "fixtures" / "vllm" / "off-c8.json"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "inbox"
    monkeypatch.setenv("DRAFTWORTH_INBOX", str(made))
    monkeypatch.setattr(inbox.Inbox, "start", lambda self: None)  # the test looks itself
    return made


def test_a_folder_that_is_none_is_said(folder: Path) -> None:
    assert any("is no folder" in w.value for w in start("results").warning)


def test_what_arrived_and_what_was_refused(folder: Path) -> None:
    (folder / "chat" / "off").mkdir(parents=True)
    assert any("Watching" in c.value for c in start("results").caption)
    shutil.copy(RESULT, folder / "chat" / "off")
    (folder / "chat" / "half.json").write_bytes(b'{"half":')
    watched = inbox.watch()
    assert watched is not None
    watched.look()
    watched.look()
    page = start("results")
    (title,) = (e.label for e in page.expander if "Inbox" in e.label)
    assert "1 run from 1 file into chat" in title
    assert "1 refused so far" in title
    assert any("refused: half" in c.value.replace("\u2060", "") for c in page.caption)


def test_nothing_is_shown_where_no_folder_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRAFTWORTH_INBOX", raising=False)
    assert not any("Watching" in c.value for c in start("results").caption)
