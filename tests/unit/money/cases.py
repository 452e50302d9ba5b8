"""Studies of one pair and their case, for what money makes of it."""

from lib.evidence.findings import find
from lib.money.case import Case, case_of
from lib.money.pricing import Rate, price_pairs
from lib.run import LoadKind, Run, SpecState, Study

PAID = Rate(usd_per_gpu_hour=2.0, gpu_count=1, utilization=1.0)


def run(name: str, tps: float, k: int | None = None, load: float = 8, **fields: object) -> Run:
    """A run of off, or of eagle3 with draft length k."""
    spec: dict[str, object] = {"spec_state": SpecState.OFF}
    if k is not None:
        spec = {
            "spec_state": SpecState.ON,
            "draft_method": "eagle3",
            "num_speculative_tokens": k,
        }
    return Run(
        run_id=name,
        load_kind=LoadKind.CONCURRENCY,
        offered_load=load,
        output_tps=tps,
        **{**spec, **fields},  # type: ignore[arg-type]
    )


def case(
    off: list[float], on: list[float], rate: Rate = PAID, k: int = 4, **fields: object
) -> Case:
    """The case of repeated runs at these tok/s; `fields` are of the runs with speculation."""
    runs = [run(f"off {i}", v, repeat=i) for i, v in enumerate(off)]
    runs += [run(f"on {i}", v, k, repeat=i, **fields) for i, v in enumerate(on)]
    return case_of_runs(runs, rate)


def case_of_runs(runs: list[Run], rate: Rate = PAID) -> Case:
    """The case of the only pair of these runs."""
    found = find(Study("s", tuple(runs)))
    (pair,) = price_pairs(found, found.arms[0], rate)
    made = case_of(found.arms[0], pair, rate)
    assert made is not None
    return made
