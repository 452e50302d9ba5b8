"""The decision page in its states: first visit, a load named, an own study with gaps."""

import html

import pytest
from streamlit.testing.v1 import AppTest

from lib.results.importing import import_paths
from lib.results.store import Store
from tests.pages.conftest import ROOT
from tests.pages.test_pages import start

DEMO = "guidellm-0.8.1-simulated"
PAID = {"usd_per_gpu_hour": "2", "gpu_count": "1", "utilization": "0.6", "max_num_seqs": "64"}
RAILS = (
    "Net latency loss despite τ",
    "Gain disappears as load rises",
    "Published speedup not transferred",
    "Throughput gain but cost regression",
    "Dynamic schedule silently static",
)


def said(app: AppTest) -> str:
    blocks = [*app.markdown, *app.info, *app.caption, *app.warning]
    text = html.unescape("\n".join(str(b.value) for b in blocks))
    return text.replace("\u2060", "").replace("\xa0", " ")


def badges(app: AppTest) -> list[str]:
    """`passed`, `open` …: the word of every badge, in order."""
    marks = ("✓", "✕", "≈", "↻", "○")
    found = (m.value for m in app.markdown if any(x in m.value for x in marks))
    return [v.split("[")[-1].rstrip("]").split(" ", 1)[-1] for v in found]


def demo(**more: str) -> AppTest:
    app = start("decision", study=DEMO, load="8", **PAID, **more)
    box = app.multiselect(key="stated")
    return box.set_value(box.options).run()


@pytest.fixture
def mine(own_store: None) -> str:
    """One run an arm at 8, with counts of acceptance and most of the protocol missing."""
    store = Store.open()
    folder = ROOT / "tests" / "fixtures" / "vllm"
    rules = ["off-*=off", "eagle3-*=eagle3:3"]
    import_paths(store, [folder / n for n in ("off-c8.json", "eagle3-c8.json")], "mine", rules)
    store.close()
    return "mine"


def test_the_first_visit_asks_and_claims_nothing() -> None:
    app = start("decision")
    assert not app.exception
    text = said(app)
    assert "Name your operating load" in text
    assert "What would flip this" not in text
    assert "of redraws" not in text
    assert all(f"**{r}.**" in text for r in RAILS)
    assert badges(app) == ["missing"] * 6 + ["open"] * 5
    assert "Type the speedup that was published for this drafter, below." in text


def test_the_demo_with_a_load_and_a_price() -> None:
    app = demo()
    assert not app.exception
    text = said(app)
    assert "Speculate with K = 4 up to 16 concurrent: saves 47 % (42 to 51 %) per output" in text
    assert "it costs more, measured at 64; not yet proven: the K = 0 tier and the SLO." in text
    assert "holds in more than 99 % of redraws" in text
    assert "**What would flip this.** M may fall by 47 % (1.87× to 1.00×)" in text
    assert badges(app)[2:4] == ["passed", "passed"]
    assert badges(app)[6:] == ["green", "tripped", "open", "green", "open"]


def test_a_claim_is_compared_with_the_lowest_load() -> None:
    app = demo()
    app.number_input(key="claimed_speedup").set_value(2.5).run()
    assert not app.exception
    assert "2.5× is claimed; sim:4 measures 2.02×" in said(app)
    assert badges(app)[8] == "tripped"


def test_a_claim_in_the_link_counts_at_once() -> None:
    assert badges(demo(claimed_speedup="2"))[8] == "green"
    app = demo(claimed_speedup="fast")
    assert not app.exception
    assert badges(app)[8] == "open"


def test_an_own_study_with_missing_fields(mine: str) -> None:
    app = start("decision", study=mine, load="8")
    assert not app.exception
    text = said(app)
    assert "3 repeats are needed for a verdict" in text
    assert "One run an arm: the margin has no interval." in text
    assert "Acceptance length τ may fall by" in text
    assert "the draft cost c is not known" in text
    assert "8 is not low batch" in text
    assert "passed" not in badges(app)
    assert "green" not in badges(app)


def test_every_gate_links_to_the_page_that_fills_it() -> None:
    links = [link.proto.page for link in demo().get("page_link")]
    for page in ("screen", "compare", "price", "acceptance"):
        assert any(page in link for link in links)
