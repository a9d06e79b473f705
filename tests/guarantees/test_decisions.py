"""Decide first, then promise: the parts that each promise is calibrated on, routes by hand, the theorem, files."""

import math

import numpy as np
import pandas as pd
import pytest

from surelabel._core import files
from surelabel.conformal import ConformalLabelSets
from surelabel.exceptions import ArtifactError, InvalidInputError, NotCalibratedError
from surelabel.guarantees.automation import Automation
from surelabel.guarantees.decisions import CHOOSE, FILE, READ, Evidence, FilingPolicy
from surelabel.guarantees.groups import ByCardinality
from surelabel.guarantees.novelty import Novelty
from surelabel.guarantees.tag_bounds import TagBounds
from surelabel.labels.shortlists import Shortlists
from surelabel.measures import LogLoss

NAMES = tuple("abcdef")


def texts(rng, n, d=6):
    """Texts half of which are easy: one sure label; the other half are hard."""
    easy = rng.random(n) < 0.5
    probabilities = np.where(easy[:, None], 0.004, rng.beta(0.5, 1.5, (n, d)))
    probabilities[np.arange(n), rng.integers(0, d, n)] = np.where(easy, 0.996, 0.6)
    return probabilities, rng.random((n, d)) < probabilities


def evidence(rng, n, known_words=None):
    return Evidence(*texts(rng, n), known_words)


def predictor(**options):
    """A predictor whose calibration texts all have a label."""
    probabilities = texts(np.random.default_rng(4), 50)[0]
    return ConformalLabelSets(LogLoss(), **options).calibrate(
        probabilities, probabilities >= probabilities.max(axis=1, keepdims=True)
    )


@pytest.fixture(scope="module")
def policy():
    rng = np.random.default_rng(0)
    return FilingPolicy("0.1", max_missed="0.2", max_tags=3).calibrate(
        evidence(rng, 600, np.linspace(0.5, 1.0, 600)), evidence(rng, 600, np.linspace(0.5, 1.0, 600))
    )


def test_lists_are_calibrated_on_the_texts_that_are_not_filed(policy):
    rng = np.random.default_rng(0)
    known = np.linspace(0.5, 1.0, 600)
    filing, calibration = evidence(rng, 600, known), evidence(rng, 600, known)
    filed = policy.file(calibration.probabilities, known)
    assert 0.2 < filed.mean() < 0.8
    expected = TagBounds("0.2").calibrate(calibration.probabilities[~filed], calibration.labels[~filed])
    assert policy.tag_bounds.consider_threshold_ == expected.consider_threshold_
    assert policy.tag_bounds.assign_threshold_ == expected.assign_threshold_
    assert (policy.n_filing_, policy.n_seen_) == (600, np.count_nonzero(~filed))
    assert policy.share_ == filed.mean()
    # The rule does not depend on the calibration part.
    other = FilingPolicy("0.1", max_missed="0.2").calibrate(filing, Evidence(*texts(rng, 50)))
    assert other.automation.threshold_ == policy.automation.threshold_


def test_only_familiar_texts_within_the_limits_certify(policy):
    filing = evidence(np.random.default_rng(0), 600)
    known = np.linspace(0.5, 1.0, 600)
    scores = Automation("0.1").calibrate(*filing[:2]).scores(filing.probabilities)
    inside = Novelty().calibrate(scores, known).can_certify(scores, known)
    # 6 of 600 texts are flagged, and two set a limit.
    assert np.count_nonzero(~inside) == 8
    expected = Automation("0.1").calibrate(filing.probabilities[inside], filing.labels[inside])
    assert policy.automation.threshold_ == expected.threshold_
    assert "592 certification texts" in policy.automation.summary_


