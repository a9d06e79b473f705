"""The convolution over words with its maximum, computed together.

The paper's kernels have 16 words x 1 embedding component. Of each kernel's answers on a component only the largest is
kept. For a text of n words, component c and kernel k

    pooled[c, k] = max over t in 0..n-1 of  sum_j weight[k, j] * x[t + j, c]

A window starts at a word of the text and reads zeros past its last word, so the pooled features of a text do not
depend on the batch it is in. The gradient of a maximum flows through its best position alone, so a numba kernel keeps
only that position. `plain_max_convolution`, a Conv2d and a maximum, computes the same on other devices: on a processor
it takes 30 times as long.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numba import njit
from torch import nn

from surelabel._kernels.compile import IS_KEPT

TAPS = 16
"""Words in a window of the fused kernel; narrower kernels are padded by zeros."""

_LANES = 16


@njit(inline="always")
def _larger(best, position, weight, block, k, t, i):  # type: ignore[no-untyped-def]
    """Return the best answer of kernel k so far and its position, or those of the window at t if that is larger."""
    total = np.float32(0.0)
    for j in range(TAPS):
        total += weight[k, j] * block[t + j, i]
    return (total, np.int32(t)) if total > best else (best, position)


# "contract" lets the compiler fuse a product and a sum (one rounding instead of two); nothing is reordered.
@njit(nogil=True, cache=IS_KEPT, fastmath={"contract"})
def _forward_kernel(x, lengths, weight, pooled, position):  # type: ignore[no-untyped-def]
    """Pool texts x (B, L, C) of `lengths` words with weight (K, 16) into pooled and position (B, C, K).

    Sixteen components go through at a time, four windows at a time, so that what is loaded is used often.
    Rows past the last window are NaN, and NaN is never greater: a window there never wins.
    """
    n_texts, longest, n_components = x.shape
    n_kernels = weight.shape[0]
    block = np.empty((longest + TAPS + 4, _LANES), np.float32)
    best = np.empty((n_kernels, _LANES), np.float32)
    where = np.empty((n_kernels, _LANES), np.int32)
    for text in range(n_texts):
        n_words = lengths[text]
        for start in range(0, n_components, _LANES):
            width = min(_LANES, n_components - start)
            block[n_words : n_words + TAPS - 1] = 0.0
            block[n_words + TAPS - 1 : n_words + TAPS + 3] = np.nan
            for t in range(n_words):
                for i in range(width):
                    block[t, i] = x[text, t, start + i]
                for i in range(width, _LANES):
                    block[t, i] = 0.0
            best[:] = -np.inf
            where[:] = 0
            for t in range(0, n_words, 4):
                for k in range(n_kernels):
                    for i in range(_LANES):
                        value, place = best[k, i], where[k, i]
                        value, place = _larger(value, place, weight, block, k, t, i)
                        value, place = _larger(value, place, weight, block, k, t + 1, i)
                        value, place = _larger(value, place, weight, block, k, t + 2, i)
                        value, place = _larger(value, place, weight, block, k, t + 3, i)
                        best[k, i] = value
                        where[k, i] = place
            for i in range(width):
                for k in range(n_kernels):
                    pooled[text, start + i, k] = best[k, i]
                    position[text, start + i, k] = where[k, i]


@njit(nogil=True, cache=IS_KEPT, fastmath={"contract"})
def _backward_kernel(  # type: ignore[no-untyped-def]
    x, lengths, weight, position, gradient, gradient_x, gradient_weight
):
    """Send gradient (B, C, K) through the best positions to gradient_x (B, L, C), gradient_weight (B, K, 16).

    A component's words are copied into one row first: the 16 words of a window are then contiguous.
    """
    n_texts, longest, n_components = x.shape
    n_kernels = weight.shape[0]
    words = np.empty(longest + TAPS, np.float32)
    change = np.empty(longest + TAPS, np.float32)
    gradient_x[:] = 0.0
    gradient_weight[:] = 0.0
    for text in range(n_texts):
        n_words = lengths[text]
        for c in range(n_components):
            words[:n_words] = x[text, :n_words, c]
            words[n_words : n_words + TAPS] = 0.0
            change[: n_words + TAPS] = 0.0
            for k in range(n_kernels):
                g = gradient[text, c, k]
                if g != 0.0:
                    # Unsigned, so that numba leaves out its check for negative indices and vectorises.
                    first = np.uint64(position[text, c, k])
                    for j in range(TAPS):
                        change[first + np.uint64(j)] += g * weight[k, j]
                    for j in range(TAPS):
                        gradient_weight[text, k, j] += g * words[first + np.uint64(j)]
            gradient_x[text, :n_words, c] = change[:n_words]


def _run(kernel: Any, n_texts: int, per_text: list[np.ndarray[Any, Any]], weight: np.ndarray[Any, Any]) -> None:
    """Call kernel(x, lengths, weight, *others) on slices of texts, one for each of torch's threads."""
    # Every text is computed alone, so the numbers do not depend on how many threads there are.
    n_threads = max(1, min(torch.get_num_threads(), n_texts))
    edges = [n_texts * part // n_threads for part in range(n_threads + 1)]

    def work(part: int) -> None:
        x, lengths, *others = (array[edges[part] : edges[part + 1]] for array in per_text)
        kernel(x, lengths, weight, *others)

    with ThreadPoolExecutor(n_threads) as threads:
        list(threads.map(work, range(n_threads)))


class _FusedMaxConvolution(torch.autograd.Function):
    """The numba kernels as a torch function; see the module's docstring for the formula."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, lengths: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Return pooled (B, C, K) for x (B, L, C), lengths (B,), weight (K, 16)."""
        x, weight = x.contiguous(), weight.contiguous()
        n_texts, _, n_components = x.shape
        pooled = torch.empty(n_texts, n_components, weight.shape[0])
        position = torch.empty(pooled.shape, dtype=torch.int32)
        per_text = [array.detach().numpy() for array in (x, lengths, pooled, position)]
        _run(_forward_kernel, n_texts, per_text, weight.detach().numpy())
        ctx.save_for_backward(x, lengths, weight, position)
        return pooled

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, torch.Tensor]:
        """Return the gradients of x and weight."""
        x, lengths, weight, position = ctx.saved_tensors
        gradient = gradients[0].contiguous()
        gradient_x = torch.empty_like(x)
        gradient_weight = torch.empty(len(x), *weight.shape)
        arrays = (x, lengths, position, gradient, gradient_x, gradient_weight)
        _run(_backward_kernel, len(x), [a.detach().numpy() for a in arrays], weight.detach().numpy())
        return gradient_x, None, gradient_weight.sum(0)


