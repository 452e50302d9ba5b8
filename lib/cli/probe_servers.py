"""c, or the cost of a round, from two running servers."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lib.cli.output import JsonFlag, one_line_errors, show
from lib.errors import InputError

if TYPE_CHECKING:
    from lib.probe.result import Interval, Probe
    from lib.probe.server_round import Round

_MOST_PROMPTS = 2**20  # bytes


@one_line_errors
def probe_servers(
    target_url: Annotated[str, typer.Option(help="The target served without speculation.")],
    draft_url: Annotated[str, typer.Option(help="The drafter served alone: measures c.")] = "",
    spec_url: Annotated[
        str, typer.Option(help="The target served with speculation: measures a round.")
    ] = "",
    target_model: Annotated[str, typer.Option(help="Model to ask for; else the first.")] = "",
    draft_model: Annotated[str, typer.Option(help="As --target-model, of --draft-url.")] = "",
    spec_model: Annotated[str, typer.Option(help="As --target-model, of --spec-url.")] = "",
    short: Annotated[int, typer.Option(help="Tokens of a short answer.")] = 16,
    long: Annotated[int, typer.Option(help="Tokens of a long answer.")] = 144,
    repeats: Annotated[int, typer.Option(help="How often both are asked, at least 5.")] = 12,
    max_seconds: Annotated[int, typer.Option(help="Bound of the whole measurement.")] = 600,
    prompts: Annotated[
        Path | None, typer.Option(help="Your own prompts, one a line; else those of Draftworth.")
    ] = None,
    gpu: Annotated[str, typer.Option(help="GPU that both servers run on.")] = "",
    dtype: Annotated[str, typer.Option(help="Data type of both models' weights.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Time two OpenAI-compatible servers: c with --draft-url, R = tau / S with --spec-url.

    Asked are this machine's own ports and the servers of DRAFTWORTH_MONITOR_HOSTS, with the token
    in DRAFTWORTH_TOKEN where it is set.
    """
    from lib.addresses import listed
    from lib.probe.asking import Asking
    from lib.probe.completions import TOKEN, Server
    from lib.probe.result import to_json
    from lib.probe.server_round import measure_round
    from lib.probe.servers import measure_c

    if bool(draft_url) == bool(spec_url):
        raise InputError("give one of --draft-url (measures c) and --spec-url (measures a round)")
    token = os.environ.get(TOKEN, "")
    target = Server(target_url, target_model, token)
    asking = Asking(
        short=short,
        long=long,
        repeats=repeats,
        max_seconds=max_seconds,
        prompts=_prompts(prompts),
        gpu=gpu,
        dtype=dtype,
    )
    allowed = listed(loopback=True)
    if draft_url:
        probe = measure_c(
            target, Server(draft_url, draft_model, token), allowed, asking, _say_progress
        )
        if as_json:
            typer.echo(to_json(probe))
        else:
            show(_of_probe(probe), as_json)
        return
    found = measure_round(
        target, Server(spec_url, spec_model, token), allowed, asking, _say_progress
    )
    show(found.document() if as_json else _of_round(found), as_json)


def _prompts(path: Path | None) -> tuple[str, ...]:
    if path is None:
        return ()
    try:
        if path.stat().st_size > _MOST_PROMPTS:
            raise InputError(f"--prompts {path.name}: larger than 1 MiB; leave out the rest")
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise InputError(
            f"--prompts {path.name}: no text file that can be read; one prompt a line is needed"
        ) from None
    found = tuple(line for line in lines if line.strip())
    if not found:
        raise InputError(f"--prompts {path.name}: holds no prompt; one a line is needed")
    return found


def _say_progress(done: int, of: int, what: str) -> None:
    if sys.stderr.isatty():
        typer.echo(f"\r{done} of {of}, {what}   ", nl=done == of, err=True)


def _of_probe(probe: "Probe") -> dict[str, Any]:
    return {
        "c": _between(probe.c),
        "target": f"{probe.setup.target}, {probe.t_target_ms:.4g} ms a step",
        "draft": f"{probe.setup.draft}, {probe.t_draft_ms:.4g} ms a step",
        "context": f"{probe.setup.context:,} tokens",
        "hosts": probe.setup.host,
        "notes": list(probe.warnings),
    }


def _of_round(found: "Round") -> dict[str, Any]:
    return {
        "R": _between(found.r),
        "tau": _between(found.tau),
        "S": _between(found.speedup),
        "round": f"{found.round_ms:.4g} ms, {found.rounds:,} rounds, {found.tokens:,} tokens",
        "plain step": f"{found.plain_ms:.4g} ms",
        "hosts": found.host,
        "notes": list(found.warnings),
    }


def _between(found: "Interval") -> str:
    if found.low is None:
        return f"{found.value:.4g}"
    return f"{found.value:.4g} ({found.low:.4g} to {found.high:.4g})"
