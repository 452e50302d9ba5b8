"""What a probe found, and its JSON: the same from the page, the command line and another host."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from lib.errors import InputError

SCHEMA = 1
CPU_ONLY = "CPU: method check only, does not transfer"
MAX_SAMPLES = 20_000
MAX_ENTRIES = 1000  # of every other list
MAX_NUMBER, MAX_COUNT = 1e15, 10**9  # beyond what any step takes or reads

Method = Literal["steps", "servers"]
Float = float | None


@dataclass(frozen=True)
class Interval:
    """A value and the ends of its 95 % interval; both ends or neither."""

    value: float
    low: Float = None
    high: Float = None

    def __post_init__(self) -> None:
        ends = (self.low, self.high)
        if (self.low is None) != (self.high is None):
            raise InputError("interval: give both low and high or neither")
        if not all(math.isfinite(x) and x >= 0 for x in (self.value, *ends) if x is not None):
            raise InputError(f"interval {self.low} to {self.high} of {self.value}: at least 0")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise InputError(f"interval {self.low} to {self.high} is upside down")


@dataclass(frozen=True)
class VerifyCost:
    """v at `tokens` of each request in one pass: its time over that of a pass over one."""

    tokens: int
    value: float
    low: Float = None
    high: Float = None

    def __post_init__(self) -> None:
        Interval(self.value, self.low, self.high)
        if self.tokens < 1:
            raise InputError(f"v: tokens = {self.tokens}: at least 1 is allowed")


@dataclass(frozen=True)
class Conditions:
    """The GPU at one moment; None is not readable here.

    `when` is before, during or after; `throttle` names clock event reasons; `others` counts
    processes of others on the GPU.
    """

    when: str
    sm_clock_mhz: Float = None
    mem_clock_mhz: Float = None
    power_w: Float = None
    temperature_c: Float = None
    utilization: Float = None
    throttle: tuple[str, ...] = ()
    others: int | None = None


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The setup key: what the numbers hold for, and nothing else. Empty text is not known."""

    gpu: str
    target: str
    draft: str
    dtype: str
    batch: int
    context: int
    gamma: int
    driver: str = ""
    cuda: str = ""
    compute_capability: str = ""
    graphs: bool = False
    sampling: str = "argmax"
    mig: bool = False
    host: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One measurement: c = T_D / T_T(1), v(n) = T_T(n) / T_T(1), and what they hold for.

    Times are medians, in ms, of one draft step and of one plain target step of the whole batch;
    the spreads are IQR over median. `critical_tokens` is how many tokens a pass verifies, all
    requests together, where v leaves 1 by more than 10 %; None where it was not reached. Samples
    are in ms, in the order taken, target and draft alternating.
    """

    c: Interval
    t_draft_ms: float
    t_target_ms: float
    setup: Measured
    taken_at: datetime
    method: Method = "steps"
    v: tuple[VerifyCost, ...] = ()
    critical_tokens: Float = None
    critical_low: Float = None
    critical_high: Float = None
    unstable: bool = False
    busy: bool = False
    spread_draft: Float = None
    spread_target: Float = None
    energy_draft_j: Float = None
    energy_target_j: Float = None
    draft_bytes: Float = None
    target_bytes: Float = None
    samples_draft_ms: tuple[float, ...] = ()
    samples_target_ms: tuple[float, ...] = ()
    conditions: tuple[Conditions, ...] = ()
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.taken_at.tzinfo is None:
            raise InputError("taken_at: a time with its zone is needed")
        if self.method not in get_args(Method):
            found = str(self.method)[:40]
            raise InputError(f"method = {found}: one of {', '.join(get_args(Method))}")
        for name in ("t_draft_ms", "t_target_ms"):
            value = getattr(self, name)
            if not math.isfinite(value) or value <= 0:
                raise InputError(f"{name} = {value}: above 0 is allowed")
        tokens = [point.tokens for point in self.v]
        if tokens != sorted(set(tokens)):
            raise InputError("v: tokens must rise and none stand twice")

    @property
    def id(self) -> str:
        """Digest of the whole result."""
        return hashlib.sha256(to_json(self)).hexdigest()[:16]

    @property
    def byte_ratio(self) -> Float:
        """Bytes read by a draft step over those of a target step: the lowest c there can be."""
        if self.draft_bytes is None or not self.target_bytes:
            return None
        return self.draft_bytes / self.target_bytes

    def v_at(self, gamma: int) -> VerifyCost | None:
        """The verify cost of a round of `gamma` drafts, where it was measured."""
        return next((point for point in self.v if point.tokens == gamma + 1), None)


def to_json(probe: Probe) -> bytes:
    """One JSON object; `schema` names its version."""
    document = {"schema": SCHEMA, **asdict(probe), "taken_at": probe.taken_at.isoformat()}
    return json.dumps(document, allow_nan=False).encode()


def from_json(data: bytes | str) -> Probe:
    """The probe of a document as `to_json` writes it. Raises InputError that names the key."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise InputError("probe: not JSON; import the file that `probe --json` printed") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        found = document.get("schema") if isinstance(document, dict) else None
        raise InputError(f"probe: schema {str(found)[:20]}; this version reads {SCHEMA}")
    try:
        return _probe({k: v for k, v in document.items() if k != "schema"})
    except InputError as error:
        raise InputError(f"probe: {error}") from None
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError):
        raise InputError(
            "probe: a key is missing or has another type than `probe --json` prints"
        ) from None


