"""Paths of this machine: each is read or refused by its own name, and the others go on."""

import os
import socket
from pathlib import Path

import pytest

from lib.errors import DraftworthError, InputError
from lib.results.importing import import_paths
from lib.results.locating import list_files
from lib.results.store import Store

VLLM = Path(__file__).resolve().parents[2] / "fixtures" / "vllm" / "off-c8.json"


def outcome(*paths: Path) -> dict[str, str]:
    """By name what is read, or why it is not."""
    said = {}
    for entry in list_files(paths):
        try:
            said[entry.name] = entry.read().decode()
        except DraftworthError as error:
            said[entry.name] = str(error)
    return said


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "results"
    (made / "inner").mkdir(parents=True)
    (made / "a.json").write_text("a")
    (made / "inner" / "z.json").write_text("z")
    return made


@pytest.mark.parametrize("locked", ["b.json", "inner/b.zip"])
def test_a_file_that_may_not_be_read_is_refused_alone(
    folder: Path, locked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / locked).write_text("b")
    opened = Path.open

    def refuse(self: Path, *given: object, **more: object) -> object:
        if self.name == Path(locked).name:
            raise PermissionError(13, "Permission denied", str(self))
        return opened(self, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "open", refuse)
    said = outcome(folder)
    assert said.pop(locked).startswith(f"{locked}: not readable by this user")
    assert said == {"a.json": "a", "inner/z.json": "z"}
    assert outcome(folder / locked, folder / "a.json")["a.json"] == "a"


def test_a_folder_that_may_not_be_read_is_refused_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir = os.scandir

    def refuse(place: str) -> object:
        if str(place).endswith("inner"):
            raise PermissionError(13, "Permission denied", str(place))
        return scandir(place)

    monkeypatch.setattr(os, "scandir", refuse)
    said = outcome(folder)
    assert "not readable" in said.pop("inner")
    assert said == {"a.json": "a"}


def test_links_that_lead_nowhere_are_refused_alone(folder: Path) -> None:
    (folder / "broken.json").symlink_to(folder / "gone.json")
    (folder / "loop.json").symlink_to(folder / "loop.json")
    (folder / "good.json").symlink_to(folder / "a.json")
    (folder / "latest").symlink_to(folder / "inner")
    said = outcome(folder)
    assert "a link to nothing" in said.pop("broken.json")
    assert "leads back to itself" in said.pop("loop.json")
    assert said == {"a.json": "a", "good.json": "a", "inner/z.json": "z"}


def test_what_is_no_file_has_its_own_reason(tmp_path: Path, folder: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(folder / "pipe.json")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "broken").symlink_to(tmp_path / "gone")
    where = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(where)[-100:] if len(str(where)) < 100 else "\0x")
        reasons = {
            "pipe": "a pipe",
            "loop": "a link that leads back to itself",
            "broken": "a link to nothing",
            "gone": "no such file or folder",
            "x\0y": "cannot be opened",
        }
        if where.exists():
            reasons["s"] = "a socket"
        for name, reason in reasons.items():
            with pytest.raises(InputError, match=reason) as caught:
                list(list_files([tmp_path / name]))
            assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="a device"):
        list(list_files([Path("/dev/null")]))
    assert "a pipe" in outcome(folder)["pipe.json"]


def test_an_import_goes_on_and_says_what_it_left_out(tmp_path: Path, folder: Path) -> None:
    (folder / "broken.json").symlink_to(folder / "gone.json")
    (folder / "r.json").write_bytes(VLLM.read_bytes())
    store = Store.open(tmp_path / "s.duckdb")
    report = import_paths(store, [folder], "mine")
    store.close()
    assert report.imported == 1
    assert "a link to nothing" in {r.file: r.reason for r in report.refused}["broken.json"]
