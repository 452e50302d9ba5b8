"""Files, folders and archives of this machine into a study, each bundle whole or not at all."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from uuid import uuid4

from lib.errors import FileError, InputError, UnknownFormat
from lib.results import arms, bundles
from lib.results.archives import Entry
from lib.results.fields import targets
from lib.results.findings import Flag, shorten
from lib.results.headers import IGNORE
from lib.results.locating import list_files
from lib.results.mapping import signature
from lib.results.parsing import counted, printable
from lib.results.reading import Reading, read
from lib.results.store import Store, study_name
from lib.run import GROUPS, Run, SpecState

Tell = Callable[[int, int, str], None]


@dataclass(frozen=True)
class ImportedFile:
    """A file that was recognised: `runs` counts those that were new to the study."""

    file: str
    tool: str
    version: str
    runs: int
    flags: tuple[str, ...]
    messages: tuple[str, ...]


@dataclass(frozen=True)
class Duplicate:
    """A file all of whose runs were there already, from the file `of`."""

    file: str
    of: str


@dataclass(frozen=True)
class Refused:
    """A file that was not imported, and why in one line."""

    file: str
    reason: str


@dataclass
class ImportReport:
    """What an import did: new runs in all, then file by file. `import_id` undoes it.

    `notes` say what of the request came to nothing, such as a rule that matched no file.
    """

    imported: int = 0
    import_id: str = ""
    duplicates: list[Duplicate] = field(default_factory=list)
    files: list[ImportedFile] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def import_paths(
    store: Store,
    paths: Sequence[Path],
    study: str,
    arm_rules: Sequence[str] = (),
    settings: Sequence[str] = (),
    by: str = "",
    tell: Tell | None = None,
    mapping: Sequence[str] = (),
) -> ImportReport:
    """Import every file below `paths`, and in archives there, into `study`.

    `arm_rules` are 'GLOB=METHOD[:K]' (first match wins), `settings` are 'field=value' for what the
    files cannot know. `mapping` are 'LEAF=FIELD' for files that no reader knows, remembered for the
    next of that shape. What lies beside a result completes its runs; where it comes later than they
    did, they are derived anew. A file that is there already names the arm of those of its stored
    runs that have none, and states the settings about them. `tell` hears of each file before it is
    read: how many were, of how many, its name. Raises InputError before anything is read where a
    path, rule or setting is wrong; a file that cannot be used is listed as refused and changes
    nothing.
    """
    rules = [arms.parse_rule(text) for text in arm_rules]
    stated = dict(arms.parse_set(text) for text in settings)
    chosen = dict(_parse_mapping(text) for text in mapping)
    work = _Import(store, study_name(study), rules, stated, by, chosen)
    report = work.run(list(_listed(paths)), tell)
    for text, rule in zip(arm_rules, rules, strict=True):
        if not work.matched(rule):
            report.notes.append(
                f"arm rule {text!r} matched no run: a glob is matched against a file's path below "
                "what was named, any tail of it, and the run's label"
            )
    if mapping and not work.mapped:
        report.notes.append("the mapping was not used: no file needed one or none has its leaves")
    return report


def _listed(paths: Sequence[Path]) -> Iterator[Entry]:
    """The files below `paths`. Of several, each is called by its path from their common folder:
    what lies in one of them is not beside what lies in another.
    """
    if len(paths) < 2:
        yield from list_files(paths)
        return
    found = [path.expanduser().absolute() for path in paths]
    root = Path(os.path.commonpath([path.parent for path in found]))
    for path, full in zip(paths, found, strict=True):
        place = full if full.is_dir() else full.parent
        for entry in list_files([path]):
            name = PurePosixPath(place.relative_to(root).as_posix(), entry.name)
            yield replace(entry, name=printable(str(name)))


def _parse_mapping(text: str) -> tuple[str, str]:
    """'LEAF=FIELD' or 'LEAF=FIELD@ARM'; the leaf may hold `=` itself. Raises InputError."""
    leaf, equals, target = (part.strip() for part in text.rpartition("="))
    if not equals or not leaf or target.partition("@")[0] not in (*targets(), IGNORE):
        raise InputError(
            f"map {text!r}: LEAF=FIELD is needed, with a FIELD of {', '.join(targets())}"
        )
    return leaf, target


def import_entries(store: Store, entries: Sequence[Entry], study: str, by: str) -> ImportReport:
    """As `import_paths`, for files at hand; names of files and folders suggest the arms."""
    return _Import(store, study_name(study), None, {}, by).run(entries, None)


class _Import:
    """One import in progress: what was said, and what lies beside runs yet to come."""

    def __init__(
        self,
        store: Store,
        study: str,
        rules: Sequence[arms.Rule] | None,
        stated: Mapping[str, object],
        by: str,
        mapping: Mapping[str, str] | None = None,
    ) -> None:
        self._store, self._study, self._rules, self._stated = store, study, rules, stated
        self._by, self._mapping = by, mapping or {}
        self._named: set[tuple[str, str | None]] = set()
        self.mapped = 0
        self._saved = store.mappings()
        self._unnamed = _without_arm(store, study)
        self._above: dict[str, Reading] = {}
        self._spoken_of: set[str] = set()
        self._again: dict[str, set[str]] = {}
        self.report = ImportReport(import_id=uuid4().hex)

    def run(self, entries: Sequence[Entry], tell: Tell | None) -> ImportReport:
        """Import the entries, folder by folder."""
        done = 0
        for listed in _by_folder(entries):
            readings = []
            for entry in listed:
                if tell is not None:
                    tell(done, len(entries), entry.name)
                done += 1
                readings += self._read(entry)
            self._take(readings)
        self._finish()
        return self.report

    def matched(self, rule: arms.Rule) -> bool:
        """Whether the rule's glob fits any run that was read."""
        return any(arms.fits(name, label, rule[0]) for name, label in self._named)

    def _read(self, entry: Entry) -> list[Reading]:
        try:
            reading = self._mapped(entry)
            self._named |= {(reading.name, run.label) for run in reading.runs}
            if self._rules is None:
                return [arms.suggest(reading)]
            return [with_fields(arms.assign(reading, self._rules), self._stated)]
        except (FileError, InputError) as error:
            self.report.refused.append(Refused(entry.name, str(error)))
            return []

    def _mapped(self, entry: Entry) -> Reading:
        """The entry's reading; with the mapping at hand where no reader knows the file."""
        data = entry.read()
        try:
            return read(entry.name, data, saved=() if self._mapping else self._saved)
        except UnknownFormat as error:
            leaves = [column.header for column in error.columns]
            if not self._mapping or not leaves:
                raise
            if missing := [leaf for leaf in self._mapping if leaf not in leaves]:
                raise UnknownFormat(
                    f"{entry.name}: no leaf {missing[0]!r} to map; it has {shorten(leaves, 40)}",
                    error.columns,
                ) from None
            reading = read(entry.name, data, self._mapping)
            self._store.save_mapping(signature(leaves), leaves, self._mapping, _called(entry.name))
            self.mapped += 1
            return reading

    def _take(self, readings: Sequence[Reading]) -> None:
        """Add the files of one folder, completed by what lies in it and above it."""
        joined = bundles.join([*readings, *self._above.values()])
        raw = {r.sha256: r for r in readings}
        self.report.refused += [Refused(*row) for row in joined.refused.items()]
        self._above |= {r.name: r for r in readings if r.beside is not None}
        for bundle in joined.bundles:
            alone = raw.get(bundle.reading.sha256, bundle.reading)
            try:
                self._add(arms.settled(bundle.reading), alone, bundle.beside)
            except InputError as error:
                self.report.refused.append(Refused(bundle.reading.name, str(error)))

    def _add(self, reading: Reading, alone: Reading, beside: Sequence[Reading]) -> None:
        """Add a reading; `alone` is what its own file says, without what lies `beside`."""
        flags = _messages(reading.flags)
        if not reading.runs:
            self._list(reading, 0, flags)
            return
        added = self._store.add(
            reading, self._study, self._by, beside=beside, import_id=self.report.import_id
        )
        self.report.imported += added.new
        for said in beside:
            self._spoken_of |= {said.name} if added.new else set()
            self._above.setdefault(said.name, said)
            self._again.setdefault(said.name, set()).update(added.duplicates)
        if added.replaces:
            flags["replaces"] = f"takes the place of {', '.join(added.replaces)}"
        if added.duplicate_of is not None:
            self.report.duplicates.append(Duplicate(reading.name, added.duplicate_of))
            flags = {"duplicate": f"the same runs as {added.duplicate_of}"}
        known = set(added.duplicates)
        self._unnamed |= {r.run_id for r in reading.runs if r.arm is None} - known
        named = _name(self._store, self._study, alone, self._unnamed & known, self._stated)
        if named:
            self._unnamed -= named
            flags["arm_named"] = f"the arm of {counted(len(named), 'stored run')} was named"
        self._list(reading, added.new, flags)

    def _finish(self) -> None:
        """Derive stored runs anew from what came without a new run beside it."""
        for reading in self._above.values():
            flags = _messages(reading.flags)
            if reading.name not in self._spoken_of:
                flags |= self._revised(reading)
            self._list(reading, 0, flags)

    def _revised(self, said: Reading) -> dict[str, str]:
        again = self._again.get(said.name, set())
        done = revise(self._store, self._study, said, again, self._by, self.report.import_id)
        if done.changed:
            return {"revised": f"{counted(done.changed, 'stored run')} derived anew: {done.what}"}
        if done.beside:
            text = f"says nothing new of the {counted(done.beside, 'run')} beside it"
            return {"nothing_new": text}
        text = "no run lies beside it here; import it together with its results"
        return {"nothing_beside": text}

    def _list(self, reading: Reading, new: int, flags: Mapping[str, str]) -> None:
        self.report.files.append(
            ImportedFile(
                reading.name,
                reading.tool,
                reading.tool_version,
                new,
                tuple(flags),
                tuple(flags.values()),
            )
        )


