"""What a probe says: c as the answer, its bounds, where verifying stops being free, its setup."""

from collections.abc import Sequence
from typing import Any

from lib.estimate import Basis, Estimate
from lib.evidence.probe_match import doubts, match, on_cpu, source
from lib.probe.nvml import Gpu, Reading
from lib.probe.result import CPU_ONLY, Probe
from lib.probe.server_round import Round
from lib.probe.servers import APPROXIMATION
from lib.report.format import multiplier, number, percent, significant
from lib.run import Run

Columns = dict[str, list[Any]]

LIKELY_CAUSES = (
    "This machine has no NVIDIA GPU: a laptop, a virtual machine, the host of the dashboard alone.",
    "Its driver is not installed or not loaded: `nvidia-smi` would tell.",
    "The container was started without GPUs: `docker run --gpus all`, or a device request in "
    "Compose or Kubernetes.",
)
MEANING = (
    "c is the time of one draft step over the time of one plain target step, each with the whole "
    "batch, on this setup and no other."
)


def estimate(probe: Probe) -> Estimate:
    """c with its interval and how it was measured."""
    measured = probe.method == "steps"
    how = (
        f"c = T_D / T_T(1) = {significant(probe.t_draft_ms)} ms / "
        f"{significant(probe.t_target_ms)} ms\n"
        f"medians of {len(probe.samples_draft_ms)} draft and {len(probe.samples_target_ms)} target "
        f"samples, taken in turns{'' if measured else '; c is the median of their ratios'}"
    )
    if probe.c.low is not None:
        how += "\n95 % interval: bootstrap, draft and target drawn together"
    return Estimate(
        value=probe.c.value,
        unit="plain steps",
        basis=Basis.MEASURED if measured else Basis.DERIVED,
        source=f"{source(probe)}. {setup_line(probe)}",
        low=probe.c.low,
        high=probe.c.high,
        how=how,
    )


def sentence(probe: Probe) -> str:
    """The answer: `A draft step costs 0.061 (0.059–0.064) plain steps on NVIDIA H100.`"""
    cost = f"a draft step costs {c_text(probe)} plain steps"
    if on_cpu(probe):
        return f"Method check on a CPU: {cost} here, and that does not transfer."
    cost = f"{cost[0].upper()}{cost[1:]}"
    if probe.method == "servers":
        return f"{cost}, by two servers."
    return f"{cost} on {probe.setup.gpu or 'a GPU without a name'}."


def c_text(probe: Probe) -> str:
    """`0.061 (0.059–0.064)`."""
    c = probe.c
    text = significant(c.value)
    if c.low is None or c.high is None:
        return text
    return f"{text} ({significant(c.low)}–{significant(c.high)})"


def note(probe: Probe) -> str:
    """Below the answer: for what it holds, and for what it does not."""
    parts = [setup_line(probe), f"taken {probe.taken_at:%Y-%m-%d %H:%M} UTC"]
    if on_cpu(probe):
        parts.append(CPU_ONLY)
    if probe.method == "servers":
        parts.append(APPROXIMATION)
    return " · ".join(parts)


def warnings(probe: Probe) -> list[str]:
    """What the run warns of beyond what the answer's note says, and why no gate passes on it."""
    said = (*probe.warnings, doubt_line(probe))
    return [line for line in said if line not in ("", CPU_ONLY, APPROXIMATION)]


def setup_line(probe: Probe) -> str:
    """`eagle3-llama-3.1-8b for llama-3.1-8b, bfloat16, batch 1, context 512`."""
    s = probe.setup
    parts = (f"{s.draft} for {s.target}", s.dtype, f"batch {s.batch}", f"context {s.context:,}")
    return ", ".join(filter(None, parts))


def label(probe: Probe) -> str:
    """A probe in a list: `c 0.061 · eagle3-llama-3.1-8b for llama-3.1-8b · H100 · 2026-11-02`."""
    where = "CPU, method check" if on_cpu(probe) else probe.setup.gpu or "GPU unknown"
    pair = f"{probe.setup.draft} for {probe.setup.target}"
    taken = f"{probe.taken_at:%Y-%m-%d %H:%M}"
    return f"c {significant(probe.c.value)} · {pair} · {where} · {taken}"


