"""Texts unlike any seen: limits by hand, no more calibration texts flagged than allowed, new ones as the rule says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel.exceptions import ArtifactError, InvalidInputError, NotCalibratedError
from surelabel.guarantees.familiarity import FAMILIAR, FEW_WORDS, NO_WORDS, STRANGE, Familiarity

NAN = float("nan")


def test_limits_by_hand():
    known = np.array([1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 1.0, 1.0])
    totals = np.array([9.0, 8.0, 0.1, 0.2, 0.3, 0.4, 0.5, 99.0, 0.6, 0.7])
    familiarity = Familiarity(0.4).calibrate(totals, known)
    # k = 4: two by words (.3 and .4), two of the rest by their totals (9 and 8).
    assert familiarity.fewest_known_ == 0.5
    assert familiarity.largest_total_ == 0.7
    assert familiarity.share_ == 0.4
    expected = [STRANGE, STRANGE, *[FAMILIAR] * 4, FEW_WORDS, FEW_WORDS, FAMILIAR, FAMILIAR]
    assert familiarity.flags(totals, known).tolist() == expected
    # The two texts that set the limits do not certify anything.
    assert np.flatnonzero(familiarity.within(totals, known)).tolist() == [2, 3, 4, 8]


def test_texts_without_words_are_always_flagged():
    familiarity = Familiarity().calibrate(np.zeros(10), np.ones(10))
    assert familiarity.flags([0.0, 0.0, 0.0], [NAN, 0.0, 1.0]).tolist() == [NO_WORDS, NO_WORDS, FAMILIAR]
    assert familiarity.share_ == 0.0


def test_a_corpus_whose_words_are_not_known_flags_only_texts_without_words():
    known = np.array([0.0] * 5 + [0.5] * 95)
    familiarity = Familiarity().calibrate(np.zeros(100), known)
    assert not familiarity.flags_unknown_
    assert familiarity.flags([0.0, 0.0], [0.0, NAN]).tolist() == [FAMILIAR, NO_WORDS]
    rare = Familiarity(0.05).calibrate(np.zeros(100), known)
    assert rare.flags_unknown_
    assert rare.share_ == 0.05


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=60),
    st.sampled_from(["0.01", "0.1", "0.3"]),
)
@settings(max_examples=60)
def test_no_more_calibration_texts_are_flagged_than_allowed(texts, most):
    totals, known = np.array(texts, dtype=float).T
    familiarity = Familiarity(most).calibrate(totals, known / 5)
    assert familiarity.share_ <= float(most) or not familiarity.flags_unknown_
    if not familiarity.flags_unknown_:
        assert familiarity.share_ <= float(most)


def test_new_texts_are_flagged_as_often_as_the_rule_says():
    rng = np.random.default_rng(0)
    rates = []
    for _ in range(300):
        totals, known = rng.exponential(size=(2, 500))
        known = np.exp(-known)
        familiarity = Familiarity(0.05).calibrate(totals[:100], known[:100])
        rates.append(np.mean(familiarity.flags(totals[100:], known[100:]) != FAMILIAR))
    # k = 5: 3 by words, 2 by totals; at most (4 + 3) / 101, and without ties just that but for texts flagged by both.
    assert 0.06 < np.mean(rates) < 7 / 101 + 0.003


def test_adding_is_calibrating_with_all(tmp_path):
    rng = np.random.default_rng(1)
    totals, known = rng.exponential(size=300), rng.random(300)
    known[7] = NAN
    first = Familiarity(0.1).calibrate(totals[:200], known[:200])
    whole = Familiarity(0.1).calibrate(totals, known)
    first.save(tmp_path / "familiarity.npz")
    for start in (first, Familiarity.load(tmp_path / "familiarity.npz")):
        more = start.add(totals[200:], known[200:])
        assert (more.fewest_known_, more.largest_total_) == (whole.fewest_known_, whole.largest_total_)
        assert more.share_ == whole.share_
    assert "10 % of 200 calibration texts flagged" in repr(first)


def test_what_cannot_be_is_named(tmp_path):
    with pytest.raises(InvalidInputError, match="one value per text"):
        Familiarity().calibrate([1.0, 2.0], [1.0])
    with pytest.raises(InvalidInputError, match="shares from 0 to 1"):
        Familiarity().calibrate([1.0], [1.5])
    with pytest.raises(InvalidInputError, match="at least one"):
        Familiarity().calibrate([], [])
    with pytest.raises(NotCalibratedError, match="'flags'"):
        Familiarity().flags([1.0], [1.0])
    with pytest.raises(NotCalibratedError, match="'save'"):
        Familiarity().save(tmp_path / "none")
    with pytest.raises(InvalidInputError, match="max_flagged"):
        Familiarity(1.0)
    assert repr(Familiarity()) == "Familiarity(max_flagged=0.01)"
    Familiarity().calibrate([1.0], [1.0]).save(tmp_path / "one")
    with np.load(tmp_path / "one") as arrays:
        entries = {**arrays, "known_words": np.array([1])}
    with (tmp_path / "damaged").open("wb") as stream:
        np.savez(stream, **entries)
    with pytest.raises(ArtifactError, match="is damaged"):
        Familiarity.load(tmp_path / "damaged")
