"""Sentences, tables and figures of the acceptance page."""

from dataclasses import replace

import plotly.graph_objects as go
import pytest

from lib.evidence import acceptance_groups as groups
from lib.evidence import acceptance_presets as presets
from lib.evidence.acceptance import Acceptance, of_lengths, of_name, of_run, of_survival
from lib.evidence.acceptance_groups import Group
from lib.report import acceptance_figures as figures
from lib.report import acceptance_text as text
from lib.report.split_text import split_lines
from lib.run import LoadKind, Run, SpecState, Study
from lib.theory import decay
from lib.theory.acceptance import Method, Ratio
from lib.theory.acceptance_names import BY_KEY, NAMES

COUNTED = Run(
    run_id="a",
    spec_state=SpecState.ON,
    draft_method="eagle3",
    num_speculative_tokens=3,
    drafts=713,
    draft_tokens=2139,
    accepted_tokens=991,
    accepted_per_position=(477, 319, 195),
    output_tokens=1704,
)
INSTRUCT = (0.594, 0.372, 0.255, 0.189, 0.144, 0.116, 0.090)
NGRAM = (0.263, 0.231, 0.214, 0.201, 0.189, 0.182, 0.168)


def counted() -> Acceptance:
    found = of_run(COUNTED)
    assert found is not None
    return found


def published(survival: tuple[float, ...], method: str) -> Acceptance:
    return of_survival(survival, "a table", method, None)


EVERY = [
    counted(),
    published(INSTRUCT, "eagle3"),
    published(NGRAM, "ngram"),
    published((0.5, 0.0, 0.0), "dflash"),
    published((0.7,), "mtp"),
    *(of_name(n, 0.4 * n.most(3) + 0.6 * (n.most(3) > 1), 3) for n in NAMES),
    of_name(BY_KEY["trtllm_rate"], 2.4, None),
    of_name(BY_KEY["sglang_length"], 2.4, 2, topk=4),
    *(p.at(p.gammas[-1]) for p in presets.presets()),
]


def test_the_answer_of_counters() -> None:
    sentence, estimate = text.answer(counted())
    assert sentence == "α = 0.657 (0.632–0.680): 2.39 tokens a round at γ = 3. A single α fits."
    assert estimate.value == pytest.approx(0.6567, abs=5e-5)
    assert "lower bound on the uncertainty" in estimate.source


def test_the_answer_that_misleads() -> None:
    sentence, _ = text.answer(published(INSTRUCT, "eagle3"))
    assert sentence.endswith("It misleads: it would promise 7 % more at γ = 3.")


def test_a_published_curve_misleads_far_out() -> None:
    kimi = presets.of_model("kimi-k2.5-nvfp4")["EAGLE3, thinking on"]
    sentence, _ = text.answer(kimi.at(1))
    assert sentence.endswith("It misleads: it would promise 27 % more at γ = 8.")


def test_the_answer_where_the_first_position_decides() -> None:
    sentence, estimate = text.answer(published(NGRAM, "ngram"))
    assert "the first position decides" in sentence
    assert estimate.unit == "tokens a round"


def test_the_answer_without_alpha() -> None:
    sentence, estimate = text.answer(of_name(BY_KEY["trtllm_rate"], 2.4, None))
    assert sentence == "2.40 tokens a round. The draft length γ is not recorded: τ only."
    assert estimate.value == 2.4


def test_the_table_says_what_the_source_called_it() -> None:
    table = text.given_table(counted())
    assert table["the source says"] == [
        "accepted tokens",
        "accepted / drafted",
        "acceptance by position",
    ]
    assert table["τ"] == [2.3899] * 3
    assert table["(τ − 1) / γ"] == [0.4633] * 3
    assert table["α"] == ["0.657"] * 3
    assert table["α, 95 %"] == ["0.632 to 0.680"] * 3


def test_regret_and_what_if() -> None:
    choice = text.choose(published(INSTRUCT, "eagle3"), 0.1, 1.0)
    assert choice is not None
    curve = published(INSTRUCT, "eagle3").curve
    assert curve is not None
    assert choice.gamma == decay.best_gamma(curve, 0.1).gamma
    assert any("A single α" in line for line in choice.lines)
    assert any("acceptance may fall by" in line for line in choice.lines)
    dear = text.choose(published(INSTRUCT, "eagle3"), 0.9, 1.0)
    assert dear is not None
    assert "No draft length pays at this cost." in dear.lines
    assert any("loses already" in line for line in dear.lines)


