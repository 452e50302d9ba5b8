"""Who may know whom: the arrows of the design run downward only."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RANKS = [
    {
        "lib.addresses",
        "lib.assumptions",
        "lib.errors",
        "lib.estimate",
        "lib.fetching",
        "lib.numbers",
        "lib.run",
        "lib.settings",
    },
    {"lib.theory"},
    {"lib.results", "lib.probe"},
    {"lib.evidence"},
    {"lib.money"},
    {"lib.decision"},
    {"lib.serving"},
    {"lib.report"},
    {"lib.ui", "lib.cli"},
    {"lib.__main__"},
    {"pages", "app"},
]
ALONE = {"streamlit": ("lib.ui", "pages", "app"), "duckdb": ("lib.results",)}


def modules() -> list[Path]:
    found = [*ROOT.glob("lib/**/*.py"), *ROOT.glob("pages/*.py"), ROOT / "app.py"]
    return [p for p in found if p.exists()]


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {name_of(p) for p in modules()}


def room_of(name: str) -> str:
    parts = name.split(".")
    return ".".join(parts[:2]) if parts[0] == "lib" else parts[0]


def rank_of(room: str) -> int:
    for rank, rooms in enumerate(RANKS):
        if room in rooms:
            return rank
    raise AssertionError(f"{room} has no place in the design")


def imports_of(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            base = node.module or ""
            inner = {f"{base}.{a.name}" for a in node.names}
            names |= inner & NAMES
            names |= {base} if inner - NAMES else set()
    return names


@pytest.mark.parametrize("path", modules(), ids=lambda p: name_of(p))
def test_no_arrow_runs_up(path: Path) -> None:
    own = room_of(name_of(path))
    if own == "lib":
        return
    for target in imports_of(path):
        if not target.startswith(("lib.", "pages.")):
            continue
        room = room_of(target)
        same = room == own
        siblings = rank_of(own) == 0 == rank_of(room)
        assert same or siblings or rank_of(room) < rank_of(own), f"{name_of(path)} knows {target}"


@pytest.mark.parametrize("path", modules(), ids=lambda p: name_of(p))
def test_library_stays_in_its_rooms(path: Path) -> None:
    name = name_of(path)
    for target in imports_of(path):
        rooms = ALONE.get(target.split(".")[0])
        assert rooms is None or room_of(name) in rooms, f"{name} imports {target}"


def test_no_circle_among_modules() -> None:
    graph = {name_of(p): {t for t in imports_of(p) if t.startswith("lib.")} for p in modules()}
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " → ".join((*trail, name))
        if name in done:
            return
        for target in graph.get(name, ()):
            visit(target, (*trail, name))
        done.add(name)

    for name in graph:
        visit(name, ())


@pytest.mark.parametrize("path", modules(), ids=lambda p: name_of(p))
def test_size(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    assert lines > 0
    assert lines <= (125 if name_of(path).startswith("pages") else 400), f"{path}: {lines} lines"