@pytest.mark.parametrize(
    ("row", "known", "decision", "reason"),
    [
        ([0.996, 0.004, 0.004, 0.004, 0.004, 0.004], 1.0, FILE, "10 %"),
        ([0.996, 0.004, 0.004, 0.004, 0.004, 0.004], math.nan, READ, "no words"),
        ([0.996, 0.004, 0.004, 0.004, 0.004, 0.004], 0.0, READ, "none of its words"),
        ([0.996, 0.004, 0.004, 0.004, 0.004, 0.004], 0.2, READ, "20 %"),
        ([0.6, 0.5, 0.004, 0.004, 0.004, 0.004], 1.0, CHOOSE, "these 2 tags"),
        ([0.4, 0.1, 0.1, 0.1, 0.1, 0.1], 1.0, CHOOSE, "this tag"),
        ([0.6] * 4 + [0.004] * 2, 1.0, READ, "more than 3"),
        ([0.05] * 6, 1.0, READ, "no answer fits"),
    ],
)
def test_routes_by_hand(policy, row, known, decision, reason):
    (answer,) = policy.decide([row], [known])
    assert answer.decision == decision
    assert reason in answer.reason
    assert set(answer.assign) <= set(answer.consider)
    assert policy.file([row], [known]).tolist() == [decision == FILE]


def test_texts_to_read_keep_the_complete_list(policy):
    (answer,) = policy.decide([[0.6, 0.7, 0.8, 0.65, 0.004, 0.004]])
    assert answer.decision == READ
    assert answer.consider == (2, 1, 3, 0)
    assert answer.labels == (0, 1, 2, 3)


def test_few_calibration_texts_are_read_with_the_number_that_is_needed():
    rng = np.random.default_rng(1)
    policy = FilingPolicy(max_missed="0.05").calibrate(evidence(rng, 30), evidence(rng, 18))
    (answer,) = policy.decide([[0.6, 0.5, 0.1, 0.1, 0.1, 0.1]])
    assert answer.decision == READ
    assert "19" in answer.reason
    assert sorted(answer.consider) == [0, 1, 2, 3, 4, 5]
    assert answer.assign == ()
    assert policy.advice is None


def test_everything_filed_leaves_no_list():
    probabilities = np.full((200, 3), [0.99, 0.01, 0.01])
    labels = [frozenset("a")] * 200
    policy = FilingPolicy(label_names=tuple("abc")).calibrate(
        Evidence(probabilities, labels), Evidence(probabilities, labels)
    )
    assert (policy.n_seen_, policy.share_) == (0, 1.0)
    file, read = policy.decide([[0.99, 0.01, 0.01], [0.5, 0.5, 0.5]])
    assert file.decision == FILE
    assert read.decision == READ


def test_unknown_labels_count_in_both_parts():
    probabilities = np.full((100, 2), [0.95, 0.05])
    known, unknown = [frozenset("a")] * 100, [frozenset("a")] * 70 + [frozenset({"a", "new"})] * 30
    names = ("a", "b")
    assert (
        FilingPolicy(label_names=names).calibrate(Evidence(probabilities, known), Evidence(probabilities, known)).share_
        == 1
    )
    policy = FilingPolicy(label_names=names).calibrate(
        Evidence(probabilities, unknown), Evidence(probabilities, unknown)
    )
    assert policy.share_ == 0.0
    assert "15" in policy.tag_bounds.problem_  # half a label-set is missed in 30 % of the texts
    assert policy.decide(probabilities[:1])[0].decision == READ


def test_shortlists_are_decided_as_dense_probabilities(policy):
    rng = np.random.default_rng(2)
    parts = [texts(rng, 400) for _ in range(2)]
    dense = FilingPolicy("0.1").calibrate(*(Evidence(*part) for part in parts))
    short = FilingPolicy("0.1").calibrate(*(Evidence(Shortlists.from_dense(P, 6), Y) for P, Y in parts))
    new = texts(rng, 60)[0]
    assert short.decide(Shortlists.from_dense(new, 6)) == dense.decide(new)


def test_given_guesses_change_nothing(policy):
    new = texts(np.random.default_rng(3), 50)[0]
    same = predictor()
    assert policy.guesses_as(same)
    assert policy.decide(new, guesses=same.predict(new)) == policy.decide(new)
    assert not policy.guesses_as(predictor(max_labels=2))
    assert not policy.guesses_as(predictor(taxonomy=ByCardinality((2,))))


