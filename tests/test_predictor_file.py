"""The predictor's file: back to the last bit, refused where it is not whole and ours, never run."""

import io
import json
import pickle
import zipfile

import numpy as np
import pytest

import cases
from surelabel import ConformalLabelSets, LogLoss, LpNorm
from surelabel.exceptions import ArtifactError

RNG = np.random.default_rng(0)
PROBABILITIES = RNG.random((30, 4))
LABELS = np.eye(4, dtype=bool)[RNG.integers(0, 4, 30)]
NAMES = ("grain", "trade", "wheat", "blé")


def _saved(path, measure=None, **parameters):
    predictor = ConformalLabelSets(measure or LpNorm(2), **parameters).calibrate(PROBABILITIES, LABELS)
    predictor.save(path)
    return predictor


def _same(one, other):
    assert one.get_params() == other.get_params()
    assert one.calibration_.totals.tobytes() == other.calibration_.totals.tobytes()
    assert one.calibration_.limits == other.calibration_.limits
    assert one.calibration_.label_names == other.calibration_.label_names
    assert one.predict_p(PROBABILITIES, LABELS).tobytes() == other.predict_p(PROBABILITIES, LABELS).tobytes()
    for a, b in zip(
        one.predict_set(PROBABILITIES[:3], significance=0.1),
        other.predict_set(PROBABILITIES[:3], significance=0.1),
        strict=True,
    ):
        assert a.top(99) == b.top(99)


def _rewritten(source, target, **entries):
    """Copy a file with some of its entries replaced; None leaves one out."""
    with zipfile.ZipFile(source) as archive, zipfile.ZipFile(target, "w") as changed:
        for name in archive.namelist():
            data = entries.pop(name, archive.read(name))
            if data is not None:
                changed.writestr(name, data)
        for name, data in entries.items():
            changed.writestr(name, data)
    return target


def _npy(array, **options):
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def _with_header(source, target, **changes):
    with np.load(source) as arrays:
        header = json.loads(str(arrays["header"]))
    header.update(changes)
    return _rewritten(source, target, **{"header.npy": _npy(np.array(json.dumps(header)))})


@pytest.mark.parametrize("measure", cases.MEASURES, ids=repr)
def test_a_saved_predictor_comes_back_to_the_last_bit(tmp_path, measure):
    path = tmp_path / "a.predictor"
    _same(_saved(path, measure), ConformalLabelSets.load(path))


def test_parameters_and_names_come_back(tmp_path):
    path = tmp_path / "new" / "folder" / "a.predictor"
    saved = _saved(
        path, LogLoss(0.1), min_labels=0, max_labels=np.int64(3), search="powerset", label_names=NAMES, work_limit=77
    )
    loaded = ConformalLabelSets.load(str(path))
    assert loaded.search == "powerset"
    assert (loaded.min_labels, loaded.max_labels, loaded.work_limit) == (0, 3, 77)
    assert loaded.label_names == NAMES
    assert loaded.predict(PROBABILITIES[:5]).label_sets == saved.predict(PROBABILITIES[:5]).label_sets
    loaded.save(path)
    _same(loaded, ConformalLabelSets.load(path))


def test_a_file_of_an_earlier_version_is_read(tmp_path):
    saved = _saved(tmp_path / "a.predictor", label_names=NAMES)
    with np.load(tmp_path / "a.predictor") as arrays:
        header = str(arrays["header"])
    entries = {"header.npy": None, "header.json": header}
    _same(saved, ConformalLabelSets.load(_rewritten(tmp_path / "a.predictor", tmp_path / "b.predictor", **entries)))


def test_saving_twice_gives_one_file_and_no_leftovers(tmp_path):
    _saved(tmp_path / "a.predictor")
    _saved(tmp_path / "a.predictor", LpNorm(4))
    assert [path.name for path in tmp_path.iterdir()] == ["a.predictor"]
    assert ConformalLabelSets.load(tmp_path / "a.predictor").measure == LpNorm(4)


