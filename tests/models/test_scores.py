"""Scores of a tagger that was not trained here: nothing is trained, and the promises are the same."""

import json

import numpy as np
import pytest

from models.quick import quick_train
from surelabel.corpora import Corpus, Vocabulary
from surelabel.corpora.vocabulary import Concept
from surelabel.exceptions import InvalidInputError
from surelabel.models import calibrate_bundle, evaluate_bundle, load_bundle

LABELS = ["gas", "gold", "oil", "tin"]


def tagged(n_texts=2_000, seed=0):
    """Return texts with labels, and the scores of a tagger that does not list every label."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n_texts, 4)) < (0.5, 0.3, 0.2, 0.1)
    truth[~truth.any(axis=1), 0] = True
    noisy = np.clip(np.where(truth, 0.8, 0.15) + rng.normal(0, 0.15, truth.shape), 0.01, 0.99)
    scores = [[(LABELS[k], round(float(p), 3)) for k, p in enumerate(row) if p > 0.1] for row in noisy]
    label_sets = [{LABELS[k] for k in np.flatnonzero(row)} for row in truth]
    texts = [f"text number {row}" for row in range(n_texts)]
    return Corpus.from_label_sets("tagged", texts, label_sets, scores=scores)


@pytest.fixture(scope="module")
def corpus():
    return tagged()


@pytest.fixture(scope="module")
def bundle(corpus):
    return quick_train(corpus, classifier="scores", options={}, max_wrong="0.1")


def test_parts_of_a_tagger(bundle):
    assert bundle.info.part_sizes == {"train": 400, "filing": 600, "calibration": 600, "test": 400}
    assert bundle.info.classifier == "scores"
    assert set(bundle.label_names) == set(LABELS)


def test_promises_are_kept_on_new_texts(bundle):
    found = evaluate_bundle(bundle, tagged(4_000, seed=1))
    assert abs(found.errors["0.1"] - 0.1) < 0.04
    assert found.decisions["file"].wrong < 0.13
    assert found.decisions["seen"].missed < 0.14


def test_answers_take_scores(bundle, corpus):
    answers = bundle.answers(corpus.texts[:3], scores=corpus.scores[:3])
    assert all(set(answer.labels) <= set(LABELS) for answer in answers)
    with pytest.raises(InvalidInputError, match="scores"):
        bundle.answers(corpus.texts[:3])


def test_saved_and_loaded(bundle, corpus, tmp_path):
    loaded = load_bundle(bundle.save(tmp_path / "model"))
    given = corpus.texts[:9], corpus.scores[:9]
    assert np.array_equal(loaded.predict_proba(*given), bundle.predict_proba(*given))


def test_a_file_with_scores(corpus, tmp_path):
    path = tmp_path / "tagged.jsonl"
    rows = [
        {"id": name, "text": text, "labels": sorted(labels), "scores": dict(scores)}
        for name, text, labels, scores in zip(corpus.ids, corpus.texts, corpus.label_sets, corpus.scores, strict=True)
    ]
    rows[0]["labels"] = None  # not tagged
    rows[1]["labels"] = ["outside the vocabulary"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    bundle = quick_train(path, scores="scores", options={}, max_wrong="0.1")
    assert bundle.info.classifier == "scores"
    assert sum(bundle.info.part_sizes.values()) == len(rows) - 1
    assert bundle.evaluation.errors["0.1"] < 0.2


def test_shortlists_of_thousands_of_labels(tmp_path):
    rng = np.random.default_rng(0)
    names = [f"label {k:04d}" for k in range(1_500)]
    label_sets, scores = [], []
    for _ in range(1_200):
        listed = rng.permutation(1_500)[:12]
        p = rng.beta(0.2, 1.0, 12).round(3)
        true = {names[k] for k, is_true in zip(listed, rng.random(12) < p, strict=True) if is_true}
        label_sets.append(true or {names[listed[0]]})
        scores.append([(names[k], float(q)) for k, q in zip(listed, p, strict=True)])
    many = Corpus.from_label_sets("many", [f"text {row}" for row in range(1_200)], label_sets, scores=scores)
    bundle = quick_train(many, classifier="scores", options={})
    assert len(bundle.label_names) > 1_000
    # Some labels occur in no text that the curve was fitted on: lists cannot have them, and the model names that.
    assert bundle.evaluation.errors["0.1"] <= bundle.evaluation.result.n_outside / bundle.evaluation.n_texts + 0.1
    assert any("unknown or not listed" in note for note in bundle.info.notes)
    loaded = load_bundle(bundle.save(tmp_path / "model"))
    given = many.texts[:20]
    assert [a.record() for a in loaded.answers(given, scores=many.scores[:20], significance="0.1")] == [
        a.record() for a in bundle.answers(given, scores=many.scores[:20], significance="0.1")
    ]
    more = calibrate_bundle(loaded, many.rows(range(1_200)), max_missed="0.2")
    assert more.policy.tag_bounds.max_missed == 0.2
    other = Corpus.from_label_sets("june", [f"june {row}" for row in range(90)], label_sets[:90], scores=scores[:90])
    grown = calibrate_bundle(loaded, other, add=True)
    assert grown.predictor.calibration_.n_texts == bundle.predictor.calibration_.n_texts + 90


def test_a_vocabulary_and_its_broader_concepts():
    names = Vocabulary(
        (
            Concept("u:1", "energy"),
            Concept("u:2", "oil", ("crude",), broader=("u:1",)),
            Concept("u:3", "gold", never_file=True),
            Concept("u:4", "tin", is_deprecated=True),
        )
    )
    rng = np.random.default_rng(0)
    label_sets, scores = [], []
    for row in range(900):
        given = {"energy", "oil"} if row % 3 == 0 else {"energy"} if row % 3 == 1 else {"gold"}
        label_sets.append(given | {"tin"} if row % 50 == 2 else given)
        found = {"u:1": "energy" in given, "CRUDE": "oil" in given, "gold": "gold" in given, "tin": False}
        scores.append(
            [(name, float(np.clip(0.9 * is_in + 0.05 + rng.normal(0, 0.05), 0, 1))) for name, is_in in found.items()]
        )
    corpus = Corpus.from_label_sets("concepts", [f"text {row}" for row in range(900)], label_sets, scores=scores)
    bundle = quick_train(corpus, classifier="scores", options={}, vocabulary=names, constraints="broader")
    assert dict(zip(bundle.label_names, bundle.uris, strict=True)) == {"energy": "u:1", "oil": "u:2", "gold": "u:3"}
    assert bundle.predictor.constraints.implications == (("oil", "energy"),)
    assert bundle.info.never_file == bundle.policy.never_file == ("gold",)
    # "tin" is deprecated: never offered, and an error where it is true.
    assert bundle.evaluation.n_unknown > 0
    assert any("no known label" in note for note in bundle.info.notes)
    # Only what the tagger can never give counts as an error, whether or not a training text has it.
    [note] = [note for note in bundle.info.notes if "'tin'" in note]
    assert "tagger" in note
    assert note.startswith("1 ")
    (answer,) = bundle.answers(["x"], scores=[{"crude": 0.95, "energy": 0.05, "gold": 0.05}])
    assert "energy" in answer.labels or "oil" not in answer.labels
    uri_of = {"energy": "u:1", "oil": "u:2", "gold": "u:3"}
    assert answer.record()["uris"] == [uri_of[label] for label in answer.labels]
    with pytest.raises(InvalidInputError, match="vocabulary"):
        quick_train(corpus, classifier="scores", options={}, constraints="broader")