def test_categories(policy):
    filed = np.array([True, False])
    assert policy.categories(filed) == ["filed", "seen"]
    assert policy.categories(filed, ["mail", "wire"]) == ["filed: mail", "seen: wire"]
    assert policy.categories(filed, ["mail", "wire"], {"seen: mail", "seen: wire"}) == ["seen: mail", "seen: wire"]
    assert policy.categories(filed, [1, 2.0]) == policy.categories(filed, [1.0, 2]) == ["filed: 1", "seen: 2"]
    for groups in (["mail"], ["mail", None]):
        with pytest.raises(InvalidInputError, match="group"):
            policy.categories(filed, groups)


def test_advice_names_what_a_weaker_level_would_give():
    rng = np.random.default_rng(5)
    policy = FilingPolicy(max_missed="0.05", max_tags=2).calibrate(evidence(rng, 300), evidence(rng, 600))
    assert "--max-missed 0.1" in policy.advice
    assert "\n" not in policy.advice


def simulate(n_draws, n, level, seed):
    """Mean missed share of seen texts, and mean wrong share of filed ones, with standard errors; shares filed."""
    rng, missed, wrong, filed_shares = np.random.default_rng(seed), [], [], []
    for _ in range(n_draws):
        policy = FilingPolicy("0.1", max_missed=level, max_tags=3).calibrate(evidence(rng, n), evidence(rng, n))
        probabilities, labels = texts(rng, 200)
        decisions = policy.decide(probabilities)
        is_filed = np.array([decision.decision == FILE for decision in decisions])
        filed_shares.append(is_filed.mean())
        losses = [
            len(set(np.flatnonzero(truth)) - set(decision.consider)) / max(truth.sum(), 1)
            for truth, decision in zip(labels, decisions, strict=True)
            if decision.decision != FILE
        ]
        missed.append(np.mean(losses) if losses else 0.0)
        errors = [
            set(np.flatnonzero(truth)) != set(decision.labels)
            for truth, decision in zip(labels, decisions, strict=True)
            if decision.decision == FILE
        ]
        wrong.append(np.mean(errors) if errors else 0.0)
    results = np.array([missed, wrong])
    return results.mean(axis=1), results.std(axis=1) / math.sqrt(n_draws), np.mean(filed_shares)


def test_lists_of_seen_texts_miss_no_more_than_promised():
    means, errors, filed = simulate(50, 150, "0.2", 6)
    assert filed > 0.3  # filing takes the easy texts away
    assert means[0] <= 0.2 + 3.2 * errors[0]
    assert means[0] >= 0.2 - 0.06 - 3.2 * errors[0]  # the promise is used
    assert means[1] <= 0.1


def test_calibrated_on_all_texts_they_would_miss_far_more():
    """The reason for two parts: this is what lists calibrated on all texts miss among the unfiled ones."""
    rng = np.random.default_rng(7)
    (filing, truth), (new, new_truth) = texts(rng, 1000), texts(rng, 2000)
    seen = ~Automation("0.1").calibrate(filing, truth).decide(new)
    consider = TagBounds("0.2").calibrate(*texts(rng, 1000)).predict(new).consider
    missed = (new_truth & ~consider).sum(axis=1) / np.maximum(new_truth.sum(axis=1), 1)
    assert missed[seen].mean() > 0.25


@pytest.mark.slow
@pytest.mark.parametrize("level", ["0.05", "0.1", "0.2"])
def test_the_theorem_over_many_divisions(level):
    means, errors, filed = simulate(1500, 200, level, 8)
    assert filed > 0.3
    assert means[0] <= float(level) + 3.2 * errors[0]
    assert means[0] >= float(level) - 0.04


def test_files(policy, tmp_path):
    policy.save(tmp_path / "policy")
    again = FilingPolicy.load(tmp_path / "policy")
    for name in ("n_filing_", "n_seen_", "share_", "advice", "max_tags"):
        assert getattr(again, name) == getattr(policy, name)
    new = texts(np.random.default_rng(9), 80)[0]
    known = np.linspace(0.3, 1.0, 80)
    assert again.decide(new, known) == policy.decide(new, known)
    assert repr(again) == repr(policy)


