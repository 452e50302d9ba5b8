"""Run the rows named on the command line, or all of them: a table, then JSON."""

import json
import sys

from bench.chromium import CHROMIUM
from bench.row import Row
from bench.rows import ROWS


def main(names: list[str]) -> None:
    """Measure and print; a row that needs Chromium is left out, and said so, without it."""
    unknown = [n for n in names if n not in ROWS]
    if unknown:
        sys.exit(f"no row named {unknown[0]!r}: {', '.join(ROWS)}")
    rows: list[Row] = []
    for name in names or list(ROWS):
        if name == "drag" and not CHROMIUM.exists():
            print(f"drag: left out, there is no Chromium at {CHROMIUM}", file=sys.stderr)
            continue
        print(f"measuring {name} …", file=sys.stderr)
        rows += ROWS[name]()
    print(f"{'what':<66}{'ours':>10}{'floor':>10}{'ratio':>8}{'goal':>8}")
    for row in rows:
        goal = "" if row.goal is None else f"{row.goal:.2f}×{'' if row.met else '  missed'}"
        print(
            f"{row.what:<66}{row.ours:>7.{row.digits}f} {row.unit}"
            f"{row.least:>7.{row.digits}f} {row.unit}{row.ratio:>7.2f}×{goal:>9}"
        )
    print(json.dumps([row.as_json() for row in rows]))


main(sys.argv[1:])
