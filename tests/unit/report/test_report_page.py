"""The page to print: the price page's numbers, nothing from outside, names as typed."""

import re
from html import unescape
from html.parser import HTMLParser

import pytest

from lib import decision
from lib.money.pricing import Rate
from lib.report import page
from lib.report.format import money, percent
from lib.report.price_text import saving_lines
from lib.report.sentences import crossing_lines
from lib.results import published
from tests.unit.evidence import builders
from tests.unit.report.dossiers import PAID, corners, dossier, simulated, study

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=http://192.0.2.9/p.png>',
    "' onload='alert(1)",
    "</title><base href=//192.0.2.9>",
    "![i](http://192.0.2.9/p.png)",
    "</style></svg><b>bold</b>",
    "a\x00b\u2028c\u202etxt.exe",
    "&lt;b&gt; &#60;i&#62;",
    "\ud800",
]


class Elements(HTMLParser):
    """Every element with its attributes, and the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


KNOWN = {
    *("html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "b", "span", "div"),
    *("dl", "dt", "dd", "ul", "li", "table", "thead", "tbody", "tr", "th", "td"),
    *("figure", "figcaption", "svg", "defs", "clippath", "pattern", "rect", "line", "g"),
    *("polygon", "polyline", "circle", "text"),
}


def text_of(html: str) -> str:
    return " ".join(" ".join(Elements(html).text).split())


def test_the_numbers_are_those_of_the_price_page() -> None:
    found = simulated()
    html = page.build(found)
    text = text_of(html)
    sentence, estimate, pair = found.answer
    assert sentence in text
    assert estimate is not None
    assert estimate.source in text
    assert " ".join(estimate.how.split()) in text
    assert pair is not None
    for line in saving_lines(pair, found.tokens_per_day, found.rate.utilization):
        assert line in text
    for line in crossing_lines(found.found):
        assert line in text
    for pairs in found.priced.values():
        for each in pairs:
            assert each.complete is not None
            off, on, saving = each.complete
            for price in (off, on):
                assert price.low is not None
                assert price.high is not None
                assert f"{money(price.value)} ({money(price.low)}–{money(price.high)})" in text
            assert percent(saving.value) in text


def test_every_number_stands_beside_its_basis_and_source() -> None:
    html = page.build(simulated())
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    priced = [r for r in rows if "runs of sim:" in r]
    assert len(priced) == 14
    assert all('<span class="chip">measured</span>' in r for r in priced)
    assert html.count('<span class="chip">assumed</span> ') >= 1
    text = text_of(html)
    assert "Price 2 $ per GPU-hour assumed typed for a test 2026-12-01" in text
    assert "Utilisation 60 % assumed" in text
    assert "Utilisation with speculation not typed" in text


def test_the_page_says_what_must_be_known() -> None:
    found = simulated(scenario="0123456789ab")
    text = text_of(page.build(found))
    assert "simulated engine: no GPU was measured" in text
    assert "SLO unknown: none was named" in text
    assert "0123456789ab" in text
    assert found.digest in text
    assert "not recorded: target_revision" in text


def test_the_steps_of_the_decision_are_told() -> None:
    bare = simulated()
    result = decision.verdict(bare.found, 8.0)
    pairs = [p for rows in bare.priced.values() for p in rows if p.on.load == 8]
    steps = decision.gates(bare.found, result, None, pairs, "No schedule.", None, PAID)
    text = text_of(page.build(simulated(gates=steps)))
    for step in steps:
        assert step.title in text
        assert step.known in text
        assert step.missing in text


@pytest.mark.parametrize(
    "which",
    [
        "eagle3_sglang_h100_llama31_8b",
        "vllm_h100_qwen25_7b_ngram_extractive",
        "trtllm_l4_qwen25_1p5b_draft0p5b_load",
    ],
)
@pytest.mark.parametrize("rate", [PAID, Rate()], ids=["paid", "nothing typed"])
def test_every_study_has_a_page(which: str, rate: Rate) -> None:
    found = dossier(published.study(which), rate, load=None, tokens_per_day=None)
    text = text_of(page.build(found))
    assert found.answer[0] in text
    assert found.found.study.citation in text


def test_nothing_comes_from_outside() -> None:
    html = page.build(dossier(corners()))
    elements = Elements(html)
    policy = next(
        a["content"] for _, a in elements.found if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert {tag for tag, _ in elements.found} <= KNOWN
    for tag, attributes in elements.found:
        assert attributes.keys().isdisjoint({"href", "src", "srcset", "style", "action", "data"})
        assert not [k for k in attributes if k.startswith("on")], tag
    assert "url(" not in page.STYLE
    assert "@import" not in page.STYLE
    assert set(re.findall(r"url\((.*?)\)", html)) <= {
        *("#price-plot", "#price-hatch", "#multiplier-plot", "#multiplier-hatch")
    }


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_name_from_a_file_is_shown_as_typed(name: str) -> None:
    runs = [
        *(builders.off(x, 45.0 * x, dataset=name, target=name, tool=name) for x in (8, 16)),
        *(
            builders.on(x, 81.0 * x, dataset=name, target=name, tool=name, draft_method=name)
            for x in (8, 16)
        ),
    ]
    html = page.build(dossier(study(runs, title=name, citation=name, note=name)))
    html.encode()
    assert {tag for tag, _ in Elements(html).found} <= KNOWN
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u2028\u202e]", html)
    if name.isascii() and name.isprintable():
        assert unescape(name) in text_of(html) or name in text_of(html)


def test_an_unpriced_page_says_why() -> None:
    found = simulated(Rate())
    text = text_of(page.build(found))
    assert "Nothing is priced: type a $/GPU-h, type the GPUs, type the utilisation." in text
    assert "not typed" in text
