"""Which texts a model has seen, by hashes alone."""

import numpy as np
import pytest

from surelabel._core.files import write_arrays
from surelabel.exceptions import ArtifactError
from surelabel.models.seen import SeenTexts, hashes_of, n_repeated

SEEN = SeenTexts.of(
    training=["a", "b", "Thank you!", "Thank you!"], filing=["f"], calibration=["c"], test=["t", "Thank you!", "u", "u"]
)


def test_texts_are_found_by_part():
    assert SEEN.is_in("training", ["a", "t", "new"]).tolist() == [True, False, False]
    assert SEEN.is_in("calibration", ["c", "f"]).tolist() == [True, False]


def test_the_file_of_training_gives_its_test_part_back():
    file = ["a", "Thank you!", "b", "Thank you!", "t", "u", "Thank you!", "u", "c", "f"]
    rows = SEEN.rows_of("test", file)
    # "Thank you!" stands in two parts: as many of its rows are taken as the test part has.
    assert sorted(np.array(file)[rows]) == ["Thank you!", "t", "u", "u"]


def test_calibrated_test_texts_are_no_test_texts_any_more():
    again = SEEN.calibrated_with(hashes_of(["f", "t"]), hashes_of(["c", "new"]))
    assert again.is_in("test", ["t", "u"]).tolist() == [False, True]
    assert again.is_in("calibration", ["new"]).tolist() == [True]
    assert again.is_in("training", ["a"]).tolist() == [True]


def test_saved_and_loaded(tmp_path):
    SEEN.save(tmp_path / "seen.npz")
    loaded = SeenTexts.load(tmp_path / "seen.npz")
    assert all(np.array_equal(getattr(loaded, role), getattr(SEEN, role)) for role in ("training", "filing", "test"))
    assert b"Thank" not in (tmp_path / "seen.npz").read_bytes()


@pytest.mark.parametrize(
    "arrays",
    [
        {"training": np.zeros(1, np.uint64)},
        {role: np.array([2, 1], np.uint64) for role in ("training", "filing", "calibration", "test")},
        {role: np.zeros((1, 1), np.uint64) for role in ("training", "filing", "calibration", "test")},
        {role: np.zeros(1) for role in ("training", "filing", "calibration", "test")},
    ],
)
def test_other_arrays_are_refused(tmp_path, arrays):
    write_arrays(tmp_path / "seen.npz", {"kind": "seen texts"}, arrays)
    with pytest.raises(ArtifactError):
        SeenTexts.load(tmp_path / "seen.npz")


def test_repeats_of_earlier_parts():
    assert n_repeated([["a", "b", "b"], ["a", "x"], ["x", "a", "y"]]) == 3
