"""No run that can be built breaks a check, however odd its numbers are."""

from contextlib import suppress
from dataclasses import fields
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lib.errors import InputError, NotComparable
from lib.evidence.pairing import compare
from lib.results import checks, study_checks
from lib.results.findings import LARGEST_COUNT
from lib.run import LoadKind, Run, SpecState, Study

unhurried = settings(deadline=None, suppress_health_check=list(HealthCheck))
COUNTS = st.one_of(st.sampled_from([0, 1, 2, 500, LARGEST_COUNT]), st.integers(0, LARGEST_COUNT))
NUMBERS = st.one_of(
    st.sampled_from([0.0, 5e-324, 1e-300, 0.5, 1.0, 100.0, float(LARGEST_COUNT)]),
    st.floats(0, float(LARGEST_COUNT)),
)
SPECIAL: dict[str, st.SearchStrategy[Any]] = {
    "spec_state": st.sampled_from(list(SpecState)),
    "load_kind": st.sampled_from([*LoadKind, None]),
    "offered_load": st.sampled_from([None, 5e-324, 1.0, 4.0, 64.0, float("inf")]),
    "achieved_load": st.one_of(st.none(), NUMBERS, st.just(float("inf"))),
    "accepted_per_position": st.one_of(st.none(), st.lists(COUNTS, max_size=4).map(tuple)),
    "token_count": st.sampled_from([None, "server", "client"]),
    "dataset": st.sampled_from([None, "random", "chat"]),
    "extra": st.sampled_from([None, "", "incomplete", '{"incomplete":3}', '{"incomplete":[]}']),
    "draft_method": st.sampled_from([None, "eagle3"]),
}


def _strategy(name: str, kind: str) -> st.SearchStrategy[Any] | None:
    if name in SPECIAL:
        return SPECIAL[name]
    if kind.startswith("int"):
        return st.one_of(st.none(), COUNTS)
    return st.one_of(st.none(), NUMBERS) if kind.startswith("float") else None


def _kind(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


FIELDS = {f.name: s for f in fields(Run) if (s := _strategy(f.name, _kind(f.type))) is not None}
RUNS = st.fixed_dictionaries({}, optional=FIELDS)


@unhurried
@given(st.lists(RUNS, min_size=1, max_size=6))
def test_no_run_breaks_a_check(values: list[dict[str, Any]]) -> None:
    runs = tuple(Run(run_id=f"r{n}", **v) for n, v in enumerate(values))
    for flag in (*(f for r in runs for f in checks.inspect(r)), *study_checks.inspect(runs)):
        assert flag.severity in checks.CODES[flag.code].severities
        assert "\n" not in flag.message
        assert "nan" not in flag.message.split()
    for run in runs:
        said = {
            s: [f.message for f in checks.inspect(run) if f.severity == s]
            for s in ("blocks pricing", "blocks pairing")
        }
        assert checks.blocks_pricing(run) == next(iter(said["blocks pricing"]), "")
        assert checks.blocks_pairing(run) == next(iter(said["blocks pairing"]), "")
        checks.blocks_latency(run)
    study_checks.repeats(runs)
    with suppress(NotComparable, InputError):
        compare(Study("fuzzed", runs))
