"""What runs, counters, pasted text and presets say of acceptance."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lib.errors import DraftworthError, InputError
from lib.estimate import Basis
from lib.evidence import acceptance_groups as groups
from lib.evidence import acceptance_paste as paste
from lib.evidence import acceptance_presets as presets
from lib.evidence.acceptance import Acceptance, of_name, of_requests, of_run
from lib.run import LoadKind, Run, SpecState, Study
from lib.theory import mixing
from lib.theory.acceptance import Method
from lib.theory.acceptance_names import BY_KEY

ROOT = Path(__file__).resolve().parents[3]
COUNTED = Run(
    run_id="a",
    label="chat",
    engine="vLLM",
    spec_state=SpecState.ON,
    draft_method="eagle3",
    num_speculative_tokens=3,
    drafts=713,
    draft_tokens=2139,
    accepted_tokens=991,
    accepted_per_position=(477, 319, 195),
    domain="chat",
    load_kind=LoadKind.CONCURRENCY,
    offered_load=1,
    output_tokens=1704,
    output_tps=69.23,
)


def said(run: Run) -> Acceptance:
    found = of_run(run)
    assert found is not None
    return found


def study(*runs: Run) -> Study:
    return Study("s", tuple(replace(r, run_id=str(i)) for i, r in enumerate(runs)))


# One run


def test_counters_give_tau_alpha_and_positions() -> None:
    found = said(COUNTED)
    assert found.tau.value == pytest.approx(2.3899, abs=5e-5)
    assert found.rate == pytest.approx(0.4633, abs=5e-5)
    assert found.alpha is not None
    assert found.alpha.value == pytest.approx(0.6567, abs=5e-5)
    assert found.alpha.method is Method.ALIKE
    assert [g.called for g in found.given] == [
        "accepted tokens",
        "accepted / drafted",
        "acceptance by position",
    ]
    assert not found.misleads
    assert not found.first_decides


def test_a_length_alone_is_inverted_without_an_interval() -> None:
    found = said(
        Run(run_id="a", spec_state=SpecState.ON, num_speculative_tokens=3, accept_length=2.17)
    )
    assert found.alpha is not None
    assert found.alpha.value == pytest.approx(0.598, abs=5e-4)
    assert (found.alpha.method, found.alpha.low) == (Method.LENGTH, None)


def test_counts_decide_over_a_stated_length() -> None:
    """C15."""
    old = Run(
        run_id="a",
        spec_state=SpecState.ON,
        num_speculative_tokens=5,
        drafts=1000,
        draft_tokens=5000,
        accepted_tokens=1920,
        accept_length=1.92,
    )
    for run in (old, replace(old, accept_length=2.92)):
        assert said(run).tau.value == pytest.approx(2.92)
    assert any("bonus" in r for r in said(old).remarks)
    assert of_run(replace(old, drafts=None, accepted_tokens=None, accept_length=0.92)) is None


def test_c43_a_rate_of_unknown_depth_is_read_both_ways() -> None:
    """C43."""
    (remark,) = of_name(BY_KEY["other_rate"], 0.852, 3).remarks
    assert "τ is 3.56" in remark
    assert "1.85 had it fallen to 1" in remark


def test_a_variable_draft_length_gives_tau_only() -> None:
    found = said(
        Run(
            run_id="a",
            spec_state=SpecState.ON,
            num_speculative_tokens=16,
            drafts=60,
            draft_tokens=912,
            accepted_tokens=313,
        )
    )
    assert found.alpha is None
    assert found.gamma is None
    assert found.no_alpha == "variable draft length (15.2 a round): τ only"
    assert said(replace(COUNTED, draft_tokens=None, schedule="[[1, 8, 3]]")).alpha is None


def test_c56_a_typed_rate_of_a_tree_is_refused() -> None:
    """C56: 0.60 is length over 4 draft tokens; 2 steps do not tell that."""
    for name in ("sglang_old_rate", "sglang_rate", "vllm_rate"):
        with pytest.raises(InputError, match="of a tree"):
            of_name(BY_KEY[name], 0.6, 2, topk=4)
    assert of_name(BY_KEY["sglang_length"], 2.4, 2, topk=4).tau.value == 2.4


def test_c56_a_tree_uses_its_length() -> None:
    """C56."""
    tree = Run(
        run_id="a",
        spec_state=SpecState.ON,
        draft_method="eagle",
        num_speculative_tokens=2,
        draft_topk=4,
        accept_length=2.4,
        accept_rate=0.6,
    )
    found = said(tree)
    assert found.tau.value == 2.4
    assert found.alpha is None
    assert "tree draft: α is not defined" in found.no_alpha
    assert [g.called for g in found.given] == ["accepted length"]


def test_c21_rounds_are_tokens_less_accepted() -> None:
    """C21."""
    found = paste.Typed(draft_tokens=260, accepted=208, generated=261, gamma=5).acceptance()
    assert found.tau.value == pytest.approx(4.92, abs=5e-3)
    assert found.alpha is not None
    assert found.alpha.value == pytest.approx(0.92, abs=5e-3)
    assert found.basis is Basis.ASSUMED


def test_c51_acceptance_of_exactly_0_or_1() -> None:
    """C51."""
    perfect = replace(
        COUNTED,
        drafts=168,
        draft_tokens=504,
        accepted_tokens=504,
        accepted_per_position=(168, 168, 168),
        output_tokens=None,
    )
    assert said(perfect).untrusted
    assert any("synthetic" in r for r in said(perfect).remarks)
    near = replace(perfect, accepted_tokens=480, accepted_per_position=(164, 160, 156))
    assert not said(near).untrusted
    none = replace(perfect, accepted_tokens=0, accepted_per_position=(0, 0, 0))
    assert said(none).untrusted
    assert said(none).tau.value == 1
    assert of_name(BY_KEY["vllm_length"], 4.0, 3).untrusted
    requests = of_requests([{3: [0, 0, 0, 168]}], "504 of 504")
    assert requests.untrusted
    assert any("synthetic" in r for r in requests.remarks)


def test_c52_random_tokens() -> None:
    """C52."""
    found = said(replace(COUNTED, dataset="random"))
    assert found.untrusted
    assert any("random tokens" in r for r in found.remarks)


def test_a_histogram_alone_gives_positions() -> None:
    found = said(replace(COUNTED, accepted_per_position=None, histogram=(236, 158, 124, 195)))
    assert found.survival == said(COUNTED).survival


def test_an_off_run_and_a_scheduled_zero_say_nothing() -> None:
    assert of_run(replace(COUNTED, spec_state=SpecState.OFF)) is None
    assert of_run(replace(COUNTED, num_speculative_tokens=0)) is None
    assert of_run(Run(run_id="a")) is None


def test_look_up_and_parallel_drafters_are_told_by_method() -> None:
    length = Run(run_id="a", spec_state=SpecState.ON, num_speculative_tokens=8, accept_length=2.5)
    lookup, parallel = (said(replace(length, draft_method=m)) for m in ("ngram", "dflash"))
    assert lookup.first_decides
    assert lookup.decay is None
    assert lookup.curve is None
    assert parallel.flat_cost
    assert lookup.flat_cost
    assert not parallel.first_decides


# Groups


def test_repeats_are_summed() -> None:
    (group,) = groups.groups(study(COUNTED, COUNTED))
    assert group.acceptance.tau.value == pytest.approx(said(COUNTED).tau.value)
    assert group.acceptance.rounds == 2 * 713
    assert group.acceptance.alpha is not None
    one, two = said(COUNTED).alpha, group.acceptance.alpha
    assert one is not None
    assert one.se is not None
    assert two.se == pytest.approx(one.se / 2**0.5)


def test_lengths_without_counts_mix_by_tokens() -> None:
    length = replace(
        COUNTED,
        drafts=None,
        draft_tokens=None,
        accepted_tokens=None,
        accepted_per_position=None,
        accept_length=2.0,
        output_tokens=100,
    )
    (group,) = groups.groups(study(length, replace(length, accept_length=3.0, output_tokens=300)))
    assert group.acceptance.tau.value == pytest.approx(400 / (100 / 2 + 300 / 3))


def test_runs_of_several_draft_lengths_give_tau_only() -> None:
    short = replace(COUNTED, draft_tokens=1426, accepted_tokens=796, accepted_per_position=None)
    found = groups.pooled([COUNTED, short], Basis.MEASURED, "both")
    assert found is not None
    assert found.tau.value == pytest.approx(1 + (991 + 796) / (2 * 713))
    assert (found.gamma, found.alpha) == (None, None)
    assert "several draft lengths" in found.no_alpha


def test_domains_are_one_series() -> None:
    other = replace(
        COUNTED,
        domain="code",
        accepted_per_position=(600, 500, 420),
        accepted_tokens=1520,
        output_tokens=2233,
    )
    (members,) = groups.series(groups.groups(study(COUNTED, other))).values()
    assert [g.place.domain for g in members] == ["chat", "code"]
    whole = groups.pooled([r for g in members for r in g.runs], Basis.MEASURED, "both")
    assert whole is not None
    assert whole.tau.value == pytest.approx(1 + (991 + 1520) / (2 * 713))
    tokens = [g.acceptance.tokens or 0 for g in members]
    mixed = mixing.mixed_tau([g.acceptance.tau.value for g in members], tokens)
    assert mixed == pytest.approx(whole.tau.value)


def test_c54_context_buckets() -> None:
    """C54."""
    short = replace(COUNTED, input_len=1024, draft_max_positions=2048)
    first, second = groups.groups(study(short, replace(short, input_len=4096)))
    assert (first.place.context, second.place.context) == ("input to 1,024", "input to 4,096")
    assert not any("positions" in r for r in first.acceptance.remarks)
    assert any("2048 positions" in r for r in second.acceptance.remarks)


def test_c26_acceptance_that_depends_on_batch() -> None:
    """C26."""
    rated = Run(
        run_id="a",
        spec_state=SpecState.ON,
        draft_method="dflash",
        num_speculative_tokens=15,
        accept_rate=0.585,
        load_kind=LoadKind.BATCH,
        offered_load=4,
    )
    low, high = groups.groups(study(rated, replace(rated, accept_rate=0.275, offered_load=16)))
    assert low.acceptance.alpha is not None
    assert high.acceptance.alpha is not None
    assert low.acceptance.alpha.value == pytest.approx(0.929, abs=5e-4)
    assert high.acceptance.alpha.value == pytest.approx(0.812, abs=5e-4)
    (line,) = groups.depends_on_load((low, high))
    assert "differs by 0.31 between batch 4 and batch 16" in line
    assert "check the engine" in line
    other_k = replace(rated, accept_rate=0.875, offered_load=16, num_speculative_tokens=1)
    assert groups.depends_on_load(groups.groups(study(rated, other_k))) == ()


def test_c87_output_of_steps_that_drafted() -> None:
    """C87."""
    run = replace(
        COUNTED,
        drafts=1000,
        draft_tokens=3000,
        accepted_tokens=1500,
        accepted_per_position=None,
        output_tokens=10000,
    )
    (group,) = groups.groups(study(run))
    share = groups.drafted_share(group)
    assert share is not None
    assert share.share == 0.25
    assert share.tokens_per_step == pytest.approx(1.176, abs=5e-4)


def test_c87_as_typed() -> None:
    """C87."""
    found = paste.Typed(drafts=1000, accepted=1500, generated=10000, gamma=3).acceptance()
    assert any("25 % of the output" in r and "1.176" in r for r in found.remarks)
    more = paste.Typed(drafts=1000, accepted=1500, generated=2000, gamma=3).acceptance()
    assert any("one window" in r for r in more.remarks)
    assert more.untrusted
    assert not found.untrusted


def test_c01_matches_typed_as_accepted_are_not_trusted() -> None:
    """C01: vLLM V0's accepted tokens are matches, also those after a rejection."""
    for drafts in (None, 4437):
        found = paste.Typed(drafts, 13_311, 8547, 10_616, 3).acceptance()
        assert found.untrusted
        assert any("vLLM V0" in r for r in found.remarks)


