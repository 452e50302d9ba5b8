import json
from typing import Any

import pytest

from lib.errors import UnknownFormat
from lib.results.acceptance_checks import counted_tau
from lib.results.reading import read
from lib.results.tools import llama_server
from lib.run import LoadKind, Run, SpecState


def response(tokens: int, drafted: int, accepted: int, **timings: Any) -> dict[str, Any]:
    drafts = {"draft_n": drafted, "draft_n_accepted": accepted} if drafted else {}
    return {
        "model": "/home/someone/models/target.gguf",
        "system_fingerprint": "b5000-0a1b2c3d",
        "choices": [{"message": {"content": "a secret answer"}}],
        "usage": {"prompt_tokens": 30, "completion_tokens": tokens},
        "timings": {"prompt_n": 10, "cache_n": 20, "prompt_ms": 50.0, "predicted_n": tokens}
        | {"predicted_ms": tokens * 10.0, "predicted_per_second": 100.0}
        | drafts
        | timings,
    }


def one(*documents: dict[str, Any]) -> Run:
    data = b"\n".join(json.dumps(d).encode() for d in documents)
    (run,) = read("r.jsonl", data).runs
    return run


def console(predicted: int, drafted: int, accepted: int, limit: int = 5) -> str:
    return (
        "encoded   25 tokens in    0.500 seconds, speed:   50.000 t/s\n"
        f"decoded  {predicted} tokens in    {predicted / 50:.3f} seconds, speed:   50.000 t/s\n\n"
        f"n_draft   = {limit}\nn_predict = {predicted}\nn_drafted = {drafted}\n"
        f"n_accept  = {accepted}\naccept    = {100 * accepted / drafted:.3f}%\n"
    )


def test_responses_are_one_run() -> None:
    found = read(
        "r.jsonl", b"\n".join(json.dumps(response(100, 90, 60)).encode() for _ in range(3))
    )
    (run,) = found.runs
    assert (run.output_tokens, run.draft_tokens, run.accepted_tokens) == (300, 270, 180)
    assert run.drafts == 120, "tokens less accepted, as nothing counts drafts"
    assert (run.spec_state, run.engine) == (SpecState.ON, "llama.cpp")
    assert (run.target, run.build) == ("target.gguf", "b5000-0a1b2c3d")
    assert (run.completed, run.input_tokens, run.tpot_ms_mean) == (3, 90, 10.0)
    assert (run.output_tps, run.load_kind) == (None, None), "a request's own rate is not ours"
    assert "rounds_inferred" in {f.code for f in found.flags}
    assert found.requests[run.run_id]["output_tokens"].to_pylist() == [100, 100, 100]
    assert b"secret" not in (run.extra or "").encode()


def test_without_draft_counts_nothing_is_said_of_speculation() -> None:
    run = one(response(100, 0, 0))
    assert (run.spec_state, run.drafts, run.draft_tokens) == (SpecState.UNKNOWN, None, None)
    assert run.input_tokens == 30


def test_bare_timings_and_settings() -> None:
    bare = {"prompt_n": 10, "predicted_n": 8, "predicted_per_second": 50.0}
    assert one(bare).tpot_ms_mean == pytest.approx(20.0)
    settings = {"speculative.n_max": 16, "temperature": 0.0, "seed": 4294967295}
    run = one(response(100, 90, 60) | {"generation_settings": settings})
    assert (run.num_speculative_tokens, run.temperature, run.seed) == (16, 0.0, None)


@pytest.mark.parametrize(
    ("case", "tokens", "drafted", "accepted", "rounds", "tau"),
    [
        ("C27 A", 200, 198, 132, 68, 2.941),
        ("C27 B", 200, 231, 121, 79, 2.532),
        ("C21", 261, 260, 208, 53, 4.92),
        ("C45", 371, 912, 313, 58, 6.40),
    ],
)
def test_rounds_are_tokens_less_accepted(
    case: str, tokens: int, drafted: int, accepted: int, rounds: int, tau: float
) -> None:
    run = one(response(tokens, drafted, accepted))
    assert run.drafts == rounds, case
    assert counted_tau(run) == pytest.approx(tau, abs=0.006)
    (of_console,) = read("log.txt", console(tokens, drafted, accepted).encode()).runs
    assert (of_console.drafts, of_console.output_tokens) == (rounds, tokens)


def test_c43_a_rate_without_tokens_asks_for_rounds() -> None:
    """1304 drafted, 1111 accepted: tau is 3.56 at K = 3 and 1.85 at depth 1; nothing says which."""
    run = one({"timings": {"draft_n": 1304, "draft_n_accepted": 1111}})
    assert (run.draft_tokens, run.accepted_tokens) == (1304, 1111)
    assert (run.drafts, run.num_speculative_tokens) == (None, None)
    assert counted_tau(run) is None


def test_console_text() -> None:
    found = read("log.txt", f"some generated text\n{console(261, 260, 208)}".encode())
    (run,) = found.runs
    assert (run.input_tokens, run.tpot_ms_mean) == (25, pytest.approx(20.0))
    assert (run.load_kind, run.offered_load) == (LoadKind.BATCH, 1.0)
    assert run.num_speculative_tokens == 5
    assert run.output_tps is None
    two = read("log.txt", (console(261, 260, 208) + console(200, 198, 132)).encode())
    assert [r.accepted_tokens for r in two.runs] == [208, 132]
    assert len({r.run_id for r in two.runs}) == 2


