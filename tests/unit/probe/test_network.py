"""The timed model: its passes are those of the architecture, whatever their weights."""

from dataclasses import replace
from typing import Any

import pytest

from lib.probe import architecture
from lib.probe.architecture import Architecture, get
from tests.unit.probe.conftest import need

torch = need("torch")

from lib.probe import attention, network  # noqa: E402
from lib.probe.attention import Span  # noqa: E402
from lib.probe.network import Network  # noqa: E402

TARGET, MOE = get("tiny-target"), get("tiny-moe")
LATENT: dict[str, Any] = {"q_lora": 48, "kv_lora": 32, "rope_dim": 16, "head_dim": 32}
SHARED: dict[str, Any] = {"shared_experts": 1, "intermediate": 512, "dense_layers": 1}
KINDS = {
    "dense": TARGET,
    "tied": replace(TARGET, tied=True, layers=2),
    "norms": replace(TARGET, qk_norm=True, post_norms=True, layers=2),
    "windows": replace(TARGET, window_tokens=8, full_every=2, layers=4),
    "moe": MOE,
    "shared expert": replace(MOE, **SHARED),
    "latent": replace(MOE, **SHARED, **LATENT),
    "eagle3": get("tiny-eagle3"),
    "eagle1": replace(get("tiny-eagle3"), kind="eagle1", head_vocab=4096),
    "mtp": replace(MOE, kind="mtp", role="draft", for_target="tiny-moe", layers=1, **LATENT),
}
kinds = pytest.mark.parametrize("model", KINDS.values(), ids=KINDS)


def built(model: Architecture, batch: int = 1, context: int = 24, most_tokens: int = 8) -> Network:
    return network.build(model, "float32", "cpu", batch, context, most_tokens)


@pytest.mark.parametrize("name", architecture.names())
def test_every_row_has_exactly_its_parameters(name: str) -> None:
    model = get(name)
    found = network.skeleton(model, 100)
    assert sum(p.numel() for p in found.parameters()) == model.parameters


@kinds
def test_every_kind_has_exactly_its_parameters(model: Architecture) -> None:
    found = built(model)
    assert sum(p.numel() for p in found.parameters()) == model.parameters
    assert not any(p.requires_grad for p in found.parameters())


@kinds
@torch.inference_mode()
def test_a_verify_pass_equals_its_tokens_one_by_one(model: Architecture) -> None:
    found = built(model, batch=2)
    together = found.logits(6).view(2, 6, -1)
    one_by_one = torch.stack([found.logits(1, first) for first in range(6)], 1)
    assert together.shape == (2, 6, model.head_vocab)
    torch.testing.assert_close(together, one_by_one, atol=2e-4, rtol=1e-3)
    # Not because tokens were all alike, or logits nothing.
    assert (together[:, 0] - together[:, 1]).abs().max() > 0.1
    assert together.isfinite().all()


@kinds
@torch.inference_mode()
def test_a_pass_repeats(model: Architecture) -> None:
    found = built(model)
    first = found.logits(4)
    assert torch.equal(first, found.logits(4))
    assert torch.equal(first, built(model).logits(4))


@kinds
@torch.inference_mode()
def test_every_layer_reads_its_whole_cache(model: Architecture) -> None:
    found = built(model, context=24)
    before = found.logits(1)
    for index, layer in enumerate(found.layers):
        (tensor, *_) = layer.attention.cache.tensors
        cached = model.cached_tokens(index, 24)
        assert tensor.shape[2] == cached + 8
        for place in (0, cached - 1):
            kept = tensor[:, :, place].clone()
            tensor[:, :, place] += 1
            assert not torch.equal(before, found.logits(1))
            tensor[:, :, place] = kept
    assert torch.equal(before, found.logits(1))


@torch.inference_mode()
def test_a_window_hides_what_lies_before_it() -> None:
    q, k = torch.randn(1, 2, 3, 16), torch.randn(1, 1, 20, 16)
    at = Span(1, 3, 0, torch.empty(0), torch.empty(0))
    seen = attention.attend(q, k, k, at, window=8)
    for token in range(3):
        alone = Span(1, 1, 0, torch.empty(0), torch.empty(0))
        keys = k[:, :, 17 + token - 7 : 18 + token]
        own = attention.attend(q[:, :, token : token + 1], keys, keys, alone, window=8)
        torch.testing.assert_close(seen[:, :, token : token + 1], own)


