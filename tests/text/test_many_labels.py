"""Very many labels: sparse in, the highest probabilities out, and no array of all texts and all labels."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse

from many_label_texts import generate_many_labels
from surelabel import ConformalLabelSets, LogLoss, SparseProbabilities
from surelabel.exceptions import ArtifactError, CalibrationWarning, DataWarning, InvalidInputError, NotCalibratedError
from surelabel.text import load, make

N_LABELS = 1_500
TRAIN, CALIBRATION = slice(0, 900), slice(900, 1_200)


@pytest.fixture(scope="module")
def made():
    return generate_many_labels(n_texts=1_500, n_labels=N_LABELS, seed=0)


def _fitted(made, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        classifier = make("linear", min_texts=1, **settings)
        return classifier.fit(made.texts[TRAIN], made.labels[TRAIN], label_names=made.label_names)


@pytest.fixture(scope="module")
def classifier(made):
    return _fitted(made)


def _found(probabilities: SparseProbabilities, labels) -> float:
    """Share of true labels among as many of the most probable ones as the text has."""
    ranked = np.argsort(-probabilities.toarray(), axis=1, kind="stable")
    hits = [set(ranked[row, : labels[[row]].nnz]) & set(labels[[row]].indices) for row in range(labels.shape[0])]
    return sum(map(len, hits)) / labels.nnz


def test_learns_by_shortlists_what_one_against_all_others_learns(made, classifier):
    seen = np.asarray(made.labels[TRAIN].sum(axis=0)) > 0
    test = made.labels[1_200:].multiply(seen[None, :]).tocsr()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        # With what a search would choose, which takes half a minute.
        every = make("linear", min_texts=1, many_labels=10**6, loss="svm", inverse_regularisation=30.0).fit(
            made.texts[TRAIN], made.labels[TRAIN], validation=(made.texts[CALIBRATION], made.labels[CALIBRATION])
        )
    by_shortlists = _found(classifier.predict_proba_sparse(made.texts[1_200:]), test)
    by_all = _found(every.predict_proba_sparse(made.texts[1_200:]), test)
    assert by_shortlists > max(0.5, by_all - 0.05)


def test_labels_may_be_dense_too_and_any_k_lists_the_highest(made, classifier):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        dense = make("linear", min_texts=1).fit(made.texts[TRAIN], made.labels[TRAIN].toarray())
    texts = made.texts[1_200:1_230]
    found = classifier.predict_proba_sparse(texts, k=100)
    assert np.array_equal(dense.predict_proba_sparse(texts, k=100).toarray(), found.toarray())
    assert np.array_equal(classifier.predict_proba(texts), found.toarray())
    few = classifier.predict_proba_sparse(texts, k=3)
    assert few.n_listed.max() == 3
    assert np.array_equal(few.toarray().max(axis=1), found.toarray().max(axis=1))


def test_saved_is_equal_to_the_last_bit_in_any_batch(made, classifier, tmp_path, load_changed):
    classifier.save(tmp_path / "saved")
    again = load(tmp_path / "saved")
    texts = made.texts[1_200:1_220]
    expected = classifier.predict_proba_sparse(texts).toarray()
    assert np.array_equal(again.predict_proba_sparse(texts).toarray(), expected)
    alone = np.vstack([again.predict_proba_sparse([text]).toarray() for text in texts])
    assert np.array_equal(alone, expected)
    with pytest.raises(ArtifactError, match="damaged"):
        load_changed(tmp_path / "saved", n_labels=N_LABELS + 1, label_names=None)


def test_the_guarantee_holds_with_labels_that_no_shortlist_has(made, classifier):
    probabilities = classifier.predict_proba_sparse(made.texts[900:])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        predictor = ConformalLabelSets(LogLoss(), max_labels=3).calibrate(probabilities[:300], made.labels[CALIBRATION])
    sets = predictor.predict_set(probabilities[300:], significance=0.2)
    assert abs((~sets.contains(made.labels[1_200:])).mean() - 0.2) < 0.1


def test_a_hundred_thousand_labels_are_learnt_without_a_dense_matrix():
    many = generate_many_labels(n_texts=300, n_labels=100_000, seed=3)
    tracemalloc.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        classifier = make("linear", min_texts=1).fit(many.texts[:250], many.labels[:250])
    found = classifier.predict_proba_sparse(many.texts[250:], k=10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.shape == (50, 100_000)
    # A dense matrix of features and labels would take gigabytes.
    assert peak < 100 * 2**20


def test_every_kind_lists_its_highest_probabilities(topical):
    (texts, labels), (new_texts, _) = topical
    classifier = make("linear").fit(texts, labels)
    every = classifier.predict_proba(new_texts)
    assert np.array_equal(classifier.predict_proba_sparse(new_texts, k=9).toarray(), every)
    best = classifier.predict_proba_sparse(new_texts, k=1)
    assert best.labels.tolist() == every.argmax(axis=1).tolist()
    assert best.values.tolist() == every.max(axis=1).tolist()


def test_bert_learns_from_sparse_labels(topical, tiny_encoder):
    (texts, labels), (new_texts, _) = topical
    wide = scipy.sparse.csr_array(scipy.sparse.hstack([labels[:40], scipy.sparse.csr_array((40, 1_200), dtype=bool)]))
    settings = {"model": str(tiny_encoder), "epochs": 1, "max_tokens": 16}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        sparse = make("bert", **settings).fit(texts[:40], wide, progress=False)
        dense = make("bert", **settings).fit(texts[:40], wide.toarray(), progress=False)
    found = sparse.predict_proba_sparse(new_texts, k=5)
    assert found.n_listed.tolist() == [5] * len(new_texts)
    assert np.array_equal(found.toarray(), dense.predict_proba_sparse(new_texts, k=5).toarray())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["wheat"], 0), "'k' argument must be a whole number of 1 or more. Got 0"),
        ((["wheat"], True), "'k' argument .* Got True"),
        (([], 5), "at least one text. Got none"),
    ],
)
def test_what_cannot_be_listed_is_refused(topical, arguments, message):
    (texts, labels), _ = topical
    with pytest.raises(InvalidInputError, match=message):
        make("linear").fit(texts, labels).predict_proba_sparse(*arguments)


def test_bad_sparse_labels_and_an_unfitted_classifier_are_refused():
    with pytest.raises(NotCalibratedError, match="before predict_proba_sparse"):
        make("linear").predict_proba_sparse(["wheat"])
    with pytest.raises(InvalidInputError, match=r"'labels' parameter of fit .* shape \(1, 2000\)"):
        make("linear").fit(["wheat"], scipy.sparse.csr_array((2, 2_000)))
    with pytest.raises(InvalidInputError, match="2 to 1,000,000 labels"):
        generate_many_labels(10, 1)
