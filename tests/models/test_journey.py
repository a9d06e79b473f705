"""The whole journey in one call."""

import json

import numpy as np
import pytest

import surelabel
from bundle_cases import corpus
from surelabel import LpNorm, load_bundle
from surelabel.exceptions import InvalidInputError
from surelabel.models import TrainingSettings, train_bundle


def test_a_file_becomes_a_model(tmp_path):
    found = corpus()
    lines = [{"body": text, "tags": sorted(names)} for text, names in zip(found.texts, found.label_sets, strict=True)]
    (tmp_path / "tickets.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    steps = set()
    bundle = surelabel.train(
        tmp_path / "tickets.jsonl",
        tmp_path / "model",
        measure="L4",
        compare=False,
        progress=lambda name, done, total: steps.add(name),
        text="body",
        labels="tags",
        calibration=59,
        name="tickets",
    )
    assert (bundle.info.name, bundle.info.measure, bundle.info.part_sizes["calibration"]) == ("tickets", "L4", 59)
    assert load_bundle(tmp_path / "model").info == bundle.info
    assert {"reading texts", "saving the model"} <= steps


def test_a_corpus_stays_in_memory():
    bundle = surelabel.train(corpus(), measure=LpNorm(2), compare=False)
    same = train_bundle(corpus(), TrainingSettings(measure=LpNorm(2), compared={}))
    assert np.array_equal(bundle.predictor.calibration_.totals, same.predictor.calibration_.totals)
    assert list(bundle.evaluation) == ["L2"]
    assert bundle.report is None


def test_what_says_how_a_file_is_read_needs_a_file():
    with pytest.raises(InvalidInputError, match="labels, which say how a file is read"):
        surelabel.train(corpus(), labels="tags")
    with pytest.raises(InvalidInputError, match="mahalanobis"):
        surelabel.train(corpus(), measure="mahalanobi")
