"""Quality flags of a set of runs: what they say about each other that none says alone."""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from statistics import fmean

from lib.results.acceptance_checks import acceptance_rate, tokens_per_round
from lib.results.checks import blocks_pairing, blocks_pricing
from lib.results.findings import Flag, shorten
from lib.results.flag_codes import flag
from lib.run import OFF, LoadKind, Run

Pair = tuple[list[Run], list[Run]]  # off and one arm, at one load

# Mean lengths within 2 % of the longer are equal; to 10 % the difference is noted.
LENGTH_EQUAL, LENGTH_NOTED = 0.02 + 1e-9, 0.10 + 1e-9
PROTOCOL = {
    "target_quantization": "quantisation",
    "temperature": "temperature",
    "build": "build",
    "prefix_caching": "prefix caching",
}
# One arm under one protocol: what may differ along it is the load alone.
WORKLOAD = ("target", "dataset", "domain", "tool")
ALIKE = (
    *WORKLOAD,
    *("target_revision", "temperature", "top_p", "tool_version", "engine", "engine_version"),
    *("target_quantization", "build", "prefix_caching", "gpu", "gpu_count", "tensor_parallel"),
)
RATE_DROP = 0.2
TAU_MARGIN = 1.02
# On one run each, arms within 1 % of the better one are tied, within 5 % launches may do it.
NOISE = (0.01, 0.05)


def inspect(runs: Sequence[Run]) -> tuple[Flag, ...]:
    """The flags of the runs of one study, each about the first run that it names."""
    twice = copies(runs)
    own = [r for r in runs if r.run_id not in twice and r.arm and r.load_kind and r.offered_load]
    usable = [r for r in own if r.completed != 0 and not blocks_pairing(r)]
    loose, strict = (list(_pairs(usable, names)) for names in (WORKLOAD, ALIKE))
    return (
        *_twice(runs, twice),
        *_lengths(loose),
        *_protocol(loose),
        *_above_tau(strict),
        *_by_batch(usable),
        *_within_noise(strict),
    )


def within(share: float, log_ratio: float) -> bool:
    """Whether the worse of two arms is at most that share below the better one."""
    return abs(log_ratio) <= -math.log1p(-share) + 1e-9


def copies(runs: Iterable[Run]) -> dict[str, str]:
    """Runs that are another under a second id, by id: same start, duration and token counts."""
    first: dict[Hashable, str] = {}
    found = {}
    for run in runs:
        if run.started_at is None or run.duration_s is None or run.output_tokens is None:
            continue
        counts = (run.input_tokens, run.output_tokens, run.completed)
        key = (run.started_at, run.duration_s, *counts)
        original = first.setdefault(key, run.run_id)
        if original != run.run_id:
            found[run.run_id] = original
    return found


def repeats(runs: Sequence[Run]) -> int:
    """The most runs of one arm at one load under one protocol, copies counted once."""
    twice = copies(runs)
    own = [r for r in runs if r.run_id not in twice and r.arm is not None]
    groups = _grouped(own, lambda r: (r.arm, _at(r), *_alike(r)))
    return max((len(group) for group in groups.values()), default=0)


def _twice(runs: Sequence[Run], twice: dict[str, str]) -> Iterator[Flag]:
    for run in runs:
        if run.run_id in twice:
            text = (
                f"the same run as {twice[run.run_id]}: start, duration ({run.duration_s:.6g} s) "
                f"and {run.output_tokens} output tokens agree; a copy is no repeat"
            )
            yield flag("same_run_twice", text, run)


def _lengths(pairs: Sequence[Pair]) -> Iterator[Flag]:
    """One flag an arm and length for the noted loads, one for the refused ones."""
    for name in ("input_len", "output_len"):
        found: dict[tuple[str | None, bool], list[tuple[float, float, float, Run]]] = {}
        for off, on in pairs:
            gap, a, b = _length_gap(*(_stated_lengths(side, name) for side in (off, on)))
            if gap > LENGTH_EQUAL:
                found.setdefault((on[0].arm, gap > LENGTH_NOTED), []).append((gap, a, b, on[0]))
        for (arm, refused), each in found.items():
            gap, a, b, run = max(each, key=lambda x: x[0])
            text = (
                f"{name} differs by {gap:.1%}: off {a:.6g}, {arm} {b:.6g} at "
                f"{_loads(r for *_, r in each)}: {'not paired' if refused else 'noted'}"
            )
            yield flag("lengths_differ", text, run, "blocks pairing" if refused else "warns")


def _stated_lengths(runs: Sequence[Run], name: str) -> list[float]:
    """The mean over repeats; lengths too far apart for repeats stand on their own."""
    values = [v for r in runs if (v := getattr(r, name))]
    if values and _gap(min(values), max(values)) <= LENGTH_NOTED:
        return [fmean(values)]
    return values


def _length_gap(off: Sequence[float], on: Sequence[float]) -> tuple[float, float, float]:
    """The length of the arm that is farthest from the nearest of off: gap, off, on."""
    nearest = ((min((_gap(a, b), a) for a in off), b) for b in on if off)
    return max(((gap, a, b) for (gap, a), b in nearest), default=(0.0, 0.0, 0.0))


def _gap(a: float, b: float) -> float:
    return 1 - min(a, b) / max(a, b)


