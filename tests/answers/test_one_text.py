"""The quick way of answering for a single text says what the general way says."""

import functools
import math

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel import (
    Automation,
    ByCardinality,
    ByGroup,
    ConformalLabelSets,
    LabelConstraints,
    LogLoss,
    LpNorm,
    Mixture,
    TagBounds,
)
from surelabel._kernels import compiling
from surelabel._kernels import one_row as kernels
from surelabel._kernels.one_row import scan_row
from surelabel.answers import answer_probabilities, one_text
from surelabel.engines import one_row
from surelabel.exceptions import InvalidInputError
from surelabel.guarantees.decisions import Decisions
from surelabel.guarantees.familiarity import Familiarity

pytestmark = pytest.mark.filterwarnings("ignore::surelabel.exceptions.CalibrationWarning")


def _texts(rng, n_labels, digits):
    """Draw probabilities, and label-sets that they are right about; rounded, so that totals tie."""
    probabilities = rng.beta(0.2, 0.6, (120, n_labels)).round(digits)
    return probabilities, rng.random(probabilities.shape) < probabilities


def _fitted(measure, n_labels, seed):
    """Fit a mixture on label-sets of its own, refined or with hubs if its name says so."""
    if isinstance(measure, (LogLoss, LpNorm)):
        return measure
    settings, part = measure
    rng = np.random.default_rng([seed, 7])
    probabilities, labels = _texts(rng, n_labels, 3)
    mixture = Mixture(**dict(settings)).fit(labels[:60])
    if part == "refined":
        return mixture.refine(probabilities[60:], labels[60:])
    return mixture.with_hubs(probabilities[60:], labels[60:], [0]) if part == "hubs" else mixture


@functools.lru_cache
def _model(measure, n_labels, limits, seed, score):
    """Calibrate a predictor, and decisions about its texts unless there is no score."""
    measure = _fitted(measure, n_labels, seed)
    rng = np.random.default_rng(seed)
    probabilities, labels = _texts(rng, n_labels, 1 + seed % 3)
    names = [f"label {k}" for k in range(n_labels)] if seed % 2 else None
    predictor = ConformalLabelSets(measure, *limits, label_names=names).calibrate(probabilities, labels)
    if score is None:
        return predictor, None
    reference = ConformalLabelSets(measure, *limits).calibrate(probabilities, labels) if score == "size" else None
    automation = Automation(
        max_wrong=0.3, measure=measure, min_labels=limits[0], max_labels=limits[1], score=score, reference=reference
    )
    decisions = Decisions(automation, TagBounds(), Familiarity(max_flagged=0.1), max_choices=3, max_tags=4)
    # Few texts: counting their sets, which "size" asks for, takes nearly all the time of this test.
    return predictor, decisions.calibrate(probabilities[:40], labels[:40], rng.random(40).round(1))


_MIXTURES = [
    ((("weight", 0.5),), "plain"),
    ((("weight", 0.9), ("temperature", 0.0)), "plain"),
    ((("weight", 0.7), ("neighbours", 0.3), ("discount", 0.5)), "plain"),
    ((("weight", 0.6),), "refined"),
    ((("weight", 0.6),), "hubs"),
    ((("weight", 0.0),), "plain"),
]


