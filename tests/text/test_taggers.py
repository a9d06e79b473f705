"""Scores of any tagger: what they mean, how labels match, and that probabilities come out right."""

import numpy as np
import pytest
import scipy.sparse

from surelabel import text
from surelabel.exceptions import InvalidInputError, TaggerError
from surelabel.labels.shortlists import Shortlists
from surelabel.text.taggers import ScoreKind

NAMES = ("Gold", "Oil", "Žito")


def tagger_of(kind, scores, labels, names=NAMES, **settings):
    texts = [f"text {row}" for row in range(len(scores))]
    return text.make("scores", score_kind=kind, **settings).fit(texts, labels, names, scores=scores)


def made_up(n, seed):
    """Return scores of a tagger that is right as often as the square of its score, and labels."""
    random = np.random.default_rng(seed)
    own = random.random((n, 3))
    labels = random.random((n, 3)) < own**2
    return [dict(zip(NAMES, row.tolist(), strict=True)) for row in own], own, labels


@pytest.mark.parametrize(
    ("kind", "scores", "expected"),
    [
        ("probability", [0.0, 0.25, 1.0], [0, 0.25, 1]),
        ("logprob", [0.0, np.log(0.5)], [1, 0.5]),
        ("votes(4)", [0, 2, 4], [0.1, 0.5, 0.9]),
        ("rating(1-5)", [1, 4, 5], [0, 0.75, 1]),
        ("rating(5-1)", [1, 4], [1, 0.25]),
        ("rank", [1, 3], [1, 3]),
        ("rank", [None, None], [1, 2]),
        ("listed", [None, None], [1, 1]),
    ],
)
def test_scores_by_hand(kind, scores, expected):
    np.testing.assert_allclose(ScoreKind.parse(kind).shares(scores, "Text 1"), expected)


@pytest.mark.parametrize(
    ("kind", "scores"),
    [("probability", [1.2]), ("probability", [-0.1]), ("probability", [None]), ("probability", [np.nan]),
     ("logprob", [0.1]), ("votes(4)", [5]), ("votes(4)", [1.5]), ("rating(1-5)", [6]), ("rank", [0]),
     ("listed", [0.5])],
)  # fmt: skip
def test_scores_out_of_range_are_refused_with_the_text(kind, scores):
    good = [("Gold", {"rank": 1, "listed": None, "rating(1-5)": 3, "votes(4)": 1}.get(kind, -0.0))]
    given = [good, [("Gold", scores[0])]]
    with pytest.raises(InvalidInputError, match="Text 2"):
        tagger_of(kind, given, np.eye(2, 3))


@pytest.mark.parametrize("kind", ["votes", "votes(0)", "rating(1)", "rating(2-2)", "percent", ""])
def test_kinds_that_are_none(kind):
    with pytest.raises(InvalidInputError, match="score_kind"):
        text.make("scores", score_kind=kind)


def test_the_curve_makes_scores_probabilities():
    scores, _, labels = made_up(800, 0)
    fitted = tagger_of("probability", scores, labels)
    rows, held_out = fitted.held_out_
    np.testing.assert_array_equal(held_out, fitted.predict_proba(["x"] * 800, scores=scores)[rows])
    scores, own, labels = made_up(2_000, 1)
    probabilities = fitted.predict_proba(["x"] * 2_000, scores=scores)
    assert np.abs(probabilities - own**2).mean() < 0.06
    assert np.abs(own - own**2).mean() > 0.15
    np.testing.assert_array_equal(np.argsort(own, axis=1), np.argsort(probabilities, axis=1))


def test_ranks_have_the_frequency_of_their_place():
    scores = [["Gold", "Oil"]] * 30
    pairs = [[(name, None) for name in own] for own in scores]
    labels = np.zeros((30, 3), bool)
    labels[:20, 0], labels[:5, 1], labels[:3, 2] = True, True, True
    fitted = tagger_of("rank", pairs, labels)
    probabilities = fitted.predict_proba(["x"], scores=[[("Oil", None), ("Gold", None)]])[0]
    np.testing.assert_allclose(probabilities[[1, 0]], [20.5 / 31, 5.5 / 31])
    assert probabilities[2] == pytest.approx(3.5 / 31)  # not listed


