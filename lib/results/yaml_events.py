"""YAML as values of JSON, built from the parser's events in one pass: no aliases, no objects."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import yaml

_TAG = "tag:yaml.org,2002:"
_TEXTS = frozenset({f"{_TAG}{kind}" for kind in ("str", "timestamp", "binary", "value", "merge")})
_NUMBERS = frozenset({f"{_TAG}{kind}" for kind in ("int", "float", "bool", "null")})
_GROUPS = frozenset({f"{_TAG}{kind}" for kind in ("seq", "map", "set", "omap", "pairs")})
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(\.[0-9]{1,17})?")
_MERGE = object()
_READER = yaml.SafeLoader("")
LONGEST_NUMBER = 400  # characters


class NotYaml(ValueError):
    """What of a YAML text cannot be read, in a few words; `deep` where it is the depth."""

    def __init__(self, said: str, *, deep: bool = False) -> None:
        super().__init__(said)
        self.deep = deep


@dataclass
class _Level:
    """A list or mapping that is being filled; `key` is the one whose value comes next."""

    value: Any
    key: Any = None
    keyed: bool = False
    is_set: bool = False
    merged: list[Any] = field(default_factory=list)


@dataclass
class Values:
    """The documents of a YAML text in order, as JSON could have held them.

    NaN has become None, an infinity its text; `nonfinite` counts both. Dates and times are text.
    """

    documents: list[object] = field(default_factory=list)
    nonfinite: int = 0
    _levels: list[_Level] = field(default_factory=list)

    def take(self, value: object) -> None:
        """Put a value where the text has it."""
        if not self._levels:
            self.documents.append(None if value is _MERGE else value)
            return
        level = self._levels[-1]
        if isinstance(level.value, list):
            level.value.append("<<" if value is _MERGE else value)
        elif not level.keyed:
            if isinstance(value, (dict, list)):
                raise NotYaml("a list or mapping as a key")
            level.key, level.keyed = value if value is _MERGE else str(value), True
        else:
            level.keyed = False
            if level.key is _MERGE:
                level.merged.append(value)
            else:
                level.value[level.key] = "<<" if value is _MERGE else value

    def open(self, event: yaml.CollectionStartEvent, limit: int) -> None:
        """Begin a list or mapping."""
        if len(self._levels) >= limit:
            raise NotYaml("too deep", deep=True)
        tag = event.tag if event.tag not in (None, "!") else ""
        if tag and tag not in _GROUPS:
            raise NotYaml("a tag that names no plain value")
        listed = isinstance(event, yaml.SequenceStartEvent)
        self._levels.append(_Level([] if listed else {}, is_set=tag == f"{_TAG}set"))

    def close(self) -> None:
        """End the list or mapping begun last."""
        level = self._levels.pop()
        for given in level.merged:
            for mapping in given if isinstance(given, list) else [given]:
                if not isinstance(mapping, dict):
                    raise NotYaml("<< with what is no mapping")
                level.value = mapping | level.value
        listed = level.is_set and isinstance(level.value, dict)
        self.take(list(level.value) if listed else level.value)

    def scalar(self, event: yaml.ScalarEvent) -> None:
        """Take a text, number, boolean or null."""
        plain = event.implicit[0] and event.tag in (None, "!")
        text = event.value
        value = _plain(text) if plain and len(text) <= LONGEST_NUMBER else _tagged(event.tag, text)
        if isinstance(value, float) and not math.isfinite(value):
            self.nonfinite += 1
            value = None if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
        self.take(value)


def read(text: str, limit: int) -> Values:
    """The values of `text`. Raises NotYaml, also for what nests deeper than `limit`."""
    values = Values()
    try:
        for event in _events(text):
            if isinstance(event, yaml.ScalarEvent):
                values.scalar(event)
            elif isinstance(event, yaml.CollectionStartEvent):
                values.open(event, limit)
            elif isinstance(event, yaml.CollectionEndEvent):
                values.close()
            elif isinstance(event, yaml.AliasEvent):
                raise NotYaml("aliases (*name); write the values out")
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise NotYaml(f"{place}{getattr(error, 'problem', None) or 'not valid'}") from None
    return values


def _events(text: str) -> Iterator[yaml.Event]:
    parsed: Iterator[yaml.Event] = yaml.parse(text, Loader=yaml.CSafeLoader)
    return parsed


def _tagged(tag: str | None, text: str) -> object:
    if tag in (None, "!") or tag in _TEXTS:
        return text
    if tag not in _NUMBERS:
        raise NotYaml("a tag that names no plain value")
    return _constructed(tag, text)


@lru_cache(maxsize=4096)
def _plain(text: str) -> object:
    """The value of a text without quotes: most are words, or numbers as JSON writes them."""
    match = _DECIMAL.fullmatch(text)
    if match:
        return float(text) if match[1] else int(text)
    tag = _READER.resolve(yaml.ScalarNode, text, (True, False))
    if tag == f"{_TAG}merge":
        return _MERGE
    return _constructed(tag, text) if tag in _NUMBERS else text


def _constructed(tag: str, text: str) -> object:
    """A number, boolean or null; raises NotYaml where the text is none, whatever the tag says."""
    try:
        node = yaml.ScalarNode(tag, text[:LONGEST_NUMBER])
        value = getattr(_READER, f"construct_yaml_{tag.removeprefix(_TAG)}")(node)
    except (LookupError, ValueError, AttributeError, TypeError, ArithmeticError):
        raise NotYaml(f"!!{tag.removeprefix(_TAG)} with what is none") from None
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**64:
        return float(value) if value.bit_length() < 1000 else None
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)
