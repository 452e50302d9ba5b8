"""Published sweeps and the simulated demo: studies that are read from data/, never stored."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from zipfile import ZipFile

from lib.errors import StudyNotFound
from lib.estimate import Basis
from lib.results import arms
from lib.results.columns import from_text
from lib.results.reading import read
from lib.run import SIMULATED, Run, Study
from lib.settings import DATA

PUBLISHED = DATA / "published"
DEMO = "guidellm-0.8.1-simulated"
DEMO_ARCHIVE = DATA / "demo" / f"{DEMO}.zip"
DEMO_ARMS = ("base-*=off", "k2-*=sim:2", "k4-*=sim:4")


@dataclass(frozen=True)
class Citation:
    """Where a study's numbers come from, and what to know about them.

    `kind` is sweep, ratio (compared, never priced), latency, digitised or simulated; `licence` is
    empty where the source states none.
    """

    study: str
    title: str
    citation: str
    url: str
    dated: str
    licence: str
    kind: str
    note: str

    @property
    def text(self) -> str:
        """The citation in one line, with its licence where the source states one."""
        licence = f"{self.licence} licence" if self.licence else ""
        return ", ".join(part for part in (self.citation, licence) if part)


@cache
def citations() -> dict[str, Citation]:
    """By study, in the order in which studies are offered: a first visitor sees the first."""
    with (PUBLISHED / "citations.csv").open(encoding="utf-8", newline="") as file:
        return {row["study"]: Citation(**row) for row in csv.DictReader(file)}


def studies() -> tuple[str, ...]:
    """Names of the read-only studies: each published table's file stem, the demo last."""
    return tuple(citations())


@cache
def study(name: str) -> Study:
    """A read-only study with its citation. Raises StudyNotFound."""
    if name not in citations():
        raise StudyNotFound(f"study {name!r}: not published; there are {', '.join(studies())}")
    cited = citations()[name]
    return Study(
        name,
        tuple(_demo_runs() if name == DEMO else _table_runs(name)),
        Basis.MEASURED if name == DEMO else Basis.PUBLISHED,
        title=cited.title,
        citation=cited.text,
        url=cited.url,
        note=cited.note,
        read_only=True,
    )


def demo_files() -> tuple[tuple[str, bytes], ...]:
    """The demo's result files by name, as the benchmark wrote them but without texts."""
    with ZipFile(DEMO_ARCHIVE) as archive:
        return tuple((name, archive.read(name)) for name in sorted(archive.namelist()))


def _table_runs(name: str) -> Iterator[Run]:
    """One run a row; the headers are fields of `Run`, an empty cell is not stated."""
    with (PUBLISHED / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            fields = {key: from_text(key, text) for key, text in row.items()}
            run = Run(run_id="", study=name, **fields)  # type: ignore[arg-type]
            yield replace(run, run_id=f"{name}: {run.arm} at {run.offered_load:g}")


def _demo_runs() -> list[Run]:
    """The demo's runs, by load, arm and repeat as a study of one's own has them."""
    rules = [arms.parse_rule(text) for text in DEMO_ARMS]
    runs = [
        replace(run, study=DEMO, engine=SIMULATED)
        for name, data in demo_files()
        if name.endswith(".json")  # the CSVs report runs of the JSONs
        for run in arms.suggest(arms.assign(read(name, data, keep=False), rules)).runs
    ]
    return sorted(runs, key=lambda r: (r.offered_load or 0.0, r.arm or "", r.repeat or 0))
