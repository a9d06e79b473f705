"""Files of probabilities: dense and shortlists, unknown labels, splitting again, damage."""

import numpy as np
import pytest

from surelabel._core import files
from surelabel.exceptions import ArtifactError
from surelabel.labels.shortlists import Shortlists
from surelabel.probabilities_file import PartProbabilities, Probabilities

NAMES = ("a", "b", "c")


def part(rng, n, start=0, shortlists=False):
    probabilities = rng.random((n, 3))
    label_sets = [
        frozenset({NAMES[k] for k in np.flatnonzero(row > 0.5)} | ({"new"} if row[0] > 0.9 else set()))
        for row in probabilities
    ]
    values = Shortlists.from_dense(probabilities, 2) if shortlists else probabilities
    return label_sets, PartProbabilities.from_label_sets(values, label_sets, NAMES, range(start, start + n))


@pytest.mark.parametrize("shortlists", [False, True])
def test_files_hold_everything(shortlists, tmp_path):
    rng = np.random.default_rng(0)
    sets, first = part(rng, 30, 0, shortlists)
    _, second = part(rng, 20, 30, shortlists)
    made = Probabilities({"calibration": first, "test": second}, NAMES, 2, {"corpus": "x", "seed": 1})
    made.save(tmp_path / "p.npz")
    again = Probabilities.load(tmp_path / "p.npz")
    assert (again.label_names, again.max_labels, again.settings) == (NAMES, 2, {"corpus": "x", "seed": 1})
    loaded = again.parts["calibration"]
    assert loaded.label_sets(NAMES) == sets
    assert loaded.ids == tuple(map(str, range(30)))
    if shortlists:
        assert np.array_equal(loaded.probabilities.labels, first.probabilities.labels)
        assert np.array_equal(loaded.probabilities.probabilities, first.probabilities.probabilities)
    else:
        assert np.array_equal(loaded.probabilities, first.probabilities)


@pytest.mark.parametrize("shortlists", [False, True])
def test_splitting_again_keeps_sizes_and_texts(shortlists):
    rng = np.random.default_rng(1)
    (sets, first), (more, second) = part(rng, 30, 0, shortlists), part(rng, 20, 30, shortlists)
    made = Probabilities({"calibration": first, "test": second}, NAMES, 3)
    pooled = [*sets, *more]
    one, two = made.resplit(5)
    assert (len(one), len(two)) == (30, 20)
    assert sorted([*one.ids, *two.ids], key=int) == list(map(str, range(50)))
    for piece in (one, two):
        assert piece.label_sets(NAMES) == [pooled[int(identity)] for identity in piece.ids]
    assert made.resplit(5)[0].ids == one.ids != made.resplit(6)[0].ids


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("label_names", ["a", "a", "b"]),
        ("label_names", None),
        ("max_labels", -1),
        ("settings", 3),
        ("parts", {"other": []}),
        ("parts", {"test": [[99, "x"]]}),
        ("test.probabilities", np.full((5, 3), np.nan)),
        ("test.probabilities", np.full((4, 3), 0.5)),
        ("test.starts", np.array([0, 9, 1, 2, 3, 4])),
        ("test.labels", np.array([7] * 8)),
        ("test.ids", np.array(["a"])),
    ],
)
def test_damaged_files_are_refused(name, value, tmp_path):
    path = tmp_path / "p.npz"
    Probabilities({"test": part(np.random.default_rng(2), 5)[1]}, NAMES, 2).save(path)
    header, arrays = files.read_arrays(path, "probabilities")
    if name in arrays:
        arrays[name] = value
    else:
        header[name] = value
    files.write_arrays(path, header, arrays)
    with pytest.raises(ArtifactError, match="damaged"):
        Probabilities.load(path)