def _called(name: str) -> str:
    """A file's own name, short enough to call a saved mapping by."""
    return PurePosixPath(name).name[-80:]


def _by_folder(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """The entries of each folder, those above first: what lies there may speak of runs below.

    A run that a tool wrote as JSON and as CSV is taken from the JSON, so that comes first.
    """
    folders: dict[str, list[Entry]] = {}
    for entry in entries:
        folders.setdefault(bundles.folder_of(entry.name), []).append(entry)
    for folder in sorted(folders, key=lambda f: PurePosixPath(f).parts):
        yield sorted(folders[folder], key=lambda e: (not e.name.lower().endswith(".json"), e.name))


def _messages(flags: Sequence[Flag]) -> dict[str, str]:
    """What the flags say by code: up to three different texts, and how many more there are."""
    texts: dict[str, dict[str, None]] = {}
    for flag in flags:
        texts.setdefault(flag.code, {})[flag.message] = None
    found = {}
    for code, said in texts.items():
        first, more = list(said)[:3], len(said) - 3
        found[code] = "; ".join(first) + (f"; and {more} more of this kind" if more > 0 else "")
    return found


@dataclass(frozen=True)
class Revised:
    """How many stored runs lie beside a file, how many it changed, and what it said of them."""

    beside: int
    changed: int
    what: str = ""


def revise(
    store: Store,
    study: str,
    said: Reading,
    again: Collection[str] = (),
    by: str = "",
    import_id: str = "",
) -> Revised:
    """Derive those stored runs anew that the file `said` names, and those of `again`.

    `again` are runs of files that were found beside it once more: a folder's name alone does not
    tell whether it is the folder that was imported before. The rows that were stay as past ones.
    """
    beside = said.beside
    if beside is None or study not in store.studies():
        return Revised(0, 0)
    found, revised, requests, told = 0, {}, {}, dict[str, None]()
    for run in store.study(study).runs:
        if run.run_id not in again and not bundles.names(beside, run):
            continue
        found += 1
        changed, flags = bundles.applied(run, said)
        if beside.requests is not None:
            requests[run.run_id] = beside.requests
        if changed != run or run.run_id in requests:
            revised[run.run_id] = changed
            told |= dict.fromkeys(flag.message for flag in flags)
    if not revised:
        return Revised(found, 0)
    count = store.revise(study, revised, said, requests, by, import_id or None)
    return Revised(found, count, "; ".join(told) or "per-request records added")


def _without_arm(store: Store, study: str) -> set[str]:
    """Ids of the study's runs whose arm nobody has named."""
    if study not in store.studies():
        return set()
    return {r.run_id for r in store.study(study).runs if r.arm is None}


def _name(
    store: Store, study: str, reading: Reading, run_ids: set[str], stated: Mapping[str, object]
) -> set[str]:
    """Give these stored runs the arm that the reading has for them, and the fields stated.

    The ids of those it has one for.
    """
    named = {r.run_id: r for r in reading.runs if r.run_id in run_ids and r.arm is not None}
    for run_id, run in named.items():
        store.update(study, [run_id], {**_arm_of(run), **stated})
    return set(named)


def _arm_of(run: Run) -> dict[str, object]:
    """What a run says of its arm; for off also that it has nothing of a drafter."""
    fields = {name: getattr(run, name) for name in ("spec_state", *GROUPS.speculation)}
    off = run.spec_state is SpecState.OFF
    return {name: value for name, value in fields.items() if off or value is not None}


def with_fields(reading: Reading, fields: Mapping[str, object]) -> Reading:
    """The reading with fields that a person states, for every run."""
    if not fields:
        return reading
    runs = tuple(
        replace(run, **fields)  # type: ignore[arg-type]
        for run in reading.runs
    )
    return replace(reading, runs=runs)
