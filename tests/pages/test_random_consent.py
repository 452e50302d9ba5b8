"""Random tokens are compared freely; a price or a schedule waits for a person's word."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from lib.results import published
from lib.results.importing import import_paths
from lib.results.store import Store
from tests.pages.test_judged import unescaped
from tests.pages.test_pages import start

PAID = {"usd_per_gpu_hour": "2", "gpu_count": "1", "utilization": "0.6"}
ASKED = "no price and no schedule is made of it"


@pytest.fixture
def mine(own_store: None, tmp_path: Path) -> str:
    """Off and K = 4 of the simulated sweep, recorded as run on random tokens."""
    folder = tmp_path / "in"
    folder.mkdir()
    for name, data in published.demo_files():
        if "-r1.json" in name and not name.startswith("k2"):
            (folder / name).write_bytes(data)
    store = Store.open()
    import_paths(store, [folder], "mine", ["base-*=off", "k4-*=sim:4"], ["dataset=random"])
    store.close()
    return "mine"


def opened(page: str, study: str, **link: str) -> AppTest:
    app = start(page, study=study, load="8", max_num_seqs="64", **PAID, **link)
    assert not app.exception
    return app


def test_the_price_waits_and_then_carries_the_note(mine: str) -> None:
    app = opened("price", mine)
    assert ASKED in unescaped(app)
    assert "per 1M output tokens at 8" not in unescaped(app)
    app.checkbox(key="random_ok").check().run()
    assert not app.exception
    assert "per 1M output tokens at 8 concurrent with sim:4" in unescaped(app)
    assert ASKED not in unescaped(app)
    assert "random tokens: acceptance, and what rests on it" in unescaped(app)


def test_the_link_carries_the_word(mine: str) -> None:
    app = start(None, study=mine, load="8", max_num_seqs="64", random_ok="true", **PAID)
    assert not app.exception
    assert app.checkbox(key="random_ok").value is True
    assert "On random tokens: acceptance" in unescaped(app)


def test_the_schedule_waits_while_the_comparison_stands(mine: str) -> None:
    app = opened("compare", mine)
    assert ASKED in unescaped(app)
    assert "sim:4 is ahead at 1 to 16" in unescaped(app)
    assert not [c for c in app.code if c.language == "json"]
    app.checkbox(key="random_ok").check().run()
    assert not app.exception
    assert [c for c in app.code if c.language == "json"]
    assert "repeat it on your own prompts first" in unescaped(app)


def test_the_gates_of_the_decision_ask_once(mine: str) -> None:
    app = opened("decision", mine)
    assert unescaped(app).count(ASKED) == 1
    assert "Measured on random tokens" in unescaped(app)
    app.checkbox(key="random_ok").check().run()
    assert not app.exception
    assert "On random tokens: acceptance" in unescaped(app)


def test_real_prompts_are_asked_nothing() -> None:
    for page in ("compare", "price", "decision"):
        app = start(page, study="guidellm-0.8.1-simulated", max_num_seqs="64", **PAID)
        assert "random_ok" not in [c.key for c in app.checkbox]
