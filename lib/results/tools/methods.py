"""How a drafter's method is called that a file names in its own words."""

from lib.run import OFF

LONGEST = 60


def method_of(text: str | None) -> str | None:
    """The method in lower case; None where an arm could not be called by it."""
    method = " ".join((text or "").casefold().split())
    usable = method.isprintable() and ":" not in method and 0 < len(method) <= LONGEST
    return method if usable and method != OFF else None
