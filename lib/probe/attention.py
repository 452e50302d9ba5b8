"""Attention of a few new tokens over a filled KV cache."""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.backends.cuda import SDPAParams, can_use_flash_attention
from torch.nn import functional
from torch.nn.attention.bias import causal_lower_right

from lib.probe.architecture import Architecture


@dataclass(frozen=True)
class Span:
    """Where a pass stands: `tokens` new tokens of each request, `first` behind the context.

    `cos` and `sin` turn each of them to its position, shape (tokens, 1, rotated values).
    `masks` keeps the masks already made.
    """

    batch: int
    tokens: int
    first: int
    cos: Tensor
    sin: Tensor
    masks: dict[tuple[int, int, int, int], Tensor] = field(default_factory=dict)


def weight(*shape: int) -> nn.Parameter:
    """A matrix, or several, to be filled later."""
    return nn.Parameter(torch.empty(shape), requires_grad=False)


def rotations(first: int, count: int, size: int, device: str, dtype: torch.dtype) -> list[Tensor]:
    """cos and sin of rotary positions `first` to `first + count`, shape (count, 1, size) each."""
    pace = 10_000 ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    angles = torch.arange(first, first + count, dtype=torch.float64)[:, None] * pace
    cos, sin = angles.cos(), angles.sin()
    tables = (torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1))
    return [table[:, None].to(device, dtype) for table in tables]


