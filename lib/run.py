"""The canonical run: one arm at one offered load, once; and the study that holds runs."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum

from lib.errors import InputError
from lib.estimate import Basis

OFF = "off"
SIMULATED = "simulated engine"
RANDOM_TOKENS = "random tokens: acceptance, and what rests on it, is not that of real text"
NEEDS_CONSENT = (
    "measured on random tokens, whose acceptance is not representative: measure on real prompts, "
    "or accept it (a box on the page, --accept-random on the command line)"
)
PERCENTILES = ("p50", "p90", "p95", "p99")


class SpecState(StrEnum):
    """Whether the server speculated. A file that says nothing leaves it unknown."""

    OFF = "off"
    ON = "on"
    UNKNOWN = "unknown"


class LoadKind(StrEnum):
    """What was held: requests in flight, requests per second, or a static batch."""

    CONCURRENCY = "concurrency"
    REQUEST_RATE = "request_rate"
    BATCH = "batch"


@dataclass(frozen=True, kw_only=True)
class Run:
    """One arm at one offered load, once. A field that the source does not state is None.

    Units stand in the names: `_ms` milliseconds, `_s` seconds, `_tps` output tokens per second of
    the whole deployment, `_rps` requests per second, `_gib` GiB, `_w` watts, `_j` joules, `_len`
    tokens per request (mean). `num_speculative_tokens` is K; 0 is a scheduled K = 0, which is not
    the same as `spec_state` off. `token_count` says who counted the output
    tokens, "server" or "client"; `retokenized_tokens` is the other count where the source has both.
    `accept_length` is tau as the source states it, bonus token included, `accept_rate` accepted
    over drafted (0 to 1); the counts, where there are any, decide. `multiplier` is for published
    ratio points without tok/s: compared, never priced. `output_tps_sd` with `output_tps_n` is a
    published mean's spread.
    """

    # identity
    run_id: str
    source_sha256: str | None = None
    tool: str | None = None
    tool_version: str | None = None
    started_at: datetime | None = None
    zone_known: bool = False
    label: str | None = None
    study: str = ""
    repeat: int | None = None
    block: str | None = None
    # workload
    target: str | None = None
    target_revision: str | None = None
    target_quantization: str | None = None
    dataset: str | None = None
    domain: str | None = None
    input_len: float | None = None
    output_len: float | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    # server
    engine: str | None = None
    engine_version: str | None = None
    build: str | None = None
    max_num_seqs: int | None = None
    prefix_caching: bool | None = None
    graph_max_batch: int | None = None
    # speculation set-up
    spec_state: SpecState = SpecState.UNKNOWN
    draft_method: str | None = None
    draft_model: str | None = None
    num_speculative_tokens: int | None = None
    schedule: str | None = None
    draft_topk: int | None = None
    draft_tensor_parallel: int | None = None
    draft_max_positions: int | None = None
    # allocation
    gpu: str | None = None
    gpu_count: int | None = None
    tensor_parallel: int | None = None
    data_parallel: int | None = None
    pipeline_parallel: int | None = None
    usd_per_hour: float | None = None
    # offered load
    load_kind: LoadKind | None = None
    offered_load: float | None = None
    achieved_load: float | None = None
    num_prompts: int | None = None
    # outcome
    completed: int | None = None
    failed: int | None = None
    duration_s: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    token_count: str | None = None
    retokenized_tokens: int | None = None
    output_tps: float | None = None
    output_tps_sd: float | None = None
    output_tps_n: int | None = None
    request_rps: float | None = None
    goodput_rps: float | None = None
    slo: str | None = None
    running_mean: float | None = None
    waiting_mean: float | None = None
    ttft_ms_mean: float | None = None
    ttft_ms_p50: float | None = None
    ttft_ms_p90: float | None = None
    ttft_ms_p95: float | None = None
    ttft_ms_p99: float | None = None
    tpot_ms_mean: float | None = None
    tpot_ms_p50: float | None = None
    tpot_ms_p90: float | None = None
    tpot_ms_p95: float | None = None
    tpot_ms_p99: float | None = None
    itl_ms_mean: float | None = None
    itl_ms_p50: float | None = None
    itl_ms_p90: float | None = None
    itl_ms_p95: float | None = None
    itl_ms_p99: float | None = None
    e2e_ms_mean: float | None = None
    e2e_ms_p50: float | None = None
    e2e_ms_p90: float | None = None
    e2e_ms_p95: float | None = None
    e2e_ms_p99: float | None = None
    gpu_mem_gib: float | None = None
    power_w: float | None = None
    energy_j: float | None = None
    multiplier: float | None = None
    # speculation counts
    drafts: int | None = None
    draft_tokens: int | None = None
    accepted_tokens: int | None = None
    accepted_per_position: tuple[int, ...] | None = None
    histogram: tuple[int, ...] | None = None
    accept_length: float | None = None
    accept_rate: float | None = None
    # what was not understood, as one JSON object
    extra: str | None = None

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if not isinstance(value, (int, float)) or isinstance(value, bool):
                continue
            infinite_ok = f.name in ("offered_load", "achieved_load")
            if math.isnan(value) or (math.isinf(value) and not infinite_ok) or value < 0:
                raise InputError(f"{f.name} = {value}: a number of at least 0 is allowed")
        if self.offered_load == 0:
            raise InputError("offered_load = 0: above 0 is allowed; leave it empty if unknown")

    @property
    def arm(self) -> str | None:
        """`off`, `METHOD`, `METHOD:K`, `METHOD:schedule`, or None while unknown."""
        if self.spec_state is SpecState.OFF:
            return OFF
        if self.spec_state is SpecState.UNKNOWN:
            return None
        method = self.draft_method or "speculation"
        if self.schedule is not None:
            return f"{method}:schedule"
        if self.num_speculative_tokens is None:
            return method
        return f"{method}:{self.num_speculative_tokens}"


def has_random_tokens(run: Run) -> bool:
    """Whether the prompts were random tokens, as benchmarks make them by default."""
    return (run.dataset or "").casefold().startswith("random")


def drafts_on_random_tokens(runs: Iterable[Run]) -> bool:
    """Whether one of the runs speculates on random tokens.

    What rests on its acceptance, a price or a schedule, needs a person's consent; a comparison
    does not, nor does anything about a run without speculation.
    """
    return any(has_random_tokens(r) and r.spec_state is not SpecState.OFF for r in runs)


@dataclass(frozen=True)
class Study:
    """The runs that are compared with each other, and what they rest on.

    `basis` is measured (a person's own files) or published (read-only, with its citation). `note`
    is printed wherever the study is shown, for example "simulated engine".

    """

    name: str
    runs: tuple[Run, ...] = ()
    basis: Basis = Basis.MEASURED
    title: str = ""
    citation: str = ""
    url: str = ""
    note: str = ""
    read_only: bool = False

    @property
    def caveat(self) -> str:
        """What must stand beside every number of the study, wherever its runs are shown."""
        said = []
        if any(r.engine == SIMULATED for r in self.runs):
            said.append(f"{SIMULATED}: no GPU was measured")
        if any(has_random_tokens(r) for r in self.runs):
            said.append(RANDOM_TOKENS)
        return "; ".join(said)

    @property
    def heading(self) -> str:
        """Target, drafters, GPU in one line, as far as recorded."""
        parts = [
            ", ".join(distinct(r.target for r in self.runs)) or "target not recorded",
            ", ".join(distinct(r.draft_method for r in self.runs)) or "drafter not recorded",
            ", ".join(distinct(r.gpu for r in self.runs)) or "GPU not recorded",
        ]
        return " · ".join(parts)


@dataclass(frozen=True)
class Slo:
    """A service-level objective: the named percentile of each latency, at most so many ms.

    `percentile` is one of p50, p90, p95, p99 of the requests of a run.
    """

    ttft_ms: float | None = None
    tpot_ms: float | None = None
    e2e_ms: float | None = None
    percentile: str = "p99"

    def __post_init__(self) -> None:
        for name in ("ttft_ms", "tpot_ms", "e2e_ms"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise InputError(f"slo {name} = {value}: a number of milliseconds above 0")
        if self.percentile not in PERCENTILES:
            raise InputError(f"slo percentile = {self.percentile}: one of {', '.join(PERCENTILES)}")

    @classmethod
    def parse(cls, text: str) -> "Slo":
        """From `ttft_ms=500,tpot_ms=40[,percentile=p99]`."""
        known = [f.name for f in fields(cls)]
        given: dict[str, float | str] = {}
        for part in filter(None, (p.strip() for p in text.split(","))):
            name, _, value = (p.strip() for p in part.partition("="))
            if name not in known:
                raise InputError(f"slo {part!r}: NAME=VALUE with a NAME of {', '.join(known)}")
            if name in given:
                raise InputError(f"slo {text!r}: {name} is named twice; name each limit once")
            try:
                given[name] = value if name == "percentile" else float(value)
            except ValueError:
                raise InputError(f"slo {part!r}: a number of milliseconds is needed") from None
        if not given.keys() - {"percentile"}:
            raise InputError(f"slo {text!r}: at least one limit, for example ttft_ms=500")
        return cls(**given)  # type: ignore[arg-type]

    @property
    def limits(self) -> dict[str, float]:
        """The limits that are set, by latency name."""
        named = {n: getattr(self, n) for n in ("ttft_ms", "tpot_ms", "e2e_ms")}
        return {n: v for n, v in named.items() if v is not None}

    @property
    def text(self) -> str:
        """`p99 TTFT ≤ 500 ms, p99 TPOT ≤ 40 ms`, or empty: read at the percentile of a run."""
        return ", ".join(f"{self.percentile} {limit}" for limit in self._each())

    @property
    def per_request(self) -> str:
        """`TTFT ≤ 500 ms, TPOT ≤ 40 ms in each request`, or empty: read request by request."""
        return f"{', '.join(self._each())} in each request" if self.limits else ""

    def _each(self) -> list[str]:
        return [
            f"{name.removesuffix('_ms').upper()} ≤ {limit:.12g} ms"
            for name, limit in self.limits.items()
        ]


def distinct(values: Iterable[str | None]) -> list[str]:
    """The values that are stated, in order of appearance, each once."""
    return list(dict.fromkeys(v for v in values if v))


@dataclass(frozen=True)
class FieldGroups:
    """Which protocol fields must agree between two arms (design law 7)."""

    workload: tuple[str, ...] = (
        "target",
        "target_revision",
        "target_quantization",
        "dataset",
        "domain",
        "input_len",
        "output_len",
        "temperature",
        "top_p",
        "tool",
        "tool_version",
        "token_count",
    )
    server: tuple[str, ...] = (
        "engine",
        "engine_version",
        "build",
        "max_num_seqs",
        "prefix_caching",
        "graph_max_batch",
    )
    allocation: tuple[str, ...] = (
        "gpu",
        "gpu_count",
        "tensor_parallel",
        "data_parallel",
        "pipeline_parallel",
        "usd_per_hour",
    )
    speculation: tuple[str, ...] = (
        "draft_method",
        "draft_model",
        "num_speculative_tokens",
        "schedule",
        "draft_topk",
        "draft_tensor_parallel",
        "draft_max_positions",
    )


GROUPS = FieldGroups()

# What a person may state or correct after import.
EDITABLE: tuple[str, ...] = (
    "spec_state",
    *GROUPS.speculation,
    *(
        f
        for f in GROUPS.workload
        if f not in ("tool", "tool_version", "token_count", "input_len", "output_len")
    ),
    *GROUPS.server,
    *GROUPS.allocation,
    "label",
    "block",
    "load_kind",
    "offered_load",
)
