"""Small runs, arms and sweeps for the evidence tests."""

import math
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from lib.evidence.pairing import ArmComparison, compare
from lib.evidence.ratio import LogRatio, welch
from lib.run import LoadKind, Run, SpecState, Study

_ids = count()
PROTOCOL: dict[str, Any] = {
    "target": "m-8b",
    "dataset": "chat",
    "temperature": 0.0,
    "engine": "vllm",
    "load_kind": LoadKind.CONCURRENCY,
}


def off(load: float, tps: float | None = 100.0, **fields: Any) -> Run:
    return Run(
        run_id=f"r{next(_ids)}",
        spec_state=SpecState.OFF,
        offered_load=load,
        output_tps=tps,
        **{**PROTOCOL, **fields},
    )


def on(load: float, tps: float | None = 150.0, k: int = 4, **fields: Any) -> Run:
    named = {"draft_method": "eagle3", "num_speculative_tokens": k}
    return Run(
        run_id=f"r{next(_ids)}",
        spec_state=SpecState.ON,
        offered_load=load,
        output_tps=tps,
        **{**PROTOCOL, **named, **fields},
    )


def study(*runs: Run) -> Study:
    return Study("s", runs)


def only_arm(*runs: Run, overrides: Sequence[str] = ()) -> ArmComparison:
    (arm,) = compare(study(*runs), frozenset(overrides)).arms
    return arm


def points(
    off_tps: Mapping[float, Sequence[float]], on_tps: Mapping[float, Sequence[float]]
) -> tuple[LogRatio, ...]:
    """Measured points of two arms given as tok/s of each repeat by load."""
    return tuple(
        LogRatio(x, *welch(on_tps[x], off_tps[x]), len(off_tps[x]), len(on_tps[x])) for x in off_tps
    )


def ratios(by_load: Mapping[float, float], se: float | None = None) -> tuple[LogRatio, ...]:
    """Points from M by load."""
    df = None if se is None else 4.0
    return tuple(LogRatio(x, math.log(m), se, df, 3, 3) for x, m in by_load.items())


LOADS = (1, 2, 4, 8, 16, 32, 64)
# Output tok/s, three repeats by concurrency: GuideLLM against a simulated engine.
SIMULATED: dict[str, dict[float, tuple[float, float, float]]] = {
    "off": {
        1: (78.600, 78.485, 78.487),
        2: (155.426, 155.958, 155.603),
        4: (307.903, 301.240, 304.492),
        8: (595.981, 574.269, 599.089),
        16: (1023.088, 975.067, 1027.101),
        32: (1797.785, 1762.958, 1702.699),
        64: (2942.992, 2887.434, 2729.540),
    },
    "k2": {
        1: (144.377, 142.618, 140.117),
        2: (277.966, 266.981, 288.166),
        4: (525.413, 532.109, 529.002),
        8: (994.997, 1009.002, 1006.758),
        16: (1812.375, 1743.989, 1780.248),
        32: (2197.063, 2016.619, 2129.330),
        64: (2391.171, 2343.365, 2416.950),
    },
    "k4": {
        1: (156.151, 165.854, 154.512),
        2: (293.575, 289.853, 289.875),
        4: (596.199, 557.032, 579.939),
        8: (1113.478, 1069.400, 1131.768),
        16: (1526.073, 1416.274, 1507.727),
        32: (1744.685, 1767.961, 1698.810),
        64: (1863.032, 1855.524, 1842.723),
    },
}
# M, low, high by concurrency: the printed table of the simulated sweep.
PRINTED = {
    "k2": {
        1: (1.813, 1.747, 1.882),
        2: (1.783, 1.622, 1.960),
        4: (1.737, 1.698, 1.776),
        8: (1.702, 1.617, 1.791),
        16: (1.764, 1.663, 1.872),
        32: (1.205, 1.103, 1.316),
        64: (0.836, 0.768, 0.909),
    },
    "k4": {
        1: (2.022, 1.839, 2.223),
        2: (1.870, 1.838, 1.902),
        4: (1.896, 1.757, 2.046),
        8: (1.873, 1.762, 1.991),
        16: (1.471, 1.354, 1.597),
        32: (0.990, 0.936, 1.048),
        64: (0.650, 0.591, 0.715),
    },
}
# EAGLE-3 paper (arXiv 2503.01840), SGLang on one H100: throughput over no speculation, by batch.
EAGLE = dict(
    zip(
        (2, 4, 8, 16, 24, 32, 48, 56, 64),
        (1.40, 1.38, 1.23, 1.02, 0.93, 0.94, 0.88, 0.99, 0.99),
        strict=True,
    )
)
EAGLE_3 = dict(zip(EAGLE, (1.81, 1.82, 1.62, 1.48, 1.39, 1.32, 1.38, 1.34, 1.38), strict=True))
# TensorRT-LLM 0.14 on one L4, Qwen2.5 1.5B with a 0.5B draft, K = 4: tok/s off and on by batch.
L4 = {1: (74.7, 85.1), 2: (127.2, 108.7), 4: (209.2, 133.8), 8: (309.4, 161.6)}
# SGLang w4a16 Llama-3.1-8B with EAGLE-3: tok/s off and on by concurrency.
W4A16 = {
    1: (194.8, 196.1),
    4: (732.1, 711.9),
    8: (1360.3, 1143.2),
    16: (2324.9, 1698.9),
    32: (3367.8, 2351.3),
}
# Qwen3-30B-A3B on 4 H100, EAGLE3: loses at 1 to 32 and wins at 64.
NON_MONOTONE = {
    1: (218.89, 185.64),
    4: (507.49, 476.37),
    8: (677.14, 673.14),
    32: (1128.30, 927.11),
    64: (1237.84, 1307.95),
}


def one_run_points(table: Mapping[float, tuple[float, float]]) -> tuple[LogRatio, ...]:
    """Points of a table of (off, on) with one run an arm."""
    return points({x: (v[0],) for x, v in table.items()}, {x: (v[1],) for x, v in table.items()})
