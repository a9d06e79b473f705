"""What to do with a text: by hand, the same for dense and sparse, and wrong among the filed as promised."""

import numpy as np
import pytest
import scipy.sparse

from cases import calibration_warnings_ignored
from surelabel import Automation, ByCardinality, ConformalLabelSets, LogLoss, SparseProbabilities, TagBounds
from surelabel.answers import answer_probabilities
from surelabel.exceptions import InvalidInputError
from surelabel.guarantees.decisions import CHOOSE, FILE, READ, Decisions, short_list
from surelabel.guarantees.familiarity import Familiarity

NAMES = ("wheat", "grain", "trade", "corn", "gold", "oil")


def _texts(rng, n_texts, n_labels=6):
    probabilities = rng.beta(0.1, 0.4, (n_texts, n_labels))
    labels = rng.random((n_texts, n_labels)) < probabilities
    labels[np.arange(n_texts), probabilities.argmax(axis=1)] |= ~labels.any(axis=1)
    return probabilities, labels


def _plan(max_wrong=0.2, **parameters):
    return Decisions(Automation(max_wrong, label_names=NAMES), TagBounds(0.1, 0.1), Familiarity(), **parameters)


@pytest.fixture(scope="module")
def decided():
    probabilities, labels = _texts(np.random.default_rng(0), 800)
    return _plan().calibrate(probabilities, labels, np.linspace(0.8, 1.0, 800))


def _sure(*labels):
    row = np.full(6, 0.001)
    row[list(labels)] = 0.999
    return row


MISS = "which miss at most 10 % of the true tags on average."
UNSURE = np.array([0.5, 0.45, 0.001, 0.4, 0.001, 0.001])


@pytest.mark.parametrize(
    ("text", "size", "known", "verdict", "reason"),
    [
        (_sure(1), (1, 1), 1.0, FILE, "Certified: of the texts that are filed, at most 20 % are wrong."),
        (_sure(1), (1, 1), 0.1, READ, "The model knows only 10 % of its words: read it yourself."),
        (_sure(1), (1, 1), 0.0, READ, "The model knows none of its words: read it yourself."),
        (_sure(1), (1, 1), np.nan, READ, "It has no words: read it yourself."),
        (UNSURE, (0, 0), 1.0, READ, "No label-set is plausible at this level."),
        (UNSURE, (1, 1), 1.0, CHOOSE, "One label-set is plausible, but filing it is not certified: check it."),
        (UNSURE, (9, 9), 1.0, CHOOSE, "9 label-sets are plausible: choose one of them."),
        (UNSURE, (7, 9), 1.0, CHOOSE, "7 to 9 label-sets are plausible: choose one of them."),
        (
            UNSURE,
            (10, 10),
            1.0,
            CHOOSE,
            f"10 label-sets are plausible: choose among the 3 tags to consider, {MISS}",
        ),
    ],
)
def test_by_hand(decided, text, size, known, verdict, reason):
    answer = decided.decide(text[None, :], [size], [known])[0]
    assert (answer.decision, answer.reason) == (verdict, reason)
    assert answer.unfamiliar is (known != 1.0)
    assert answer.labels == ([1] if verdict == FILE else None)


def test_too_many_tags_are_read(decided):
    short = Decisions(decided.automation, decided.tag_bounds, decided.familiarity, max_tags=2)
    answer = short.decide(UNSURE[None, :], [(10, 10)])[0]
    assert answer.decision == READ
    tags = "3 of 6 tags are to be considered: a short list has at most 2."
    assert answer.reason == f"10 label-sets are plausible, and {tags}"
    tolerant = Decisions(decided.automation, decided.tag_bounds, Familiarity().calibrate([99.0], [0.1]))
    nothing = tolerant.decide(np.full((1, 6), 0.001), [(40, 40)])[0]
    assert nothing.reason == "40 label-sets are plausible, and no tag stands out."