def test_lengths_over_k_are_a_sweep() -> None:
    lengths = {2: 2.36, 3: 2.79, 4: 3.08, 5: 3.32}
    run = Run(run_id="a", spec_state=SpecState.ON, draft_method="eagle3")
    runs = [replace(run, num_speculative_tokens=k, accept_length=x) for k, x in lengths.items()]
    (found,) = groups.sweeps(groups.groups(study(*runs))).values()
    assert found.lengths == lengths
    assert found.gamma == 5
    assert found.basis is Basis.MEASURED


# By request


def test_requests_give_an_interval_that_allows_for_them() -> None:
    rows = [{3: [39, 1, 0, 3]}, {3: [30, 11, 5, 13]}, {3: [20, 9, 5, 23]}]
    found = of_requests(rows, "three")
    pooled = of_requests([{3: [89, 21, 10, 39]}], "one")
    assert found.alpha is not None
    assert pooled.alpha is not None
    assert found.alpha.value == pytest.approx(pooled.alpha.value)
    assert found.alpha.method is Method.REQUESTS
    assert pooled.alpha.method is Method.ALIKE
    assert found.tau.value == pytest.approx(pooled.tau.value)
    assert found.survival == pytest.approx(pooled.survival)


def test_several_draft_lengths_keep_alpha_and_lose_positions() -> None:
    found = of_requests([{2: [10, 5, 5], 4: [8, 4, 2, 2, 4]}, {2: [12, 4, 4]}], "mixed")
    assert found.gamma is None
    assert found.survival == ()
    assert found.alpha is not None
    accepted = 5 + 10 + 4 + 4 + 6 + 16 + 4 + 8
    assert found.alpha.value == pytest.approx(accepted / (accepted + 15 + 16 + 16))
    with pytest.raises(InputError, match="no round"):
        of_requests([{3: [0, 0, 0, 0]}], "none")


