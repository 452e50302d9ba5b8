"""GPUs sampled over time, and what they say of a run that was measured in that time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from lib.results.parsing import counted
from lib.run import Run

# Tools that date a result when they write it, right after the run.
DATED_AT_THE_END = frozenset({"vllm-bench-serve", "inferencex", "llmperf"})
FIELDS = ("gpu_mem_gib", "power_w", "energy_j")
_SLACK_S = 1.0  # such a date is in whole seconds
_LONGEST_GAP = 5  # samples that may be missing in a row
Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class During:
    """Fields of a run as the GPUs have them, and how they came about or why there are none."""

    fields: Mapping[str, float] = field(default_factory=dict)
    said: str = ""


@dataclass(frozen=True, eq=False)
class GpuSeries:
    """One GPU over time: GiB in use, watts, joules counted, fraction of time at work.

    Each has a value a sample, NaN where none was read.
    """

    mem_gib: Values
    power_w: Values
    energy_j: Values
    utilization: Values


@dataclass(frozen=True, eq=False)
class GpuSamples:
    """Samples of some GPUs every `every_s` seconds.

    `times` are seconds since 1970, rising, one at least. `utc_offset_s` is how far the recording
    host's local time is ahead of UTC; None where it is not known.
    """

    times: Values
    gpus: Sequence[GpuSeries]
    every_s: float
    utc_offset_s: float | None = None

    def during(self, run: Run) -> During:
        """What the GPUs say of a run; nothing where it is not known to lie within the samples.

        Memory is the most that each GPU had in use, power the mean over the run, energy the
        difference of the counters (else mean power times duration), each the sum over the GPUs
        that worked in that time. A field is left out where one of them was not read throughout.
        """
        if run.started_at is None or not run.duration_s:
            return During(said="the run states no time or no duration")
        if not run.zone_known and self.utc_offset_s is None:
            return During(said="the time zone of the run is not known")
        start, end = self._span(run, run.started_at, run.duration_s)
        if end <= start:
            return During(said="the run is too short for a clock")
        first, last = float(self.times[0]), float(self.times[-1])
        if start < first - _SLACK_S or end > last + _SLACK_S:
            when = f"{_clock(start)} to {_clock(end)}"
            own = f"{_clock(first)} to {_clock(last)}"
            return During(said=f"the run, {when} UTC, is not within {own}")
        used = [gpu for gpu in self.gpus if self._worked(gpu, start, end)]
        if not used:
            return During(said="no GPU worked during the run: its server is elsewhere")
        power = _sum(self._mean(g.power_w, start, end) for g in used)
        counter = _sum(self._difference(g.energy_j, start, end) for g in used)
        energy = power * run.duration_s if counter is None and power is not None else counter
        values = (_sum(self._most(g.mem_gib, start, end) for g in used), power, energy)
        found = {n: v for n, v in zip(FIELDS, values, strict=True) if v is not None}
        of = f" of {len(self.gpus)}" if len(used) < len(self.gpus) else ""
        said = [f"{counted(len(used), 'GPU')}{of} at work"]
        if energy is not None:
            said.append(f"energy {'by counter' if counter is not None else 'as mean power × time'}")
        if missing := [n for n in FIELDS if n not in found]:
            said.append(f"{', '.join(missing)} not read throughout")
        if not run.zone_known:
            said.append("the run's local time taken for that of the recording host")
        return During(found, "; ".join(said))

    def _span(self, run: Run, moment: datetime, duration_s: float) -> tuple[float, float]:
        """Seconds since 1970 at which the run began and ended."""
        at = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        if not run.zone_known and self.utc_offset_s is not None:
            at -= self.utc_offset_s
        return (at - duration_s, at) if run.tool in DATED_AT_THE_END else (at, at + duration_s)

    def _worked(self, gpu: GpuSeries, start: float, end: float) -> bool:
        """Whether any kernel ran; where utilisation is not read, as on a MIG slice, it may have."""
        seen = (self.times >= start - self.every_s) & (self.times <= end + self.every_s)
        known = gpu.utilization[seen & ~np.isnan(gpu.utilization)]
        return not known.size or bool((known > 0).any())

    def _window(
        self, values: Values, start: float, end: float, whole: bool
    ) -> tuple[Values, Values] | None:
        """Times and values over a run, both ends interpolated.

        None where no sample was read near an end, or for `whole` anywhere for too long.
        """
        read = ~np.isnan(values)
        times, known = self.times[read], values[read]
        inside = (times > start) & (times < end)
        at = np.concatenate(([start], times[inside], [end]))
        near = times[(times >= start - self._gap) & (times <= end + self._gap)]
        ends = np.abs(np.subtract.outer([start, end], near)).min(axis=1) if near.size else [np.inf]
        steps = np.diff(near) if whole else np.zeros(0)
        if max(*ends, *steps, 0.0) > self._gap:
            return None
        return at, np.interp(at, times, known)

    @property
    def _gap(self) -> float:
        return max(_LONGEST_GAP * self.every_s, _SLACK_S)

    def _mean(self, values: Values, start: float, end: float) -> float | None:
        window = self._window(values, start, end, whole=True)
        return None if window is None else float(np.trapezoid(window[1], window[0])) / (end - start)

    def _most(self, values: Values, start: float, end: float) -> float | None:
        window = self._window(values, start, end, whole=True)
        return None if window is None else float(window[1].max())

    def _difference(self, values: Values, start: float, end: float) -> float | None:
        """By the counter; None where it stood still, or began anew as the driver was loaded."""
        window = self._window(values, start, end, whole=False)
        if window is None or (np.diff(window[1]) < 0).any():
            return None
        return float(window[1][-1] - window[1][0]) or None


def _sum(values: Iterable[float | None]) -> float | None:
    """The sum; None where one of them is not known."""
    listed = list(values)
    known = [v for v in listed if v is not None]
    return sum(known) if len(known) == len(listed) else None


def _clock(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return "?"
