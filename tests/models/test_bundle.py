"""Bundles in folders: equal after loading, replaced in one step, refused if damaged, and nothing in them is run."""

import dataclasses
import json
import pickle
import shutil
import zipfile

import numpy as np
import pytest

from models.quick import quick_train
from surelabel._core.files import MANIFEST, write_manifest
from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.models import calibrate_bundle, load_bundle
from surelabel.models.evidence import HeldOutTexts, load_held_out, save_held_out

TEXTS = ["crude oil by the barrel", "a goal by the striker", ""]


def _files(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_loaded_is_equal(bundle, folder):
    loaded = load_bundle(folder)
    assert loaded.info == bundle.info
    assert loaded.evaluation == bundle.evaluation
    assert np.array_equal(loaded.predict_proba(TEXTS), bundle.predict_proba(TEXTS))
    assert [a.record() for a in loaded.answers(TEXTS, significance="0.1")] == [
        a.record() for a in bundle.answers(TEXTS, significance="0.1")
    ]
    assert repr(loaded) == repr(bundle)
    # What was kept for a later calibration is kept exactly.
    again, expected = calibrate_bundle(loaded, max_wrong="0.3"), calibrate_bundle(bundle, max_wrong="0.3")
    assert again.policy.automation.threshold_ == expected.policy.automation.threshold_


def test_all_optional_parts_are_kept(corpus, tmp_path):
    bundle = quick_train(corpus, best_guess="macro-f1", recalibrate=True, group="region")
    loaded = load_bundle(bundle.save(tmp_path / "model"))
    groups = ["north"] * len(TEXTS)
    assert [a.record() for a in loaded.answers(TEXTS, groups=groups)] == [
        a.record() for a in bundle.answers(TEXTS, groups=groups)
    ]


def test_loading_writes_nothing(folder, monkeypatch):
    times = {name: (folder / name).stat().st_mtime_ns for name in _files(folder)}
    monkeypatch.setattr("tempfile.mkdtemp", lambda *_args, **_options: 1 / 0)
    monkeypatch.setattr("tempfile.mkstemp", lambda *_args, **_options: 1 / 0)
    load_bundle(folder)
    assert times == {name: (folder / name).stat().st_mtime_ns for name in _files(folder)}


def test_replaced_in_one_step(bundle, tmp_path, monkeypatch):
    target = bundle.save(tmp_path / "model")
    before = (target / MANIFEST).read_bytes()
    monkeypatch.setattr("surelabel.models.bundle.write_manifest", lambda _folder: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        bundle.save(target)
    assert (target / MANIFEST).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    monkeypatch.undo()
    bundle.save(target)
    load_bundle(target)


def test_other_things_are_never_replaced(bundle, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    for target in (tmp_path, tmp_path / "mine.txt"):
        with pytest.raises(InvalidInputError):
            bundle.save(target)
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_a_card_says_what_the_model_is(bundle, folder):
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert card.startswith(f"# {bundle.info.name}")
    for line in bundle.info.verdict:
        assert line in card


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def _pickled(path):
    """Return an .npy file with an object array that writes a file."""
    import io

    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.array([Trap(path)], dtype=object), allow_pickle=True)
    return stream.getvalue()


def _rewritten(path, change):
    """Change one member of an archive."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def _claiming(members):
    """Let every array claim ten gigabytes."""
    for name in list(members):
        if name != "header.npy":
            head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1342177280,), }"
            members[name] = b"\x93NUMPY\x01\x00" + len(head.ljust(118)).to_bytes(2, "little") + head.ljust(117) + b"\n"


def test_no_file_of_a_bundle_can_be_changed(folder, tmp_path):
    """Flip a byte, cut, remove, add or link any file: each is an ArtifactError, and nothing is run."""
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    rng = np.random.default_rng(0)
    for name in _files(folder):
        path, content = copy / name, (folder / name).read_bytes()
        place = int(rng.integers(len(content)))
        flipped = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
        for changed in (flipped, content[:-2], content + b"x", b""):
            path.write_bytes(changed)
            with pytest.raises(ArtifactError):
                load_bundle(copy)
        path.unlink()
        with pytest.raises(ArtifactError):
            load_bundle(copy)
        path.symlink_to(folder / name)
        with pytest.raises(ArtifactError):
            load_bundle(copy)
        path.unlink()
        path.write_bytes(content)
    (copy / "classifier" / "more.py").write_text("1 / 0")
    with pytest.raises(ArtifactError):
        load_bundle(copy)
    (copy / "classifier" / "more.py").unlink()
    (copy / ".DS_Store").write_text("litter")
    load_bundle(copy)
    shutil.rmtree(copy / "policy")
    with pytest.raises(ArtifactError):
        load_bundle(copy)
    with pytest.raises(ArtifactError):
        load_bundle(tmp_path / "nothing")


def test_no_file_can_be_changed_with_its_checksum(folder, tmp_path):
    """The same by somebody who writes the manifest as well: no code is run, and every number is checked."""
    trap = tmp_path / "trap"
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)

    def refused():
        write_manifest(copy)
        with pytest.raises(ArtifactError):
            load_bundle(copy)
        assert not trap.exists()

    for name in _files(folder):
        path, content = copy / name, (folder / name).read_bytes()
        if name in (MANIFEST, "README.md", "report.html"):
            continue
        changes = [content[: len(content) // 2], b"", b"[" * 100_000, pickle.dumps(Trap(trap))]
        for changed in changes:
            path.write_bytes(changed)
            refused()
        if name.endswith(".npz"):
            for change in (
                lambda members: members.update(
                    {key: _pickled(trap) for key in members if key != "header.npy"} or {"x.npy": _pickled(trap)}
                ),
                lambda members: members.update({"header.npy": _pickled(trap)}),
            ):
                path.write_bytes(content)
                _rewritten(path, change)
                refused()
            with zipfile.ZipFile(folder / name) as archive:
                has_arrays = len(archive.namelist()) > 1
            if has_arrays:
                path.write_bytes(content)
                _rewritten(path, _claiming)
                refused()
        path.write_bytes(content)
    write_manifest(copy)
    load_bundle(copy)


def _wrong_numbers(values, path=()):
    """Return the places of all numbers in a document."""
    if isinstance(values, dict):
        return [place for key, part in values.items() for place in _wrong_numbers(part, (*path, key))]
    return [path] if isinstance(values, int) and not isinstance(values, bool) else []


def test_numbers_of_the_description_are_checked(folder, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    document = json.loads((folder / "bundle.json").read_text(encoding="utf-8"))
    places = [place for place in _wrong_numbers(document) if place[0] not in ("settings", "provenance")]
    assert places
    for place in (*places, ("levels", "max_wrong"), ("name",), ("categories",)):
        changed = json.loads(json.dumps(document))
        inner = changed
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = {"a": float("nan")}
        (copy / "bundle.json").write_text(json.dumps(changed), encoding="utf-8")
        write_manifest(copy)
        with pytest.raises(ArtifactError):
            load_bundle(copy)
    for level in ("1e-999999999", "5", "-0.1", "nan", "much"):
        changed = {**document, "levels": {**document["levels"], "max_missed": level}}
        (copy / "bundle.json").write_text(json.dumps(changed), encoding="utf-8")
        write_manifest(copy)
        with pytest.raises(ArtifactError):
            load_bundle(copy)


def test_held_out_texts_with_wrong_numbers_are_refused(tmp_path):
    names, path = ("a", "b"), tmp_path / "held_out.npz"
    part = HeldOutTexts(np.array([[0.5, 0.1]]), [frozenset({"a", "new"})], np.array([0.5]), ["north"])

    def changed(**values):
        save_held_out(path, {"filing": dataclasses.replace(part, **values)}, names)
        return load_held_out(path, names)["filing"]

    loaded = changed()
    assert (loaded.label_sets, loaded.groups, loaded.known_words.tolist()) == (part.label_sets, ["north"], [0.5])
    assert np.isnan(changed(known_words=np.array([np.nan])).known_words[0])
    for wrong in (
        {"probabilities": np.array([[np.nan, 0.1]])},
        {"probabilities": np.array([[1.5, 0.1]])},
        {"known_words": np.ones(2)},
        {"known_words": np.array([-0.5])},
        {"known_words": np.array([10**400], dtype=object)},
        {"groups": []},
    ):
        with pytest.raises(ArtifactError):
            changed(**wrong)
    changed()
    with pytest.raises(ArtifactError):
        load_held_out(path, ("a", "c"))
