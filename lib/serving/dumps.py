"""What two text dumps of a server's metrics, taken apart in time, say it did between them."""

from collections.abc import Sequence

from lib.errors import InputError
from lib.results.parsing import decode
from lib.serving.metrics import snapshot
from lib.serving.windows import Window, window


def window_of(dumps: Sequence[tuple[str, bytes]], seconds: float) -> Window:
    """The window between two dumps, each a name and its bytes, taken `seconds` apart.

    Which is the earlier one is told by the counters: nothing falls from it to the later one. Where
    something falls either way, the order given stands and the window says that it restarted.
    Raises InputError, UnreadableFile, FileTooLarge.
    """
    if len(dumps) != 2:
        raise InputError(
            f"text dumps: {len(dumps)} given; two are needed, one taken before the other"
        )
    if not seconds > 0:
        raise InputError(f"{seconds:g} seconds between the dumps: a number above 0 is needed")
    texts = [(name, decode(name, data)[0]) for name, data in dumps]
    forward, back = (
        window(
            f"{first[0]} to {second[0]}",
            snapshot(*first, 0.0),
            snapshot(*second, seconds),
        )
        for first, second in (texts, texts[::-1])
    )
    return back if forward.restarts and not back.restarts else forward
