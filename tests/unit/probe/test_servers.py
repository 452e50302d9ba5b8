"""c and R from servers whose step times are known."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lib.addresses import HOSTS, Allowed
from lib.cli import app
from lib.errors import FetchError, InputError, ProbeError
from lib.fetching import fetch
from lib.probe import completions, counters
from lib.probe.asking import Asking, standard_prompts
from lib.probe.completions import Server
from lib.probe.result import Probe, from_json, to_json
from lib.probe.server_round import SINGLE_STREAM, Round, measure_round
from lib.probe.servers import APPROXIMATION, measure_c
from lib.theory.walltime import tau
from tests.unit.probe.openai_standin import Clock, Engine, served

LOOPBACK = Allowed(loopback=True)
ASKING = Asking(short=8, long=40, repeats=6)
SIMENGINE = Path(__file__).resolve().parents[4] / "shared" / "tools" / "simengine.py"
TOKEN = "sk-very-secret-1234"

Make = Callable[..., Engine]
Serve = Callable[[Engine], str]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Make:
    clock = Clock()
    monkeypatch.setattr(completions, "perf_counter", clock)
    monkeypatch.setattr(counters, "_PAUSE_SECONDS", 0.001)
    return lambda **options: Engine(clock, **options)


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:
        yield lambda engine: stack.enter_context(served(engine))


@pytest.fixture
def measured(serve: Serve) -> Callable[..., Probe]:
    def measure(target: Engine, draft: Engine, asking: Asking = ASKING, token: str = "") -> Probe:
        servers = [Server(serve(engine), token=token) for engine in (target, draft)]
        return measure_c(servers[0], servers[1], LOOPBACK, asking)

    return measure


@pytest.fixture
def round_of(serve: Serve) -> Callable[..., Round]:
    def measure(plain: Engine, speculating: Engine, asking: Asking = ASKING) -> Round:
        return measure_round(Server(serve(plain)), Server(serve(speculating)), LOOPBACK, asking)

    return measure


def test_c_is_the_ratio_of_the_steps_alone(make: Make, measured: Any) -> None:
    target = make(step_ms=20, once_ms=400, model="big")
    probe = measured(target, make(step_ms=3, once_ms=10, model="small"))
    assert (probe.c.value, probe.c.low, probe.c.high) == pytest.approx((0.15, 0.15, 0.15))
    assert (probe.t_target_ms, probe.t_draft_ms) == pytest.approx((20, 3))
    assert len(probe.samples_draft_ms) == len(probe.samples_target_ms) == 6
    assert (probe.method, probe.v, probe.unstable, probe.busy) == ("servers", (), False, False)
    assert probe.warnings == (APPROXIMATION,)
    setup = probe.setup
    assert (setup.target, setup.draft, setup.batch) == ("big", "small", 1)
    assert setup.context == 30 + (8 + 40) / 2
    assert setup.versions == {"target": "standin 1.2", "draft": "standin 1.2"}
    assert from_json(to_json(probe)) == probe


def test_what_is_asked(make: Make, measured: Any) -> None:
    target = make()
    measured(target, make(step_ms=1))
    paths = {path for path, _ in target.seen}
    assert paths == {"/v1/completions"}
    _, last = target.seen[-1]
    assert last == {
        "model": "sim/model",
        "prompt": standard_prompts()[5],
        "max_tokens": 8,
        "temperature": 0,
        "stream": False,
        "ignore_eos": True,
    }
    lengths = [asked["max_tokens"] for _, asked in target.seen]
    assert lengths == [1] + [1, 8, 40, 1, 40, 8] * 3
    assert len({asked["prompt"] for _, asked in target.seen}) == 6


def test_a_drift_does_not_bias_c(make: Make, measured: Any) -> None:
    rising = tuple(0.05 * i for i in range(40))
    probe = measured(make(step_ms=20, wobble_ms=rising), make(step_ms=20, wobble_ms=rising))
    assert probe.c.value == pytest.approx(1, abs=0.003)


def test_noise_gives_an_interval(make: Make, measured: Any) -> None:
    probe = measured(make(step_ms=20), make(step_ms=2, wobble_ms=(0, 0.4, 0.1, 0.3, 0.05)))
    assert probe.c.low < probe.c.value < probe.c.high
    assert probe.unstable
    assert any(w.startswith("unstable") for w in probe.warnings)


def test_chat_where_there_is_nothing_else(make: Make, measured: Any) -> None:
    target = make(completions=False, takes_ignore_eos=False)
    assert measured(target, make(step_ms=5)).c.value == pytest.approx(0.5)
    path, asked = target.seen[-1]
    assert path == "/v1/chat/completions"
    assert asked["messages"][0]["role"] == "user"
    assert "ignore_eos" not in asked


def test_stopping_early_is_said_and_counted(make: Make, measured: Any) -> None:
    probe = measured(make(early=30), make(step_ms=5))
    assert probe.c.value == pytest.approx(0.5)
    assert "sim/model stopped early, after 30 of 40 tokens" in probe.warnings[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"early": 20}, "stops after 20 of 40 tokens"),
        ({"step_ms": 0}, "took no longer"),
        ({"usage": False}, "counts no tokens"),
        ({"accepts": (2,), "round_ms": 12}, "drafts tokens itself"),
        ({"status": 503}, 'status 503; it says "loading'),
        ({"token": "other"}, "refuses with status 401; give it a token"),
        ({"completions": False, "status": 404}, "status 404"),
    ],
)
def test_a_target_that_tells_nothing(
    make: Make, measured: Any, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ProbeError) as error:
        measured(make(**options), make(step_ms=5), token=TOKEN)
    assert words in str(error.value)
    assert str(error.value).startswith("127.0.0.1:")
    assert "secret" not in str(error.value)


def test_others_on_a_server_are_noticed(make: Make, measured: Any) -> None:
    probe = measured(make(foreign=3), make(step_ms=5))
    assert probe.busy
    assert any(w.startswith("busy") for w in probe.warnings)


def test_no_metrics_no_matter(make: Make, measured: Any) -> None:
    assert not measured(make(metrics=False), make(step_ms=5, metrics=False)).busy


def test_the_time_is_bounded(make: Make, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    servers = [Server(serve(make())), Server(serve(make()))]
    late = iter([0.0])
    monkeypatch.setattr(time, "monotonic", lambda real=time.monotonic: real() + next(late, 1e6))
    with pytest.raises((ProbeError, FetchError), match=r"127\.0\.0\.1"):
        measure_c(servers[0], servers[1], LOOPBACK, ASKING)


def test_the_round(make: Make, round_of: Any) -> None:
    """Seven tokens in three rounds; both lengths end with a round."""
    asking = Asking(short=1 + 7, long=1 + 42, repeats=6)
    found = round_of(make(step_ms=10), make(step_ms=10, accepts=(0, 3, 1), round_ms=14), asking)
    assert found.r.value == pytest.approx(1.4)
    assert found.round_ms == pytest.approx(14)
    assert found.tau.value == pytest.approx(7 / 3)
    assert found.speedup.value == pytest.approx(found.tau.value / 1.4)
    assert found.tau.value == pytest.approx(found.tokens / found.rounds)
    assert found.warnings == (SINGLE_STREAM,)
    assert json.loads(json.dumps(found.document()))["r"]["value"] == found.r.value


def test_a_round_of_an_engine_that_counts_late_and_no_accepted_tokens(
    make: Make, round_of: Any
) -> None:
    speculating = make(accepts=(2,), round_ms=15, prefix="sglang:", lag=3, late_series=True)
    asking = Asking(short=1 + 6, long=1 + 39, repeats=6)
    found = round_of(make(prefix="sglang:"), speculating, asking)
    assert (found.r.value, found.tau.value) == pytest.approx((1.5, 3))


def test_steps_without_a_draft_are_rounds_too(make: Make, round_of: Any) -> None:
    """Rounds of 3 tokens in 16 ms and plain steps of 10 ms by turns: 2 tokens a step of 13 ms."""
    found = round_of(make(), make(accepts=(2,), plain_every=2, round_ms=16))
    assert found.tau.value == pytest.approx(2)
    assert found.r.value == pytest.approx(1.3)
    assert "50% of the steps drafted nothing" in found.warnings[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "no counters of drafting"),
        ({"accepts": (2,), "metrics": False}, "no counters of drafting"),
        ({"accepts": (2,), "round_ms": 9, "foreign": 5}, "others use it"),
        ({"accepts": (2,), "round_ms": 9, "plain_every": 1}, "drafted nothing"),
        ({"accepts": (2,), "round_ms": 9, "foreign": -2}, "of 1 tokens at /metrics"),
    ],
)
def test_a_server_of_which_no_round_is_known(
    make: Make,
    round_of: Any,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    words: str,
) -> None:
    monkeypatch.setattr(counters, "PATIENCE_SECONDS", 0.2)
    with pytest.raises(ProbeError) as error:
        round_of(make(), make(**options))
    assert words in str(error.value) or "counters fell" in str(error.value)


def test_a_plain_server_that_drafts_is_no_baseline(make: Make, round_of: Any) -> None:
    drafting = make(accepts=(2,), round_ms=9)
    with pytest.raises(ProbeError, match="drafts tokens itself"):
        round_of(drafting, make(accepts=(2,), round_ms=9))


def test_names_of_the_models_are_compared(make: Make, round_of: Any) -> None:
    found = round_of(make(model="a"), make(model="b", accepts=(2,), round_ms=9))
    assert "a plain, b speculating" in found.warnings[1]


def test_counters() -> None:
    text = (
        "# TYPE vllm:generation_tokens_total counter\n"
        'vllm:generation_tokens_total{engine="0"} 10\nvllm:generation_tokens_total{engine="1"} 5\n'
        "vllm:spec_decode_num_drafts_total 4\nvllm:spec_decode_num_drafts_created 1.7e9\n"
    )
    assert counters.counts_of(text) == counters.Counts(15, 4, None)
    assert counters.counts_of("llamacpp:tokens_predicted_total 3\n") == counters.Counts(3)
    assert counters.counts_of("up 1\n") is None
    since = counters.Counts(20, 5, None).since(counters.Counts(15, None))
    assert since == counters.Counts(5, 5, None)


@pytest.mark.parametrize(
    "bad",
    [
        {"short": 0},
        {"long": 40_000},
        {"repeats": 4},
        {"max_seconds": 5},
        {"short": 16, "long": 31},
        {"repeats": True},
        {"prompts": ("a", " ")},
    ],
)
def test_what_may_be_asked(bad: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Asking(**bad)


def test_servers_as_a_person_names_them() -> None:
    assert Server("http://127.0.0.1:8000/v1/").base == "http://127.0.0.1:8000"
    assert Server("http://h:80/engine/").base == "http://h:80/engine"
    assert TOKEN not in repr(Server("http://h:80", token=TOKEN))
    for url in ("127.0.0.1:8000", "http://u:secret@h", "http://h?x", "http://0x7f.1"):
        with pytest.raises(InputError):
            Server(url)
    one, same = Server("http://127.0.0.1:9"), Server("http://127.0.0.1:9/v1")
    with pytest.raises(InputError, match="named twice"):
        measure_c(one, same, LOOPBACK, ASKING)


def run(*args: str, env: dict[str, str] | None = None) -> Any:
    return CliRunner().invoke(app, ["probe-servers", *args], env=env)


def test_the_command(make: Make, serve: Serve, tmp_path: Path) -> None:
    target, draft = serve(make(token=TOKEN)), serve(make(token=TOKEN, step_ms=2))
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("One\n\nTwo\n")
    urls = ("--target-url", target, "--draft-url", draft, "--long", "40", "--repeats", "5")
    result = run(
        *urls, "--prompts", str(prompts), "--gpu", "H100", "--json", env={"DRAFTWORTH_TOKEN": TOKEN}
    )
    assert result.exit_code == 0, result.output
    probe = from_json(result.stdout)
    assert probe.c.value == pytest.approx(0.2)
    assert probe.setup.gpu == "H100"
    assert TOKEN not in result.output
    said = run(*urls, env={"DRAFTWORTH_TOKEN": TOKEN})
    assert "c: 0.2 (0.2 to 0.2)" in said.stdout
    assert APPROXIMATION in said.stdout


def test_the_command_on_a_round(make: Make, serve: Serve) -> None:
    urls = ("--target-url", serve(make()), "--spec-url", serve(make(accepts=(2,), round_ms=15)))
    result = run(*urls, "--repeats", "5", "--json")
    assert json.loads(result.stdout)["r"]["value"] == pytest.approx(1.5, rel=0.05)
    assert "S: " in run(*urls, "--repeats", "5").stdout


@pytest.mark.parametrize(
    ("args", "status", "words"),
    [
        (("--target-url", "http://127.0.0.1:9"), 2, "give one of"),
        (("--target-url", "http://10.0.0.1:9", "--draft-url", "http://127.0.0.1:9"), 1, HOSTS),
        (
            ("--target-url", "http://a@h", "--draft-url", "http://127.0.0.1:9"),
            2,
            "user or password",
        ),
        (
            ("--target-url", "http://h:1", "--draft-url", "http://h:2", "--prompts", "/none"),
            2,
            "no text file",
        ),
    ],
)
def test_the_command_refuses_in_one_line(args: tuple[str, ...], status: int, words: str) -> None:
    result = run(*args)
    assert result.exit_code == status
    assert words in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


@pytest.fixture
def engines() -> Iterator[Callable[..., str]]:
    found: list[subprocess.Popen[bytes]] = []

    def start(*args: str) -> str:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [sys.executable, str(SIMENGINE), "--port", str(port), *args]
        found.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        url = f"http://127.0.0.1:{port}"
        for _ in range(200):
            try:
                fetch(f"{url}/health", LOOPBACK)
                return url
            except FetchError:
                time.sleep(0.05)
        raise AssertionError("the simulated engine does not start")

    try:
        yield start
    finally:
        for process in found:
            process.terminate()
            process.wait(10)


@pytest.mark.skipif(not SIMENGINE.exists(), reason="needs the simulated engine")
def test_a_simulated_engine_over_real_time(engines: Callable[..., str]) -> None:
    """Its truths: c = 4 / 12, R = 1 + 4 * 0.1, tau of alpha 0.7 and gamma 4; the rest is noise."""
    plain = Server(engines("--step-ms", "12"))
    draft = Server(engines("--step-ms", "4", "--model", "sim/draft"))
    drafting = Server(engines("--step-ms", "12", "--gamma", "4", "--alpha", "0.7", "--c", "0.1"))
    asking = Asking(short=4, long=28, repeats=5)
    probe = measure_c(plain, draft, LOOPBACK, asking)
    assert probe.c.value == pytest.approx(4 / 12, rel=0.25)
    found = measure_round(plain, drafting, LOOPBACK, asking)
    assert found.r.value == pytest.approx(1.4, rel=0.2)
    assert found.tau.value == pytest.approx(tau(0.7, 4), rel=0.5)
