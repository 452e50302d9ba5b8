"""A decoder of random weights over a filled KV cache, and the heads that draft for one."""

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from lib.probe.architecture import Architecture
from lib.probe.attention import GroupedAttention, LatentAttention, Span, rotations, weight
from lib.probe.routing import plan

SEED = 0


class Joining(nn.Module):
    """A matrix whose result joins the residual stream, behind a norm where there is one."""

    def __init__(self, hidden: int, inputs: int, post_norm: bool) -> None:
        super().__init__()
        self.matrix = weight(hidden, inputs)
        self.post_norm = weight(hidden) if post_norm else None

    def forward(self, stream: Tensor, x: Tensor) -> None:
        """Adds the result for the rows of x to `stream`."""
        if self.post_norm is None:
            stream.addmm_(x, self.matrix.t())
        else:
            result = functional.linear(x, self.matrix)
            stream += functional.rms_norm(result, (len(self.post_norm),), self.post_norm)


class Swiglu(nn.Module):
    """The gated MLP of a dense layer."""

    def __init__(self, hidden: int, intermediate: int, post_norm: bool = False) -> None:
        super().__init__()
        self.gate_up = weight(2 * intermediate, hidden)
        self.down = Joining(hidden, intermediate, post_norm)

    def forward(self, stream: Tensor, x: Tensor, span: Span) -> None:
        """Adds the MLP of the rows of x to `stream`."""
        gate, up = functional.linear(x, self.gate_up).chunk(2, -1)
        self.down(stream, functional.silu(gate) * up)


class Experts(nn.Module):
    """A mixture of experts that reads the weights of the chosen ones only, without a copy."""

    def __init__(self, a: Architecture) -> None:
        super().__init__()
        self.a = a
        self.router = weight(a.experts, a.hidden)
        self.gate_up = weight(a.experts, 2 * a.expert_intermediate, a.hidden)
        self.down = weight(a.experts, a.hidden, a.expert_intermediate)
        shared = a.shared_experts * a.expert_intermediate
        self.shared = Swiglu(a.hidden, shared) if shared else None
        self.plans: dict[tuple[int, int, int], tuple[slice, Tensor, Tensor, Tensor]] = {}

    def forward(self, stream: Tensor, x: Tensor, span: Span) -> None:
        """Adds the experts' share for the rows of x to `stream`."""
        used, chosen, rows, places = self._plan(span)
        gates = functional.linear(x, self.router[used]).gather(1, chosen).softmax(-1)
        inputs = x[rows].view(used.stop - used.start, -1, self.a.hidden)
        gate, up = torch.bmm(inputs, self.gate_up[used].transpose(1, 2)).chunk(2, -1)
        out = torch.bmm(functional.silu(gate) * up, self.down[used].transpose(1, 2))
        own = out.view(-1, self.a.hidden)[places]
        stream += torch.bmm(gates[:, None], own)[:, 0]
        if self.shared is not None:
            self.shared(stream, x, span)

    def _plan(self, span: Span) -> tuple[slice, Tensor, Tensor, Tensor]:
        key = (span.batch, span.tokens, span.first)
        if key not in self.plans:
            found = plan(self.a, *key)
            tensors = (
                torch.tensor(indices, device=self.router.device)
                for indices in (found.chosen, found.rows, found.places)
            )
            chosen, rows, places = tensors
            self.plans[key] = (slice(found.low, found.high), chosen, rows, places)
        return self.plans[key]


class Layer(nn.Module):
    """Attention and MLP, each behind a norm of the residual stream."""

    def __init__(self, a: Architecture, layer: int, context: int) -> None:
        super().__init__()
        self.hidden = a.hidden
        attention = LatentAttention if a.kv_lora else GroupedAttention
        self.norm = None if a.kind == "eagle1" else weight(a.hidden)
        self.token_norm = weight(a.hidden) if a.kind == "eagle3" else None
        self.attention = attention(a, layer, context)
        self.out = Joining(a.hidden, a.heads * a.head_dim, a.post_norms)
        self.mlp_norm = weight(a.hidden)
        self.mlp: Swiglu | Experts
        if a.is_moe(layer):
            self.mlp = Experts(a)
        else:
            self.mlp = Swiglu(a.hidden, a.intermediate, a.post_norms)

    def forward(self, stream: Tensor, tokens: Tensor, span: Span) -> None:
        """Adds the layer to `stream`; EAGLE-3's also reads the embedded `tokens`."""
        size = (self.hidden,)
        x = stream if self.norm is None else functional.rms_norm(stream, size, self.norm)
        if self.token_norm is not None:
            x = torch.cat((functional.rms_norm(tokens, size, self.token_norm), x), -1)
        self.out(stream, self.attention(x, span))
        self.mlp(stream, functional.rms_norm(stream, size, self.mlp_norm), span)