def test_a_short_list_is_a_quarter_of_the_labels(decided):
    """Of 28 labels 7 tags are a short list; three always are, and more than 20 never."""
    probabilities, labels = _texts(np.random.default_rng(8), 400, 28)
    decisions = Decisions(Automation(0.2), TagBounds(0.1, 0.1), Familiarity(0.5)).calibrate(
        probabilities, labels, np.ones(400)
    )
    tags = decisions.tag_bounds
    tags.consider_threshold_ = 0.3
    new = np.full((2, 28), 0.001)
    new[0, :7] = new[1, :8] = 0.4
    decisions.familiarity = Familiarity().calibrate([99.0], [0.1])
    seven, eight = decisions.decide(new, [(50, 50)] * 2)
    assert (seven.decision, len(seven.consider)) == (CHOOSE, 7)
    assert (eight.decision, len(eight.consider)) == (READ, 8)
    assert eight.reason.endswith("and 8 of 28 tags are to be considered: a short list has at most 7.")
    assert (decided.longest_list, decisions.longest_list) == (3, 7)
    assert [short_list(n_labels) for n_labels in (6, 28, 57, 90, 700)] == [3, 7, 14, 20, 20]


def test_a_very_strange_best_guess_is_read(decided):
    strict = Decisions(decided.automation, decided.tag_bounds, Familiarity().calibrate([1.0, 2.0], [0.5, 1.0]))
    answer = strict.decide(UNSURE[None, :], [(1, 1)], [1.0])[0]  # its total is 1.8
    assert not answer.unfamiliar
    answer = strict.decide(np.full((1, 6), 0.5), [(1, 1)], [1.0])[0]  # 6 log 2
    assert answer.decision == READ
    assert answer.unfamiliar
    assert answer.reason == "Unlike the calibration texts: no label-set fits it well. Read it yourself."


def test_tags_come_by_probability(decided):
    answer = decided.decide(np.array([[0.5, 0.999, 0.001, 0.9999, 0.5, 0.001]]), [(3, 3)])[0]
    assert answer.assign[:2] == [3, 1]
    assert answer.consider == [3, 1, 0, 4]


def test_dense_and_sparse_agree(decided):
    probabilities, labels = _texts(np.random.default_rng(1), 300)
    probabilities[probabilities < 0.05] = 0.0
    sparse, truth = scipy.sparse.csr_array(probabilities), scipy.sparse.csr_array(labels)
    known = np.random.default_rng(2).uniform(0.9, 1.0, 300)
    with calibration_warnings_ignored():
        dense = _plan().calibrate(probabilities[:200], labels[:200], known[:200])
        listed = _plan().calibrate(SparseProbabilities(sparse[:200]), truth[:200], known[:200])
    sizes = [(row % 12, row % 12) for row in range(100)]
    expected = dense.decide(probabilities[200:], sizes, known[200:])
    assert listed.decide(SparseProbabilities(sparse[200:]), sizes, known[200:]) == expected
    assert {FILE, CHOOSE, READ} == {answer.decision for answer in expected}


def test_tags_that_are_not_listed_count(decided):
    sparse = SparseProbabilities(scipy.sparse.csr_array([[0.9, 0, 0, 0, 0, 0.0]]), 0.0)
    careful = TagBounds(0.1, 0.1).calibrate(np.zeros((40, 6)) + 0.01, np.eye(6, dtype=bool)[np.arange(40) % 6])
    careful.consider_threshold_ = 0.0
    answer = Decisions(decided.automation, careful, decided.familiarity, max_tags=5).decide(sparse, [(50, 50)])[0]
    assert answer.consider == [0]
    assert answer.decision in {FILE, READ}
    assert answer.decision == FILE or "6 of 6 tags are to be considered" in answer.reason


def test_added_texts_certify(decided):
    probabilities, labels = _texts(np.random.default_rng(3), 500)
    more = decided.add(probabilities, labels, np.ones(500))
    n_before, n_after = (len(one.automation._scores) for one in (decided, more))
    assert n_before + 490 <= n_after <= n_before + 500
    assert more.tag_bounds._n_texts == 1300
    assert len(more.familiarity._totals) == 1300
    assert more.automation.score == decided.automation.score


