"""The GPUs that AIPerf watched through DCGM while it ran; nothing where DCGM was not there."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lib.results.findings import Flag, Key
from lib.results.parsing import as_dict, as_number, as_text, counted
from lib.results.tools.perf_nodes import plain_number, unit_factor

_PATH = ("telemetry_data", "endpoints", "gpus")
KEYS = (
    Key("gpu", (*_PATH, "gpu_name"), note="where all are alike"),
    Key("gpu_count", (*_PATH, "gpu_uuid"), note="how many; empty where one of them never worked"),
    Key("power_w", (*_PATH, "metrics", "gpu_power_usage", "avg"), note="sum over the GPUs"),
    Key("gpu_mem_gib", (*_PATH, "metrics", "gpu_memory_used", "avg"), note="sum over the GPUs"),
)
_CSV_METRICS = {
    "gpu power usage": "gpu_power_usage",
    "gpu memory used": "gpu_memory_used",
    "gpu utilization": "gpu_utilization",
}


@dataclass(frozen=True)
class Gpu:
    """One GPU; a value that was not measured is None."""

    uuid: str
    name: str | None
    power_w: float | None
    memory_gib: float | None
    idle: bool


def of_json(telemetry: object) -> list[Gpu]:
    """The GPUs of an export's `telemetry_data`."""
    endpoints = as_dict(as_dict(telemetry).get("endpoints")).values()
    listed = [g for e in endpoints for g in as_dict(as_dict(e).get("gpus")).items()]
    return _distinct(
        _gpu(as_text(as_dict(gpu).get("gpu_uuid")) or str(key), as_dict(gpu)) for key, gpu in listed
    )


def of_rows(rows: Sequence[Mapping[str, str]]) -> list[Gpu]:
    """The GPUs of the CSV's GPU table: one row a GPU and metric."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        name, _, unit = row.get("Metric", "").partition(" (")
        key = row.get("GPU_UUID") or f"{row.get('Endpoint')} {row.get('GPU_Index')}"
        gpu = found.setdefault(key, {"gpu_name": row.get("GPU_Name"), "metrics": {}})
        if metric := _CSV_METRICS.get(name.strip().casefold()):
            node = {s: plain_number(row.get(s) or "") for s in ("avg", "max")}
            gpu["metrics"][metric] = node | {"unit": unit.rstrip(") ")}
    return _distinct(_gpu(key, gpu) for key, gpu in found.items())


def fields(gpus: Sequence[Gpu]) -> dict[str, Any]:
    """What the GPUs say of a run: name, count, power and memory of all of them together.

    DCGM sees every GPU of a machine. Where one of them never worked, the server had fewer, and
    neither the count nor the sums are known.
    """
    if not gpus:
        return {}
    names = {g.name for g in gpus}
    found: dict[str, Any] = {"gpu": names.pop() if len(names) == 1 else None}
    if any(g.idle for g in gpus):
        return found
    return found | {
        "gpu_count": len(gpus),
        "power_w": _sum(g.power_w for g in gpus),
        "gpu_mem_gib": _sum(g.memory_gib for g in gpus),
    }


def flags(gpus: Sequence[Gpu], run_id: str) -> list[Flag]:
    """That the count is of the GPUs watched, which need not be those that served."""
    if not gpus:
        return []
    idle = sum(g.idle for g in gpus)
    seen = f"telemetry watched {counted(len(gpus), 'GPU')}"
    text = (
        f"{seen}, {idle} of them idle throughout; state how many the server used"
        if idle
        else f"{seen}; correct the count if the server used fewer"
    )
    return [Flag("gpus_watched", "warns", text, run_id)]


def _distinct(gpus: Iterable[Gpu]) -> list[Gpu]:
    return list({g.uuid: g for g in gpus}.values())


def _gpu(uuid: str, gpu: Mapping[str, object]) -> Gpu:
    metrics = as_dict(gpu.get("metrics"))
    busiest = as_number(as_dict(metrics.get("gpu_utilization")).get("max"))
    return Gpu(
        uuid,
        as_text(gpu.get("gpu_name")),
        _mean(metrics.get("gpu_power_usage"), "W"),
        _mean(metrics.get("gpu_memory_used"), "GiB"),
        busiest == 0,
    )


def _mean(node: object, wanted: str) -> float | None:
    value = as_number(as_dict(node).get("avg"))
    factor = unit_factor(wanted, as_dict(node).get("unit"))
    return None if value is None or factor is None else value * factor


def _sum(values: Iterable[float | None]) -> float | None:
    """The sum; None where one of them is not known."""
    listed = list(values)
    known = [v for v in listed if v is not None]
    return sum(known) if len(known) == len(listed) else None
