"""Calibration again: with the same texts, with others, with more."""

import numpy as np
import pytest

from surelabel.corpora import Corpus
from surelabel.exceptions import InvalidInputError
from surelabel.models import calibrate_bundle, evaluate_bundle


def _totals(bundle):
    return {key: values.tolist() for key, values in bundle.predictor.calibration_.totals.items()}


def test_the_file_of_training_gives_the_same_calibration(bundle, corpus):
    again = calibrate_bundle(bundle, corpus)
    assert _totals(again) == _totals(bundle)
    assert again.policy.tag_bounds.consider_threshold_ == bundle.policy.tag_bounds.consider_threshold_
    assert again.evaluation is None
    # The test texts are still held out.
    assert evaluate_bundle(again, corpus).errors == bundle.evaluation.errors


def test_other_levels_with_the_same_texts(bundle, corpus):
    kept = calibrate_bundle(bundle, max_missed="0.2", max_wrong="0.1", significance="0.1")
    given = calibrate_bundle(bundle, corpus, max_missed="0.2", max_wrong="0.1", significance="0.1")
    assert kept.info.levels["max_missed"] == "0.2"
    assert kept.policy.tag_bounds.consider_threshold_ == given.policy.tag_bounds.consider_threshold_
    assert _totals(kept) == _totals(given)
    assert kept.policy.automation.max_wrong == 0.1
    assert calibrate_bundle(bundle, measure="l2").info.measure == "l2"


def test_other_texts_are_divided(bundle, new):
    other = calibrate_bundle(bundle, new)
    assert len(other.filing) == len(other.calibration) == 200
    assert not set(other.seen.filing) & set(other.seen.calibration)
    assert np.array_equal(other.seen.training, bundle.seen.training)
    assert np.array_equal(other.seen.test, bundle.seen.test)


def test_training_texts_never_calibrate(bundle, divided, new):
    with pytest.raises(InvalidInputError, match="train"):
        calibrate_bundle(bundle, divided.part("train"))
    mixed = Corpus.from_label_sets(
        "mixed",
        (*divided.part("train").texts[:50], *new.texts),
        [*divided.part("train").label_sets[:50], *new.label_sets],
    )
    other = calibrate_bundle(bundle, mixed)
    assert len(other.filing) + len(other.calibration) == len(new)


def test_added_texts_calibrate_and_the_filing_rule_stays(bundle, new):
    more = calibrate_bundle(bundle, new, add=True)
    assert more.predictor.calibration_.n_texts == bundle.predictor.calibration_.n_texts + len(new)
    assert np.array_equal(more.policy.file(new_p := bundle.predict_proba(new.texts)), bundle.policy.file(new_p))
    before, after = _totals(bundle), _totals(more)
    assert all(set(before[key]) <= set(after[key]) for key in before)
    with pytest.raises(InvalidInputError, match="once"):
        calibrate_bundle(more, new, add=True)


def test_added_at_once_or_one_after_the_other(bundle, new):
    once = calibrate_bundle(bundle, new, add=True)
    twice = bundle
    for rows in (range(150), range(150, 400)):
        twice = calibrate_bundle(twice, new.rows(rows), add=True)
    assert _totals(once) == _totals(twice)
    assert once.policy.tag_bounds.consider_threshold_ == twice.policy.tag_bounds.consider_threshold_


def test_added_texts_without_labels_and_with_unknown_ones(bundle, new):
    label_sets = [
        None if row < 5 else labels | {"unheard of"} if row < 25 else labels
        for row, labels in enumerate(new.label_sets)
    ]
    more = calibrate_bundle(bundle, Corpus.from_label_sets("mixed", new.texts, label_sets), add=True)
    totals = np.concatenate(list(more.predictor.calibration_.totals.values()))
    assert len(totals) == bundle.predictor.calibration_.n_texts + len(new) - 5
    assert np.isinf(totals).sum() == 20
    one_kind = new.rows([row for row, labels in enumerate(new.label_sets) if len(labels) == 1])
    assert calibrate_bundle(bundle, one_kind, add=True).predictor.calibration_.n_texts > 150


def test_test_texts_that_calibrate_are_no_test_texts_any_more(bundle, divided):
    more = calibrate_bundle(bundle, divided.part("test"), add=True)
    assert len(more.seen.test) == 0
    with pytest.raises(InvalidInputError):
        evaluate_bundle(more, divided.part("test"))


def test_another_division(bundle, corpus):
    by_group = calibrate_bundle(bundle, corpus, group="region")
    assert by_group.groups == ("north", "south")
    assert evaluate_bundle(by_group, corpus).result.conditional.subgroups["group"][0].name == "north"
    by_size = calibrate_bundle(bundle, cardinality=(2,))
    assert by_size.predictor.taxonomy.edges == (2,)
    with pytest.raises(InvalidInputError, match="group"):
        calibrate_bundle(bundle, group="region")


def test_unknown_changes_are_refused(bundle):
    with pytest.raises(InvalidInputError, match="max_bad"):
        calibrate_bundle(bundle, max_bad="0.1")
    with pytest.raises(InvalidInputError, match="max_wrong"):
        calibrate_bundle(bundle, max_wrong="0")
