"""What a table calls an acceptance rate or length, and vLLM V0's counters in one."""

import pytest

from lib.results.acceptance_checks import counted_tau
from lib.results.reading import Reading, read
from lib.run import Run


def table(text: str, mapping: dict[str, str] | None = None) -> Reading:
    return read("t.csv", text.encode(), mapping)


def rates(header: str, *cells: str) -> tuple[list[float | None], dict[str, str]]:
    """Acceptance rates of a column, and the file's flags."""
    rows = "".join(f"{load},mtp:3,{100 * load},{cell}\n" for load, cell in enumerate(cells, 1))
    found = table(f"concurrency,arm,tok/s,{header}\n{rows}")
    return [r.accept_rate for r in found.runs], {f.code: f.message for f in found.flags}


ASSUMED, ABOVE = "percent_assumed", "rate_above_one"


@pytest.mark.parametrize(
    ("header", "cells", "expected", "flagged"),
    [
        ("acceptance rate", ["0.9", "0.61"], [0.9, 0.61], ""),
        ("acceptance rate", ["1", "0"], [1.0, 0.0], ""),
        ("acceptance rate %", ["0.9", "61.5"], [0.009, 0.615], ""),
        ("acceptance_pct", ["64.2", "2.4"], [0.642, 0.024], ""),
        ("acceptance rate (percent)", ["64.2", "12"], [0.642, 0.12], ""),
        ("acceptance rate", ["64.2%", "0.9 %"], [0.642, 0.009], ""),
        ("acceptance rate", ["64.2 pct", "12 percent"], [0.642, 0.12], ""),
        ("acceptance rate", ["64.2%", "0.61"], [0.642, 0.61], ""),
        ("acceptance rate", ["64.2%", "61"], [0.642, None], ABOVE),
        ("acceptance rate", ["64.2", "2.4"], [0.642, 0.024], ASSUMED),
        ("acceptance rate", ["64.2", ""], [0.642, None], ASSUMED),
        ("acceptance rate", ["2.4", "2.1"], [None, None], ABOVE),
        ("acceptance rate", ["0.642", "2.4"], [0.642, None], ABOVE),
        ("acceptance rate", ["0.9", "61.5"], [0.9, None], ABOVE),
    ],
)
def test_a_rate_above_one_is_no_percentage_of_itself(
    header: str, cells: list[str], expected: list[float | None], flagged: str
) -> None:
    """C01."""
    found, flags = rates(header, *cells)
    assert found == [None if e is None else pytest.approx(e) for e in expected]
    assert [c for c in (ASSUMED, ABOVE) if c in flags] == ([flagged] if flagged else [])


def test_a_length_called_a_rate_says_the_way_out() -> None:
    """C01: trtllm-bench calls output tokens over iterations a rate."""
    found = table(
        "engine,arm,concurrency,output_tps,acceptance rate\n"
        "TRT-LLM,eagle3:3,8,1000,2.4\nvLLM,eagle3:3,8,1010,0.642\n"
    )
    assert [r.accept_rate for r in found.runs] == [None, 0.642]
    messages = {f.code: f.message for f in found.flags}
    assert messages[ABOVE].startswith("acceptance rate 2.4 is above 1: a length, or a percentage?")
    assert "say % in the header or call it acceptance length" in messages[ABOVE]


def test_a_percentage_beyond_all_is_dropped() -> None:
    found, flags = rates("acceptance rate %", "240", "24")
    assert found == [None, pytest.approx(0.24)]
    assert "impossible_value" in flags


V0 = {"drafted": "13311", "accepted": "8547", "k": "3"}


def v0(**more: str) -> tuple[Run, list[str]]:
    cells = {"concurrency": "8", "method": "eagle", "tok/s": "900", **V0, **more}
    found = table(f"{','.join(cells)}\n{','.join(cells.values())}\n")
    (run,) = found.runs
    return run, [f.code for f in found.flags]


@pytest.mark.parametrize("header", ["emitted", "emitted tokens", "num_emitted_tokens"])
def test_counters_of_v0(header: str) -> None:
    """C01: tau = emitted / (drafted / k), not 1 + its rate times k."""
    run, codes = v0(**{header: "10616", "acceptance rate": "0.642"})
    assert counted_tau(run) == pytest.approx(2.393, abs=5e-4)
    assert (run.output_tokens, run.draft_tokens, run.drafts) == (10616, 13311, 4437)
    assert run.accepted_tokens == 10616 - 4437
    assert {"accepted_by_emitted", "acceptance_in_doubt"} <= set(codes)


def test_emitted_tokens_that_agree_change_nothing() -> None:
    run, codes = v0(emitted="13000")
    assert (run.drafts, run.accepted_tokens) == (None, 8547)
    assert "accepted_by_emitted" not in codes


@pytest.mark.parametrize(
    "header",
    [
        *("output tokens", "generated tokens", "generated", "total completion tokens"),
        *("completion tokens", "total_generated_tokens"),
    ],
)
def test_output_tokens_by_other_names_are_taken_as_they_are(header: str) -> None:
    run, _ = v0(**{header: "10616"})
    assert (run.output_tokens, run.accepted_tokens, run.drafts) == (10616, 8547, None)


def length(headers: str, cells: str) -> list[str]:
    found = table(f"concurrency,tok/s,acceptance length,{headers}\n8,900,1.92,{cells}\n")
    return [f.message for f in found.flags if f.code == "bonus_in_doubt"]


@pytest.mark.parametrize(
    ("headers", "cells", "doubted"),
    [
        ("arm", "eagle:3", True),
        ("arm,engine", "eagle:3,vLLM", True),
        ("arm,engine", "eagle:3,SGLang", False),
        ("arm,engine", "eagle:3,TensorRT-LLM", False),
        ("arm", "off", False),
        ("arm", "eagle:1", False),  # above K: the bonus token is in it
        ("arm,acceptance rate", "eagle:3,0.307", False),  # 1 + 3 x 0.307
        ("arm,accepted,drafts", "eagle:3,920,1000", False),
    ],
)
def test_a_length_without_counts_may_lack_the_bonus_token(
    headers: str, cells: str, doubted: bool
) -> None:
    """C15."""
    text = "acceptance length 1.92 is read with the bonus token in it; add 1 where your engine "
    assert length(headers, cells) == ([f"{text}leaves it out"] if doubted else [])


def test_many_lengths_are_doubted_once() -> None:
    rows = "".join(f"{n},900,eagle:3,1.9{n}\n" for n in range(1, 5))
    found = table(f"concurrency,tok/s,arm,acceptance length\n{rows}")
    (message,) = [f.message for f in found.flags if f.code == "bonus_in_doubt"]
    assert message.startswith("acceptance length 1.91 (and 3 others) is read with")
