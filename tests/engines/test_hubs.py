"""A mixture with hubs: unions over their states give the answers that scoring every label-set gives."""

import itertools

import numpy as np
import pytest

import interaction_cases
from surelabel import ByCardinality, ByRarity, ConformalLabelSets, LabelConstraints, Mixture
from surelabel.evaluation.criteria import of_criterion, s_criterion
from surelabel.exceptions import InvalidInputError
from surelabel.labels.sparse import SparseProbabilities
from surelabel.measures.hubs import Hubs

pytestmark = pytest.mark.filterwarnings("ignore::surelabel.exceptions.CalibrationWarning")


def _texts(n_texts=150, d=7, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.random((n_texts, d)) < 0.3
    labels[:, 1] = np.where(rng.random(n_texts) < 0.8, labels[:, 0], labels[:, 1])
    labels[~labels.any(axis=1), 2] = True
    return np.clip(0.35 * labels + 0.5 * rng.random((n_texts, d)), 0.01, 0.99).round(2), labels


def _measure(labels, probabilities, hubs=(0, 2), **settings):
    return Mixture(0.7, 0.5, 0.7, **settings).fit(labels[:60]).with_hubs(probabilities[60:90], labels[60:90], hubs)


def _both(measure, probabilities, labels, **settings):
    for search in ("exact", "powerset"):
        predictor = ConformalLabelSets(measure, 1, 4, search=search, **settings)
        yield predictor.calibrate(probabilities[60:130], labels[60:130])


_TAXONOMIES = {
    "none": lambda labels: None,
    "cardinality": lambda labels: ByCardinality((1, 2)),
}


@pytest.mark.parametrize("taxonomy", _TAXONOMIES)
@pytest.mark.parametrize("settings", [{}, {"neighbours": 0.5}])
@pytest.mark.parametrize("significance", [0.001, 0.05, 0.3])
def test_answers_are_those_of_the_powerset(taxonomy, settings, significance):
    probabilities, labels = _texts()
    measure = _measure(labels, probabilities, **settings)
    exact, slow = _both(measure, probabilities, labels, taxonomy=_TAXONOMIES[taxonomy](labels))
    test, truth = probabilities[130:], labels[130:]
    assert exact.predict(test).label_sets == slow.predict(test).label_sets
    assert exact.predict(test).confidence.tolist() == slow.predict(test).confidence.tolist()
    sets, same = (predictor.predict_set(test, significance=significance) for predictor in (exact, slow))
    assert sets.sizes().tolist() == same.sizes().tolist()
    assert sets.contains(truth).tolist() == same.contains(truth).tolist()
    for one, other in zip(sets, same, strict=True):
        assert one.top(200) == other.top(200)
        assert (one.certain, one.open, one.excluded) == (other.certain, other.open, other.excluded)
        assert one.inclusion().tolist() == other.inclusion().tolist()
        assert str(one.describe()) == str(other.describe())


def test_kinds_by_rarity_hold_what_p_values_say():
    probabilities, labels = _texts()
    measure = _measure(labels, probabilities)
    predictor = ConformalLabelSets(measure, 1, 4, taxonomy=ByRarity(labels[:60], (15, 25)))
    predictor = predictor.calibrate(probabilities[60:130], labels[60:130])
    every = np.array([row for row in itertools.product([0, 1], repeat=7) if 1 <= sum(row) <= 4], dtype=bool)
    for significance in (0.02, 0.2):
        for row, one in zip(
            probabilities[130:], predictor.predict_set(probabilities[130:], significance=significance), strict=True
        ):
            p_values = predictor.predict_p(np.repeat(row[None], len(every), axis=0), every)
            inside = every[p_values > significance]
            assert one.size == len(inside)
            assert {s for s, _ in one.top(200)} == {frozenset(np.flatnonzero(y).tolist()) for y in inside}
            assert one.inclusion() == pytest.approx(inside.mean(axis=0) if len(inside) else np.zeros(7))


def test_constraints_are_obeyed():
    probabilities, labels = _texts()
    rules = LabelConstraints(exclusions=[(0, 3)], implications=[(2, 4)])
    exact, slow = _both(_measure(labels, probabilities), probabilities, labels, constraints=rules)
    for significance in (0.001, 0.1):
        sets, same = (p.predict_set(probabilities[130:], significance=significance) for p in (exact, slow))
        assert [one.top(200) for one in sets] == [one.top(200) for one in same]
        assert sets.sizes().tolist() == same.sizes().tolist()
    assert exact.predict(probabilities[130:]).label_sets == slow.predict(probabilities[130:]).label_sets


def test_criteria_are_sums_over_all_candidates():
    probabilities, labels = _texts()
    exact, _ = _both(_measure(labels, probabilities), probabilities, labels)
    test, truth = probabilities[130:], labels[130:]
    every = np.array([row for row in itertools.product([0, 1], repeat=7) if 1 <= sum(row) <= 4], dtype=bool)
    p_values = np.array([exact.predict_p(np.repeat(row[None], len(every), axis=0), every) for row in test])
    own = exact.predict_p(test, truth)
    candidate = (truth.sum(axis=1) <= 4) * own
    assert s_criterion(exact, test).mean == pytest.approx((p_values.sum(axis=1).mean(),) * 2)
    assert of_criterion(exact, test, truth).mean == pytest.approx(((p_values.sum(axis=1) - candidate).mean(),) * 2)


def test_bounds_past_the_work_limit_hold_the_sizes():
    probabilities, labels = _texts(300, 30, seed=3)
    measure = _measure(labels, probabilities)
    interaction_cases.check_bounds(measure, (0, 5), probabilities[100:215], labels[100:200], significance=0.2)


def test_a_file_keeps_hubs(tmp_path):
    probabilities, labels = _texts()
    exact, _ = _both(_measure(labels, probabilities), probabilities, labels)
    exact.save(tmp_path / "predictor.npz")
    again = ConformalLabelSets.load(tmp_path / "predictor.npz")
    assert again.measure == exact.measure
    assert again.measure != exact.measure.reweighted(hubs=None)
    sets = [one.predict_set(probabilities[130:], significance=0.1).sizes().tolist() for one in (exact, again)]
    assert sets[0] == sets[1]


def test_sparse_texts_are_refused():
    probabilities, labels = _texts()
    measure = _measure(labels, probabilities)
    with pytest.raises(InvalidInputError, match="parse"):
        ConformalLabelSets(measure).calibrate(SparseProbabilities(probabilities, 0.001), labels)


def test_a_hub_may_have_no_listed_label_set_in_one_state():
    # Label 0 is in every training label-set, so nothing is listed without it.
    hubs = Hubs(np.array([0]), np.array([[0.0] * 3, [0.0, 3.0, -3.0]]))
    measure = Mixture(0.5, hubs=hubs).fit([[1, 1, 0], [1, 0, 0]])
    rng = np.random.default_rng(0)
    probabilities, labels = rng.random((40, 3)), rng.random((40, 3)) < 0.5
    exact, slow = (
        ConformalLabelSets(measure, 0, search=search).calibrate(probabilities[:30], labels[:30])
        for search in ("exact", "powerset")
    )
    sets, same = (one.predict_set(probabilities[30:], significance=0.2) for one in (exact, slow))
    assert [one.top(8) for one in sets] == [one.top(8) for one in same]
    assert sets.sizes().tolist() == same.sizes().tolist()
