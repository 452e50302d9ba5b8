"""Two builds of one arm: which groups pair, and whether their speed changed."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lib.evidence.acceptance_groups import groups
from lib.evidence.builds import rebuilt, speed_changed
from lib.report.round_text import build_noise, build_title
from lib.report.split_text import split_lines
from lib.run import LoadKind, Run, SpecState, Study

# GB10, Gemma MTP, K = 3, 200 tokens (llama.cpp#26750).
A = Run(
    run_id="a",
    spec_state=SpecState.ON,
    draft_method="mtp",
    num_speculative_tokens=3,
    build="A",
    load_kind=LoadKind.CONCURRENCY,
    offered_load=1,
    drafts=68,
    draft_tokens=198,
    accepted_tokens=132,
    output_tps=69.23,
)
B = replace(A, run_id="b", build="B", drafts=79, draft_tokens=231, accepted_tokens=121)
B = replace(B, output_tps=57.67)


def pairs(*runs: Run) -> tuple[tuple[str, str], ...]:
    found = rebuilt(groups(Study("s", runs)))
    return tuple((a.place.build, b.place.build) for a, b in found)


def test_c27_the_loss_between_two_builds_is_mostly_acceptance() -> None:
    """C27."""
    ((first, second),) = rebuilt(groups(Study("s", (B, A))))
    assert build_title(first, second) == "mtp:3 at 1 concurrent: A → B"
    assert split_lines(first, second) == [
        "τ 2.941 → 2.532 (−13.9 %), tok/s −16.7 %, step time +3.3 %.",
        "82 % of the loss is acceptance, the rest step time.",
    ]
    assert "3 runs of each build are needed" in build_noise(first, second)


def test_c27_b200_by_tpot() -> None:
    """C27: 10.28 % and 49.38 % of two drafts, TPOT 7.98 and 5.15 ms."""
    plain = dict.fromkeys(("drafts", "draft_tokens", "accepted_tokens", "output_tps"))
    one = replace(A, num_speculative_tokens=2, accept_rate=0.1028, tpot_ms_mean=7.98, **plain)
    two = replace(one, run_id="b", build="B", accept_rate=0.4938, tpot_ms_mean=5.15)
    ((first, second),) = rebuilt(groups(Study("s", (one, two))))
    assert split_lines(first, second)[0] == (
        "τ 1.206 → 1.988 (+64.9 %), speed by TPOT +55.0 %, step time +6.4 %."
    )


def test_the_earlier_build_comes_first() -> None:
    old, new = (datetime(2026, month, 1, tzinfo=UTC) for month in (1, 2))
    assert pairs(A, B) == (("A", "B"),)
    assert pairs(replace(A, started_at=new), replace(B, started_at=old)) == (("B", "A"),)
    third = replace(A, run_id="c", build="C")
    assert pairs(A, B, third) == (("A", "B"), ("B", "C"))


@pytest.mark.parametrize(
    "other",
    [
        {"build": "A"},
        {"build": None},
        {"offered_load": 8.0},
        {"num_speculative_tokens": 2},
        {"gpu": "H100"},
        {"max_num_seqs": 64},
    ],
)
def test_what_differs_in_more_than_the_build_is_no_pair(other: dict[str, object]) -> None:
    assert pairs(A, replace(B, **other)) == ()  # type: ignore[arg-type]


def test_repeats_say_whether_speed_changed() -> None:
    def repeated(run: Run, *speeds: float) -> list[Run]:
        return [replace(run, run_id=f"{run.run_id}{i}", output_tps=s) for i, s in enumerate(speeds)]

    def judged(a: list[Run], b: list[Run]) -> tuple[bool | None, str]:
        ((first, second),) = rebuilt(groups(Study("s", (*a, *b))))
        return speed_changed(first, second), build_noise(first, second)

    a = repeated(A, 69.0, 69.3, 69.4)
    assert judged(a, repeated(B, 57.5, 57.7, 57.9)) == (True, "")
    same, said = judged(a, repeated(B, 60.0, 69.0, 78.0))
    assert same is False
    assert "within the noise" in said
    assert judged(a, [B])[0] is None
