"""Bad input: every error names the parameter, the function, and the first offending row and column."""

import math

import numpy as np
import pandas as pd
import pytest

from surelabel import ConformalLabelSets, LpNorm
from surelabel.exceptions import InvalidInputError, NotCalibratedError, SurelabelError
from surelabel.metrics import of_criterion, s_criterion

GOOD = np.array([[0.9, 0.2, 0.1], [0.3, 0.8, 0.4], [0.6, 0.5, 0.2], [0.1, 0.3, 0.7]])
LABELS = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]])


def _with(array, row, column, value):
    changed = array.astype(float)
    changed[row, column] = value
    return changed


@pytest.fixture
def predictor():
    return ConformalLabelSets().calibrate(GOOD, LABELS)


PROBABILITIES = [
    (_with(GOOD, 2, 1, math.nan), "nan in row 2, column 1"),
    (_with(GOOD, 1, 2, math.inf), "inf in row 1, column 2"),
    (_with(GOOD, 1, 0, -math.inf), "-inf in row 1, column 0"),
    (_with(GOOD, 3, 0, 1.5), "1.5 in row 3, column 0"),
    (_with(_with(GOOD, 3, 0, 7.0), 0, 2, -0.25), "-0.25 in row 0, column 2"),
    (_with(GOOD, 0, 0, math.nextafter(1.0, 2.0)), "in row 0, column 0"),
    (GOOD[0], r"shape \(3,\); reshape one text to \(1, n_labels\)"),
    (0.5, r"shape \(\)"),
    (np.empty((0, 3)), r"at least one text and one label. Got shape \(0, 3\)"),
    (np.empty((4, 0)), r"at least one text and one label. Got shape \(4, 0\)"),
    ([], "shape"),
    ([[0.1, 0.2], [0.3]], r"\[0, 1\]"),
    ([["a", "b", "c"]], "list"),
    (None, "NoneType|shape"),
    (np.zeros((2, 3, 4)), r"shape \(3, 4\) for label 0"),
    (np.zeros((2, 2, 2, 2)), r"shape \(2, 2, 2, 2\)"),
    ([np.zeros((4, 2)), np.zeros((3, 2)), np.zeros((4, 2))], "3 rows for label 1"),
    ([np.zeros((4, 2)), np.zeros((4, 1))], r"shape \(4, 1\) for label 1"),
]


@pytest.mark.parametrize(("values", "message"), PROBABILITIES, ids=[m for _, m in PROBABILITIES])
def test_bad_probabilities(values, message, predictor):
    for who, call in (
        ("calibrate", lambda: ConformalLabelSets().calibrate(values, LABELS)),
        ("predict", lambda: predictor.predict(values)),
        ("predict_p", lambda: predictor.predict_p(values, LABELS)),
        ("predict_set", lambda: predictor.predict_set(values, significance=0.5)),
        ("p_value_sums", lambda: s_criterion(predictor, values)),
    ):
        with pytest.raises(InvalidInputError, match=rf"'probabilities' parameter of {who} must be .*({message})"):
            call()


def test_probabilities_of_another_number_of_labels(predictor):
    with pytest.raises(InvalidInputError, match=r"'probabilities' parameter of predict .* 3 labels .*Got 2 "):
        predictor.predict(GOOD[:, :2])
    with pytest.raises(InvalidInputError, match="'probabilities' parameter of predict_set"):
        predictor.predict_set(GOOD[:, :2], significance=0.5)


