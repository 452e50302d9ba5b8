"""Files that were dropped and are not in a study yet: read once, completed, added or discarded.

They live in the visitor's session. Nothing is drawn here; every text is plain, not Markdown.
"""

import hashlib
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

import streamlit as st

from lib.errors import DraftworthError, FileError, InputError, UnknownFormat
from lib.results import arms, published
from lib.results.importing import with_fields
from lib.results.reading import Column, Flag, Reading, read
from lib.results.store import Store
from lib.run import SIMULATED, Run, SpecState
from lib.settings import number
from lib.ui.run_editor import Edits, load_of, problem, with_cells

LOG = logging.getLogger("draftworth")
DEMO = "demo:"
DIGITS = re.compile(r"(\d{1,9})")


@dataclass(frozen=True)
class Dropped:
    """One file: its reading, or why it is refused. `data` is kept while columns can be mapped."""

    name: str
    sha256: str
    data: bytes = b""
    reading: Reading | None = None
    refusal: str = ""
    columns: tuple[Column, ...] = ()
    mapping: Mapping[str, str] = field(default_factory=dict)

    @property
    def flags(self) -> list[list[Flag]]:
        """Its flags, those of one kind together; a missing arm is asked for in the table."""
        found: dict[tuple[str, str], list[Flag]] = {}
        for flag in self.reading.flags if self.reading else ():
            if flag.code != "arm_unknown":
                found.setdefault((flag.severity, flag.code), []).append(flag)
        return list(found.values())


@dataclass(frozen=True)
class Outcome:
    """What adding did: new runs and files, notes on files, and the error that ended it early."""

    study: str
    runs: int = 0
    files: int = 0
    notes: tuple[str, ...] = ()
    error: str = ""


