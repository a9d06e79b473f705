"""Tags to assign and to consider: thresholds by hand and by definition, unknown tags, shortlists, promise, files."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel.exceptions import ArtifactError, CalibrationWarning, InvalidInputError, NotCalibratedError
from surelabel.guarantees.tag_bounds import TagBounds
from surelabel.labels.shortlists import Shortlists


def texts(rng, n, d=8, decimals=None):
    probabilities = rng.beta(0.3, 0.8, (n, d))
    labels = rng.random((n, d)) < probabilities
    return (probabilities if decimals is None else np.round(probabilities, decimals)), labels


def missed_share(labels, consider, n_unknown=0):
    """Mean share of true tags that are not considered."""
    n_true = labels.sum(axis=1) + n_unknown
    return ((labels & ~consider).sum(axis=1) + n_unknown) / np.maximum(n_true, 1)


def test_thresholds_by_hand():
    # Nine texts with one true tag each, at .1 to .9: with ten in the denominator, .2 leaves room for one missed tag.
    probabilities = np.arange(1, 10)[:, None] / 10
    bounds = TagBounds("0.2", "0.5").calibrate(probabilities, np.ones((9, 1)))
    assert bounds.consider_threshold_ == 0.2
    # All assigned tags are true: one false one more is 1 / 10.
    assert bounds.assign_threshold_ == 0.1
    assign, consider = bounds.predict([[0.2], [0.15], [0.05]])
    assert assign.tolist() == [[True], [True], [False]]
    assert consider.tolist() == [[True], [True], [False]]  # what is assigned is considered


def test_a_missed_tag_costs_its_share_of_the_text():
    # 19 texts with two true tags, one sure; the other at .01 to .19. Losses of a half: .1 * 20 - 1 = 1 allows two.
    low = np.arange(1, 20) / 100
    probabilities = np.stack([np.full(19, 0.9), low], axis=1)
    bounds = TagBounds("0.1").calibrate(probabilities, np.ones((19, 2)))
    assert bounds.consider_threshold_ == 0.03


def consider_by_definition(probabilities, labels, n_unknown, level):
    """The highest threshold among true tags, or inf, that conformal risk control allows; -inf if there is none."""
    for threshold in sorted({math.inf, *probabilities[labels].tolist()}, reverse=True):
        losses = missed_share(labels, probabilities >= threshold, n_unknown)
        if losses.sum() + 1 <= level * (len(labels) + 1) * (1 + 1e-12):
            return threshold if threshold > 0 else -math.inf
    return -math.inf


def assign_by_definition(probabilities, labels, level):
    """The lowest threshold at which both conditions hold."""
    thresholds = sorted({*probabilities.ravel().tolist()}, reverse=True)
    worst, best = np.zeros(len(labels)), math.inf
    for threshold in thresholds:
        assigned = probabilities >= threshold
        n_false = (assigned & ~labels).sum(axis=1)
        worst = np.maximum(worst, n_false / np.maximum(assigned.sum(axis=1), 1))
        by_text = worst.sum() + 1 <= level * (len(labels) + 1) * (1 + 1e-12)
        by_tag = n_false.sum() + 1 <= level * (assigned.sum() + 1) * (1 + 1e-12)
        if by_text and by_tag:
            best = threshold
    return best


@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 6), st.booleans(), st.integers(2, 60))
def test_thresholds_are_those_of_the_definition(seed, n, d, ties, percent):
    rng = np.random.default_rng(seed)
    probabilities, labels = texts(rng, n, d, 1 if ties else None)
    unknown = rng.integers(0, 2, n) * (rng.random() < 0.3)
    names = [f"t{k}" for k in range(d)]
    pairs = zip(labels, unknown, strict=True)
    known = [{names[k] for k in np.flatnonzero(row)} | {f"new {j}" for j in range(n_new)} for row, n_new in pairs]
    with warnings.catch_warnings(action="ignore", category=CalibrationWarning):
        bounds = TagBounds(percent / 100, percent / 100, names).calibrate(probabilities, known)
    expected = consider_by_definition(probabilities, labels, unknown, percent / 100)
    if expected == -math.inf or (probabilities[labels].size and expected <= probabilities[labels].min() == 0.0):
        assert bounds.consider_threshold_ == -math.inf
    else:
        assert bounds.consider_threshold_ == expected
    assert bounds.assign_threshold_ == assign_by_definition(probabilities, labels, percent / 100)


def test_few_texts_consider_everything_and_say_how_many_are_needed():
    rng = np.random.default_rng(0)
    probabilities, labels = texts(rng, 18)
    with pytest.warns(CalibrationWarning, match="19"):
        bounds = TagBounds("0.05").calibrate(probabilities, labels)
    assert bounds.n_needed == 19
    assert "19" in bounds.problem_
    assert bounds.predict(probabilities).consider.all()
    probabilities, labels = texts(rng, 19)
    assert TagBounds("0.05").calibrate(probabilities, labels).problem_ is None


def test_without_any_text_everything_is_considered():
    with pytest.warns(CalibrationWarning, match="needed"):
        bounds = TagBounds().calibrate_on_none(3)
    assign, consider = bounds.predict([[0.9, 0.0, 0.1]])
    assert consider.all()
    assert not assign.any()


def test_unknown_tags_are_missed_whatever_the_threshold():
    probabilities = np.full((99, 2), [0.9, 0.0])
    labels = [{"a", "never seen"}] * 30 + [{"a"}] * 69
    # A loss of a half in 30 of 99 texts is 15; 0.1 allows 9, and 0.2 allows 19.
    with pytest.warns(CalibrationWarning, match="15"):
        strict = TagBounds("0.1", label_names=["a", "b"]).calibrate(probabilities, labels)
    assert strict.predict(probabilities).consider.all()
    lenient = TagBounds("0.2", label_names=["a", "b"]).calibrate(probabilities, labels)
    assert lenient.problem_ is None
    assert lenient.predict(probabilities).consider[0].tolist() == [True, False]


def test_texts_without_tags_miss_nothing():
    bounds = TagBounds("0.1").calibrate(np.full((20, 2), 0.5), np.zeros((20, 2)))
    assert bounds.consider_threshold_ == math.inf
    assert not bounds.predict([[1.0, 1.0]]).consider.any()


def test_both_conditions_hold_at_one_threshold():
    # Many texts with one true tag at .9; a few with twenty false ones at .8: by text few are false, by tag most are.
    probabilities = np.zeros((200, 20))
    probabilities[:, 0] = 0.9
    probabilities[:10, 1:] = 0.8
    labels = np.zeros((200, 20), dtype=bool)
    labels[:, 0] = True
    bounds = TagBounds("0.5", "0.1").calibrate(probabilities, labels)
    assert bounds.assign_threshold_ == 0.9


def test_full_shortlists_are_dense_probabilities():
    rng = np.random.default_rng(1)
    probabilities, labels = texts(rng, 120, 6, 2)
    dense = TagBounds("0.1", "0.2").calibrate(probabilities, labels)
    short = TagBounds("0.1", "0.2").calibrate(Shortlists.from_dense(probabilities, 6), labels)
    assert short.consider_threshold_ == dense.consider_threshold_
    assert short.assign_threshold_ == dense.assign_threshold_
    new = texts(rng, 30, 6, 2)[0]
    for mine, theirs in zip(short.predict(Shortlists.from_dense(new, 6)), dense.predict(new), strict=True):
        assert mine == [np.flatnonzero(row).tolist() for row in theirs]
    assert short.ranked(Shortlists.from_dense(new, 6)) == dense.ranked(new)


def test_tags_off_the_shortlist_count_as_missed():
    # In 10 of 99 texts the true tag is not listed: 0.05 needs all tags, 0.2 does not.
    shortlists = Shortlists([[0, 1]] * 99, [[0.9, 0.1]] * 99, n_labels=5)
    labels = [{4}] * 10 + [{0}] * 89
    strict = TagBounds("0.05").calibrate(shortlists, labels)
    assert strict.problem_ is None
    assert strict.predict(shortlists[:1]).consider == [[0, 1, 2, 3, 4]]
    assert strict.ranked(shortlists[:1])[0][1] == (0, 1, 2, 3, 4)
    lenient = TagBounds("0.2").calibrate(shortlists, labels)
    assert lenient.predict(shortlists[:1]).consider == [[0]]


def test_free_places_of_shortlists_are_never_tags():
    shortlists = Shortlists([[3, -1], [1, 2]] * 30, [[0.0, 0.0], [0.0, 0.0]] * 30, n_labels=4)
    bounds = TagBounds("0.5").calibrate(shortlists, [{3}, {1}] * 30)
    assert max(tag for tags in bounds.predict(shortlists).consider for tag in tags) == 3


def test_tags_are_ranked_by_probability():
    probabilities, labels = texts(np.random.default_rng(2), 300, 5)
    bounds = TagBounds("0.05", "0.2").calibrate(probabilities, labels)
    for row, (assign, consider) in zip(probabilities, bounds.ranked(probabilities), strict=True):
        expected = sorted(
            np.flatnonzero(row >= min(bounds.consider_threshold_, bounds.assign_threshold_)), key=lambda k: -row[k]
        )
        assert list(consider) == expected
        assert list(assign) == [k for k in expected if row[k] >= bounds.assign_threshold_]


def simulate(n_draws, n, level, seed):
    """Mean shares of missed and of false tags of new texts over draws, with standard errors."""
    rng, results = np.random.default_rng(seed), []
    for _ in range(n_draws):
        probabilities, labels = texts(rng, n + 60, 6)
        bounds = TagBounds(level, level).calibrate(probabilities[:n], labels[:n])
        assign, consider = bounds.predict(probabilities[n:])
        false = (assign & ~labels[n:]).sum(axis=1) / np.maximum(assign.sum(axis=1), 1)
        results.append((missed_share(labels[n:], consider).mean(), false.mean()))
    return np.mean(results, axis=0), np.std(results, axis=0) / math.sqrt(n_draws)


def test_risks_are_within_the_levels_on_average():
    means, errors = simulate(300, 60, 0.15, 0)
    assert (means <= 0.15 + 3.2 * errors).all()
    assert means[0] >= 0.15 - 2 / 61 - 3.2 * errors[0]  # not needlessly careful


@pytest.mark.slow
def test_risks_over_many_draws():
    for level in (0.05, 0.1, 0.2):
        means, errors = simulate(4000, 80, level, 1)
        assert (means <= level + 3.2 * errors).all()
        assert means[0] >= level - 2 / 81 - 3.2 * errors[0]


def test_files(tmp_path):
    probabilities, labels = texts(np.random.default_rng(3), 100, 4)
    names = ["a", "b", "c", "d"]
    bounds = TagBounds("0.1", "0.07", names).calibrate(probabilities, labels)
    bounds.save(tmp_path / "tags.npz")
    again = TagBounds.load(tmp_path / "tags.npz")
    assert (again.max_missed, again.max_false, again.n_texts_, again.summary_) == (0.1, 0.07, 100, bounds.summary_)
    assert again.ranked(probabilities) == bounds.ranked(probabilities)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_missed", "1e-999999999"),
        ("max_missed", "3/2"),
        ("max_false", 0.1),
        ("n_labels", 5),
        ("n_texts", 1),
        ("n_texts", True),
        ("problem", 3),
        ("label_names", ["a", "a", "b", "c"]),
        ("summary", None),
        ("thresholds", [math.nan, 0.5]),
        ("thresholds", [0.5]),
    ],
)
def test_damaged_files_are_refused(name, value, tmp_path, monkeypatch):
    from surelabel._core import files

    bounds = TagBounds("0.1", label_names=["a", "b", "c", "d"]).calibrate(*texts(np.random.default_rng(3), 100, 4))
    bounds.save(tmp_path / "tags.npz")
    header, arrays = files.read_arrays(tmp_path / "tags.npz", "tag-bounds")
    if name in arrays:
        arrays[name] = np.array(value)
    else:
        header[name] = value
    files.write_arrays(tmp_path / "tags.npz", header, arrays)
    with pytest.raises(ArtifactError, match="damaged"):
        TagBounds.load(tmp_path / "tags.npz")


def test_data_frames_are_matched_by_name():
    pandas = pytest.importorskip("pandas")
    probabilities, labels = texts(np.random.default_rng(4), 100, 3)
    frame = pandas.DataFrame(probabilities, columns=["a", "b", "c"])
    bounds = TagBounds().calibrate(frame, pandas.DataFrame(labels, columns=["a", "b", "c"])[["c", "a", "b"]])
    assert bounds.consider_threshold_ == TagBounds().calibrate(probabilities, labels).consider_threshold_
    assert bounds.ranked(frame[["b", "c", "a"]]) == bounds.ranked(frame)
    with pytest.raises(InvalidInputError, match="missing"):
        bounds.predict(frame[["a", "b"]])


def test_bad_input():
    for wrong in (0, 1, "1.5", True, None):
        with pytest.raises(InvalidInputError):
            TagBounds(max_missed=wrong)
    with pytest.raises(NotCalibratedError, match="calibrate"):
        TagBounds().predict([[0.5]])
    bounds = TagBounds().calibrate(np.full((30, 2), 0.5), np.ones((30, 2)))
    with pytest.raises(InvalidInputError, match="2 labels"):
        bounds.predict([[0.5] * 3])
    with pytest.raises(InvalidInputError, match="2 labels"):
        bounds.predict(Shortlists([[0]], [[0.5]], 3))
