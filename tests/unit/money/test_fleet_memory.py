"""What the drafter takes of the memory: sizes by hand from the table of architectures."""

import math

import pytest

from lib.errors import InputError
from lib.money.memory import GIB, Room, held, own_parameters
from lib.probe.architecture import get

TARGET, HEAD = get("llama-3.1-8b"), get("eagle3-llama-3.1-8b")


def test_llama_8b_with_its_eagle_3_head_on_80_gib() -> None:
    """Target: 8.03 B weights, 128 KiB of KV a token; the head: one layer, 4 KiB a token."""
    assert TARGET.kv_bytes_per_token() == 131_072
    assert HEAD.kv_bytes_per_token() == 4096
    found = held(TARGET, HEAD, Room(80, 1, 0.9, 4096, lookahead=3))
    left = 72 * GIB - 2 * TARGET.parameters
    assert found.off == math.floor(left / (131_072 * 4096))
    with_head = left - 2 * own_parameters(HEAD)
    assert found.on == math.floor(with_head / ((131_072 + 4096) * 4099))
    assert 0.03 < found.lost < 0.08
    assert found.most.on == found.on


def test_a_head_does_not_count_what_its_target_holds() -> None:
    shared = HEAD.vocab * HEAD.hidden
    assert own_parameters(HEAD) == HEAD.parameters - shared
    eagle = get("eagle-vicuna-13b")
    assert own_parameters(eagle) == eagle.parameters - 2 * eagle.vocab * eagle.hidden
    small = get("llama-3.2-1b")
    assert own_parameters(small) == small.parameters


def test_weights_that_do_not_fit_say_what_to_type() -> None:
    with pytest.raises(InputError, match="more GPUs or memory"):
        held(get("llama-3.1-70b"), get("llama-3.2-1b"), Room(80, 1, 0.9, 1024))


def test_a_head_drafts_for_its_own_target() -> None:
    with pytest.raises(InputError, match=r"drafts for llama-3\.1-8b"):
        held(get("qwen3-8b"), HEAD, Room(80, 1, 0.9, 1024))


@pytest.mark.parametrize("field", ["gpu_gib", "tokens_a_request", "usable"])
def test_a_room_has_a_size(field: str) -> None:
    values = {"gpu_gib": 80.0, "gpus": 1, "usable": 0.9, "tokens_a_request": 1024.0, field: 0.0}
    with pytest.raises(InputError, match=field):
        Room(**values)  # type: ignore[arg-type]
