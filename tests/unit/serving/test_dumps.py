"""Two text dumps of one server to the window between them."""

import pytest

from lib.errors import InputError, UnreadableFile
from lib.serving.dumps import window_of
from tests.unit.serving.metrics_standin import vllm

FIRST = vllm(100, 400, 200, 1000, 5, (80, 60, 40, 20)).encode()
LATER = vllm(300, 1200, 700, 1900, 9, (230, 190, 160, 120), running=7).encode()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_earlier_one_is_told_by_its_counters(order: tuple[int, int]) -> None:
    dumps = [("a.txt", FIRST), ("b.txt", LATER)]
    found = window_of([dumps[at] for at in order], 10.0)
    assert found.restarts == 0
    assert found.tau == pytest.approx(1 + 500 / 200)
    assert found.output_tps == pytest.approx(90)


def test_a_fall_either_way_is_a_restart_in_the_order_given() -> None:
    fallen = vllm(50, 200, 150, 3000, 2, (50, 40, 40, 20)).encode()
    found = window_of([("a.txt", FIRST), ("b.txt", fallen)], 10.0)
    assert found.restarts == 1
    assert found.counters.drafts == 50


def test_what_cannot_be_is_refused_in_one_line() -> None:
    with pytest.raises(InputError, match="two are needed"):
        window_of([("a.txt", FIRST)], 10.0)
    with pytest.raises(InputError, match="a number above 0"):
        window_of([("a.txt", FIRST), ("b.txt", LATER)], 0.0)
    with pytest.raises(UnreadableFile, match="no speculation metrics found"):
        window_of([("a.txt", b"up 1\n"), ("b.txt", LATER)], 10.0)
