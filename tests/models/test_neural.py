"""Bundles with a network: back from the folder, and refused where they claim more than they have."""

import dataclasses
import hashlib
import json
import shutil
import struct

import pytest

pytest.importorskip("torch")

from bundle_cases import corpus
from surelabel import load_bundle
from surelabel._core.folders import own_checksum as _own_checksum
from surelabel.exceptions import ArtifactError
from surelabel.models import TrainingSettings, train_to_folder

TINY = {"embedding_size": 8, "n_kernels": 4, "kernel_words": 2, "n_hidden": 8, "epochs": 2, "max_words": 40}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("neural") / "model"
    return folder, train_to_folder(corpus(), folder, TrainingSettings("randinit", TINY, compared={}))


@pytest.fixture
def folder(trained, tmp_path):
    shutil.copytree(trained[0], tmp_path / "model")
    return tmp_path / "model"


def _listed_anew(folder, **changes):
    """Change the classifier's description and put the new sums into the lists."""
    file = folder / "classifier" / "classifier.json"
    classifier = json.loads(file.read_text())
    classifier = {**classifier, **changes}
    _hash(classifier, folder / "classifier")
    file.write_text(json.dumps(classifier))
    document = json.loads((folder / "bundle.json").read_text())
    _hash(document, folder)
    (folder / "bundle.json").write_text(json.dumps(document))


def _hash(document, folder):
    """Put the sizes and sums of a folder's files into its description, and the description's own sum."""
    for name in document["files"]:
        content = (folder / name).read_bytes()
        document["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    document["sha256"] = _own_checksum(document)


def test_the_way_back_from_a_folder(trained, folder):
    texts = corpus().part("test").texts[:10]
    loaded = load_bundle(folder)
    assert loaded.predict_proba(texts).tobytes() == trained[1].predict_proba(texts).tobytes()
    assert loaded.info.settings["n_hidden"] == 8
    assert not list(trained[0].parent.glob(".model*"))


def test_tensors_that_claim_ten_gigabytes_are_refused(folder):
    weights = folder / "classifier" / "weights.safetensors"
    content = weights.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + length])
    name = next(key for key in header if key != "__metadata__")
    header[name] = {"dtype": "F32", "shape": [10 * 2**28], "data_offsets": [0, 10 * 2**30]}
    changed = json.dumps(header).encode()
    weights.write_bytes(struct.pack("<Q", len(changed)) + changed + content[8 + length :])
    _listed_anew(folder)
    with pytest.raises(ArtifactError, match=r"damaged: .*header"):
        load_bundle(folder)


@pytest.mark.parametrize("setting", ["n_hidden", "n_kernels"])
def test_settings_that_claim_ten_gigabytes_are_refused(trained, folder, setting):
    settings = dataclasses.asdict(trained[1].classifier.settings)
    _listed_anew(folder, settings={**settings, setting: 10**9})
    with pytest.raises(ArtifactError, match=r"refused|damaged"):
        load_bundle(folder)
