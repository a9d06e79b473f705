"""A bundle that is replaced while it is loaded: the old one or the new one, never a mixture."""

import dataclasses
import os
import threading

import numpy as np
import pytest

from bundle_cases import corpus, small_bundle
from surelabel import ConformalLabelSets, LogLoss, load_bundle
from surelabel._core import folders
from surelabel.exceptions import ArtifactError, InvalidInputError


def _versions():
    """Return two bundles whose parts tell which of them they belong to."""
    one = small_bundle()
    part = corpus().part("test")
    predictor = ConformalLabelSets(LogLoss(), 1, 3, label_names=one.label_names)
    predictor.calibrate(one.predict_proba(part.texts), part.labels)
    info = dataclasses.replace(one.info, name="other")
    totals = np.zeros(len(part))
    other = dataclasses.replace(one, predictor=predictor, info=info, evaluation=None, forced_totals=totals)
    return one, other


def _replace_until(ended, folder, versions):
    while not ended.is_set():
        for version in versions:
            version.save(folder)


def test_files_of_an_interrupted_reading_do_not_stay(tmp_path, monkeypatch):
    one, other = _versions()
    one.save(tmp_path / "model")
    copied = folders.FolderFormat._copied
    replaced = []

    def replaced_after_the_evaluation(kind, folder, name, copy):
        result = copied(kind, folder, name, copy)
        if name == "evaluation.json" and copy is not None:
            replaced.append(name)
            other.save(tmp_path / "model")
        return result

    monkeypatch.setattr(folders.FolderFormat, "_copied", replaced_after_the_evaluation)
    loaded = load_bundle(tmp_path / "model")
    assert (loaded.info.name, loaded.evaluation, len(replaced)) == ("other", None, 1)


@pytest.mark.parametrize("n_loads", [20, pytest.param(500, marks=pytest.mark.slow)])
def test_loads_during_continuous_replacement(tmp_path, n_loads):
    one, other = _versions()
    one.save(tmp_path / "model")
    ended = threading.Event()
    writer = threading.Thread(target=_replace_until, args=(ended, tmp_path / "model", (other, one)))
    writer.start()
    try:
        names = set()
        for _ in range(n_loads):
            loaded = load_bundle(tmp_path / "model")
            is_other = loaded.info.name == "other"
            names.add(loaded.info.name)
            assert loaded.predictor.calibration_.n_texts == (120 if is_other else 90)
            assert (loaded.evaluation is None) == is_other
            assert (loaded.forced_totals is not None) == is_other
    finally:
        ended.set()
        writer.join()
    assert len(names) == 2 or n_loads < 500
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_what_is_loaded_is_what_was_checked(tmp_path, monkeypatch):
    """A file that changes after its check is not read again."""
    small_bundle().save(tmp_path / "model")
    load = ConformalLabelSets.load

    def changed_meanwhile(path):
        (tmp_path / "model" / "predictor.npz").write_bytes(b"something else")
        return load(path)

    monkeypatch.setattr(ConformalLabelSets, "load", staticmethod(changed_meanwhile))
    assert load_bundle(tmp_path / "model").predictor.calibration_.n_texts == 90
    with pytest.raises(ArtifactError, match=r"predictor\.npz is not what was written"):
        load_bundle(tmp_path / "model")


def test_a_link_to_a_bundle_stays_a_link(tmp_path):
    one, other = _versions()
    one.save(tmp_path / "of-may")
    (tmp_path / "current").symlink_to("of-may")
    other.save(tmp_path / "current")
    assert (tmp_path / "current").is_symlink()
    assert load_bundle(tmp_path / "of-may").info.name == load_bundle(tmp_path / "current").info.name == "other"


def test_the_current_folder_is_not_replaced(tmp_path, monkeypatch):
    small_bundle().save(tmp_path / "model")
    monkeypatch.chdir(tmp_path / "model")
    assert load_bundle(".").info.name == small_bundle().info.name
    with pytest.raises(InvalidInputError, match="while it is the current folder"):
        small_bundle().save(".")
    assert os.listdir(".")  # noqa: PTH208
