"""Files and folders of this machine into a study, each file whole or not at all."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lib.errors import FileError, FileTooLarge, InputError
from lib.results import arms
from lib.results.parsing import counted
from lib.results.reading import Reading, read
from lib.results.store import Store, study_name
from lib.run import GROUPS, Run, SpecState
from lib.settings import number


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
    """What an import did: new runs in all, then file by file."""

    imported: int = 0
    duplicates: list[Duplicate] = field(default_factory=list)
    files: list[ImportedFile] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)


def import_paths(
    store: Store,
    paths: Sequence[Path],
    study: str,
    arm_rules: Sequence[str] = (),
    settings: Sequence[str] = (),
    by: str = "",
) -> ImportReport:
    """Import every file below `paths` into `study`.

    `arm_rules` are 'GLOB=METHOD[:K]' (first match wins), `settings` are 'field=value' for what the
    files cannot know. A file that is there already names the arm of those of its stored runs that
    have none, and states the settings about them. Raises InputError before anything is read where
    a path, rule or setting is wrong; a file that cannot be used is listed as refused and changes
    nothing.
    """
    rules = [arms.parse_rule(text) for text in arm_rules]
    stated = dict(arms.parse_set(text) for text in settings)
    report = ImportReport()
    study = study_name(study)
    unnamed = _without_arm(store, study)
    # A run that a tool wrote as JSON and as CSV is taken from the JSON.
    found = sorted(list_files(paths), key=lambda f: (f[1].suffix.lower() != ".json", f[0]))
    for name, path in found:
        try:
            reading = with_fields(arms.assign(read(name, _bytes(path, name)), rules), stated)
            added = store.add(reading, study, by)
        except (FileError, InputError) as error:
            report.refused.append(Refused(name, str(error)))
            continue
        report.imported += added.new
        flags = {flag.code: flag.message for flag in reading.flags}
        if added.duplicate_of is not None:
            report.duplicates.append(Duplicate(name, added.duplicate_of))
            flags = {"duplicate": f"the same runs as {added.duplicate_of}"}
        unnamed |= {r.run_id for r in reading.runs if r.arm is None} - set(added.duplicates)
        if named := _name(store, study, reading, unnamed & set(added.duplicates), stated):
            unnamed -= named
            flags["arm_named"] = f"the arm of {counted(len(named), 'stored run')} was named"
        report.files.append(
            ImportedFile(
                name,
                reading.tool,
                reading.tool_version,
                added.new,
                tuple(flags),
                tuple(flags.values()),
            )
        )
    return report


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


def list_files(paths: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Each file with its path relative to the argument it was found under; hidden ones are not."""
    for path in paths:
        try:
            if path.is_dir():
                for inner in sorted(path.rglob("*")):
                    parts = inner.relative_to(path).parts
                    if inner.is_file() and not any(p.startswith(".") for p in parts):
                        yield printable(inner.relative_to(path).as_posix()), inner
            elif path.is_file():
                yield printable(path.name), path
            else:
                raise InputError(f"{printable(str(path))}: no such file or folder")
        except OSError as error:
            reason = error.strerror or "cannot be opened"
            raise InputError(f"{printable(str(path))[:200]}: {reason}") from None


def printable(name: str) -> str:
    """A path as text that can be stored and shown on one line, whatever bytes it is made of."""
    text = os.fsencode(name).decode("utf-8", "replace")
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def with_fields(reading: Reading, fields: Mapping[str, object]) -> Reading:
    """The reading with fields that a person states, for every run."""
    if not fields:
        return reading
    runs = tuple(
        replace(run, **fields)  # type: ignore[arg-type]
        for run in reading.runs
    )
    return replace(reading, runs=runs)


def _bytes(path: Path, name: str) -> bytes:
    limit = number("DRAFTWORTH_IMPORT_MB")
    try:
        size = path.stat().st_size
        if size > limit * 2**20:
            raise FileTooLarge(
                f"{name}: {size / 2**20:,.0f} MB; at most {limit} MB is read "
                "(raise DRAFTWORTH_IMPORT_MB, or save without per-request detail)"
            )
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"{name}: cannot be opened ({error.strerror})") from None
