"""Bundles from strangers: refused with a reason, before anything of them is run or believed."""

import dataclasses
import hashlib
import io
import json
import os
import pickle
import shutil
import struct
import zipfile

import numpy as np
import pytest

from bundle_cases import corpus, small_bundle
from surelabel import load_bundle
from surelabel._core.folders import own_checksum as _own_checksum
from surelabel.exceptions import ArtifactError
from surelabel.recalibration import Recalibration

TEN_GB = 10 * 2**30
# Archives of arrays, and one array of each.
ARRAYS = [
    ("predictor.npz", "totals.npy"),
    ("classifier/linear.npz", "weights.npy"),
    ("recalibration.npz", "values.npy"),
    ("forced.npz", "totals.npy"),
]


@pytest.fixture
def folder(tmp_path):
    # Two labels corrected by a curve, the others as they are.
    lengths = np.zeros((len(corpus().label_names), 2), dtype=np.int64)
    lengths[:2] = [[2, 0], [2, 2]]
    curves = {"methods": np.array([1, 2, 0, 0, 0, 0, 0, 0]), "lengths": lengths}
    curves["values"] = np.array([1.5, 0.1, 0.0, 1.0, 0.1, 0.9])
    recalibration = Recalibration.from_arrays(curves)
    totals = np.arange(small_bundle().predictor.calibration_.n_texts, dtype=np.float64)
    bundle = dataclasses.replace(small_bundle(), recalibration=recalibration, forced_totals=totals)
    bundle.save(tmp_path / "model")
    return tmp_path / "model"


