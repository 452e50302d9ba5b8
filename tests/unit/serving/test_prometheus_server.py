"""Windows from a Prometheus server: hand-made answers, and a real one where it is installed."""

import json
import os
import shutil
import subprocess
import threading
import time
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.server import free_port
from lib.addresses import Allowed
from lib.errors import FetchError, InputError
from lib.serving.prometheus import MOST_STEPS, Prometheus, Range, by_server, series_names
from lib.serving.windows import total
from tests.unit.serving.metrics_standin import Standin, serving, vllm

LOOPBACK = Allowed(loopback=True)
START = 1_800_000_000.0
DRAFTS, DRAFTED, ACCEPTED, TOKENS = (
    *("vllm:spec_decode_num_drafts_total", "vllm:spec_decode_num_draft_tokens_total"),
    *("vllm:spec_decode_num_accepted_tokens_total", "vllm:generation_tokens_total"),
)

Samples = Mapping[float, Mapping[str, float]]


def matrix(servers: Mapping[str, Samples]) -> bytes:
    """A range query's answer: by instance, by moment, the values of series."""
    rows: list[dict[str, Any]] = []
    for instance, samples in servers.items():
        for name in (DRAFTS, DRAFTED, ACCEPTED, TOKENS):
            labels = {"__name__": name, "instance": instance, "job": "llm", "engine": "0"}
            values = [[at_s, f"{v[name]}"] for at_s, v in samples.items() if name in v]
            rows.append({"metric": labels, "values": values})
    data = {"resultType": "matrix", "result": rows}
    return json.dumps({"status": "success", "data": data}).encode()


def counted(drafts: float, tau: float) -> dict[str, float]:
    accepted = drafts * (tau - 1)
    return {DRAFTS: drafts, DRAFTED: 4 * drafts, ACCEPTED: accepted, TOKENS: drafts + accepted}


def windows(body: bytes, steps: int = 2, status: int = 200, **labels: str) -> Any:
    with serving(Standin(answer=lambda *_: (status, body))) as server:
        asked = Prometheus(server.url, LOOPBACK, labels)
        return asked.windows(Range(START, START + steps * 15, 15)), server.asked


def test_two_servers_are_a_ratio_of_sums() -> None:
    one = {START + 15 * n: counted(100 + 10 * n, 2.0) for n in range(3)}
    two = {START + 15 * n: counted(500 + 30 * n, 4.0) for n in range(3)}
    found, asked = windows(matrix({"10.0.0.1:8000": one, "10.0.0.2:8000": two}))
    assert [w.counters.drafts for w in found] == [40, 40]
    assert found[0].tau == pytest.approx(1 + (10 + 90) / 40), "not the mean of 2 and 4"
    assert [(p.label, p.tau) for p in found[0].parts] == [
        ("job llm, instance 10.0.0.1:8000, engine 0", 2.0),
        ("job llm, instance 10.0.0.2:8000, engine 0", 4.0),
    ]
    whole = total(found)
    assert (whole.seconds, whole.output_tps) == (30, pytest.approx(2 * (20 + 120) / 30))
    (path, body, _), *more = asked
    form = urllib.parse.parse_qs(body.decode())
    assert (path, more) == ("/api/v1/query_range", [])
    assert (form["start"], form["end"], form["step"]) == (
        ["1800000000.000"],
        ["1800000030.000"],
        ["15.000"],
    )
    assert "rate(" not in form["query"][0]


def test_the_ranks_of_one_target_are_one_server() -> None:
    samples = {START + 15 * n: counted(100 + 300 * n, 2.0) for n in range(3)}
    document = json.loads(matrix({"a:1": samples, "b:1": samples}))
    rows = document["data"]["result"]
    rows += [{**row, "metric": {**row["metric"], "engine": "1"}} for row in rows]
    found, _ = windows(json.dumps(document).encode())
    whole = by_server(total(found))
    assert [(p.label, len(p.parts)) for p in whole.parts] == [
        ("job llm, instance a:1", 2),
        ("job llm, instance b:1", 2),
    ]
    assert [p.output_tps for p in whole.parts] == [80, 80]
    assert whole.counters == total(found).counters


def test_a_restart_shows_in_the_raw_counters() -> None:
    values = [counted(1000, 2.0), counted(1100, 2.0), counted(30, 3.0), counted(50, 3.0)]
    samples = {START + 15 * n: v for n, v in enumerate(values)}
    found, _ = windows(matrix({"a:1": samples}), steps=3)
    assert [w.counters.drafts for w in found] == [100, 30, 20]
    assert [w.restarts for w in found] == [0, 1, 0]
    assert total(found).restarts == 1


def test_a_gap_makes_a_longer_window() -> None:
    samples = {START: counted(10, 2.0), START + 45: counted(40, 2.0)}
    found, _ = windows(matrix({"a:1": samples}), steps=3)
    assert [(w.seconds, w.counters.drafts) for w in found] == [(45, 30)]


def test_a_target_that_comes_later_counts_from_its_first_sample() -> None:
    old = {START + 15 * n: counted(100 + 10 * n, 2.0) for n in range(3)}
    new = {START + 15 * n: counted(10_000 + 5 * n, 4.0) for n in (1, 2)}
    found, _ = windows(matrix({"a:1": old, "b:1": new}))
    assert [w.counters.drafts for w in found] == [10, 15]


