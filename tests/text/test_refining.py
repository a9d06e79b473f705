"""What the scores of other labels say about each: learnt from texts that a fit has not seen, kept if it helps."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from surelabel.exceptions import ArtifactError
from surelabel.text import load, make
from surelabel.text.curves import log_loss
from surelabel.text.refining import Refinement, out_of_fold
from surelabel.text.separating import Candidate, LinearScores, fit_scores


def _texts(n_texts, seed):
    """Return texts whose second label shows in no word of its own: it nearly always comes with the first."""
    rng = np.random.default_rng(seed)
    first = rng.random(n_texts) < 0.4
    labels = np.column_stack([first, np.where(rng.random(n_texts) < 0.95, first, ~first), rng.random(n_texts) < 0.3])
    words = np.where(labels[:, 0], "wheat", "gold"), np.where(labels[:, 2], "ship", "road")
    texts = [f"{a} {b} {c}" for a, b, c in zip(*words, rng.choice(["new", "old", "large"], n_texts), strict=True)]
    return texts, labels


def test_other_labels_lower_the_log_loss():
    rng = np.random.default_rng(0)
    labels = rng.random((3000, 6)) < 0.3
    labels[:, 5] = np.where(rng.random(3000) < 0.9, labels[:, 0], ~labels[:, 0])
    # All labels show in their scores but the last, which comes with the first.
    scores = (2.0 * labels - 1.0) * (np.arange(6) < 5) + rng.normal(size=labels.shape)
    refinement = Refinement.fit(scores[:2000], labels[:2000], labels[:2000].mean(axis=0), 1.0)
    new, truth = scores[2000:], labels[2000:]
    refined = refinement(new)
    assert log_loss(refined, truth) < log_loss(refinement.curve.logits(new), truth) - 0.05
    assert np.array_equal(refined, np.vstack([refinement(row[None]) for row in new]))


def test_a_text_is_scored_by_fits_that_have_not_seen_it():
    rng = np.random.default_rng(1)
    features = scipy.sparse.csr_array(rng.random((30, 4)).astype(np.float32))
    labels = rng.random((30, 2)) < 0.5
    candidate = Candidate("logistic", 1.0)
    scores, rows = out_of_fold(features, labels, candidate, seed=0)
    assert sorted(rows) == list(range(30))
    held, kept = rows[:10], np.sort(rows[10:])
    alone = fit_scores(features[kept], labels[kept], candidate, 0)
    assert isinstance(alone, LinearScores)
    assert np.array_equal(scores[:10], alone(features[held]))


def test_what_labels_say_does_not_depend_on_the_validation_texts():
    texts, labels = _texts(300, 0)
    tables = []
    for seed in (1, 2):
        classifier = make("linear", loss="svm", inverse_regularisation=1.0).fit(
            texts, labels, validation=_texts(200, seed)
        )
        tables.append(classifier._refinement.odds.table)
    assert np.array_equal(*tables)


@pytest.mark.parametrize("with_validation", [True, False])
def test_saved_with_the_classifier(tmp_path, with_validation):
    texts, labels = _texts(300, 0)
    # A label that cannot be learnt has no part in it.
    wide = np.column_stack([labels[:, :1], np.ones(300, dtype=bool), labels[:, 1:]])
    held = _texts(200, 1)
    validation = (held[0], np.insert(held[1], 1, True, axis=1)) if with_validation else None
    with pytest.warns(match="only positive"):
        classifier = make("linear").fit(texts, wide, validation=validation)
    assert (classifier._refinement is not None) or not with_validation
    classifier.save(tmp_path / "saved")
    new = _texts(50, 2)[0]
    expected = classifier.predict_proba(new)
    assert np.array_equal(load(tmp_path / "saved").predict_proba(new), expected)
    assert np.array_equal(np.vstack([classifier.predict_proba([text]) for text in new]), expected)


@pytest.mark.parametrize(
    "change", [{"refined": np.eye(4)[:3]}, {"refined_curve": np.full(9, np.nan)}, {"refined_limits": 1.0}]
)
def test_damaged(tmp_path, load_changed, change):
    texts, labels = _texts(300, 0)
    classifier = make("linear", loss="svm", inverse_regularisation=1.0).fit(texts, labels, validation=_texts(200, 1))
    folder = tmp_path / "saved"
    classifier.save(folder)
    with np.load(folder / "linear.npz") as kept:
        arrays = {**kept, **change}
    np.savez(folder / "linear.npz", **arrays)
    with pytest.raises(ArtifactError, match="damaged"):
        load_changed(folder)


def test_few_texts_are_left_as_they_are():
    texts, labels = _texts(60, 0)
    assert make("linear").fit(texts, labels)._refinement is None
