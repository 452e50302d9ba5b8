"""What was read of a study last, while the study is as it was."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

STUDIES = 8

T = TypeVar("T")


class Recall(Generic[T]):
    """Values of the studies asked for last, each good for one fingerprint. Threads may share it."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, tuple[object, T]] = OrderedDict()
        self._lock = Lock()

    def get(self, study: str, fingerprint: object, read: Callable[[], T]) -> T:
        """The value for this fingerprint, from `read` where it is not held."""
        with self._lock:
            held = self._held.get(study)
            if held is not None and held[0] == fingerprint:
                self._held.move_to_end(study)
                return held[1]
        value = read()
        with self._lock:
            self._held[study] = fingerprint, value
            self._held.move_to_end(study)
            while len(self._held) > STUDIES:
                self._held.popitem(last=False)
        return value
