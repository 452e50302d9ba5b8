"""A number as the text that reads back as it: in links, in what is kept and on pages."""

import math


def number(value: float) -> str:
    """The shortest text of a number that reads back as it (to 12 digits), without an exponent."""
    if not math.isfinite(value):
        return "∞" if value > 0 else "-∞" if value < 0 else "not a number"
    text = f"{value:.12g}"
    if "e" in text:
        text = f"{float(text):.20f}".rstrip("0").rstrip(".")
    return text
