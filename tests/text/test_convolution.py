"""The fused convolution against Conv2d and a maximum, values and gradients."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


def inputs(torch, n_texts, longest, size, n_kernels, taps, seed):
    random = np.random.default_rng(seed)
    lengths = random.integers(1, longest + 1, n_texts)
    lengths[0] = longest
    x = random.normal(size=(n_texts, longest, size)).astype(np.float32)
    for row, length in enumerate(lengths):
        x[row, length:] = 0
    weight = random.normal(size=(n_kernels, taps)).astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy(lengths), torch.from_numpy(weight)


@pytest.mark.parametrize(
    ("shape", "taps"), [((1, 1, 1, 1), 16), ((3, 5, 2, 3), 16), ((4, 33, 17, 5), 16), ((2, 20, 16, 4), 3)]
)
def test_it_is_a_convolution_and_a_maximum(torch, shape, taps):
    from surelabel.text.convolution import max_convolution, plain_max_convolution

    for seed in range(3):
        x, lengths, weight = inputs(torch, *shape, taps, seed)
        results = []
        for function in (max_convolution, plain_max_convolution):
            own_x, own_weight = x.clone().requires_grad_(), weight.clone().requires_grad_()
            pooled = function(own_x, lengths, own_weight)
            (pooled * torch.arange(pooled.numel()).reshape(pooled.shape)).sum().backward()
            mask = (torch.arange(x.shape[1]) < lengths[:, None])[:, :, None]
            results.append((pooled.detach(), own_x.grad * mask, own_weight.grad))
        for ours, theirs in zip(*results, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-3)


def test_ties_and_padding(torch):
    from surelabel.text.convolution import max_convolution

    x = torch.zeros(2, 6, 1)
    x[0, :, 0] = torch.tensor([1.0, 1, 1, 0, 0, 0])
    pooled = max_convolution(x, torch.tensor([3, 1]), torch.tensor([[1.0, 1.0], [-1.0, 0.0]]))
    np.testing.assert_array_equal(pooled[:, 0], [[2, -1], [0, 0]])


def test_threads_change_nothing(torch):
    from surelabel.text.convolution import max_convolution

    x, lengths, weight = inputs(torch, 7, 30, 20, 6, 16, 0)
    before = torch.get_num_threads()
    try:
        results = []
        for n_threads in (1, 3):
            torch.set_num_threads(n_threads)
            results.append(max_convolution(x, lengths, weight))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*results)
