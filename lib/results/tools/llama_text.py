"""Console text of llama.cpp: the speculative example's report, and a server's log."""

import re
from collections.abc import Mapping
from typing import Any

from lib.results.findings import Key
from lib.run import LoadKind

CONSOLE, LOG = "speculative example", "server log"
CONSOLE_KEYS = (
    Key("output_tokens", ("n_predict",)),
    Key("draft_tokens", ("n_drafted",)),
    Key("accepted_tokens", ("n_accept",)),
    Key("num_speculative_tokens", ("n_draft",), note="the most a round may draft"),
    Key("input_tokens", ("encoded … tokens",)),
    Key("tpot_ms_mean", ("decoded … tokens in … seconds",), 1e3, "s", "over the tokens"),
)
CONSOLE_FOLLOWS = (
    Key("load_kind", ("any",), note="a batch"),
    Key("offered_load", ("any",), note="of one"),
)
LOG_FOLLOWS = (Key("completed", ("eval time",), note="how many"),)
LOG_KEYS = (
    Key("output_tokens", ("eval time … / … tokens",), note="summed over requests"),
    Key("input_tokens", ("prompt eval time … / … tokens",), note="summed"),
    Key("tpot_ms_mean", ("eval time = … ms",), note="over its tokens, mean of requests"),
    Key("draft_tokens", ("draft acceptance rate … generated",), note="summed"),
    Key("accepted_tokens", ("draft acceptance rate … accepted",), note="summed"),
    Key("drafts", ("statistics … #gen drafts",), note="where its #gen tokens agree"),
)

_ASSIGNED = re.compile(r"\b(n_draft|n_predict|n_drafted|n_accept)\s*=\s*(\d{1,15})\b")
_PACE = re.compile(r"\b(encoded|decoded)\s+(\d{1,15}) tokens in\s+(\d+(?:\.\d+)?) seconds")
_ACCEPT = re.compile(r"\baccept\s*=\s*[\d.]+\s*%")
_EVAL = re.compile(
    r"(?<!\w)(prompt )?eval time\s*=\s*(\d+(?:\.\d+)?) ms /\s*(\d{1,15}) (?:tokens|runs)"
)
_RATE = re.compile(
    r"draft acceptance(?: rate)?\s*=\s*[\d.]+\s*\(\s*(\d{1,15}) accepted\s*/\s*(\d{1,15}) generated"
)
_STATISTICS = re.compile(
    r"statistics\s+([\w-]{1,40}):.{0,200}?#gen drafts\s*=\s*(\d{1,15}),.{0,100}?"
    r"#gen tokens\s*=\s*(\d{1,15}),\s*#acc tokens\s*=\s*(\d{1,15})"
)
_ANY = (_ASSIGNED, _PACE, _ACCEPT, _EVAL, _RATE, _STATISTICS)
LONGEST_LINE = 4096


def recognise_text(text: str) -> bool:
    """Whether a text holds the speculative example's report or a server's timings."""
    report = "n_drafted" in text and "n_accept" in text
    if report and {"n_drafted", "n_accept"} <= {m[1] for m in _ASSIGNED.finditer(text)}:
        return True
    log = "eval time" in text or "draft acceptance" in text
    return log and bool(_EVAL.search(text) or _RATE.search(text))


def kept_text(text: str) -> str:
    """The lines that are read: the others may hold prompts and answers."""
    lines = (line[:LONGEST_LINE] for line in text.splitlines())
    return "\n".join(m[0] for line in lines for p in _ANY if (m := p.search(line)))


def read(text: str) -> tuple[str, list[dict[str, Any]]]:
    """The level of a recognised text, and Run's fields of each run in it."""
    reports = _reports(text)
    if reports:
        return CONSOLE, [_report_fields(r) for r in reports]
    return LOG, [_log_fields(text)]


def _reports(text: str) -> list[dict[str, float]]:
    """The numbers of each report; the first line of the next one closes it."""
    found: list[dict[str, float]] = [{}]
    for line in text.splitlines():
        line = line[:LONGEST_LINE]
        pairs = [(m[1], float(m[2])) for m in _ASSIGNED.finditer(line)]
        for m in _PACE.finditer(line):
            pairs += [(m[1], float(m[2])), (f"{m[1]}_s", float(m[3]))]
        for name, value in pairs:
            if name in found[-1] and "n_accept" in found[-1]:
                found.append({})
            found[-1][name] = value
    return [r for r in found if {"n_drafted", "n_accept"} <= r.keys()]


def _report_fields(report: Mapping[str, float]) -> dict[str, Any]:
    tokens = report.get("n_predict", report.get("decoded"))
    seconds, decoded = report.get("decoded_s"), report.get("decoded")
    return {
        "tool_version": CONSOLE,
        "output_tokens": _whole(tokens),
        "input_tokens": _whole(report.get("encoded")),
        "draft_tokens": _whole(report["n_drafted"]),
        "accepted_tokens": _whole(report["n_accept"]),
        "num_speculative_tokens": _whole(report.get("n_draft")) or None,
        "tpot_ms_mean": 1e3 * seconds / decoded if seconds and decoded else None,
        "load_kind": LoadKind.BATCH,
        "offered_load": 1.0,
        "token_count": "server",
    }


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _log_fields(text: str) -> dict[str, Any]:
    """Sums over the requests of a log; a load is not stated in it."""
    prompts, paces, tokens, accepted, drafted = 0, [], 0, 0, 0
    asked = 0
    last: dict[str, tuple[int, int, int]] = {}
    for line in text.splitlines():
        line = line[:LONGEST_LINE]
        if m := _EVAL.search(line):
            if m[1]:
                prompts, asked = prompts + int(m[3]), asked + 1
            elif int(m[3]) > 0:
                tokens += int(m[3])
                paces.append(float(m[2]) / int(m[3]))
        if m := _RATE.search(line):
            accepted, drafted = accepted + int(m[1]), drafted + int(m[2])
        if m := _STATISTICS.search(line):
            last[m[1]] = (int(m[2]), int(m[3]), int(m[4]))
    counts = [sum(column) for column in zip(*last.values(), strict=True)]
    agree = bool(counts) and counts[1:] == [drafted, accepted]
    return {
        "tool_version": LOG,
        "output_tokens": tokens or None,
        "input_tokens": prompts if asked else None,
        "draft_tokens": drafted or None,
        "accepted_tokens": accepted if drafted else None,
        "drafts": counts[0] or None if agree else None,
        "tpot_ms_mean": sum(paces) / len(paces) if paces else None,
        "completed": len(paces) or None,
        "token_count": "server",
    }
