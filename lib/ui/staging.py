"""Files that were dropped and are not in a study yet: read once, completed, added or discarded.

They live in the visitor's session. Nothing is drawn here; every text is plain, not Markdown.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

import streamlit as st

from lib.errors import DraftworthError, InputError
from lib.results import arms, bundles, published
from lib.results.bundles import Bundle, Joined
from lib.results.importing import with_fields
from lib.results.mapping import SavedMapping, match
from lib.results.parsing import counted, printable
from lib.results.reading import Reading
from lib.results.store import Store
from lib.run import Run, SpecState
from lib.ui.adding import Adding, Tell
from lib.ui.dropped import (
    DEMO,
    Dropped,
    Outcome,
    Pending,
    common_folder,
    natural,
    read_file,
    runs_text,
    short_name,
    taken,
    waiting,
)
from lib.ui.run_editor import Edits, fields_of, load_of, problem, with_cells

LONGEST_NAME = 80  # of a remembered mapping
STOPPED = "stopped before all was added: press Add to the study again for the rest"
ARM_FIELDS = ("spec_state", "draft_method", "draft_model", "num_speculative_tokens", "schedule")


@dataclass
class Staging:
    """The files by their key, in the order of dropping, and what they say together.

    `joined` are the files as they say it themselves; `bundles` and `runs` with what a person
    stated on top. `wrong` are cells that cannot be taken, kept as typed. A new `round` empties the
    drop zone; a new `draft`, and each of the `joins`, draws the tables afresh. `said` answers the
    last rule, `outcome` the last adding. `keys` knows the files by name and digest, `folder` is
    what every name begins with. `mapping` holds what is chosen in a mapper before it is applied:
    field and arm by header, by the mapper's slot (its shape first).
    """

    files: dict[str, Dropped] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    shown: set[str] = field(default_factory=set)
    waiting: list[tuple[str, str, bytes]] = field(default_factory=list)
    stated: dict[str, dict[str, Any]] = field(default_factory=dict)
    joined: Joined = field(default_factory=Joined)
    bundles: tuple[Bundle, ...] = ()
    runs: dict[str, tuple[str, Run]] = field(default_factory=dict)
    wrong: Edits = field(default_factory=dict)
    mapping: dict[str, dict[str, tuple[str, str]]] = field(default_factory=dict)
    keys: dict[tuple[str, str], str] = field(default_factory=dict)
    folder: str = ""
    round: int = 0
    draft: int = 0
    joins: int = 0
    said: str = ""
    refused: bool = False
    outcome: Outcome | None = None

    @property
    def problems(self) -> list[str]:
        """One line for each cell that cannot be taken."""
        lines = []
        for run_id in self.wrong.keys() & self.runs.keys():
            name, run = self.runs[run_id]
            place = ", ".join(p for p in (self.short(name), load_of(run)) if p)
            lines += [f"{place}: {problem(run, c, v)}" for c, v in self.wrong[run_id].items()]
        return lines

    @property
    def results(self) -> list[Bundle]:
        """The bundles that hold runs, by name."""
        found = [b for b in self.bundles if b.reading.runs]
        return sorted(found, key=lambda b: natural(b.reading.name))

    @property
    def others(self) -> list[tuple[Reading, str]]:
        """The files without runs, each with what it told of which runs, or why nothing."""
        told: dict[tuple[str, str], list[int]] = {}
        besides: dict[tuple[str, str], Reading] = {}
        for bundle in self.bundles:
            for said in bundle.beside:
                key = said.name, said.sha256
                besides[key] = said
                told.setdefault(key, []).append(len(bundle.reading.runs))
        lines = [
            (said, f"completed {runs_text(sum(told[k]))} of {counted(len(told[k]), 'file')}")
            for k, said in besides.items()
        ]
        lines += [(b.reading, "") for b in self.bundles if not b.reading.runs]
        nothing = "adds nothing: its run is missing or says it all, or two such files lie beside it"
        lines += [(r, nothing) for r in self.joined.unclaimed if (r.name, r.sha256) not in besides]
        return sorted(lines, key=lambda line: natural(line[0].name))

    @property
    def refusals(self) -> tuple[list[str], list[str]]:
        """One line for each file that is refused for good: of files dropped, and of archives'."""
        gone = [f for f in self.files.values() if f.reading is None and not f.is_unknown]
        own = [f.refusal for f in gone if not f.in_archive]
        return [*own, *self.joined.refused.values()], [f.refusal for f in gone if f.in_archive]

    @property
    def unknown(self) -> dict[str, list[str]]:
        """Keys of the files that wait to be mapped, by their shape."""
        found: dict[str, list[str]] = {}
        for key, file in self.files.items():
            if file.is_unknown:
                found.setdefault(file.shape, []).append(key)
        return found

    def of(self, reading: Reading) -> tuple[str, Dropped] | None:
        """The file that a reading is of; None for one that was made of two."""
        key = self.keys.get((reading.name, reading.sha256))
        return None if key is None else (key, self.files[key])

    def short(self, name: str) -> str:
        """A file's name without the folder or archive that all of them lie in."""
        return name.removeprefix(self.folder)

    # Arriving and leaving

    def arriving(self, uploads: Iterable[Any]) -> Iterator[Pending]:
        """Files to read now; those that a button staged come first."""
        for upload, name, data in self.waiting:
            yield from waiting(upload, name, data)
        for upload in uploads:
            if upload.file_id not in self.seen:
                yield from waiting(upload.file_id, upload.name, upload.getvalue())

    def take(self, arrived: Sequence[Pending], saved: Sequence[SavedMapping], tell: Tell) -> None:
        """Read files that arrived. A file that was read before an interruption is not read again.

        `tell` hears of each before it is read: how many were, of how many, its name.
        """
        if not arrived:
            return
        self.outcome, self.said = None, ""
        try:
            earlier = {f.sha256: f for f in reversed(self.files.values()) if f.sha256}
            for at, pending in enumerate(arrived):
                if pending.key not in self.files:
                    tell(at, len(arrived), pending.name)
                    file = taken(pending, earlier, saved)
                    self.files[pending.key] = file
                    earlier.setdefault(file.sha256, file)
            self.seen |= {p.upload for p in arrived}
            self.waiting = []
        finally:
            self.join()

    def keep(self, present: set[str]) -> None:
        """Forget what a person took out of the drop zone, and what it said of other files."""
        gone = self.shown - present
        left = {k: f for k, f in self.files.items() if f.upload not in gone}
        if len(left) < len(self.files):
            self.files = left
            self.join()

    def stage_demo(self) -> None:
        """Let the simulated sweep wait as if it had been dropped."""
        self.waiting = [(DEMO + name, name, data) for name, data in published.demo_files()]

    def discard(self) -> None:
        """Forget everything that is not in a study."""
        self.__dict__.update(vars(Staging(round=self.round + 1, draft=self.draft + 1)))

    # Mapping by hand

    def map(self, key: str, mapping: Mapping[str, str], store: Store | None) -> bool:
        """Read a file, and all of its shape, with fields chosen by hand; whether it worked.

        A mapping that makes an unknown file readable is remembered in the store.
        """
        file = self.files[key]
        full = {**file.mapping, **mapping}
        remembered = file.is_unknown or file.taught is not None
        again = read_file(file, full)
        if again.reading is None:
            self.files[key] = replace(file, refusal=again.refusal)
            return False
        name = printable(short_name(file.name))[:LONGEST_NAME].strip() or "a file"
        made = SavedMapping(file.shape, file.leaves, full, name)
        taught = made if remembered else None
        self.files[key] = replace(again, taught=taught)
        for other, one in self.files.items():
            if other != key and one.columns and match(one.leaves, [made]):
                read_again = read_file(one, full)
                if read_again.reading is not None:
                    self.files[other] = replace(read_again, taught=taught)
        self._clear_mappers({file.shape})
        if store is not None and remembered:
            with suppress(DraftworthError):  # what was read stays read
                store.save_mapping(made.signature, made.leaves, dict(full), made.name)
        self.draft += 1
        self.join()
        return True

    def forget(self, key: str, store: Store | None) -> None:
        """Take a mapping back, here and in the store: files of its shape are unknown again."""
        gone = self.files[key]
        shapes = {gone.shape, gone.taught.signature if gone.taught else gone.shape}
        for shape in shapes:
            with suppress(DraftworthError):  # it may be forgotten already
                if store is not None:
                    store.delete_mapping(shape)
        for other, file in self.files.items():
            own = file.taught.signature if file.taught else file.shape
            if file.mapping and shapes & {own, file.shape}:
                self.files[other] = read_file(replace(file, columns=()))
        self._clear_mappers(shapes)
        self.draft += 1
        self.join()

    def _clear_mappers(self, shapes: set[str]) -> None:
        left = {s: c for s, c in self.mapping.items() if s.partition("-")[0] not in shapes}
        self.mapping = left

    # What a person states

    def type(self, edits: Edits) -> None:
        """Take typed cells into the runs; those that cannot be are kept as wrong."""
        changed = set()
        for run_id in edits.keys() & self.runs.keys():
            for cell, value in edits[run_id].items():
                self.wrong.get(run_id, {}).pop(cell, None)
                if problem(self.runs[run_id][1], cell, value):
                    self.wrong.setdefault(run_id, {})[cell] = value
                    continue
                self.stated.setdefault(run_id, {}).update(fields_of(cell, value))
                changed.add(run_id)
        if changed:
            self._complete(changed)

    def apply_rule(self, glob: str, arm: str) -> None:
        """Name the arm of every run whose file, folder or label the glob matches."""
        try:
            rule = arms.parse_rule(f"{glob}={arm}")
        except InputError as error:
            self.said, self.refused = str(error), True
            return
        matched: set[str] = set()
        for bundle in self.results:
            blank = with_fields(bundle.reading, {"spec_state": SpecState.UNKNOWN})
            named = {r.run_id for r in arms.assign(blank, [rule]).runs if r.arm}
            assigned = arms.assign(bundle.reading, [rule]).runs
            for before, after in zip(bundle.reading.runs, assigned, strict=True):
                if after.run_id in named:
                    self.stated.setdefault(after.run_id, {}).update(_arm_stated(before, after))
            matched |= named
        self._settle(matched, "arm")
        self.refused = not matched
        self.said = (
            f"{runs_text(len(matched))} in {glob.strip()} named {arm.strip()}"
            if matched
            else f"no file or label matches {glob.strip()}; * stands for any text, as in k4-*"
        )

    def apply_to_all(self, name: str, value: str) -> None:
        """State a field of every run."""
        try:
            cell, stated = arms.parse_set(f"{name}={value}")
            fields = fields_of(cell, stated)
            for _, run in self.runs.values():
                with_cells(run, {cell: stated})  # raises where the run cannot have it
        except InputError as error:
            self.said, self.refused = str(error), True
            return
        for run_id in self.runs:
            self.stated.setdefault(run_id, {}).update(fields)
        self._settle(set(self.runs), cell)
        self.refused = False
        self.said = f"{cell} is {value.strip()} in {runs_text(len(self.runs))}"

    # Into the store

    def add_to(self, store: Store, study: str, tell: Tell) -> None:
        """Add the bundles to a study, each whole or not at all.

        What lies beside none of them completes runs that the study has already. What was added
        leaves the staging. Refused files leave it too, unless they can be mapped.
        """
        adding = Adding(store, study.strip(), tell)
        try:
            adding.add(sorted(self.results, key=lambda b: _after_json(b.reading)))
            adding.revise(self.joined.unclaimed)
        except DraftworthError as error:
            self.outcome = adding.outcome(str(error))
            return
        except BaseException:  # a click elsewhere ends the script in between
            self.outcome = adding.outcome(STOPPED)
            raise
        mappable = {k: f for k, f in self.files.items() if f.is_unknown}
        adding.notes += [line for lines in self.refusals for line in lines]
        self.discard()
        self.files = mappable
        self.join()
        self.outcome = adding.outcome()

    # What the files say together

    def join(self) -> None:
        """Find anew what lies beside what; names fill what no file says."""
        joined = bundles.join([f.reading for f in self.files.values() if f.reading is not None])
        named = [replace(b, reading=arms.suggest(b.reading)) for b in joined.bundles]
        self.joined = replace(joined, bundles=tuple(named))
        self.folder = common_folder([f.name for f in self.files.values()])
        self.keys = {(f.name, f.sha256): key for key, f in self.files.items()}
        self.joins += 1
        self._complete()

    def _complete(self, changed: set[str] | None = None) -> None:
        """State what a person states; find each run once, with the file that it is taken from."""
        said = self.joined.bundles
        kept = self.bundles if changed is not None else ()
        self.bundles = tuple(
            kept[at]
            if changed is not None and not any(r.run_id in changed for r in b.reading.runs)
            else replace(b, reading=_with_stated(b.reading, self.stated))
            for at, b in enumerate(said)
        )
        found: dict[str, tuple[str, Run]] = {}
        for bundle in sorted(self.bundles, key=lambda b: _after_json(b.reading)):
            for run in bundle.reading.runs:
                found.setdefault(run.run_id, (bundle.reading.name, run))
        self.runs = dict(sorted(found.items(), key=lambda item: natural(item[1][0])))

    def _settle(self, run_ids: set[str], cell: str) -> None:
        """A rule has the last word over what was typed before it."""
        for run_id in run_ids:
            self.wrong.get(run_id, {}).pop(cell, None)
        self.draft += 1
        self._complete(run_ids)


def current() -> Staging:
    """The visitor's staging."""
    found: Staging = st.session_state.setdefault("staging", Staging())
    return found


def _arm_stated(before: Run, after: Run) -> dict[str, Any]:
    """What a rule says of a run's arm; what it leaves open the files may still say."""
    always = ARM_FIELDS if after.spec_state is SpecState.OFF else ARM_FIELDS[:2]
    return {
        name: getattr(after, name)
        for name in ARM_FIELDS
        if name in always or getattr(after, name) != getattr(before, name)
    }


def _with_stated(reading: Reading, stated: Mapping[str, Mapping[str, Any]]) -> Reading:
    if not any(r.run_id in stated for r in reading.runs):
        return reading
    runs = [replace(r, **stated.get(r.run_id, {})) for r in reading.runs]
    return arms.settled(reading, runs)


def _after_json(reading: Reading) -> bool:
    """Sorts the CSV of a run behind its JSON."""
    return PurePath(reading.name).suffix.lower() != ".json"
