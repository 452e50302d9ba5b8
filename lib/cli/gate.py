"""A gate for continuous integration: has a candidate regressed against a baseline?"""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lib.cli.output import JsonFlag, StudyName, show
from lib.errors import DraftworthError, InputError, NotComparable, StudyNotFound

if TYPE_CHECKING:
    from lib.decision.regression import MetricVerdict, Regression, Tested
    from lib.evidence.acceptance_requests import ByRun
    from lib.evidence.gate import Matched
    from lib.run import Study

EXIT = {"pass": 0, "regressed": 1, "undecided": 3}


def gate(
    study: StudyName,
    baseline: Annotated[
        str, typer.Option(help="Runs: globs on labels or run ids, separated by commas.")
    ],
    candidate: Annotated[str, typer.Option(help="Runs that may not be worse, named likewise.")],
    max_regression: Annotated[
        str, typer.Option(help="How much worse still passes: 2% or 0.02.")
    ] = "2%",
    max_usd_per_million: Annotated[
        float | None, typer.Option(help="The most $ per 1M output tokens; needs --usd-per-hour.")
    ] = None,
    usd_per_hour: Annotated[
        float | None, typer.Option(help="$ per hour of the whole deployment, equal on both sides.")
    ] = None,
    override: Annotated[
        list[str] | None, typer.Option(help="A protocol field whose difference you override.")
    ] = None,
    accept_random: Annotated[
        bool, typer.Option("--accept-random", help="Price arms on random tokens; it is said.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Compare a candidate with a baseline: 0 passes, 1 regressed, 2 wrong usage, 3 undecided.

    Runs are matched by arm and load; the worst load decides each of $ per 1M tokens, TPOT, tau and
    the crossing. 1 means a regression beyond noise and nothing else: whatever keeps the gate from
    an answer (protocols that differ, a store in use) is 3.
    """
    try:
        share = _share(max_regression)
        made = _judged(
            study,
            (baseline, candidate),
            share,
            max_usd_per_million,
            usd_per_hour,
            frozenset(override or ()),
            accept_random,
        )
    except NotComparable as error:
        made = _plain(None, None, str(error))
        typer.echo(f"error: {error}", err=True)
    except DraftworthError as error:
        typer.echo(f"error: {error}", err=True)
        usage = isinstance(error, InputError | StudyNotFound)
        raise typer.Exit(2 if usage else EXIT["undecided"]) from None
    show(made, as_json)
    if code := EXIT[made["verdict"]]:
        raise typer.Exit(code)


def _share(text: str) -> float:
    """A share from `2%` or `0.02`. Raises InputError."""
    stated = text.strip()
    number = stated.removesuffix("%")
    try:
        value = float(number) / (100 if stated.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        hint = f"; {number} % is written {number}%" if stated == number and 1 <= value < 100 else ""
        raise InputError(f"--max-regression {text[:40]!r}: 0% to below 100%, as 2% or 0.02{hint}")
    return value


def _judged(
    name: str,
    sides: tuple[str, str],
    share: float,
    most_usd: float | None,
    usd_per_hour: float | None,
    overrides: frozenset[str],
    accept_random: bool,
) -> dict[str, Any]:
    from lib.cli.studies import named_study
    from lib.decision import regression
    from lib.evidence import gate as gates
    from lib.money.gate import at_most, in_dollars

    if most_usd is not None and usd_per_hour is None:
        raise InputError("--max-usd-per-million: --usd-per-hour of the deployment is needed too")
    if usd_per_hour is not None and not 0 < usd_per_hour < float("inf"):
        raise InputError(f"--usd-per-hour {usd_per_hour:g}: a number of $ above 0")
    found = named_study(name)
    runs = [
        gates.chosen(found, side, text)
        for side, text in zip(("baseline", "candidate"), sides, strict=True)
    ]
    matched = gates.match(found, runs[0], runs[1], overrides)
    checks = gates.checks(matched, _requests(found, matched))
    dollars = [in_dollars(c, usd_per_hour) for c in checks if c.name == "output_tps"]
    bound = () if most_usd is None else at_most(dollars, most_usd, accept_random)
    others = [c for c in checks if c.name != "output_tps"]
    return _plain(regression.judge(matched, [*dollars, *bound, *others], share), matched)


def _requests(found: "Study", matched: "Matched") -> "ByRun":
    """Counts of drafts by request, of the runs that have them."""
    from lib.results.store import Store

    if found.read_only:
        return {}
    store = Store.open()
    try:
        return store.request_acceptance(
            found.name, [r.run_id for c in matched.cells for r in c.runs]
        )
    finally:
        store.close()


def _plain(
    judged: "Regression | None", matched: "Matched | None", reason: str = ""
) -> dict[str, Any]:
    """The verdict as plain data; one that could not be reached has no metrics, but a reason."""
    if matched and matched.not_measured:
        reason = f"the candidate was not measured: {', '.join(matched.not_measured)}"
    return {
        "verdict": judged.verdict.value if judged else "undecided",
        "metrics": [_metric(m) for m in judged.metrics] if judged else [],
        "split": asdict(judged.split) if judged and judged.split else None,
        "repeats_needed": judged.repeats_needed if judged else None,
        "reason": reason,
        "level": judged.level if judged else None,
        "differences": list(matched.differences) if matched else [],
        "not_recorded": list(matched.not_recorded) if matched else [],
        "notes": _notes(matched) if matched else [],
    }


def _notes(matched: "Matched") -> list[str]:
    said = [*matched.notes, matched.study.caveat, matched.study.note]
    return [note for note in said if note]


def _metric(metric: "MetricVerdict") -> dict[str, Any]:
    return {**_test(metric.deciding), "loads": [_test(t) for t in metric.tests]}


def _test(test: "Tested") -> dict[str, Any]:
    return {
        "name": test.name,
        "at": test.at,
        "baseline": test.baseline,
        "candidate": test.candidate,
        "ratio": test.ratio,
        "low": test.low,
        "high": test.high,
        "limit": test.limit,
        "verdict": test.verdict.value,
        "why": test.why,
        "repeats_needed": test.repeats,
    }
