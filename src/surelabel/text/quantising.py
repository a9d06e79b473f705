"""Encoders with whole numbers: signed int8 weights, one scale per output and per token, sums in int32.

Weights are rounded once. Every token's input is scaled by its own largest value when it comes, so that a text's result
does not depend on the other texts of its batch. Sums of whole numbers are the same on every processor. What lies
between the matrix products (attention, normalisation) stays in float32.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

TOKENS_PER_BATCH = 256
"""Tokens at a time: the sums in int32, which are larger than the inputs, then stay in a processor's cache."""

_LARGEST = 127.0
_TINY = 1e-12


class Int8Linear(nn.Module):
    """A linear layer with int8 weights and inputs, in place of an `nn.Linear`."""

    weight: torch.Tensor
    scale: torch.Tensor
    bias: torch.Tensor

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        given = linear.weight.detach().float()
        scale = given.abs().amax(dim=1).clamp_min(_TINY) / _LARGEST
        self.register_buffer("weight", torch.round(given / scale.unsqueeze(1)).to(torch.int8).t().contiguous())
        self.register_buffer("scale", scale)
        bias = torch.zeros_like(scale) if linear.bias is None else linear.bias.detach().float()
        self.register_buffer("bias", bias)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return what the linear layer would, nearly."""
        rows = inputs.reshape(-1, inputs.shape[-1])
        scale = rows.abs().amax(dim=1, keepdim=True).clamp_min_(_TINY).div_(_LARGEST)
        sums = torch._int_mm(torch.round(rows / scale).to(torch.int8), self.weight)
        outputs = torch.addcmul(self.bias, sums.float().mul_(scale), self.scale)
        return outputs.reshape(*inputs.shape[:-1], -1)


def with_int8(network: Any) -> Any:
    """Return a copy of a network on the processor, with every linear layer of it replaced."""
    copied = copy.deepcopy(network).cpu().eval().requires_grad_(False)
    for module in list(copied.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear):
                setattr(module, name, Int8Linear(child))
    return copied
