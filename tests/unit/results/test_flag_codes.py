"""The table of codes is complete: each is raised somewhere, and none is raised that it lacks."""

import ast
from pathlib import Path
from types import ModuleType

import pytest

from lib.results import acceptance_checks, checks, flag_codes, study_checks
from lib.run import Run

RAISING = (checks, acceptance_checks, study_checks)


def raised_in(*modules: ModuleType) -> dict[str, str]:
    """Each code that the modules raise, and the function that does: the calls of `flag`."""
    codes: dict[str, str] = {}
    for module in modules:
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        for function in (n for n in tree.body if isinstance(n, ast.FunctionDef)):
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("flag", "Flag"):
                    assert getattr(node.func, "id", "") == "flag", "flags come from the table"
                    assert isinstance(node.args[0], ast.Constant)
                    codes[str(node.args[0].value)] = function.name
    return codes


def test_the_table_holds_every_code_and_no_other() -> None:
    assert raised_in(*RAISING).keys() == checks.CODES.keys()


def test_each_code_says_in_one_line_what_it_means() -> None:
    for code, row in checks.CODES.items():
        assert code == code.lower()
        assert row.meaning.endswith(".")
        assert "\n" not in row.meaning
        order = ["blocks pairing", "blocks pricing", "warns"]
        assert sorted(row.severities, key=order.index) == list(row.severities)


def test_a_severity_that_a_code_cannot_have_is_refused() -> None:
    assert flag_codes.flag("short_run", "x", Run(run_id="r")).severity == "warns"
    with pytest.raises(ValueError, match="short_run: blocks pricing"):
        flag_codes.flag("short_run", "x", Run(run_id="r"), "blocks pricing")


def test_only_the_checks_that_may_block_are_asked_whether_they_do() -> None:
    """What blocks by the table is raised by the checks that `blocks_...` goes through."""
    one_run = raised_in(checks, acceptance_checks)
    for severity, names in (
        ("blocks pricing", {f.__name__ for f in checks._PRICING}),
        ("blocks pairing", {f.__name__ for f in acceptance_checks.PAIRING}),
    ):
        blocking = {c for c, row in checks.CODES.items() if severity in row.severities}
        assert {one_run[c] for c in blocking & one_run.keys()} == names
