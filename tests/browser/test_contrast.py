"""Text on the theme's primary colour can be read in both themes: WCAG 2.1, 1.4.3, 4.5 to 1."""

from typing import Any

import pytest

# The contrast of an element's text with the first opaque background behind it.
CONTRAST = """
element => {
  const channels = text => {
    const parts = text.match(/[0-9.]+/g).map(Number);
    return parts.length > 3 ? parts : [...parts, 1];
  };
  const luminance = ([r, g, b]) => {
    const linear = [r, g, b].map(v => v / 255).map(
      v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  let behind = element;
  while (channels(getComputedStyle(behind).backgroundColor)[3] < 1) behind = behind.parentElement;
  const both = [getComputedStyle(element).color, getComputedStyle(behind).backgroundColor];
  const [low, high] = both.map(c => luminance(channels(c))).sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_chips_and_primary_buttons_can_be_read(server: str, watched: Any, scheme: str) -> None:
    study = "study=guidellm-0.8.1-simulated&stated=target_revision"
    page = watched.open(f"{server}/compare?{study}", color_scheme=scheme)
    page.get_by_text("protocol fields not recorded").first.click()
    chip = page.locator("[data-tag]:visible").first
    chip.wait_for()
    for part in (chip.locator("span").first, chip.locator("button")):
        assert part.evaluate(CONTRAST) >= 4.5
    page = watched.open(f"{server}/probe", color_scheme=scheme)
    button = page.locator("[data-testid=stBaseButton-primary]:enabled").first
    button.wait_for(state="attached")  # its tab may not be the open one
    for part in (button, button.locator("p")):
        assert part.evaluate(CONTRAST) >= 4.5