@pytest.mark.parametrize("measure", cases.WEIGHTED, ids=repr)
def test_an_own_measure_must_be_brought_again_and_be_the_same(tmp_path, measure):
    path = tmp_path / "own.predictor"

    class Halved:
        aggregate = measure.aggregate

        def costs(self, probabilities):
            return probabilities / 2, (1.0 - probabilities) / 2

        def score(self, totals):
            return totals

    predictor = ConformalLabelSets(Halved()).calibrate(PROBABILITIES, LABELS)
    predictor.save(path)
    with pytest.raises(ArtifactError, match=r"a measure of your own, .*Halved.*Pass it as load\(..., measure=...\)"):
        ConformalLabelSets.load(path)
    loaded = ConformalLabelSets.load(path, measure=Halved())
    assert loaded.calibration_.totals.tobytes() == predictor.calibration_.totals.tobytes()
    with pytest.raises(ArtifactError, match="made with another measure than LpNorm"):
        ConformalLabelSets.load(path, measure=LpNorm(2))
    with pytest.raises(ArtifactError, match="'measure' parameter of load"):
        ConformalLabelSets.load(path, measure="Halved")


def test_a_file_of_ours_given_another_measure_is_refused(tmp_path):
    _saved(tmp_path / "a.predictor")
    with pytest.raises(ArtifactError, match="made with another measure"):
        ConformalLabelSets.load(tmp_path / "a.predictor", measure=LpNorm(4))
    assert ConformalLabelSets.load(tmp_path / "a.predictor", measure=LpNorm(2)).measure == LpNorm(2)


def test_missing_files_and_folders_are_pythons_errors(tmp_path):
    with pytest.raises(FileNotFoundError):
        ConformalLabelSets.load(tmp_path / "nowhere.predictor")
    with pytest.raises(IsADirectoryError):
        ConformalLabelSets.load(tmp_path)


def test_every_truncation_is_refused(tmp_path):
    _saved(tmp_path / "a.predictor", label_names=NAMES)
    whole = (tmp_path / "a.predictor").read_bytes()
    cut = tmp_path / "cut.predictor"
    for length in range(0, len(whole), 7):
        cut.write_bytes(whole[:length])
        with pytest.raises(ArtifactError, match=r"cut\.predictor"):
            ConformalLabelSets.load(cut)


def test_a_flipped_byte_is_refused_or_of_no_consequence(tmp_path):
    saved = _saved(tmp_path / "a.predictor", label_names=NAMES)
    whole = (tmp_path / "a.predictor").read_bytes()
    flipped = tmp_path / "flipped.predictor"
    refused = 0
    for place in range(len(whole)):
        for mask in (0x01, 0x80, 0xFF):
            damaged = bytearray(whole)
            damaged[place] ^= mask
            flipped.write_bytes(damaged)
            try:
                loaded = ConformalLabelSets.load(flipped)
            except ArtifactError:
                refused += 1
            else:
                # Dates and attributes of the archive's entries mean nothing here.
                assert loaded.get_params() == saved.get_params()
                assert loaded.calibration_.totals.tobytes() == saved.calibration_.totals.tobytes()
    assert refused > 2 * len(whole)


@pytest.mark.parametrize("version", [4, 99, "1", None, 0, True])
def test_other_versions_are_refused_with_both_versions_named(tmp_path, version):
    _saved(tmp_path / "a.predictor")
    newer = _with_header(tmp_path / "a.predictor", tmp_path / "b.predictor", version=version, surelabel="9.9")
    with pytest.raises(
        ArtifactError, match=rf"format version {version!r}, written by surelabel '9.9'.*Update surelabel"
    ):
        ConformalLabelSets.load(newer)


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "something-else"},
        {"measure": {"kind": "cosine"}},
        {"measure": {"kind": "lp-norm", "p": "0.1"}},
        {"measure": {"kind": "lp-norm", "p": "two"}},
        {"measure": {"kind": "lp-norm"}},
        {"measure": None},
        {"n_labels": "four"},
        {"n_labels": 4.5},
        {"n_labels": 0},
        {"n_labels": None},
        {"label_names": ["a"]},
        {"label_names": 7},
        {"parameters": {}},
        {"parameters": None},
        {"parameters": {"min_labels": 3, "max_labels": 1, "search": "exact", "work_limit": 10, "n_jobs": None}},
        {"parameters": {"min_labels": 1, "max_labels": None, "search": "best", "work_limit": 10, "n_jobs": None}},
        {"parameters": {"min_labels": 1, "max_labels": None, "search": [], "work_limit": 10, "n_jobs": None}},
        {"parameters": {"min_labels": 1, "max_labels": None, "search": "exact", "work_limit": 0, "n_jobs": None}},
        {"parameters": {"min_labels": 1, "max_labels": None, "search": "exact", "work_limit": 1, "n_jobs": 0}},
        {"parameters": {"min_labels": 1, "max_labels": None, "search": "exact", "work_limit": 1, "colour": "red"}},
    ],
    ids=str,
)
def test_headers_that_make_no_sense_are_refused(tmp_path, changes):
    _saved(tmp_path / "a.predictor")
    changed = _with_header(tmp_path / "a.predictor", tmp_path / "b.predictor", **changes)
    with pytest.raises(ArtifactError, match=r"b\.predictor"):
        ConformalLabelSets.load(changed)