class _Touch:
    """Pickled, it makes a file where it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def _edited(folder, change):
    document = json.loads((folder / "bundle.json").read_text())
    change(document)
    document["sha256"] = _own_checksum(document)
    (folder / "bundle.json").write_text(json.dumps(document))


def _listed_anew(folder, *names):
    """Put changed files into the lists with their new sums, as one who changes a bundle on purpose would."""
    classifier = json.loads((folder / "classifier" / "classifier.json").read_text())
    for file in (folder / "classifier").iterdir():
        if file.name in classifier["files"]:
            content = file.read_bytes()
            classifier["files"][file.name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    classifier["sha256"] = _own_checksum(classifier)
    (folder / "classifier" / "classifier.json").write_text(json.dumps(classifier))

    def change(document):
        for name in {*document["files"], *names}:
            content = (folder / name).read_bytes()
            document["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}

    _edited(folder, change)


def _npy(shape, dtype="<f8", data=b""):
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (63 - (len(header) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def _with_entry(path, name, content):
    with zipfile.ZipFile(path) as archive:
        entries = {each: archive.read(each) for each in archive.namelist()}
    entries[name] = content
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, data in entries.items():
            archive.writestr(each, data)


def test_any_changed_byte_is_refused(folder):
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    for name in names:
        whole = (folder / name).read_bytes()
        for position in (0, len(whole) // 2, len(whole) - 2):
            changed = bytearray(whole)
            changed[position] ^= 1
            (folder / name).write_bytes(changed)
            with pytest.raises(ArtifactError):
                load_bundle(folder)
        (folder / name).write_bytes(whole[:-1])
        if name != "bundle.json":  # its last byte is a line break
            with pytest.raises(ArtifactError, match="not what was written"):
                load_bundle(folder)
        (folder / name).write_bytes(whole)
    load_bundle(folder)


@pytest.mark.parametrize("name", ["classifier/linear.npz", "predictor.npz", "README.md", "classifier/classifier.json"])
def test_a_missing_file_is_refused(folder, name):
    (folder / name).unlink()
    with pytest.raises(ArtifactError, match="is missing"):
        load_bundle(folder)
    _edited(folder, lambda document: document["files"].pop(name))
    with pytest.raises(ArtifactError, match=r"is missing|damaged"):
        load_bundle(folder)


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("name", ["model.pkl", "classifier/pytorch_model.bin", "classifier/deep/model.npz", "x.py"])
def test_an_unknown_file_is_refused_listed_or_not(folder, tmp_path, name, listed):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(pickle.dumps(_Touch(tmp_path / "sign")))
    if listed:
        _listed_anew(folder, name)
    with pytest.raises(ArtifactError, match="refused"):
        load_bundle(folder)
    assert not (tmp_path / "sign").exists()


@pytest.mark.parametrize(("target", "name"), ARRAYS)
def test_a_pickle_inside_is_refused_and_not_run(folder, tmp_path, target, name):
    payload = np.empty(1, dtype=object)
    payload[0] = _Touch(tmp_path / "sign")
    buffer = io.BytesIO()
    np.save(buffer, payload, allow_pickle=True)
    _with_entry(folder / target, name, buffer.getvalue())
    _listed_anew(folder)
    with pytest.raises(ArtifactError, match="Python objects"):
        load_bundle(folder)
    (folder / target).write_bytes(pickle.dumps(_Touch(tmp_path / "sign")))
    _listed_anew(folder)
    with pytest.raises(ArtifactError):
        load_bundle(folder)
    assert not (tmp_path / "sign").exists()


@pytest.mark.parametrize(
    "name",
    ["../outside.json", "/etc/passwd", "classifier/../../outside.json", "..\\outside.json", "C:\\outside.json", "a\0b"],
)
def test_a_name_that_leads_outside_is_refused(folder, name):
    (folder.parent / "outside.json").write_text("{}")
    entry = {"bytes": 2, "sha256": hashlib.sha256(b"{}").hexdigest()}
    _edited(folder, lambda document: document["files"].update({name: entry}))
    with pytest.raises(ArtifactError, match="outside itself"):
        load_bundle(folder)


@pytest.mark.parametrize("name", ["./README.md", "classifier//linear.npz", "", "classifier/", "readme.md"])
def test_a_name_that_a_bundle_does_not_have_is_refused(folder, name):
    _edited(folder, lambda document: document["files"].update({name: {"bytes": 0, "sha256": ""}}))
    with pytest.raises(ArtifactError, match="not a file of a bundle"):
        load_bundle(folder)


@pytest.mark.parametrize("name", ["README.md", "bundle.json", "classifier"])
def test_a_link_is_refused(folder, name):
    shutil.move(folder / name, folder.parent / "elsewhere")
    (folder / name).symlink_to(folder.parent / "elsewhere")
    with pytest.raises(ArtifactError, match=r"not a plain file|has no bundle\.json"):
        load_bundle(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(version=3), "Install a newer surelabel"),
        (lambda d: d.update(version="1"), "format version"),
        (lambda d: d.update(format="other"), "not a bundle"),
        (lambda d: d.pop("files"), "does not list its files"),
        (lambda d: d.update(files={"README.md": 3}), "does not say what"),
        (lambda d: d.pop("info"), "must have the fields"),
        (lambda d: d["info"].update(seed="x"), "seed"),
    ],
)
def test_a_description_that_is_not_ours_is_refused(folder, change, message):
    _edited(folder, change)
    with pytest.raises(ArtifactError, match=message):
        load_bundle(folder)


def test_no_bundle_at_all(tmp_path):
    with pytest.raises(ArtifactError, match="There is no bundle at"):
        load_bundle(tmp_path / "nowhere")
    with pytest.raises(ArtifactError, match=r"has no bundle\.json"):
        load_bundle(tmp_path)
    (tmp_path / "bundle.json").write_bytes(b"\xff")
    with pytest.raises(ArtifactError, match="not JSON"):
        load_bundle(tmp_path)
    (tmp_path / "bundle.json").write_text("[" * 100_000)
    with pytest.raises(ArtifactError, match="not JSON"):
        load_bundle(tmp_path)


@pytest.mark.parametrize(("target", "name"), ARRAYS)
def test_an_array_that_claims_ten_gigabytes_is_refused(folder, target, name):
    _with_entry(folder / target, name, _npy((TEN_GB // 8,), data=bytes(64)))
    _listed_anew(folder)
    with pytest.raises(ArtifactError, match="claims 10,737,418"):
        load_bundle(folder)


@pytest.mark.parametrize("target", [target for target, _ in ARRAYS])
def test_an_archive_that_claims_ten_gigabytes_is_refused(folder, target):
    content = bytearray((folder / target).read_bytes())
    place = content.index(b"PK\x01\x02")  # the first entry of the directory: unpacked size at byte 24
    content[place + 24 : place + 28] = struct.pack("<I", 2**32 - 2)
    (folder / target).write_bytes(content)
    _listed_anew(folder)
    with pytest.raises(ArtifactError, match=r"claims 4,294,967,294 bytes|claims to be too large"):
        load_bundle(folder)


@pytest.mark.parametrize("name", ["../values.npy", "/values.npy", "code.py", "header.npy/../x.npy"])
def test_an_entry_that_a_recalibration_does_not_have_is_refused(folder, name):
    _with_entry(folder / "recalibration.npz", name, _npy((1,), data=bytes(8)))
    _listed_anew(folder)
    with pytest.raises(ArtifactError, match="not a recalibration"):
        load_bundle(folder)
    assert not (folder.parent / "values.npy").exists()


def test_a_recalibration_that_is_none_is_refused(folder):
    file = folder / "recalibration.npz"
    with np.load(file) as arrays:
        good = dict(arrays)
    for change in (
        {"values": np.array([1.5, np.nan, 0.0, 1.0, 0.1, 0.9])},
        {"values": np.array([1.5, 0.1, 0.0, 1.0, 0.9, 0.1])},  # falls
        {"lengths": good["lengths"][:-1]},
        {"methods": good["methods"][:-1], "lengths": good["lengths"][:-1]},  # of seven labels, where there are eight
    ):
        np.savez(file, **{**good, **change})
        _listed_anew(folder)
        with pytest.raises(ArtifactError):
            load_bundle(folder)
    np.savez(file, **good)
    _listed_anew(folder)
    load_bundle(folder)


def test_totals_of_forced_predictions_that_are_none_are_refused(folder):
    with np.load(folder / "forced.npz") as arrays:
        totals = arrays["totals"]
    for changed in (
        {"totals": totals[1:]},
        {"totals": totals[None, :]},
        {"totals": np.where(totals == 3, np.nan, totals)},
        {"totals": totals - 1.0},
        {"totals": totals.astype(np.float32)},
        {"totals": totals, "more": totals},
        {},
    ):
        np.savez(folder / "forced.npz", **changed)
        _listed_anew(folder)
        with pytest.raises(ArtifactError):
            load_bundle(folder)


def test_an_evaluation_that_is_none_is_refused(folder):
    for content in ("[1]", '{"LogLoss": {}}', "{", '{"LogLoss": 3}'):
        (folder / "evaluation.json").write_text(content)
        _listed_anew(folder)
        with pytest.raises(ArtifactError):
            load_bundle(folder)


def test_settings_of_a_stranger_are_checked(folder):
    file = folder / "classifier" / "classifier.json"
    document = json.loads(file.read_text())
    for change in ({"kind": "os.system"}, {"settings": {"command": "x"}}, {"n_labels": 3}, {"label_names": ["a"] * 8}):
        file.write_text(json.dumps({**document, **change}))
        _listed_anew(folder)
        with pytest.raises(ArtifactError):
            load_bundle(folder)


FORGED_JSON = [
    "1",
    "null",
    "{}",
    '{"a": 1}',
    "[1, 2]",
    '[["a"]]',
    '["a", "a"]',
    "[" * 100_000,
    '"x"',
    "[1e999]",
    "\x00",
    "",
]


@pytest.mark.parametrize("name", ["classifier/vocabulary.json", "evaluation.json"])
@pytest.mark.parametrize("content", FORGED_JSON, ids=range(len(FORGED_JSON)))
def test_forged_lists_and_figures_are_refused(folder, name, content):
    (folder / name).write_text(content)
    _listed_anew(folder, name)
    if (name, content) == ("evaluation.json", "{}"):
        assert load_bundle(folder).evaluation == {}
        return
    with pytest.raises(ArtifactError):
        load_bundle(folder)


@pytest.mark.parametrize(
    "forge", [None, [], 1, "x", {"curve": 3}, {"curve": [1]}, {"errors": {"x": 1}}, {"n_texts": "9"}]
)
def test_forged_values_of_an_evaluation_are_refused(folder, forge):
    figures = json.loads((folder / "evaluation.json").read_text())
    (name,) = figures
    figures[name] = {**figures[name], **forge} if isinstance(forge, dict) else forge
    (folder / "evaluation.json").write_text(json.dumps(figures))
    _listed_anew(folder, "evaluation.json")
    with pytest.raises(ArtifactError):
        load_bundle(folder)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("name", ["idf", "weights"])
def test_forged_weights_are_refused(folder, name, value):
    path = folder / "classifier" / "linear.npz"
    with np.load(path) as archive:
        arrays = dict(archive)
    arrays[name].flat[0] = value
    np.savez(path, **arrays)
    _listed_anew(folder, "classifier/linear.npz")
    if name == "weights" and np.isfinite(value):
        load_bundle(folder)
        return
    with pytest.raises(ArtifactError, match="weights"):
        load_bundle(folder)