# Pasted and typed

METRICS = "\n".join(
    [
        'vllm:spec_decode_num_drafts_total{model_name="m"} 713',
        'vllm:spec_decode_num_draft_tokens_total{model_name="m"} 2139',
        'vllm:spec_decode_num_accepted_tokens_total{model_name="m"} 991',
        *(
            f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{position="{i}"}} {n}'
            for i, n in enumerate((477, 319, 195))
        ),
        "",
    ]
)
LOG = (
    "SpecDecoding metrics: Mean acceptance length: 2.16, Accepted throughput: 15.00 tokens/s, "
    "Drafted throughput: 38.70 tokens/s, Accepted: 150 tokens, Drafted: 387 tokens, Per-position "
    "acceptance rate: 0.543, 0.357, 0.264, Avg Draft acceptance rate: 38.8%"
)


def test_metrics_text() -> None:
    (found,) = paste.read(METRICS)
    assert found.label.startswith("m")
    assert found.acceptance.alpha is not None
    assert found.acceptance.alpha.value == pytest.approx(0.6567, abs=5e-5)
    assert any("since the server started" in r for r in found.acceptance.remarks)


def test_c01_log_lines() -> None:
    """C01."""
    (found,) = paste.read(LOG)
    assert found.acceptance.tau.value == pytest.approx(2.163, abs=5e-4)
    assert found.acceptance.gamma == 3
    (twice,) = paste.read(f"{LOG}\nINFO other\n{LOG}")
    assert twice.acceptance.tau.value == pytest.approx(found.acceptance.tau.value)
    assert twice.acceptance.rounds == 258


