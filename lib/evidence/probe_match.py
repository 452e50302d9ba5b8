"""Whether a probe was measured on what a study runs on: c is bound to its setup (design law 7).

Names come from different mouths: `NVIDIA H100 80GB HBM3` and `H100`, `llama-3.1-8b` and
`meta-llama/Llama-3.1-8B-Instruct`. They are alike where nothing but such words tells them apart.
What either side does not record says nothing.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lib.estimate import Basis
from lib.probe.result import CPU_ONLY, Measured, Probe
from lib.run import Run, SpecState

# The same architecture, so the same step times.
_TUNED = frozenset({"instruct", "it", "chat", "hf", "base", "meta", "sft", "head", "speculator"})
_QUANTISED = re.compile(
    r"(?:nv|mx)?fp(?:4|8|16)|bf16|int[48]|w\d+a\d+|[48]bit|awq|gptq|gguf|bnb|dynamic"
)
_SIXTEEN_BITS = frozenset({"", "none", "bf16", "bfloat16", "fp16", "float16", "half", "auto"})
_WORD = re.compile(r"[a-z]+|\d+(?:\.\d+)*[a-z]*")


@dataclass(frozen=True)
class Match:
    """How a probe's setup stands to a study: what is alike, and what differs, in words."""

    alike: tuple[str, ...]
    differs: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether the probe speaks of this study: the same target, and nothing that differs."""
        return "target" in self.alike and not self.differs

    @property
    def due(self) -> bool:
        """Whether it would speak of this study but for what differs: measure again."""
        return bool(self.differs) and bool({"target", "drafter", "GPU"} & {*self.alike})


def on_cpu(probe: Probe) -> bool:
    """Whether the probe checks the method only; its c is evidence of nothing else."""
    return CPU_ONLY in probe.warnings


def basis(probe: Probe) -> Basis:
    """What c of a probe is elsewhere: no measurement of a GPU where it was taken on a CPU."""
    if on_cpu(probe):
        return Basis.ASSUMED
    return Basis.MEASURED if probe.method == "steps" else Basis.DERIVED


def source(probe: Probe) -> str:
    """`probe 3f9a21c0, 2026-11-02, NVIDIA H100 80GB HBM3`; a CPU's says what it is first."""
    taken = f"probe {probe.id[:8]}, {probe.taken_at:%Y-%m-%d}, {probe.setup.gpu or 'GPU unknown'}"
    return f"CPU method check, does not transfer: {taken}" if on_cpu(probe) else taken


def doubts(probe: Probe) -> tuple[str, ...]:
    """Why c cannot be trusted as it stands: measure it again."""
    least = probe.byte_ratio
    most = probe.c.value if probe.c.high is None else probe.c.high
    said = {
        "its times spread by more than 5 %": probe.unstable,
        "the GPU was busy before it began": probe.busy,
        "it is below the ratio of the bytes read": least is not None and most < least,
    }
    return tuple(text for text, true in said.items() if true)


def match(probe: Probe, runs: Sequence[Run]) -> Match:
    """Target, drafter, GPU, engine version and precision of a probe beside those of the runs."""
    setup = probe.setup
    speculating = [r for r in runs if r.spec_state is SpecState.ON]
    alike: list[str] = []
    differs: list[str] = []

    def judge(name: str, mine: str, theirs: Iterable[str | None], same: bool) -> None:
        stated = sorted({t for t in theirs if t})
        if mine and stated:
            (alike if same else differs).append(
                name if same else f"{name} {mine}, not {', '.join(stated)}"
            )

    targets = {r.target for r in runs if r.target}
    judge("target", setup.target, targets, any(same_model(setup.target, t) for t in targets))
    drafters = {r.draft_model for r in speculating if r.draft_model}
    methods = {r.draft_method for r in speculating if r.draft_method}
    if drafters:
        alike_drafter = any(same_model(setup.draft, d) for d in drafters)
        judge("drafter", setup.draft, drafters, alike_drafter)
    else:
        judge(
            "draft method", setup.draft, methods, any(_of_method(setup.draft, m) for m in methods)
        )
    gpus = {r.gpu for r in runs if r.gpu}
    gpu = f"a MIG slice of {setup.gpu}" if setup.mig else setup.gpu
    judge("GPU", gpu, gpus, any(_same_gpu(setup, g) for g in gpus))
    # Two servers say their engine and its version; a step timed here runs in none.
    engine = setup.versions.get("target", "") if probe.method == "servers" else ""
    engines = {f"{r.engine} {r.engine_version}" for r in runs if r.engine and r.engine_version}
    if " " in engine:  # both, not the one alone
        judge("engine", engine, engines, any(e.lower() == engine.lower() for e in engines))
    # A target in 8 or 4 bits steps 2 to 4 times as fast, and c rises by as much.
    precisions = {r.target_quantization or _precision_named(r.target or "") for r in runs}
    judge("precision", setup.dtype, precisions, any(_same_bits(setup.dtype, p) for p in precisions))
    return Match(tuple(alike), tuple(differs))


def pick(probes: Iterable[Probe], runs: Sequence[Run], batch: int) -> tuple[Probe, Match] | None:
    """Of probes, newest first, the first that speaks of these runs; else the first that would
    but for what differs; None where none has anything in common with them.

    Left out are checks on a CPU and probes of more than `batch` requests at once.
    """
    usable = [p for p in probes if not on_cpu(p) and p.setup.batch <= batch]
    judged = [(p, match(p, runs)) for p in usable]
    near = next((found for found in judged if found[1].due), None)
    return next((found for found in judged if found[1].holds), near)


def same_model(one: str, other: str) -> bool:
    """Whether two names mean models of the same shape: `qwen3-8b`, `Qwen/Qwen3-8B-FP8`."""
    return bool(_model_words(one)) and _model_words(one) == _model_words(other)


def _model_words(name: str) -> frozenset[str]:
    parts = re.split(r"[^a-z0-9.]+", name.rstrip("/").rpartition("/")[2].lower())
    kept = (p for p in parts if not _QUANTISED.fullmatch(p))
    return frozenset(w for p in kept for w in _WORD.findall(p)) - _TUNED


def _precision_named(target: str) -> str:
    """The precision that a model's name states: `FP8` of `Qwen3-8B-FP8`; else empty."""
    parts = re.split(r"[^A-Za-z0-9]+", target)
    return next((p for p in parts if _QUANTISED.fullmatch(p.lower())), "")


def _same_gpu(setup: Measured, other: str) -> bool:
    """`H100` is `NVIDIA H100 80GB HBM3`; a MIG slice is no whole GPU, nor `L4` an `L40S`."""
    mine, theirs = (set(re.findall(r"[a-z0-9]+", n.lower())) for n in (setup.gpu, other))
    slices = setup.mig == ("mig" in theirs)
    return slices and bool(theirs & mine) and (theirs - {"mig"} <= mine or mine <= theirs)


def _of_method(draft: str, method: str) -> bool:
    """Whether a drafter's name fits a method, where a study names no drafter.

    A head's name begins with its method; any other name is a model of its own.
    """
    named = re.search(r"eagle-?3|eagle|mtp|dflash|medusa", draft.lower())
    wanted = method.lower().replace("_", "").replace("-", "")
    if named is None:
        return wanted in ("draftmodel", "standalone", "vanilla")
    return wanted.startswith(named[0].replace("-", "")) or wanted.endswith(named[0])


def _same_bits(dtype: str, quantization: str | None) -> bool:
    stated = (quantization or "").lower()
    return stated == dtype or (dtype in ("bfloat16", "float16") and stated in _SIXTEEN_BITS)
