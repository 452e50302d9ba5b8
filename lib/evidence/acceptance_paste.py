"""Acceptance from what a person pastes or types: metrics text, a log line, histograms, a result."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lib.errors import DraftworthError, InputError
from lib.estimate import Basis
from lib.evidence import acceptance_logs
from lib.evidence.acceptance import Acceptance, of_requests, of_run
from lib.results import exposition, parsing, reading
from lib.results.findings import LARGEST_COUNT
from lib.results.tools import prometheus
from lib.run import Run, SpecState
from lib.theory import mixing

MOST_CHARACTERS = 4_000_000
MOST_POSITIONS = 64
PASTED = "pasted text"
# A last round may accept more than was still wanted.
SLACK = 0.02
MORE = (
    "more was emitted in drafted rounds than generated: counters of one window? vLLM V0 counts "
    "matches after a rejection as accepted: paste its log line as text"
)
_HISTOGRAM = "acceptance_histogram"
_BY_LENGTH = "acceptance_histogram_by_draft_length"
_BARE = re.compile(r"\s*\d{1,15}(?:[\s,]+\d{1,15}){1,64}\s*")


@dataclass(frozen=True)
class Pasted:
    """One acceptance of a text, with what names it (a model, an arm)."""

    label: str
    acceptance: Acceptance


def read(text: str) -> tuple[Pasted, ...]:
    """What a text says of acceptance.

    It may be what /metrics answers (two scrapes: the window between them), lines of vLLM's or
    SGLang's log, `acceptance_histogram` values (a list, or vLLM's per-request JSON, one object a
    line), or one result file. Raises DraftworthError that says what can be read.
    """
    if not text.strip():
        raise InputError("nothing pasted: paste /metrics text, log lines, histograms or a result")
    if len(text) > MOST_CHARACTERS:
        raise InputError(
            f"{len(text):,} characters pasted: up to {MOST_CHARACTERS:,} are read here; drop the "
            "file on the results page"
        )
    if found := _log_lines(text):
        return (found,)
    if exposition.looks_like_exposition(text):
        findings = prometheus.find_text(PASTED, text, "")
        return _of_runs(findings.runs, [f.message for f in findings.flags])
    if requests := list(_histograms(_values(text))):
        label = f"{len(requests):,} request{'' if len(requests) == 1 else 's'}"
        return (Pasted(label, of_requests(requests, f"{PASTED}: {label}")),)
    try:
        runs = reading.read("pasted.json", text.encode("utf-8", "replace"), keep=False).runs
    except DraftworthError:
        runs = ()
    if runs:
        return _of_runs(runs, [])
    raise InputError(
        "nothing about acceptance found: paste /metrics text, vLLM's or SGLang's log lines, "
        "acceptance_histogram values or one result file"
    )


def _of_runs(runs: Sequence[Run], notes: Sequence[str]) -> tuple[Pasted, ...]:
    found = []
    for run in runs:
        acceptance = of_run(run)
        if acceptance is not None:
            label = " · ".join(filter(None, (run.target, run.engine, run.arm))) or PASTED
            remarks = tuple(dict.fromkeys((*acceptance.remarks, *notes)))
            found.append(Pasted(label, replace(acceptance, source=PASTED, remarks=remarks)))
    if not found:
        said = f" ({notes[0]})" if notes else ""
        raise InputError(f"no drafts are counted in this text{said}")
    return tuple(found)


def _log_lines(text: str) -> Pasted | None:
    found = acceptance_logs.read(text, PASTED)
    acceptance = of_run(found[0]) if found else None
    if found is None or acceptance is None:
        return None
    remarks = (*acceptance.remarks, *filter(None, (found[2],)))
    return Pasted(found[1], replace(acceptance, source=PASTED, remarks=remarks))


def _values(text: str) -> tuple[object, ...]:
    if _BARE.fullmatch(text):
        return ([int(n) for n in re.split(r"[\s,]+", text.strip())],)
    try:
        return parsing.parse_json(PASTED, text.encode("utf-8", "replace")).values
    except DraftworthError:
        return ()


def _histograms(values: Sequence[object]) -> Iterator[Mapping[int, Sequence[int]]]:
    """Each request's histograms by draft length, wherever they stand in the values."""
    waiting = list(reversed(values))
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if found := _request(value):
                yield found
            else:
                waiting += reversed(list(value.values()))
        elif isinstance(value, list):
            if whole := _counts(value):
                yield {len(whole) - 1: whole}
            else:
                waiting += reversed(value)


