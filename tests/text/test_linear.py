"""`linear`: the solver against scikit-learn's, choices on folds, refinement, explanations, threads."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.svm import LinearSVC

from surelabel import text
from surelabel.exceptions import DataWarning, InvalidInputError
from surelabel.text.curve import ScoreCurve
from surelabel.text.linear import folds_of
from surelabel.text.refinement import ScoreRefinement
from surelabel.text.solver import Candidate, fit_scores
from surelabel.text.terms import Terms
from text_cases import LABELS, log_loss, made_up


def features_of(texts):
    return Terms(pair_weight=0.0, min_texts=2, max_features=1_000, language=None, lemmas=None).fit(texts)


@pytest.fixture(scope="module")
def fitted(training):
    return text.make("linear").fit(*training, LABELS)


def test_it_learns(fitted, new):
    texts, labels = new
    probabilities = fitted.predict_proba(texts)
    assert probabilities.shape == labels.shape
    assert probabilities.dtype == np.float64
    base = np.tile(labels.mean(axis=0), (len(labels), 1))
    assert log_loss(probabilities, labels) < 0.6 * log_loss(base, labels)
    assert ((probabilities >= 0.5) == labels).mean() > 0.9


def test_probabilities_mean_what_they_say(fitted):
    texts, labels = made_up(1_000, 5)
    probabilities = fitted.predict_proba(texts)
    assert abs(probabilities.mean() - labels.mean()) < 0.03
    middle = (probabilities > 0.2) & (probabilities < 0.8)
    if middle.sum() > 50:
        assert abs(probabilities[middle].mean() - labels[middle].mean()) < 0.15


def test_every_text_is_computed_alone(fitted, new):
    texts, _ = new
    together = fitted.predict_proba(texts)
    alone = np.concatenate([fitted.predict_proba([one]) for one in texts[:20]])
    np.testing.assert_array_equal(together[:20], alone)


def test_the_number_of_threads_changes_nothing(training, new, monkeypatch):
    monkeypatch.setenv("SURELABEL_NUM_THREADS", "1")
    one = text.make("linear", C=1.0).fit(*training).predict_proba(new[0])
    monkeypatch.setenv("SURELABEL_NUM_THREADS", "3")
    three = text.make("linear", C=1.0).fit(*training).predict_proba(new[0])
    np.testing.assert_array_equal(one, three)


def test_held_out_probabilities_are_of_all_training_texts(fitted, training, new):
    rows, probabilities = fitted.held_out_
    np.testing.assert_array_equal(rows, np.arange(len(training[0])))
    held_out, seen = log_loss(probabilities, training[1]), log_loss(fitted.predict_proba(training[0]), training[1])
    assert seen < held_out
    assert abs(held_out - log_loss(fitted.predict_proba(new[0]), new[1])) < 0.5


def test_held_out_probabilities_have_not_seen_their_texts():
    """Labels drawn at random cannot be predicted: fits that had seen the texts would know them."""
    random = np.random.default_rng(0)
    texts = [f"{''.join(random.choice(list('abcdefghij'), 6))} common words" for _ in range(150)]
    labels = random.random((150, 3)) < 0.5
    fitted = text.make("linear", min_texts=1).fit(texts, labels)
    assert log_loss(fitted.held_out_.probabilities, labels) > 3 * 0.6


def test_equal_texts_are_in_one_fold():
    texts = ["same"] * 7 + [f"text {number}" for number in range(43)]
    folds = folds_of(texts, 0)
    assert len(folds) == 5
    assert sorted(np.concatenate(folds)) == list(range(50))
    assert sum(bool(np.isin(fold, np.arange(7)).any()) for fold in folds) == 1


def test_what_was_tried_is_in_the_history(fitted):
    assert {entry["is_logistic"] for entry in fitted.history_} == {0.0, 1.0}
    fixed = text.make("linear", loss="svm", C=2.0).fit(*made_up(100, 0))
    assert [entry["C"] for entry in fixed.history_] == [2.0]


def test_labels_that_cannot_be_learnt_have_one_probability(training):
    texts, labels = training
    labels = np.column_stack([labels, np.zeros(len(labels), bool), np.ones(len(labels), bool)])
    with pytest.warns(DataWarning, match="1 occur in none"):
        fitted = text.make("linear", C=1.0).fit(texts, labels)
    probabilities = fitted.predict_proba(["wheat", "gold"])
    n = len(texts)
    np.testing.assert_allclose(probabilities[:, 4:], [[1 / (n + 2), (n + 1) / (n + 2)]] * 2)
    assert fitted.explain("wheat", 4).log_odds == pytest.approx(np.log(1 / (n + 1)))


@pytest.mark.parametrize("texts", [["", " "], ["wheat"], ["same", "same", "same"]])
def test_hardly_any_training_texts(texts, recwarn):
    labels = np.eye(len(texts), 2, dtype=bool)
    probabilities = text.make("linear").fit(texts, labels).predict_proba(["wheat", ""])
    assert np.isfinite(probabilities).all()
    assert ((probabilities > 0) & (probabilities < 1)).all()


@pytest.mark.parametrize("label", LABELS)
def test_contributions_add_up_to_the_log_odds(fitted, new, label):
    for one in new[0][:5]:
        explained = fitted.explain(one, label)
        probability = fitted.predict_proba([one])[0, LABELS.index(label)]
        assert explained.log_odds == pytest.approx(np.log(probability / (1 - probability)), rel=1e-6)
        assert sum(word.weight for word in explained.words) + explained.rest == pytest.approx(explained.log_odds)
        assert all(one[word.start : word.end] == word.word for word in explained.words)


def test_the_words_of_a_label_speak_for_it(fitted):
    explained = fitted.explain("The report said that Gold prices rose", "metal")
    assert explained.speaking_for(1)[0].word == "Gold"
    assert explained.label == "metal"
    with pytest.raises(InvalidInputError, match="label"):
        fitted.explain("Gold", "silver")


def test_pairs_are_shared_by_their_words():
    texts = ["not good", "good", "not bad", "bad", "bad not", "good not"] * 20
    labels = np.array([[0], [1], [1], [0], [0], [1]] * 20)
    fitted = text.make("linear", pair_weight=1.0).fit(texts, labels)
    assert (fitted.predict_proba(["not bad"]) > 0.5).all()
    assert (fitted.predict_proba(["bad not"]) < 0.5).all()
    assert len(fitted.explain("not bad", 0).words) == 2


def test_stems_and_lemmas_join_forms():
    texts = ["vlaky jezdí", "banky", "vlak jede", "banka"] * 10
    labels = np.array([[1, 0], [0, 1], [1, 0], [0, 1]] * 10)
    for settings in ({"language": "czech"}, {"lemmas": "cs"}):
        fitted = text.make("linear", **settings).fit(texts, labels)
        assert fitted.predict_proba(["vlakem"])[0].argmax() == 0
        assert fitted.explain("Vlakem domů", 0).speaking_for(1)[0].word == "Vlakem"


@pytest.mark.parametrize(
    "settings",
    [{"loss": "hinge"}, {"C": 0}, {"C": True}, {"seed": -1}, {"language": "klingon"}, {"lemmas": "xx"},
     {"language": "czech", "lemmas": "cs"}, {"min_texts": 1.5}, {"depth": 3}],
)  # fmt: skip
def test_wrong_settings_are_named(settings):
    with pytest.raises(InvalidInputError, match=next(iter(settings))):
        text.make("linear", **settings)


def test_it_is_a_scikit_learn_estimator(fitted):
    copy = clone(text.make("linear", C=3.0, language="english"))
    assert copy.get_params() == text.make("linear", C=3.0, language="english").get_params()
    assert repr(copy) == "LinearClassifier(C=3.0, language='english')"
    assert not hasattr(clone(fitted), "n_labels_")


@pytest.mark.parametrize("c", [0.1, 1.0])
def test_support_vector_machines_are_scikit_learns(training, c):
    terms = features_of(training[0])
    target = training[1][:, [1]]
    ours = fit_scores(terms, target, Candidate("svm", c), 0)
    reference = LinearSVC(C=c, intercept_scaling=1.0, dual=True, tol=1e-6, max_iter=100_000)
    reference.fit(scipy.sparse.csr_matrix(terms), target[:, 0])
    margins = terms @ reference.coef_.T + reference.intercept_
    np.testing.assert_allclose(ours(terms), margins, atol=0.05)


def test_logistic_regressions_are_scikit_learns(training):
    from sklearn.linear_model import LogisticRegression

    terms = features_of(training[0])
    with_constant = scipy.sparse.csr_matrix(scipy.sparse.hstack([terms, np.ones((terms.shape[0], 1))]))
    target = training[1][:, [2]]
    ours = fit_scores(terms, target, Candidate("logistic", 5.0), 0)
    reference = LogisticRegression(C=5.0, fit_intercept=False, tol=1e-8).fit(with_constant, target[:, 0])
    np.testing.assert_allclose(ours(terms)[:, 0], reference.decision_function(with_constant), atol=0.05)


def test_rare_labels_count_more(training):
    terms = features_of(training[0])
    target = np.zeros((len(training[0]), 1), bool)
    target[:5] = True
    plain, raised = (fit_scores(terms, target, Candidate("svm", 1.0, weight), 0)(terms) for weight in (0.0, 0.5))
    assert raised[:5].mean() > plain[:5].mean()


def test_the_curve_rises_with_the_score():
    random = np.random.default_rng(0)
    scores = random.normal(size=(400, 5))
    labels = random.random((400, 5)) < 1 / (1 + np.exp(-2 * scores))
    curve = ScoreCurve.fit(scores, labels, labels.mean(axis=0))
    higher = curve.logits(scores + 0.1 * np.eye(5)[0])[:, 0]
    assert (higher > curve.logits(scores)[:, 0]).all()
    assert abs(curve(scores).mean() - labels.mean()) < 0.02


def test_refinement_learns_that_one_label_implies_another():
    random = np.random.default_rng(0)
    first = random.random(600) < 0.5
    labels = np.column_stack([first, first])
    scores = np.column_stack([np.where(first, 2.0, -2.0) + random.normal(size=600), random.normal(size=600)])
    refinement = ScoreRefinement.fit(scores[:400], labels[:400], labels.mean(axis=0), 1.0)
    refined = refinement(scores[400:])
    assert ((refined[:, 1] > 0) == first[400:]).mean() > 0.9
    np.testing.assert_array_equal(refinement(scores[400:401]), refined[:1])


def test_more_labels_than_it_takes_are_refused():
    with pytest.raises(InvalidInputError, match="omikuji"):
        text.make("linear").fit(["a", "b", "c"], scipy.sparse.csr_array(np.eye(3, 1_001, dtype=bool)))
