"""Training: each part for its purpose, label names from training alone, nothing weakened unasked."""

import sys

import numpy as np
import pytest

from models.quick import quick_train
from surelabel import corpora, text
from surelabel.corpora import Corpus
from surelabel.evaluation.summary import training_lines
from surelabel.exceptions import CorpusError, InvalidInputError
from surelabel.models import TrainingSettings, evaluate_bundle, load_bundle, train
from surelabel.models.seen import hashes_of
from surelabel.text.linear import LinearClassifier


def test_each_part_is_used_for_its_purpose(bundle, divided):
    for role, part in (("training", "train"), ("filing", "filing"), ("calibration", "calibration"), ("test", "test")):
        assert np.array_equal(getattr(bundle.seen, role), np.sort(hashes_of(divided.part(part).texts)))
    assert bundle.predictor.calibration_.n_texts == len(divided.part("calibration"))
    assert bundle.policy.n_filing_ == len(divided.part("filing"))
    assert bundle.evaluation.n_texts == len(divided.part("test"))
    assert bundle.info.n_train == len(divided.part("train"))


def test_parts_are_drawn_if_there_are_none(corpus):
    bundle = quick_train(corpus)
    assert bundle.info.part_sizes == {"train": 1_050, "filing": 150, "calibration": 150, "test": 150}
    smaller = quick_train(corpus, test=0.2, calibration=100)
    assert smaller.info.part_sizes == {"train": 950, "filing": 150, "calibration": 100, "test": 300}


def test_the_same_seed_gives_the_same_model(corpus, bundle):
    again = quick_train(corpus, max_wrong="0.1")
    assert np.array_equal(bundle.predict_proba(corpus.texts[:9]), again.predict_proba(corpus.texts[:9]))
    other = quick_train(corpus, max_wrong="0.1", seed=1)
    assert not np.array_equal(other.seen.test, bundle.seen.test)


def _with_rare(corpus):
    """Return a divided corpus where a label occurs in one calibration text and one test text alone."""
    divided = corpora.draw_parts(corpus, 0)
    rows = [int(np.flatnonzero(divided.part_of == corpora.PARTS.index(part))[0]) for part in ("calibration", "test")]
    label_sets = [labels | {"unheard of"} if row in rows else labels for row, labels in enumerate(divided.label_sets)]
    changed = Corpus.from_label_sets("rare", divided.texts, label_sets, columns=divided.columns)
    return changed.with_parts(
        {part: np.flatnonzero(divided.part_of == place) for place, part in enumerate(corpora.PARTS) if place != 1}
    )


def test_labels_of_held_out_texts_alone_are_unknown(corpus):
    bundle = quick_train(_with_rare(corpus))
    assert "unheard of" not in bundle.label_names
    totals = np.concatenate(list(bundle.predictor.calibration_.totals.values()))
    assert np.isinf(totals).sum() == 1
    assert bundle.evaluation.n_unknown == 1
    assert bundle.evaluation.result.n_outside >= 1
    assert any("unheard of" in note for note in bundle.info.notes)
    assert min(bundle.evaluation.errors.values()) >= 1 / bundle.evaluation.n_texts


def test_levels_are_those_that_were_typed(corpus, bundle):
    assert dict(bundle.info.levels) == {
        "significance": "0.05",
        "max_wrong": "0.1",
        "max_missed": "0.1",
        "max_false": "0.05",
        "assurance": "0.95",
    }
    # A level that nothing can keep is kept all the same: nothing is filed, and the advice names another level.
    strict = quick_train(corpus, max_wrong="0.0001", max_missed="0.0001")
    assert strict.info.levels["max_wrong"] == strict.info.levels["max_missed"] == "0.0001"
    assert strict.policy.share_ == 0.0
    assert strict.policy.automation.max_wrong == 0.0001


def test_one_category_if_nothing_is_filed(corpus):
    bundle = quick_train(corpus, max_wrong="0.0001")
    assert bundle.info.categories == ()
    assert bundle.predictor.taxonomy is None


def test_filed_and_seen_texts_are_calibrated_apart(bundle, divided):
    assert bundle.info.categories == ("filed", "seen")
    calibration = divided.part("calibration")
    known = bundle.share_known(list(calibration.texts))
    filed = bundle.policy.file(bundle.predict_proba(list(calibration.texts)), known)
    assert 0 < filed.sum() < len(filed)
    # A text of people: its p-value is the rank among calibration texts that people see as well.
    texts = [
        text for text, is_filed in zip(divided.part("test").texts, _filed(bundle, divided), strict=True) if not is_filed
    ]
    p_values = bundle.predict_p(texts, [sorted(labels) for labels in bundle.predict(texts).label_sets])
    n_seen = int((~filed).sum())
    assert np.allclose(p_values * (n_seen + 1), np.round(p_values * (n_seen + 1)))


def _filed(bundle, divided):
    texts = list(divided.part("test").texts)
    return bundle.policy.file(bundle.predict_proba(texts), bundle.share_known(texts))