class Network(nn.Module):
    """One row of data/models.csv with its cache filled to `context`, ready for passes."""

    def __init__(self, a: Architecture, context: int) -> None:
        super().__init__()
        self.a = a
        self.context = context
        self.embedding = weight(a.vocab, a.hidden)
        self.head = None if a.tied else weight(a.head_vocab, a.hidden)
        self.entry = weight(a.hidden, 2 * a.hidden) if a.kind in ("eagle1", "mtp") else None
        self.fuse = weight(a.hidden, 3 * a.hidden) if a.kind == "eagle3" else None
        if a.kind == "mtp":
            self.token_norm, self.state_norm = weight(a.hidden), weight(a.hidden)
        self.layers = nn.ModuleList(Layer(a, i, context) for i in range(a.layers))
        self.norm = None if a.kind == "eagle1" else weight(a.hidden)
        self.masks: dict[tuple[int, int, int, int], Tensor] = {}

    def fill(self, batch: int, most_tokens: int) -> None:
        """Random weights, tokens, cache, and for a head the target's hidden states."""
        like = self.embedding
        source = torch.Generator(like.device).manual_seed(SEED)
        for parameter in self.parameters():
            if parameter.dim() == 1:
                parameter.fill_(1)
            else:
                bound = (3 / parameter.shape[-1]) ** 0.5
                parameter.uniform_(-bound, bound, generator=source)
        for index, layer in enumerate(self.layers):
            cast(Layer, layer).attention.fill(batch, most_tokens, SEED + 1 + index)
        shape = (batch, most_tokens)
        self.ids = torch.randint(self.a.vocab, shape, generator=source, device=like.device)
        self.states = like.new_empty(*shape, self.a.hidden).normal_(generator=source)
        if self.fuse is not None:
            features = like.new_empty(*shape, 3 * self.a.hidden).normal_(generator=source)
            self.states = functional.linear(features, self.fuse)
        turned = self.a.rope_dim or self.a.head_dim
        self.cos, self.sin = rotations(
            self.context, most_tokens, turned, str(like.device), like.dtype
        )

    def logits(self, tokens: int, first: int = 0) -> Tensor:
        """One pass over `tokens` new tokens of each request, from the `first` on.

        Returns (requests · tokens, head_vocab), request by request. The new tokens' keys and
        values go to their own places behind the context, so a pass can be repeated.
        """
        part = slice(first, first + tokens)
        batch = len(self.ids)
        span = Span(batch, tokens, first, self.cos[part], self.sin[part], self.masks)
        embedded = functional.embedding(self.ids[:, part].reshape(-1), self.embedding)
        stream = self._enter(embedded, self.states[:, part].reshape(-1, self.a.hidden))
        for layer in self.layers:
            layer(stream, embedded, span)
        if self.norm is not None:
            stream = functional.rms_norm(stream, (self.a.hidden,), self.norm)
        return functional.linear(stream, self.embedding if self.head is None else self.head)

    def _enter(self, embedded: Tensor, states: Tensor) -> Tensor:
        """What the residual stream begins with; layers add to it in place."""
        if self.fuse is not None:
            return states.clone()
        if self.entry is None:
            return embedded
        if self.a.kind == "mtp":
            size = (self.a.hidden,)
            embedded = functional.rms_norm(embedded, size, self.token_norm)
            states = functional.rms_norm(states, size, self.state_norm)
        return functional.linear(torch.cat((embedded, states), -1), self.entry)


def build(
    a: Architecture, dtype: str, device: str, batch: int, context: int, most_tokens: int
) -> Network:
    """The network on its device, filled."""
    network = skeleton(a, context).to(getattr(torch, dtype)).to_empty(device=device)
    with torch.no_grad():
        network.fill(batch, most_tokens)
    return network.eval()


def skeleton(a: Architecture, context: int) -> Network:
    """The network without memory: every weight has a shape only."""
    with torch.device("meta"):
        return Network(a, context)
