"""Small parts of the text classifiers, with values computed by hand."""

from __future__ import annotations

import numpy as np
import scipy.sparse
import torch
from torch import nn

from surelabel.text.base import highest
from surelabel.text.batching import pad, prediction_batches, training_batches
from surelabel.text.blend import combined, fit_weights, log_odds
from surelabel.text.convolution import fused_max_convolution
from surelabel.text.curves import ScoreCurve, fit_regression, log_loss
from surelabel.text.explaining import word_weights
from surelabel.text.inputs import as_labels, as_texts
from surelabel.text.neural import start_bias
from surelabel.text.separating import Candidate, fit_scores
from surelabel.text.settings import LinearSettings
from surelabel.text.terms import Terms
from surelabel.text.tokenisation import frequent_words, known_words, shares_of_words, train_word_tokenizer, words


def test_inputs():
    assert as_texts(("wheat up", "gold \ud800 down")) == ["wheat up", "gold ? down"]
    assert as_labels([[0, 1], [1, 1]], 2).tolist() == [[False, True], [True, True]]


def test_highest():
    found = highest(np.array([[0.1, 0.9, 0.1], [0.2, 0.3, 0.4]]), 2)
    assert found.toarray().tolist() == [[0.1, 0.9, 0.0], [0.0, 0.3, 0.4]]


def test_batches():
    batch = pad([np.array([5, 6], dtype=np.int32), np.array([], dtype=np.int32)], 0)
    assert (batch["input_ids"].tolist(), batch["lengths"].tolist()) == ([[5, 6], [0, 0]], [2, 1])
    assert [one.tolist() for one in training_batches(np.array([9, 1, 8, 2]), 2, seed=0, epoch=0)] == [[3, 1], [0, 2]]
    assert [one.tolist() for one in prediction_batches(np.array([2, 9, 3, 1]), 9)] == [[1], [2, 0, 3]]


def test_blends():
    assert log_odds(np.array([0.0, 0.5, 1.0])).tolist() == [-12, 0, 12]
    weights = np.array([[0.5, 1.0], [0.5, 0.0], [0.0, 1.0]])
    assert combined([np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])], weights).tolist() == [[2, 3]]
    rng = np.random.default_rng(0)
    truth = rng.random((3000, 2)) < 0.5
    good, noise = 2.0 * truth - 1.0 + rng.normal(size=truth.shape), rng.normal(size=truth.shape)
    weights = fit_weights([good, noise], truth, seed=0)
    assert abs(weights[0] - 2.0).max() < 0.2
    assert abs(weights[1]).max() < 0.2


def test_curves():
    assert round(log_loss(np.zeros((2, 3)), np.zeros((2, 3), dtype=bool)), 3) == 2.079
    fitted = fit_regression(np.ones((4, 1)), np.array([1.0, 1.0, 1.0, 0.0]), np.zeros(1), np.full(1, 1e-9))
    assert fitted.round(3).tolist() == [1.099]
    rng = np.random.default_rng(0)
    truth = rng.random((2000, 4)) < 0.2
    scores = 2.0 * truth - 1.0 + rng.normal(size=truth.shape)
    assert abs(ScoreCurve.fit(scores, truth, truth.mean(axis=0))(scores).mean() - 0.2) < 0.01


def test_linear_scores():
    features = scipy.sparse.csr_array(np.array([[1, 0], [0, 1], [1, 0]], dtype=np.float32))
    scores = fit_scores(features, np.array([[1], [0], [1]], dtype=bool), Candidate("svm", 10.0), seed=0)
    assert scores(features).round(1).ravel().tolist() == [1, -1, 1]


def test_terms():
    terms = Terms(LinearSettings(min_texts=1, pair_weight=0.5))
    features = terms.fit(["wheat and corn", "corn"])
    assert terms.vocabulary == ["and", "and corn", "corn", "wheat", "wheat and"]
    assert features.toarray().round(2)[1].tolist() == [0, 0, 1, 0, 0]


def test_tokens():
    tokenizer = train_word_tokenizer(["Wheat, 3.5 tonnes; wheat!", "Gold 400"], 3, 10)
    assert tokenizer.get_vocab_size() == 5
    assert tokenizer.encode("The wheat of 1987: gold.").tokens == ["[OOV]", "wheat", "[OOV]", "0", "gold"]
    assert words(["Don't sell 1,000 U.S. bonds!"]) == [["don't", "sell", "0", "u", "s", "bonds"]]
    assert known_words(train_word_tokenizer(["wheat and corn"], 3, 10), ["Corn and asdf qwer", ""]) == [0.5, 0.0]
    assert shares_of_words(["Wheat and asdf!", ""], frequent_words(["wheat and corn"])) == [2 / 3, 0.0]


def test_word_weights():
    found = word_weights("oil oil gas", [(0, 3), (4, 7), (8, 11)], [([(0,), (1,)], 3.0), ([(1, 2)], 1.0)])
    assert [(word.word, word.weight) for word in found] == [("oil", 1.5), ("oil", 2.0), ("gas", 0.5)]


def test_networks():
    layer = nn.Linear(3, 2)
    start_bias(layer, None, np.array([[True, False], [False, False], [False, False], [True, False]]))
    assert np.allclose(layer.bias.tolist(), [0.0, -2.1972246])
    weight = torch.tensor([[1.0, 1.0], [-1.0, 0.0]])
    pooled = fused_max_convolution(torch.tensor([[[1.0], [3.0], [-2.0]]]), torch.tensor([3]), weight)
    assert pooled.tolist() == [[[4.0, 2.0]]]