def test_a_label_that_is_never_filed_sends_its_texts_to_people(tmp_path):
    rng = np.random.default_rng(0)
    parts = [Evidence(*texts(rng, 600)) for _ in range(2)]
    free = FilingPolicy("0.1", max_missed="0.2", label_names=NAMES).calibrate(*parts)
    barred = FilingPolicy("0.1", max_missed="0.2", label_names=NAMES, never_file=["c"]).calibrate(*parts)
    new = texts(rng, 400)[0]
    has_c = free.automation.predict(new).labels[:, 2]
    assert (free.file(new) & has_c).any()
    assert barred.file(new).any()
    assert not barred.file(new)[has_c].any()
    assert [each.decision == FILE for each in barred.decide(new)] == barred.file(new).tolist()
    # Their lists are calibrated with the texts that people see then.
    assert barred.n_seen_ == np.count_nonzero(~barred.file(parts[1].probabilities)) > free.n_seen_
    barred.save(tmp_path)
    assert FilingPolicy.load(tmp_path).decide(new) == barred.decide(new)
    with pytest.raises(InvalidInputError, match="'z'"):
        FilingPolicy(label_names=NAMES, never_file=["z"]).calibrate(*parts)


def test_texts_that_are_never_filed_certify_nothing():
    rng = np.random.default_rng(0)
    probabilities, labels = texts(rng, 2000)
    # Best guesses with the label c are always right, all others half the time.
    guesses = Automation().calibrate(probabilities, labels).predict(probabilities).labels
    right = guesses[:, 2] | (rng.random(2000) < 0.5)
    labels = np.where(right[:, None], guesses, ~guesses)
    parts = [Evidence(probabilities, labels)] * 2
    barred = FilingPolicy("0.3", label_names=NAMES, never_file=["c"]).calibrate(*parts)
    assert not barred.file(probabilities).any()
    only_c = FilingPolicy("0.3", label_names=NAMES, never_file=set(NAMES) - {"c"}).calibrate(*parts)
    filed = only_c.file(probabilities)
    assert filed.any()
    assert guesses[filed, 2].all()
    nothing = FilingPolicy("0.3", label_names=NAMES, never_file=NAMES).calibrate(*parts)
    assert nothing.automation.threshold_ == -math.inf
    assert "too few" in nothing.automation.summary_


def test_rows_of_data_frames_are_matched_by_index():
    rng = np.random.default_rng(0)
    parts = [texts(rng, 300) for _ in range(2)]
    plain = FilingPolicy("0.1", max_missed="0.2", label_names=NAMES).calibrate(*map(tuple, parts))
    frames = []
    for values, truth in parts:
        known = pd.DataFrame(truth, columns=NAMES, index=[f"text {k}" for k in range(300)])
        frames.append((pd.DataFrame(values, columns=NAMES, index=known.index), known.iloc[rng.permutation(300)]))
    mixed = FilingPolicy("0.1", max_missed="0.2").calibrate(*frames)
    assert mixed.automation.threshold_ == plain.automation.threshold_
    assert mixed.tag_bounds.consider_threshold_ == plain.tag_bounds.consider_threshold_


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_tags", 0),
        ("never_file", ["z"]),
        ("max_tags", "9"),
        ("counts", [1]),
        ("counts", [1, -1]),
        ("counts", [1, 10**9]),
        ("share", math.nan),
        ("advice", 3),
        ("novelty", {}),
        ("novelty", None),
    ],
)
def test_damaged_files_are_refused(policy, name, value, tmp_path):
    policy.save(tmp_path)
    header, arrays = files.read_arrays(tmp_path / "policy.npz", "filing-policy")
    files.write_arrays(tmp_path / "policy.npz", header | {name: value}, arrays)
    with pytest.raises(ArtifactError, match="damaged"):
        FilingPolicy.load(tmp_path)


def test_bad_input(policy, tmp_path):
    with pytest.raises(NotCalibratedError, match="calibrate"):
        FilingPolicy().decide([[0.5]])
    with pytest.raises(NotCalibratedError, match="calibrate"):
        FilingPolicy().save(tmp_path)
    with pytest.raises(ArtifactError):
        FilingPolicy.load(tmp_path / "nowhere")
    with pytest.raises(InvalidInputError, match="max_tags"):
        FilingPolicy(max_tags=0)
    with pytest.raises(InvalidInputError, match="known words"):
        policy.decide([[0.5] * 6], [1.0, 1.0])
    with pytest.raises(InvalidInputError, match="labels"):
        policy.decide([[0.5] * 5])