def test_labels_are_quoted() -> None:
    samples = {START + 15 * n: counted(10 + n, 2.0) for n in range(3)}
    _, asked = windows(matrix({"a:1": samples}), job='x"} or {y="', namespace="prod")
    query = urllib.parse.parse_qs(asked[0][1].decode())["query"][0]
    assert query.endswith(r', job="x\"} or {y=\"", namespace="prod"}')
    with pytest.raises(InputError, match="label"):
        Prometheus("http://127.0.0.1:9090", LOOPBACK, {"a b": "c"})


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"<html>", 200, "no answer of a Prometheus server"),
        (b"[1]", 404, "status 404"),
        (b'{"status":"error","error":"bad\\nstep \\u001b[2J"}', 400, "refuses the query: bad step"),
        (b'{"status":"success","data":{"result":7}}', 200, "holds no series"),
        (b'{"status":"success","data":{"result":[]}}', 200, "no engine's series"),
        (b'{"status":"success","data":{"result":[7,{"metric":3,"values":[]}]}}', 200, "no engine"),
        (b"[" * 100_000, 200, "no answer of a Prometheus server"),
        (b" " * (9 * 2**20), 200, "more than 8 MiB"),
    ],
)
def test_other_answers_are_one_line(body: bytes, status: int, said: str) -> None:
    with pytest.raises(FetchError, match=said) as caught:
        windows(body, status=status)
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_samples_that_are_none_are_left_out() -> None:
    body = matrix({"a:1": {START + 15 * n: counted(10 * n, 2.0) for n in range(3)}})
    document = json.loads(body)
    for row in document["data"]["result"]:
        row["values"][1] = [START + 15, "NaN"]
        row["values"] += ["x", [1], [None, None], ["Infinity", "1"]]
    found, _ = windows(json.dumps(document).encode())
    assert [(w.seconds, w.counters.drafts) for w in found] == [(30, 20)]


def test_a_range_is_bounded_and_split() -> None:
    queries = list(Range(START, START + 150 * 15, 15).queries)
    assert [round((b - a) / 15) + 1 for a, b in queries] == [60, 60, 31]
    assert queries[1][0] - queries[0][1] == 15
    for start, end, step, said in (
        (START, START, 15, "at least one step"),
        (START, START + 60, 0.1, "at least 1 s"),
        (START, START + 86_400, 15, "a step of 60 s or more"),
        (START, float("nan"), 15, "finite"),
    ):
        with pytest.raises(InputError, match=said):
            Range(start, end, step)
    assert Range(START, START + MOST_STEPS * 60, 60).steps == MOST_STEPS


def test_every_engine_is_asked_for_by_exact_names() -> None:
    names = series_names()
    assert {DRAFTS, "sglang:spec_verify_calls_total", "llamacpp:tokens_predicted_total"} <= {*names}
    assert "vllm:request_time_per_output_token_seconds_bucket" in names
    assert "vllm:num_preemptions_total" in names
    assert not [n for n in names if n.endswith("_created") or " " in n]


def prometheus() -> str:
    found = shutil.which("prometheus")
    if found is None and os.environ.get("DRAFTWORTH_REQUIRE_PROMETHEUS"):
        pytest.fail("prometheus is not installed: apt-get install prometheus")
    if found is None:
        pytest.skip("prometheus is not installed: apt-get install prometheus")
    return found


class Counting:
    """An engine that drafts ten times a scrape, `accepts` tokens each, until `restart`."""

    def __init__(self, accepts: int) -> None:
        self.accepts, self.scrapes, self.restarted = accepts, 0, threading.Event()

    def __call__(self, path: str, _: bytes) -> tuple[int, bytes]:
        self.scrapes += 1
        drafts = 10 * self.scrapes
        kept = drafts * self.accepts
        text = vllm(drafts, 4 * drafts, kept, drafts + kept, running=2, engine="0")
        return (200, text.encode()) if path == "/metrics" else (404, b"")

    def restart(self) -> None:
        self.scrapes = 0


def test_a_real_prometheus_scraping_two_engines(tmp_path: Path) -> None:
    binary, port = prometheus(), free_port()
    first, second = Counting(1), Counting(3)
    with serving(Standin(answer=first)) as one, serving(Standin(answer=second)) as two:
        targets = [s.url.removeprefix("http://") for s in (one, two)]
        scraping = {"job_name": "llm", "static_configs": [{"targets": targets}]}
        config = {"global": {"scrape_interval": "1s"}, "scrape_configs": [scraping]}
        (tmp_path / "prometheus.yml").write_text(json.dumps(config))
        with (tmp_path / "log").open("w") as log:
            child = subprocess.Popen(
                [
                    *(binary, f"--config.file={tmp_path}/prometheus.yml"),
                    *(f"--storage.tsdb.path={tmp_path}/data",),
                    f"--web.listen-address=127.0.0.1:{port}",
                ],
                stdout=log,
                stderr=log,
            )
        try:
            began = time.time()
            wait_for(lambda: min(first.scrapes, second.scrapes) >= 5, child, tmp_path / "log")
            first.restart()
            wait_for(lambda: first.scrapes >= 3, child, tmp_path / "log")
            asked = Prometheus(f"http://127.0.0.1:{port}", LOOPBACK, {"job": "llm"})
            whole = total(asked.windows(Range(began, time.time(), 1)))
        finally:
            child.terminate()
            child.wait(30)
    parts = {part.label: part for part in whole.parts}
    kept, restarted = (parts[f"job llm, instance {t}, engine 0"] for t in reversed(targets))
    assert (restarted.tau, kept.tau) == (2.0, 4.0)
    assert (restarted.restarts, kept.restarts, whole.restarts) == (1, 0, 1)
    drafts = [p.counters.drafts or 0 for p in (restarted, kept)]
    assert whole.tau == pytest.approx(1 + (drafts[0] + 3 * drafts[1]) / sum(drafts))
    assert whole.engine == "vLLM"
    assert whole.gauges.running is not None
    assert 2 <= whole.gauges.running <= 4, "one of them may have been scraped first"


def wait_for(done: Any, child: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 90
    while not done():
        assert child.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)
