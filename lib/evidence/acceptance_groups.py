"""The runs of a study as groups that share one acceptance, and what the groups say together."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from lib.estimate import Basis
from lib.evidence.acceptance import Acceptance, of_lengths, of_run
from lib.evidence.acceptance_requests import SEVERAL, ByRun, with_requests
from lib.run import LoadKind, Run, Study
from lib.theory import mixing

RATE_DROPS = 0.2


@dataclass(frozen=True, order=True)
class Place:
    """Where a group was measured. Acceptance may depend on each of these; texts, empty if unknown.

    `context` is the bucket of the input length: up to this many tokens, a power of 2.
    """

    target: str
    arm: str
    domain: str
    build: str
    temperature: str
    context: str
    load: str

    def without(self, field: str) -> "Place":
        """The same place with one of its fields left open."""
        return replace(self, **{field: ""})


@dataclass(frozen=True)
class Group:
    """Runs of one place pooled: repeats are summed. `output_tps` and `tpot_ms` are their means."""

    place: Place
    label: str
    runs: tuple[Run, ...]
    acceptance: Acceptance

    @property
    def output_tps(self) -> float | None:
        """Mean output tokens per second of the runs that state it."""
        return _mean([r.output_tps for r in self.runs])

    @property
    def tpot_ms(self) -> float | None:
        """Mean TPOT in ms of the runs that state it."""
        return _mean([r.tpot_ms_mean for r in self.runs])

    @property
    def output_tokens(self) -> float | None:
        """Generated tokens of all runs; None where one does not state it."""
        tokens = [r.output_tokens for r in self.runs]
        return float(sum(t or 0 for t in tokens)) if all(tokens) else None


def groups(study: Study, requests: ByRun | None = None) -> tuple[Group, ...]:
    """Groups of the runs with counts, a length or a rate, in order of arm, domain and load.

    `requests` are the counts of drafts by request, where runs have them.
    """
    found: dict[Place, list[Run]] = {}
    for run in study.runs:
        if of_run(run) is not None:
            found.setdefault(_place(run), []).append(run)
    ordered = sorted(found, key=lambda p: (p.arm, p.domain, p.context, _load_order(found[p][0])))
    varying = [f for f in _FIELDS if len({getattr(p, f) for p in found}) > 1]
    made = []
    for place in ordered:
        runs = tuple(found[place])
        label = _label(place, varying)
        if (acceptance := pooled(runs, study.basis, label, requests)) is not None:
            made.append(Group(place, label, runs, acceptance))
    return tuple(made)


_FIELDS = ("target", "domain", "build", "temperature", "context", "load")


def _label(place: Place, varying: Sequence[str]) -> str:
    parts = [place.arm, *(getattr(place, f) for f in varying)]
    return " · ".join(p for p in parts if p)


def _place(run: Run) -> Place:
    version = " ".join(filter(None, (run.engine_version, run.build)))
    return Place(
        run.target or "",
        run.arm or run.draft_method or "arm not named",
        run.domain or run.dataset or "",
        version,
        "" if run.temperature is None else f"T = {run.temperature:g}",
        context_bucket(run.input_len),
        _load(run),
    )


def context_bucket(input_len: float | None) -> str:
    """`input to 4,096`: the power of 2 that the input length stays within; empty if unknown."""
    if not input_len:
        return ""
    size = 1
    while size < input_len:
        size *= 2
    return f"input to {size:,}"


def _load(run: Run) -> str:
    if run.offered_load is None:
        return ""
    words = {
        LoadKind.CONCURRENCY: f"{run.offered_load:g} concurrent",
        LoadKind.BATCH: f"batch {run.offered_load:g}",
    }
    found = words.get(run.load_kind) if run.load_kind else None
    return found or f"{run.offered_load:g} requests/s"


def _load_order(run: Run) -> float:
    return run.offered_load or 0.0


def pooled(
    runs: Sequence[Run], basis: Basis, label: str, requests: ByRun | None = None
) -> Acceptance | None:
    """One acceptance of runs of one arm: counts are summed, else lengths are mixed by tokens.

    Where the requests of all of them are counted, these give the intervals.
    """
    found = [(r, a) for r in runs if (a := of_run(r, basis)) is not None]
    if not found:
        return None
    whole = _pooled(found, basis, label)
    counted = [c for r, _ in found if (c := (requests or {}).get(r.run_id)) is not None]
    if whole is None or len(counted) < len(found):
        return whole
    traffic = Counter((r.dataset, r.domain) for r, _ in found)
    return with_requests(whole, counted, max(traffic.values()))


def _pooled(found: Sequence[tuple[Run, Acceptance]], basis: Basis, label: str) -> Acceptance | None:
    source = f"{label}: {len(found)} run{'' if len(found) == 1 else 's'}"
    if len(found) == 1:
        return replace(found[0][1], source=source)
    counted = all(a.rounds for _, a in found)
    whole = of_run(_summed([r for r, _ in found]) if counted else _mixed(found), basis)
    if whole is None:
        return None
    if len({a.gamma for _, a in found}) > 1:
        whole = replace(
            whole, gamma=None, alpha=None, survival=(), lengths={}, no_alpha=SEVERAL, given=()
        )
    return replace(
        whole,
        source=source,
        remarks=tuple(dict.fromkeys(m for _, a in found for m in a.remarks)),
        untrusted=any(a.untrusted for _, a in found),
    )


def _mixed(found: Sequence[tuple[Run, Acceptance]]) -> Run:
    """One run with the length of all, weighted by their output tokens where each has them."""
    weights = [float(r.output_tokens or 0) for r, _ in found]
    weights = weights if all(weights) else [1.0] * len(found)
    tau = mixing.mixed_tau([a.tau.value for _, a in found], weights)
    bare = dict.fromkeys((*_COUNTS[:3], "accepted_per_position", "histogram", "accept_rate"))
    return replace(found[0][0], accept_length=tau, **bare)  # type: ignore[arg-type]


_COUNTS = ("drafts", "draft_tokens", "accepted_tokens", "output_tokens")


def _summed(runs: Sequence[Run]) -> Run:
    """One run with the counts of all; what was stated beside them is left out."""
    if len(runs) == 1:
        return runs[0]
    totals: dict[str, int | None] = {}
    for name in _COUNTS:
        values = [getattr(r, name) for r in runs]
        totals[name] = None if None in values else sum(values)
    positions = [r.accepted_per_position or () for r in runs]
    most = max(map(len, positions))
    padded = [(*p, *(0,) * (most - len(p))) for p in positions]
    summed = tuple(sum(column) for column in zip(*padded, strict=True)) if all(positions) else None
    return replace(
        runs[0],
        accepted_per_position=summed,
        histogram=None,
        accept_length=None,
        accept_rate=None,
        **totals,  # type: ignore[arg-type]
    )


def series(found: Sequence[Group]) -> Mapping[str, tuple[Group, ...]]:
    """Groups that differ by domain alone, by label: their traffic can be mixed."""
    by_place: dict[Place, list[Group]] = {}
    for group in found:
        by_place.setdefault(group.place.without("domain"), []).append(group)
    varying = [f for f in _FIELDS if f != "domain" and len({getattr(p, f) for p in by_place}) > 1]
    return {_label(place, varying): tuple(members) for place, members in by_place.items()}


def sweeps(found: Sequence[Group]) -> Mapping[str, Acceptance]:
    """Lengths over K of one method where all else agrees, by label: a server for each gamma.

    The single alpha is the one read at the longest.
    """
    by_place: dict[tuple[str, Place], list[Group]] = {}
    for group in found:
        if group.acceptance.method and group.acceptance.gamma:
            key = (group.acceptance.method, group.place.without("arm"))
            by_place.setdefault(key, []).append(group)
    made = {}
    varying = [f for f in _FIELDS if len({getattr(p, f) for _, p in by_place}) > 1]
    for (method, place), members in by_place.items():
        lengths = {g.acceptance.gamma or 0: g.acceptance.tau.value for g in members}
        if len(lengths) > 1:
            label = _label(replace(place, arm=f"{method} over γ"), varying)
            ks = ", ".join(map(str, sorted(lengths)))
            source, basis = f"{label}: lengths at γ = {ks}", members[0].acceptance.basis
            made[label] = of_lengths(lengths, max(lengths), source, method, basis)
    return made


def depends_on_load(found: Sequence[Group]) -> tuple[str, ...]:
    """Where accepted over drafted at equal gamma drops by over 0.2 between loads: engine trouble.

    Rates at equal gamma are compared, for alpha moves less than they do.
    """
    said = []
    by_place: dict[Place, list[Group]] = {}
    for group in found:
        by_place.setdefault(group.place.without("load"), []).append(group)
    for members in by_place.values():
        rated = [(g, r) for g in members if (r := g.acceptance.rate) is not None]
        pairs = [
            (a, b, ra - rb)
            for (a, ra), (b, rb) in combinations(rated, 2)
            if a.acceptance.gamma == b.acceptance.gamma
        ]
        if not pairs:
            continue
        a, b, drop = max(pairs, key=lambda p: abs(p[2]))
        if abs(drop) > RATE_DROPS:
            said.append(
                f"accepted over drafted differs by {abs(drop):.2f} between {a.place.load} and "
                f"{b.place.load} ({a.place.arm}): acceptance should not depend on batch; check "
                "the engine"
            )
    return tuple(said)


def drafted_share(group: Group) -> mixing.Coverage | None:
    """How much of the output came from rounds that drafted; None where it is not counted."""
    found, tokens = group.acceptance, group.output_tokens
    counted = all(r.drafts for r in group.runs)
    if not counted or not tokens or found.rounds is None or found.tokens is None:
        return None
    accepted = found.tokens - found.rounds
    if tokens <= accepted or found.tokens > tokens * 1.01:
        return None
    return mixing.coverage(found.rounds, accepted, tokens)


def _mean(values: Sequence[float | None]) -> float | None:
    stated = [v for v in values if v is not None]
    return sum(stated) / len(stated) if stated else None
