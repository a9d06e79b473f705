"""Kernels that run as Python, because a job is too small to compile them for, return what compiled ones return."""

import copy
import math

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from surelabel import Mixture
from surelabel._kernels import best_first, compiling, forced, guesses, mixture, walk
from surelabel.labels.sparse import SparseProbabilities

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
SEEDS = st.integers(0, 2**32 - 1)


def _both(kernel, *arguments):
    """Return arguments as the compiled kernel leaves them, and as Python does."""
    others = copy.deepcopy(arguments)
    kernel(*arguments)
    compiling._run(compiling._interpreted(kernel), *others)
    return arguments, others


def _rows(seed, n_rows=3):
    """Return costs with ties, thresholds at totals, and limits."""
    rng = np.random.default_rng(seed)
    n_labels = int(rng.integers(1, 9))
    costs = [rng.choice([0.0, 0.1, 0.3, 0.7, rng.random()], (n_rows, n_labels)) for _ in range(2)]
    thresholds = np.where(rng.random(costs[0].shape) < 0.5, *costs).sum(axis=1)
    least = int(rng.integers(0, n_labels + 1))
    return *costs, thresholds, (least, int(rng.integers(least, n_labels + 1)))


def _equal(kernel, *arguments):
    for compiled, interpreted in zip(*_both(kernel, *arguments), strict=True):
        if isinstance(compiled, tuple):
            for one, other in zip(compiled, interpreted, strict=True):
                np.testing.assert_array_equal(one, other)
        else:
            np.testing.assert_array_equal(compiled, interpreted)


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_counts_reach_and_guesses(seed):
    absent, present, thresholds, limits = _rows(seed)
    starts = np.arange(len(absent) + 1) * absent.shape[1]
    flat = starts, absent.ravel(), present.ravel()
    sizes = np.zeros((2, len(absent)), dtype=np.int64)
    _equal(walk._count_flat, *flat, thresholds, limits, 1000, sizes[0], sizes[1])
    _equal(forced._reachable_flat.__wrapped__, *flat, thresholds, limits, np.zeros((absent.size, 2), dtype=np.bool_))
    _equal(guesses.guess_rows.__wrapped__, absent, present, limits, np.zeros((len(absent), 2)))


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.booleans())
def test_best_label_sets(seed, is_maximum):
    absent, present, thresholds, limits = _rows(seed, 1 if is_maximum else 3)
    words, totals = np.zeros((60, 1), dtype=np.uint64), np.zeros(60)
    ends, frontier = np.zeros(len(absent), dtype=np.int64), best_first.make_frontier(60, absent.shape[1])
    for array in frontier:
        array[:] = 0
    arguments = (absent, present), thresholds, limits, 4, is_maximum, frontier, words, totals, ends
    _equal(best_first._take_rows.__wrapped__, *arguments)


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(0, 2), st.sampled_from([0.0, 0.5, 1.0, 3.0, 200.0]), st.booleans(), st.booleans())
def test_listed_label_sets(seed, question, temperature, is_sparse, removes):
    rng = np.random.default_rng(seed)
    n_texts, n_labels = 3, 6
    measure = Mixture(0.4, 1.0, temperature, neighbours=0.3 if removes else 0.0).fit(rng.random((30, n_labels)) < 0.3)
    probabilities = rng.choice([0.0, 0.25, 0.5, 1.0, rng.random()], (n_texts, n_labels))
    if is_sparse:
        listed = csr_array(np.where(rng.random(probabilities.shape) < 0.5, probabilities, 0.0))
        probabilities = SparseProbabilities(listed, unlisted=0.125)
    texts = measure.texts(probabilities)
    n_nodes = len(measure.listing.parents)
    candidates = (measure.listing.factors > 0.0) & (rng.random(n_nodes) < 0.9)
    bounds = np.column_stack([rng.random(n_texts) * 6.0, rng.random(n_texts) * 6.0])
    found = mixture.Found(
        np.zeros((n_texts, 2), dtype=np.int64),
        rng.integers(0, n_nodes, n_texts),
        np.zeros((n_texts, 3)),
        np.zeros(n_nodes, dtype=np.uint8),
        np.zeros((n_texts, n_labels), dtype=np.int32),
    )
    rows = np.arange(n_texts)
    arguments = question, texts, rows, bounds, measure.listing, candidates, measure.settings, found
    _equal(mixture._ask_listed.__wrapped__, *arguments)


def test_logarithms_and_powers_are_those_of_compiled_code():
    @numba.njit(error_model="numpy")
    def compiled(values, out):
        for i in range(len(values)):
            out[i, 0], out[i, 1] = np.exp(values[i]), np.log(abs(values[i]))
            out[i, 2] = np.log1p(np.exp(-abs(values[i])))

    values = np.random.default_rng(0).normal(0.0, 300.0, 20_000)
    values[:4] = 0.0, math.inf, -math.inf, 709.782712893384
    out = np.empty((len(values), 3))
    compiled(values, out)
    exp, log, log1p = compiling._numpy.exp, compiling._numpy.log, compiling._numpy.log1p
    again = [(exp(value), log(abs(value)), log1p(exp(-abs(value)))) for value in values.tolist()]
    np.testing.assert_array_equal(out, np.array(again))


def test_small_jobs_are_interpreted_until_they_add_up(monkeypatch, tmp_path):
    monkeypatch.setattr(compiling.few, "steps", 100)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    @compiling.kernel
    def double(value):
        return 2 * value

    assert compiling.quickest(double, 60)(2) == 4
    assert compiling.quickest(double, 40) is not double
    assert not double.signatures
    assert compiling.quickest(double, 1) is double
    assert compiling.quickest(double, 1)(2) == 4
    assert compiling.quickest(double, 0) is double
    # Another process finds what was compiled.
    assert compiling._is_stored(double)
    assert not compiling._is_stored(compiling.kernel(lambda value: value))


def test_a_quick_kernel_returns_numbers_of_python_either_way(monkeypatch, tmp_path):
    monkeypatch.setattr(compiling.few, "steps", 100)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    @compiling.quick(lambda values, _: len(values))
    def smallest(values, more):
        """Return two numbers."""
        return values.min() + more, np.int64(len(values))

    for n in (60, 40, 1):
        assert bool(smallest.__wrapped__.signatures) is False
        result = smallest(np.ones(n), 0.5)
        assert result == (1.5, n)
        assert [type(value) for value in result] == [float, int]
    assert smallest.__wrapped__.signatures
    assert smallest.__doc__ == "Return two numbers."
