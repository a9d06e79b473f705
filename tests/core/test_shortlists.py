"""Shortlists: dense texts whose unlisted labels are impossible."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from core.problems import draw_texts
from surelabel import ByCardinality, ConformalLabelSets, LabelConstraints, LogLoss, LpNorm, Mixture, Shortlists
from surelabel.evaluation.criteria import of_criterion, s_criterion
from surelabel.exceptions import CalibrationWarning, InvalidInputError

pytestmark = pytest.mark.filterwarnings("ignore::surelabel.exceptions.CalibrationWarning")
MEASURES = [LpNorm(2), LpNorm(8), LogLoss()]


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_labels": 3},
        {"taxonomy": ByCardinality((1, 2))},
        {"search": "hamming-ball"},
        {"constraints": LabelConstraints(exclusions=[[0, 1]])},
    ],
)
def test_lists_of_all_labels_are_dense_texts(measure, options):
    probabilities, labels = draw_texts()
    order = np.array([np.random.default_rng(row).permutation(6) for row in range(60)])
    short = Shortlists(order, np.take_along_axis(probabilities, order, axis=1), 6)
    one = ConformalLabelSets(measure, **options).calibrate(probabilities, labels)
    other = ConformalLabelSets(measure, **options).calibrate(short, csr_array(labels))
    for key, totals in one.calibration_.totals.items():
        assert np.array_equal(totals, other.calibration_.totals[key])
    first, second = (cp.predict_set(texts, significance=0.1) for cp, texts in ((one, probabilities), (other, short)))
    assert first.top(99) == second.top(99)
    assert first.sizes().tolist() == second.sizes().tolist()
    assert first.contains(labels).tolist() == second.contains(labels).tolist()
    assert np.array_equal(one.predict(probabilities).labels, other.predict(short).labels)
    assert one.predict_p(probabilities, labels).tolist() == other.predict_p(short, labels).tolist()
    if "constraints" not in options:
        for criterion in (s_criterion, lambda cp, texts: of_criterion(cp, texts, labels)):
            assert criterion(one, probabilities).mean == criterion(other, short).mean


@pytest.mark.parametrize("measure", MEASURES)
def test_unlisted_labels_are_impossible(measure):
    probabilities, labels = draw_texts(70, 5, 1)
    rng, n_labels = np.random.default_rng(2), 40
    columns = np.array([np.sort(rng.permutation(n_labels)[:5]) for _ in probabilities])
    full = np.zeros((70, n_labels), dtype=bool)
    np.put_along_axis(full, columns, labels, axis=1)
    # Padding, anywhere, changes nothing.
    padded = np.insert(columns, 2, -1, axis=1), np.insert(probabilities, 2, 0.9, axis=1)
    plain = ConformalLabelSets(measure, max_labels=3).calibrate(probabilities, labels)
    want = plain.predict_set(probabilities, significance=0.1)
    names = [f"label {k}" for k in range(n_labels)]
    for short in (Shortlists(columns, probabilities, n_labels), Shortlists(*padded, n_labels)):
        predictor = ConformalLabelSets(measure, max_labels=3, label_names=names).calibrate(short, full)
        assert np.allclose(predictor.calibration_.scores, plain.calibration_.scores, rtol=1e-12)
        sets, guesses = predictor.predict_set(short, significance=0.1), predictor.predict(short)
        assert sets.sizes().tolist() == want.sizes().tolist()
        assert sets.contains(full).tolist() == want.contains(labels).tolist()
        for row in range(70):
            as_names = lambda label_set: frozenset(names[columns[row, k]] for k in label_set)  # noqa: B023, E731
            assert sets[row].top(99) == [(as_names(label_set), p) for label_set, p in want[row].top(99)]
            assert sets[row].open == as_names(want[row].open)
            assert sets[row].certain | sets[row].open | sets[row].excluded == {names[k] for k in columns[row]}
        assert np.array_equal(np.take_along_axis(guesses.labels, columns, axis=1), plain.predict(probabilities).labels)
        assert not guesses.labels.sum() > guesses.members.sum()


def test_true_labels_that_are_not_listed():
    probabilities, labels = draw_texts(100, 6)
    short = Shortlists.from_dense(probabilities, 3)
    assert short.shape == (100, 6)
    with pytest.warns(CalibrationWarning, match="not listed"):
        predictor = ConformalLabelSets().calibrate(short, labels)
    listed = np.zeros((100, 7), dtype=bool)
    np.put_along_axis(listed, short.labels, True, axis=1)
    unlisted = (labels & ~listed[:, :6]).any(axis=1)
    assert predictor.calibration_.share_unlisted == unlisted.mean()
    assert predictor.predict_p(short, labels)[unlisted].tolist() == [0.0] * unlisted.sum()
    assert not predictor.predict_set(short, significance=0.9).contains(labels)[unlisted].any()
    with pytest.warns(CalibrationWarning, match="too short"):
        assert predictor.predict_set(short, significance=0.1).sizes().tolist() == [7] * 100


def test_shortlists_are_checked_and_immutable():
    short = Shortlists([[7, 3], [5, -1]], [[0.9, 0.2], [0.4, 0.8]], n_labels=1000)
    assert short.labels.tolist() == [[3, 7], [5, 1000]]
    assert short.probabilities.tolist() == [[0.2, 0.9], [0.4, 0.0]]
    assert np.array_equal(Shortlists.from_csr(short.tocsr()).labels, short.labels)
    assert [len(one) for one in short] == [1, 1]
    assert short[np.array([1])].labels.tolist() == [[5, 1000]]
    for change in (lambda: setattr(short, "n_labels", 3), lambda: short.labels.fill(0)):
        with pytest.raises((AttributeError, ValueError)):
            change()
    for labels, values, n_labels in (
        ([[1, 1]], [[0.1, 0.2]], 5), ([[1, 5]], [[0.1, 0.2]], 5), ([[-2, 1]], [[0.1, 0.2]], 5),
        ([[1.0, 2.0]], [[0.1, 0.2]], 5), ([[1, 2]], [[0.1]], 5), ([[1, 2]], [[0.1, 1.2]], 5),
        ([[1, 2]], [[0.1, 0.2]], 0),
    ):  # fmt: skip
        with pytest.raises(InvalidInputError, match="Shortlists"):
            Shortlists(labels, values, n_labels)
    with pytest.raises(InvalidInputError, match="Mixture"):
        ConformalLabelSets(Mixture().fit(np.eye(1000, dtype=int))).calibrate(short, [[7], [5]])
