"""Checkpoints: a random Llama and a model with windows, saved here, decoded like any other."""

from pathlib import Path
from typing import Any

import pytest

from lib.errors import InputError, ProbeError
from lib.probe import decoder
from tests.unit.probe.conftest import need

torch = need("torch")
transformers = need("transformers")

SIZES: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 500,
    "max_position_embeddings": 256,
}


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("llama")
    config = transformers.LlamaConfig(num_hidden_layers=2, **SIZES)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def load(name: object, **changed: Any) -> decoder.Decoder:
    settings: dict[str, Any] = {"dtype": "float32", "device": "cpu", "batch": 2, "context": 40}
    return decoder.load(str(name), **{**settings, "most_tokens": 6, **changed})


@torch.inference_mode()
def test_a_pass_is_the_models_own_after_the_context(llama: Path) -> None:
    found: Any = load(llama)
    plain = transformers.AutoModelForCausalLM.from_pretrained(llama)
    expected = plain(input_ids=found._model.ids).logits[:, 40:46]
    for tokens in (6, 1, 6):
        own = found._model.logits(tokens).view(2, tokens, -1)
        torch.testing.assert_close(own, expected[:, :tokens], atol=1e-5, rtol=1e-4)


def test_a_step_repeats(llama: Path) -> None:
    found = load(llama)
    assert found.architecture is None
    for tokens in (1, 6):
        step = found.step(tokens)
        step()
        first = found.sampled
        step()
        assert first is not None
        assert torch.equal(first, found.sampled)
        assert len(first) == 2 * tokens


@torch.inference_mode()
def test_the_cache_is_read(llama: Path) -> None:
    model: Any = load(llama)._model
    before = model.logits(1)
    model.cache.layers[1].values[:, :, 3] += 1
    assert not torch.equal(before, model.logits(1))


def test_windows_stay_as_long(tmp_path: Path) -> None:
    config = transformers.Gemma3TextConfig(num_hidden_layers=6, sliding_window=16, **SIZES)
    transformers.Gemma3ForCausalLM(config).save_pretrained(tmp_path)
    found: Any = load(tmp_path)
    for tokens in (1, 6, 1, 6):
        found.step(tokens)()
        lengths = [int(layer.get_seq_length()) for layer in found._model.cache.layers]
        assert lengths == [40] * 6
        assert {layer.keys.shape[2] for layer in found._model.cache.layers} == {16, 46}


def test_memory_is_known_from_the_configuration(llama: Path) -> None:
    found: Any = load(llama)._model
    held = [*found.model.parameters(), found.logits(6)]
    held += [t for layer in found.cache.layers for t in (layer.keys, layer.values)]
    allocated = sum(t.numel() * t.element_size() for t in held)
    expected = decoder.memory_bytes(str(llama), "float32", 2, 40, 6)
    assert expected == pytest.approx(allocated, rel=0.1)
    assert decoder.memory_bytes(str(llama), "bfloat16", 2, 40, 6) == expected / 2


def test_a_checkpoint_that_does_not_fit(llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder, "free_bytes", lambda _: 1024)
    with pytest.raises(ProbeError, match=r"needs 0\.0 GiB in float32 .* 0\.0 GiB are free on cpu"):
        load(llama)


def test_names_that_are_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(ProbeError, match="no such folder"):
        load(tmp_path / "nothing")
    with pytest.raises(ProbeError, match=r"transformers can load .* name a folder with config"):
        load(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ProbeError, match="not a checkpoint that transformers can load"):
        load(tmp_path)
    with pytest.raises(InputError, match="no such row"):
        load("nothing")


def test_pickled_weights_are_not_opened(llama: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes((llama / "config.json").read_bytes())
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04cposix\nsystem\n")
    with pytest.raises(ProbeError, match="not a checkpoint that transformers can load"):
        load(tmp_path)