@torch.inference_mode()
def test_the_kernel_for_whole_caches_agrees() -> None:
    q, k, v = torch.randn(2, 8, 5, 16), torch.randn(2, 2, 40, 16), torch.randn(2, 2, 40, 16)
    at = Span(2, 5, 0, torch.empty(0), torch.empty(0))
    torch.testing.assert_close(attention.attend_whole(q, k, v), attention.attend(q, k, v, at, None))


@torch.inference_mode()
def test_a_mixture_reads_the_experts_of_the_plan_only() -> None:
    found = built(MOE)
    expected = found.logits(3)
    woken = round(MOE.distinct_experts(3))
    assert 2 < woken < MOE.experts
    for layer in found.layers:
        layer.mlp.gate_up[woken:] = float("nan")
        layer.mlp.down[woken:] = float("nan")
    assert torch.equal(found.logits(3), expected)


@torch.inference_mode()
def test_a_mixture_is_the_weighted_sum_of_its_experts() -> None:
    mlp = built(MOE).layers[0].mlp
    x = torch.randn(3, MOE.hidden)
    out = torch.zeros_like(x)
    mlp(out, x, Span(1, 3, 0, torch.empty(0), torch.empty(0)))
    _, chosen, _, _ = mlp._plan(Span(1, 3, 0, torch.empty(0), torch.empty(0)))
    for row in range(3):
        gates = (mlp.router[chosen[row]] @ x[row]).softmax(-1)
        own = torch.zeros(MOE.hidden)
        for gate, expert in zip(gates, chosen[row], strict=True):
            left, right = (mlp.gate_up[expert] @ x[row]).chunk(2)
            own += gate * (mlp.down[expert] @ (torch.nn.functional.silu(left) * right))
        torch.testing.assert_close(out[row], own, atol=1e-4, rtol=1e-3)


@torch.inference_mode()
def test_the_heads_draft_from_the_targets_states() -> None:
    for kind in ("eagle3", "eagle1", "mtp"):
        found = built(KINDS[kind])
        before = found.logits(1)
        found.states += 1
        assert not torch.equal(before, found.logits(1))
    # A draft step reads everything but the matrix that fuses the target's states once a round.
    found = built(KINDS["eagle3"])
    before = found.logits(1)
    found.fuse.fill_(float("nan"))
    assert torch.equal(before, found.logits(1))


@torch.inference_mode()
def test_the_decoder_is_a_llama() -> None:
    transformers = need("transformers")
    model = replace(TARGET, layers=2)
    found = built(model, batch=2, context=24)
    config = transformers.LlamaConfig(
        hidden_size=model.hidden,
        intermediate_size=model.intermediate,
        num_hidden_layers=model.layers,
        num_attention_heads=model.heads,
        num_key_value_heads=model.kv_heads,
        head_dim=model.head_dim,
        vocab_size=model.vocab,
        rms_norm_eps=torch.finfo(torch.float32).eps,
        attn_implementation="eager",
    )
    llama = transformers.LlamaForCausalLM(config).eval()
    llama.model.embed_tokens.weight.copy_(found.embedding)
    llama.model.norm.weight.copy_(found.norm)
    llama.lm_head.weight.copy_(found.head)
    cache = transformers.DynamicCache(config=config)
    sizes = [model.heads * model.head_dim, *[model.kv_heads * model.head_dim] * 2]
    for index, (own, theirs) in enumerate(zip(found.layers, llama.model.layers, strict=True)):
        for part, matrix in zip("qkv", own.attention.qkv.split(sizes), strict=True):
            getattr(theirs.self_attn, f"{part}_proj").weight.copy_(matrix)
        theirs.self_attn.o_proj.weight.copy_(own.out.matrix)
        gate, up = own.mlp.gate_up.chunk(2)
        theirs.mlp.gate_proj.weight.copy_(gate)
        theirs.mlp.up_proj.weight.copy_(up)
        theirs.mlp.down_proj.weight.copy_(own.mlp.down.matrix)
        cache.update(*(t[:, :, :24].clone() for t in own.attention.cache.tensors), index)
    expected = llama(input_ids=found.ids[:, :5], cache=cache, use_cache=True).logits
    torch.testing.assert_close(found.logits(5).view(2, 5, -1), expected, atol=1e-4, rtol=1e-3)
