"""One arm measured on two builds of its engine: pairs of groups whose change can be split."""

from collections.abc import Sequence
from itertools import pairwise

from scipy.special import stdtrit

from lib.evidence.acceptance_groups import Group, Place
from lib.evidence.ratio import METRICS, difference, log_mean_of_runs
from lib.run import GROUPS

# What moves the time of a step as a build does: where it differs, no change is the build's.
SAME = (
    *(f for f in GROUPS.allocation if f != "usd_per_hour"),
    *("max_num_seqs", "prefix_caching", "graph_max_batch"),
)


def rebuilt(groups: Sequence[Group]) -> tuple[tuple[Group, Group], ...]:
    """Groups that agree in all but their build, the earlier first, neighbours in time.

    Builds are in order of their first start where that is known, else of their names. Groups
    whose runs differ in hardware or in the server's limits are left out.
    """
    by_place: dict[Place, list[Group]] = {}
    for group in groups:
        if group.place.build:
            by_place.setdefault(group.place.without("build"), []).append(group)
    pairs = (pair for members in by_place.values() for pair in pairwise(_in_time(members)))
    return tuple((a, b) for a, b in pairs if _one_server(a, b))


def _in_time(groups: Sequence[Group]) -> list[Group]:
    starts = {id(g): [r.started_at for r in g.runs if r.started_at] for g in groups}
    if all(starts.values()):
        return sorted(groups, key=lambda g: min(starts[id(g)]))
    return sorted(groups, key=lambda g: g.place.build)


def _one_server(a: Group, b: Group) -> bool:
    return all(len({getattr(r, f) for r in (*a.runs, *b.runs)}) == 1 for f in SAME)


def speed_changed(first: Group, second: Group) -> bool | None:
    """Whether output tok/s, else mean TPOT, changed beyond the noise of the repeats, at 95 %.

    None where one run a build, or none, leaves no interval (Welch, on the log scale).
    """
    for name in ("output_tps", "tpot_ms"):
        one, other = (log_mean_of_runs(g.runs, METRICS[name]) for g in (first, second))
        if one is None or other is None:
            continue
        change, se, df = difference(other, one)
        return None if se is None or df is None else abs(change) > float(stdtrit(df, 0.975)) * se
    return None
