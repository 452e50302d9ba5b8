"""Documents with keys dropped and values of other types, for readers that must survive them."""

import copy
from random import Random
from typing import Any

ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**63, 1e308, -1e308, 0.5, "", "x", "nan", "inf", "12 ms", "\x00"),
    *([], {}, [[]], [None, {}], {"mean": []}, {"percentiles": 3}, "x" * 2000, {"type_": [1]}),
)


def shaken(document: Any, random: Random) -> Any:
    """A copy of a document with one to eight places dropped or replaced."""
    found = copy.deepcopy(document)
    for _ in range(random.choice((1, 1, 2, 4, 8))):
        holder, key = random.choice(_places(found) or [({}, None)])
        if key is None:
            return found
        if random.random() < 0.3:
            del holder[key]
        else:
            holder[key] = copy.deepcopy(random.choice(ODD))  # shared, it could hold itself
    return found


def _places(document: Any) -> list[tuple[Any, Any]]:
    places, waiting = [], [document]
    while waiting:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        places += [(holder, key) for key in keys]
        waiting += [holder[k] for k in keys if isinstance(holder[k], (dict, list))]
    return places