def test_a_parallel_drafter_is_not_judged_by_c_times_gamma() -> None:
    choice = text.choose(published((0.5, 0.3, 0.1), "dflash"), 0.1, 1.0)
    assert choice is not None
    assert choice.gamma == 3
    assert choice.speedup == pytest.approx(1.9 / 1.1)
    assert "once a round" in choice.lines[0]


@pytest.mark.parametrize("found", EVERY, ids=lambda a: a.source[:40])
def test_everything_can_be_said_and_drawn(found: Acceptance) -> None:
    sentence, _ = text.answer(found)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    table = text.given_table(found)
    assert len({len(c) for c in table.values()}) == 1
    for line in text.notes(found):
        assert line.endswith(".")
    for c, v in ((0.0, 1.0), (0.1, 1.3), (1.0, 2.0)):
        text.choose(found, c, v)
        drawn = [figures.length_figure(found, "light")]
        if figures.has_positions(found):
            drawn.append(figures.position_figure(found, "dark"))
        if (speedup := figures.speedup_figure(found, c, v, "light")) is not None:
            drawn.append(speedup)
        for figure in drawn:
            assert go.Figure(figure).layout.height == figures.HEIGHT
        assert all(figures.alt_texts(found, c, v).values())


def test_figures_are_drawn_from_their_columns() -> None:
    found = published(INSTRUCT, "eagle3")
    by_position = figures.by_position(found)
    assert by_position["acceptance"][1] == pytest.approx(0.372 / 0.594)
    over = figures.over_gamma(found)
    assert over["gamma"] == list(range(1, 12))
    assert over["measured"][6] == pytest.approx(1 + sum(INSTRUCT))
    assert over["measured"][7:] == [None] * 4
    speedup = figures.speedup_over_gamma(found, 0.1, 1.0)
    assert speedup["measured"] == [True] * 7 + [False] * 4
    assert speedup["speedup"][0] == pytest.approx(1.594 / 1.1)


def two_builds() -> tuple[Group, ...]:
    a = replace(
        COUNTED,
        build="A",
        draft_tokens=198,
        accepted_tokens=132,
        accepted_per_position=None,
        drafts=68,
        output_tps=69.23,
        output_tokens=None,
    )
    b = replace(
        a, run_id="b", build="B", draft_tokens=231, accepted_tokens=121, drafts=79, output_tps=57.67
    )
    return groups.groups(Study("s", (a, b)))


def test_c27_two_builds_in_words() -> None:
    """C27."""
    first, second = two_builds()
    said = split_lines(first, second)
    assert said[0] == ("τ 2.941 → 2.532 (−13.9 %), tok/s −16.7 %, step time +3.3 %.")
    assert said[1] == "82 % of the loss is acceptance, the rest step time."


def test_c58_acceptance_explains_all_and_more_in_words() -> None:
    """C58."""
    low = Run(
        run_id="a",
        spec_state=SpecState.ON,
        draft_method="dflash",
        num_speculative_tokens=7,
        accept_rate=0.35,
        output_tps=29.5,
        domain="ours",
    )
    high = replace(low, run_id="b", accept_rate=0.74, output_tps=46.9, domain="theirs")
    said = split_lines(*groups.groups(Study("s", (low, high))))
    assert said[0].startswith("τ 3.450 → 6.180 (+79.1 %), tok/s +59.0 %")
    assert "all of the gain and more" in said[1]


def test_c49_equal_rates_in_words() -> None:
    """C49."""
    a = replace(
        COUNTED,
        domain="coding",
        draft_tokens=1900,
        accepted_per_position=None,
        output_tps=84.54,
        output_tokens=None,
    )
    b = replace(a, run_id="b", domain="humanities", output_tps=66.80)
    said = split_lines(*groups.groups(Study("s", (a, b))))
    assert any("Equal rates, unequal speed" in line for line in said)


