"""Compare on goodput: counted where the study keeps its requests, judged where it does not."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from lib.cli import app as command_line
from tests import saved_requests
from tests.pages.test_judged import DEMO, L4, said, unescaped
from tests.pages.test_pages import figures, sliders, start

GOODPUT = {"metric": "Goodput"}


@pytest.fixture
def served(own_store: None, tmp_path: Path) -> str:
    """The name of a study that keeps every request."""
    folder = tmp_path / "results"
    folder.mkdir()
    for name, data in saved_requests.files(requests=40).items():
        (folder / name).write_bytes(data)
    done = CliRunner().invoke(
        command_line, ["import", str(folder), "--study", "served", *saved_requests.RULES]
    )
    assert done.exit_code == 0, done.stderr
    return "served"


def compared(**link: str) -> AppTest:
    app = start("compare", **GOODPUT, **link)
    assert not app.exception
    return app


def test_a_tight_limit_moves_the_crossing(served: str) -> None:
    loose = unescaped(compared(study=served, slo_tpot_ms="500"))
    assert "stops paying between 32 and 64" in loose
    app = compared(study=served, slo_tpot_ms="17")
    assert "stops paying between 16 and 32" in unescaped(app)
    assert "counted from per-request records: TPOT ≤ 17 ms in each request" in unescaped(app)
    assert "Multiplier on goodput" in [f["title"] for f in figures(app)]
    assert "Goodput over load, TPOT ≤ 17 ms in each request" in [f["title"] for f in figures(app)]


def test_the_limits_are_sliders_here_and_fields_in_the_sidebar(served: str) -> None:
    app = compared(study=served, slo_tpot_ms="17", slo_e2e_ms="900")
    shown = {k: s["value"] for k, s in sliders(app).items()}
    assert shown == {"slo_ttft_ms": None, "slo_tpot_ms": 17, "slo_e2e_ms": 900}
    assert app.number_input(key="slo_tpot_ms typed").value == 17
    app.number_input(key="slo_tpot_ms typed").set_value(25.0).run()
    assert sliders(app)["slo_tpot_ms"]["value"] == 25
    assert "TPOT ≤ 25 ms, E2E ≤ 900 ms in each request" in unescaped(app)
    assert app.query_params["slo_tpot_ms"] == "25"
    app.number_input(key="slo_e2e_ms typed").set_value(None).run()
    assert "slo_e2e_ms" not in app.query_params
    assert "E2E" not in unescaped(app)


def test_other_metrics_have_no_limit_sliders(served: str) -> None:
    app = start("compare", study=served, slo_tpot_ms="17")
    assert not {k for k in sliders(app) if k.startswith("slo_")}
    assert "SLO: p99 TPOT ≤ 17 ms" in unescaped(app)


def test_no_good_request_is_said_in_words(served: str) -> None:
    app = compared(study=served, slo_tpot_ms="10")
    assert "off has no good request, eagle3:4 has good requests" in unescaped(app)
    assert "by who holds the SLO: ▲ only the arm" in unescaped(app)
    assert "∞" not in said(app)
    nothing = compared(study=served, slo_tpot_ms="1")
    assert "at 1 to 64 both have no good request" in unescaped(nothing)
    assert not [f for f in figures(nothing) if f["title"] == "Multiplier on goodput"]
    assert set(sliders(nothing)) == {"slo_ttft_ms", "slo_tpot_ms", "slo_e2e_ms"}


def test_percentiles_pass_or_fail_and_make_no_ratio() -> None:
    app = compared(study=DEMO, slo_tpot_ms="14", slo_percentile="p95")
    assert "Judged by percentile, for want of per-request records" in unescaped(app)
    assert "both miss the SLO" in unescaped(app)
    assert "Multiplier on goodput" not in [f["title"] for f in figures(app)]


@pytest.mark.parametrize(
    ("link", "way_out"),
    [
        ({}, "name a limit on TTFT, TPOT or the end-to-end time"),
        ({"slo_tpot_ms": "40"}, "import results that keep every request"),
    ],
)
def test_what_cannot_be_answered_names_the_way_out(link: dict[str, str], way_out: str) -> None:
    app = compared(study=L4, **link)
    assert way_out in unescaped(app)
    assert set(sliders(app)) == {"slo_ttft_ms", "slo_tpot_ms", "slo_e2e_ms"}


def test_a_limit_out_of_range_is_ignored_and_said() -> None:
    first = start(slo_tpot_ms="-3")
    assert any("slo" in c.value and "allowed is" in c.value for c in first.caption)
