"""What was noticed while reading a table, as flags of the file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lib.results.findings import Flag, shorten
from lib.results.headers import PER_USER, Understood
from lib.results.parsing import counted


@dataclass
class Notes:
    """What was noticed while reading cells."""

    unreadable: list[str] = field(default_factory=list)
    short: list[str] = field(default_factory=list)
    doubtful: list[tuple[str, str]] = field(default_factory=list)
    rates_above: list[str] = field(default_factory=list)
    percent_assumed: list[str] = field(default_factory=list)
    in_seconds: list[str] = field(default_factory=list)
    emitted: bool = False
    derived: int = 0
    without_load: int = 0
    without_outcome: int = 0
    without_kind: int = 0
    approximate: int = 0
    nonfinite: int = 0

    def flags(self, columns: Sequence[Understood]) -> list[Flag]:
        """A warning for each kind of thing noticed."""
        said = (*self._of_headers(columns), *self._of_cells(), *self._of_rows())
        return [Flag(code, "warns", text) for code, text in said]

    def _of_headers(self, columns: Sequence[Understood]) -> Iterator[tuple[str, str]]:
        if self.in_seconds:
            text = (
                f"{shorten(self.in_seconds)} without a unit and all below 1: seconds? left empty; "
                "write the unit into the header, as 'TPOT (s)'"
            )
            yield "unit_in_doubt", text
        if assumed := [c.header for c in columns if c.match.unit_assumed]:
            text = f"no unit in {shorten(assumed)}: read as ms, s, tok/s or req/s by the name"
            yield "unit_assumed", text
        if any(c.match.dimension == PER_USER for c in columns):
            yield "per_user_rate", "TPOT derived as 1000 / tokens per second and user"
        if self.percent_assumed:
            text = f"{shorten(self.percent_assumed)} is read as percent, for every value is above 1"
            yield "percent_assumed", f"{text}; say % in the header"
        yield from self.doubtful

    def _of_cells(self) -> Iterator[tuple[str, str]]:
        if self.unreadable:
            count = counted(len(self.unreadable), "cell")
            text = f"{count} with no value of the column: {self.unreadable[0]}"
            yield "unreadable_cells", text
        if self.rates_above:
            more = len(self.rates_above) - 1
            others = f" (and {counted(more, 'other cell')})" if more else ""
            yield (
                "rate_above_one",
                f"acceptance rate {self.rates_above[0]}{others} is above 1: a length, or a "
                "percentage? left empty; say % in the header or call it acceptance length",
            )
        if self.nonfinite:
            yield "nonfinite_values", f"NaN in {counted(self.nonfinite, 'cell')}; read as missing"
        if self.approximate:
            text = f"{counted(self.approximate, 'value')} marked approximate (~)"
            yield "approximate_values", text

    def _of_rows(self) -> Iterator[tuple[str, str]]:
        if self.short:
            text = f"{counted(len(self.short), 'row')} shorter than the header ({self.short[0]})"
            yield "short_rows", f"{text}: what is missing is taken from the end; check the cells"
        if self.derived:
            text = "(end-to-end - TTFT) / (output length - 1), from the means"
            yield "tpot_derived", f"TPOT of {counted(self.derived, 'run')} derived as {text}"
        if self.without_load or self.without_outcome:
            without = f"{self.without_load} without a load, {self.without_outcome} without an"
            yield "rows_left_out", f"rows left out: {without} outcome"
        if self.without_kind:
            text = (
                f"{counted(self.without_kind, 'row')} with a load of unknown kind; state load_kind:"
                " concurrency, request_rate or batch"
            )
            yield "load_kind_unknown", text
