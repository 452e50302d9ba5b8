"""Two builds of one arm, on the compare page."""

from pathlib import Path

from lib.results.importing import import_paths
from lib.results.store import Store
from tests.pages.test_judged import unescaped
from tests.pages.test_pages import start

HEAD = "arm,engine,engine_version,concurrency,output_tps,drafts,draft_tokens,accepted_tokens,gpu"


def test_c27_the_change_between_two_builds(tmp_path: Path) -> None:
    """C27."""
    rows = [HEAD]
    counts = {"0.11.0": (69.23, "68,198,132"), "0.12.0": (57.67, "79,231,121")}
    for version, (tps, counted) in counts.items():
        for away in (-0.3, 0, 0.3):
            rows.append(f"mtp:3,vllm,{version},1,{tps + away},{counted},H100")
            rows.append(f"off,vllm,{version},1,{40 + away},,,,H100")
    (tmp_path / "t.csv").write_text("\n".join(rows))
    store = Store.open()
    import_paths(store, [tmp_path / "t.csv"], "builds")
    store.close()
    app = start("compare", study="builds")
    assert not app.exception
    (box,) = (s for s in app.selectbox if s.label == "Between two builds")
    assert box.value == "1: mtp:3 at 1 concurrent: 0.11.0 → 0.12.0"
    assert "τ 2.941 → 2.532 (−13.9 %), tok/s −16.7 %, step time +3.3 %." in unescaped(app)
    assert "82 % of the loss is acceptance, the rest step time." in unescaped(app)