def plain_max_convolution(x: torch.Tensor, lengths: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Pool x (B, L, C) with kernels (K, taps) to (B, C, K) by a Conv2d and a maximum, as the paper draws it."""
    taps = weight.shape[1]
    longest = x.shape[1]
    padded = nn.functional.pad(x, (0, 0, 0, taps - 1))
    answers = nn.functional.conv2d(padded.unsqueeze(1), weight[:, None, :, None])
    beyond = torch.arange(longest, device=x.device) >= lengths.unsqueeze(1)
    answers = answers.masked_fill(beyond[:, None, :, None], -torch.inf)
    pooled = nn.functional.max_pool2d(answers, (longest, 1))
    return pooled.squeeze(2).transpose(1, 2)


def max_convolution(x: torch.Tensor, lengths: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Pool as `plain_max_convolution` does, with equal gradients; float32 on the processor by the numba kernels."""
    # Ties go to the first window, as in torch's max-pooling.
    if x.device.type != "cpu" or not x.dtype == weight.dtype == torch.float32 or weight.shape[1] > TAPS:
        return plain_max_convolution(x, lengths, weight)
    pooled: torch.Tensor = _FusedMaxConvolution.apply(
        x, lengths, nn.functional.pad(weight, (0, TAPS - weight.shape[1]))
    )
    return pooled


class MaxConvolution(nn.Module):
    """Kernels of `taps` words x 1 component, a bias each, and the maximum over words."""

    def __init__(self, n_kernels: int = 40, taps: int = TAPS) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_kernels, taps))
        self.bias = nn.Parameter(torch.zeros(n_kernels))
        nn.init.xavier_uniform_(self.weight[:, None, :, None])

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return the pooled features (B, C, K) of embedded texts x (B, L, C) of `lengths` words."""
        # A bias does not move a maximum's position, so it is added once to the answer.
        return max_convolution(x, lengths, self.weight) + self.bias
