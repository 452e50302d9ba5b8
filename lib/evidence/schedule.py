"""The batch-size schedule: which K to draft at which batch, from the measured arms.

Off competes as K = 0 less the tax that a server which never drafts was measured to pay, and at no
tax where none was. A schedule stays a hypothesis until it has been measured as its own arm.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lib.errors import InputError, NotComparable
from lib.evidence import schedule_notes as notes
from lib.evidence.best_k import Grid, choose, curves, grid_of, taxes
from lib.evidence.competing import competing
from lib.evidence.engine_schedule import Check, Range, check, config, vllm_flag
from lib.evidence.engine_support import RUNNERS
from lib.evidence.goodput import with_goodput
from lib.evidence.pairing import Comparison
from lib.evidence.ratio import METRICS
from lib.evidence.schedule_notes import WORTH_A_SCHEDULE
from lib.evidence.tiers import BestFixed, Tier, best_fixed_of, tiers_of, to_the_ends
from lib.run import NEEDS_CONSENT, RANDOM_TOKENS, Run, Slo, distinct, drafts_on_random_tokens

__all__ = [
    "OBJECTIVES",
    "TAILS",
    "WORTH_A_SCHEDULE",
    "Check",
    "Schedule",
    "Tier",
    "build",
    "check",
    "speculative_config",
    "vllm_flag",
]

OBJECTIVES = {"throughput": "output_tps", "tpot": "tpot_ms", "goodput": "goodput_rps"}
LARGEST_BATCH = 65_536
TAILS = ("off", "carry")


@dataclass(frozen=True)
class Schedule:
    """What to run at each batch; `tiers` end at the highest load while the tail is open.

    `ranges` is what the engine takes, None where a fixed K (`fixed_k`, 0 is no speculation) does
    the same or the tail is undecided. `best_fixed_k` is the one K that stays closest to the
    schedule within the measured loads, `gain_over_fixed` the schedule's largest gain over it, as a
    fraction, K = 0 counted at no tax where none was measured; `measured_gain_over_fixed` leaves
    those batches out. `blocked_export` says why the engine would not run the ranges. Where there
    are none, the first of `warnings` says what to do instead. `derived` says that some batch is
    not the offered load itself. `engine_notes` are those of the warnings that are about vLLM. The
    names are those of the arms behind it, None where not recorded.
    """

    tiers: tuple[Tier, ...]
    ranges: tuple[Range, ...] | None
    num_speculative_tokens: int
    tail_unmeasured: tuple[int, int] | None
    warnings: tuple[str, ...]
    fixed_k: int | None
    best_fixed_k: int
    gain_over_fixed: float
    blocked_export: str | None = None
    measured_gain_over_fixed: float = 0.0
    objective: str = "throughput"
    max_num_seqs: int = 0
    derived: bool = False
    method: str | None = None
    draft_model: str | None = None
    target: str | None = None
    engine: str | None = None
    engine_notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.ranges is not None and self.fixed_k is not None:
            raise InputError("schedule: ranges or a fixed K, not both")

    @property
    def keep_fixed(self) -> bool:
        """Whether a fixed K comes within 2 % of the schedule at every measured batch."""
        return self.gain_over_fixed < WORTH_A_SCHEDULE


def build(
    comparison: Comparison,
    max_num_seqs: int,
    objective: str = "throughput",
    tail: str | None = None,
    noise_ties: bool = True,
    method: str | None = None,
    protocol: str | None = None,
    slo: Slo | None = None,
    good_rps: Mapping[str, float] | None = None,
    runner: str | None = None,
    accept_random: bool = False,
) -> Schedule:
    """The schedule for one server with `max_num_seqs` sequences.

    Each arm's mean log objective (`throughput`: output tok/s, `tpot`: mean TPOT, `goodput`: good
    requests per second at `slo`) is a straight line over log2 batch between measured loads; at
    every integer batch the smallest K within max(1 %, half-width of the pair's 95 % log-ratio
    interval) of the best is taken (1 % alone without `noise_ties`, or where either arm has one
    run). `tail` decides the batches above the highest load where off does not win there: `off` or
    `carry`. `method` and `protocol` choose where the arms have several. `good_rps` are counted
    good requests per second by run id; without them the percentiles decide. `runner` is vLLM's
    model runner, V1 or V2, where it is known. `accept_random` is a person's consent to arms that
    were measured on random tokens.

    Raises InputError for an argument outside its range, NotComparable where the arms allow no
    schedule.
    """
    _require(max_num_seqs, objective, tail, runner)
    metric = METRICS[OBJECTIVES[objective]]
    how = []
    if objective == "goodput":
        comparison, said = with_goodput(comparison, slo, good_rps or {})
        how.append(said)
    used, left_out = competing(comparison, metric, method, protocol)
    runs = [r for a in used for c in a.cells for r in c.on]
    if drafts_on_random_tokens(runs) and not accept_random:
        raise NotComparable(f"schedule: {NEEDS_CONSENT}")
    arms, batches = curves(used, metric)
    tax = taxes(comparison, used, metric)
    grid = grid_of(arms, max_num_seqs, noise_ties, tax)
    choice, reduced_from = choose(grid)
    best = best_fixed_of(grid, choice)
    inside = tiers_of(grid, choice, best.index, tax)
    if reduced_from:
        how.append(f"{reduced_from} ranges became {len(inside)} that lose under 1 %.")
    how += notes.no_gain(inside)
    tiers = to_the_ends(inside, max_num_seqs, tail)
    warnings = [*notes.unmeasured(tiers, grid, max_num_seqs), *left_out, *batches, *how]
    found = _schedule(tiers, best, grid, max_num_seqs, runs, warnings, tax, runner)
    return replace(found, objective=objective, derived=bool(batches))


def _require(max_num_seqs: int, objective: str, tail: str | None, runner: str | None) -> None:
    if isinstance(max_num_seqs, bool) or not isinstance(max_num_seqs, int) or max_num_seqs < 1:
        raise InputError(f"max_num_seqs = {max_num_seqs!r}: a whole number of at least 1")
    if max_num_seqs > LARGEST_BATCH:
        raise InputError(f"max_num_seqs = {max_num_seqs}: at most {LARGEST_BATCH:,}")
    if objective not in OBJECTIVES:
        raise InputError(f"objective {objective!r}: one of {', '.join(OBJECTIVES)}")
    if tail is not None and tail not in TAILS:
        raise InputError(f"tail {tail!r}: {' or '.join(TAILS)}, or none")
    if runner is not None and runner not in RUNNERS:
        raise InputError(f"runner {runner!r}: {' or '.join(RUNNERS)}, or none")


def speculative_config(
    schedule: Schedule, method: str, draft_model: str | None
) -> dict[str, object]:
    """vLLM's speculative_config for a schedule or its fixed K; empty where K = 0 everywhere.

    Raises InputError while the tail is undecided or where the engine would drop the ranges.
    """
    if schedule.blocked_export is not None:
        raise InputError(schedule.blocked_export)
    if schedule.fixed_k is not None:
        return config(method, draft_model, schedule.fixed_k)
    if schedule.ranges is None:
        raise InputError("schedule: the tail is undecided; choose tail off or carry")
    return config(method, draft_model, schedule.num_speculative_tokens, schedule.ranges)


def _schedule(
    tiers: Sequence[Tier],
    best: BestFixed,
    grid: Grid,
    max_num_seqs: int,
    runs: Sequence[Run],
    warnings: Sequence[str],
    log_taxes: Mapping[float, float],
    runner: str | None,
) -> Schedule:
    decided = tiers[-1].last == max_num_seqs
    largest = max(t.k for t in tiers)
    highest = int(grid.batches[-1])
    blocked = notes.data_parallel(runs, largest, best.k) if len(tiers) > 1 else None
    said = [*notes.advice(tiers, (best.k, best.gain), decided, grid, runs), *warnings]
    if drafts_on_random_tokens(runs):
        said.append(f"Measured on {RANDOM_TOKENS}: repeat it on your own prompts first.")
    engine_notes: tuple[str, ...] = ()
    if len(tiers) > 1:
        engine_notes = (*notes.engine(runs, tiers, runner), *([blocked] if blocked else []))
        said += [*notes.hypothesis(tiers, highest, log_taxes), *engine_notes]
    return Schedule(
        tiers=tuple(tiers),
        ranges=tuple((t.first, t.last, t.k) for t in tiers) if decided and len(tiers) > 1 else None,
        num_speculative_tokens=largest,
        tail_unmeasured=(highest + 1, max_num_seqs) if max_num_seqs > highest else None,
        warnings=tuple(said),
        fixed_k=largest if decided and len(tiers) == 1 else None,
        best_fixed_k=best.k,
        gain_over_fixed=best.gain,
        measured_gain_over_fixed=best.measured_gain,
        blocked_export=blocked,
        max_num_seqs=max_num_seqs,
        method=notes.method_of(runs),
        draft_model=notes.draft_model_of(runs),
        target=next(iter(distinct(r.target for r in runs)), None),
        engine=next(iter(distinct(r.engine for r in runs)), None),
        engine_notes=engine_notes,
    )
