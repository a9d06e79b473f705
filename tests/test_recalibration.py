"""Recalibration: the curve that fits, labels with few texts, names, files."""

import numpy as np
import pytest

from surelabel._core import files
from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.recalibration import Recalibration

RNG = np.random.default_rng(0)
TRUTH = RNG.random((1500, 3))
LABELS = RNG.random((1500, 3)) < TRUTH
SHARPENED = TRUTH[:, 1] ** 3 / (TRUTH[:, 1] ** 3 + (1 - TRUTH[:, 1]) ** 3)
# As it is, too sure by a factor of the log-odds, and squeezed into a step.
GIVEN = np.column_stack([TRUTH[:, 0], SHARPENED, np.where(TRUTH[:, 2] > 0.7, 0.9, 0.89 - TRUTH[:, 2] / 100)])


@pytest.fixture(scope="module")
def recalibration():
    return Recalibration.fit(GIVEN, LABELS)


def test_each_label_has_the_curve_that_fits(recalibration):
    assert recalibration.methods[1] == "platt"
    assert recalibration.methods[2] == "isotonic"
    corrected = recalibration.transform(GIVEN)
    assert abs(corrected - TRUTH)[:, :2].mean(axis=0).max() < 0.03
    log_loss = -np.where(LABELS, np.log(corrected), np.log1p(-corrected)).mean(axis=0)
    before = -np.where(LABELS, np.log(GIVEN), np.log1p(-GIVEN)).mean(axis=0)
    assert (log_loss <= before + 1e-3).all()
    assert (log_loss < before - 0.01)[1:].all()


def test_curves_rise_and_stay_within_0_and_1(recalibration):
    grid = np.repeat(np.linspace(0, 1, 201)[:, None], 3, axis=1)
    corrected = recalibration.transform(grid)
    assert (np.diff(corrected, axis=0) >= 0).all()
    assert ((corrected >= 0) & (corrected <= 1)).all()
    assert ((corrected[:, 2] > 0) & (corrected[:, 2] < 1)).all()


def test_labels_with_few_texts_of_either_kind_stay_as_they_are():
    labels = LABELS.copy()
    labels[19:, 1] = False
    labels[:, 2] = True
    assert Recalibration.fit(GIVEN, labels).methods[1:] == ("none", "none")
    assert Recalibration.fit(GIVEN[:30], LABELS[:30], min_texts=25).methods == ("none",) * 3


def test_columns_of_data_frames_are_matched_by_name(recalibration):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(GIVEN, columns=["a", "b", "c"])
    shuffled = pandas.DataFrame(LABELS, columns=["a", "b", "c"])[["c", "a", "b"]]
    by_name = Recalibration.fit(frame, shuffled)
    assert by_name.methods == recalibration.methods
    assert np.array_equal(by_name.transform(frame[["b", "c", "a"]]), recalibration.transform(GIVEN))


def test_files(recalibration, tmp_path):
    recalibration.save(tmp_path / "curves.npz")
    again = Recalibration.load(tmp_path / "curves.npz")
    assert again.methods == recalibration.methods
    assert np.array_equal(again.transform(GIVEN), recalibration.transform(GIVEN))
    assert repr(again) == repr(recalibration)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("methods", lambda values: values + 5),
        ("methods", lambda values: values.astype(float)),
        ("methods", lambda values: values[:-1]),
        ("lengths", lambda values: values * 2**40),
        ("lengths", lambda values: -values),
        ("values", lambda values: np.full_like(values, np.nan)),
        ("values", lambda values: -values),
        ("values", lambda values: values[:-1]),
        ("label_names", lambda _: ["a"]),
    ],
)
def test_damaged_files_are_refused(recalibration, name, change, tmp_path):
    path = tmp_path / "curves.npz"
    recalibration.save(path)
    header, arrays = files.read_arrays(path, "recalibration")
    if name in arrays:
        arrays[name] = change(arrays[name])
    else:
        header[name] = change(None)
    files.write_arrays(path, header, arrays)
    with pytest.raises(ArtifactError, match="damaged"):
        Recalibration.load(path)


def test_bad_input(recalibration):
    with pytest.raises(InvalidInputError, match="n_folds"):
        Recalibration.fit(GIVEN, LABELS, n_folds=1)
    with pytest.raises(InvalidInputError, match="min_texts"):
        Recalibration.fit(GIVEN, LABELS, min_texts=2)
    with pytest.raises(InvalidInputError, match="3 labels"):
        recalibration.transform(GIVEN[:, :2])