@dataclass
class Staging:
    """The files by their upload's id, in the order of dropping.

    `wrong` are cells that cannot be taken, kept as typed. A new `round` empties the drop zone, a
    new `draft` draws the table afresh. `said` answers the last rule, `outcome` the last adding.
    """

    files: dict[str, Dropped] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    shown: set[str] = field(default_factory=set)
    waiting: list[tuple[str, str, bytes]] = field(default_factory=list)
    wrong: Edits = field(default_factory=dict)
    round: int = 0
    draft: int = 0
    said: str = ""
    refused: bool = False
    outcome: Outcome | None = None

    @property
    def runs(self) -> dict[str, tuple[str, Run]]:
        """Each run once, by run_id, with the file that it is taken from; ordered by file."""
        found: dict[str, tuple[str, Run]] = {}
        for file in sorted(self.files.values(), key=_after_json):
            for run in file.reading.runs if file.reading else ():
                found.setdefault(run.run_id, (file.name, run))
        return dict(sorted(found.items(), key=lambda item: natural(item[1][0])))

    @property
    def problems(self) -> list[str]:
        """One line for each cell that cannot be taken."""
        runs, lines = self.runs, []
        for run_id in self.wrong.keys() & runs.keys():
            name, run = runs[run_id]
            place = ", ".join(p for p in (name, load_of(run)) if p)
            lines += [f"{place}: {problem(run, c, v)}" for c, v in self.wrong[run_id].items()]
        return lines

    def new(self, uploads: Iterable[Any]) -> list[tuple[str, str, bytes]]:
        """Files to read now, as (id, name, bytes); those that a button staged come first."""
        waiting, self.waiting = self.waiting, []
        return waiting + [
            (u.file_id, u.name, u.getvalue()) for u in uploads if u.file_id not in self.seen
        ]

    def keep(self, present: set[str]) -> None:
        """Forget what a person took out of the drop zone."""
        for gone in self.shown - present:
            self.files.pop(gone, None)

    def stage_demo(self) -> None:
        """Let the simulated sweep wait as if it had been dropped."""
        self.waiting = [(DEMO + name, name, data) for name, data in published.demo_files()]

    def take(self, file_id: str, name: str, data: bytes) -> None:
        """Read a dropped file, or note why it is refused."""
        self.seen.add(file_id)
        self.outcome, self.said = None, ""
        sha256 = hashlib.sha256(data).hexdigest()
        same = next((f.name for f in self.files.values() if f.sha256 == sha256), None)
        limit = number("DRAFTWORTH_UPLOAD_MB")
        if same is not None:
            text = f"{name}: the same file as {same}, dropped twice; it counts once"
            file = Dropped(name, "", refusal=text)
        elif len(data) > limit * 2**20:
            text = f"{name}: over {limit} MB; import it on the command line, or raise the limit"
            file = Dropped(name, "", refusal=text)
        else:
            file = _read(Dropped(name, sha256, data))
        if file.reading is not None and file_id.startswith(DEMO):
            runs = tuple(replace(r, engine=r.engine or SIMULATED) for r in file.reading.runs)
            file = replace(file, reading=replace(file.reading, runs=runs))
        self.files[file_id] = file

    def map(self, file_id: str, mapping: Mapping[str, str]) -> None:
        """Read a file again with fields chosen by hand for its columns."""
        file = self.files[file_id]
        again = _read(replace(file, mapping={**file.mapping, **mapping}))
        failed = again.reading is None
        self.files[file_id] = replace(file, refusal=again.refusal) if failed else again
        self.draft += 1

    def type(self, edits: Edits) -> None:
        """Take typed cells into the runs; those that cannot be are kept as wrong."""
        runs = self.runs
        good: Edits = {}
        for run_id in edits.keys() & runs.keys():
            for cell, value in edits[run_id].items():
                self.wrong.get(run_id, {}).pop(cell, None)
                wrong = problem(runs[run_id][1], cell, value)
                (self.wrong if wrong else good).setdefault(run_id, {})[cell] = value
        self._change(set(good), lambda run: with_cells(run, good[run.run_id]))

    def apply_rule(self, glob: str, arm: str) -> None:
        """Name the arm of every run whose file or label the glob matches."""
        try:
            rule = arms.parse_rule(f"{glob}={arm}")
        except InputError as error:
            self.said, self.refused = str(error), True
            return
        matched: set[str] = set()
        for key, file in self.files.items():
            if file.reading is not None:
                blank = with_fields(file.reading, {"spec_state": SpecState.UNKNOWN})
                matched |= {r.run_id for r in arms.assign(blank, [rule]).runs if r.arm}
                self.files[key] = replace(file, reading=arms.assign(file.reading, [rule]))
        self._settle(matched, "arm")
        self.refused = not matched
        self.said = (
            f"{_count(len(matched), 'run')} in {glob.strip()} named {arm.strip()}"
            if matched
            else f"no file or label matches {glob.strip()}; * stands for any text, as in k4-*"
        )

    def apply_to_all(self, name: str, value: str) -> None:
        """State a field of every run."""
        everything = set(self.runs)
        try:
            cell, stated = arms.parse_set(f"{name}={value}")
            self._change(everything, lambda run: with_cells(run, {cell: stated}))
        except InputError as error:
            self.said, self.refused = str(error), True
            return
        self._settle(everything, cell)
        self.refused = False
        self.said = f"{cell} is {value.strip()} in {_count(len(everything), 'run')}"

    def add_to(self, store: Store, study: str, tell: Callable[[int, int], None]) -> None:
        """Add the files to a study, each whole or not at all.

        What was added leaves the staging. Refused files leave it too, unless they can be mapped.
        """
        notes: list[str] = []
        study, runs, files = study.strip(), 0, 0
        ready = sorted(((k, f) for k, f in self.files.items() if f.reading), key=_after_json)
        for at, (key, file) in enumerate(ready):
            assert file.reading is not None
            tell(at, len(ready))
            try:
                added = store.add(file.reading, study)
            except DraftworthError as error:
                self.outcome = Outcome(study, runs, files, tuple(notes), str(error))
                return
            del self.files[key]
            runs, files = runs + added.new, files + bool(added.new)
            if added.duplicate_of is not None:
                notes.append(f"{file.name}: the same runs as {added.duplicate_of}, not added again")
            elif added.duplicates:
                there = _count(len(added.duplicates), "run")
                notes.append(f"{file.name}: {there} there already, not added again")
            notes += [f"{file.name}: takes the place of {name}" for name in added.replaces]
        mappable = {k: f for k, f in self.files.items() if f.columns}
        notes += [f.refusal for k, f in self.files.items() if k not in mappable]
        self.discard()
        self.files = mappable
        self.outcome = Outcome(study, runs, files, tuple(notes))

    def discard(self) -> None:
        """Forget everything that is not in a study."""
        self.__dict__.update(vars(Staging(round=self.round + 1, draft=self.draft + 1)))

    def _change(self, run_ids: set[str], change: Callable[[Run], Run]) -> None:
        """Change these runs in every file that reports them."""
        changed = {}
        for key, file in self.files.items():
            if file.reading is not None and run_ids:
                runs = tuple(change(r) if r.run_id in run_ids else r for r in file.reading.runs)
                changed[key] = replace(file, reading=replace(file.reading, runs=runs))
        self.files |= changed

    def _settle(self, run_ids: set[str], cell: str) -> None:
        """A rule has the last word over what was typed before it."""
        for run_id in run_ids:
            self.wrong.get(run_id, {}).pop(cell, None)
        self.draft += 1


def current() -> Staging:
    """The visitor's staging."""
    found: Staging = st.session_state.setdefault("staging", Staging())
    return found


def _read(file: Dropped) -> Dropped:
    blank = replace(file, reading=None, refusal="", columns=())
    try:
        reading = arms.suggest(read(file.name, file.data, file.mapping or None))
    except UnknownFormat as error:
        data = file.data if error.columns else b""
        return replace(blank, refusal=str(error), columns=error.columns, data=data)
    except (FileError, InputError) as error:
        return replace(blank, refusal=str(error), data=b"")
    except Exception:  # a file that breaks its reader must not take the others with it
        LOG.exception("reading %r failed", file.name)
        text = f"{file.name}: could not be read; the log has the reason"
        return replace(blank, refusal=text, data=b"")
    data = file.data if reading.unmatched else b""
    return replace(blank, reading=reading, columns=reading.unmatched, data=data)


def _after_json(item: Any) -> bool:
    """Sorts the CSV of a run behind its JSON."""
    file = item[1] if isinstance(item, tuple) else item
    return PurePath(file.name).suffix.lower() != ".json"


def natural(name: str) -> list[tuple[int, str]]:
    """Sorts c2 before c16."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in DIGITS.split(name)]


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