def _together(*arguments, **asked):
    """Answer in the general way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(one_text, "_FEW_TEXTS", 0)
        return answer_probabilities(*arguments, **asked)


@settings(max_examples=80)
@given(
    measure=st.sampled_from([LogLoss(), LpNorm(1), LpNorm(2), *_MIXTURES]),
    n_labels=st.sampled_from([1, 4, 66]),
    limits=st.sampled_from([(1, None), (0, 3), (1, 2)]),
    score=st.sampled_from([None, "total", "margin", "size", "probability"]),
    seed=st.integers(0, 2),
    level=st.sampled_from(["0.02", "0.05", "0.2", "0.6", "0.95"]),
    top=st.sampled_from([0, 1, 5, 40]),
    describe=st.booleans(),
    texts_seed=st.integers(0, 10_000),
)
def test_one_text_is_answered_as_among_others(measure, n_labels, limits, score, seed, level, top, describe, texts_seed):
    limits = (limits[0], None if limits[1] is None else min(limits[1], n_labels))
    predictor, decisions = _model(measure, n_labels, limits, seed, score)
    rng = np.random.default_rng([seed, texts_seed])
    # Rounded: ties and certainty are frequent.
    texts = rng.beta(0.3, 0.6, (6, n_labels)).round(1)
    known = np.array([1.0, 0.0, math.nan, 0.4, 0.7, 0.2])
    asked = {"significance": level, "top": top, "describe": describe, "decisions": decisions}
    together = _together(predictor, texts, known_words=known, **asked)
    alone = [
        answer_probabilities(predictor, texts[i : i + 1], known_words=known[i : i + 1], **asked)[0] for i in range(6)
    ]
    assert alone == together
    assert answer_probabilities(predictor, texts, known_words=known, **asked) == together


@pytest.mark.parametrize(
    "different",
    [
        {"taxonomy": ByGroup()},
        {"taxonomy": ByCardinality((1, 2))},
        {"constraints": LabelConstraints(exclusions=[(0, 1)])},
        {"search": "powerset"},
    ],
    ids=str,
)
def test_what_has_categories_or_constraints_is_answered_as_among_others(different):
    probabilities, labels = _texts(np.random.default_rng(3), 5, 1)
    groups = ["a", "b"] * 60 if isinstance(different.get("taxonomy"), ByGroup) else None
    predictor = ConformalLabelSets(LogLoss(), **different).calibrate(probabilities, labels, groups)
    asked = {"significance": "0.2", "describe": True}
    together = _together(predictor, probabilities[:6], **asked, groups=groups and groups[:6])
    for i in range(6):
        own = groups and groups[i : i + 1]
        assert answer_probabilities(predictor, probabilities[i : i + 1], **asked, groups=own) == [together[i]]


@pytest.mark.parametrize("measure", [LogLoss(), _MIXTURES[0], _MIXTURES[3]])
def test_the_quick_way_is_taken(monkeypatch, measure):
    predictor, decisions = _model(measure, 7, (1, 3), 1, "total")
    answer_probabilities(predictor, np.full((1, 7), 0.5), significance="0.2", decisions=decisions)
    monkeypatch.setattr(ConformalLabelSets, "bind", None)
    rows = np.array([[0.9, 0.1, 0.4, 0.0, 0.0, 0.0, 0.5]])
    answer = answer_probabilities(predictor, rows, significance="0.2", describe=True, decisions=decisions)[0]
    assert answer.size > 1
    assert answer.description
    assert answer.decision


def test_what_the_quick_way_leaves_to_the_general_one(monkeypatch):
    predictor, _ = _model(LogLoss(), 7, (1, 3), 1, None)
    maximum, _ = _model(LpNorm(np.inf), 7, (1, 3), 1, None)
    rows = np.full((1, 7), 0.4)
    monkeypatch.setattr(one_row, "FIRST_STEPS", 1)
    for one, level in ((predictor, "0.2"), (predictor, "0.001"), (maximum, "0.2")):
        answer = answer_probabilities(one, rows, significance=level, describe=True)[0]
        assert answer == _together(one, np.repeat(rows, 2, axis=0), significance=level, describe=True)[0]
        both = answer_probabilities(one, np.vstack([rows, np.eye(7)[:1]]), significance=level, describe=True)
        assert both == [answer, *_together(one, np.eye(7)[:1], significance=level, describe=True)]
    one_text._few_texts.cache_clear()
    with pytest.raises(InvalidInputError, match="'k' parameter"):
        answer_probabilities(predictor, rows, significance="0.2", top=-1)
    with pytest.raises(InvalidInputError, match="in row 0, column 2"):
        answer_probabilities(predictor, np.array([[0.1, 0.2, 1.5, 0.1, 0.1, 0.1, 0.1]]), significance="0.2")


def test_tags_of_a_row_by_hand():
    labels = np.empty(5, dtype=np.int64)
    assert scan_row(np.array([[0.2, 0.9, 0.5, 0.9, 0.1]]), (0.2, 0.6), labels) == (4, 2)
    assert labels[:4].tolist() == [1, 3, 2, 0]
    assert scan_row(np.array([[0.2, np.nan, 0.5, 0.9, 0.1]]), (0.2, 0.6), labels)[0] == -1


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
@given(st.integers(0, 2**32 - 1))
def test_rows_are_cut_in_python_as_by_compiled_code(seed):
    rng = np.random.default_rng(seed)
    costs = tuple(rng.choice([0.1, 0.3, 0.7, rng.random()], (3, 6)) for _ in range(2))
    limits, probabilities = (int(rng.integers(0, 3)), 4), rng.random((3, 6))
    probabilities[2, 5] = rng.choice([0.5, math.nan])
    arguments = probabilities, (0.3, 0.6), costs, np.sort(rng.random(20) * 4), 4 * rng.random(), limits, 10
    compiled = kernels.cut_rows.__wrapped__
    cut = []
    for run in (compiled, functools.partial(compiling._run, compiling._interpreted(compiled))):
        counts, values = np.zeros((3, 10), dtype=np.int64), np.zeros((3, 38))
        words = np.zeros((3, 38, 1), dtype=np.uint64)
        run(*arguments, counts, words, values)
        cut.append([counts.tolist(), words.tolist(), values.tolist()])
    assert cut[0] == cut[1]


def test_what_is_wrong_with_one_of_a_few_texts_is_said_of_its_row():
    for measure in (LogLoss(), _MIXTURES[0]):
        predictor, _ = _model(measure, 7, (1, 3), 1, None)
        rows = np.full((3, 7), 0.4)
        rows[1, 2] = 1.5
        with pytest.raises(InvalidInputError, match="in row 1, column 2"):
            answer_probabilities(predictor, rows, significance="0.2")
