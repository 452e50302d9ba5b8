"""Dimensions of models, and what one decode step has to read and to compute."""

import csv
import difflib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Literal, get_args

from lib.errors import InputError
from lib.settings import DATA

MODELS = DATA / "models.csv"

Kind = Literal["dense", "moe", "eagle1", "eagle3", "mtp"]
Role = Literal["target", "draft", "both"]
HEADS = ("eagle1", "eagle3", "mtp")


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """One row of data/models.csv: a decoder of `layers` layers, or a drafting head.

    A head (`eagle1`, `eagle3`, `mtp`) drafts from the hidden states of `for_target`. `head_vocab`
    is the rows of lm_head: a draft vocabulary where it is smaller than `vocab`. With `experts`,
    every layer after the first `dense_layers` is a mixture of experts. `kv_lora` above 0 is latent
    attention, whose cache holds `kv_lora + rope_dim` values a token and layer. With
    `window_tokens`, every layer but each `full_every`-th sees that many tokens, itself included.
    Biases, attention sinks and what only rescales (soft caps, embedding scale) are left out.
    """

    name: str
    label: str
    role: Role
    kind: Kind
    for_target: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    head_vocab: int
    tied: bool
    experts: int
    experts_per_token: int
    shared_experts: int
    expert_intermediate: int
    dense_layers: int
    q_lora: int
    kv_lora: int
    rope_dim: int
    window_tokens: int
    full_every: int
    qk_norm: bool
    post_norms: bool
    source: str

    def __post_init__(self) -> None:
        for name, allowed in (("role", get_args(Role)), ("kind", get_args(Kind))):
            if getattr(self, name) not in allowed:
                raise InputError(f"{self.name}: {name} is one of {', '.join(allowed)}")
        for name in ("hidden", "layers", "heads", "kv_heads", "head_dim", "vocab", "head_vocab"):
            if getattr(self, name) < 1:
                raise InputError(f"{self.name}: {name} = {getattr(self, name)}: at least 1")
        if self.heads % self.kv_heads:
            raise InputError(f"{self.name}: heads must be a multiple of kv_heads")
        if self.experts and not 1 <= self.experts_per_token <= self.experts:
            raise InputError(f"{self.name}: experts_per_token is 1 to {self.experts}")
        if (self.kind in HEADS) != bool(self.for_target):
            raise InputError(f"{self.name}: for_target is named for a head, and for nothing else")

    @property
    def parameters(self) -> int:
        """All weights a step works with, those that a head shares with its target included."""
        embedding = self.vocab * self.hidden
        head = 0 if self.tied else self.head_vocab * self.hidden
        layers = sum(self._layer(i, self.experts) for i in range(self.layers))
        return embedding + int(layers) + self._around + self.fuse_parameters + head

    @property
    def fuse_parameters(self) -> int:
        """EAGLE-3's 3h → h matrix: read once a round, on the target's states, by no draft step."""
        return 3 * self.hidden**2 if self.kind == "eagle3" else 0

    def streamed_parameters(self, tokens: int = 1) -> float:
        """Weights that one pass over `tokens` tokens in all reads; embeddings are gathered.

        Of `experts`, each token takes `experts_per_token` as if at random: the expected count of
        distinct ones is read.
        """
        experts = self.distinct_experts(tokens)
        layers = sum(self._layer(i, experts) for i in range(self.layers))
        return layers + self._around + self.head_vocab * self.hidden

    def distinct_experts(self, tokens: int) -> float:
        """Expected distinct experts that `tokens` independent tokens wake: E(1-(1-k/E)^n)."""
        if not self.experts:
            return 0.0
        idle: float = (1 - self.experts_per_token / self.experts) ** tokens
        return self.experts * (1 - idle)

    def kv_bytes_per_token(self, bytes_per_value: float = 2) -> float:
        """KV cache of one token in all layers, while it is inside every window."""
        return self.layers * self.kv_values * bytes_per_value

    @property
    def kv_values(self) -> int:
        """Values that one layer caches for one token."""
        if self.kv_lora:
            return self.kv_lora + self.rope_dim
        return 2 * self.kv_heads * self.head_dim

    def window(self, layer: int) -> int | None:
        """Tokens that layer sees, itself included; None is all of them."""
        if not self.window_tokens or (layer + 1) % self.full_every == 0:
            return None
        return self.window_tokens

    def cached_tokens(self, layer: int, context: int) -> int:
        """Tokens of a context that a new token still sees in that layer."""
        window = self.window(layer)
        return context if window is None else min(context, window - 1)

    def step_bytes(
        self, batch: int, context: int, tokens: int = 1, bytes_per_value: float = 2
    ) -> float:
        """Bytes that one pass over `tokens` new tokens of each request reads: weights and KV."""
        cached = sum(self.cached_tokens(i, context) + tokens for i in range(self.layers))
        kv = batch * cached * self.kv_values
        return (self.streamed_parameters(batch * tokens) + kv) * bytes_per_value

    def step_flops(self, batch: int, context: int, tokens: int = 1) -> float:
        """Multiplications and additions of that pass: two a weight and token, and attention."""
        per_key = 4 * self.heads * self.head_dim
        if self.kv_lora:
            per_key = 2 * self.heads * (2 * self.kv_lora + self.rope_dim)
        seen = sum(
            self.cached_tokens(i, context + place) + 1
            for i in range(self.layers)
            for place in range(tokens)
        )
        return batch * (2 * tokens * self.streamed_parameters() + per_key * seen)

    def is_moe(self, layer: int) -> bool:
        """Whether that layer is a mixture of experts."""
        return self.experts > 0 and layer >= self.dense_layers

    @property
    def layer_norms(self) -> int:
        """Norms of the residual stream in a layer."""
        own = {"eagle1": 1, "eagle3": 3}
        return own.get(self.kind, 4 if self.post_norms else 2)

    @property
    def _around(self) -> int:
        """Weights outside the layers that a step reads: the final norm, and a head's entry."""
        norm = self.hidden
        entry = 2 * self.hidden**2
        own = {"eagle1": entry, "mtp": norm + 2 * norm + entry}
        return own.get(self.kind, norm)

    def _layer(self, layer: int, experts: float) -> float:
        return self.layer_norms * self.hidden + self._attention + self._mlp(layer, experts)

    @property
    def _attention(self) -> int:
        inner = self.heads * self.head_dim
        if self.kv_lora:
            queries = self.q_lora * (self.hidden + 1 + inner + self.heads * self.rope_dim)
            latent = self.hidden * (self.kv_lora + self.rope_dim) + self.kv_lora
            return queries + latent + 2 * self.kv_lora * inner + inner * self.hidden
        inputs = 2 * self.hidden if self.kind == "eagle3" else self.hidden
        norms = 2 * self.head_dim if self.qk_norm else 0
        return inputs * (inner + 2 * self.kv_heads * self.head_dim) + inner * self.hidden + norms

    def _mlp(self, layer: int, experts: float) -> float:
        if not self.is_moe(layer):
            return 3 * self.hidden * self.intermediate
        each = 3 * self.hidden * self.expert_intermediate
        return self.experts * self.hidden + (experts + self.shared_experts) * each


