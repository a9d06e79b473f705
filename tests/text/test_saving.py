"""Saved classifiers that are damaged, or that hold something else, are refused; nothing in them is run."""

import json
import pathlib
import pickle
import tempfile

import numpy as np
import pytest

from surelabel import text
from surelabel._core.files import MANIFEST, read_arrays, write_arrays, write_manifest
from surelabel.exceptions import ArtifactError, InvalidInputError, NotCalibratedError

KINDS = ["linear", "hybrid", "randinit", "blend"]
RUN = pathlib.Path(tempfile.gettempdir()) / "surelabel-was-run"


@pytest.fixture(scope="module")
def saved(tmp_path_factory, fitted_kind):
    folder = tmp_path_factory.mktemp("saved")
    for kind in KINDS:
        fitted_kind(kind).save(folder / kind)
    return folder


class Bomb:
    def __reduce__(self):
        return (pathlib.Path.touch, (RUN,))


def files_of(saved, kind, tmp_path):
    """Yield a copy of the folder for each of its files, and the file in the copy."""
    import shutil

    names = [path.relative_to(saved / kind) for path in sorted((saved / kind).rglob("*")) if path.is_file()]
    for number, name in enumerate(names):
        copy = tmp_path / str(number)
        shutil.copytree(saved / kind, copy)
        yield copy, copy / name


@pytest.mark.parametrize("kind", KINDS)
def test_any_change_of_a_file_is_seen(saved, kind, tmp_path):
    for copy, path in files_of(saved, kind, tmp_path):
        data = path.read_bytes()
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]) if data[-1:] != b"\n" else data[:-2])
        with pytest.raises(ArtifactError):
            text.load(copy)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("content", [b"", b"{}", b"[1, 2", pickle.dumps(Bomb()), b"PK\x03\x04"])
def test_files_that_hold_something_else(saved, kind, content, tmp_path):
    """The manifest says that all is well, and still nothing but ArtifactError comes."""
    for copy, path in files_of(saved, kind, tmp_path):
        if path.name == "manifest.json" and content == b"{}":
            continue
        path.write_bytes(content)
        if path.name != "manifest.json":
            write_manifest(copy)
        with pytest.raises(ArtifactError):
            text.load(copy)


@pytest.mark.parametrize(
    "name", ["weights", "intercepts", "idf", "curve_coefficients", "curve_limits", "refined_table"]
)
@pytest.mark.parametrize("wrong", [np.nan, np.inf, "shape", "text"])
def test_numbers_are_checked_where_they_are_read(saved, name, wrong, tmp_path):
    for copy, path in files_of(saved, "linear", tmp_path):
        if path.name != "linear.npz":
            continue
        header, arrays = read_arrays(path, "linear classifier")
        if name not in arrays:
            pytest.skip("this fit has no refinement")
        array = np.array(arrays[name])
        if wrong == "shape":
            array = array[:-1]
        elif wrong == "text":
            array = array.astype("U8")
        else:
            array.flat[-1] = wrong
        (copy / MANIFEST).unlink()
        write_arrays(path, {"kind": header["kind"]}, {**arrays, name: array})
        write_manifest(copy)
        with pytest.raises(ArtifactError):
            text.load(copy)


@pytest.mark.parametrize(
    "change",
    [{"kind": "tree"}, {"kind": "os"}, {"settings": {"seed": -1}}, {"settings": {"depth": 1}},
     {"label_names": list("abc")}, {"label_names": list("aabc")}, {"label_names": None}, {"history": 5},
     {"format": "another"}],
)  # fmt: skip
def test_descriptions_are_checked(saved, change, tmp_path):
    for copy, path in files_of(saved, "linear", tmp_path):
        if path.name == "classifier.json":
            path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
            write_manifest(copy)
            with pytest.raises(ArtifactError):
                text.load(copy)


def test_what_cannot_be_saved_or_loaded(tmp_path):
    for method in ("save", "predict_proba"):
        with pytest.raises(NotCalibratedError, match="not fitted"):
            getattr(text.make("linear"), method)([] if method == "predict_proba" else tmp_path / "x")
    with pytest.raises(ArtifactError):
        text.load(tmp_path)


@pytest.mark.parametrize(
    ("texts", "labels", "names"),
    [("one text", [[1]], None), ([b"x"], [[1]], None), (["x"], [1], None), (["x"], [[1], [0]], None),
     (["x"], [[2]], None), ([], [], None), (["x"], [[1, 0]], ["a"]), (["x"], [[1, 0]], ["a", "a"])],
)  # fmt: skip
def test_texts_and_labels_that_do_not_fit(texts, labels, names):
    with pytest.raises(InvalidInputError):
        text.make("linear").fit(texts, labels, names)


def test_labels_are_matched_by_name():
    import pandas as pd

    texts, labels = ["corn", "yen", "corn yen"] * 10, np.array([[1, 0], [0, 1], [1, 1]] * 10)
    frame = pd.DataFrame({"money": labels[:, 1], "grain": labels[:, 0]})
    sets = [{name for name, has in zip(("grain", "money"), row, strict=True) if has} for row in labels]
    expected = text.make("linear", C=1.0).fit(texts, labels, ["grain", "money"]).predict_proba(["corn"])
    for own in (frame, sets):
        fitted = text.make("linear", C=1.0).fit(texts, own, ["grain", "money"])
        np.testing.assert_array_equal(fitted.predict_proba(["corn"]), expected)
    assert text.make("linear", C=1.0).fit(texts, frame).label_names_ == ("money", "grain")
    with pytest.raises(InvalidInputError, match="label names"):
        text.make("linear").fit(texts, sets, ["grain"])


def test_unknown_kinds_and_names():
    with pytest.raises(InvalidInputError, match="linear"):
        text.make("tree")
    with pytest.raises(AttributeError):
        text.nothing  # noqa: B018
    assert set(text.__all__) == set(dir(text))
    assert all(hasattr(text, name) for name in text.__all__)


def test_lone_surrogates_and_decomposed_letters(saved):
    fitted = text.load(saved / "linear")
    assert np.isfinite(fitted.predict_proba(["gold \ud800 oil"])).all()
    np.testing.assert_array_equal(fitted.predict_proba(["caf\u00e9"]), fitted.predict_proba(["cafe\u0301"]))