LOG = (
    "slot print_timing: id  0 | task 1 |\n"
    "prompt eval time =     646.45 ms /   100 tokens (    6.46 ms per token)\n"
    "       eval time =     200.00 ms /    20 tokens (   10.00 ms per token)\n"
    "      total time =     846.45 ms /   120 tokens\n"
    "draft acceptance rate = 0.60000 (   12 accepted /    20 generated)\n"
    "statistics draft: #calls(b,g,a) = 1 8 8, #gen drafts = 7, #acc drafts = 6, "
    "#gen tokens = 20, #acc tokens = 12, dur(b,g,a) = 0.1, 2.0, 0.1 ms\n"
)


def test_a_servers_log_counts_drafts() -> None:
    (run,) = read("server.log", LOG.encode()).runs
    assert (run.drafts, run.draft_tokens, run.accepted_tokens) == (7, 20, 12), "a counter wins"
    assert (run.output_tokens, run.input_tokens, run.completed) == (20, 100, 1)
    assert run.tpot_ms_mean == 10.0


def test_statistics_of_other_requests_do_not_count() -> None:
    found = read("server.log", LOG.replace("#gen tokens = 20", "#gen tokens = 99").encode())
    (run,) = found.runs
    assert run.drafts == 8, "tokens less accepted"
    assert "rounds_inferred" in {f.code for f in found.flags}


def test_what_is_kept_of_a_console_text() -> None:
    kept = llama_server.kept_text(f"the answer to a private question\n{console(261, 260, 208)}")
    assert "private" not in kept
    assert "n_drafted = 260" in kept


def speed_bench(**changed: Any) -> dict[str, Any]:
    def result(category: str, **own: Any) -> dict[str, Any]:
        return {
            "id": "1",
            "category": category,
            "ok": True,
            "turns": 1,
            "latency_s": 2.0,
            "prompt_tokens": 10,
            "completion_tokens": 100,
            "draft_n": 90,
            "draft_n_accepted": 60,
            "predicted_ms": 1000.0,
            "error": None,
        } | own

    failed = {"ok": False, "completion_tokens": 0, "draft_n": 0, "error": "http://host/ refused"}
    return {
        "config": {
            "url": "secret-host:8080",
            "model": "target",
            "bench": "qualitative",
            "category": "all",
            "osl": 1024,
            "concurrency": 2,
            "extra_inputs": {"temperature": 0},
        },
        "selected_samples": 4,
        "completed_samples": 3,
        "failed_samples": 1,
        "summary": [],
        "results": [
            result("coding"),
            result("coding", turns=2),
            result("math"),
            result("math", **failed),
        ],
    } | changed


def test_speed_bench_client() -> None:
    found = read("s.json", json.dumps(speed_bench()).encode())
    coding, math = found.runs
    assert (coding.domain, math.domain) == ("coding", "math")
    assert (coding.dataset, coding.target) == ("SPEED-Bench qualitative", "target")
    assert (coding.load_kind, coding.offered_load) == (LoadKind.CONCURRENCY, 2.0)
    assert (coding.output_tokens, coding.draft_tokens, coding.drafts) == (200, 180, 80)
    assert coding.tpot_ms_mean == 10.0
    assert coding.e2e_ms_mean is None, "a conversation's latency is no request's"
    assert math.e2e_ms_mean == 2000.0
    assert (math.completed, math.failed, math.num_prompts) == (1, 1, 2)
    assert (coding.temperature, coding.output_tps) == (0.0, None)
    assert "secret-host" not in str(coding) + str([f.message for f in found.flags])


def test_speed_bench_of_a_plain_server() -> None:
    document = speed_bench()
    for result in document["results"]:
        result |= {"draft_n": 0, "draft_n_accepted": 0}
    runs = read("s.json", json.dumps(document).encode()).runs
    assert all(r.spec_state is SpecState.UNKNOWN and r.drafts is None for r in runs)


def test_other_files_are_not_claimed() -> None:
    assert not llama_server.recognise([{"draft_n": 1, "draft_n_accepted": 1, "tok_s": 3}])
    assert not llama_server.recognise([{"timings": [1]}])
    assert not llama_server.recognise([[]])
    assert not llama_server.recognise_text("n_drafted and n_accept are words here")
    with pytest.raises(UnknownFormat):
        read("x.json", b'{"predicted_n": 5}')


def test_each_response_says_what_it_drafted_but_not_in_how_many_rounds() -> None:
    documents = (response(50, 0, 0), response(60, 40, 30))
    found = read("r.jsonl", b"\n".join(json.dumps(d).encode() for d in documents))
    table = found.requests[found.runs[0].run_id]
    assert table["draft_tokens"].to_pylist() == [None, 40]
    assert table["accepted_tokens"].to_pylist() == [None, 30]
    assert "drafts" not in table.column_names