def names() -> list[str]:
    """Rows of data/models.csv in order."""
    return list(_models())


def get(name: str) -> Architecture:
    """The row of that name. Raises InputError that lists close names."""
    found = _models().get(name)
    if found is not None:
        return found
    close = difflib.get_close_matches(name.lower(), names(), n=3, cutoff=0.5)
    hint = f"close: {', '.join(close)}" if close else f"one of {', '.join(names()[:5])} and others"
    raise InputError(f"{name[:80]}: no such row in data/models.csv; {hint}")


def byte_ratio(
    target: Architecture,
    draft: Architecture,
    *,
    batch: int = 1,
    context: int = 512,
    bytes_per_value: float = 2,
) -> float:
    """Bytes of a draft step over those of a plain target step.

    The least c that memory traffic allows where both read as fast: a c measured below it says
    that the setup was not what it claims, or that the drafter sits in a cache.
    """
    own = draft.step_bytes(batch, context, bytes_per_value=bytes_per_value)
    return own / target.step_bytes(batch, context, bytes_per_value=bytes_per_value)


@cache
def _models() -> dict[str, Architecture]:
    with MODELS.open(encoding="utf-8", newline="") as file:
        rows = [_row(r) for r in csv.DictReader(file)]
    return {row.name: row for row in rows}


def _row(cells: dict[str, str]) -> Architecture:
    cells["head_vocab"] = cells["head_vocab"] or cells["vocab"]
    values: dict[str, Any] = dict(_typed(cells))
    return Architecture(**values)


def _typed(cells: dict[str, str]) -> Iterator[tuple[str, str | int | bool]]:
    for f in fields(Architecture):
        text = cells[f.name]
        if f.type is int:
            yield f.name, int(text or 0)
        else:
            yield f.name, text == "yes" if f.type is bool else text
