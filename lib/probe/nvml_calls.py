"""NVML's library behind its binding: initialised once, every refusal one error with its code."""

import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from lib.probe import nvml_text

_PCI = re.compile(r"(?:([0-9a-f]+):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.[0-9a-f])?", re.IGNORECASE)
_lock = threading.Lock()
_initialised = False


class Unreadable(Exception):
    """NVML refused, with its return code; the message is a sentence with the way out."""

    def __init__(self, code: int, message: str = "") -> None:
        super().__init__(message or nvml_text.sentence(code))
        self.code = code


class Asked:
    """One handle being asked; what it refuses is kept by what was asked for, as NVML's code."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.refused: dict[str, int] = {}

    def __call__(self, what: str, name: str, *args: Any) -> Any:
        """The answer of `nvmlDevice{name}`, or None."""
        self.refused.pop(what, None)
        try:
            return call(f"Device{name}", self.handle, *args)
        except Unreadable as error:
            self.refused[what] = error.code
        return None


def initialise() -> None:
    """Make the library ready; safe to repeat. Raises Unreadable, and tries anew the next time."""
    global _initialised
    with _lock:
        if not _initialised:
            call("Init")
            _initialised = True


def shutdown() -> None:
    """Let the library go; safe to repeat, and it can be initialised again."""
    global _initialised
    with _lock:
        if _initialised:
            with suppress(Unreadable):
                call("Shutdown")
        _initialised = False


def call(name: str, *args: Any) -> Any:
    """The answer of `nvml{name}`. Raises Unreadable for whatever stops it."""
    global _initialised
    try:
        import pynvml
    except ImportError:
        raise Unreadable(nvml_text.LIBRARY_NOT_FOUND, nvml_text.BINDING_MISSING) from None
    try:
        return getattr(pynvml, f"nvml{name}")(*args)
    except pynvml.NVMLError as error:
        code = int(error.value)
        if code == nvml_text.UNINITIALIZED:
            _initialised = False
        raise Unreadable(code) from None
    except (pynvml.NVMLLibraryMismatchError, AttributeError):
        raise Unreadable(nvml_text.FUNCTION_NOT_FOUND) from None
    except (UnicodeDecodeError, OSError):
        raise Unreadable(nvml_text.UNKNOWN) from None


def call_or_none(name: str, *args: Any) -> Any:
    """The answer of `nvml{name}`, or None."""
    with suppress(Unreadable):
        return call(name, *args)
    return None


def handles() -> Iterator[tuple[Any, Any]]:
    """Every board that opens, and after it its MIG slices with it. Raises Unreadable."""
    for index in range(call("DeviceGetCount")):
        board = call_or_none("DeviceGetHandleByIndex", index)
        if board is not None:
            yield board, None
            yield from ((part, board) for part in slices(board))


def slices(board: Any) -> Iterator[Any]:
    """Handles of a board's MIG slices; none where it is not split."""
    if not mig_enabled(board):
        return
    for index in range(call_or_none("DeviceGetMaxMigDeviceCount", board) or 0):
        part = call_or_none("DeviceGetMigDeviceHandleByIndex", board, index)
        if part is not None:
            yield part


def mig_enabled(handle: Any) -> bool | None:
    """Whether a board is split by MIG; None where it does not say."""
    mode = call_or_none("DeviceGetMigMode", handle)
    return None if mode is None else bool(mode[0])


def find(name: str) -> Any:
    """The handle of a UUID or PCI id; None where there is none. Raises Unreadable."""
    place = place_of(name)
    for handle, board in handles():
        own = call_or_none("DeviceGetUUID", handle)
        if own and plain_uuid(own) == plain_uuid(name):
            return handle
        if place and board is None and place_of(pci_bus_id(handle)) == place:
            return handle
    return None


def pci_bus_id(handle: Any) -> str:
    """As NVML writes it, `00000000:3B:00.0`; empty where it does not say."""
    info = call_or_none("DeviceGetPciInfo", handle)
    with suppress(UnicodeDecodeError):
        return str(info.busId) if info else ""
    return ""


def plain_uuid(uuid: str) -> str:
    """A UUID without what CUDA leaves out."""
    return uuid.strip().casefold().removeprefix("mig-").removeprefix("gpu-")


def place_of(pci_bus_id: str) -> tuple[int, int, int] | None:
    """Domain, bus and device; NVML writes the domain with eight digits, CUDA with four."""
    found = _PCI.fullmatch(pci_bus_id.strip())
    if found is None:
        return None
    domain, bus, device = (int(part or "0", 16) for part in found.groups())
    return domain, bus, device
