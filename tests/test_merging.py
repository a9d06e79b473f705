"""Calibration in parts: merged or added to, it is the one on all texts at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cases
from surelabel import ConformalLabelSets, LabelConstraints, LogLoss, LpNorm, Mahalanobis
from surelabel.calibration import Calibration
from surelabel.exceptions import InvalidInputError, NotCalibratedError

MEASURES = [LpNorm(1), LpNorm(2), LpNorm(float("inf")), LogLoss(), *cases.WEIGHTED]


@pytest.mark.parametrize("measure", MEASURES, ids=repr)
@settings(max_examples=cases.examples(25))
@given(problem=cases.problems(), data=st.data())
def test_parts_in_any_order_are_the_whole(measure, problem, data):
    n = len(problem.calibration)
    part_of = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    whole = problem.predictor(measure)
    order = data.draw(st.permutations([part for part in range(3) if (part_of == part).any()]))
    with cases.calibration_warnings_ignored():
        parts = [
            ConformalLabelSets(measure, problem.min_labels, problem.max_labels).calibrate(
                problem.calibration[part_of == part], problem.calibration_labels[part_of == part]
            )
            for part in order
        ]
        added = parts[0]
        for part in order[1:]:
            added = added.add(problem.calibration[part_of == part], problem.calibration_labels[part_of == part])
    for one in (ConformalLabelSets.merge(parts), added):
        assert one.calibration_.totals.tolist() == whole.calibration_.totals.tolist()
        assert one.get_params() == whole.get_params()
        assert [s.top(9) for s in problem.predict_set(one)] == [s.top(9) for s in problem.predict_set(whole)]
        forced, expected = one.predict(problem.test), whole.predict(problem.test)
        assert forced.labels.tolist() == expected.labels.tolist()
        assert forced.confidence.tolist() == expected.confidence.tolist()


def _predictor(measure=LpNorm(2), names=("grain", "trade", "wheat"), **parameters):  # noqa: B008
    with cases.calibration_warnings_ignored():
        return ConformalLabelSets(measure, label_names=names, **parameters).calibrate(
            [[0.9, 0.2, 0.3], [0.1, 0.8, 0.3]], [[1, 0, 1], [0, 1, 0]]
        )


def test_adding_leaves_the_old_predictor_as_it_was(tmp_path):
    old = _predictor()
    new = old.add([[0.7, 0.1, 0.4]], [{"grain"}])
    assert (old.calibration_.n_texts, new.calibration_.n_texts) == (2, 3)
    assert new is not old
    assert new.calibration_.label_names == ("grain", "trade", "wheat")
    new.save(tmp_path / "new")
    old.save(tmp_path / "old")
    # A saved predictor holds what it takes to go on.
    again = ConformalLabelSets.load(tmp_path / "old").add([[0.7, 0.1, 0.4]], [{"grain"}])
    merged = ConformalLabelSets.merge(ConformalLabelSets.load(tmp_path / name) for name in ("old", "new"))
    assert again.calibration_.totals.tolist() == new.calibration_.totals.tolist()
    assert merged.calibration_.n_texts == 5


def test_own_measures_merge_where_their_costs_are_the_same():
    first, second = (
        _predictor(cases.Weighted("sum", missed=(weight,) * 20, superfluous=(1.0,) * 20)) for weight in (2, 2)
    )
    other = _predictor(cases.Weighted("sum", missed=(3.0,) * 20, superfluous=(1.0,) * 20))
    assert ConformalLabelSets.merge([first, second]).calibration_.n_texts == 4
    with pytest.raises(InvalidInputError, match="same measure"):
        ConformalLabelSets.merge([first, other])


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: _predictor(LpNorm(4)), r"same measure can be merged. Got LpNorm\(p=2\) and LpNorm\(p=4\)"),
        (lambda: _predictor(LogLoss()), "same measure"),
        (lambda: _predictor(min_labels=0), r"same limits on the number of labels .* Got \(1, 3\) and \(0, 3\)"),
        (lambda: _predictor(max_labels=2), "same limits"),
        (lambda: _predictor(names=("grain", "wheat", "trade")), "same label names"),
        (lambda: _predictor(names=None), "same label names .* and None"),
        (lambda: ConformalLabelSets().calibrate([[0.9]], [[1]]), "same number of labels .* Got 3 and 1"),
        (lambda: "predictor", "must hold calibrated predictors. Got 'predictor'"),
    ],
)
def test_what_differs_is_not_merged(other, message):
    with pytest.raises(InvalidInputError, match=message):
        ConformalLabelSets.merge([_predictor(), other()])


def test_fitted_measures_and_constraints_must_be_the_same_too():
    rng = np.random.default_rng(0)
    probabilities, labels = rng.random((30, 3)), rng.random((30, 3)) < 0.5
    fitted = Mahalanobis().fit(probabilities, labels)
    again, other = Mahalanobis().fit(probabilities, labels), Mahalanobis().fit(probabilities[:20], labels[:20])
    merged = ConformalLabelSets.merge([_predictor(fitted), _predictor(again)])
    assert merged.calibration_.n_texts == 4
    with pytest.raises(InvalidInputError, match="same measure"):
        ConformalLabelSets.merge([_predictor(fitted), _predictor(other)])
    free, bound = _predictor(), _predictor(constraints=LabelConstraints(implications=[("wheat", "grain")]))
    assert bound.add([[0.7, 0.1, 0.4]], [{"grain"}]).calibration_.constraints == bound.calibration_.constraints
    with pytest.raises(InvalidInputError, match="same constraints"):
        ConformalLabelSets.merge([free, bound])


def test_nothing_and_the_uncalibrated_are_not_merged():
    with pytest.raises(InvalidInputError, match="At least one calibration"):
        ConformalLabelSets.merge([])
    with pytest.raises(InvalidInputError, match="At least one calibration"):
        Calibration.merged([])
    with pytest.raises(NotCalibratedError, match="'merge'"):
        ConformalLabelSets.merge([_predictor(), ConformalLabelSets()])
    with pytest.raises(NotCalibratedError, match="'add'"):
        ConformalLabelSets().add([[0.9]], [[1]])
    with pytest.raises(InvalidInputError, match="The 'probabilities' parameter of add"):
        _predictor().add([[0.9, 0.2]], [[1, 0]])