def test_loads_that_differ_are_split_by_tpot_alone() -> None:
    a = replace(COUNTED, load_kind=LoadKind.CONCURRENCY, offered_load=1, output_tps=80)
    b = replace(a, run_id="b", offered_load=8, output_tps=400)
    first, second = groups.groups(Study("s", (a, b)))
    assert split_lines(first, second) == ["Neither tok/s at one load nor TPOT is recorded in both."]
    both = (replace(a, tpot_ms_mean=10), replace(b, tpot_ms_mean=16))
    said = split_lines(*groups.groups(Study("s", both)))
    assert said[0].endswith("speed by TPOT −37.5 %, step time +60.0 %.")


def test_c87_in_words() -> None:
    """C87."""
    run = replace(
        COUNTED,
        drafts=1000,
        draft_tokens=3000,
        accepted_tokens=1500,
        accepted_per_position=None,
        output_tokens=10000,
    )
    (line,) = text.share_lines(groups.groups(Study("s", (run,))))
    assert "speculation made 25 % of the output" in line
    assert "1.18 tokens a step, not 2.5" in line


def test_the_mix_starts_as_measured_and_is_assumed_once_moved() -> None:
    other = replace(COUNTED, run_id="b", domain="code", accepted_tokens=1520,
                    accepted_per_position=(600, 500, 420), output_tokens=2233)  # fmt: skip
    (members,) = groups.series(
        groups.groups(Study("s", (replace(COUNTED, domain="chat"), other)))
    ).values()
    shares = text.measured_shares(members)
    assert shares == {"chat": 43, "code": 57}
    assert text.mix(members, shares).basis == "derived"
    moved = text.mix(members, {"chat": 100, "code": 0})
    assert moved.basis == "assumed"
    assert moved.value == pytest.approx(members[0].acceptance.tau.value)


def test_c48_positions_that_add_nothing() -> None:
    """C48."""
    log = (0.600, 0.385, 0.215, 0.108, 0.062, *(0.0,) * 10)
    said = text.notes(published(log, "draft_model"))
    assert "Positions 6 to 15: nothing is accepted; draft 5 or fewer." in said
    assert not any("nothing is accepted" in n for n in text.notes(counted()))


def test_what_is_kept_out_of_screen() -> None:
    assert text.why_not_in_screen(counted()) == ""
    assert "first position" in text.why_not_in_screen(published(NGRAM, "ngram"))
    assert "tree" in text.why_not_in_screen(of_name(BY_KEY["sglang_length"], 2.4, 2, topk=4))
    assert "not trusted" in text.why_not_in_screen(of_name(BY_KEY["vllm_length"], 4.0, 3))
    assert "1 to 16" in text.why_not_in_screen(of_name(BY_KEY["vllm_length"], 4.0, 32))


def test_the_groups_table_has_one_row_a_group() -> None:
    table = text.groups_table(two_builds())
    assert table["runs"] == [1, 1]
    assert len({len(c) for c in table.values()}) == 1


def test_c49_lengths_within_their_error_are_not_told_apart() -> None:
    """C49: two values 0.047 apart with a standard error of 0.08 each."""

    def measured(group: Group, tau: float, se: float) -> Group:
        length = Ratio(tau, Method.REQUESTS, se, tau - 2 * se, tau + 2 * se)
        return replace(group, acceptance=replace(group.acceptance, tau=length))

    first, second = two_builds()
    close = split_lines(measured(first, 2.103, 0.08), measured(second, 2.150, 0.08))
    assert "not distinguishable" in close[1]
    far = split_lines(measured(first, 2.10, 0.01), measured(second, 2.15, 0.01))
    assert not any("not distinguishable" in line for line in far)


def test_one_alpha_and_two_parameters_over_measured_lengths() -> None:
    curve = {1: 1.80, 2: 2.35, 4: 3.00, 8: 3.45}
    found = of_lengths(curve, 8, "a curve", "eagle3")
    line = text.decay_text(found)
    assert "Over these lengths it misses τ by at most" in line
    assert "the best single α, 0." in line
    two = text.decay_text(of_lengths({1: 1.7, 2: 2.1}, 2, "two", "eagle3"))
    assert "misses" not in two