def test_groups_combine_with_filing(divided):
    bundle = quick_train(divided, group="region", max_wrong="0.1")
    assert bundle.groups == ("north", "south")
    assert set(bundle.info.categories) <= {"filed: north", "filed: south", "seen: north", "seen: south"}
    texts = divided.texts[:4]
    answers = bundle.answers(texts, groups=["north"] * 4, significance="0.2")
    assert len(answers) == 4
    with pytest.raises(InvalidInputError, match="region"):
        bundle.answers(texts)
    with pytest.raises(InvalidInputError):
        bundle.answers(texts, groups=["west"] * 4)


def test_groups_that_the_model_does_not_have_are_refused(bundle):
    with pytest.raises(InvalidInputError, match="groups"):
        bundle.predict(["a text"], groups=["north"])


def test_number_of_labels_as_classes(corpus):
    bundle = quick_train(corpus, cardinality=(2,), max_wrong="0.1")
    assert bundle.predictor.taxonomy.edges == (2,)
    with pytest.raises(InvalidInputError, match="both"):
        TrainingSettings(group="region", cardinality=(2,))


def test_a_measure_by_name_and_the_automatic_one(corpus):
    assert quick_train(corpus, measure="l2").info.measure == "l2"
    chosen = quick_train(corpus, measure="auto")
    assert chosen.info.measure in {"mixture", "log-loss"}
    totals = [len(totals) for totals in chosen.predictor.calibration_.totals.values()]
    assert sum(totals) == chosen.info.part_sizes["calibration"]


def test_best_guesses_for_f1(corpus):
    bundle = quick_train(corpus, best_guess="f1")
    assert bundle.thresholds is not None
    assert bundle.evaluation.result.guesses is not None
    assert quick_train(corpus, best_guess="f1").thresholds.values[0] == bundle.thresholds.values[0]


def test_recalibrated_probabilities_are_used_everywhere(corpus):
    bundle = quick_train(corpus, recalibrate=True)
    texts = list(corpus.texts[:5])
    expected = bundle.recalibration.transform(bundle.classifier.predict_proba(texts))
    assert np.array_equal(bundle.predict_proba(texts), expected)


def test_no_text_is_kept_unless_asked_for(corpus, tmp_path):
    words = {text[:30] for text in corpus.texts}
    folder = quick_train(corpus, max_wrong="0.1").save(tmp_path / "model")
    for file in folder.rglob("*"):
        if file.is_file():
            content = file.read_bytes().decode("utf-8", "replace")
            assert not any(text in content for text in words), file
    kept = quick_train(corpus, examples=True)
    assert len(kept.info.examples) == 3
    assert set(kept.info.examples) <= set(corpus.texts)