def rotate(x: Tensor, span: Span) -> Tensor:
    """Rotary embedding of (batch, tokens, heads, values), halves paired."""
    return torch.addcmul(x * span.cos, x.roll(x.shape[-1] // 2, -1), span.sin)


def attend(
    q: Tensor, k: Tensor, v: Tensor, span: Span, window: int | None, scale: float | None = None
) -> Tensor:
    """Attention of q (batch, heads, tokens, values) over k and v (batch, KV heads, keys, values).

    The last `tokens` keys are the new ones; each token sees what stands before it, and itself.
    Heads that share keys are stacked, so that keys are read once and by any kernel; where causal
    order matters in a whole cache, FlashAttention's own grouping takes the long context better.
    Where it does not run (float32, heads of many values, a GPU before Ampere), grouping would copy
    the keys for each head: there they stay stacked.
    """
    batch, heads, tokens, size = q.shape
    groups, keys = k.shape[1], k.shape[2]
    stacked = heads // groups
    whole = window is None or keys <= window
    if tokens > 1 and whole and _flash_runs(q, k, v):
        return attend_whole(q, k, v, scale)
    mask = None if tokens == 1 else _mask(span, keys, window or keys, stacked, q.device)
    rows = q.reshape(batch, groups, stacked * tokens, size)
    out = functional.scaled_dot_product_attention(rows, k, v, attn_mask=mask, scale=scale)
    return out.reshape(batch, heads, tokens, v.shape[-1])


def attend_whole(q: Tensor, k: Tensor, v: Tensor, scale: float | None = None) -> Tensor:
    """`attend` without a window, left to a kernel that groups heads and knows causal order."""
    bias = causal_lower_right(q.shape[2], k.shape[2])
    return functional.scaled_dot_product_attention(
        q, k, v, attn_mask=bias, scale=scale, enable_gqa=q.shape[1] != k.shape[1]
    )


def _flash_runs(q: Tensor, k: Tensor, v: Tensor) -> bool:
    grouped = q.shape[1] != k.shape[1]
    return bool(can_use_flash_attention(SDPAParams(q, k, v, None, 0.0, False, grouped)))


def _mask(span: Span, keys: int, window: int, stacked: int, device: torch.device) -> Tensor:
    key = (span.tokens, keys, window, stacked)
    if key not in span.masks:
        own = torch.arange(keys - span.tokens, keys, device=device)[:, None]
        seen = torch.arange(keys, device=device)
        mask = (seen <= own) & (seen > own - window)
        span.masks[key] = mask.repeat(stacked, 1)
    return span.masks[key]


class Cache:
    """Filled keys and values of one layer, shape (batch, heads, tokens, values) each."""

    def __init__(self, cached: int, window: int | None) -> None:
        self.cached = cached
        self.window = window
        self.tensors: list[Tensor] = []

    def fill(
        self, shapes: list[tuple[int, int, int]], most_tokens: int, like: Tensor, seed: int
    ) -> None:
        """Random values for the context, and room for the new tokens."""
        source = torch.Generator(like.device).manual_seed(seed)
        self.tensors = [
            like.new_empty(batch, heads, self.cached + most_tokens, size).normal_(generator=source)
            for batch, heads, size in shapes
        ]

    def put(self, span: Span, *new: Tensor) -> list[Tensor]:
        """Writes the new tokens' (batch, heads, tokens, values); what they see comes back."""
        end = self.cached + span.first + span.tokens
        start = 0 if self.window is None else max(0, end - span.tokens - self.window + 1)
        for tensor, values in zip(self.tensors, new, strict=True):
            tensor[:, :, end - span.tokens : end].copy_(values)
        return [tensor[:, :, start:end] for tensor in self.tensors]


class GroupedAttention(nn.Module):
    """Attention whose query heads share `kv_heads` keys and values (GQA, MHA, MQA)."""

    def __init__(self, a: Architecture, layer: int, context: int) -> None:
        super().__init__()
        self.a = a
        inputs = 2 * a.hidden if a.kind == "eagle3" else a.hidden
        self.qkv = weight((a.heads + 2 * a.kv_heads) * a.head_dim, inputs)
        if a.qk_norm:
            self.q_norm, self.k_norm = weight(a.head_dim), weight(a.head_dim)
        self.cache = Cache(a.cached_tokens(layer, context), a.window(layer))

    def fill(self, batch: int, most_tokens: int, seed: int) -> None:
        """Fills the cache."""
        shape = (batch, self.a.kv_heads, self.a.head_dim)
        self.cache.fill([shape, shape], most_tokens, self.qkv, seed)

    def forward(self, x: Tensor, span: Span) -> Tensor:
        """Heads of each row, joined: shape (rows, heads · values)."""
        a = self.a
        qkv = functional.linear(x, self.qkv).view(span.batch, span.tokens, -1, a.head_dim)
        qk, v = qkv[:, :, : a.heads + a.kv_heads], qkv[:, :, a.heads + a.kv_heads :]
        if a.qk_norm:
            q = functional.rms_norm(qk[:, :, : a.heads], (a.head_dim,), self.q_norm)
            k = functional.rms_norm(qk[:, :, a.heads :], (a.head_dim,), self.k_norm)
            qk = torch.cat((q, k), 2)
        qk = rotate(qk, span).transpose(1, 2)
        k, v = self.cache.put(span, qk[:, a.heads :], v.transpose(1, 2))
        out = attend(qk[:, : a.heads], k, v, span, self.cache.window)
        return out.transpose(1, 2).reshape(len(x), -1)


class LatentAttention(nn.Module):
    """Multi-head latent attention in its absorbed form: one cached vector for all heads."""

    def __init__(self, a: Architecture, layer: int, context: int) -> None:
        super().__init__()
        self.a = a
        self.q_down = weight(a.q_lora, a.hidden)
        self.q_norm = weight(a.q_lora)
        self.q_up = weight(a.heads * (a.head_dim + a.rope_dim), a.q_lora)
        self.kv_down = weight(a.kv_lora + a.rope_dim, a.hidden)
        self.kv_norm = weight(a.kv_lora)
        self.k_up = weight(a.heads, a.head_dim, a.kv_lora)
        self.v_up = weight(a.heads, a.kv_lora, a.head_dim)
        self.cache = Cache(a.cached_tokens(layer, context), a.window(layer))

    def fill(self, batch: int, most_tokens: int, seed: int) -> None:
        """Fills the cache."""
        shape = (batch, 1, self.a.kv_lora + self.a.rope_dim)
        self.cache.fill([shape], most_tokens, self.kv_down, seed)

    def forward(self, x: Tensor, span: Span) -> Tensor:
        """Heads of each row, joined: shape (rows, heads · values)."""
        a = self.a
        size = a.head_dim + a.rope_dim
        q = functional.linear(
            functional.rms_norm(functional.linear(x, self.q_down), (a.q_lora,), self.q_norm),
            self.q_up,
        )
        q = q.view(span.batch, span.tokens, a.heads, size)
        # (heads, rows, values) @ (heads, values, latent): the keys' matrix, absorbed.
        absorbed = torch.bmm(q[..., : a.head_dim].flatten(0, 1).transpose(0, 1), self.k_up)
        absorbed = absorbed.transpose(0, 1).view(span.batch, span.tokens, a.heads, a.kv_lora)
        turned = rotate(q[..., a.head_dim :], span)
        q = torch.cat((absorbed, turned), -1).transpose(1, 2)

        down = functional.linear(x, self.kv_down).view(span.batch, span.tokens, 1, -1)
        latent = functional.rms_norm(down[..., : a.kv_lora], (a.kv_lora,), self.kv_norm)
        new = torch.cat((latent, rotate(down[..., a.kv_lora :], span)), -1).transpose(1, 2)
        (keys,) = self.cache.put(span, new)
        out = attend(q, keys, keys[..., : a.kv_lora], span, None, 1 / math.sqrt(size))
        rows = out.transpose(1, 2).flatten(0, 1).transpose(0, 1)
        return torch.bmm(rows, self.v_up).transpose(0, 1).reshape(len(x), -1)