def _probe(found: dict[str, Any]) -> Probe:
    for name in ("samples_draft_ms", "samples_target_ms"):
        found[name] = tuple(_above_0(name, x) for x in _listed(found, name, MAX_SAMPLES))
    for name in ("t_draft_ms", "t_target_ms"):
        found[name] = _above_0(name, found[name])
    for name in _OPTIONAL:
        if found.get(name) is not None:
            found[name] = _above_0(name, found[name])
    for name in ("spread_draft", "spread_target"):
        if found.get(name) is not None:
            found[name] = _at_least_0(name, found[name])
    taken = datetime.fromisoformat(found["taken_at"])
    found |= {
        "c": Interval(**_numbers("c", found["c"])),
        "v": tuple(VerifyCost(**_numbers("v", point)) for point in _listed(found, "v")),
        "setup": _measured(found["setup"]),
        "taken_at": taken if taken.tzinfo is None else taken.astimezone(UTC),
        "conditions": tuple(_conditions(c) for c in _listed(found, "conditions")),
        "warnings": tuple(_text("warnings", w, 500) for w in _listed(found, "warnings")),
        "unstable": bool(found.get("unstable", False)),
        "busy": bool(found.get("busy", False)),
    }
    return Probe(**found)


_OPTIONAL = (
    "critical_tokens",
    "critical_low",
    "critical_high",
    "energy_draft_j",
    "energy_target_j",
    "draft_bytes",
    "target_bytes",
)
_COUNTS = ("batch", "context", "gamma")


def _listed(found: Mapping[str, Any], name: str, most: int = MAX_ENTRIES) -> list[Any]:
    entries = found.get(name, [])
    if not isinstance(entries, list):
        raise InputError(f"{name}: a list is needed")
    if len(entries) > most:
        raise InputError(f"{name}: {len(entries):,} entries; at most {most:,} are read")
    return entries


def _measured(found: Mapping[str, Any]) -> Measured:
    texts = {
        k: _text(k, v, 200)
        for k, v in found.items()
        if k not in (*_COUNTS, "versions", "graphs", "mig")
    }
    counts = {k: _whole(k, found[k]) for k in _COUNTS}
    if counts["batch"] < 1:
        raise InputError("batch = 0: at least 1 is allowed")
    versions = {str(k)[:40]: _text(k, v, 80) for k, v in found.get("versions", {}).items()}
    if len(versions) > MAX_ENTRIES:
        raise InputError(f"versions: {len(versions):,}; at most {MAX_ENTRIES:,} are read")
    marks = {k: bool(found.get(k, False)) for k in ("graphs", "mig")}
    return Measured(**texts, **counts, **marks, versions=versions)  # type: ignore[arg-type]


def _conditions(found: Mapping[str, Any]) -> Conditions:
    kept: dict[str, Any] = dict(found)
    for name, value in kept.items():
        if name == "when":
            kept[name] = _text(name, value, 20)
        elif name == "throttle":
            kept[name] = tuple(_text(name, reason, 80) for reason in _listed(kept, name))
        elif value is not None:
            kept[name] = _whole(name, value) if name == "others" else _number(name, value)
    return Conditions(**kept)


def _numbers(name: str, found: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = dict(found)
    for key, value in kept.items():
        if key == "tokens":
            kept[key] = _whole(key, value)
        elif key == "value" or value is not None:
            kept[key] = _at_least_0(f"{name}.{key}", value)
    return kept


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(f"{name} = {str(value)[:40]}: a number is needed")
    if abs(value) > MAX_NUMBER:
        raise InputError(f"{name} = {value:.3g}: at most {MAX_NUMBER:.0e} is read")
    return float(value)


def _at_least_0(name: str, value: object) -> float:
    number = _number(name, value)
    if number < 0:
        raise InputError(f"{name} = {number:.3g}: at least 0 is allowed")
    return number


def _above_0(name: str, value: object) -> float:
    number = _number(name, value)
    if number < 1 / MAX_NUMBER:
        raise InputError(f"{name} = {number:.3g}: above 0 is allowed")
    return number


def _whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_COUNT:
        said = str(value)[:40] if not isinstance(value, int) else "out of range"
        raise InputError(f"{name}: {said}; a whole number of 0 to {MAX_COUNT:,} is needed")
    return value


def _text(name: str, value: object, most: int) -> str:
    if not isinstance(value, str):
        raise InputError(f"{name}: text is needed")
    return value[:most]
