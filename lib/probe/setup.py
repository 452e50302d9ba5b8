"""What a probe measures: the target, the drafter and the step, validated."""

from dataclasses import dataclass
from typing import Literal, get_args

from lib.errors import InputError

Dtype = Literal["float32", "float16", "bfloat16"]
Sampling = Literal["argmax", "top-p"]

CPU = "cpu"
MIN_SAMPLES = 50
LIMITS = {
    "context": (1, 1_048_576),
    "gamma": (1, 64),
    "batch": (1, 1024),
    "samples": (MIN_SAMPLES, 10_000),
    "max_seconds": (10, 3600),
}


@dataclass(frozen=True, kw_only=True)
class Setup:
    """One measurement to make.

    `target` and `draft` name rows of data/models.csv, or checkpoints: a local folder or a hub id.
    Both decode from a KV cache of `context` tokens, `batch` requests at a time. `device` is `cpu`,
    `cuda` or `cuda:N`. `max_seconds` bounds the whole measurement.
    """

    target: str
    draft: str
    context: int = 512
    gamma: int = 5
    batch: int = 1
    dtype: Dtype = "bfloat16"
    device: str = "cuda"
    sampling: Sampling = "argmax"
    samples: int = MIN_SAMPLES
    max_seconds: int = 600

    def __post_init__(self) -> None:
        for name in ("target", "draft"):
            if not getattr(self, name).strip():
                raise InputError(f"{name}: name a model of data/models.csv or a checkpoint")
        for name, (low, high) in LIMITS.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise InputError(f"{name} = {value}: allowed is a whole number, {low} to {high:,}")
        for name, allowed in (("dtype", get_args(Dtype)), ("sampling", get_args(Sampling))):
            if getattr(self, name) not in allowed:
                raise InputError(
                    f"{name} = {getattr(self, name)}: allowed is one of {', '.join(allowed)}"
                )
        kind, colon, index = self.device.partition(":")
        indexed = kind == "cuda" and (not colon or index.isdecimal())
        if not indexed and self.device != CPU:
            raise InputError(f"device = {self.device}: allowed is cpu, cuda or cuda:N")

    @property
    def on_cpu(self) -> bool:
        """Whether this checks the method only."""
        return self.device == CPU
