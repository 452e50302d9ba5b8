"""Logs of servers, which are not results: told by lines that begin with a time or a level."""

import io
import re
from itertools import islice

from lib.errors import UnknownFormat
from lib.results import redaction

_TIME = r"(?:\d{4}-\d\d-\d\d|\d\d/\d\d/\d{4})[ T-]\d\d:\d\d:\d\d"
_LEVEL = r"(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL)"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_LINE = re.compile(
    rf"(?:[\w.-]+\s*\|\s)?(?:\([A-Za-z_][\w-]* pid=\d+\)\s*)?"
    rf"(?:\[{_TIME}[^\]]*\]|\[?{_LEVEL}\]?:?\s|{_TIME}[.,\d]*Z?\s+(?:-\s+)?\[?[A-Za-z])"
)
_JUDGED = 50  # lines


def looks_like_log(text: str) -> bool:
    """Whether at least half of the first lines begin as a log's do."""
    first = islice(io.StringIO(_COLOUR.sub("", text)), _JUDGED)
    lines = [line for line in first if line.strip()]
    return 2 * sum(_LINE.match(line) is not None for line in lines) >= max(len(lines), 1)


def refusal(name: str, text: str) -> UnknownFormat:
    """What to import instead of a log."""
    first = next(line for line in io.StringIO(text) if line.strip()).strip()
    shown = redaction.redact_text("".join(c if c.isprintable() else " " for c in first[:200]))[:60]
    return UnknownFormat(
        f"{name}: looks like a log ({shown}); import the result file that the benchmark wrote, or "
        "the server's /metrics text"
    )
