"""The command that times decode steps here: what drafting costs on this GPU."""

import re
import sys
import time
from typing import Annotated, Any

import typer

from lib.cli.output import JsonFlag, one_line_errors, show
from lib.errors import InputError, ProbeError
from lib.probe import architecture, place, worker
from lib.probe.result import Interval, Probe, to_json
from lib.probe.setup import CPU, LIMITS, MIN_SAMPLES, Dtype, Sampling, Setup

MODEL = "A row of --list, a local checkpoint folder, or a model id of the hub"
ON_CPU = ("tiny-target", "tiny-draft")
POLL_S = 0.1


def _range(name: str, text: str) -> Any:
    low, high = LIMITS[name]
    return typer.Option(help=f"{text}, {low} to {high:,}.")


@one_line_errors
def probe_command(
    target: Annotated[str, typer.Option(help=f"{MODEL} (on the CPU: {ON_CPU[0]}).")] = "",
    draft: Annotated[str, typer.Option(help=f"Likewise (on the CPU: {ON_CPU[1]}).")] = "",
    context: Annotated[int, _range("context", "Tokens in the KV cache of each request")] = 512,
    gamma: Annotated[int, _range("gamma", "Draft tokens a round")] = 5,
    batch: Annotated[int, _range("batch", "Requests in a step")] = 1,
    dtype: Annotated[
        Dtype | None, typer.Option(help="Default: bfloat16; on the CPU float32.")
    ] = None,
    device: Annotated[
        str, typer.Option(help="cuda, cuda:N, or cpu to check the method (default: cuda).")
    ] = "",
    samples: Annotated[int, _range("samples", "Samples of each step")] = MIN_SAMPLES,
    sampling: Annotated[Sampling, typer.Option(help="How a token is picked.")] = "argmax",
    max_seconds: Annotated[int, _range("max_seconds", "Most seconds it may take")] = 600,
    list_models: Annotated[
        bool, typer.Option("--list", help="List the models of known dimensions instead.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Measure c and v here: the times of a draft step and of verify passes on this GPU."""
    if list_models:
        show({"models": [_model(name) for name in architecture.names()]}, as_json)
        return
    if not place.has_torch():
        raise ProbeError(place.NO_TORCH)
    if not device:
        place.require_gpu()
    on_cpu = device == CPU
    if on_cpu:
        target, draft = target or ON_CPU[0], draft or ON_CPU[1]
    if not (target and draft):
        raise InputError("name --target and --draft: rows of --list, or checkpoints")
    setup = Setup(
        target=target,
        draft=draft,
        context=context,
        gamma=gamma,
        batch=batch,
        dtype=dtype or ("float32" if on_cpu else "bfloat16"),
        device=device or "cuda",
        sampling=sampling,
        samples=samples,
        max_seconds=max_seconds,
    )
    probe = _followed(worker.start(setup))
    if as_json:
        typer.echo(to_json(probe).decode())
    else:
        show(_summary(probe), as_json=False)


def _followed(running: worker.Running) -> Probe:
    """The result, with progress on standard error meanwhile: one line that changes on a terminal,
    a line a stage elsewhere."""
    terminal, stage = sys.stderr.isatty(), ""
    try:
        while True:
            done = running.done
            for event in running.events():
                line = f"{event.done / event.of:4.0%}  {event.what}"
                if terminal:
                    typer.echo(f"\r\033[K{line}", err=True, nl=False)
                elif (now := re.split(r"\d", event.what)[0]) != stage:
                    stage = now
                    typer.echo(line, err=True)
            if done:
                return running.result()
            time.sleep(POLL_S)
    except KeyboardInterrupt:
        running.cancel()
        return running.result()
    finally:
        if terminal:
            typer.echo("\r\033[K", err=True, nl=False)


def _summary(probe: Probe) -> dict[str, Any]:
    """What a person reads of a probe."""
    setup = probe.setup
    return {
        "c": _interval(probe.c),
        "T_D": _time(probe.t_draft_ms, probe.spread_draft, probe.energy_draft_j),
        "T_T": _time(probe.t_target_ms, probe.spread_target, probe.energy_target_j),
        "v by tokens of a request": [
            f"{point.tokens}: {_interval(Interval(point.value, point.low, point.high))}"
            for point in probe.v
        ],
        "critical batch": _critical(probe),
        "bytes read, draft over target": probe.byte_ratio,
        "measured on": f"{setup.gpu}, {setup.target} with {setup.draft}, {setup.dtype}, batch "
        f"{setup.batch}, context {setup.context}, {setup.sampling}",
        "warnings": list(probe.warnings),
        "id": probe.id,
    }


def _interval(found: Interval) -> str:
    if found.low is None or found.high is None:
        return f"{found.value:.3g}"
    return f"{found.value:.3g} ({found.low:.3g} to {found.high:.3g})"


def _time(ms: float, spread: float | None, energy_j: float | None) -> str:
    energy = "" if energy_j is None else f", {energy_j:.3g} J of the board"
    return f"{ms:.4g} ms a step of the batch, IQR {spread or 0:.1%}{energy}"


def _critical(probe: Probe) -> str:
    """Where v leaves 1; an end that was not reached lies above the longest pass."""
    longest = probe.setup.batch * max((point.tokens for point in probe.v), default=1)
    if probe.critical_tokens is None:
        return f"v stays within 10 % of 1 up to {longest} verified tokens, the most timed"
    low, high = (
        f"above {longest}" if end is None else f"{end:.3g}"
        for end in (probe.critical_low, probe.critical_high)
    )
    return (
        f"v leaves 1 by more than 10 % at {probe.critical_tokens:.3g} verified tokens ({low} to "
        f"{high}): where to look in the load sweep"
    )


def _model(name: str) -> dict[str, Any]:
    row = architecture.get(name)
    return {
        "name": row.name,
        "role": row.role,
        "kind": row.kind,
        "for": row.for_target,
        "parameters": row.parameters,
        "read_per_step": row.streamed_parameters(),
        "source": row.source,
    }
