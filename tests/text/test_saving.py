"""Folders that are damaged, foreign or newer are refused; nothing foreign is replaced."""

from __future__ import annotations

import json

import pytest

from surelabel._core.folders import own_checksum
from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.text import TextClassifier, load, make


@pytest.fixture
def saved(topical, tmp_path):
    (texts, labels), _ = topical
    make("linear").fit(texts, labels).save(tmp_path / "saved")
    return tmp_path / "saved"


def _edit(folder, **changes):
    document = json.loads((folder / "classifier.json").read_text())
    document.update(changes)
    document["sha256"] = own_checksum(document)
    (folder / "classifier.json").write_text(json.dumps(document))


def test_loads_from_the_class_too(saved):
    assert TextClassifier.load(saved).kind == "linear"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 99}, "format version 99, .* reads version 2. Install a newer"),
        ({"version": "x"}, "format version 'x'"),
        ({"format": "something"}, "does not say that it is one"),
        ({"kind": "svm"}, "cannot be used: The kind"),
        ({"kind": None}, "no proper 'kind'"),
        ({"settings": {"unknown": 1}}, "cannot be used: .* no setting"),
        ({"settings": {"min_texts": "many"}}, "cannot be used: .* Got 'many'"),
        ({"files": {"../outside": "0"}}, "outside itself"),
        ({"label_names": ["a"]}, "3 names, one per label"),
    ],
)
def test_descriptions_that_are_refused(saved, changes, message):
    _edit(saved, **changes)
    with pytest.raises(ArtifactError, match=message):
        load(saved)


def test_files_that_are_damaged_or_missing(saved):
    whole = (saved / "linear.npz").read_bytes()
    (saved / "linear.npz").write_bytes(whole[:-1])
    with pytest.raises(ArtifactError, match=r"linear\.npz is not what was written"):
        load(saved)
    (saved / "linear.npz").unlink()
    with pytest.raises(ArtifactError, match=r"linear\.npz is missing"):
        load(saved)
    (saved / "classifier.json").write_text("{")
    with pytest.raises(ArtifactError, match="not JSON"):
        load(saved)


def test_a_folder_that_is_none(tmp_path):
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(ArtifactError, match=r"not a saved classifier|no saved classifier"):
            load(folder)


def test_any_changed_byte_of_the_description_is_noticed(saved):
    whole = (saved / "classifier.json").read_bytes()
    for position in range(0, len(whole) - 2, 97):
        changed = bytearray(whole)
        changed[position] ^= 1
        (saved / "classifier.json").write_bytes(changed)
        with pytest.raises(ArtifactError):
            load(saved)


def test_a_classifier_of_the_first_version_is_read(saved):
    document = json.loads((saved / "classifier.json").read_text())
    files = {name: values["sha256"] for name, values in document["files"].items()}
    del document["sha256"]
    (saved / "classifier.json").write_text(json.dumps({**document, "version": 1, "files": files}))
    assert load(saved).kind == "linear"
    (saved / "classifier.json").write_text(json.dumps({**document, "version": 2}))
    with pytest.raises(ArtifactError, match="not what was written"):
        load(saved)


def test_saving_replaces_a_classifier_and_nothing_else(saved, tmp_path):
    classifier = load(saved)
    classifier.save(saved)
    (tmp_path / "empty").mkdir()
    classifier.save(tmp_path / "empty")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("meow")
    with pytest.raises(InvalidInputError, match="something else"):
        classifier.save(tmp_path / "photos")
    assert (tmp_path / "photos" / "cat.jpg").read_text() == "meow"
