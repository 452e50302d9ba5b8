"""The path from screen to monitor, in the order of the work."""

from collections.abc import Sequence

from lib.decision.drafting import LOW, LowBatch, ScreenInputs, differing, screen_word
from lib.decision.judging import REPEATS_NEEDED, level
from lib.decision.states import Gate, Live, State, Verdict
from lib.estimate import Basis
from lib.evidence.findings import Findings
from lib.evidence.schedule import Schedule
from lib.money.pricing import PricedPair, Rate
from lib.run import RANDOM_TOKENS, Run, drafts_on_random_tokens
from lib.theory import walltime

SAME_PRICE = 0.005


def gates(
    findings: Findings,
    found: Verdict,
    screen: ScreenInputs | None,
    priced: Sequence[PricedPair],
    schedule: Schedule | str,
    low: LowBatch | None = None,
    rate: Rate | None = None,
    live: Live | None = None,
) -> tuple[Gate, ...]:
    """From acceptance and draft cost at low batch to the live server.

    `priced` are the pairs at the operating load; `schedule` is what the person's choices gave, or
    why there is none; `low` is what the study says of the drafter; `rate` is what a person pays
    now; `live` is what a watched server does, None where none answered lately.
    """
    return (
        _low_batch_gate(low),
        _screen_gate(screen, low),
        _load_gate(findings, found),
        _price_gate(findings, found, priced, rate),
        _schedule_gate(findings, found, schedule),
        _monitor_gate(live),
    )


def _low_batch_gate(low: LowBatch | None) -> Gate:
    title = "α, τ and c at low batch"
    if low is None:
        missing = "No run of this study counts acceptance: import one with the server's counters."
        return Gate(title, State.MISSING, "", None, missing, "acceptance")
    said = low.acceptance
    known = f"τ {said.tau.value:.2f}"
    if said.tau.low is not None and said.tau.high is not None:
        known += f" ({said.tau.low:.2f} to {said.tau.high:.2f}; {said.tau.method.value})"
    if said.alpha is not None:
        known += f", α {said.alpha.value:.3f}"
        if said.alpha.low is not None and said.alpha.high is not None:
            known += f" ({said.alpha.low:.3f} to {said.alpha.high:.3f}; {said.alpha.method.value})"
    known += f" of {low.arm} at {low.load:g}"
    cost = low.cost
    if cost is not None:
        known += f"; c {cost.value:.3g}, {cost.basis}: {cost.source}"
    gaps = []
    if low.stale:
        gaps.append(f"measured on {'; '.join(low.stale)}: measure again")
    if low.load > LOW:
        gaps.append(f"{low.load:g} is not low batch: count acceptance at {LOW} or fewer")
    if cost is None:
        gaps.append(
            "the draft cost c is not known: probe it, type it on the screen page, or "
            "measure three K"
        )
    elif cost.stale:
        gaps.append(f"c was probed on {'; '.join(cost.stale)}: due for re-measurement")
    elif cost.doubts:
        gaps.append(f"c is in doubt, {'; '.join(cost.doubts)}: probe it again")
    elif cost.basis is Basis.ASSUMED:
        gaps.append("the draft cost c is assumed: measure it on your target and drafter")
    if not low.by_request:
        gaps.append(
            "τ has no interval by request, and no gate passes without one: import records that "
            "count the drafts of each request"
        )
    if said.untrusted:
        gaps.extend(said.remarks[:1])
    text = "; ".join(gaps)
    text = f"{text[0].upper()}{text[1:]}." if text else ""
    page = "acceptance" if cost is not None and cost.settled else "probe"
    return Gate(title, low.state, f"{known}.", said.basis, text, page)


