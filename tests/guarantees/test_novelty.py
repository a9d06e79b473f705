"""Novel texts: limits by hand, how many are flagged, which texts can certify."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel.exceptions import InvalidInputError, NotCalibratedError
from surelabel.guarantees.novelty import FAMILIAR, FEW_WORDS, NO_WORDS, UNUSUAL, Novelty


def test_limits_by_hand():
    # Of 100 texts 4 may be flagged: 2 with few words, 2 with a high score.
    known = np.linspace(0.5, 1.0, 100)
    scores = np.arange(100.0)
    novelty = Novelty("0.04").calibrate(scores, known)
    assert novelty.fewest_known_ == known[2]
    assert novelty.largest_score_ == 97.0
    assert novelty.share_ == 0.04
    flags = novelty.flags([1.0, 1.0, 98.0, 1.0, 1.0], [1.0, 0.5, 1.0, np.nan, 0.0])
    assert flags.tolist() == [FAMILIAR, FEW_WORDS, UNUSUAL, NO_WORDS, NO_WORDS]


def test_texts_without_words_are_flagged_even_if_none_may_be():
    novelty = Novelty("0.01").calibrate(np.zeros(10), np.append(np.ones(9), np.nan))
    assert novelty.flags([0.0], [np.nan]).tolist() == [NO_WORDS]


def test_a_corpus_whose_words_are_not_known_flags_only_texts_without_words():
    novelty = Novelty("0.05").calibrate(np.zeros(100), np.zeros(100))
    assert novelty.flags([0.0, 0.0], [0.0, np.nan]).tolist() == [FAMILIAR, NO_WORDS]
    assert not novelty.flags_unknown_


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([0, 0.5, 0.9, 1.0])), min_size=1), st.integers(1, 50))
def test_no_more_calibration_texts_are_flagged_than_allowed(texts, percent):
    scores, known = np.array(texts, dtype=float).T
    novelty = Novelty(percent / 100).calibrate(scores, known)
    assert np.count_nonzero(novelty.flags(scores, known)) <= percent / 100 * len(texts)


def test_texts_that_set_a_limit_certify_nothing():
    scores, known = np.arange(100.0), np.linspace(0.5, 1.0, 100)
    novelty = Novelty("0.04").calibrate(scores, known)
    certifying = novelty.can_certify(scores, known)
    # 4 are flagged, and the texts with the limits themselves are left out.
    assert np.flatnonzero(~certifying).tolist() == [0, 1, 2, 97, 98, 99]


def test_of_several_texts_at_a_limit_none_is_left_out():
    scores, known = np.append(np.arange(98.0), [50.0, 50.0]), np.ones(100)
    novelty = Novelty("0.01").calibrate(np.minimum(scores, 90.0), known)
    assert novelty.can_certify(np.minimum(scores, 90.0), known).all()


def test_familiar_texts_that_certify_are_like_new_familiar_ones():
    """Given the limits, ranks of a new familiar text among certifying texts are uniform."""
    rng, ranks = np.random.default_rng(0), []
    for _ in range(2000):
        scores = rng.random(21)
        novelty = Novelty("0.1").calibrate(scores[:20], np.ones(20))
        inside = novelty.can_certify(scores[:20], np.ones(20))
        if novelty.flags(scores[20:], np.ones(1))[0] == FAMILIAR:
            ranks.append((scores[:20][inside] < scores[20]).mean())
    assert np.mean(ranks) == pytest.approx(0.5, abs=0.03)


def test_limits_survive_plain_values():
    novelty = Novelty("0.04").calibrate(np.arange(10.0), np.ones(10))
    again = Novelty.from_dict(novelty.to_dict())
    for name in ("fewest_known_", "largest_score_", "share_", "flags_unknown_", "max_flagged"):
        assert getattr(again, name) == getattr(novelty, name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("share_", "nan"),
        ("share_", "2"),
        ("largest_score_", "nan"),
        ("max_flagged", "1e-999999999"),
        ("flags_unknown_", 1),
        ("fewest_known_", None),
    ],
)
def test_damaged_values_are_refused(name, value):
    values = Novelty().calibrate(np.arange(10.0), np.ones(10)).to_dict() | {name: value}
    with pytest.raises((ValueError, TypeError, KeyError)):
        Novelty.from_dict(values)


def test_bad_input():
    with pytest.raises(NotCalibratedError, match="calibrate"):
        Novelty().flags([1.0], [1.0])
    with pytest.raises(InvalidInputError, match="one value per text"):
        Novelty().calibrate([1.0], [1.0, 1.0])
    with pytest.raises(InvalidInputError, match="shares"):
        Novelty().calibrate([1.0], [2.0])
    with pytest.raises(InvalidInputError, match="at least one"):
        Novelty().calibrate([], [])
