"""The documentation is true: its commands exist, its settings are the settings."""

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from lib.cli import app
from lib.money.cost import (
    break_even_extra_usd_per_hour,
    cost_per_million,
    monthly_saving,
    speculative_cost_per_million,
)
from lib.results import formats
from lib.settings import SETTINGS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
COMMANDS = get_command(app).commands  # type: ignore[attr-defined]


def blocks() -> list[str]:
    text = "\n".join(p.read_text() for p in PAGES)
    found = re.findall(r"```bash\n(.*?)```", text, re.DOTALL)
    return [line.strip() for block in found for line in block.splitlines() if line.strip()]


@pytest.mark.parametrize("line", [x for x in blocks() if x.startswith("python -m lib")])
def test_documented_commands_parse(line: str) -> None:
    words = shlex.split(line)[3:]
    command = COMMANDS[words[0]]
    with command.make_context(words[0], words[1:], resilient_parsing=False):
        pass


@pytest.mark.parametrize("line", [x for x in blocks() if x.startswith("make")])
def test_documented_targets_exist(line: str) -> None:
    target = line.split()[1]
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_every_command_is_documented() -> None:
    text = "\n".join(p.read_text() for p in PAGES)
    assert set(COMMANDS) == set(re.findall(r"python -m lib ([\w-]+)", text))


def settings_table() -> str:
    rows = "\n".join(f"| `{s.name}` | `{s.default}` | {s.help} |" for s in SETTINGS)
    return f"| name | default | what it does |\n|---|---|---|\n{rows}"


def test_the_settings_table_is_the_settings() -> None:
    text = (ROOT / "README.md").read_text()
    stated = text.split("<!-- settings -->")[1].split("<!-- /settings -->")[0].strip()
    assert stated == settings_table()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_and_pictures_exist(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert target.startswith("http") or (page.parent / target).exists(), target


def test_figures_of_the_finance_page() -> None:
    text = (ROOT / "docs" / "finance.md").read_text()
    saving = monthly_saving(10e6 / 86400, 5, 100, 5, 250)
    for value in (
        f"${cost_per_million(2, 45):.2f}",
        f"${speculative_cost_per_million(2, 45, 1.8):.2f}",
        f"${speculative_cost_per_million(2, 45, 0.85):.2f}",
        f"${speculative_cost_per_million(2, 45, 1.15, 1.2):.2f}",
        f"${break_even_extra_usd_per_hour(2, 1.8):.2f}",
        f"${saving.hours_scale_usd:,.0f}",
        f"${saving.whole_servers_usd:,.0f}",
        f"{saving.short_off:.1%}".replace("%", " %"),
    ):
        assert value in text, value


def test_the_page_of_formats_is_generated_from_the_readers() -> None:
    assert (ROOT / "docs" / "formats.md").read_text() == formats.markdown()
