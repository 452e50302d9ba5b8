"""The configuration and the figures agree on colour, and production settings stand."""

import tomllib

import pytest

from lib.report import style
from lib.report.style import PAPER, Mode
from lib.report.theory_figures import ACCENT
from lib.settings import ROOT, get
from lib.ui.navigation import MENU

CONFIG = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_ten_chart_colours_that_begin_with_the_arms(mode: Mode) -> None:
    colors = CONFIG["theme"][mode]["chartCategoricalColors"]
    assert len(set(colors)) == 10
    hues = style.HUES[mode]
    assert tuple(colors[: len(hues)]) == hues[:10]


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_figures_share_the_page_colours(mode: Mode) -> None:
    assert CONFIG["theme"][mode]["primaryColor"] == ACCENT[mode]
    assert CONFIG["theme"][mode]["backgroundColor"] == PAPER[mode]


def contrast(one: str, other: str) -> float:
    def luminance(color: str) -> float:
        channels = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_contrast(mode: Mode) -> None:
    paper = PAPER[mode]
    for words in (style.INK[mode], style.MUTED[mode], ACCENT[mode]):
        assert contrast(words, paper) >= 4.5
    for line in CONFIG["theme"][mode]["chartCategoricalColors"]:
        assert contrast(line, paper) >= 3


def test_production_settings() -> None:
    assert CONFIG["server"]["address"] == "127.0.0.1"
    assert CONFIG["server"]["maxUploadSize"] == get("DRAFTWORTH_UPLOAD_MB", {})
    assert CONFIG["server"]["enableAgentApi"] is False
    assert CONFIG["browser"]["gatherUsageStats"] is False
    assert CONFIG["client"]["showErrorDetails"] == "none"
    assert CONFIG["client"]["disableDataExport"] is True
    assert CONFIG["runner"]["magicEnabled"] is False


def test_every_menu_row_is_a_page() -> None:
    assert len({row.name for row in MENU}) == len(MENU)
    for row in MENU:
        assert (ROOT / "pages" / f"{row.name}.py").is_file()