def _screen_gate(screen: ScreenInputs | None, low: LowBatch | None) -> Gate:
    title = "Screen"
    if low is not None and (s := low.speedup) is not None:
        state = screen_word(s) if low.state is State.PASSED else State.UNDECIDED
        return Gate(
            title,
            State.STALE if low.due else state,
            f"S = {s:.2f}× at low batch for the measured τ {low.acceptance.tau.value:.2f}, "
            f"γ {low.acceptance.gamma}, c {low.c:.3g}: {walltime.verdict(s).value}.",
            Basis.THEOREM,
            "" if low.state is State.PASSED else "It decides once the step before it has passed.",
            "screen",
        )
    if screen is None or screen.basis is Basis.PUBLISHED:
        missing = "The screen stands on a published example of other models: set your α, γ and c."
        return Gate(title, State.MISSING, "", None, missing, "screen")
    s = walltime.speedup(screen.alpha, screen.gamma, screen.c)
    measured = screen.basis is Basis.MEASURED
    return Gate(
        title,
        screen_word(s) if measured else State.UNDECIDED,
        f"S = {s:.2f}× at low batch for α {screen.alpha:g}, γ {screen.gamma}, c {screen.c:g}: "
        f"{walltime.verdict(s).value}. {screen.source}",
        Basis.THEOREM,
        "" if measured else "α and c are assumed: measure both on your target and drafter.",
        "screen",
    )


def _load_gate(findings: Findings, found: Verdict) -> Gate:
    if found.state is State.MISSING:
        missing = "Name the operating load, at the left."
    elif found.state is State.UNDECIDED and found.open_points:
        missing = f"State: {', '.join(found.open_points)}."
    elif found.state is State.UNDECIDED and found.multiplier is not None:
        missing = f"{REPEATS_NEEDED} or more repeats an arm at that load."
    else:
        missing = ""
    known = found.state is not State.MISSING
    return Gate(
        "A/B at your load",
        found.state,
        found.sentence if known else "",
        findings.study.basis if known else None,
        missing,
        "compare",
    )


def _price_gate(
    findings: Findings, found: Verdict, priced: Sequence[PricedPair], rate: Rate | None
) -> Gate:
    title = "$ per 1M tokens"
    mine = [p for p in priced if p.on.arm == found.arm]
    done = [(p, c) for p in mine if (c := p.complete) is not None]
    if not done:
        demand = findings.comparison.open_loop_note
        why = next((p.on.why_not or p.off.why_not for p in mine or priced), "")
        asked = ["name the operating load"] if found.state is State.MISSING else []
        text = ", ".join([*asked, why or ("" if priced else demand) or "type a $/GPU-h"])
        return Gate(title, State.MISSING, "", None, f"{text[0].upper()}{text[1:]}.", "price")
    pair, (off, on, saving) = done[0]
    state = _paid(found, pair)
    word = "less" if saving.value >= 0 else "more"
    slo_open = "unknown" in (pair.off.slo, pair.on.slo)
    missing = "SLO unknown: name one, or the price may rest on a missed one." if slo_open else ""
    missing = (
        f"{missing} {_on_random_tokens(_runs_at(findings, pair.on.arm, pair.on.load))}".strip()
    )
    if old := _old_price(findings, pair, rate):
        state, missing = State.STALE, old
    stated = rate is not None and rate.source and rate.source in off.source
    paid = f" $/GPU-h: {rate.source}." if rate is not None and stated else ""
    return Gate(
        title,
        state,
        f"{_usd(on.value)} instead of {_usd(off.value)} per 1M output tokens at "
        f"{pair.on.load:g}: {100 * abs(saving.value):.0f} % {word}.{paid}",
        on.basis,
        missing,
        "price",
    )


def _paid(found: Verdict, pair: PricedPair) -> State:
    """Whether M's interval, at the level of the verdict, clears the break-even."""
    m, bar = found.multiplier, pair.break_even_multiplier
    if m is None or m.low is None or m.high is None or bar is None:
        return State.UNDECIDED
    if m.low > bar:
        return State.PASSED
    return State.FAILED if m.high < bar else State.UNDECIDED


