"""Run the rows named on the command line, or all of them: a table, then JSON."""

import json
import sys

from bench.chromium import CHROMIUM
from bench.rows import ROWS, Row


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
        rows.append(ROWS[name]())
    print(f"{'what':<62}{'ours':>10}{'floor':>10}{'ratio':>8}{'goal':>8}")
    for row in rows:
        print(
            f"{row.what:<62}{row.ours_ms:>7.0f} ms{row.floor_ms:>7.0f} ms"
            f"{row.ratio:>7.2f}×{row.goal:>7.2f}×"
        )
    print(json.dumps([row.as_json() for row in rows]))


main(sys.argv[1:])