def test_save_and_load(decided, tmp_path):
    decided.save(tmp_path)
    again = Decisions.load(tmp_path, max_choices=decided.max_choices, max_tags=decided.max_tags)
    probabilities, _ = _texts(np.random.default_rng(4), 60)
    sizes = [(5, 5)] * 60
    assert again.decide(probabilities, sizes) == decided.decide(probabilities, sizes)
    (tmp_path / "empty").mkdir()
    assert Decisions.load(tmp_path / "empty") is None


@pytest.mark.parametrize("wrong", [{"max_choices": 0}, {"max_tags": True}, {"max_choices": 2.5}])
def test_wrong_parameters_are_named(wrong):
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        _plan(**wrong)


def test_answers_say_the_same(decided):
    probabilities, labels = _texts(np.random.default_rng(5), 400)
    predictor = ConformalLabelSets(LogLoss(), label_names=NAMES).calibrate(probabilities[:300], labels[:300])
    new, known = probabilities[300:], np.linspace(0.5, 1.0, 100)
    answers = answer_probabilities(predictor, new, significance="0.1", top=1, decisions=decided, known_words=known)
    verdicts = decided.decide(new, [answer.size_bounds for answer in answers], known)
    for answer, verdict in zip(answers, verdicts, strict=True):
        assert (answer.decision, answer.reason, answer.unfamiliar) == (
            verdict.decision,
            verdict.reason,
            verdict.unfamiliar,
        )
        assert answer.assign == tuple(NAMES[tag] for tag in verdict.assign)
        assert answer.consider == tuple(NAMES[tag] for tag in verdict.consider)
        if verdict.labels is not None:
            assert answer.labels == tuple(NAMES[label] for label in verdict.labels)
    plain = answer_probabilities(predictor, new, significance="0.1", top=1)
    assert {answer.decision for answer in plain} == {None}


def test_what_is_filed_is_what_was_certified_even_if_label_sets_are_compared_by_kind():
    """By cardinality, two labels can have the higher p-value although one label scores better."""
    rng = np.random.default_rng(6)
    probabilities, labels = _texts(rng, 900)
    with calibration_warnings_ignored():
        predictor = ConformalLabelSets(LogLoss(), label_names=NAMES, taxonomy=ByCardinality((1, 2)))
        predictor.calibrate(probabilities[:500], labels[:500])
        decided = _plan(0.3).calibrate(probabilities[:500], labels[:500], np.ones(500))
        forced = predictor.predict(probabilities[500:])
        answers = answer_probabilities(predictor, probabilities[500:], significance="0.1", decisions=decided)
    best = decided.automation.predict(probabilities[500:]).labels
    differ = (best != forced.labels).any(axis=1)
    filed = np.array([answer.decision == FILE for answer in answers])
    assert (filed & differ).any()
    for row in np.flatnonzero(filed):
        answer = answers[row]
        assert answer.labels == tuple(NAMES[label] for label in np.flatnonzero(best[row]))
        p_value = predictor.predict_p(probabilities[500 + row : 501 + row], [list(answer.labels)])[0]
        assert answer.credibility == p_value
        if differ[row]:
            assert answer.confidence == pytest.approx(1 - forced.credibility[row])


def test_wrong_among_the_filed_stays_within_its_bound():
    """Over many calibrations the share of wrong texts among the filed passes max_wrong in at most 5 % of them."""
    rng = np.random.default_rng(7)
    pool, truth = _texts(rng, 20_000)
    known = np.clip(rng.normal(0.9, 0.05, 20_000), 0, 1)
    past, shares = 0, []
    for _ in range(60):
        rows = rng.permutation(len(pool))
        first, rest = rows[:400], rows[400:]
        decided = _plan(0.35).calibrate(pool[first], truth[first], known[first])
        filed = decided.filed(pool[rest], known[rest])
        shares.append(filed.mean())
        if filed.any():
            wrong = (decided.automation.predict(pool[rest][filed]).labels != truth[rest][filed]).any(axis=1)
            past += wrong.mean() > 0.35
    assert past <= 7  # P(Bin(60, .05) > 7) = .01
    assert np.mean(shares) > 0.3