def _old_price(findings: Findings, pair: PricedPair, rate: Rate | None) -> str:
    """Why the price rests on a $/h recorded with the runs that is not the one typed; or empty."""
    runs = _runs_at(findings, pair.on.arm, pair.on.load, off=True)
    recorded = {r.usd_per_hour for r in runs}
    counts = {r.gpu_count for r in runs if r.gpu_count}
    only = next(iter(recorded), None) if len(recorded) == 1 else None
    if rate is None or rate.usd_per_gpu_hour is None or not only:
        return ""
    gpus = rate.gpu_count or (counts.pop() if len(counts) == 1 else None)
    if gpus is None or abs(rate.usd_per_gpu_hour * gpus / only - 1) <= SAME_PRICE:
        return ""
    dates = sorted(r.started_at for r in runs if r.started_at is not None)
    when = f" of {dates[-1]:%Y-%m-%d}" if dates else ""
    return (
        f"The $/h recorded with the runs{when}, {_usd(only)}, is used; you type "
        f"{_usd(rate.usd_per_gpu_hour * gpus)}: state it on the results page."
    )


def _on_random_tokens(runs: Sequence[Run]) -> str:
    """What an accepted price or schedule must still say; empty for real prompts."""
    return f"On {RANDOM_TOKENS}." if drafts_on_random_tokens(runs) else ""


def _runs_at(findings: Findings, label: str, load: float, *, off: bool = False) -> list[Run]:
    cells = [c for a in findings.arms if a.label == label for c in a.pairs.cells if c.load == load]
    return [r for c in cells for r in (c.off if off else c.on)]


def _usd(value: float) -> str:
    return f"${value:,.2f}" if value >= 1 else f"${value:.3g}"


def _schedule_gate(findings: Findings, found: Verdict, schedule: Schedule | str) -> Gate:
    title = "Schedule"
    judged = [r for a in findings.arms if a.label == found.arm for c in a.pairs.cells for r in c.on]
    arms = [r for r in findings.study.runs if r.schedule is not None]
    if arms and judged and (stale := differing(arms, judged)):
        known = f"{arms[0].arm} was measured as an arm of its own."
        missing = f"Measured on {'; '.join(stale)}: measure again."
        return Gate(title, State.STALE, known, findings.study.basis, missing, "compare")
    if arms and (measured := _measured_schedule(findings, found)) is not None:
        return measured
    if isinstance(schedule, str):
        return Gate(title, State.MISSING, "", None, schedule, "compare")
    if schedule.ranges is None:
        advice = next(iter(schedule.warnings), "No schedule is written.")
        return Gate(title, State.UNDECIDED, advice, Basis.DERIVED, "", "compare")
    ranges = ", ".join(
        f"K = {k} at batch {first}" + (f" to {last}" if last > first else "")
        for first, last, k in schedule.ranges
    )
    missing = schedule.blocked_export or "A hypothesis until it is measured as its own arm."
    random = _on_random_tokens(judged)
    return Gate(
        title,
        State.UNDECIDED,
        f"{ranges}.",
        Basis.DERIVED,
        f"{missing} {random}".strip(),
        "compare",
    )


def _measured_schedule(findings: Findings, found: Verdict) -> Gate | None:
    """A schedule that was measured at the operating load as an arm of its own."""
    wanted = level(findings)
    states = {"wins": State.PASSED, "loses": State.FAILED}
    for arm in findings.arms:
        point = arm.at(found.load)
        if point is None or not any(r.schedule for c in arm.pairs.cells for r in c.on):
            continue
        mark = point.mark(wanted)
        random = _on_random_tokens([r for c in arm.pairs.cells for r in c.on])
        return Gate(
            "Schedule",
            states.get(mark, State.UNDECIDED),
            f"{arm.label}, measured as its own arm: {point.multiplier:.2f}× at {point.load:g}.",
            findings.study.basis,
            f"{'' if mark in states else f'{mark.capitalize()}: repeat it.'} {random}".strip(),
            "compare",
        )
    return None


def _monitor_gate(live: Live | None) -> Gate:
    if live is None:
        missing = "After deploying, watch the server: its τ and TPOT beside these figures."
        return Gate("Monitor", State.MISSING, "", None, missing, "monitor")
    state = State.UNDECIDED if live.doubts else State.PASSED
    if live.alerts:
        state = State.FAILED
    said = " ".join((*live.alerts, *live.doubts))
    basis = Basis.MEASURED if live.said else None
    return Gate("Monitor", state, live.said, basis, said, "monitor")
