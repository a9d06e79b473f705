"""Tags to assign and to consider: thresholds by definition, and the risks they keep."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import calibration_warnings_ignored, examples
from surelabel import SparseProbabilities, TagBounds
from surelabel.exceptions import ArtifactError, CalibrationWarning, InvalidInputError, NotCalibratedError


def _texts(rng, n_texts, n_labels=12):
    probabilities = rng.beta(0.15, 0.6, (n_texts, n_labels))
    return probabilities, rng.random((n_texts, n_labels)) < probabilities


def _missed(labels, consider):
    return (labels & ~consider).sum(axis=1) / np.maximum(labels.sum(axis=1), 1)


def _false(labels, assign):
    return (assign & ~labels).sum(axis=1) / np.maximum(assign.sum(axis=1), 1)


def _consider_by_definition(probabilities, labels, bound):
    """Highest threshold at which losses, one text at a time, plus one stay within the bound; 0 if none does."""
    n = len(labels)
    best = 0.0
    for threshold in sorted({*probabilities[labels].tolist(), math.inf}):
        lost = sum(
            Fraction(sum(o < threshold for o in row[known]), int(known.sum()))
            for row, known in zip(probabilities, labels, strict=True)
            if known.any()
        )
        if lost + 1 <= bound * (n + 1):
            best = threshold
    return best


def _largest_false_share(row, known, threshold):
    """Largest share of false tags over this threshold and all higher ones."""
    shares = [Fraction(0)]
    for cut in {o for o in row if o >= threshold}:
        chosen = [is_true for o, is_true in zip(row, known, strict=True) if o >= cut]
        shares.append(Fraction(len(chosen) - sum(chosen), len(chosen)))
    return max(shares)


def _assigned_by_definition(probabilities, labels, bound):
    """The tags that are assigned at the lowest threshold that keeps both conditions."""
    n = len(labels)
    kept = []
    for cut in sorted({*probabilities.ravel().tolist()}, reverse=True):
        rows = zip(probabilities.tolist(), labels.tolist(), strict=True)
        lost = sum(_largest_false_share(row, known, cut) for row, known in rows)
        if lost + 1 > bound * (n + 1):
            break
        chosen = labels[probabilities >= cut]
        if len(chosen) - int(chosen.sum()) + 1 <= bound * (len(chosen) + 1):
            kept.append(cut)
    return probabilities >= min(kept, default=math.inf)


def test_thresholds_by_hand():
    # One true tag per text, 19 texts: a mean loss of 1 / 10 allows (lost + 1) / 20 <= 1 / 10, one lost.
    probabilities = np.column_stack([np.linspace(0.05, 0.95, 19), np.zeros(19)])
    labels = np.tile([True, False], (19, 1))
    bounds = TagBounds(0.1, 0.1).calibrate(probabilities, labels)
    assert bounds.consider_threshold_ == probabilities[1, 0]
    # No tag over 0 is false: with one false one added, 1 of 20 is. At 0 the second tags come in, and half are false.
    assert bounds.assign_threshold_ == probabilities[0, 0]
    assign, consider = bounds.predict([[0.2, 0.06], [0.01, 0.2]])
    assert assign.tolist() == [[True, True], [False, True]]
    assert consider.tolist() == assign.tolist()


@given(st.data())
@settings(max_examples=examples(20))
def test_thresholds_are_those_of_the_definition(data):
    n, d = data.draw(st.integers(1, 15)), data.draw(st.integers(1, 5))
    values = data.draw(
        st.sampled_from([st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.integers(0, 1000).map(lambda v: v / 1000)])
    )
    probabilities = np.array(data.draw(st.lists(st.lists(values, min_size=d, max_size=d), min_size=n, max_size=n)))
    noise = np.array(data.draw(st.lists(st.lists(st.integers(0, 99), min_size=d, max_size=d), min_size=n, max_size=n)))
    labels = noise < 100 * probabilities
    bound = Fraction(data.draw(st.sampled_from(["0.05", "0.1", "0.3", "0.5", "0.9"])))
    with calibration_warnings_ignored():
        bounds = TagBounds(bound, bound).calibrate(probabilities, labels)
        sparse = TagBounds(bound, bound).calibrate(
            SparseProbabilities(scipy.sparse.csr_array(probabilities)), scipy.sparse.csr_array(labels)
        )
    assert bounds.consider_threshold_ == _consider_by_definition(probabilities, labels, bound)
    assign, _ = bounds.predict(probabilities)
    assert np.array_equal(assign, _assigned_by_definition(probabilities, labels, bound))
    assert sparse.consider_threshold_ == bounds.consider_threshold_
    listed = probabilities > 0
    assert np.array_equal((probabilities >= sparse.assign_threshold_) & listed, assign & listed)


def test_both_conditions_hold_at_the_threshold():
    # Half of the tags may be false. From .2 on 1 of 1 is, from .1 on 5 of 11, but then 5 of the 10 texts lose all.
    probabilities = np.zeros((10, 3))
    probabilities[[2, 3, 4, 9], 1] = 0.1, 0.1, 0.2, 0.1
    probabilities[6, 0] = 0.1
    probabilities[7:9] = 0.1
    labels = np.zeros((10, 3), dtype=bool)
    labels[7:9] = True
    bounds = TagBounds(0.5, 0.5).calibrate(probabilities, labels)
    assert not bounds.predict(probabilities).assign.any()
    assert not _assigned_by_definition(probabilities, labels, Fraction(1, 2)).any()


def test_sparse_texts_get_sparse_answers():
    rng = np.random.default_rng(1)
    probabilities, labels = _texts(rng, 500)
    probabilities[probabilities < 0.03] = 0.001
    listed = SparseProbabilities(
        scipy.sparse.csr_array(np.where(probabilities > 0.001, probabilities, 0)), unlisted=0.001
    )
    dense = TagBounds(0.3, 0.1).calibrate(probabilities[:400], labels[:400])
    sparse = TagBounds(0.3, 0.1).calibrate(listed[:400], scipy.sparse.csr_array(labels[:400]))
    assert sparse.summary_ == dense.summary_
    for one, other in zip(sparse.predict(listed[400:]), dense.predict(probabilities[400:]), strict=True):
        assert np.array_equal(one.toarray(), other)
    assert sparse.ranked(listed[400:410]) == dense.ranked(probabilities[400:410])


def test_tags_are_ranked_by_probability():
    rng = np.random.default_rng(2)
    probabilities, labels = _texts(rng, 300, 4)
    names = ["zinc", "alum", "gold", "iron"]
    bounds = TagBounds(0.05, 0.2, label_names=names).calibrate(probabilities, labels)
    (tags,) = bounds.ranked([[0.999, 0.3, 0.999, 0.5]])
    assert [tag.tag for tag in tags] == ["zinc", "gold", "iron", "alum"]
    assert [tag.assign for tag in tags] == [True, True, False, False]
    named = TagBounds(0.05, 0.2, label_names=names).calibrate(
        probabilities, [[names[k] for k in np.flatnonzero(row)] for row in labels]
    )
    assert named.summary_ == bounds.summary_


def test_assigned_tags_are_considered_too():
    # Tags that are always true may be assigned at once, and no true tag is then missing.
    probabilities = np.random.default_rng(3).random((200, 3))
    bounds = TagBounds(0.5, 0.05).calibrate(probabilities, np.ones((200, 3)))
    assign, consider = bounds.predict(probabilities)
    assert assign.all()
    assert consider.all()
    assert bounds.consider_threshold_ > 0.4


def test_nothing_to_assign_and_everything_to_consider():
    probabilities = np.full((100, 5), 0.5)
    labels = np.random.default_rng(4).random((100, 5)) < 0.5
    bounds = TagBounds().calibrate(probabilities, labels)
    assign, consider = bounds.predict(probabilities)
    assert not assign.any()
    assert consider.all()
    assert bounds.summary_.endswith("no tag can be assigned with at most 5 % false.")
    with pytest.warns(CalibrationWarning, match="All 5 tags of every text must be considered"):
        TagBounds().calibrate(probabilities[:10], labels[:10])


def test_files(tmp_path):
    rng = np.random.default_rng(5)
    probabilities, labels = _texts(rng, 300)
    bounds = TagBounds(0.1, "0.2", assurance=0.9, label_names=[f"t{k}" for k in range(12)]).calibrate(
        probabilities, labels
    )
    bounds.save(tmp_path / "bounds")
    again = TagBounds.load(tmp_path / "bounds")
    assert repr(again) == repr(bounds)
    assert again.assurance == 0.9
    assert again.ranked(probabilities[:20]) == bounds.ranked(probabilities[:20])
    with np.load(tmp_path / "bounds") as arrays:
        entries = dict(arrays)
    for thresholds in (np.array([0.1]), np.array([np.nan, 0.5]), np.array([1, 2])):
        with (tmp_path / "damaged").open("wb") as stream:
            np.savez(stream, **{**entries, "thresholds": thresholds})
        with pytest.raises(ArtifactError, match="is damaged"):
            TagBounds.load(tmp_path / "damaged")


def test_bad_input():
    with pytest.raises(InvalidInputError, match="'max_missed' parameter of TagBounds must be in"):
        TagBounds(max_missed=1)
    with pytest.raises(InvalidInputError, match="'assurance' parameter of TagBounds"):
        TagBounds(assurance="much")
    with pytest.raises(NotCalibratedError, match="Call 'calibrate' before 'predict'"):
        TagBounds().predict([[0.5]])
    with pytest.raises(NotCalibratedError, match="before 'save'"):
        TagBounds().save("nowhere")
    bounds = TagBounds(0.5, 0.5).calibrate([[0.9, 0.1]] * 30, [[1, 0]] * 30)
    with pytest.raises(InvalidInputError, match="2 labels"):
        bounds.predict([[0.5]])


def _risks(rng, n_draws, n_calibration, **parameters):
    """Mean losses of fresh texts, over calibrations: (n_draws, 2)."""
    risks = np.empty((n_draws, 2))
    for draw in range(n_draws):
        probabilities, labels = _texts(rng, n_calibration + 400)
        bounds = TagBounds(0.1, 0.1, **parameters).calibrate(probabilities[:-400], labels[:-400])
        assign, consider = bounds.predict(probabilities[-400:])
        risks[draw] = _missed(labels[-400:], consider).mean(), _false(labels[-400:], assign).mean()
    return risks


def test_risks_are_within_the_bounds_on_average():
    risks = _risks(np.random.default_rng(6), 300, 200)
    error = risks.std(axis=0) / math.sqrt(len(risks))
    assert (risks.mean(axis=0) - 5 * error <= 0.1).all()
    # Missing tags: a loss that jumps by less than 1 is kept nearly tight, within 2 / (n + 1).
    assert risks[:, 0].mean() + 5 * error[0] >= 0.1 - 2 / 201
    assert risks[:, 1].mean() > 0.03


def test_with_assurance_most_calibrations_keep_the_bounds():
    n_draws = 150
    rng = np.random.default_rng(7)
    pool, truth = _texts(rng, 20_000)
    past = np.zeros(2)
    for _ in range(n_draws):
        probabilities, labels = _texts(rng, 300)
        assign, consider = TagBounds(0.1, 0.1, assurance=0.9).calibrate(probabilities, labels).predict(pool)
        past += [_missed(truth, consider).mean() > 0.1, _false(truth, assign).mean() > 0.1]
    assert (past <= scipy.stats.binom.isf(1e-6, n_draws, 0.1)).all()


def test_without_assurance_about_half_of_the_calibrations_miss_too_many():
    risks = _risks(np.random.default_rng(8), 100, 200)
    assert 20 < (risks[:, 0] > 0.1).sum() < 80


@pytest.mark.parametrize("sparse", [False, True])
def test_adding_texts_is_calibrating_with_all_of_them(sparse, tmp_path):
    probabilities, labels = _texts(np.random.default_rng(5), 600)
    probabilities[probabilities < 0.005] = 0.0
    given_as = (lambda rows: SparseProbabilities(scipy.sparse.csr_array(rows))) if sparse else np.asarray
    first = TagBounds(0.1, 0.1).calibrate(given_as(probabilities[:400]), labels[:400])
    first.save(tmp_path / "bounds")
    before = first.summary_
    for start in (first, TagBounds.load(tmp_path / "bounds")):
        more = start.add(given_as(probabilities[400:]), labels[400:])
        whole = TagBounds(0.1, 0.1).calibrate(given_as(probabilities), labels)
        assert more.consider_threshold_ == whole.consider_threshold_ != first.consider_threshold_
        assert more.assign_threshold_ == whole.assign_threshold_ != first.assign_threshold_
        assert more.add(given_as(probabilities[:1]), labels[:1])._n_texts == 601
    assert first.summary_ == before


def test_bounds_of_an_older_file_cannot_be_added_to(tmp_path):
    probabilities, labels = _texts(np.random.default_rng(5), 60)
    TagBounds(0.2, 0.2).calibrate(probabilities, labels).save(tmp_path / "bounds")
    with np.load(tmp_path / "bounds") as arrays:
        entries = {name: arrays[name] for name in ("header", "thresholds")}
    with (tmp_path / "older").open("wb") as stream:
        np.savez(stream, **entries)
    older = TagBounds.load(tmp_path / "older")
    assert older.predict(probabilities).consider.any()
    with pytest.raises(NotCalibratedError, match="older version"):
        older.add(probabilities, labels)


@pytest.mark.parametrize(
    "change",
    [
        {"rows": np.array([0.5])},
        {"true_rows": np.array([-1])},
        {"values": np.full(3, 2.0)},
        {"is_true": np.zeros(1, dtype=bool)},
    ],
)
def test_damaged_texts_are_named(change, tmp_path):
    probabilities, labels = _texts(np.random.default_rng(5), 60)
    TagBounds(0.2, 0.2).calibrate(probabilities, labels).save(tmp_path / "bounds")
    with np.load(tmp_path / "bounds") as arrays:
        entries = {**arrays, **change}
    with (tmp_path / "damaged").open("wb") as stream:
        np.savez(stream, **entries)
    with pytest.raises(ArtifactError, match="is damaged"):
        TagBounds.load(tmp_path / "damaged")
