"""Tables of findings as columns, for the page and for CSV alike."""

from collections.abc import Iterator, Mapping
from typing import Any

from lib.evidence.findings import ArmFinding, Findings
from lib.evidence.next_measurement import repeats_by_load
from lib.evidence.ratio import Metric
from lib.money.pricing import PricedPair, slo_state
from lib.report import goodput_text
from lib.report.load_figures import Measured, recorded, runs_by_arm
from lib.report.next_text import settle_text
from lib.report.style import MARKS
from lib.run import Slo

Columns = dict[str, list[Any]]


def multiplier_table(found: Findings, slo: Slo | None = None) -> Columns:
    """One row an arm and load: M, its interval, the mark, what would settle it, runs, the SLO.

    A load without a ratio has a mark and, where they were counted, the arms' own values.
    """
    metric = found.metric
    out: Columns = {
        name: []
        for name in (
            "arm",
            "load",
            "M",
            "95 % low",
            "95 % high",
            "mark (95 % each)",
            "would settle it",
            f"off, {metric.unit}",
            f"arm, {metric.unit}",
            "runs off",
            "runs arm",
            "SLO off",
            "SLO arm",
        )
    }
    for arm in found.arms:
        cells = {c.load: c for c in arm.pairs.cells}
        rows = [*_point_rows(arm, found.metric), *_gap_rows(arm)]
        for row in sorted(rows, key=lambda r: r[0]):
            cell = cells[row[0]]
            judged = (slo_state(cell.off, slo), slo_state(cell.on, slo))
            for column, value in zip(out.values(), (arm.label, *row, *judged), strict=True):
                column.append(value)
    return out


def _point_rows(arm: ArmFinding, metric: Metric) -> Iterator[tuple[Any, ...]]:
    cells = {c.load: c for c in arm.pairs.cells}
    repeats = repeats_by_load(arm, metric)
    for p in arm.points:
        mark, cell = p.mark(), cells[p.load]
        yield (
            p.load,
            p.multiplier,
            *(p.interval() or (None, None)),
            f"{MARKS.get(mark, '·')} {mark}",
            settle_text(repeats[p.load]),
            _mean(metric.values(cell.off)),
            _mean(metric.values(cell.on)),
            p.n_off,
            p.n_on,
        )


def _gap_rows(arm: ArmFinding) -> Iterator[tuple[Any, ...]]:
    cells = {c.load: c for c in arm.pairs.cells}
    for gap in arm.without_ratio:
        cell = cells[gap.load]
        said = f"{goodput_text.mark(gap)}; no ratio"
        runs = (len(cell.off), len(cell.on))
        yield (gap.load, None, None, None, said, None, gap.off_rps, gap.on_rps, *runs)


def measured_table(
    found: Findings, what: Measured, values: Mapping[str, float] | None = None
) -> Columns:
    """One row a run: what it recorded of that quantity."""
    rows = [
        (arm, run.offered_load, run.repeat, value, run.label)
        for arm, runs in runs_by_arm(found).items()
        for run in runs
        if (value := recorded(run, what, values)) is not None
    ]
    names = ("arm", "load", "repeat", f"{what.label}, {what.unit}", "label")
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def price_table(priced: dict[str, tuple[PricedPair, ...]]) -> Columns:
    """One row an arm and load: both prices, the saving and why a price is missing."""
    out: Columns = {
        name: []
        for name in (
            "arm",
            "load",
            "$/1M off",
            "$/1M arm",
            "arm low",
            "arm high",
            "saving",
            "saving low",
            "saving high",
            "$/h off",
            "$/h arm",
            "tok/s off",
            "tok/s arm",
            "SLO off",
            "SLO arm",
            "not priced because",
        )
    }
    for arm, pairs in priced.items():
        for pair in pairs:
            off, on, saving = pair.off, pair.on, pair.saving
            row = (
                arm,
                on.load,
                off.price.value if off.price else None,
                on.price.value if on.price else None,
                on.price.low if on.price else None,
                on.price.high if on.price else None,
                saving.value if saving else None,
                saving.low if saving else None,
                saving.high if saving else None,
                off.usd_per_hour,
                on.usd_per_hour,
                off.output_tps,
                on.output_tps,
                off.slo,
                on.slo,
                "; ".join(
                    f"{name} {p.why_not}" for name, p in (("off", off), (arm, on)) if p.why_not
                ),
            )
            for column, value in zip(out.values(), row, strict=True):
                column.append(value)
    return out


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
