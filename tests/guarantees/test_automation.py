"""Filing: best guesses and their scores, wrong and unknown label-sets, the promise, files."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from surelabel._core import files
from surelabel.conformal import ConformalLabelSets
from surelabel.exceptions import ArtifactError, InvalidInputError, NotCalibratedError
from surelabel.guarantees.automation import Automation
from surelabel.guarantees.certify import certified_threshold
from surelabel.labels.constraints import LabelConstraints
from surelabel.labels.shortlists import Shortlists
from surelabel.measures import LogLoss, LpNorm, Mixture


def texts(rng, n, d=4, sharpness=0.2):
    probabilities = rng.beta(sharpness, sharpness, (n, d))
    return probabilities, rng.random((n, d)) < probabilities


@pytest.mark.parametrize("measure", [LogLoss(), LpNorm(2), "mixture"])
def test_scores_are_totals_of_best_guesses(measure):
    rng = np.random.default_rng(0)
    probabilities, labels = texts(rng, 300)
    if measure == "mixture":
        measure = Mixture().fit(labels)
    automation = Automation("0.2", measure=measure, min_labels=0).calibrate(probabilities, labels)
    new, _ = texts(rng, 50)
    guesses = automation.predict(new)
    assert automation.scores(new) == pytest.approx(automation.predictor_.scores(new, guesses.labels))
    assert automation.decide(new).tolist() == (automation.scores(new) < automation.threshold_).tolist()
    wrong = (automation.predict(probabilities).labels != labels).any(axis=1)
    scores = automation.scores(probabilities)
    assert automation.threshold_ == certified_threshold(scores, wrong, Fraction(1, 5), Fraction(19, 20))
    assert automation.share_ == automation.decide(probabilities).mean() > 0
    assert wrong[automation.decide(probabilities)].mean() < automation.wrong_bound_ <= 0.2 + 0.05


def test_unknown_labels_make_a_best_guess_wrong():
    probabilities = np.full((200, 2), [0.95, 0.05])
    sure = Automation(label_names=["a", "b"]).calibrate(probabilities, [{"a"}] * 200)
    assert sure.share_ == 1.0
    unknown = Automation(label_names=["a", "b"]).calibrate(probabilities, [{"a"}] * 150 + [{"a", "new"}] * 50)
    assert unknown.share_ == 0.0
    assert "25 %" in unknown.summary_
    assert math.isnan(unknown.wrong_bound_)


def test_true_label_sets_outside_the_candidates_are_wrong():
    probabilities = np.full((200, 3), 0.9)
    automation = Automation(max_labels=2).calibrate(probabilities, np.ones((200, 3)))
    assert automation.share_ == 0.0
    assert "100 %" in automation.summary_


def test_shortlists_are_decided_as_dense_probabilities():
    rng = np.random.default_rng(1)
    probabilities, labels = texts(rng, 300)
    dense = Automation("0.2", min_labels=0).calibrate(probabilities, labels)
    short = Automation("0.2", min_labels=0).calibrate(Shortlists.from_dense(probabilities, 4), labels)
    assert short.threshold_ == dense.threshold_
    new, _ = texts(rng, 50)
    assert short.decide(Shortlists.from_dense(new, 4)).tolist() == dense.decide(new).tolist()


def test_data_frames_are_matched_by_name_and_index():
    rng = np.random.default_rng(2)
    probabilities, labels = texts(rng, 400)
    frame = pd.DataFrame(probabilities, columns=list("abcd"), index=[f"text {k}" for k in range(400)])
    truth = pd.DataFrame(labels, columns=frame.columns, index=frame.index).iloc[rng.permutation(400), [2, 0, 3, 1]]
    plain, mixed = (Automation("0.5").calibrate(*part) for part in ((probabilities, labels), (frame, truth)))
    assert plain.threshold_ > 0.0
    assert (plain.threshold_, plain.share_) == (mixed.threshold_, mixed.share_)


def test_unlisted_true_labels_are_wrong():
    automation = Automation().calibrate(Shortlists([[0]] * 100, [[0.99]] * 100, 5), [{3}] * 100)
    assert automation.share_ == 0.0


def test_best_guesses_obey_constraints():
    rng = np.random.default_rng(2)
    probabilities, labels = texts(rng, 200, 3)
    labels[:, 1] |= labels[:, 0]
    rules = LabelConstraints(implications=[("a", "b")])
    automation = Automation("0.3", label_names=["a", "b", "c"], constraints=rules).calibrate(probabilities, labels)
    guesses = automation.predict(texts(rng, 100, 3)[0]).labels
    assert (guesses[:, 1] | ~guesses[:, 0]).all()


def test_nothing_and_everything():
    few = Automation().calibrate(*texts(np.random.default_rng(3), 20))
    assert few.share_ == 0.0
    assert not few.decide([[0.99, 0.01, 0.01, 0.01]]).any()
    assert "59" in few.summary_
    certain = np.eye(3)[np.arange(100) % 3] * 0.98 + 0.01
    every = Automation().calibrate(certain, certain > 0.5)
    assert every.threshold_ == math.inf
    assert every.decide(certain).all()


def wrong_shares(n_draws, n, seed):
    """How many draws of a corpus break the promise, judged on many new texts."""
    rng, broken = np.random.default_rng(seed), 0
    new, truth = texts(rng, 4000, 3)
    guesses = ConformalLabelSets(LogLoss(), 0).calibrate(new[:2], truth[:2]).predict(new).labels
    wrong = (guesses != truth).any(axis=1)
    for _ in range(n_draws):
        automation = Automation("0.1", "0.9", min_labels=0).calibrate(*texts(rng, n, 3))
        filed = automation.decide(new)
        broken += bool(filed.any()) and wrong[filed].mean() > 0.1 + 2 * math.sqrt(0.09 / filed.sum())
    return broken


def test_the_promise_is_kept_by_most_certifications():
    assert wrong_shares(60, 300, 4) <= binom.ppf(0.999, 60, 0.1)


@pytest.mark.slow
def test_the_promise_over_many_certifications():
    assert wrong_shares(1000, 500, 5) <= binom.ppf(0.999, 1000, 0.1)


@pytest.mark.parametrize("measure", [LpNorm(4), Mixture(weight=0.4)])
def test_files(measure, tmp_path):
    rng = np.random.default_rng(6)
    probabilities, labels = texts(rng, 300)
    measure = measure.fit(labels) if isinstance(measure, Mixture) else measure
    automation = Automation("0.15", "0.9", measure, 0, 3, ["a", "b", "c", "d"]).calibrate(probabilities, labels)
    automation.save(tmp_path / "automation.npz")
    again = Automation.load(tmp_path / "automation.npz")
    for name in ("max_wrong", "assurance", "threshold_", "share_", "wrong_bound_", "summary_"):
        assert getattr(again, name) == getattr(automation, name)
    new, _ = texts(rng, 40)
    assert again.decide(new).tolist() == automation.decide(new).tolist()
    assert again.predict(new).label_sets == automation.predict(new).label_sets
    assert again.calibrate(probabilities, labels).threshold_ == automation.threshold_


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_wrong", "1e-999999999"),
        ("assurance", None),
        ("certificate", [math.nan, 0.5, 0.5]),
        ("certificate", [0.5, 2.0, 0.5]),
        ("certificate", [0.5, 0.5, math.nan]),
        ("certificate", [0.5, 0.5]),
        ("predictor", {}),
        ("predictor", None),
    ],
)
def test_damaged_files_are_refused(name, value, tmp_path):
    path = tmp_path / "automation.npz"
    Automation("0.2", min_labels=0).calibrate(*texts(np.random.default_rng(7), 200)).save(path)
    header, arrays = files.read_arrays(path, "automation")
    if name in arrays:
        arrays[name] = np.array(value)
    else:
        header[name] = value
    files.write_arrays(path, header, arrays)
    with pytest.raises(ArtifactError, match="damaged"):
        Automation.load(path)


def test_bad_input():
    for wrong in (0, 1, "1.5", True, None):
        with pytest.raises(InvalidInputError):
            Automation(max_wrong=wrong)
    with pytest.raises(NotCalibratedError, match="calibrate"):
        Automation().decide([[0.5]])
    with pytest.raises(NotCalibratedError, match="calibrate"):
        Automation().save("nowhere.npz")
    with pytest.raises(InvalidInputError, match="labels"):
        Automation().calibrate([[0.5, 0.5]], [[1]])