BAD_LABELS = [
    (_with(LABELS, 1, 2, 2), "2.0 in row 1, column 2"),
    (_with(LABELS, 3, 0, -1), "-1.0 in row 3, column 0"),
    (_with(LABELS, 0, 1, 0.5), "0.5 in row 0, column 1"),
    (_with(LABELS, 2, 2, math.nan), "nan in row 2, column 2"),
    (LABELS[:, 0], r"shape \(4,\)"),
    (LABELS[:3], "as many rows as there are texts, 4. Got 3"),
    (LABELS[:, :2], "3 labels .*Got 2"),
    (np.empty((0, 3)), "at least one text"),
    (np.empty((4, 0)), "at least one text and one label"),
    (np.full((4, 3), "x"), "values of type"),
    ([[1, 0, 0], [1, 0], [0, 0, 1], [1, 0, 0]], "rows of different lengths"),
    ([{0}, {1}, {2, 7}, {0}], "label indices below 3. Got 7 in row 2"),
    ([["a"], ["b"], [], ["c"]], "label indices below 3. Got 'a' in row 0"),
    (["a", "b", "c", "a"], "'a' in row 0"),
]


@pytest.mark.parametrize(("values", "message"), BAD_LABELS, ids=[m for _, m in BAD_LABELS])
def test_bad_labels(values, message, predictor):
    sets = predictor.predict_set(GOOD, significance=0.5)
    for who, call in (
        ("calibrate", lambda: ConformalLabelSets().calibrate(GOOD, values)),
        ("predict_p", lambda: predictor.predict_p(GOOD, values)),
        ("contains", lambda: sets.contains(values)),
        ("of_criterion", lambda: of_criterion(predictor, GOOD, values)),
    ):
        with pytest.raises(InvalidInputError, match=rf"'labels' parameter of {who} must be .*({message})"):
            call()


def test_unknown_label_names_are_named_with_their_row():
    named = ConformalLabelSets(label_names=["grain", "trade", "wheat"])
    with pytest.raises(InvalidInputError, match=r"'labels' .* names of known labels. Got 'gold' in row 2"):
        named.calibrate(GOOD, [["grain"], [], ["trade", "gold"], ["wheat"]])
    named.calibrate(GOOD, [["grain"], ["trade"], ["trade", "grain"], ["wheat"]])
    with pytest.raises(InvalidInputError, match="Got 'gold' in row 0"):
        named.predict_p(GOOD[:1], [{"gold"}])
    with pytest.raises(InvalidInputError, match="Got 'gold'"):
        frozenset({"gold"}) in named.predict_set(GOOD[:1], significance=0.5)[0]  # noqa: B015


def test_label_names_must_be_as_many_as_labels_and_different():
    with pytest.raises(InvalidInputError, match=r"'label_names' parameter of calibrate must be 3 names.*Got 2"):
        ConformalLabelSets(label_names=["a", "b"]).calibrate(GOOD, LABELS)
    with pytest.raises(InvalidInputError, match=r"different from each other. Got 'a' twice"):
        ConformalLabelSets(label_names=["a", "b", "a"]).calibrate(GOOD, LABELS)
    with pytest.raises(InvalidInputError, match="twice"):
        ConformalLabelSets().calibrate(pd.DataFrame(GOOD, columns=["x", "x", "y"]), LABELS)


@pytest.mark.parametrize("level", [0, 1, 0.0, 1.0, -0.1, 1.5, math.nan, math.inf, "nan", "inf", "abc", "", True, [0.1]])
@pytest.mark.parametrize("name", ["significance", "confidence_level"])
def test_levels_outside_the_open_interval(predictor, name, level):
    with pytest.raises(InvalidInputError, match=rf"'{name}' parameter of predict_set must be .*\(0, 1\). Got"):
        predictor.predict_set(GOOD, **{name: level})


