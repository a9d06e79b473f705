"""The promises of `train` on new texts, over many divisions of a corpus: a test of the whole product.

A division trains on some texts and is measured on all others. The bands are 3.2 standard errors wide, so that a promise
that holds fails once in 700 cells.
"""

import functools
import warnings
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

from models.quick import mixed, quick_train
from surelabel.corpora import Corpus
from surelabel.exceptions import SurelabelWarning
from surelabel.models import BundleEvaluation, evaluate_bundle

_ERRORS = 3.2


class Division(NamedTuple):
    """What is measured in a division, and the errors that count against the promise, by texts and level."""

    found: BundleEvaluation
    counted: dict[str, dict[str, float]]


def long_tail(n_texts, seed=0):
    """Return texts with 8 frequent labels, and in 4 % of them one of 200 rare ones, of a word each.

    Most rare labels occur once in a division. Parts that keep such texts in training, as stratified ones do, break the
    promise: nearly 4 % of new texts have a label that training does not know, and no calibration text has one.
    """
    base, rng = mixed(n_texts, 8, seed), np.random.default_rng(seed)
    texts, label_sets = [], []
    for text, labels in zip(base.texts, base.label_sets, strict=True):
        rare, has_rare = int(rng.integers(200)), rng.random() < 0.04
        texts.append(f"{text} rareword{rare}" if has_rare else text)
        label_sets.append(labels | {f"rare {rare}"} if has_rare else labels)
    return Corpus.from_label_sets("long tail", texts, label_sets)


def _division(corpus, seed, n_texts, **settings):
    """Train on a random sample, measure on all other texts."""
    order = np.random.default_rng(seed).permutation(len(corpus))
    sample, rest = corpus.rows(np.sort(order[:n_texts])), corpus.rows(np.sort(order[n_texts:]))
    bundle = quick_train(sample, seed=seed, filing=0.25, calibration=0.25, test=0, **settings)
    with warnings.catch_warnings(action="ignore", category=SurelabelWarning):
        found = evaluate_bundle(bundle, rest)
    return Division(found, _counted(bundle, found))


def _counted(bundle, found):
    """Return the errors by texts and level. Where the threshold is infinite every label-set is let in.

    What is wrong there are labels that training does not have. The theorem counts no error: its prediction set would
    have them too, and the model says that it cannot keep this level.
    """
    calibration = bundle.predictor.calibration_
    counted = {}
    for texts, rates in {"filed": found.errors_filed, "seen": found.errors_seen}.items():
        group = texts if texts in calibration.groups else "seen"
        for level, rate in (rates or {}).items():
            is_infinite = np.isposinf(calibration.thresholds(Fraction(level), None, np.array([group]))).any()
            counted.setdefault(texts, {})[level] = 0.0 if is_infinite else rate
    share = found.n_filed / found.n_texts
    shares = {"filed": share, "seen": 1 - share}
    counted["all"] = {
        level: sum(shares[texts] * rates[level] for texts, rates in counted.items()) for level in found.errors
    }
    return counted


@functools.cache
def _divisions(kind, n_divisions):
    corpus = {"plain": mixed, "long tail": long_tail}[kind](1_600)
    levels = {"max_wrong": "0.1", "max_missed": "0.1", "assurance": "0.9"}
    return [_division(corpus, seed, 600, **levels) for seed in range(n_divisions)]


def _mean_and_error(values, level):
    """Return the mean over divisions, and its standard error: at least that of errors with 150 calibration texts."""
    kept = np.array([value for value in values if value is not None], dtype=np.float64)
    spread = max(kept.std(ddof=1), np.sqrt(level * (1 - level) / 150))
    return kept.mean(), spread / np.sqrt(len(kept))


def _check(kind, n_divisions):
    found = _divisions(kind, n_divisions)
    if kind == "plain":
        assert np.mean([one.n_filed > 0 for one, _ in found]) > 0.5
    for level in ("0.05", "0.1", "0.2"):
        for texts in ("all", "filed", "seen"):
            values = [counted.get(texts, {}).get(level) for _, counted in found]
            if sum(value is not None for value in values) < 3:
                continue
            mean, error = _mean_and_error(values, float(level))
            assert mean <= float(level) + _ERRORS * error, (kind, texts, level)
        mean, error = _mean_and_error([one.errors[level] for one, _ in found], float(level))
        assert mean >= 0.6 * float(level) - _ERRORS * error, (kind, level)
    mean, error = _mean_and_error([one.decisions["seen"].missed for one, _ in found], 0.1)
    assert mean <= 0.1 + _ERRORS * error, kind
    # Of 100 models with assurance 90 %, at most ten file more wrong texts than were asked for.
    n_broken = sum((one.decisions["file"].wrong or 0.0) > 0.1 for one, _ in found)
    assert n_broken <= 0.1 * len(found) + _ERRORS * np.sqrt(0.09 * len(found))


def test_promises_on_new_texts():
    _check("plain", 10)


def test_promises_with_labels_that_training_does_not_have():
    found = _divisions("long tail", 12)
    assert np.mean([one.n_unknown / one.n_texts for one, _ in found]) > 0.01
    _check("long tail", 12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "long tail"])
def test_promises_over_many_divisions(kind):
    _check(kind, 100)
