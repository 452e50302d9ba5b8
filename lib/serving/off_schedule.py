"""Whether a live server drafts what its schedule has at that batch."""

from collections.abc import Iterator, Sequence

from lib.evidence.engine_support import data_parallel_drops
from lib.serving.plan import Plan
from lib.serving.windows import Window

SAME_K = 0.05  # how far mean drafts a round may lie from K, as a share of K

_OFF_SCHEDULE = 2  # windows, since requests may come and go between the two ends of one
_MOVES = 0.1  # share of the output with a draft, where the schedule has none


def not_on_schedule(parts: Sequence[Window], plan: Plan) -> Iterator[tuple[str, str]]:
    """Code and sentence of what shows that a server does not run the plan's schedule.

    `parts` are its windows, oldest first. Without a schedule there is nothing to show.
    """
    if plan.schedule is None:
        return
    largest = max(k for _, _, k in plan.schedule)
    ranks = max(plan.data_parallel or 1, *(_ranks(w) for w in parts))
    if ranks > 1 and "vLLM" in parts[-1].engines:
        said = data_parallel_drops(ranks, largest, "a fixed K")
        yield "schedule_lost", f"The schedule is lost: {said}"
        return
    wrong: dict[int, list[str]] = {}
    for window in parts:
        for engine in window.parts or (window,):
            k, said = _off_schedule(engine, plan)
            if k is not None and said:
                wrong.setdefault(k, []).append(said)
    for said_at in wrong.values():
        if len(said_at) >= _OFF_SCHEDULE:
            yield (
                "schedule_inactive",
                f"The schedule is apparently inactive: {said_at[-1]}. Check that the server was "
                "started with it and that its version runs it.",
            )


def _ranks(window: Window) -> int:
    """The data-parallel engines of one server."""
    return sum("engine " in p.label or "dp_rank " in p.label for p in window.parts)


def _off_schedule(engine: Window, plan: Plan) -> tuple[int | None, str]:
    """The K that the schedule has over a whole window of one engine, and what is drafted instead.

    No K where the batch at its two ends has two, and nothing said where it drafts that K.
    """
    ends = (engine.running_before, engine.gauges.running)
    ks = {plan.k_at(x) for x in ends if x is not None}
    c, k = engine.counters, ks.pop() if len(ks) == 1 else None
    if k is None or None in ends or not c.output_tokens or c.drafts is None:
        return None, ""
    where = f"at {ends[1]:g} running it has K = {k}"
    if c.drafts == 0:
        return k, f"{where} and nothing is drafted" if k else ""
    if k == 0:
        share = (c.drafts + (c.accepted_tokens or 0)) / c.output_tokens
        return k, f"{where} and drafts are counted" if share > _MOVES else ""
    drafted = (c.draft_tokens or 0) / c.drafts
    return k, f"{where} and {drafted:.3g} are drafted" if abs(drafted - k) > SAME_K * k else ""
