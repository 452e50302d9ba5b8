"""What the headers of a table mean: fields, and arms in columns of their own or in one column."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lib.errors import InputError
from lib.results.cells import Rows, is_missing
from lib.results.fields import (
    ARM,
    LOADS,
    Match,
    is_number,
    lookup,
    lookup_words,
    targets,
    unit_factor,
    words_of,
)
from lib.results.naming import ArmName, arm_named, notation, parse_arm, spell
from lib.run import SpecState

IGNORE = "ignore"
OUTCOMES = ("output_tps", "tpot_ms_mean", "tpot_ms_p50", "multiplier", "goodput_rps")
_DECODE = {"e2e_ms_mean", "ttft_ms_mean"}
PER_GPU, PER_USER = "per GPU", "per user"
LONGEST_METHOD = 60
LONGEST_HEADER = 200
_WRITTEN = re.compile(
    r"(?<![^\s,;|/(\[])([a-z][\w.+-]+:\s?(?:\d{1,4}|schedule))(?![a-z0-9.:])", re.IGNORECASE
)
_FILLERS = {"static", "fixed", "with", "and", "decode", "decoding", "tokens", "draft", "num"}


@dataclass(frozen=True)
class Understood:
    """A column whose header is understood; `arm` where the header or a person names one."""

    place: int
    header: str
    match: Match
    arm: ArmName | None = None
    arm_key: str = ""

    @property
    def is_numeric(self) -> bool:
        """Whether its cells are numbers."""
        return self.match.field in LOADS or is_number(self.match.field)

    @property
    def meaning(self) -> tuple[str, str]:
        """What it says of which arm: two columns of one meaning are alike."""
        return self.match.dimension or self.match.field, self.arm_key


def understand(headers: Sequence[str], mapping: Mapping[str, str]) -> list[Understood]:
    """The columns that are understood; `mapping` overrides.

    Of two alike the first counts, but one that names the output counts before a bare throughput,
    which may hold the input too. Raises InputError for a mapping to an unknown field.
    """
    found: dict[tuple[str, str], Understood] = {}
    before: Understood | None = None
    arms_in_rows = any(_names(header, ARM) for header in headers)
    for place, header in enumerate(h.strip() for h in headers):
        column: Understood | None
        if header in mapping:
            column = _mapped(place, header, mapping)
        elif len(header) > LONGEST_HEADER:
            column = None
        else:
            column = _matched(place, header) or _of_one_arm(place, header, arms_in_rows)
        lone = (
            column is not None and header not in mapping and _is_spread_of_another(column, before)
        )
        before = column
        if column is None or lone:
            continue
        known = found.get(column.meaning)
        if known is None or (_says_output(column) and not _says_output(known)):
            found[column.meaning] = column
    return sorted(found.values(), key=lambda c: c.place)


def _says_output(column: Understood) -> bool:
    """Whether a header of a token rate says that it is of the output."""
    said = {"output", "out", "generated", "generation", "decode", "completion"}
    return column.match.field != "output_tps" or bool(said & set(words_of(column.header)))


def _is_spread_of_another(column: Understood, before: Understood | None) -> bool:
    """Whether a bare `std` stands behind another column than the throughput."""
    bare = words_of(column.header) in (["sd"], ["std"], ["stddev"])
    return bare and (before is None or before.match.field != "output_tps")


def _mapped(place: int, header: str, mapping: Mapping[str, str]) -> Understood | None:
    target, at, arm_text = mapping[header].partition("@")
    if target == IGNORE:
        return None
    if target not in targets():
        raise InputError(f"column {header!r} to {target!r}: one of ignore, {', '.join(targets())}")
    match = lookup(header)
    if match is None or match.field != target:
        match = Match(target, unit_factor(header, target))
    match = replace(match, unit_assumed=False)
    if not at:
        return Understood(place, header, match)
    arm = ArmName(*parse_arm(arm_text).values())  # type: ignore[arg-type]
    return Understood(place, header, match, arm, arm_text)


def _matched(place: int, header: str) -> Understood | None:
    if (match := lookup(header)) is not None:
        return Understood(place, header, match)
    return _written(place, header)


def _written(place: int, header: str) -> Understood | None:
    """A column of the arm that the header writes as a run does: `eagle3:4 tok/s`."""
    for written in _WRITTEN.finditer(header):
        arm = notation(written[1])
        if arm is None or _names_another_field(written[1].partition(":")[0]):
            continue
        match = lookup(f"{header[: written.start()]} {header[written.end() :]}")
        if match and _is_outcome(match):
            return Understood(place, header, match, arm, written[1])
    return None


def _names(header: str, field: str) -> bool:
    match = lookup(header)
    return match is not None and match.field == field


def _names_another_field(text: str) -> bool:
    """Whether `tp:2` or `batch:8` would be taken for an arm; a draft model is a method too."""
    match = lookup(text)
    return match is not None and match.field not in (ARM, "draft_model")


def _of_one_arm(place: int, header: str, arms_in_rows: bool) -> Understood | None:
    """A column of the arm that the header names; `arm` is the one that each row names."""
    words = tuple(words_of(header))
    if words[-1:] in (("off",), (ARM,)):
        words = (*words[-1:], *words[:-1])  # `tok/s off`
    for cut in range(1, len(words)):
        match, prefix = lookup_words(words[cut:]), " ".join(words[:cut])
        by_row = prefix == ARM and arms_in_rows
        arm = ArmName(SpecState.ON) if by_row else spell(prefix)
        if match and _is_outcome(match) and arm and prefix != "draft":
            return Understood(place, header, match, distinct(arm), prefix)
    return None


def _is_outcome(match: Match) -> bool:
    return match.field in (*OUTCOMES, "output_tps_sd") or match.field.startswith(("ttft", "e2e"))


def distinct(arm: ArmName) -> ArmName:
    """An arm whose name says more than method and K has all of it as method: two stay apart."""
    rest = [word for word in arm.rest if word not in _FILLERS]
    if arm.state is SpecState.OFF or not rest:
        return arm
    name = " ".join(filter(None, (arm.method, *rest)))
    return replace(arm, method=name.replace(":", " ").replace("=", " ")[:LONGEST_METHOD])


def arm_names(rows: Rows, columns: Sequence[Understood]) -> dict[str, ArmName]:
    """Arms by the text of the arm column. With a recognised baseline, any other text is an arm."""
    place = next((c.place for c in columns if c.match.field == ARM), None)
    if place is None:
        return {}
    texts = {row[place].strip() for row in rows[1:] if place < len(row)}
    texts = {text for text in texts if not is_blank(ARM, text)}
    named = {t: arm for t in texts if (arm := arm_named(t)) is not None}
    beside = [c.arm for c in columns if c.arm is not None]
    if any(arm.state is SpecState.OFF for arm in (*named.values(), *beside)):
        for text in texts - named.keys():
            named[text] = ArmName(SpecState.ON, rest=(text,))
    return {text: distinct(arm) for text, arm in named.items()}


def is_blank(name: str, text: str) -> bool:
    """Whether a cell states nothing; `none` in a column of arms names the baseline."""
    return is_missing(text) and not (name == ARM and text.casefold() == "none")


def is_whole(columns: Sequence[Understood]) -> bool:
    """Whether a table with these columns has a load and an outcome, or what TPOT follows from."""
    fields = {c.match.field for c in columns}
    derived = fields >= _DECODE and bool(fields & {"output_len", "output_tokens"})
    return bool(fields & {*LOADS, "offered_load"}) and (bool(fields & set(OUTCOMES)) or derived)
