"""Which experts each token of a pass takes, chosen beforehand.

A router of random weights says nothing about real routing, and what a step costs is how many
distinct experts it reads. So the choice is made before the pass, and wakes as many as independent
choices would in expectation: E(1-(1-k/E)^n) for n tokens. The experts that the first n tokens
take are the first ones of the list, for every n: a pass reads them as one slice, without a copy.
Among them the load is even; a real router's is less so.
"""

from dataclasses import dataclass

from lib.probe.architecture import Architecture


@dataclass(frozen=True)
class Plan:
    """The experts `low` to `high` (exclusive) of one pass, each with room for `room` tokens.

    `chosen` has the experts of each row of the pass, counted from `low`; `rows` the row in each
    place of each expert (0 where the place stays empty); `places` the places of each row.
    """

    low: int
    high: int
    room: int
    chosen: tuple[tuple[int, ...], ...]
    rows: tuple[int, ...]
    places: tuple[tuple[int, ...], ...]


def choices(architecture: Architecture, tokens: int) -> list[tuple[int, ...]]:
    """Experts of each of `tokens` tokens, in the order in which they are woken."""
    each = architecture.experts_per_token
    load: list[int] = []
    taken: list[tuple[int, ...]] = []
    for token in range(tokens):
        woken = round(architecture.distinct_experts(token + 1)) - len(load)
        again = sorted(range(len(load)), key=lambda e: (load[e], e))[: each - woken]
        own = (*again, *range(len(load), len(load) + woken))
        load += [0] * woken
        for expert in own:
            load[expert] += 1
        taken.append(own)
    return taken


def plan(architecture: Architecture, batch: int, tokens: int, first: int = 0) -> Plan:
    """The plan of a pass over `tokens` tokens of each request, `first` places behind the context.

    Rows go request by request; a token's experts do not depend on how many the pass has.
    """
    order = choices(architecture, batch * (first + tokens))
    own = [order[(first + t) * batch + b] for b in range(batch) for t in range(tokens)]
    low = min(min(experts) for experts in own)
    high = max(max(experts) for experts in own) + 1
    held: list[list[int]] = [[] for _ in range(high - low)]
    for row, experts in enumerate(own):
        for expert in experts:
            held[expert - low].append(row)
    room = max(len(rows) for rows in held)
    places = tuple(
        tuple((e - low) * room + held[e - low].index(row) for e in experts)
        for row, experts in enumerate(own)
    )
    rows = tuple(row for found in held for row in (*found, *[0] * (room - len(found))))
    chosen = tuple(tuple(e - low for e in experts) for experts in own)
    return Plan(low, high, room, chosen, rows, places)