@pytest.mark.parametrize(
    "text",
    [
        "[39, 1, 0, 3]",
        "39, 1, 0, 3",
        '{"acceptance_histogram": [39, 1, 0, 3]}',
        json.dumps({"choices": [], "metrics": {"speculative_decoding": {
            "acceptance_histogram": [39, 1, 0, 3], "num_spec_tokens": 3}}}),
        '{"acceptance_histogram_by_draft_length": {"3": [39, 1, 0, 3]}}',
    ],
)  # fmt: skip
def test_histograms(text: str) -> None:
    (found,) = paste.read(text)
    assert found.acceptance.tau.value == pytest.approx(1.2326, abs=5e-5)


def test_a_result_file_may_be_pasted() -> None:
    text = (ROOT / "tests" / "fixtures" / "vllm" / "eagle3-c8.json").read_text()
    (found,) = paste.read(text)
    assert found.acceptance.tau.value == pytest.approx(2.8)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "hello",
        "{}",
        "[]",
        "[1.5, 2]",
        "vllm:prompt_tokens_total 5\n",
        "[" * 5000,
        "\x00",
    ],
)
def test_text_without_acceptance_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(DraftworthError) as refused:
        paste.read(text)
    assert "\n" not in str(refused.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(
            st.sampled_from(
                (
                    *("acceptance_histogram", "acceptance_histogram_by_draft_length"),
                    *("num_spec_tokens", "3", "9" * 5000, "-1", "x"),
                )
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JSON.map(json.dumps) | st.text() | st.lists(st.integers()).map(str))
@example('{"acceptance_histogram": [1, 2], "num_spec_tokens": 1000000000000}')
@example(f'{{"acceptance_histogram": [1, {10**400}]}}')
@example('{"acceptance_histogram": [1, 2, 3], "num_spec_tokens": 1}')
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        found = paste.read(text)
    except DraftworthError as refused:
        assert str(refused)  # noqa: PT017
        return
    assert all(p.acceptance.tau.value >= 1 for p in found)


def test_typed_counters() -> None:
    found = paste.Typed(drafts=713, positions="477/319, 195").acceptance()
    assert found.alpha is not None
    assert found.alpha.value == pytest.approx(0.6567, abs=5e-5)
    assert found.gamma == 3


SMALL = st.none() | st.integers(0, 50)


@given(
    st.builds(
        paste.Typed,
        drafts=SMALL,
        draft_tokens=SMALL,
        accepted=SMALL,
        generated=SMALL,
        gamma=st.none() | st.integers(1, 8),
        positions=st.lists(st.integers(0, 20), max_size=5).map(lambda p: " ".join(map(str, p))),
        topk=st.integers(1, 3),
    )
)
def test_any_counters_give_an_acceptance_or_a_reason(typed: paste.Typed) -> None:
    try:
        found = typed.acceptance()
    except InputError as refused:
        assert str(refused)  # noqa: PT017
        return
    assert found.tau.value >= 1
    assert (found.alpha is None) == bool(found.no_alpha)
    if found.alpha is not None and found.gamma:
        assert 0 <= found.alpha.value <= 1
        assert found.tau.value <= found.gamma + 1
    assert found.curve is None or all(t >= 1 for t in found.curve.tau)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (paste.Typed(drafts=10), "accepted: type"),
        (paste.Typed(accepted=10), "rounds: type"),
        (paste.Typed(drafts=10, draft_tokens=30, accepted=31), "at most the 30"),
        (paste.Typed(drafts=10, accepted=12, positions="8 3"), "adds up to 11"),
        (paste.Typed(drafts=10, positions="8 x"), "whole counts"),
        (paste.Typed(drafts=10, positions="-1"), "at least 0"),
    ],
)
def test_typed_counters_that_cannot_be(typed: paste.Typed, words: str) -> None:
    with pytest.raises(InputError, match=words):
        typed.acceptance()


# Presets


def test_presets_are_cited_and_licensed() -> None:
    found = presets.presets()
    assert len(found) == 14 + 5
    for preset in found:
        assert preset.licence == "Apache-2.0"
        assert preset.url.startswith("https://github.com/")
        assert "@" in preset.citation
    assert len({(p.model, p.variant) for p in found}) == len(found)


def test_presets_read_at_each_length() -> None:
    for preset in presets.presets():
        for gamma in preset.gammas:
            found = preset.at(gamma)
            assert found.alpha is not None
            assert found.basis is Basis.PUBLISHED
            assert 0 < found.alpha.value < 1
        if preset.survival:
            assert preset.stated_length is not None
            assert preset.at(preset.gammas[0]).tau.value == pytest.approx(
                preset.stated_length, abs=0.03
            )
