"""Which arm a run belongs to: rules that a person gives, and what names suggest."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any

from lib.errors import InputError
from lib.results import checks, fields
from lib.results.naming import ArmName, parse_arm, repeat_of, spell
from lib.results.reading import Flag, Reading
from lib.run import EDITABLE, Run, SpecState

__all__ = ["assign", "parse_arm", "parse_rule", "parse_set", "settled", "suggest"]

Rule = tuple[str, dict[str, object]]


def parse_rule(text: str) -> Rule:
    """'GLOB=METHOD[:K]' or 'GLOB=off'; the glob may hold `=` itself. Raises InputError."""
    glob, equals, arm = text.rpartition("=")
    if not equals or not glob.strip():
        raise InputError(
            f"arm rule {text!r}: GLOB=METHOD[:K] is needed, for example 'k4-*=eagle3:4'"
        )
    return glob.strip(), parse_arm(arm)


def parse_set(text: str) -> tuple[str, Any]:
    """'field=value' for a field that a person may state, with its typed value.

    The field may be spelled as in any source (`tp`, `isl`). Raises InputError.
    """
    name, equals, value = (part.strip() for part in text.partition("="))
    match = fields.lookup(name)
    if not equals or match is None or match.field not in EDITABLE or match.factor != 1.0:
        raise InputError(f"{text!r}: FIELD=VALUE is needed, with a FIELD of {', '.join(EDITABLE)}")
    return match.field, fields.convert(match.field, value)


def assign(reading: Reading, rules: Sequence[Rule]) -> Reading:
    """The reading with the arm of the first rule whose glob matches each run.

    A glob matches the reading's name (its path relative to what was asked for) or any tail of that
    path, such as the file name, then the run's label. A rule without K leaves the K that the file
    states. A run that no rule matches and whose arm the file does not state carries the flag
    arm_unknown.
    """
    runs = []
    for run in reading.runs:
        arm = _first_match(reading.name, run.label, rules)
        runs.append(run if arm is None else _with_arm(run, arm))
    return settled(reading, runs)


def _first_match(name: str, label: str | None, rules: Sequence[Rule]) -> dict[str, object] | None:
    return next((arm for glob, arm in rules if fits(name, label, glob)), None)


def fits(name: str, label: str | None, glob: str) -> bool:
    """Whether a glob fits a run of the file `name`: its path, a tail of that, or its label."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    tails = ("/".join(parts[at:]) for at in range(len(parts)))
    return any(fnmatchcase(text, glob) for text in (name, *tails, label or ""))


def _with_arm(run: Run, arm: dict[str, object]) -> Run:
    stated: dict[str, Any] = dict(arm)
    if stated["spec_state"] is SpecState.OFF:
        stated |= {"draft_model": None, "schedule": None}
    elif stated["num_speculative_tokens"] is None:
        del stated["num_speculative_tokens"]
    return replace(run, **stated)


def suggest(reading: Reading) -> Reading:
    """The reading with arms and repeats that its label, file and folder names state.

    Never overrides what the file or a person stated. Each arm taken from a name is flagged with
    the name it was taken from.
    """
    flags: list[Flag] = []
    runs = []
    for run in reading.runs:
        names = _names(reading.name, run.label)
        if run.label and reading.tool == "table":
            names = names[:1]  # its rows name their arms; the file's name is not about one of them
        filled, sources = _filled(run, names)
        if sources:
            text = f"arm {filled.arm} read from {' and '.join(sources)}"
            flags.append(Flag("arm_suggested", "warns", text, run.run_id))
        if filled.repeat is None:
            repeat = next((r for _, n in names if (r := repeat_of(n)) is not None), None)
            filled = replace(filled, repeat=repeat)
        runs.append(filled)
    return settled(reading, runs, flags)


def _names(name: str, label: str | None) -> list[tuple[str, str]]:
    """What a run is called, the innermost first, each with how to speak of it."""
    path = PurePosixPath(name.replace("\\", "/"))
    folders = [(f"the folder name {p!r}", p) for p in reversed(path.parent.parts)]
    named = [(f"the label {label!r}", label)] if label else []
    return [*named, (f"the file name {path.name!r}", path.stem), *folders]


def _filled(run: Run, names: Iterable[tuple[str, str]]) -> tuple[Run, list[str]]:
    """The run with what the names add to its arm, and which names those are."""
    sources = []
    for spoken, name in names:
        if run.spec_state is SpecState.OFF:
            break
        arm = spell(name)
        if arm is None or (arm.state is SpecState.OFF and run.spec_state is SpecState.ON):
            continue
        new = {k: v for k, v in _adding(arm, spoken).items() if _is_open(run, k)}
        if new:
            run = replace(run, **new)
            sources.append(spoken)
    return run, sources


def _adding(arm: ArmName, spoken: str) -> dict[str, Any]:
    """What a name may add; a folder called only `spec` or `on` is too little to go by."""
    bare = arm.fields.keys() == {"spec_state"} and arm.state is SpecState.ON
    return {} if bare and spoken.startswith("the folder") else dict(arm.fields)


def _is_open(run: Run, field: str) -> bool:
    if field == "spec_state":
        return run.spec_state is SpecState.UNKNOWN
    if field in ("num_speculative_tokens", "schedule"):
        return run.num_speculative_tokens is None and run.schedule is None
    return getattr(run, field) is None


def settled(
    reading: Reading, runs: Sequence[Run] | None = None, found: Sequence[Flag] = ()
) -> Reading:
    """The reading with these runs, or its own; what a run tells by itself is told afresh.

    The flags of its file stay, and those of `found` join them.
    """
    runs = reading.runs if runs is None else runs
    own = {r.run_id: r.arm for r in runs}
    by_server = {r.run_id for r in runs if r.token_count == "server"}
    kept = [
        f
        for f in (*reading.flags, *found)
        if f.code != "arm_unknown"
        and not (f.code == "arm_suggested" and f"arm {own.get(f.run_id or '')} " not in f.message)
        and not (f.run_id in own and f.code in checks.CODES)
        and not (f.run_id in by_server and f.code == "retokenised_unchecked")
    ]
    told = [flag for run in runs for flag in checks.inspect(run)]
    text = "nothing says which arm this is; name it (off, METHOD or METHOD:K)"
    unknown = [Flag("arm_unknown", "blocks pairing", text, r.run_id) for r in runs if r.arm is None]
    return replace(reading, runs=tuple(runs), flags=(*dict.fromkeys(kept), *told, *unknown))
