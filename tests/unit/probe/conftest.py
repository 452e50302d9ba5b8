"""What probe tests share: torch and transformers are optional for a user, not for CI."""

import importlib
import os
from types import ModuleType

import pytest


def need(module: str) -> ModuleType:
    """The optional module. Without it the tests are skipped, or fail where it is required."""
    if os.environ.get("DRAFTWORTH_REQUIRE_TORCH") == "1":
        return importlib.import_module(module)
    found: ModuleType = pytest.importorskip(
        module, reason=f"{module} is not installed: pip install -r requirements-probe.txt"
    )
    return found