def test_exactly_one_of_significance_and_confidence_level(predictor):
    with pytest.raises(InvalidInputError, match=r"'significance' and 'confidence_level' .* predict_set. Got neither"):
        predictor.predict_set(GOOD)
    with pytest.raises(InvalidInputError, match="Got both"):
        predictor.predict_set(GOOD, significance=0.1, confidence_level=0.9)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"min_labels": 3, "max_labels": 2}, "'max_labels' .* at least min_labels, 3. Got 2"),
        ({"min_labels": -1}, "'min_labels' .* whole number of labels, 0 or more. Got -1"),
        ({"max_labels": -1}, "'max_labels'"),
        ({"min_labels": 1.5}, "'min_labels' .* Got 1.5"),
        ({"max_labels": "all"}, "'max_labels' .* Got 'all'"),
        ({"min_labels": True}, "'min_labels'"),
        ({"min_labels": None}, "'min_labels'"),
        ({"search": "fast"}, r"'search' .* one of \['exact', 'hamming-ball', 'powerset'\]. Got 'fast'"),
        ({"work_limit": 0}, "'work_limit' .* 1 or more. Got 0"),
        ({"work_limit": None}, "'work_limit'"),
        ({"n_jobs": 0}, "'n_jobs' .* Got 0"),
        ({"n_jobs": 1.5}, "'n_jobs' .* Got 1.5"),
    ],
    ids=str,
)
def test_bad_parameters(parameters, message):
    with pytest.raises(InvalidInputError, match=f"(?s){message}") as caught:
        ConformalLabelSets(**parameters)
    assert "ConformalLabelSets" in str(caught.value)
    untouched = ConformalLabelSets()
    with pytest.raises(InvalidInputError):
        untouched.set_params(**parameters)
    assert untouched.get_params() == ConformalLabelSets().get_params()


def test_min_labels_beyond_the_labels_there_are():
    with pytest.raises(InvalidInputError, match=r"'min_labels' parameter of calibrate must be at most .* 3. Got 4"):
        ConformalLabelSets(min_labels=4).calibrate(GOOD, LABELS)


def test_unknown_parameters_are_named():
    with pytest.raises(InvalidInputError, match=r"Got \['norm'\]"):
        ConformalLabelSets().set_params(norm=2)


@pytest.mark.parametrize("smoothing", [0, 42, True, np.random.RandomState(0)])
def test_smoothing_needs_a_generator(predictor, smoothing):
    for who, call in (
        ("predict", lambda: predictor.predict(GOOD, smoothing=smoothing)),
        ("predict_p", lambda: predictor.predict_p(GOOD, LABELS, smoothing=smoothing)),
        ("predict_set", lambda: predictor.predict_set(GOOD, significance=0.5, smoothing=smoothing)),
    ):
        with pytest.raises(InvalidInputError, match=f"'smoothing' parameter of {who} must be a numpy random Generator"):
            call()


def test_predictions_before_calibration_are_refused(tmp_path):
    new = ConformalLabelSets()
    for who, call in (
        ("predict", lambda: new.predict(GOOD)),
        ("predict_p", lambda: new.predict_p(GOOD, LABELS)),
        ("predict_set", lambda: new.predict_set(GOOD, significance=0.1)),
        ("save", lambda: new.save(tmp_path / "never.predictor")),
        ("p_value_sums", lambda: s_criterion(new, GOOD)),
        ("of_criterion", lambda: of_criterion(new, GOOD, LABELS)),
    ):
        with pytest.raises(NotCalibratedError, match=f"not calibrated yet. Call 'calibrate' before '{who}'"):
            call()
    assert list(tmp_path.iterdir()) == []


def test_a_failed_calibration_leaves_none_behind():
    new = ConformalLabelSets()
    for probabilities, labels in ((_with(GOOD, 0, 0, math.nan), LABELS), (GOOD, _with(LABELS, 3, 2, 5)), (GOOD, [])):
        with pytest.raises(InvalidInputError):
            new.calibrate(probabilities, labels)
    with pytest.raises(NotCalibratedError):
        new.predict(GOOD)
    assert not hasattr(new, "calibration_")


def test_a_failed_calibration_leaves_the_old_one_as_it_was(predictor):
    before = predictor.calibration_
    expected = predictor.predict_p(GOOD, LABELS).tolist()
    for labels in (_with(LABELS, 3, 2, 5), LABELS[:2], np.ones((4, 2))):
        with pytest.raises(InvalidInputError):
            predictor.calibrate(GOOD, labels)
    assert predictor.calibration_ is before
    assert predictor.predict_p(GOOD, LABELS).tolist() == expected