def bound_line(probe: Probe) -> str:
    """c beside the ratio of the bytes that the two steps read; empty where that is not known."""
    least = probe.byte_ratio
    if least is None or probe.draft_bytes is None or probe.target_bytes is None:
        return ""
    bytes_read = f"{_gigabytes(probe.draft_bytes)} of {_gigabytes(probe.target_bytes)}"
    ratio = significant(least)
    if on_cpu(probe):
        return (
            f"A draft step reads {ratio} of the bytes of a target step ({bytes_read}). That bounds "
            "c where memory does; a CPU's caches may hold a model as small as these."
        )
    if probe.c.value < least:
        return (
            f"c is below {ratio}, the ratio of the bytes that the two steps must read "
            f"({bytes_read}): impossible while both are bound by memory, so check the setup."
        )
    return (
        f"The lowest c there can be is {ratio}, the ratio of the bytes that the two steps read "
        f"({bytes_read}). Measured: {probe.c.value / least:.2f} times that; the rest is launches, "
        "sampling and what a small model leaves idle."
    )


def verify_lines(probe: Probe) -> list[str]:
    """v of a round at the probe's gamma, and up to how many tokens verifying is free."""
    lines = []
    gamma, batch = probe.setup.gamma, probe.setup.batch
    if (v := probe.v_at(gamma)) is not None:
        spread = "" if v.low is None else f" ({v.low:.2f}–{v.high:.2f})"
        lines.append(
            f"Verifying γ + 1 = {gamma + 1} tokens a request in one pass costs v = "
            f"{v.value:.2f}{spread} plain steps."
        )
    at = probe.critical_tokens
    if at is not None and at < 2 * batch:
        lines.append(
            "Verifying is not free here: a pass over two tokens a request costs over 10 % more."
        )
    elif at is not None:
        low, high = probe.critical_low, probe.critical_high
        ends = "" if low is None or high is None else f" ({low:,.0f}–{high:,.0f})"
        requests = at / (gamma + 1)
        held = f"{requests:,.0f} requests at once" if requests >= 1 else "less than one request"
        lines.append(
            f"A pass is free, within 10 %, up to about {at:,.0f}{ends} tokens: {held} at "
            f"γ = {gamma}. That is where to look in the load sweep; it prices nothing."
        )
    elif probe.v:
        most = probe.v[-1].tokens * batch
        lines.append(
            f"v did not clearly leave 1 by 10 % up to {most:,} tokens, the most in one pass here."
        )
    return lines


def doubt_line(probe: Probe) -> str:
    """Why no gate passes on this c; empty where nothing speaks against it."""
    if on_cpu(probe):
        return ""
    said = doubts(probe)
    return f"No gate passes on this c: {'; '.join(said)}. Measure it again." if said else ""


def due_line(probe: Probe, runs: Sequence[Run]) -> str:
    """What differs between a probe's setup and a study's; empty where nothing does."""
    if on_cpu(probe):
        return f"c is of a {CPU_ONLY}."
    differs = match(probe, runs).differs
    if not differs:
        return ""
    return f"c was probed on {'; '.join(differs)}: due for re-measurement for the study in hand."


def setup_table(probe: Probe) -> Columns:
    """The setup key: what the numbers hold for."""
    s = probe.setup
    rows: dict[str, object] = {
        "GPU": s.gpu,
        "MIG slice": "yes" if s.mig else "no",
        "compute capability": s.compute_capability,
        "driver": s.driver,
        "CUDA": s.cuda,
        "target": s.target,
        "draft": s.draft,
        "dtype": s.dtype,
        "batch": s.batch,
        "context, tokens": s.context,
        "γ": s.gamma,
        "CUDA graphs": "yes" if s.graphs else "no",
        "sampling": s.sampling,
        **s.versions,
        "host": s.host,
        "method": probe.method,
        "probe": probe.id,
    }
    known = {k: str(v) for k, v in rows.items() if v != ""}
    return {"setup": list(known), "value": list(known.values())}


def conditions_table(probe: Probe) -> Columns:
    """Clocks, load and neighbours before, during and after; None is not readable."""
    found = probe.conditions
    return {
        "when": [c.when for c in found],
        "SM clock, MHz": [c.sm_clock_mhz for c in found],
        "memory clock, MHz": [c.mem_clock_mhz for c in found],
        "power, W": [c.power_w for c in found],
        "temperature, °C": [c.temperature_c for c in found],
        "utilisation": [None if c.utilization is None else percent(c.utilization) for c in found],
        "held down by": [", ".join(c.throttle) or None for c in found],
        "other processes": [c.others for c in found],
    }


