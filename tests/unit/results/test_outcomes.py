import math

import pytest

from lib.results import outcomes

FIELDS = {"run_id": "r", "output_tps": 0.0, "ttft_ms_p50": 0.0, "duration_s": 2.0, "failed": 3}


def test_zeros_without_a_completed_request_are_left_empty() -> None:
    kept, flags = outcomes.of_completed({**FIELDS, "completed": 0})
    assert kept == {"run_id": "r", "duration_s": 2.0, "failed": 3, "completed": 0}
    assert [(f.code, f.severity, f.run_id) for f in flags] == [("nothing_completed", "warns", "r")]


@pytest.mark.parametrize("completed", [None, 1])
def test_other_runs_are_untouched(completed: int | None) -> None:
    fields = {**FIELDS, "completed": completed}
    assert outcomes.of_completed(fields) == (fields, [])


@pytest.mark.parametrize(
    ("mean", "completed", "total"),
    [
        (48.0, 20, 960),
        (33.3, 3, 100),
        (48.0, None, None),
        (-1.0, 3, None),
        (1e308, 10, None),
        (math.inf, 0, None),
    ],
)
def test_a_total_from_a_mean(mean: float, completed: int | None, total: int | None) -> None:
    assert outcomes.product(mean, completed) == total