def test_a_label_that_is_not_listed_is_not_one_with_score_zero():
    scores = [[("Gold", 1.0), ("Oil", 0.0)]] * 40
    labels = np.zeros((40, 3), bool)
    labels[:, 0], labels[:10, 1], labels[:2, 2] = True, True, True
    fitted = tagger_of("probability", scores, labels)
    zero, unlisted = fitted.predict_proba(["x"], scores=[[("Oil", 0.0)]])[0, [1, 2]]
    assert zero > unlisted == pytest.approx(2.5 / 41)
    assert fitted.shares_ == {"empty": 0, "unknown": 0, "zero": 0.5, "unlisted": 2 / 52, "most": 2}
    assert "50.0 % of the listed labels have the score 0" in fitted.notes[0]


def test_names_match_after_nfc_and_casefold():
    scores = [{"GOLD": 0.9}, {"z\u030ci\u0301to": 0.8}, {"Z\u030cITO": 0.7}] * 10
    labels = np.array([[1, 0, 0], [0, 0, 1], [0, 0, 1]] * 10)
    fitted = tagger_of("probability", scores, labels)
    assert fitted.label_names_ == (*NAMES, "z\u030ci\u0301to")
    assert fitted.predict_proba(["x"], scores=[{"gold": 0.9}])[0].argmax() == 0


def test_other_names_of_a_vocabulary():
    settings = {"alternatives": {"crude": "Oil", "petroleum": "Oil", "rye": "Žito"}}
    scores = [{"Crude": 0.9, "unheard of": 0.9}, {"RYE": 0.9, "petroleum": 0.1}] * 20
    labels = np.array([[0, 1, 0], [0, 0, 1]] * 20)
    fitted = tagger_of("probability", scores, labels, **settings)
    assert fitted.label_names_ == NAMES
    assert fitted.shares_["unknown"] == 0.25
    assert fitted.predict_proba(["x"], scores=[{"Petroleum": 0.9}])[0].argmax() == 1


def test_labels_of_the_tagger_are_labels_too():
    fitted = tagger_of("probability", [{"Gold": 0.5, "Silver": 0.4}] * 5, np.zeros((5, 3)))
    assert fitted.label_names_ == (*NAMES, "Silver")
    assert fitted.predict_proba(["x"], scores=[{"silver": 0.9}]).shape == (1, 4)


def test_thousands_of_labels_are_shortlists():
    names = tuple(f"label {number}" for number in range(1_500))
    labels = scipy.sparse.csr_array(np.eye(40, 1_500, dtype=bool))
    scores = [{f"label {row}": 0.9, f"label {row + 1}": 0.4, "label 1400": 0.1} for row in range(40)]
    fitted = tagger_of("probability", scores, labels, names, n_listed=2)
    shortlists = fitted.predict_proba(["x", "y"], scores=[scores[3], {}])
    assert isinstance(shortlists, Shortlists)
    assert shortlists.labels.tolist() == [[3, 4], [1_500, 1_500]]
    assert shortlists.probabilities[0, 0] > shortlists.probabilities[0, 1]


def test_too_many_empty_answers_are_an_error():
    scores = [{"Gold": 0.9}] * 20 + [{}] * 40
    with pytest.raises(TaggerError, match="40 of 60"):
        tagger_of("probability", scores, np.ones((60, 3)))
    fitted = tagger_of("probability", scores, np.ones((60, 3)), max_empty=0.9)
    assert fitted.shares_["empty"] == pytest.approx(2 / 3)
    assert fitted.predict_proba(["x"], scores=[None]).shape == (1, 3)


@pytest.mark.parametrize("scores", [None, [{"Gold": 0.5}], [{"Gold": "high"}] * 2, [5, 5], [{"Gold": True}] * 2])
def test_scores_that_are_none(scores):
    with pytest.raises(InvalidInputError, match="scores"):
        text.make("scores").fit(["a", "b"], np.eye(2, 3), NAMES, scores=scores)


def test_other_kinds_take_no_scores():
    with pytest.raises(InvalidInputError, match="'scores'"):
        text.make("linear").fit(["a", "b"], np.eye(2), scores=[{}, {}])


@pytest.mark.parametrize("kind", ["probability", "rank"])
def test_a_saved_one_is_the_same(kind, tmp_path):
    scores, _, labels = made_up(50, 3)
    if kind == "rank":
        scores = [[(name, None) for name in own] for own in scores]
    fitted = tagger_of(kind, scores, labels)
    fitted.save(tmp_path / "tagger")
    loaded = text.load(tmp_path / "tagger")
    expected = fitted.predict_proba(["x"] * 50, scores=scores)
    np.testing.assert_array_equal(loaded.predict_proba(["x"] * 50, scores=scores), expected)
    with pytest.raises(InvalidInputError, match="explain"):
        loaded.explain("x", "Gold")
