"""What commands print: a JSON object or lines, and an error as one line with its exit status."""

import json
import math
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from lib.errors import DraftworthError, InputError

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object, nothing else.")]
OwnStudy = Annotated[str, typer.Option("--study", help="A study of yours.")]
StudyName = Annotated[
    str, typer.Option("--study", help="A study of yours, or a published one (its CSV's stem).")
]


def one_line_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Turn an error of ours into one line on standard error and its exit status."""

    @wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except DraftworthError as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(2 if isinstance(error, InputError) else 1) from None

    return wrapped


def plain(value: Any) -> Any:
    """The value with what JSON lacks written out: infinity as text, NaN as null."""
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value


def show(result: dict[str, Any], as_json: bool) -> None:
    """Print the result: one JSON object, or a line a key."""
    result = plain(result)
    if as_json:
        typer.echo(json.dumps(result, ensure_ascii=False, allow_nan=False))
        return
    for key, value in result.items():
        if isinstance(value, list) and value and isinstance(value[0], dict | str):
            typer.echo(f"{key}:")
            for row in value:
                _show_row(row)
        else:
            typer.echo(f"{key}: {_short(value)}")


def _show_row(row: Any, indent: str = "  ") -> None:
    """One row on a line; the rows within it below, indented."""
    if not isinstance(row, dict):
        typer.echo(f"{indent}{row}")
        return
    inner = {k: v for k, v in row.items() if isinstance(v, list) and v and isinstance(v[0], dict)}
    flat = {k: v for k, v in row.items() if k not in inner and v not in (None, "", [])}
    typer.echo(indent + ", ".join(f"{k} {_short(v)}" for k, v in flat.items()))
    for name, rows in inner.items():
        typer.echo(f"{indent}  {name}:")
        for one in rows:
            _show_row(one, indent + "    ")


def _short(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
