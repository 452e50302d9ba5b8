"""What a reviewer takes away of a price: one record that the workbook, the page and the CSVs read.

Nothing is computed twice: prices, ratios and sentences are those of the price page.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property

from lib.assumptions import table
from lib.decision import Gate
from lib.estimate import Basis, Estimate
from lib.evidence.findings import ArmFinding, Findings
from lib.evidence.ratio import METRICS, LogMean, LogRatio, log_mean, log_mean_of_runs
from lib.money.bases import input_per_output
from lib.money.pricing import SLO_UNKNOWN, Priced, PricedPair, Rate, price_pairs, recorded_gpus
from lib.report.format import load as load_text
from lib.report.price_text import price_answer
from lib.run import OFF, Run, Slo, Study, drafts_on_random_tokens

QUESTION = "What does a million tokens cost?"
# What a price is made of: these inputs stand in each deliverable, typed or not.
PRICED_INPUTS = (
    *("usd_per_gpu_hour", "gpu_count", "utilization", "on_utilization"),
    *("extra_usd_per_hour", "drafter_gpus", "drafter_usd_per_gpu_hour", "tokens_per_day"),
    *("input_per_output", "input_weight"),
)
Origin = tuple[Basis, str, str]  # basis, source, date


@dataclass(frozen=True)
class InputRow:
    """One input as it stood: its value in the stored unit (a fraction for a share; None is not
    typed), on whose word, and since when (a date, or empty)."""

    key: str
    label: str
    value: float | int | None
    unit: str
    basis: Basis
    source: str
    dated: str = ""


@dataclass(frozen=True)
class Side:
    """One arm at one load as it is priced, with the runs behind it.

    `refused` is why no rate would price it; empty where only an input is missing. `own_first` says
    that the recorded GPU count goes before the typed one.
    """

    priced: Priced
    runs: tuple[Run, ...]
    own_first: bool
    refused: str

    @property
    def name(self) -> str:
        """`off at 8`."""
        return f"{self.priced.arm} at {load_text(self.priced.load)}"

    @property
    def log_tps(self) -> LogMean | None:
        """Mean log of the output tok/s, or of the published ratio where that is all there is."""
        found = log_mean_of_runs(self.runs, METRICS["output_tps"])
        ratios = [r.multiplier for r in self.runs if r.multiplier]
        return log_mean(ratios) if found is None and self.ratio_only else found

    @property
    def ratio_only(self) -> bool:
        """Whether its runs are published ratios without tok/s: compared, never priced."""
        return not any(r.output_tps for r in self.runs) and any(r.multiplier for r in self.runs)

    @property
    def own_usd_per_hour(self) -> float | None:
        """The $/h that all of its runs record."""
        own = {r.usd_per_hour for r in self.runs}
        return own.pop() if len(own) == 1 else None

    @property
    def recorded_gpus(self) -> int | None:
        """The GPU count that all of its runs record."""
        return recorded_gpus(self.runs)


@dataclass(frozen=True)
class PairRow:
    """Off and one arm at one load: both sides, the ratio and what the price page says of them."""

    label: str
    off: Side
    on: Side
    pair: PricedPair

    @property
    def ratio(self) -> LogRatio:
        """M at this load."""
        return self.pair.ratio

    @property
    def input_per_output(self) -> float | None:
        """Input tokens per output token as the runs of both sides record them."""
        return input_per_output((*self.off.runs, *self.on.runs))

    @property
    def break_evens(self) -> tuple[float | None, float | None]:
        """M and extra $/h at which both prices are equal; None of a published ratio."""
        if not self.off.runs:
            return None, None
        return self.pair.break_even_multiplier, self.pair.break_even_extra_usd_per_hour


@dataclass(frozen=True, kw_only=True)
class Dossier:
    """A price with all that it rests on, as it stood at `written_at`.

    `priced` holds the pairs of each arm by its label; `load` is the operating load, None until
    named. `stated` are fields that a person states equal, `scenario` the id of the inputs, `gates`
    the steps of the decision, empty where nobody asked.
    """

    found: Findings
    priced: Mapping[str, tuple[PricedPair, ...]]
    rate: Rate
    inputs: tuple[InputRow, ...]
    written_at: datetime
    slo: Slo | None = None
    load: float | None = None
    tokens_per_day: float | None = None
    stated: frozenset[str] = frozenset()
    accept_random: bool = False
    scenario: str = ""
    gates: tuple[Gate, ...] = ()

    @cached_property
    def answer(self) -> tuple[str, Estimate | None, PricedPair | None]:
        """The sentence of the price page, its estimate and the pair it rests on."""
        return price_answer(self.found, self.priced, self.load)

    @cached_property
    def rows(self) -> tuple[PairRow, ...]:
        """Every pair of every arm, by arm and load."""
        return tuple(row for arm in self.found.arms for row in self._rows(arm))

    def value(self, key: str) -> float | int | None:
        """An input's value in its stored unit; None where it is not typed."""
        return next((i.value for i in self.inputs if i.key == key), None)

    def input_per_output(self, row: PairRow) -> float | None:
        """Input tokens per output token: as recorded, else as typed."""
        recorded = row.input_per_output
        return self.value("input_per_output") if recorded is None else recorded

    def _rows(self, arm: ArmFinding) -> list[PairRow]:
        # What a complete rate leaves without a price, no rate prices.
        full = replace(
            self.rate,
            usd_per_gpu_hour=self.rate.usd_per_gpu_hour or 1.0,
            gpu_count=self.rate.gpu_count or 1,
            utilization=self.rate.utilization or 1.0,
        )
        whole = price_pairs(self.found, arm, full, self.slo, accept_random=self.accept_random)
        cells = {c.load: c for c in arm.pairs.cells}
        rows = []
        for pair, at_full in zip(self.priced[arm.label], whole, strict=True):
            cell = cells[pair.on.load]
            own = len({recorded_gpus(cell.off), recorded_gpus(cell.on)} - {None}) > 1
            rows.append(
                PairRow(
                    arm.label,
                    Side(pair.off, cell.off, own, at_full.off.why_not),
                    Side(pair.on, cell.on, own, at_full.on.why_not),
                    pair,
                )
            )
        return rows

    @cached_property
    def sides(self) -> tuple[Side, ...]:
        """Every arm at every load that has runs, each once: off first, by load."""
        both = (side for row in self.rows for side in (row.off, row.on))
        found = dict.fromkeys(side for side in both if side.runs)
        order = sorted(found, key=lambda s: (s.priced.arm != OFF, s.priced.arm, s.priced.load))
        return tuple(order)

    @property
    def digest(self) -> str:
        """SHA-256 of the study's runs, in hexadecimal: other runs, another digest."""
        return study_digest(self.found.study)

    @property
    def notes(self) -> tuple[str, ...]:
        """What must stand beside every number: caveats, overrides, what is not known."""
        said = [self.found.study.caveat, self.found.study.note, self.found.study.citation]
        said.append(f"SLO: {self.slo.text}" if self.slo else f"{SLO_UNKNOWN}: none was named")
        if self.slo and any("unknown" in (r.off.priced.slo, r.on.priced.slo) for r in self.rows):
            said.append(f"{SLO_UNKNOWN} at some loads: the runs do not say whether they met it")
        said += [d.text for d in self.found.comparison.differences if not d.overridden]
        said += [
            f"a person overrides the difference in {d.field}: {d.text}"
            for d in self.found.comparison.differences
            if d.overridden
        ]
        unknown = [f for f in self.found.comparison.not_recorded if f not in self.stated]
        if unknown:
            said.append(f"not recorded: {', '.join(unknown)}")
        if self.stated:
            said.append(f"stated equal by a person: {', '.join(sorted(self.stated))}")
        if self.accept_random and drafts_on_random_tokens(r for s in self.sides for r in s.runs):
            said.append("random tokens, accepted by a person: acceptance is not representative")
        said += self.found.comparison.notes
        return tuple(dict.fromkeys(filter(None, said)))

    @property
    def price_dates(self) -> str:
        """Of what dates the prices are, one an input of money."""
        named = [
            f"{i.label} as of {i.dated}"
            for i in self.inputs
            if i.value is not None and i.dated and i.unit.startswith("$")
        ]
        return "; ".join(named) or "no price is typed"


