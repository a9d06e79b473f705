"""Texts of training are noticed text by text, whatever file they come in."""

import dataclasses
import logging

import numpy as np
import pytest

from bundle_cases import corpus, small_bundle
from surelabel import corpora, load_bundle
from surelabel.corpora import Corpus
from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.models import add_to_calibration, calibrate_bundle, evaluate_bundle
from surelabel.models.texts import SeenTexts, hashes_of, repeated_texts


@pytest.fixture(scope="module")
def bundle():
    trained = corpus().part("train", "validation")
    return dataclasses.replace(small_bundle(), seen=SeenTexts.of(trained.texts, corpus().part("calibration").texts))


def _file(*parts):
    """Return texts as a file of their own, in another spelling; ids are numbers."""
    texts = [text.upper() for part in parts for text in part.texts]
    sets = [labels for part in parts for labels in part.label_sets]
    return Corpus.from_label_sets("a file", texts, sets, label_names=corpus().label_names)


def _other(n_texts=150):
    whole = corpora.load("synthetic", n_texts=n_texts, n_labels=8, seed=5, test=0, validation=0, calibration=0)
    return whole.part("train")


def test_hashes_do_not_depend_on_case_and_white_space_and_empty_texts_have_none():
    one, other, empty = hashes_of(["Wheat  rises", "wheat rises", "  "])
    assert one == other != 0
    assert empty == 0
    seen = SeenTexts.of(["", "wheat rises"], ["corn"])
    assert seen.in_training(["WHEAT RISES", "", "corn"]).tolist() == [True, False, False]
    assert seen.in_calibration(["WHEAT RISES", "", "corn"]).tolist() == [False, False, True]


def test_repeated_texts_are_counted_once_per_part():
    whole = corpora.load("synthetic", n_texts=6, n_labels=3, test=0, validation=0, calibration=0)
    texts = ("a", "b", "A", "c", "b ", "")
    parts = {"train": [0, 1], "calibration": [2, 3], "test": [4, 5]}
    mixed = dataclasses.replace(whole, texts=texts).with_parts({k: np.array(v) for k, v in parts.items()})
    assert repeated_texts(mixed, ("calibration", "test")) == {"calibration": 1, "test": 1}


def test_calibrate_refuses_texts_of_training(bundle):
    train, other = corpus().part("train"), _other()
    mixed = _file(other, train)
    for calibrate in (calibrate_bundle, add_to_calibration):
        with pytest.raises(InvalidInputError, match=f"{len(train)} of the {len(train) + 150} texts were used to train"):
            calibrate(bundle, mixed)
    left = calibrate_bundle(bundle, mixed, skip_training_texts=True)
    assert left.predictor.calibration_.n_texts == 150
    with pytest.raises(InvalidInputError, match=r"All \d+ texts were used to train"):
        calibrate_bundle(bundle, _file(train), skip_training_texts=True)


def test_evaluate_leaves_texts_of_training_out_and_says_so(bundle, caplog):
    train, other = corpus().part("train"), _other()
    with caplog.at_level(logging.WARNING):
        mixed = evaluate_bundle(bundle, _file(train, other))
    assert f"{len(train)} texts were used to train the model; they are left out, 150 are new." in caplog.text
    alone = evaluate_bundle(bundle, _file(other))
    # Texts are named by their row in the file, and rows of training come first.
    named, again = (figures.conditional.sure_but_wrong for figures in (mixed, alone))
    assert [int(text.id) for text in named] == [int(text.id) + len(train) for text in again]
    same = dataclasses.replace(mixed.conditional, sure_but_wrong=again)
    assert dataclasses.replace(mixed, conditional=same) == alone


def test_a_text_is_added_once(bundle):
    with pytest.raises(InvalidInputError, match="calibrated with 90 of these 90 texts already"):
        add_to_calibration(bundle, _file(corpus().part("calibration")))
    added = add_to_calibration(bundle, _file(_other()))
    with pytest.raises(InvalidInputError, match="calibrated with 150 of these 270 texts already"):
        add_to_calibration(added, _file(corpus().part("test"), _other()))
    assert len(add_to_calibration(added, _file(corpus().part("test"))).seen.calibration) >= 200


def test_hashes_go_with_the_bundle(bundle, tmp_path):
    loaded = load_bundle(bundle.save(tmp_path / "model"))
    assert np.array_equal(loaded.seen.training, bundle.seen.training)
    assert np.array_equal(loaded.seen.calibration, bundle.seen.calibration)
    path = tmp_path / "texts.npz"
    for wrong in ({"training": np.zeros(3)}, {"training": np.zeros(3), "calibration": np.zeros(3, np.uint64)}):
        np.savez(path, **wrong)
        with pytest.raises(ArtifactError, match="damaged"):
            SeenTexts.load(path)