def test_an_interrupted_training_loads_its_classifier(corpus, tmp_path, monkeypatch):
    # A report takes seconds. jinja2 is looked up before anything is drawn, whatever other tests have imported.
    monkeypatch.setitem(sys.modules, "jinja2", None)
    target = tmp_path / "model"
    first = quick_train(corpus)

    def interrupted(*_args, **_options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(sys.modules["surelabel.models.train"], "evaluate_bundle", interrupted)
        with pytest.raises(KeyboardInterrupt):
            quick_train(corpus, target)
    assert not target.exists()
    with monkeypatch.context() as patched:
        patched.setattr(text.make("linear").__class__, "fit", interrupted)
        resumed = quick_train(corpus, target)
    assert np.array_equal(resumed.predict_proba(corpus.texts[:5]), first.predict_proba(corpus.texts[:5]))
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    # Other settings are another classifier.
    assert quick_train(corpus, target, options={"C": 0.1, "loss": "svm"}).info.settings["C"] == 0.1


def test_in_memory_corpora_are_told_apart(bundle, corpus):
    other = Corpus.from_label_sets("june", [f"{text} june" for text in corpus.texts[:50]], corpus.label_sets[:50])
    assert evaluate_bundle(bundle, other).n_texts == 50


def test_repeated_texts_are_kept_and_named(corpus):
    texts = ["Thank you!" if row % 10 == 0 else text for row, text in enumerate(corpus.texts)]
    bundle = quick_train(Corpus.from_label_sets("polite", texts, corpus.label_sets))
    assert bundle.evaluation.n_texts == bundle.info.part_sizes["test"]
    assert any("also occur" in note for note in bundle.info.notes)


def test_what_cannot_be_trained_is_refused(corpus, tmp_path):
    with pytest.raises(CorpusError, match="region2"):
        quick_train(corpus, group="region2")
    with pytest.raises(CorpusError, match="train"):
        quick_train(corpus.with_parts({"calibration": range(100), "filing": range(100, 200)}))
    with pytest.raises(InvalidInputError, match="separator"):
        train(corpus, separator=";")
    with pytest.raises(InvalidInputError, match="max_wrong"):
        train(corpus, max_wrong="1.5")
    (tmp_path / "file.txt").write_text("mine")
    with pytest.raises(InvalidInputError, match="file"):
        train(corpus, tmp_path / "file.txt")
    with pytest.raises(InvalidInputError):
        train(corpus, tmp_path)
    assert (tmp_path / "file.txt").read_text() == "mine"


def test_a_file_is_read_with_its_separator(corpus, tmp_path):
    path = tmp_path / "tickets.csv"
    rows = [
        f'"{text}",{"; ".join(sorted(labels))}' for text, labels in zip(corpus.texts, corpus.label_sets, strict=True)
    ]
    path.write_text("message,tags\n" + "\n".join(rows) + "\n", encoding="utf-8")
    bundle = quick_train(path, text="message", labels="tags", separator=";")
    assert bundle.label_names == tuple(sorted({label for labels in corpus.label_sets for label in labels}))
    assert evaluate_bundle(bundle, corpora.load(path, text="message", labels="tags", parts="own")).n_texts == 150


def test_labels_of_a_vocabulary(corpus, tmp_path):
    names = sorted({label for labels in corpus.label_sets for label in labels})
    path = tmp_path / "subjects.csv"
    rows = [f"http://example.org/{name},{name.title()},{name}s old" for name in names]
    path.write_text("uri,name,alternatives\n" + "\n".join(rows) + "\n", encoding="utf-8")
    bundle = quick_train(corpus, vocabulary=path)
    assert set(bundle.label_names) == {name.title() for name in names}
    assert bundle.uris[bundle.label_names.index("Oil")] == "http://example.org/oil"
    by_uri = [{f"http://example.org/{name}" for name in labels} for labels in corpus.label_sets]
    by_other = [{f"{name}s old" for name in labels} for labels in corpus.label_sets]
    for label_sets in (by_uri, by_other, corpus.label_sets):
        found = evaluate_bundle(bundle, Corpus.from_label_sets("other names", corpus.texts, label_sets))
        assert found.errors == bundle.evaluation.errors
    loaded = load_bundle(bundle.save(tmp_path / "model"))
    assert loaded.uris == bundle.uris


class Tiny(LinearClassifier):
    """A classifier that needs validation texts, as neural ones do."""

    kind = "tiny"
    needs_validation = True

    def _fit(self, training, validation, work_folder):
        self.stopped_by = list(validation.texts)
        return super()._fit(training, None, work_folder)


def test_a_random_tenth_of_training_texts_validates(corpus, divided, monkeypatch):
    monkeypatch.setattr("surelabel.models.fit.text.make", lambda _kind, **settings: Tiny(**settings))
    bundle = quick_train(divided, classifier="tiny", best_guess="f1")
    training = divided.part("train")
    held = bundle.classifier.stopped_by
    assert (bundle.info.n_train, len(held)) == (945, 105)
    assert set(held) <= set(training.texts)
    # They are training texts for everybody else.
    assert bundle.seen.used(held).all()
    assert bundle.evaluation.n_texts == 150
    # A file's own validation part is taken instead; a classifier that needs none learns from it.
    parts = {name: np.flatnonzero(divided.part_of == corpora.PARTS.index(name)) for name in divided.part_sizes}
    own = divided.with_parts({**parts, "train": parts["train"][:900], "validation": parts["train"][900:]})
    assert quick_train(own, classifier="tiny").classifier.stopped_by == list(own.part("validation").texts)
    monkeypatch.undo()
    assert quick_train(own).info.n_train == 1_050


def test_a_promise_that_cannot_be_kept_is_named(corpus):
    label_sets = [labels | {f"only {row}"} if row % 9 == 0 else labels for row, labels in enumerate(corpus.label_sets)]
    bundle = quick_train(Corpus.from_label_sets("tails", corpus.texts, label_sets))
    assert any("unknown or not listed" in note for note in bundle.info.notes)
    assert bundle.evaluation.errors["0.05"] > 0.05


@pytest.mark.parametrize("n_texts", [20, 60])
def test_very_few_texts(corpus, n_texts):
    bundle = quick_train(corpus.rows(range(n_texts)))
    assert bundle.policy.share_ == 0.0
    assert any("rule anything out" in note for note in bundle.info.notes)
    assert len(bundle.answers(corpus.texts[100:103], significance="0.2")) == 3


def test_training_says_how_labels_were_separated(corpus, tmp_path):
    path = tmp_path / "tickets.csv"
    rows = [f'"{one}",{"; ".join(sorted(row))}' for one, row in zip(corpus.texts, corpus.label_sets, strict=True)]
    path.write_text("text,labels\n" + "\n".join(rows) + "\n", encoding="utf-8")
    assert "';'" in training_lines(quick_train(path))[0]


def test_texts_that_people_see_where_all_calibration_texts_are_filed():
    easy = corpora.generate_synthetic(900, 4)
    bundle = quick_train(easy, max_wrong="0.5", calibration=30)
    assert bundle.policy.n_seen_ == 0
    assert bundle.info.categories == ("filed", "seen")
    text = "Zzz qqq unheard words without any sense"
    (answer,) = bundle.answers([text], significance="0.2")
    assert answer.decision == "read"
    # Nothing is known of texts like it: all answers are plausible.
    assert answer.size == answer.n_candidates
    assert bundle.predict([text]).credibility[0] == 1.0
