"""Acceptance from lines of a server's log: vLLM's, as it was and as it is, and SGLang's."""

import re
from collections.abc import Sequence
from statistics import fmean

from lib.errors import InputError
from lib.run import Run, SpecState

_VLLM = re.compile(
    r"Accepted: (?P<accepted>\d{1,15}) tokens?, Drafted: (?P<drafted>\d{1,15}) tokens?, "
    r"Per-position acceptance rate: (?P<rates>[\d.]+(?:, [\d.]+)*)"
)
_VLLM_V0 = re.compile(
    r"Number of speculative tokens: (?P<k>\d{1,2}), Number of accepted tokens: "
    r"(?P<matches>\d{1,15}), Number of draft tokens: (?P<drafted>\d{1,15}), Number of emitted "
    r"tokens: (?P<emitted>\d{1,15})"
)
_SGLANG = re.compile(r"accept len: (?P<length>\d{1,3}(?:\.\d{1,9})?)")

MATCHES = (
    "matches after a rejection count as accepted in vLLM V0 ({matches:,} here): emitted tokens "
    "over draft tokens / K decide"
)
MEAN = "the mean of SGLang's lines, each alike: the length is truth, its rate has two meanings"


def read(text: str, name: str) -> tuple[Run, str, str] | None:
    """The run that the log lines of a text describe, what they are, and a remark (or "").

    vLLM's lines are intervals and are summed; those of V0 count since the server started, so the
    last decides; SGLang's are averaged. None where the text has none of them. Raises InputError.
    """
    if lines := list(_VLLM.finditer(text)):
        return _vllm(lines, name), _lines(lines), ""
    if lines := list(_VLLM_V0.finditer(text)):
        remark = MATCHES.format(matches=int(lines[-1]["matches"]))
        return _vllm_v0(lines[-1], name), "vLLM V0, the last log line", remark
    if lines := list(_SGLANG.finditer(text)):
        lengths = [float(line["length"]) for line in lines]
        run = Run(
            run_id=name,
            label=name,
            engine="SGLang",
            spec_state=SpecState.ON,
            accept_length=fmean(lengths),
        )
        return run, f"SGLang, {_lines(lines)}", MEAN
    return None


def _lines(lines: Sequence[re.Match[str]]) -> str:
    return f"{len(lines)} log line{'' if len(lines) == 1 else 's'}"


def _vllm(lines: Sequence[re.Match[str]], name: str) -> Run:
    """Intervals summed: the rates by position times the drafts of each."""
    rates = [[float(r) for r in line["rates"].split(", ")] for line in lines]
    k = len(rates[0])
    if any(len(r) != k for r in rates):
        raise InputError("log lines of different draft lengths: paste those of one server")
    drafted, accepted = (sum(int(line[key]) for line in lines) for key in ("drafted", "accepted"))
    drafts = [int(line["drafted"]) / k for line in lines]
    positions = tuple(
        round(sum(r[i] * n for r, n in zip(rates, drafts, strict=True))) for i in range(k)
    )
    return Run(
        run_id=name,
        label=name,
        engine="vLLM",
        spec_state=SpecState.ON,
        num_speculative_tokens=k,
        drafts=round(sum(drafts)),
        draft_tokens=drafted,
        accepted_tokens=accepted,
        accepted_per_position=positions,
    )


def _vllm_v0(line: re.Match[str], name: str) -> Run:
    """Rounds are draft tokens over K; what a round emitted beyond its bonus token was accepted."""
    k, drafted, emitted = (int(line[key]) for key in ("k", "drafted", "emitted"))
    drafts = drafted // k if k else 0
    if not drafts <= emitted <= drafts * (k + 1) or not drafts:
        raise InputError(
            f"vLLM V0 line: {emitted:,} emitted tokens in {drafts:,} rounds of {k} drafts; 1 to "
            f"{k + 1} a round are possible: paste the whole line as it was printed"
        )
    return Run(
        run_id=name,
        label=name,
        engine="vLLM",
        spec_state=SpecState.ON,
        num_speculative_tokens=k,
        drafts=drafts,
        draft_tokens=drafted,
        accepted_tokens=emitted - drafts,
    )
