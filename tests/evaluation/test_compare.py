"""Comparison: the same splits for all methods, figures that are those of the methods themselves."""

import json

import numpy as np
import pytest

from surelabel import ConformalLabelSets, LogLoss, LpNorm
from surelabel.evaluation.compare import Comparison, compare
from surelabel.evaluation.criteria import p_value_sums
from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.probabilities_file import PartProbabilities, Probabilities
from surelabel.rivals import BonferroniRelevance, SeenPowerset

N_LABELS = 5


def part(rng, n_texts, name):
    probabilities = rng.beta(0.3, 0.7, (n_texts, N_LABELS))
    labels = rng.random(probabilities.shape) < probabilities
    labels[~labels.any(axis=1), 0] = True
    return PartProbabilities(probabilities, labels, tuple(f"{name}-{i}" for i in range(n_texts)))


@pytest.fixture(scope="module")
def parts():
    rng = np.random.default_rng(0)
    made = {"calibration": part(rng, 120, "c"), "test": part(rng, 80, "t")}
    return Probabilities(made, tuple("abcde"), N_LABELS, {"run": {"corpus": "own", "classifier": "none"}})


@pytest.fixture(scope="module")
def compared(parts):
    seen = parts.parts["test"].labels
    measures = {"L2": LpNorm(2), "log": LogLoss()}
    return compare(parts, measures, [BonferroniRelevance(), SeenPowerset(seen)], ["0.1", 0.3], n_splits=3, seed=5)


def test_re_splits_keep_every_text_and_its_labels_once(parts):
    calibration, test = parts.redivided(7)
    assert (len(calibration), len(test)) == (120, 80)
    known = {i: (p, y) for name in parts.parts for p, y, i in _texts(parts.parts[name])}
    again = {i: (p, y) for made in (calibration, test) for p, y, i in _texts(made)}
    assert known == again
    assert set(calibration.ids) != set(parts.parts["calibration"].ids)
    assert parts.redivided(7)[0].ids == calibration.ids
    assert parts.redivided(8)[0].ids != calibration.ids


def _texts(made):
    return zip(map(tuple, made.probabilities.tolist()), map(tuple, made.labels.tolist()), made.ids, strict=True)


def test_records_are_those_of_the_methods_themselves(parts, compared):
    assert len(compared.records) == 4 * 2 * 3
    assert compared.levels == ("0.1", "0.3")
    assert compared.n_splits == 3
    assert compared.source == "own, none"
    for record in compared.records:
        calibration, test = parts.redivided(record.split)
        if record.method == "log":
            predictor = ConformalLabelSets(LogLoss()).calibrate(calibration.probabilities, calibration.labels)
            sets = predictor.predict_set(test.probabilities, significance=record.significance)
            assert record.s_excess == pytest.approx(p_value_sums(predictor, test.probabilities).excess[1])
        elif record.method == "Bonferroni":
            rival = BonferroniRelevance().calibrate(calibration.probabilities, calibration.labels)
            sets = rival.predict_set(test.probabilities, significance=record.significance)
            assert record.s_excess is None
        else:
            continue
        assert record.error == pytest.approx(1 - sets.contains(test.labels).mean())
        assert record.mean_size == pytest.approx(sets.sizes().mean())
        assert record.median_size == np.median(sets.sizes())


def test_rows_are_means_and_deviations_over_splits(compared):
    row = compared.row("L2", "0.1")
    errors = [r.error for r in compared.records if r.method == "L2" and r.significance == "0.1"]
    assert row.error == pytest.approx((np.mean(errors), np.std(errors, ddof=1)))
    assert [r.method for r in compared.rows()] == list(compared.guarantees) * 2
    assert compared.row("Bonferroni", "0.1").s_excess is None
    with pytest.raises(KeyError, match="no record"):
        compared.row("L2", "0.5")


def test_values_go_through_json(compared):
    again = Comparison.from_dict(json.loads(json.dumps(compared.to_dict())))
    assert again == compared
    with pytest.raises(ArtifactError, match="comparison"):
        Comparison.from_dict({"records": []})


def test_one_split_has_no_spread(parts):
    assert compare(parts, {"L2": LpNorm(2)}, n_splits=1).row("L2", "0.1").error[1] == 0


def test_bad_input_is_said(parts):
    with pytest.raises(InvalidInputError, match="different names"):
        compare(parts, {})
    with pytest.raises(InvalidInputError, match="different names"):
        compare(parts, {}, [BonferroniRelevance(), BonferroniRelevance()])
    with pytest.raises(InvalidInputError, match="n_splits"):
        compare(parts, {"L2": LpNorm(2)}, n_splits=0)
    with pytest.raises(InvalidInputError, match="significance"):
        compare(parts, {"L2": LpNorm(2)}, levels=[2])


def test_sizes_of_a_sample_and_errors_of_all_texts(parts):
    known = parts
    every = compare(known, {"LogLoss": LogLoss()}, levels=["0.1"], n_splits=2)
    n_test = len(known.parts["test"])
    assert compare(known, {"LogLoss": LogLoss()}, levels=["0.1"], n_splits=2, n_sized=n_test).records == every.records
    some = compare(known, {"LogLoss": LogLoss()}, levels=["0.1"], n_splits=2, n_sized=5)
    assert [record.error for record in some.records] == [record.error for record in every.records]
    for record in some.records:
        calibration, test = known.redivided(record.split)
        predictor = ConformalLabelSets(LogLoss(), max_labels=known.max_labels)
        predictor = predictor.calibrate(calibration.probabilities, calibration.labels)
        sizes = predictor.predict_set(test.probabilities[:5], significance="0.1").sizes()
        assert record.mean_size == pytest.approx(sizes.mean())
    with pytest.raises(InvalidInputError, match="n_sized"):
        compare(known, {"LogLoss": LogLoss()}, n_sized=0)
