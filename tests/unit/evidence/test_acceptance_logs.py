import pytest

from lib.errors import InputError
from lib.evidence import acceptance_paste as paste

V0 = (
    "Speculative metrics: Draft acceptance rate: 0.642, System efficiency: 0.598, Number of "
    "speculative tokens: 3, Number of accepted tokens: 8547, Number of draft tokens: 13311, Number "
    "of emitted tokens: 10616."
)
SGLANG = "Decode batch. #running-req: 1, #token: 512, accept len: {}, accept rate: 0.54, #queue: 0"


# C01: one label, four meanings
def test_c01_vllm_v0_goes_by_emitted_tokens() -> None:
    (found,) = paste.read(V0)
    assert found.acceptance.tau.value == pytest.approx(2.393, abs=5e-4)
    assert found.acceptance.alpha is not None
    assert found.acceptance.alpha.value == pytest.approx(0.663, abs=5e-4)
    assert any("8,547" in r and "after a rejection" in r for r in found.acceptance.remarks)
    assert not found.acceptance.untrusted


def test_the_lines_of_vllm_v0_count_since_the_start() -> None:
    early = V0.replace("13311", "300").replace("10616", "150").replace("8547", "90")
    assert paste.read(f"{early}\n{V0}")[0].acceptance.rounds == 4437


@pytest.mark.parametrize("emitted", ["4436", "17749"])
def test_a_vllm_v0_line_that_cannot_be_is_refused(emitted: str) -> None:
    with pytest.raises(InputError, match="1 to 4 a round are possible"):
        paste.read(V0.replace("10616", emitted))
    with pytest.raises(InputError, match="0 rounds"):
        paste.read(V0.replace("13311", "0"))


# C01, C56: the length is truth, the rate has more than one base
def test_c01_sglang_goes_by_its_length() -> None:
    (found,) = paste.read("\n".join(SGLANG.format(x) for x in (2.0, 2.34)))
    assert found.label == "SGLang, 2 log lines"
    assert found.acceptance.tau.value == pytest.approx(2.17)
    assert found.acceptance.alpha is None
    assert "γ is not recorded" in found.acceptance.no_alpha
