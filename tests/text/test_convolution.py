"""The fused convolution and maximum against the plain one, and against numbers done by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel.text.convolution import MaxConvolution, fused_max_convolution, plain_max_convolution


def _both(x, lengths, weight, gradient=None):
    """Answer and gradients of the fused and the plain way."""
    found = []
    for pool in (fused_max_convolution, plain_max_convolution):
        x_, weight_ = x.clone().requires_grad_(), weight.clone().requires_grad_()
        pooled = pool(x_, lengths, weight_)
        pooled.backward(torch.ones_like(pooled) if gradient is None else gradient)
        inside = (torch.arange(x.shape[1]) < lengths[:, None]).unsqueeze(2)
        found.append((pooled.detach(), x_.grad * inside, weight_.grad))
    return found


def _texts(random, n_texts, longest, n_components, whole_numbers):
    lengths = torch.from_numpy(random.integers(1, longest + 1, n_texts))
    lengths[0] = longest
    shape = (n_texts, longest, n_components)
    numbers = random.integers(-2, 3, shape) if whole_numbers else random.standard_normal(shape)
    x = torch.from_numpy(numbers.astype(np.float32))
    for text, n_words in enumerate(lengths):
        x[text, n_words:] = 0
    return x, lengths


def test_by_hand():
    x = torch.tensor([[[1.0, 0.0], [3.0, 1.0], [-2.0, 5.0], [0.0, 0.0]]])
    weight = torch.tensor([[1.0, 10.0], [-1.0, 0.0]])
    # Component 0: 1+30, 3-20, -2; component 1: 10, 51, 5. The padding's window does not count.
    pooled = fused_max_convolution(x, torch.tensor([3]), weight)
    assert pooled.tolist() == [[[31.0, 2.0], [51.0, 0.0]]]


def test_gradient_by_hand():
    x = torch.tensor([[[1.0], [3.0], [-2.0]]], requires_grad=True)
    weight = torch.tensor([[1.0, 10.0]], requires_grad=True)
    fused_max_convolution(x, torch.tensor([3]), weight).backward(torch.tensor([[[2.0]]]))
    assert x.grad.flatten().tolist() == [2.0, 20.0, 0.0]
    assert weight.grad.tolist() == [[2.0, 6.0]]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_texts=st.integers(1, 5),
    longest=st.sampled_from([1, 2, 3, 4, 5, 15, 16, 17, 33]),
    n_components=st.sampled_from([1, 3, 16, 17, 40]),
    taps=st.sampled_from([1, 2, 7, 16]),
)
def test_whole_numbers_are_equal_to_the_last_bit_ties_included(seed, n_texts, longest, n_components, taps):
    random = np.random.default_rng(seed)
    x, lengths = _texts(random, n_texts, longest, n_components, whole_numbers=True)
    weight = torch.from_numpy(random.integers(-2, 3, (6, taps)).astype(np.float32))
    gradient = torch.from_numpy(random.integers(-3, 4, (n_texts, n_components, 6)).astype(np.float32))
    for fused, plain in zip(*_both(x, lengths, weight, gradient), strict=True):
        assert torch.equal(fused, plain)


def test_real_numbers_are_close():
    random = np.random.default_rng(3)
    x, lengths = _texts(random, 8, 70, 50, whole_numbers=False)
    weight = torch.from_numpy(random.standard_normal((40, 16)).astype(np.float32))
    gradient = torch.from_numpy(random.standard_normal((8, 50, 40)).astype(np.float32))
    for fused, plain in zip(*_both(x, lengths, weight, gradient), strict=True):
        torch.testing.assert_close(fused, plain, rtol=1e-4, atol=1e-4)


def test_first_of_equal_windows_gets_the_gradient():
    x = torch.ones(1, 40, 1, requires_grad=True)
    fused_max_convolution(x, torch.tensor([40]), torch.ones(1, 16)).sum().backward()
    assert x.grad.flatten().tolist() == [1.0] * 16 + [0.0] * 24


def test_does_not_depend_on_padding_or_neighbours():
    random = np.random.default_rng(4)
    x, lengths = _texts(random, 6, 50, 20, whole_numbers=False)
    weight = torch.from_numpy(random.standard_normal((40, 16)).astype(np.float32))
    together = fused_max_convolution(x, lengths, weight)
    for text, n_words in enumerate(lengths):
        alone = fused_max_convolution(x[text : text + 1, :n_words], lengths[text : text + 1], weight)
        assert torch.equal(alone[0], together[text])


def test_number_of_threads_changes_nothing():
    random = np.random.default_rng(5)
    x, lengths = _texts(random, 9, 30, 20, whole_numbers=False)
    weight = torch.from_numpy(random.standard_normal((40, 16)).astype(np.float32))
    before = torch.get_num_threads()
    try:
        found = []
        for n_threads in (1, 3):
            torch.set_num_threads(n_threads)
            found.append(_both(x, lengths, weight)[0])
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


@pytest.mark.parametrize(("dtype", "taps"), [(torch.float64, 16), (torch.float32, 20)])
def test_takes_the_plain_way_elsewhere(dtype, taps):
    x = torch.randn(2, 30, 4, dtype=dtype)
    weight = torch.randn(3, taps, dtype=dtype)
    lengths = torch.tensor([30, 30])
    assert torch.equal(fused_max_convolution(x, lengths, weight), plain_max_convolution(x, lengths, weight))


def test_layer_adds_the_bias():
    layer = MaxConvolution(3, 2)
    plain = MaxConvolution(3, 2, fused=False)
    plain.load_state_dict(layer.state_dict())
    with torch.no_grad():
        layer.bias.copy_(torch.tensor([1.0, 2.0, 3.0]))
    x = torch.randn(1, 5, 2)
    difference = layer(x, torch.tensor([5])) - plain(x, torch.tensor([5]))
    torch.testing.assert_close(difference, torch.tensor([1.0, 2.0, 3.0]).expand(1, 2, 3))
