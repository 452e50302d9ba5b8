import json
from random import Random
from typing import Any

import pytest

from lib.errors import UnknownFormat
from lib.results.reading import Reading, read
from lib.results.tools import vllm_offline
from tests.unit.results.shaken import shaken

THROUGHPUT = {
    "elapsed_time": 12.5,
    "num_requests": 1000,
    "total_num_tokens": 384_000,
    "requests_per_second": 80.0,
    "tokens_per_second": 30_720.0,
}
LATENCY = {
    "avg_latency": 1.25,
    "std_latency": 0.01,
    "latencies": [1.24, 1.25, 1.26],
    "percentiles": {"10": 1.24, "25": 1.24, "50": 1.25, "75": 1.26, "90": 1.26, "99": 1.26},
}


def reading(*values: object) -> Reading:
    return read("f.json", "\n".join(json.dumps(v) for v in values).encode())


@pytest.mark.parametrize(
    ("value", "level", "reason"),
    [
        (THROUGHPUT, "throughput", "count input and output together"),
        (LATENCY, "latency", "the batch size and the lengths"),
        ({k: v for k, v in LATENCY.items() if k != "std_latency"}, "latency", "batch size"),
    ],
)
def test_offline_results_are_recognised_and_are_no_runs(
    value: dict[str, Any], level: str, reason: str
) -> None:
    found = reading(value)
    assert (found.tool, found.tool_version, found.runs) == ("vllm-bench-offline", level, ())
    (flag,) = found.flags
    assert (flag.code, flag.severity) == ("not_a_run", "warns")
    assert "offline, not comparable with serving" in flag.message
    assert reason in flag.message
    assert flag.message.endswith("measure with vllm bench serve")
    assert "tokens_per_second" in found.why or "avg_latency" in found.why


def test_a_list_of_them_is_counted() -> None:
    found = reading([THROUGHPUT, THROUGHPUT, LATENCY])
    assert [f.message.split(":")[0] for f in found.flags] == [
        "2 results of vllm bench throughput",
        "1 result of vllm bench latency",
    ]


@pytest.mark.parametrize(
    "value",
    [
        {k: v for k, v in THROUGHPUT.items() if k != "total_num_tokens"},
        {**LATENCY, "percentiles": {"p50": 1.0}},
        {**LATENCY, "percentiles": {}},
        {**LATENCY, "latencies": 3},
        [THROUGHPUT, {"x": 1}],
    ],
)
def test_like_keys_of_others_are_not_claimed(value: object) -> None:
    assert not vllm_offline.recognise([value])
    with pytest.raises(UnknownFormat):
        reading(value)


def test_results_gone_wrong_raise_nothing() -> None:
    random = Random(20260301)
    for _ in range(200):
        broken = json.loads(json.dumps(shaken([THROUGHPUT, LATENCY], random)))
        if vllm_offline.recognise([broken]):
            assert vllm_offline.find("f", [broken], "0" * 64).runs == ()
