import math

import pytest

from lib.errors import InputError
from lib.run import EDITABLE, GROUPS, SIMULATED, LoadKind, Run, Slo, SpecState, Study


@pytest.mark.parametrize(
    ("fields", "arm"),
    [
        ({"spec_state": SpecState.OFF}, "off"),
        ({"spec_state": SpecState.OFF, "num_speculative_tokens": 4}, "off"),
        ({}, None),
        ({"spec_state": SpecState.ON, "draft_method": "eagle3"}, "eagle3"),
        ({"spec_state": SpecState.ON, "num_speculative_tokens": 3}, "speculation:3"),
        (
            {"spec_state": SpecState.ON, "draft_method": "mtp", "num_speculative_tokens": 0},
            "mtp:0",
        ),
        ({"spec_state": SpecState.ON, "draft_method": "mtp", "schedule": "[]"}, "mtp:schedule"),
    ],
)
def test_arm(fields: dict[str, object], arm: str | None) -> None:
    assert Run(run_id="r", **fields).arm == arm  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["output_tps", "ttft_ms_p99", "offered_load", "completed"])
@pytest.mark.parametrize("value", [-1, math.nan])
def test_numbers_are_not_negative_nor_nan(name: str, value: float) -> None:
    with pytest.raises(InputError, match=name):
        Run(run_id="r", **{name: value})  # type: ignore[arg-type]


def test_load_may_be_infinite_but_not_zero() -> None:
    run = Run(run_id="r", load_kind=LoadKind.REQUEST_RATE, offered_load=math.inf)
    assert run.offered_load == math.inf
    with pytest.raises(InputError, match="offered_load"):
        Run(run_id="r", offered_load=0)
    with pytest.raises(InputError, match="output_tps"):
        Run(run_id="r", output_tps=math.inf)


def test_groups_name_fields_of_the_run() -> None:
    for group in (GROUPS.workload, GROUPS.server, GROUPS.allocation, GROUPS.speculation, EDITABLE):
        assert all(hasattr(Run(run_id="r"), name) for name in group)
        assert len(set(group)) == len(group)


def test_slo() -> None:
    assert Slo(ttft_ms=500, tpot_ms=40).text == "p99 TTFT ≤ 500 ms, p99 TPOT ≤ 40 ms"
    with pytest.raises(InputError, match="ttft_ms"):
        Slo(ttft_ms=0)
    with pytest.raises(InputError, match="percentile"):
        Slo(percentile="p75")


def test_slo_is_parsed() -> None:
    assert Slo.parse("ttft_ms=500, tpot_ms=40,percentile=p95") == Slo(500, 40, percentile="p95")
    for bad in ("", "ttft=500", "ttft_ms=fast", "percentile=p95", "ttft_ms=-1", "ttft_ms=nan"):
        with pytest.raises(InputError, match="slo"):
            Slo.parse(bad)
    with pytest.raises(InputError, match="tpot_ms is named twice"):
        Slo.parse("tpot_ms=20,tpot_ms=30")


def test_heading_says_what_is_not_recorded() -> None:
    study = Study("s", (Run(run_id="a", target="T"), Run(run_id="b", draft_method="mtp")))
    assert study.heading == "T · mtp · GPU not recorded"


def test_a_simulated_study_says_so_wherever_it_came_from() -> None:
    runs = (Run(run_id="a", engine=SIMULATED), Run(run_id="b"))
    assert Study("s", runs).caveat == "simulated engine: no GPU was measured"
    assert Study("s", runs[1:]).caveat == ""