def energy_line(probe: Probe) -> str:
    """Energy a step where the GPU counts it."""
    draft, target = probe.energy_draft_j, probe.energy_target_j
    if draft is None or target is None:
        return ""
    return (
        f"Energy: {significant(draft)} J a draft step, {significant(target)} J a plain target step "
        "of the whole batch."
    )


def history_table(probes: Sequence[Probe]) -> Columns:
    """Every probe in a row, as given: the newest first."""
    return {
        "taken, UTC": [p.taken_at.replace(tzinfo=None) for p in probes],
        "c": [p.c.value for p in probes],
        "low": [p.c.low for p in probes],
        "high": [p.c.high for p in probes],
        "v at γ": [None if (v := p.v_at(p.setup.gamma)) is None else v.value for p in probes],
        "GPU": [CPU_ONLY if on_cpu(p) else p.setup.gpu for p in probes],
        "target": [p.setup.target for p in probes],
        "draft": [p.setup.draft for p in probes],
        "dtype": [p.setup.dtype for p in probes],
        "batch": [p.setup.batch for p in probes],
        "context": [p.setup.context for p in probes],
        "γ": [p.setup.gamma for p in probes],
        "method": [p.method for p in probes],
        "probe": [p.id for p in probes],
    }


def _gigabytes(count: float) -> str:
    unit, name = (1e9, "GB") if count >= 1e9 else (1e6, "MB")
    return f"{number(float(f'{count / unit:.3g}'))} {name}"


def round_answer(found: Round) -> tuple[str, Estimate]:
    """S of a server that speculates beside a plain one, one request at a time."""
    s, r, tau = found.speedup, found.r, found.tau
    sentence = (
        f"Speculation gives {multiplier(s.value, s.low, s.high)} at one request: {tau.value:.2f} "
        f"tokens a round, which costs {r.value:.2f} plain steps."
    )
    how = (
        f"S = τ / R = {tau.value:.3f} / {r.value:.3f}\n"
        f"R = {significant(found.round_ms)} ms a round / {significant(found.plain_ms)} ms a plain "
        f"step\nτ = {found.tokens:,} tokens / {found.rounds:,} rounds"
    )
    source = f"{found.model}, {found.host}, {found.taken_at:%Y-%m-%d %H:%M} UTC"
    return sentence, Estimate(s.value, "×", Basis.MEASURED, source, s.low, s.high, how)


def gpu_line(gpu: Gpu, host: str) -> str:
    """What a GPU is: `on a-host · driver 580.95, CUDA 13.0 · compute capability 9.0`."""
    driver = f"driver {gpu.driver}" if gpu.driver else ""
    cuda = f"CUDA {gpu.cuda}" if gpu.cuda else ""
    capability = f"compute capability {gpu.compute_capability}" if gpu.compute_capability else ""
    split = "MIG slice" if gpu.is_slice else "split by MIG" if gpu.mig_enabled else ""
    parts = (host and f"on {host}", ", ".join(filter(None, (driver, cuda))), capability, split)
    return " · ".join(filter(None, parts))


def reading_line(gpu: Gpu, now: Reading) -> str:
    """What a GPU does now; what cannot be read is left out."""
    memory = now.memory
    parts = [
        _of(now.sm_clock_mhz, gpu.max_sm_clock_mhz, "MHz"),
        _of(memory.used_gib, memory.total_gib, "GiB" + (" unified" if memory.unified else "")),
        _of(now.power_w, now.power_limit_w, "W"),
        _of(now.temperature_c, None, "°C"),
        "" if now.utilization is None else f"{percent(now.utilization)} of the time busy",
        "" if now.processes is None else f"processes: {len(now.processes)}",
        ", ".join(now.clock_events),
    ]
    return " · ".join(filter(None, parts))


def _of(value: float | None, most: float | None, unit: str) -> str:
    if value is None:
        return ""
    told, *limit = (
        f"{x:,.0f}" if x >= 100 else significant(x) for x in (value, most) if x is not None
    )
    return f"{' of '.join([told, *limit])} {unit}"