@pytest.mark.parametrize(
    "totals",
    [
        np.empty(0),
        np.array([1.0, np.nan]),
        np.array([1.0, np.inf]),
        np.array([-1.0]),
        np.array([1, 2]),
        np.array([1.0], dtype=np.float32),
        np.array([[1.0]]),
        np.array(["a"]),
    ],
    ids=str,
)
def test_totals_that_make_no_sense_are_refused(tmp_path, totals):
    _saved(tmp_path / "a.predictor")
    changed = _rewritten(tmp_path / "a.predictor", tmp_path / "b.predictor", **{"totals.npy": _npy(totals)})
    with pytest.raises(ArtifactError, match=r"b\.predictor is damaged"):
        ConformalLabelSets.load(changed)


class _Touch:
    """Unpickling this makes a file: the sign that code from an artifact was run."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_a_pickle_inside_is_refused_and_not_run(tmp_path):
    sign = tmp_path / "sign"
    _saved(tmp_path / "a.predictor")
    payload = np.empty(1, dtype=object)
    payload[0] = _Touch(sign)
    for name in ("totals.npy", "probe.npy"):
        changed = _rewritten(
            tmp_path / "a.predictor", tmp_path / "b.predictor", **{name: _npy(payload, allow_pickle=True)}
        )
        with pytest.raises(ArtifactError, match="Python objects"):
            ConformalLabelSets.load(changed)
    (tmp_path / "c.predictor").write_bytes(pickle.dumps(_Touch(sign)))
    with pytest.raises(ArtifactError, match="not a surelabel predictor"):
        ConformalLabelSets.load(tmp_path / "c.predictor")
    changed = _rewritten(
        tmp_path / "a.predictor", tmp_path / "d.predictor", **{"totals.npy": pickle.dumps(_Touch(sign))}
    )
    with pytest.raises(ArtifactError):
        ConformalLabelSets.load(changed)
    assert not sign.exists()


def test_other_archives_and_files_are_refused(tmp_path):
    _saved(tmp_path / "a.predictor")
    np.savez(tmp_path / "arrays.npz", totals=np.ones(3))
    (tmp_path / "text.txt").write_text("totals")
    (tmp_path / "empty").write_bytes(b"")
    zipfile.ZipFile(tmp_path / "nothing.zip", "w").close()
    more = _rewritten(tmp_path / "a.predictor", tmp_path / "more.zip", **{"extra.txt": "x"})
    less = _rewritten(tmp_path / "a.predictor", tmp_path / "less.zip", **{"probe.npy": None})
    broken = _rewritten(tmp_path / "a.predictor", tmp_path / "broken.zip", **{"header.npy": _npy(np.array("{"))})
    listed = _rewritten(tmp_path / "a.predictor", tmp_path / "listed.zip", **{"header.npy": _npy(np.array("[]"))})
    for path in ("arrays.npz", "text.txt", "empty", "nothing.zip", more, less, broken, listed):
        with pytest.raises(ArtifactError):
            ConformalLabelSets.load(tmp_path / path)


def test_an_error_while_writing_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.predictor"

    class Moody:
        aggregate = "sum"
        good = True

        def costs(self, probabilities):
            if not self.good:
                raise RuntimeError("no more costs")
            return probabilities, 1.0 - probabilities

        def score(self, totals):
            return totals

    moody = Moody()
    predictor = ConformalLabelSets(moody).calibrate(PROBABILITIES, LABELS)
    predictor.save(path)
    before = path.read_bytes()
    moody.good = False
    with pytest.raises(RuntimeError, match="no more costs"):
        predictor.save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.predictor"]
