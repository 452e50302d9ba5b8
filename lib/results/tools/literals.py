"""Cells of a table that hold an object or a list: JSON, or how Python prints one."""

import ast
import json
import re

import orjson

from lib.results.parsing import as_dict, as_list

LONGEST = 2**20  # Python's own parser takes a hundred times the text's memory
DEEPEST = 100
LARGEST_INT = 2**63


def opened(cell: str) -> object:
    """The object or list that a cell holds, as JSON could have held it; its text for any other.

    NaN becomes None; so do Python's None and nan.
    """
    if cell.lstrip()[:1] not in ("{", "["):
        return cell
    value = _parsed(cell)
    return value if isinstance(value, (dict, list)) and _shallow(value) else cell


def _parsed(cell: str) -> object:
    try:
        return orjson.loads(cell)
    except orjson.JSONDecodeError:
        pass
    if len(cell) > LONGEST:
        return None
    try:
        return _plain(json.loads(cell, parse_constant=lambda _: None))
    except (ValueError, RecursionError):
        pass
    try:
        literal = re.sub(r"\b(?:nan|NaN|null)\b", "None", cell.strip())
        return _plain(ast.literal_eval(literal))
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain(v) for v in value]
    if isinstance(value, int) and not -LARGEST_INT <= value < LARGEST_INT:
        return float(value) if value.bit_length() < 1000 else None
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _shallow(value: object) -> bool:
    level, depth = [value], 0
    while level:
        depth += 1
        inner = [i for v in level for i in (*as_dict(v).values(), *as_list(v))]
        level = [i for i in inner if isinstance(i, (dict, list))]
    return depth <= DEEPEST
