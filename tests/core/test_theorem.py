"""The theorem: over calibration and test texts, label-sets are missed at most as often as asked."""

import numpy as np
import pytest

from surelabel import ByCardinality, ByGroup, ConformalLabelSets, LogLoss, LpNorm, Mixture, Shortlists

pytestmark = pytest.mark.filterwarnings("ignore::surelabel.exceptions.CalibrationWarning")
LEVEL, N_CALIBRATION, N_TEST = 0.2, 39, 40


def draw(rng, n, d=8):
    """Return probabilities, label-sets and groups; label-sets do not follow the probabilities."""
    hardness = rng.random((n, 1))
    groups = np.where(hardness[:, 0] > 0.7, "hard", "easy")
    probabilities = rng.beta(0.4, 1.6, (n, d))
    labels = rng.random((n, d)) < (1 - hardness) * probabilities + hardness * rng.random((n, d)) * 0.6
    empty = ~labels.any(axis=1)
    labels[empty, probabilities[empty].argmax(axis=1)] = True
    return probabilities, labels, groups


def errors(rng, n_rounds, *, taxonomy=None, measure=None, k=None, assurance=None):
    """Return the share of missed label-sets (n_rounds,), in all and by category."""
    in_all, by_category = [], {}
    for _ in range(n_rounds):
        probabilities, labels, groups = draw(rng, N_CALIBRATION * 5 + N_TEST)
        texts = probabilities if k is None else Shortlists.from_dense(probabilities, k)
        cut = slice(0, N_CALIBRATION * 5), slice(N_CALIBRATION * 5, None)
        asked = [{"groups": groups[rows]} if isinstance(taxonomy, ByGroup) else {} for rows in cut]
        predictor = ConformalLabelSets(measure or LpNorm(2), taxonomy=taxonomy, n_jobs=1)
        predictor.calibrate(texts[cut[0]], labels[cut[0]], **asked[0])
        sets = predictor.predict_set(texts[cut[1]], significance=str(LEVEL), assurance=assurance, **asked[1])
        missed = ~sets.contains(labels[cut[1]])
        in_all.append(missed.mean())
        sizes = np.minimum(labels[cut[1]].sum(axis=1), 3)
        for category in (*np.unique(groups), 1, 2, 3):
            chosen = missed[(groups[cut[1]] == category) | (sizes == category)]
            by_category.setdefault(category, []).append((chosen.sum(), len(chosen)))
    return np.array(in_all), {key: np.array(counts) for key, counts in by_category.items()}


CASES = {
    "plain": {},
    "shortlists": {"k": 7},
    "mixture": {"measure": Mixture(0.6).fit(draw(np.random.default_rng(9), 200)[1])},
    "groups": {"taxonomy": ByGroup(), "measure": LogLoss()},
    "cardinality": {"taxonomy": ByCardinality((2, 3)), "measure": LogLoss()},
}


def check(case, n_rounds, seed):
    rng = np.random.default_rng(seed)
    in_all, by_category = errors(rng, n_rounds, **CASES[case])
    assert in_all.mean() <= LEVEL + 3.2 * in_all.std() / np.sqrt(n_rounds)
    assert in_all.mean() >= LEVEL - 0.06  # and not by sets that hold everything
    kept = {"groups": ["easy", "hard"], "cardinality": [1, 2, 3]}.get(case, [])
    for category in kept:
        missed, n = by_category[category].T
        ratio = missed.sum() / n.sum()
        spread = np.sqrt(((missed - ratio * n) ** 2).sum()) / n.sum()
        assert ratio <= LEVEL + 3.2 * spread


@pytest.mark.parametrize("case", CASES)
def test_few_enough_label_sets_are_missed(case):
    check(case, 60, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_few_enough_label_sets_are_missed_in_many_rounds(case):
    check(case, 3000, seed=2)


def test_assurance_is_about_single_calibrations():
    rng, over = np.random.default_rng(5), 0
    for _ in range(60):
        probabilities, labels, _ = draw(rng, 2400)
        predictor = ConformalLabelSets(n_jobs=1).calibrate(probabilities[:400], labels[:400])
        sets = predictor.predict_set(probabilities[400:], significance=str(LEVEL), assurance="0.9")
        over += (~sets.contains(labels[400:])).mean() > LEVEL
    assert over <= 12  # 6 are expected at most
