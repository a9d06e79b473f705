"""Outcomes: what is remembered, settled, refused, saved and resumed."""

import numpy as np
import pytest

from surelabel import ByGroup, ConformalLabelSets, LogLoss, OnlineConformal
from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.guarantees.outcomes import OutcomeError, Outcomes

NAMES = ("a", "b", "c")


def drawn(n_texts, seed):
    rng = np.random.default_rng(seed)
    probabilities = rng.beta(0.5, 0.5, size=(n_texts, 3))
    labels = rng.random((n_texts, 3)) < probabilities
    labels[~labels.any(axis=1), 0] = True
    return probabilities, labels


@pytest.fixture
def predictor():
    return ConformalLabelSets(LogLoss(), label_names=NAMES).calibrate(*drawn(199, 0))


def test_a_fixed_level_misses_what_its_sets_do_not_hold(predictor):
    probabilities, labels = drawn(50, 1)
    outcomes = Outcomes(predictor)
    outcomes.remember(probabilities, range(50), significance="0.3")
    missed = outcomes.settle(range(49, -1, -1), labels[::-1])  # in any order
    held = predictor.predict_set(probabilities, significance="0.3").contains(labels)
    assert missed[::-1].tolist() == (~held).tolist()
    assert (outcomes.n_settled_, outcomes.n_missed_, outcomes.n_pending_) == (50, int((~held).sum()), 0)
    assert outcomes.watch.state.n_seen == 50


def test_groups_and_assurance_count_as_they_were_asked_for():
    probabilities, labels = drawn(200, 0)
    groups = ["x", "y"] * 100
    divided = ConformalLabelSets(LogLoss(), taxonomy=ByGroup()).calibrate(probabilities, labels, groups=groups)
    probabilities, labels = drawn(40, 1)
    outcomes = Outcomes(divided)
    outcomes.remember(probabilities, range(40), significance="0.2", assurance="0.9", groups=["x", "y"] * 20)
    sets = divided.predict_set(probabilities, significance="0.2", assurance="0.9", groups=["x", "y"] * 20)
    assert outcomes.settle(range(40), labels).tolist() == (~sets.contains(labels)).tolist()


def test_an_adapting_level_is_that_of_online_conformal(predictor):
    probabilities, labels = drawn(60, 1)
    alone = OnlineConformal(predictor, "0.1")
    outcomes = Outcomes(predictor, OnlineConformal(predictor, "0.1"))
    for row in range(60):
        one = slice(row, row + 1)
        alone.predict_set(probabilities[one], [row])
        outcomes.remember(probabilities[one], [row])
        assert outcomes.settle([row], labels[one]).tolist() == alone.update(labels[one], [row]).tolist()
    assert outcomes.online.level_ == alone.level_
    fixed = predictor.predict_set(probabilities, significance="0.1").contains(labels)
    assert outcomes.n_fixed_missed_ == int((~fixed).sum())


@pytest.mark.parametrize(("identity", "labels", "reason"), [
    ("never", ["a"], "unknown"), ("done", ["a"], "settled"), ("done", ["a", "b"], "contradicts"),
])  # fmt: skip
def test_outcomes_that_cannot_be_taken_change_nothing(predictor, identity, labels, reason):
    outcomes = Outcomes(predictor)
    outcomes.remember([[0.9, 0.1, 0.1], [0.2, 0.9, 0.1]], ["done", "waits"], significance="0.1")
    outcomes.settle(["done"], [["a"]])
    with pytest.raises(OutcomeError) as refused:
        outcomes.settle(["waits", identity], [["b"], labels])
    assert refused.value.reason == reason
    assert refused.value.identity == identity
    assert (outcomes.n_settled_, outcomes.n_pending_) == (1, 1)


def test_ids_must_be_new_and_significance_given(predictor):
    outcomes = Outcomes(predictor, max_pending=2)
    row = [[0.9, 0.1, 0.1]]
    outcomes.remember(row, ["one"], significance="0.1")
    with pytest.raises(OutcomeError, match="waits for its labels"):
        outcomes.remember(row, ["one"], significance="0.1")
    with pytest.raises(InvalidInputError, match="significance"):
        outcomes.remember(row, ["two"])
    outcomes.remember(row * 2, ["two", "three"], significance="0.1")
    assert not outcomes.is_pending("one")  # the oldest was forgotten
    with pytest.raises(OutcomeError, match="forgotten"):
        outcomes.settle(["one"], [["a"]])


@pytest.mark.parametrize("method", [None, "aci", "dtaci", "window", "nexcp"])
def test_saved_and_loaded_it_continues_to_the_same_end(predictor, tmp_path, method):
    probabilities, labels = drawn(80, 1)
    level = "0.1" if method is None else None

    def new():
        return Outcomes(predictor, None if method is None else OnlineConformal(predictor, "0.1", method))

    whole, halved = new(), new()
    for outcomes in (whole, halved):
        outcomes.remember(probabilities[:50], range(50), significance=level)
        outcomes.settle(range(30), labels[:30])
    halved.save(tmp_path / "state.npz")
    halved = Outcomes.load(tmp_path / "state.npz")
    for outcomes in (whole, halved):
        outcomes.remember(probabilities[50:], range(50, 80), significance=level)
        outcomes.settle(range(79, 29, -1), labels[:29:-1])
    assert halved.n_missed_ == whole.n_missed_
    assert halved.watch.state.log10_martingale == whole.watch.state.log10_martingale
    with pytest.raises(OutcomeError, match="settled already"):
        halved.settle([3], labels[3:4])
    (tmp_path / "state.npz").write_bytes(b"PK\x03\x04 nonsense")
    with pytest.raises(ArtifactError):
        Outcomes.load(tmp_path / "state.npz")


def test_a_state_of_another_calibration_is_refused(predictor, tmp_path):
    Outcomes(predictor).save(tmp_path / "state.npz")
    other = ConformalLabelSets(LogLoss(), label_names=NAMES).calibrate(*drawn(199, 7))
    with pytest.raises(InvalidInputError, match="another model or calibration"):
        Outcomes.load(tmp_path / "state.npz").check_predictor(other, tmp_path / "state.npz")