def study_digest(study: Study) -> str:
    """SHA-256 over every field of every run, by run id; the order of the runs does not matter."""
    runs = [asdict(r) for r in sorted(study.runs, key=lambda r: r.run_id)]
    return hashlib.sha256(json.dumps(runs, sort_keys=True, default=str).encode()).hexdigest()


def file_stem(study: str) -> str:
    """The study's name as part of a file name: letters, digits, dots, dashes and underscores."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in study)
    return kept.strip(".-")[:60] or "study"


def utc_now() -> datetime:
    """The time at which a dossier is written, to the second."""
    return datetime.now(UTC).replace(microsecond=0)


def input_rows(
    values: Mapping[str, float | int | None],
    typed: str,
    today: str,
    origins: Mapping[str, Origin] | None = None,
) -> tuple[InputRow, ...]:
    """The price's inputs: those that it is made of first, then what else is typed of that page.

    `values` are in the stored unit by key. A value without an origin is assumed: `typed` says
    where, and it is of `today`.
    """
    found = []
    rows = [r for r in table().values() if r.page == "price"]
    for row in sorted(rows, key=lambda r: r.key not in PRICED_INPUTS):
        key, value = row.key, values.get(row.key)
        if value is None and key not in PRICED_INPUTS:
            continue
        basis, source, dated = (origins or {}).get(key) or (Basis.ASSUMED, typed, today)
        if value is None:
            basis, source, dated = Basis.ASSUMED, "not typed", ""
        unit = "tokens" if row.kind == "millions" else row.unit
        found.append(InputRow(key, row.label, value, unit, basis, source, dated))
    return tuple(found)


def runs_of(sides: Sequence[Side]) -> tuple[Run, ...]:
    """The runs behind these prices, each once."""
    return tuple({r.run_id: r for s in sides for r in s.runs}.values())