def test_a_warning_turned_into_an_error_leaves_nothing_behind():
    # Warnings are errors in this run: calibration texts beyond the candidates raise.
    new = ConformalLabelSets(max_labels=1)
    with pytest.raises(Warning, match="not a candidate"):
        new.calibrate(GOOD, LABELS)
    assert not hasattr(new, "calibration_")


@pytest.mark.parametrize("k", [-1, 1.5, True, "3", None])
def test_top_needs_a_whole_number(predictor, k):
    one = predictor.predict_set(GOOD, significance=0.5)[0]
    with pytest.raises(InvalidInputError, match="'k' parameter of top must be a whole number, 0 or more"):
        one.top(k)
    assert one.top(0) == []


@pytest.mark.parametrize("limit", [-1, 1.5, True, "3", None])
def test_to_array_needs_a_whole_number(predictor, limit):
    one = predictor.predict_set(GOOD, significance=0.5)[0]
    with pytest.raises(InvalidInputError, match="'limit' parameter of to_array must be a whole number, 0 or more"):
        one.to_array(limit)


def test_indices_beyond_the_texts(predictor):
    sets = predictor.predict_set(GOOD, significance=0.5)
    with pytest.raises(IndexError, match="4 prediction sets; got index 4"):
        sets[4]
    with pytest.raises(IndexError):
        sets[-5]
    assert sets[-1].top(9) == sets[3].top(9)


def test_parameters_of_a_calibrated_predictor_do_not_change(predictor):
    with pytest.raises(AttributeError, match=r"does not change: make a new one.*'measure'"):
        predictor.measure = LpNorm(4)
    assert predictor.measure == LpNorm(2)
    predictor.set_params(measure=LpNorm(4))
    with pytest.raises(NotCalibratedError):
        predictor.predict(GOOD)


def test_errors_are_the_packages_and_pythons_own(predictor):
    with pytest.raises(SurelabelError):
        predictor.predict(GOOD[0])
    with pytest.raises(ValueError, match="probabilities"):
        predictor.predict(GOOD[0])


def test_rows_of_no_names_are_label_sets_without_labels():
    predictor = ConformalLabelSets(min_labels=0, label_names=["a", "b", "c"]).calibrate(GOOD, LABELS)
    zeros = predictor.predict_p(GOOD, np.zeros((4, 3))).tolist()
    assert predictor.predict_p(GOOD, [[], [], [], []]).tolist() == zeros
    assert predictor.predict_p(GOOD, [frozenset()] * 4).tolist() == zeros
    assert predictor.predict_p(GOOD, [(), ("a",), [], ()]).tolist()[0] == zeros[0]


@pytest.mark.parametrize("ask", ["predict", "calibrate"])
def test_masks_and_imaginary_parts_are_not_dropped_in_silence(predictor, ask):
    given = {
        "predict": predictor.predict,
        "calibrate": lambda p: ConformalLabelSets().calibrate(p, LABELS),
    }
    masked = np.ma.masked_array(GOOD, mask=np.asarray(GOOD) > 0.8)
    with pytest.raises(InvalidInputError, match="masked array; fill it"):
        given[ask](masked)
    for values in (np.asarray(GOOD) + 0j, [[complex(value) for value in row] for row in GOOD]):
        with pytest.raises(InvalidInputError, match=r"complex numbers \(complex128\)"):
            given[ask](values)
    labels = np.ma.masked_array(np.asarray(LABELS, dtype=int), mask=np.asarray(LABELS) > 0)
    with pytest.raises(InvalidInputError, match=r"'labels' parameter of predict_p .* masked array"):
        predictor.predict_p(GOOD, labels)


def test_an_engine_answers_for_its_own_calibration_only(predictor):
    engine = predictor.bind(GOOD)
    assert predictor.predict_set(engine, significance=0.5).sizes().tolist() == (
        predictor.predict_set(GOOD, significance=0.5).sizes().tolist()
    )
    with pytest.raises(InvalidInputError, match="that of another calibration; give probabilities"):
        ConformalLabelSets().calibrate(GOOD, LABELS).predict(engine)
