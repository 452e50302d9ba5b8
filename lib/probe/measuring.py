"""From a setup to a probe: load both models, time them in turns, and say what may be wrong."""

import platform
import socket
import statistics
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from lib.errors import ProbeError
from lib.probe import architecture, decoder, nvml, ratios, timing
from lib.probe.architecture import Architecture
from lib.probe.place import Place, device_of, load_torch, place_of
from lib.probe.result import CPU_ONLY, Conditions, Measured, Probe
from lib.probe.setup import Setup
from lib.probe.timing import Launch, Progress
from lib.probe.turn import taken

IMPOSSIBLE = "impossible: check the setup"
_VALUE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}


class TimedModel(Protocol):
    """What is asked of a model: a pass that can be launched again and again."""

    @property
    def architecture(self) -> Architecture | None: ...

    @property
    def graphs(self) -> bool: ...

    @property
    def warning(self) -> str: ...

    def step(self, tokens: int) -> Launch:
        """One pass over `tokens` new tokens of each request, ready to launch."""

    def release(self) -> None:
        """Give the memory back."""


Load = Callable[..., TimedModel]


def measure(
    setup: Setup, tell: Callable[[Progress], None] = lambda _: None, load: Load = decoder.load
) -> Probe:
    """Time a draft step against the target's here, in this process.

    `load` takes a name and the keywords of `decoder.load`, the default. Raises ProbeError in one
    line where the models, the device or the time do not allow it; there is no partial result.
    """
    began_s = time.monotonic()
    torch = load_torch()
    place = place_of(setup)
    with taken(place.key, place.name):
        taken_at = datetime.now(UTC)
        seen = [place.conditions("before")]
        tell(Progress(0, timing.stages(setup), "loading the draft"))
        draft = load(setup.draft, most_tokens=1, **_common(setup))
        tell(Progress(1, timing.stages(setup), "loading the target"))
        target, most_tokens = _load_target(setup, load)
        samples = timing.measure(
            device_of(setup),
            draft.step(1),
            target.step,
            setup,
            most_tokens=most_tokens,
            deadline_s=began_s + setup.max_seconds,
            hooks=timing.Hooks(
                tell=tell,
                midway=lambda: seen.append(place.conditions("during")),
                energy_j=place.energy_j,
            ),
        )
        seen.append(place.conditions("after"))
        probe = _probe(setup, place, samples, (target, draft), tuple(seen), taken_at, torch)
        target.release()
        draft.release()
    return probe


def _common(setup: Setup) -> dict[str, Any]:
    return {
        "dtype": setup.dtype,
        "device": setup.device,
        "batch": setup.batch,
        "context": setup.context,
        "sampling": setup.sampling,
    }


def _load_target(setup: Setup, load: Load) -> tuple[TimedModel, int]:
    """The target with room for the longest pass, else for a round's; and the tokens it has."""
    known = setup.target in architecture.names()
    if known and architecture.get(setup.target).for_target:
        raise ProbeError(f"{setup.target} is a drafter's head: name the model it drafts for")
    needed, further = timing.rungs(setup.gamma, setup.batch)
    longest = max((*needed, *further))
    try:
        return load(setup.target, most_tokens=longest, **_common(setup)), longest
    except ProbeError:
        if not (known and further):
            raise
    return load(setup.target, most_tokens=needed[-1], **_common(setup)), needed[-1]


def _probe(
    setup: Setup,
    place: Place,
    samples: timing.Samples,
    models: tuple[TimedModel, TimedModel],
    seen: tuple[Conditions, ...],
    taken_at: datetime,
    torch: Any,
) -> Probe:
    found = ratios.figures(samples, setup.batch)
    target_bytes, draft_bytes = (_step_bytes(m.architecture, setup) for m in models)
    graphs = {"target": models[0].graphs, "draft": models[1].graphs}
    busy = nvml.is_busy(seen[0])
    warnings = [
        *_of_device(setup, place, seen, busy),
        *_of_models(setup, models, graphs),
        *_of_figures(found, target_bytes, draft_bytes, setup.on_cpu),
    ]
    return Probe(
        c=found.c,
        t_draft_ms=statistics.median(samples.draft_ms),
        t_target_ms=statistics.median(samples.target_ms),
        setup=_measured(setup, place, all(graphs.values()), torch),
        taken_at=taken_at,
        v=found.v,
        critical_tokens=found.critical.tokens,
        critical_low=found.critical.low,
        critical_high=found.critical.high,
        unstable=found.unstable,
        busy=busy,
        spread_draft=found.spread_draft,
        spread_target=found.spread_target,
        energy_draft_j=samples.energy_draft_j,
        energy_target_j=samples.energy_target_j,
        draft_bytes=draft_bytes,
        target_bytes=target_bytes,
        samples_draft_ms=samples.draft_ms,
        samples_target_ms=samples.target_ms,
        conditions=() if setup.on_cpu else seen,
        warnings=tuple(warnings),
    )