def _protocol(pairs: Sequence[Pair]) -> Iterator[Flag]:
    for name, spoken in PROTOCOL.items():
        found: dict[tuple[str | None, str, str], list[Run]] = {}
        for off, on in pairs:
            known = {getattr(r, name) for r in off} - {None}
            other = [
                r for r in on if getattr(r, name) is not None and getattr(r, name) not in known
            ]
            if known and other:
                key = (on[0].arm, _say(known), _say({getattr(other[0], name)}))
                found.setdefault(key, []).append(other[0])
        for (arm, a, b), where in found.items():
            text = f"{spoken} differs: off {a}, {arm} {b} at {_loads(where)}: not paired"
            yield flag("protocol_differs", text, where[0])


def _say(values: Iterable[object]) -> str:
    words = {True: "yes", False: "no"}
    said = (
        words[v] if isinstance(v, bool) else f"{v:g}" if isinstance(v, float) else v for v in values
    )
    return shorten(sorted(str(v) for v in said))


def _above_tau(pairs: Sequence[Pair]) -> Iterator[Flag]:
    for off, on in pairs:
        sides = _throughputs(off, on)
        taus = [t for r in on if (t := tokens_per_round(r)) is not None]
        if sides is None or not taus:
            continue
        ratio, tau = fmean(sides[1]) / fmean(sides[0]), fmean(taus)
        if ratio > tau * TAU_MARGIN:
            text = (
                f"{on[0].arm} at {_loads(on)}: throughput is {ratio:.2f} times that of off, but a "
                f"round makes {tau:.2f} tokens: not possible; check that the arms are alike"
            )
            yield flag("speedup_above_tau", text, on[0])


def _by_batch(runs: Sequence[Run]) -> Iterator[Flag]:
    """Rates of one arm at equal K, the highest at a smaller batch against the lowest above it."""
    on = [r for r in runs if r.arm != OFF and r.load_kind is not LoadKind.REQUEST_RATE]
    on = [r for r in on if r.schedule is None and (r.draft_topk or 1) == 1]
    for group in _grouped(on, lambda r: (r.arm, r.load_kind, *_alike(r))).values():
        rates: dict[float, list[float]] = {}
        for run in group:
            if run.offered_load is not None and (rate := acceptance_rate(run)) is not None:
                rates.setdefault(run.offered_load, []).append(rate)
        means = sorted((load, fmean(values)) for load, values in rates.items())
        drops = [(a - b, x, a, y, b) for x, a in means for y, b in means if x < y]
        if not drops or (worst := max(drops))[0] <= RATE_DROP:
            continue
        _, x, a, y, b = worst
        text = (
            f"{group[0].arm}: acceptance falls from {a:.3f} at {x:g} to {b:.3f} at {y:g} at equal "
            "K; it should not depend on batch: check the engine"
        )
        yield flag("acceptance_by_batch", text, next(r for r in group if r.offered_load == y))


def _within_noise(pairs: Sequence[Pair]) -> Iterator[Flag]:
    found: dict[str | None, list[tuple[float, Run]]] = {}
    for off, on in pairs:
        sides = _throughputs(off, on) if len(off) == len(on) == 1 else None
        if sides is None or on[0].output_tps_sd is not None:
            continue
        ratio = sides[1][0] / sides[0][0]
        if within(NOISE[1], math.log(ratio)) and not within(NOISE[0], math.log(ratio)):
            found.setdefault(on[0].arm, []).append((ratio, on[0]))
    for arm, near in found.items():
        text = (
            f"{arm} at {_loads(r for _, r in near)}: {near[0][0]:.3g} times off on one run each is "
            "within noise: launches differ by up to 5 % on the ratio; 3 launches an arm decide"
        )
        yield flag("within_noise", text, near[0][1])


def _pairs(runs: Sequence[Run], names: Sequence[str]) -> Iterator[Pair]:
    """Off and each arm at every load of both; of the named fields none is stated otherwise."""
    off_at = _grouped((r for r in runs if r.arm == OFF), _at)

    def alike(run: Run) -> Hashable:
        return run.arm, run.draft_model, _at(run), *(getattr(run, n) for n in names)

    for on in _grouped((r for r in runs if r.arm != OFF), alike).values():
        off = [r for r in off_at.get(_at(on[0]), ()) if _agree(r, on[0], names)]
        if off:
            yield off, on


def _agree(off: Run, on: Run, names: Sequence[str]) -> bool:
    stated = ((getattr(off, n), getattr(on, n)) for n in names)
    return all(a is None or b is None or a == b for a, b in stated)


def _throughputs(off: Sequence[Run], on: Sequence[Run]) -> tuple[list[float], list[float]] | None:
    """tok/s of both sides as far as they stand; None where a side has none, or lengths differ."""
    lengths = (_stated_lengths(side, "output_len") for side in (off, on))
    if _length_gap(*lengths)[0] > LENGTH_NOTED:
        return None
    a, b = (
        [r.output_tps for r in side if r.output_tps and not blocks_pricing(r)] for side in (off, on)
    )
    return (a, b) if a and b else None


def _at(run: Run) -> Hashable:
    return run.load_kind, run.offered_load


def _alike(run: Run) -> tuple[Hashable, ...]:
    """What repeats share: the protocol, the drafter, and the inputs' length to about a half."""
    context = round(math.log2(run.input_len)) if run.input_len else None
    return context, run.draft_model, *(getattr(run, name) for name in ALIKE)


def _loads(runs: Iterable[Run]) -> str:
    return ", ".join(f"{x:g}" for x in dict.fromkeys(r.offered_load or 0 for r in runs))


def _grouped(runs: Iterable[Run], key: Callable[[Run], Hashable]) -> dict[Hashable, list[Run]]:
    groups: dict[Hashable, list[Run]] = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return groups
