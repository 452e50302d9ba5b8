"""What `python -m lib record` writes beside a benchmark: samples of the GPUs, told by their schema.

No run: it says of the runs in its folder and below, as far as they were measured while it was
written, how much memory, power and energy they took.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lib.results.findings import LARGEST_COUNT, Beside, Findings, Flag, Key, shown
from lib.results.gpu_samples import GpuSamples, GpuSeries
from lib.results.parsing import as_dict, as_list, as_number, as_text, counted

TOOL = "gpu-record"
TITLE = "GPU record"
SCHEMA = "draftworth.gpu_record/1"
_LATEST = 2.0**33  # seconds since 1970 that a clock may show
_SERIES = {
    "mem_gib": "mem_gib",
    "power_w": "power_w",
    "energy_j": "energy_j",
    "util": "utilization",
}
_SUM = "sum over the GPUs at work, of the runs beside that were measured meanwhile"
LEVELS: Mapping[str, tuple[Key, ...]] = {
    "schema 1": (
        Key("gpu_mem_gib", ("gpus", "mem_gib"), note=f"the most; {_SUM}"),
        Key("power_w", ("gpus", "power_w"), note=f"the mean; {_SUM}"),
        Key("energy_j", ("gpus", "energy_j"), note=f"the difference; {_SUM}"),
        Key("energy_j", ("gpus", "power_w"), note=f"mean times duration; {_SUM}"),
    )
}


def recognise(values: Sequence[object]) -> bool:
    """Whether JSON lines begin with a record's header."""
    return bool(values) and as_dict(values[0]).get("schema") == SCHEMA


def find(name: str, values: Sequence[object], sha256: str) -> Findings:
    """What it says of the runs beside; a record without samples says why it has none."""
    header = as_dict(values[0])
    samples = _samples(header, [as_dict(v) for v in values[1:]])
    why = f"schema {SCHEMA}"
    if samples is None:
        because = as_text(header.get("problem")) or "it ended before the first sample"
        text = f"a GPU record without samples: {because}"
        flag = Flag("not_a_run", "warns", text)
        return Findings(TOOL, "schema 1", why, (), flags=(flag,))
    host = as_text(header.get("host"))
    took = counted(round(samples.times[-1] - samples.times[0]), "second")
    text = (
        f"{counted(len(samples.gpus), 'GPU')}{f' of {shown(host)}' if host else ''} over {took}; "
        "says what runs beside it took, by their time"
    )
    flag = Flag("sidecar", "warns", text)
    return Findings(TOOL, "schema 1", why, (), flags=(flag,), beside=Beside(gpus=samples))


def _samples(header: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> GpuSamples | None:
    by_time: dict[float, dict[str, Mapping[str, Any]]] = {}
    for line in lines:
        at = as_number(line.get("t"))
        if at is None or not 0 < at < _LATEST:
            continue
        gpus = (as_dict(gpu) for gpu in as_list(line.get("gpus")))
        by_time[at] = {uuid: g for g in gpus if (uuid := as_text(g.get("uuid")))}
    times = sorted(by_time)
    names = dict.fromkeys(uuid for at in times for uuid in by_time[at])
    if not names:
        return None
    gpus_over_time = [_series([by_time[at].get(uuid, {}) for at in times]) for uuid in names]
    every = as_number(header.get("every_s"))
    offset = as_number(header.get("utc_offset_s"))
    return GpuSamples(
        np.array(times),
        gpus_over_time,
        every if every is not None and 0 < every <= 3600 else 1.0,
        offset if offset is not None and abs(offset) <= 86400 else None,
    )


def _series(samples: Sequence[Mapping[str, Any]]) -> GpuSeries:
    found = {}
    for key, name in _SERIES.items():
        read = (as_number(sample.get(key)) for sample in samples)
        found[name] = np.array(
            [v if v is not None and 0 <= v <= LARGEST_COUNT else np.nan for v in read]
        )
    return GpuSeries(**found)
