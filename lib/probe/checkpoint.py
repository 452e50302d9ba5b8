"""A Hugging Face checkpoint as the model that a probe times, through transformers."""

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from lib.errors import ProbeError
from lib.probe import architecture

CHUNK = 512
HUB_ID = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}")
SEED = 0
UNREADABLE = (
    "{name}: not a checkpoint that transformers can load ({reason}); name a folder with "
    "config.json and *.safetensors, a hub id, or a row of data/models.csv"
)


class Checkpoint:
    """A causal language model over a static cache that random tokens filled."""

    def __init__(self, model: Any, cache: Any, ids: Tensor, context: int) -> None:
        self.model = model
        self.cache = cache
        self.ids = ids
        self.context = context

    def logits(self, tokens: int) -> Tensor:
        """(requests · tokens, vocabulary) logits of a pass that leaves the cache as it was."""
        ids = self.ids[:, self.context : self.context + tokens]
        places = torch.arange(self.context, self.context + tokens, device=ids.device)
        found = self.model(
            input_ids=ids, position_ids=places[None], cache=self.cache, use_cache=True
        ).logits
        self._rewind(tokens)
        return found.flatten(0, 1)

    def _rewind(self, tokens: int) -> None:
        for layer in self.cache.layers:
            if layer.is_croppable:
                layer.crop(-tokens)
            elif hasattr(layer, "cumulative_length_int"):
                # A full window has moved on by the new tokens: as long, and its oldest are gone.
                layer.cumulative_length_int = self.context


def build(
    name: str, dtype: str, device: str, batch: int, context: int, most_tokens: int
) -> Checkpoint:
    """The checkpoint on its device, its cache filled to `context`. Weights are safetensors only.

    Raises ProbeError where it cannot be read.
    """
    transformers = _transformers()
    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(
            name, dtype=getattr(torch, dtype), use_safetensors=True, trust_remote_code=False
        )
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise _unreadable(name, str(error)) from error
    model = model.to(device).eval().requires_grad_(False)
    text = model.config.get_text_config()
    cache = transformers.StaticCache(config=model.config, max_cache_len=context + most_tokens)
    source = torch.Generator().manual_seed(SEED)
    shape = (batch, context + most_tokens)
    ids = torch.randint(text.vocab_size, shape, generator=source).to(device)
    with torch.no_grad():
        for start in range(0, context, CHUNK):
            end = min(start + CHUNK, context)
            places = torch.arange(start, end, device=device)[None]
            model(
                input_ids=ids[:, start:end],
                position_ids=places,
                cache=cache,
                use_cache=True,
                logits_to_keep=1,
            )
    return Checkpoint(model, cache, ids, context)


def memory_bytes(name: str, dtype: str, batch: int, context: int, most_tokens: int) -> int:
    """Weights, KV cache and logits of a checkpoint, from its configuration alone.

    Raises InputError for a name that is neither a folder nor a hub id, ProbeError where the
    configuration cannot be read.
    """
    if not Path(name).is_dir():
        if "/" not in name:
            architecture.get(name)
        if not HUB_ID.fullmatch(name):
            raise _unreadable(name, "no such folder")
    transformers = _transformers()
    try:
        config = transformers.AutoConfig.from_pretrained(name, trust_remote_code=False)
        with torch.device("meta"):
            model = transformers.AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise _unreadable(name, str(error)) from error
    text = config.get_text_config()
    kv_heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    size = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    cached = text.num_hidden_layers * (context + most_tokens) * 2 * kv_heads * size
    values = model.num_parameters() + batch * (cached + most_tokens * text.vocab_size)
    return int(values) * torch.empty(0, dtype=getattr(torch, dtype)).element_size()


def _unreadable(name: str, reason: str) -> ProbeError:
    first = (reason.strip().splitlines() or ["no reason given"])[0]
    return ProbeError(UNREADABLE.format(name=name[:120], reason=first[:160]))


def _transformers() -> ModuleType:
    try:
        import transformers
    except ImportError:
        raise ProbeError(
            "transformers is not installed, and a checkpoint needs it: pip install -r "
            "requirements-probe.txt"
        ) from None
    return transformers
