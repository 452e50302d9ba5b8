from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.errors import InputError
from lib.results import spellings
from lib.results.fields import Match, convert, lookup, settled, stated
from lib.run import EDITABLE, LoadKind, SpecState


@pytest.mark.parametrize(
    ("header", "field", "factor"),
    [
        ("throughput (tok/s)", "output_tps", 1),
        ("tok/s", "output_tps", 1),
        ("agg_output_tok_s", "output_tps", 1),
        ("Output throughput", "output_tps", 1),
        ("tpot_s", "tpot_ms_mean", 1000),
        ("TTFT p99 [ms]", "ttft_ms_p99", 1),
        ("p99_ttft_ms", "ttft_ms_p99", 1),
        ("median_e2el_ms", "e2e_ms_p50", 1),
        ("mean TPOT (µs)", "tpot_ms_mean", 0.001),
        ("throughput (req/s)", "request_rps", 1),
        ("concurrency", "concurrency", 1),
        ("Max Concurrency", "concurrency", 1),
        ("batch size", "batch", 1),
        ("qps", "request_rate", 1),
        ("arm", "arm", 1),
        ("method", "arm", 1),
        ("K", "num_speculative_tokens", 1),
        ("load", "offered_load", 1),
        ("load kind", "load_kind", 1),
        ("GPU", "gpu", 1),
        ("$/h", "usd_per_hour", 1),
        ("usd_per_hour", "usd_per_hour", 1),
        ("speedup", "multiplier", 1),
        ("Power [kW]", "power_w", 1000),
        ("tp", "tensor_parallel", 1),
        ("isl", "input_len", 1),
        ("output_tps_sd", "output_tps_sd", 1),
    ],
)
def test_headers(header: str, field: str, factor: float) -> None:
    match = lookup(header)
    assert match is not None
    assert (match.field, match.factor, match.unit_assumed) == (field, factor, False)


@pytest.mark.parametrize(
    "header",
    [
        *("total tok/s", "input tok/s", "prefill_tok_s", "latency", "p99.9_ttft_ms", "std_tpot_ms"),
        *(
            "tpot (tok/s)",
            "concurrency (ms)",
            "backend",
            "",
            "alpha",
            "c",
            "max_output_tokens_per_s",
        ),
    ],
)
def test_headers_that_mean_something_else(header: str) -> None:
    assert lookup(header) is None


def test_a_missing_unit_is_assumed_and_said() -> None:
    assert lookup("tpot") == Match("tpot_ms_mean", unit_assumed=True)
    assert lookup("throughput") == Match("output_tps", unit_assumed=True)


def test_rates_of_a_part_are_no_rate_of_the_whole() -> None:
    for header, dimension in (("tok/s/GPU", "per GPU"), ("tok_s_per_user", "per user")):
        match = lookup(header)
        assert match is not None
        assert match.dimension == dimension


def test_every_field_of_a_run_is_its_own_header() -> None:
    for name in EDITABLE:
        match = lookup(name)
        assert match is not None
        assert match.field == name


def test_no_spelling_stands_twice() -> None:
    found = [s for names in spellings.PLAIN.values() for s in names]
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("tensor_parallel", "8", 8),
        ("prefix_caching", "yes", True),
        ("prefix_caching", "off", False),
        ("spec_state", "off", SpecState.OFF),
        ("spec_state", "unknown", SpecState.UNKNOWN),
        ("load_kind", "Batch", LoadKind.BATCH),
        ("load_kind", "concurrent requests", LoadKind.CONCURRENCY),
        ("load_kind", "request rate", LoadKind.REQUEST_RATE),
        ("offered_load", "inf", float("inf")),
        ("temperature", "0", 0.0),
        ("gpu", " H100 ", "H100"),
        ("started_at", "2026-03-01 12:30:00", datetime(2026, 3, 1, 12, 30, tzinfo=UTC)),
    ],
)
def test_values_are_typed(name: str, text: str, value: object) -> None:
    assert convert(name, text) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("tensor_parallel", "0"), ("tensor_parallel", "two"), ("prefix_caching", "maybe")),
        *(("spec_state", "maybe"), ("load_kind", "x"), ("offered_load", "0"), ("gpu", " ")),
        *(("temperature", "-1"), ("usd_per_hour", "nan"), ("num_speculative_tokens", "99999")),
        ("started_at", "yesterday"),
    ],
)
def test_values_outside_are_refused(name: str, text: str) -> None:
    with pytest.raises(InputError, match=name):
        convert(name, text)


def test_metadata_states_set_up_but_no_outcome() -> None:
    assert stated("tp", "8") == {"tensor_parallel": 8}
    assert stated("arm", "k4") == {"spec_state": SpecState.ON, "num_speculative_tokens": 4}
    assert stated("arm", "sim:2") == {
        "spec_state": SpecState.ON,
        "draft_method": "sim",
        "num_speculative_tokens": 2,
    }
    assert stated("throughput", "5") == {}
    assert stated("concurrency", "5") == {}
    assert stated("tp", "many") == {}
    assert stated("team", "x") == {}


def test_a_drafter_implies_speculation() -> None:
    assert settled({"num_speculative_tokens": 3})["spec_state"] is SpecState.ON
    assert "spec_state" not in settled({"num_speculative_tokens": 0})
    assert settled({"spec_state": SpecState.OFF, "draft_model": "x"})["spec_state"] is SpecState.OFF


@given(st.text(max_size=40), st.text(max_size=20) | st.integers() | st.floats() | st.none())
def test_any_key_and_value(key: str, value: object) -> None:
    assert set(stated(key, value)) <= {*EDITABLE, "repeat", "seed"}


@pytest.mark.parametrize("value", ["none", "null", "None", "", "n/a", "off", "disabled"])
@pytest.mark.parametrize("key", ["draft_model", "speculative_model", "draft_method", "method"])
def test_a_drafter_called_none_is_none(key: str, value: str) -> None:
    found = settled(stated(key, value))
    assert found.get("spec_state") is not SpecState.ON
    assert not {"draft_model", "draft_method"} & found.keys()


def test_a_k_beside_a_drafter_called_none_still_counts() -> None:
    found = settled({"draft_model": "none", "draft_method": "ngram", "num_speculative_tokens": 3})
    assert found == {
        "draft_method": "ngram",
        "num_speculative_tokens": 3,
        "spec_state": SpecState.ON,
    }