def _request(record: Mapping[str, object]) -> Mapping[int, Sequence[int]] | None:
    by_length = record.get(_BY_LENGTH)
    if isinstance(by_length, dict):
        found = {g: c for k, v in by_length.items() if (g := _length(k)) and (c := _counts(v))}
        if found:
            return found
    whole = _counts(record.get(_HISTOGRAM))
    if not whole:
        return None
    return {_length(record.get("num_spec_tokens")) or len(whole) - 1: whole}


def _length(value: object) -> int | None:
    """A draft length that can be, from JSON; else None."""
    number = parsing.as_count(value)
    return number if number and number <= MOST_POSITIONS else None


def _counts(value: object) -> list[int]:
    """A list of 2 to 65 counts, index = accepted drafts; else empty."""
    if not isinstance(value, list) or not 2 <= len(value) <= MOST_POSITIONS + 1:
        return []
    whole = [n for n in value if isinstance(n, int) and not isinstance(n, bool)]
    counts = [n for n in whole if 0 <= n <= LARGEST_COUNT]
    return counts if len(counts) == len(value) and any(counts) else []


@dataclass(frozen=True)
class Typed:
    """Counters as typed into the form; None or empty is not stated."""

    drafts: int | None = None
    draft_tokens: int | None = None
    accepted: int | None = None
    generated: int | None = None
    gamma: int | None = None
    positions: str = ""
    method: str = ""
    topk: int = 1

    def acceptance(self) -> Acceptance:
        """What the counters say. Raises InputError that names what is missing or impossible."""
        positions = _positions(self.positions)
        accepted = sum(positions) if self.accepted is None and positions else self.accepted
        if accepted is None:
            raise InputError("accepted: type the accepted tokens, in total or by position")
        if self.draft_tokens is not None and accepted > self.draft_tokens:
            raise InputError(
                f"accepted = {accepted:,}: at most the {self.draft_tokens:,} drafted tokens"
            )
        if positions and sum(positions) != accepted:
            raise InputError(
                f"accepted by position adds up to {sum(positions):,}, accepted says {accepted:,}: "
                "leave one out"
            )
        gamma = self.gamma or (len(positions) if positions else None)
        run = Run(
            run_id="typed",
            label="counters as typed",
            spec_state=SpecState.ON,
            drafts=self.drafts,
            draft_tokens=self.draft_tokens,
            accepted_tokens=accepted,
            accepted_per_position=positions or None,
            output_tokens=self.generated,
            num_speculative_tokens=gamma,
            draft_method=self.method.strip() or None,
            draft_topk=self.topk,
        )
        found = of_run(run, Basis.ASSUMED)
        if found is None:
            raise InputError(
                "rounds: type the drafts (rounds), or the generated tokens beside the drafted ones"
            )
        more = self.generated is not None and (found.tokens or 0) > self.generated * (1 + SLACK)
        return replace(
            found,
            source="counters as typed",
            remarks=found.remarks + ((MORE,) if more else self._share()),
            untrusted=found.untrusted or more,
        )

    def _share(self) -> tuple[str, ...]:
        """What is to be said where speculation made a part of the output only."""
        if not self.drafts or not self.generated or self.accepted is None:
            return ()
        if self.drafts + self.accepted > self.generated:
            return ()
        part = mixing.coverage(self.drafts, self.accepted, self.generated)
        if part.share >= mixing.FEW_DRAFTED:
            return ()
        return (
            f"speculation made {100 * part.share:.0f} % of the output: over all steps "
            f"{part.tokens_per_step:.4g} tokens a step",
        )


def _positions(text: str) -> tuple[int, ...]:
    words = re.split(r"[\s,;/]+", text.strip()) if text.strip() else []
    try:
        counts = tuple(int(w) for w in words)
    except ValueError:
        raise InputError(
            f"accepted by position = {text[:40]}: whole counts with blanks between, as 477 319 195"
        ) from None
    if any(n < 0 for n in counts) or len(counts) > MOST_POSITIONS:
        raise InputError(f"accepted by position: up to {MOST_POSITIONS} counts of at least 0")
    return counts
