"""Measures with interactions, penalties and constraints that tests share, drawn to be hard on ties and rounding."""

import numpy as np
import sklearn.covariance  # noqa: F401 (loaded inside a strategy it would draw from random)
from hypothesis import strategies as st

import cases
from surelabel import ConformalLabelSets, LabelConstraints, LogLoss, LpNorm, Mahalanobis, Mixture, Penalised
from surelabel.measures.hubs import Hubs
from surelabel.measures.odds import RefinedOdds

WEIGHTS = st.sampled_from([0.0, 0.0, 0.25, 1.0, 1 / 3, 7.5])
BASES = (LogLoss(), LpNorm(1), LpNorm(2), LpNorm(8), LpNorm(float("inf")), cases.Weighted("sum"), cases.Weighted("max"))


@st.composite
def matrices(draw, d):
    """Positive definite matrices: unit, with small integers, correlated, all but singular, or fitted."""
    kind = draw(st.sampled_from(["unit", "integer", "equal", "random", "singular", "fitted"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if kind == "unit":
        return np.eye(d)
    if kind == "integer":
        factor = rng.integers(-1, 2, (d, d)).astype(float)
        return factor @ factor.T + np.eye(d)
    if kind == "equal":
        return np.eye(d) * (1.0 + 0.5 * d) + draw(st.sampled_from([0.5, -0.5]))
    if kind == "fitted":
        probabilities, labels = rng.random((8, d)), rng.random((8, d)) < 0.4
        return np.array(Mahalanobis().fit(probabilities, labels).matrix)
    factor = rng.normal(size=(d, d))
    product = factor @ factor.T + np.eye(d) * (1.0 if kind == "random" else 1e-9)
    return (product + product.T) / 2


@st.composite
def mahalanobis(draw, d):
    return Mahalanobis(draw(matrices(d)))


@st.composite
def label_rows(draw, d, max_rows=8):
    """Some 0/1 rows, often few different ones."""
    rows = draw(st.lists(st.lists(st.booleans(), min_size=d, max_size=d), min_size=1, max_size=max_rows))
    return np.array(rows)


@st.composite
def penalised(draw, d):
    base = draw(st.one_of(st.sampled_from(BASES), mahalanobis(d)))
    weights = [draw(WEIGHTS) for _ in range(4)]
    return Penalised(base, *weights).fit(draw(label_rows(d)))


def measures(d):
    """Measures that the tree of flips searches."""
    return st.one_of(mahalanobis(d), penalised(d))


@st.composite
def mixtures(draw, d):
    weight = draw(st.sampled_from([0.0, 1e-9, 0.5, 0.9, 1 - 1e-9]))
    prior, temperature = draw(st.sampled_from([0.0, 0.5, 1.0])), draw(st.sampled_from([0.0, 1 / 3, 1.0, 40.0]))
    neighbours, clip = draw(st.sampled_from([0.0, 0.0, 0.25])), draw(st.sampled_from([1e-6, 1e-6, 0.25, 1e-15]))
    discount, odds = draw(st.sampled_from([0.0, 0.5])), draw(st.one_of(st.none(), refined_odds(d)))
    others = {"discount": discount, "cardinality": draw(st.sampled_from([0.0, 1.0])), "odds": odds}
    others["hubs"] = draw(st.one_of(st.none(), hub_labels(d)))
    return Mixture(weight, prior, temperature, neighbours, clip, **others).fit(draw(label_rows(d)))


@st.composite
def hub_labels(draw, d):
    labels = draw(st.permutations(range(d)))[: draw(st.integers(1, min(2, d)))]
    effect = st.sampled_from([0.0, 0.5, -2.0, 40.0])
    table = np.array(draw(st.lists(st.lists(effect, min_size=d, max_size=d), min_size=3, max_size=3)))
    for i, hub in enumerate(labels):
        table[1 + i :, hub] = 0.0
    return Hubs(np.array(labels), table[: 1 + len(labels)])


@st.composite
def refined_odds(draw, d):
    """Slopes and offsets, some of them equal, so that label-sets tie; for each label, or for all labels together."""
    rows = draw(st.sampled_from([2, 1 + d]))
    values = st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.0, -0.25, 3.0]), min_size=rows * d, max_size=rows * d)
    return RefinedOdds(np.array(draw(values)).reshape(rows, d))


def any_measures(d):
    return st.one_of(measures(d), mixtures(d), mixtures(d))


@st.composite
def constraints(draw, d):
    """Any constraints at all, contradictory ones too, over d labels given by index."""
    label = st.integers(0, d - 1)
    group = st.lists(label, min_size=1, max_size=4)
    return LabelConstraints(
        implications=draw(st.lists(st.tuples(label, label), max_size=3)),
        exclusions=draw(st.lists(group, max_size=2)),
        at_most=draw(st.lists(st.tuples(st.integers(0, 2), group), max_size=2)),
    )


def check_bounds(measure, limits, probabilities, labels, *, significance):
    """Check that bounds past the work limit hold the sizes, and refined ones too; the first texts calibrate."""
    n_texts = len(labels)
    exact, short = (
        ConformalLabelSets(measure, *limits, work_limit=limit).calibrate(probabilities[:n_texts], labels)
        for limit in (10**7, 20)
    )
    sizes = exact.predict_set(probabilities[n_texts:], significance=significance).sizes()
    bounded = short.predict_set(probabilities[n_texts:], significance=significance)
    lower, upper = bounded.size_bounds()
    assert np.all((lower <= sizes) & (sizes <= upper))
    widest = int(np.argmax(upper - lower))
    assert lower[widest] < upper[widest]
    refined = bounded[widest].refine(0.01)
    assert lower[widest] <= refined[0] <= sizes[widest] <= refined[1] <= upper[widest]
