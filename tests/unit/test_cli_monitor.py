"""A server watched from the command line."""

import json

import pytest
from typer.testing import CliRunner, Result

from lib.cli import app
from tests.unit.serving.metrics_standin import Standin, histogram, serving, vllm


def run(*words: str, **env: str) -> Result:
    return CliRunner().invoke(app, ["monitor", *words], env=env)


def counting(more: str = "") -> Standin:
    """A server that drafts 100 times more at each scrape."""
    scrapes = 0

    def answer(path: str, _: bytes) -> tuple[int, bytes]:
        nonlocal scrapes
        scrapes += 1
        n = 100 * scrapes
        positions = [n * s // 100 for s in (70, 49, 34, 24)]
        text = vllm(n, 4 * n, sum(positions), n + sum(positions), scrapes, positions, 3)
        tpot = "vllm:request_time_per_output_token_seconds"
        labels = {"engine": "0", "model_name": "acme/target"}
        text += histogram(tpot, {0.01: 0, 0.025: scrapes}, scrapes, 0.02 * scrapes, **labels)
        return (200, (text + more).encode()) if path == "/metrics" else (404, b"")

    return Standin(answer=answer)


def test_one_json_object_with_windows_and_their_total() -> None:
    with serving(counting()) as server:
        result = run(server.url, "--for", "2", "--every", "1", "--json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert document["engine"] == "vLLM"
    first, second = document["windows"]
    assert first["drafts"] == second["drafts"] == 100
    assert document["total"]["drafts"] == 200
    assert document["total"]["tau"] == pytest.approx(2.77)
    assert document["total"]["alpha"] == pytest.approx(177 / (177 + 76))
    assert document["total"]["running"] == 3
    assert document["total"]["tpot_ms"] == pytest.approx(20)
    low, high = document["total"]["tpot_ms_p99"]
    assert low <= 20 <= high
    assert document["total"]["output_tps"] == pytest.approx(
        2 * 277 / document["total"]["seconds"], rel=1e-3
    )
    assert {"seconds", "drafts", "tau", "alpha", "output_tps", "running"} <= set(first)


def test_lines_for_people_with_goodput_and_each_engine() -> None:
    other = vllm(5, 20, 10, 15, engine="1", model_name="acme/target")
    with serving(counting(other)) as server:
        result = run(server.url, "--for", "1", "--every", "1", "--slo", "tpot_ms=25")
    assert result.exit_code == 0
    assert "engine: vLLM" in result.stdout
    assert "label model_name acme/target, engine 1" in result.stdout
    assert "goodput_rps_low" in result.stdout


def test_undecided_goodput_says_why() -> None:
    with serving(counting()) as server:
        words = ("--for", "1", "--every", "1", "--slo", "tpot_ms=20", "--json")
        document = json.loads(run(server.url, *words).stdout)
    assert document["total"]["goodput_rps_low"] == 0
    assert document["total"]["goodput_rps_high"] > 0
    assert "between 10 and 25 ms" in document["total"]["goodput_undecided"][0]


@pytest.mark.parametrize(
    ("url", "status", "said"),
    [
        ("http://127.0.0.1:1", 1, "nothing listens there"),
        ("http://10.1.2.3:8000", 1, "may not be asked"),
        ("ftp://127.0.0.1", 1, "http://host:port"),
    ],
)
def test_refused_and_unreachable_are_one_line(url: str, status: int, said: str) -> None:
    result = run(url, "--json", DRAFTWORTH_MONITOR_HOSTS="")
    assert (result.exit_code, result.stdout) == (status, "")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_times_out_of_range_are_wrong_usage() -> None:
    result = run("http://127.0.0.1:1", "--for", "0")
    assert result.exit_code == 2
    assert "--for 0" in result.stderr


def test_the_token_comes_from_the_environment() -> None:
    server = counting()
    with serving(server):
        run(server.url, "--for", "1", "--every", "1", DRAFTWORTH_TOKEN="sk-abc")
    assert {token for _, _, token in server.asked} == {"Bearer sk-abc"}
