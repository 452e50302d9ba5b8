"""Blocks and rounds on a device whose clock and work are made up."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest

from lib.errors import ProbeError
from lib.probe import ratios, timing
from lib.probe.setup import Setup
from lib.probe.timing import Hooks, Progress
from tests.unit.probe.made_up import Queue


def setup(**changes: object) -> Setup:
    return Setup(**{"target": "t", "draft": "d", "gamma": 1, **changes})  # type: ignore[arg-type]


def measured(
    queue: Queue,
    draft_ms: float = 0.2,
    target_ms: Callable[[int], float] = lambda n: 2.0,
    *,
    most_tokens: int = 1024,
    seconds: float = 1e6,
    hooks: Hooks | None = None,
    **changes: object,
) -> timing.Samples:
    return timing.measure(
        queue,
        queue.work("draft", draft_ms),
        lambda n: queue.work(f"target {n}", target_ms(n)),
        setup(**changes),
        most_tokens=most_tokens,
        deadline_s=seconds,
        hooks=hooks or Hooks(now_s=queue.now_s),
    )


@pytest.mark.parametrize(("true_ms", "repeats"), [(1.36, 8), (1.36, 1), (1.29, 100)])
def test_a_time_is_the_work_and_not_its_launch(true_ms: float, repeats: int) -> None:
    # RTX 4090: MatMul 0.03 without and 1.36 ms with a wait, Concat 0.02 and 1.29.
    queue = Queue()
    assert timing.block_ms(queue, queue.work("matmul", true_ms), repeats) == pytest.approx(true_ms)


def test_c_is_of_the_work_where_launches_take_the_same() -> None:
    found = ratios.figures(measured(Queue(), draft_ms=0.136, target_ms=lambda n: 1.36))
    assert found.c.value == pytest.approx(0.1)


def test_times_come_from_waiting_only() -> None:
    # What timing.py knows of a device: marks have no value, and `wait` is the only answer.
    tree = ast.parse(textwrap.dedent(inspect.getsource(timing.Device)))
    methods = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    returns = {m.name: ast.unparse(m.returns) for m in methods if m.returns}
    assert returns == {"mark": "None", "wait": "Sequence[float]", "flush": "None"}


def test_flushes_are_before_every_step_and_not_timed() -> None:
    queue = Queue()
    assert timing.block_ms(queue, queue.work("draft", 0.5), 4) == pytest.approx(0.5)
    assert queue.launched == ["flush", "draft"] * 4


def test_a_block_waits_once() -> None:
    class Counting(Queue):
        waits = 0

        def wait(self) -> Sequence[float]:
            self.waits += 1
            return super().wait()

    queue = Counting()
    timing.block_ms(queue, queue.work("step", 1.0), 50)
    assert queue.waits == 1


def test_a_clock_that_stands_still_gives_no_time() -> None:
    queue = Queue()
    with pytest.raises(ProbeError, match="did not move"):
        timing.block_ms(queue, lambda: None, 3)


def test_a_device_that_loses_marks_gives_no_time() -> None:
    class Lossy(Queue):
        def wait(self) -> Sequence[float]:
            return super().wait()[1:]

    queue = Lossy()
    with pytest.raises(ProbeError, match="lost marks"):
        timing.block_ms(queue, queue.work("step", 1.0), 2)


def test_blocks_last_ten_ms_and_steps_are_warmed_up() -> None:
    queue = Queue()
    found = measured(queue, draft_ms=0.25, target_ms=lambda n: 25.0 * n)
    assert len(found.draft_ms) == len(found.target_ms) == len(found.verify_ms[2]) == 50
    assert queue.launched[:10] == ["target 1"] * 10
    drafts = queue.launched.count("draft")
    assert drafts == timing.WARM_UPS + 3 + 40 * (timing.PILOTS + 50)
    assert queue.launched.count("target 1") == timing.WARM_UPS + 3 + timing.PILOTS + 50


def test_the_order_turns() -> None:
    rounds = [timing.order((1, 0, 2, 3), turn) for turn in range(8)]
    assert rounds[:4] == [[1, 0, 2, 3], [0, 2, 3, 1], [2, 3, 1, 0], [3, 1, 0, 2]]
    assert rounds[4:] == [r[::-1] for r in rounds[:4]]
    for kind in (0, 1, 2, 3):
        assert sorted(r.index(kind) for r in rounds) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_samples_interleave() -> None:
    queue = Queue()
    measured(queue, draft_ms=20.0, target_ms=lambda n: 30.0)
    taken = [name for name in queue.launched if name != "flush"][-150:]
    for a, b in pairwise(taken[i : i + 3] for i in range(0, 150, 3)):
        assert len(set(a)) == len(set(b)) == 3


@pytest.mark.parametrize("kind", ["line", "step"])
def test_drift_does_not_bias_c(kind: str) -> None:
    plain = Queue()
    measured(plain, draft_ms=1.0, target_ms=lambda n: 10.0)
    whole = plain.busy_until_ms

    def drift(at_ms: float) -> float:
        if kind == "line":
            return 1 + 0.03 * at_ms / whole
        return 1.03 if at_ms > 0.6 * whole else 1.0

    found = ratios.figures(measured(Queue(drift), draft_ms=1.0, target_ms=lambda n: 10.0))
    assert abs(found.c.value / 0.1 - 1) < 0.003
    assert all(abs(point.value - 1) < 0.003 for point in found.v)


def test_passes_grow_until_v_has_left_one() -> None:
    # Memory-bound up to 96 tokens of all requests, then in proportion: v is 1 at 64, 4/3 at 128.
    found = measured(Queue(), target_ms=lambda n: 2.0 * max(1.0, 4 * n / 96), gamma=3, batch=4)
    # Then between 16 and 32 tokens a request, in the middle of their logarithms, twice.
    assert list(found.verify_ms) == [2, 3, 4, 8, 16, 23, 27, 32]
    critical = ratios.figures(found, batch=4).critical
    assert critical.tokens is not None
    assert critical.tokens == pytest.approx(4 * 23 * (27 / 23) ** 0.8)


@pytest.mark.parametrize("knee", [14.0, 25.1, 40.0, 96.0, 133.0, 190.6, 450.0])
@pytest.mark.parametrize(("gamma", "batch"), [(1, 1), (3, 4), (5, 1), (5, 2)])
def test_the_critical_batch_is_found_within_5_percent(knee: float, gamma: int, batch: int) -> None:
    # A roofline: v = 1 while a pass is bound by memory, then in proportion to its tokens.
    found = measured(
        Queue(), target_ms=lambda n: 20 * max(1.0, n * batch / knee), gamma=gamma, batch=batch
    )
    critical = ratios.figures(found, batch).critical.tokens
    assert critical is not None
    assert critical == pytest.approx(1.1 * knee, rel=0.05)


def test_no_pass_halves_a_gap_that_holds_no_other() -> None:
    found = measured(Queue(), target_ms=lambda n: 2.0 * n, gamma=3)
    assert list(found.verify_ms) == [2, 3, 4]


def test_a_gap_is_not_halved_where_time_or_memory_ends() -> None:
    def step(n: int) -> float:
        return 100.0 * max(1.0, n / 24)

    def taken(queue: Queue, without: int = 0, seconds: float = 1e6) -> list[int]:
        def target(tokens: int) -> timing.Launch:
            if tokens == without:
                raise ProbeError("out of memory")
            return queue.work("target", step(tokens))

        found = timing.measure(
            queue,
            queue.work("draft", 0.2),
            target,
            setup(gamma=1),
            most_tokens=1024,
            deadline_s=seconds,
            hooks=Hooks(now_s=queue.now_s),
        )
        return list(found.verify_ms)

    assert taken(Queue()) == [2, 4, 8, 16, 23, 27, 32]
    assert taken(Queue(), without=27) == [2, 4, 8, 16, 23, 32]
    assert taken(Queue(), without=23) == [2, 4, 8, 16, 32]
    by_time = [taken(Queue(), seconds=s) for s in range(30, 90, 5)]
    assert [2, 4, 8, 16, 32] in by_time
    assert [2, 4, 8, 16, 23, 32] in by_time


def test_passes_stop_at_1024_tokens_and_at_the_room_for_them() -> None:
    assert list(measured(Queue(), gamma=1, batch=64).verify_ms) == [2, 4, 8, 16]
    assert list(measured(Queue(), gamma=1, batch=1, most_tokens=8).verify_ms) == [2, 4, 8]
    assert timing.rungs(4, 1024) == ((2, 3, 4, 5), ())
    found = ratios.figures(measured(Queue(), gamma=1, batch=64), batch=64)
    assert found.critical == ratios.Critical()


def test_passes_stop_where_memory_ends() -> None:
    queue = Queue()

    def target(tokens: int) -> timing.Launch:
        if tokens > 8:
            raise ProbeError("out of memory")
        return queue.work("target", 2.0)

    def taken(gamma: int) -> list[int]:
        found = timing.measure(
            queue,
            queue.work("draft", 0.2),
            target,
            setup(gamma=gamma),
            most_tokens=1024,
            deadline_s=1e6,
            hooks=Hooks(now_s=queue.now_s),
        )
        return list(found.verify_ms)

    assert taken(1) == [2, 4, 8]
    with pytest.raises(ProbeError, match="out of memory"):
        taken(8)


def test_passes_stop_where_time_ends() -> None:
    all_of_them = measured(Queue(), target_ms=lambda n: 100.0)
    assert max(all_of_them.verify_ms) == 1024
    some = measured(Queue(), target_ms=lambda n: 100.0, seconds=40)
    assert 2 in some.verify_ms
    assert max(some.verify_ms) < 1024
    assert len(some.target_ms) == 50


def test_a_measurement_too_long_is_refused_with_numbers() -> None:
    with pytest.raises(ProbeError, match=r"50 samples take about 1\d\d s .* max_seconds = 60"):
        measured(Queue(), target_ms=lambda n: 1000.0, seconds=60, max_seconds=60)


def test_time_that_runs_out_gives_nothing() -> None:
    slow = Queue(lambda at_ms: 10.0 if at_ms > 5000 else 1.0)
    with pytest.raises(ProbeError, match="not done within max_seconds = 20"):
        measured(slow, target_ms=lambda n: 50.0 * n, seconds=20, max_seconds=20)


def test_progress_and_the_middle() -> None:
    told: list[Progress] = []
    queue = Queue()
    middles: list[int] = []
    hooks = Hooks(tell=told.append, midway=lambda: middles.append(len(told)), now_s=queue.now_s)
    measured(queue, hooks=hooks)
    assert [p.done for p in told] == [2, *range(3, 53), 54]
    assert {p.of for p in told} == {54}
    assert len(middles) == 1
    assert 20 < middles[0] < 35


def test_energy_is_of_a_step() -> None:
    queue = Queue()
    hooks = Hooks(energy_j=lambda: 300 * queue.host_ms / 1000, now_s=queue.now_s)
    found = measured(queue, draft_ms=0.5, target_ms=lambda n: 5.0, hooks=hooks)
    assert found.energy_target_j == pytest.approx(1.5, rel=0.02)
    assert found.energy_draft_j == pytest.approx(0.15, rel=0.02)


@pytest.mark.parametrize("counter", [lambda: None, lambda: 42.0])
def test_energy_is_none_where_no_counter_moves(counter: Callable[[], float | None]) -> None:
    queue = Queue()
    found = measured(queue, hooks=Hooks(energy_j=counter, now_s=queue.now_s))
    assert found.energy_target_j is None
    assert found.energy_draft_j is None