def _measured(setup: Setup, place: Place, graphs: bool, torch: Any) -> Measured:
    return Measured(
        gpu=place.name,
        target=_shown(setup.target),
        draft=_shown(setup.draft),
        dtype=setup.dtype,
        batch=setup.batch,
        context=setup.context,
        gamma=setup.gamma,
        driver=place.gpu.driver if place.gpu else "",
        cuda=place.cuda,
        compute_capability=place.compute_capability,
        graphs=graphs,
        sampling=setup.sampling,
        mig=place.mig,
        host=socket.gethostname(),
        versions=_versions(torch),
    )


def _versions(torch: Any) -> dict[str, str]:
    found = {"torch": str(torch.__version__), "python": platform.python_version()}
    if transformers := sys.modules.get("transformers"):  # a checkpoint was loaded
        found["transformers"] = str(getattr(transformers, "__version__", ""))
    return found


def _shown(name: str) -> str:
    """A model's name; of a local folder its last part, which holds on other machines too."""
    path = Path(name)
    return path.resolve().name if path.is_dir() else name


def _step_bytes(model: Architecture | None, setup: Setup) -> float | None:
    if model is None:
        return None
    return model.step_bytes(setup.batch, setup.context, bytes_per_value=_VALUE_BYTES[setup.dtype])


def _of_device(setup: Setup, place: Place, seen: tuple[Conditions, ...], busy: bool) -> list[str]:
    said = [CPU_ONLY] if setup.on_cpu else []
    if busy:
        before = seen[0]
        load = "" if before.utilization is None else f"{before.utilization:.0%} utilisation"
        others = f"other processes: {before.others}" if before.others else ""
        what = ", ".join(part for part in (load, others) if part)
        said.append(f"the GPU was busy before the start ({what}): stop the others, measure again")
    held = sorted({event for moment in seen[1:] for event in moment.throttle})
    if held:
        said.append(f"the GPU's clocks were held down during the run: {', '.join(held)}")
    if place.mig:
        said.append("a MIG slice: its c does not transfer to a full GPU nor to its $/h")
    if not setup.on_cpu and place.gpu is None:
        said.append("NVML does not show this GPU: clocks, power and neighbours are not known")
    return said


def _of_models(
    setup: Setup, models: tuple[TimedModel, TimedModel], graphs: dict[str, bool]
) -> list[str]:
    said = []
    head = models[1].architecture
    target = models[0].architecture
    if head is not None and target is not None and head.for_target not in ("", target.name):
        said.append(f"{head.name} is the head of {head.for_target}, not of {target.name}")
    said += [model.warning for model in models if model.warning]
    eager = [name for name, has in graphs.items() if not has]
    if len(eager) == 1 and not setup.on_cpu:
        said.append(f"no CUDA graph of the {eager[0]} alone: c weighs launches, not steps")
    return said


def _of_figures(
    found: ratios.Figures, target_bytes: float | None, draft_bytes: float | None, on_cpu: bool
) -> list[str]:
    said = []
    if found.unstable:
        widest = max(found.spread_draft, found.spread_target)
        said.append(f"unstable: a step's time spreads by {widest:.0%} (IQR over median)")
    if draft_bytes is None or not target_bytes or on_cpu:
        return said  # a CPU's caches can hold the whole of a tiny draft
    least = draft_bytes / target_bytes
    if (found.c.high or found.c.value) < least:
        said.append(
            f"c = {found.c.value:.3g} is below {least:.3g}, the bytes that a draft step reads "
            f"over the target's: {IMPOSSIBLE}"
        )
    return said
