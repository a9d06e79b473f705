"""Refined probabilities of a mixture: text by text, in files, by names, and when they are chosen."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.problems import assert_same, draw_texts
from surelabel._core.files import read_arrays, write_arrays
from surelabel.conformal import ConformalLabelSets
from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.measures import LogLoss, Mixture
from surelabel.measures.choose import choose_mixture
from surelabel.measures.refinement import Refinement
from surelabel.predictor_file import KIND


def refined_mixture(d=6, seed=0):
    """A mixture with a random refinement."""
    rng = np.random.default_rng(seed)
    table = np.vstack([rng.normal(size=d), np.eye(d) + rng.normal(0, 0.4, (d, d))])
    return replace(Mixture(0.7, discount=0.2).fit(draw_texts(50, d, seed)[1]), refinement=Refinement(table))


@given(st.integers(1, 12), st.integers(1, 700), st.integers(0, 10**6))
def test_a_text_alone_has_the_same_bits_as_in_a_batch(d, n, seed):
    measure, rng = refined_mixture(d, seed % 5), np.random.default_rng(seed)
    probabilities = np.where(rng.random((n, d)) < 0.1, rng.integers(0, 2, (n, d)), rng.random((n, d)))
    every = measure.refinement.probabilities(probabilities)
    assert every.min() >= 0
    assert every.max() <= 1
    assert np.array_equal(measure.refinement.probabilities(np.asfortranarray(probabilities)), every)
    units = measure.units(d)
    costs = measure.in_units(probabilities, units)
    for row in rng.integers(0, n, 3):
        alone = probabilities[row : row + 1]
        assert np.array_equal(measure.refinement.probabilities(alone)[0], every[row])
        for one, part in zip(measure.in_units(alone, units), costs.part(slice(row, row + 1)), strict=True):
            assert np.array_equal(one, part)


def test_no_refinement_changes_nothing(tmp_path):
    probabilities, labels = draw_texts(80)
    plain = Mixture().fit(labels)
    assert plain == Mixture(refinement=None).fit(labels) != refined_mixture()
    for one, other in zip(
        plain.in_units(probabilities, 2.0**40), LogLoss().in_units(probabilities, 2.0**40), strict=True
    ):
        assert np.array_equal(one, other)
    ConformalLabelSets(plain).calibrate(probabilities, labels).save(tmp_path / "plain.npz")
    assert "refinement" not in read_arrays(tmp_path / "plain.npz", KIND)[1]


def test_saved_is_loaded(tmp_path):
    probabilities, labels = draw_texts(80)
    path, measure = tmp_path / "predictor.npz", refined_mixture()
    predictor = ConformalLabelSets(measure).calibrate(probabilities, labels)
    predictor.save(path)
    loaded = ConformalLabelSets.load(path)
    assert loaded.calibration_.measure == measure
    assert hash(loaded.calibration_.measure) == hash(measure)
    assert_same(predictor, loaded, probabilities[:20])
    header, arrays = read_arrays(path, KIND)
    table = arrays["refinement"]
    for wrong in (table[:-1], table[:-1, :-1], np.full_like(table, np.nan), table.astype(str), table[0]):
        write_arrays(path, header, arrays | {"refinement": wrong})
        with pytest.raises(ArtifactError):
            ConformalLabelSets.load(path)


def test_a_refinement_follows_names_and_cannot_be_changed():
    names, order = list("abcdef"), [3, 1, 0, 5, 4, 2]
    probabilities, labels = draw_texts(80)
    turned = [pd.DataFrame(one[:, order], columns=[names[k] for k in order]) for one in (probabilities, labels)]
    measure = refined_mixture().fit(pd.DataFrame(labels, columns=names))
    in_order = ConformalLabelSets(measure, label_names=names).calibrate(probabilities, labels)
    other = ConformalLabelSets(measure).calibrate(*turned)
    sizes = [in_order.predict_set(probabilities, significance=0.1), other.predict_set(turned[0], significance=0.1)]
    assert sizes[0].sizes().tolist() == sizes[1].sizes().tolist()
    # Fitted on labels in another order, the refinement follows.
    again = measure.fit(turned[1])
    assert again == measure.with_names(tuple(turned[1].columns), 6)
    assert again.refinement == measure.refinement.with_columns(order) != measure.refinement
    with pytest.raises(ValueError, match="read-only"):
        measure.refinement.table[0] = 0
    with pytest.raises(InvalidInputError, match="refinement"):
        Mixture(refinement=refined_mixture(5).refinement).fit(labels)
    for wrong in (np.zeros((6, 6)), np.zeros(3), np.full((3, 2), np.inf)):
        with pytest.raises(ValueError, match="table"):
            Refinement(wrong)


def contradicting_texts(rng, n):
    """Texts whose even labels each exclude the next one, while a classifier takes them one by one."""
    labels = rng.random((n, 6)) < 0.5
    labels[:, 1::2] = ~labels[:, ::2]
    return np.clip(np.where(labels, 0.62, 0.38) + rng.normal(0, 0.2, labels.shape), 0.02, 0.98), labels


def test_what_labels_say_about_each_other_is_chosen_where_it_pays():
    rng = np.random.default_rng(0)
    # Training texts have no pattern, so only the refinement can find that labels exclude each other.
    training, (P, Y) = rng.random((400, 6)) < 0.5, contradicting_texts(rng, 600)
    measure = choose_mixture(P, Y, training, ("0.1",), min_labels=0)
    assert measure.refinement == Refinement.fit_probabilities(P, Y)
    (known, new), sizes = (contradicting_texts(rng, 400), contradicting_texts(rng, 300)), []
    for one in (measure, replace(measure, refinement=None)):
        sets = ConformalLabelSets(one, min_labels=0).calibrate(*known).predict_set(new[0], significance="0.1")
        sizes.append(sets.sizes().mean())
        assert abs(1 - sets.contains(new[1]).mean() - 0.1) < 0.06
    assert sizes[0] < 0.9 * sizes[1]
