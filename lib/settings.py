"""The settings table: name, default, help. Documentation and --help derive from it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lib.errors import InputError

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "data"


@dataclass(frozen=True)
class Setting:
    """One row: an environment variable, its default and what it does."""

    name: str
    default: str | int
    help: str


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "DRAFTWORTH_STORE",
        "var/draftworth.duckdb",
        "Path of the store, created on first use; relative to the project's root.",
    ),
    Setting(
        "DRAFTWORTH_UPLOAD_MB", 64, "Largest file that the browser may upload, in MB (2^20 bytes)."
    ),
    Setting(
        "DRAFTWORTH_IMPORT_MB",
        1024,
        "Largest file that the command line may import, in MB (2^20 bytes).",
    ),
    Setting(
        "DRAFTWORTH_KEEP_MB",
        16,
        "Largest file of which the redacted document is kept in the store, in MB; 0 keeps none.",
    ),
    Setting("DRAFTWORTH_JSON_DEPTH", 200, "Deepest nesting of a JSON file that is read."),
    Setting(
        "DRAFTWORTH_ARCHIVE_MB",
        1024,
        "Largest archive (zip, gz) that is read, all of it expanded, in MB.",
    ),
    Setting("DRAFTWORTH_ENTRY_MB", 256, "Largest file in an archive that is read, in MB."),
    Setting("DRAFTWORTH_ARCHIVE_ENTRIES", 5000, "Most files that an archive may hold."),
    Setting(
        "DRAFTWORTH_ARCHIVE_RATIO",
        200,
        "Most times that a file in an archive may be larger than its compressed form.",
    ),
    Setting(
        "DRAFTWORTH_INBOX",
        "",
        "Folder that is watched: what is dropped there is imported, into the study called as the "
        "folder's first subfolder, else as the folder itself. Empty: none is watched.",
    ),
    Setting(
        "DRAFTWORTH_MONITOR_HOSTS",
        "",
        "Servers that may be asked, as host:port, host:port. Any port of this machine may be asked "
        "besides, on the command line and while the dashboard listens on loopback only.",
    ),
    Setting(
        "DRAFTWORTH_MONITOR_DAYS",
        7,
        "Days for which the store keeps what the monitor read from servers; 0 keeps none.",
    ),
)


def get(name: str, env: Mapping[str, str] | None = None) -> str | int:
    """Value of a setting, from `env` (default: the process environment) or its default."""
    row = next((s for s in SETTINGS if s.name == name), None)
    if row is None:
        raise KeyError(name)
    raw = (os.environ if env is None else env).get(name)
    if raw is None or not raw.strip():
        return row.default
    if isinstance(row.default, int):
        try:
            value = int(raw)
        except ValueError:
            value = -1
        if value < 0:
            raise InputError(
                f"{name}={raw!r}: a whole number of at least 0; unset it for {row.default}"
            )
        return value
    return raw


def number(name: str, env: Mapping[str, str] | None = None) -> int:
    """A whole-number setting."""
    return int(get(name, env))


def store_path(env: Mapping[str, str] | None = None) -> Path:
    """Absolute path of the store's file."""
    return (ROOT / str(get("DRAFTWORTH_STORE", env))).resolve()
