"""Every table behind a price as CSV, in one archive."""

import io
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, fields

from lib.report.dossier import Dossier, runs_of
from lib.report.format import csv_text
from lib.report.sentences import crossing_lines
from lib.report.tables import Columns, multiplier_table, price_table
from lib.run import Run

MEDIA_TYPE = "application/zip"


def build(dossier: Dossier) -> bytes:
    """A zip of CSVs: inputs, runs, prices, multipliers, crossings and notes.

    No cell of text starts a formula. The same dossier gives the same bytes.
    """
    stamp = dossier.written_at.timetuple()[:6]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, columns in tables(dossier).items():
            info = zipfile.ZipInfo(f"{name}.csv", stamp)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, csv_text(columns).encode())
    return out.getvalue()


def tables(dossier: Dossier) -> Mapping[str, Columns]:
    """The columns of each file, by its name."""
    return {
        "inputs": _inputs(dossier),
        "runs": _runs(dossier),
        "prices": price_table(dict(dossier.priced)),
        "multipliers": multiplier_table(dossier.found, dossier.slo),
        "crossings": _crossings(dossier),
        "notes": _notes(dossier),
    }


def _inputs(dossier: Dossier) -> Columns:
    rows = [asdict(i) for i in dossier.inputs]
    names = ("key", "label", "value", "unit", "basis", "source", "dated")
    return {name: [row[name] for row in rows] for name in names}


def _runs(dossier: Dossier) -> Columns:
    """Every field that some run states."""
    runs = runs_of(dossier.sides)
    columns = {f.name: [getattr(r, f.name) for r in runs] for f in fields(Run)}
    stated = {name: c for name, c in columns.items() if any(v is not None for v in c)}
    return {"arm": [r.arm for r in runs], **stated}


def _crossings(dossier: Dossier) -> Columns:
    rows = [
        (a.label, *c.between, c.at, c.low, c.high, c.direction, c.censored_share, c.measure_at)
        for a in dossier.found.arms
        for c in a.crossover.crossings
    ]
    names = (
        *("arm", "from load", "to load", "at", "95 % low", "95 % high", "direction"),
        *("share of redraws without", "measure at"),
    )
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def _notes(dossier: Dossier) -> Columns:
    said = [
        ("answer", dossier.answer[0]),
        ("study", dossier.found.study.name),
        ("scenario", dossier.scenario or "no id"),
        ("SHA-256 of the runs", dossier.digest),
        ("price dates", dossier.price_dates),
        ("written", dossier.written_at.isoformat()),
        *(("crossing", line) for line in crossing_lines(dossier.found)),
        *(("note", note) for note in dossier.notes),
    ]
    return {"what": [k for k, _ in said], "text": [v for _, v in said]}
