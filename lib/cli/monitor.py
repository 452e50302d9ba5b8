"""What a running server does now: windows of its own counters."""

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lib.cli.output import JsonFlag, one_line_errors, show

if TYPE_CHECKING:
    from lib.run import Slo
    from lib.serving.windows import Window


@one_line_errors
def monitor(
    url: Annotated[str, typer.Argument(help="The server, as http://host:8000.")],
    seconds: Annotated[float, typer.Option("--for", help="Seconds to watch it.")] = 60.0,
    every: Annotated[float, typer.Option(help="Seconds of a window.")] = 5.0,
    slo: Annotated[
        str, typer.Option(help="Limits of each request, as ttft_ms=500,tpot_ms=40: goodput.")
    ] = "",
    as_json: JsonFlag = False,
) -> None:
    """Watch a server's metrics: tau, alpha, tokens per second, what runs, window by window.

    Asked are this machine's own ports and the servers of DRAFTWORTH_MONITOR_HOSTS, with the token
    in DRAFTWORTH_TOKEN where it is set.
    """
    from lib.addresses import listed
    from lib.probe.completions import TOKEN
    from lib.run import Slo
    from lib.serving.scraping import Endpoint, watch
    from lib.serving.windows import total

    endpoint = Endpoint(url, listed(loopback=True), os.environ.get(TOKEN, ""))
    objective = Slo.parse(slo) if slo else None
    windows = []
    for window in watch(endpoint, seconds, every, _say):
        windows.append(window)
        _say(f"{len(windows)}: {window.seconds:.3g} s, {_short(window)}")
    whole = total(windows)
    row = _row if as_json else _line
    parts = [{"label": p.label, **row(p)} for p in whole.parts] if len(whole.parts) > 1 else []
    last = row(whole) | (_good(whole, objective) if objective else {})
    show(
        {
            "engine": whole.engine,
            "windows": [row(w) for w in windows],
            **({"engines": parts} if parts else {}),
            "total": last if as_json else [last],
            "notes": list(whole.notes),
        },
        as_json,
    )


def _row(window: "Window") -> dict[str, Any]:
    c, alpha, made = window.counters, window.alpha, window.coverage
    return {
        "seconds": round(window.seconds, 3),
        "drafts": c.drafts,
        "tau": window.tau,
        "alpha": alpha and alpha.value,
        "alpha_low": alpha and alpha.low,
        "alpha_high": alpha and alpha.high,
        "alpha_method": alpha and alpha.method.value,
        "output_tps": window.output_tps,
        "running": window.gauges.running,
        "waiting": window.gauges.waiting,
        "kv_use": window.gauges.kv_use,
        "draft_tokens": c.draft_tokens,
        "accepted_tokens": c.accepted_tokens,
        "accepted_per_position": c.accepted_per_position,
        "output_tokens": c.output_tokens,
        "completed": c.completed,
        "preemptions": c.preemptions,
        "ttft_ms": c.ttft and c.ttft.mean_ms,
        "tpot_ms": c.tpot and c.tpot.mean_ms,
        "ttft_ms_p99": c.ttft and c.ttft.quantile_ms(0.99),
        "tpot_ms_p99": c.tpot and c.tpot.quantile_ms(0.99),
        "speculated_share": made and made.share,
        "tokens_per_step": made and made.tokens_per_step,
        "speculation": window.speculation,
        "restarts": window.restarts,
    }


def _line(window: "Window") -> dict[str, Any]:
    found = _row(window)
    names = ("seconds", "tau", "alpha", "output_tps", "running", "waiting", "ttft_ms", "tpot_ms")
    return {name: found[name] for name in names}


def _good(window: "Window", objective: "Slo") -> dict[str, Any]:
    from lib.serving.good_requests import goodput

    good = goodput(window, objective)
    return {
        "goodput_rps_low": good and good.rps[0],
        "goodput_rps_high": good and good.rps[1],
        "goodput_undecided": list(good.undecided) if good else [],
    }


def _short(window: "Window") -> str:
    tau = "no draft" if window.tau is None else f"tau {window.tau:.4g}"
    return tau if window.output_tps is None else f"{tau}, {window.output_tps:,.4g} tok/s"


def _say(line: str) -> None:
    if sys.stderr.isatty():
        typer.echo(line, err=True)
