"""From logits to tokens, as a step ends."""

import torch
from torch import Tensor

TOP_P = 0.95


def sample(logits: Tensor, sampling: str) -> Tensor:
    """Token ids of (rows, vocabulary) logits: the likeliest, or drawn from the top-p nucleus."""
    return logits.argmax(-1) if sampling == "argmax" else top_p(logits)


def top_p(logits: Tensor) -> Tensor:
    """Drawn at temperature 1 from the fewest likeliest tokens that hold `TOP_P` of the chance.

    Dividing by exponential noise and taking the largest draws in proportion, without the
    synchronisation of a multinomial draw.
    """
    chances, order = logits.float().softmax(-1).sort(-1, descending=True)
    before = chances.cumsum(-1) - chances
    kept = chances.masked_fill(before >= TOP_P, 0)
    drawn = (kept / torch.empty_like(kept).exponential_()).argmax(-1, keepdim=True)
    return order.gather(-1, drawn)[:, 0]
