"""Random problems with many ties: grids, halves plus or minus one ulp, equal rows, zeros and ones."""

import math

import numpy as np

import reference

GRIDS = [
    [0.0, 0.25, 0.5, 0.75, 1.0],
    [k / 16 for k in range(17)],
    [k / 10 for k in range(11)],
    [0.5],
    [0.3, 0.7, 1 - 0.3, 1 - 0.7, 0.5, 1e-9],
    [0.5, np.nextafter(0.5, 0), np.nextafter(0.5, 1), 0.25, 0.75],
    [0.0, 1e-9, 1e-4, 0.5, 1 - 1e-9, 1.0],
    None,
]


def draw_problem(rng, most=8):
    """Return (calibration probabilities, labels, test probabilities, least, most labels)."""
    d, n, grid = rng.randint(1, most), rng.choice([1, 2, 9, 19, 40]), rng.choice(GRIDS)

    def matrix(rows):
        return np.array([[rng.choice(grid) if grid else rng.random() for _ in range(d)] for _ in range(rows)])

    calibration, test = matrix(n), matrix(4)
    if rng.random() < 0.3:
        test[0] = calibration[0]  # thresholds that are scores of the same row
    if rng.random() < 0.3:
        test[1] = np.full(d, rng.choice(grid) if grid else rng.random())
    labels = np.array([[rng.random() < o for o in row] for row in calibration], dtype=bool).reshape(n, d)
    least = min(rng.choice([0, 1, 1, 2]), d)
    return calibration, labels, test, least, rng.randint(max(least, 1), d)


def draw_rules(rng, d):
    """Return keyword arguments of LabelConstraints."""
    labels = range(d)
    group = lambda: rng.sample(labels, rng.randint(1, d))  # noqa: E731
    return {
        "implications": [(rng.choice(labels), rng.choice(labels)) for _ in range(rng.randint(0, 2))],
        "exclusions": [group() for _ in range(rng.randint(0, 1))],
        "at_most": [(rng.randint(0, d), group()) for _ in range(rng.randint(0, 1))],
        "at_least": [(rng.randint(0, 2), group()) for _ in range(rng.randint(0, 1))],
    }


def costs_of(measure, row):
    """Costs (absent, present) of a row; powers by plain Python, logarithms as the package has them."""
    if hasattr(measure, "p"):
        if measure.p in (1, 2, 4, 8):
            return reference.lp_costs(row.tolist(), measure.p)
    elif hasattr(measure, "clip"):
        absent, present = measure.costs(row[None])
        clipped = [min(max(o, measure.clip), 1.0 - measure.clip) for o in row.tolist()]
        assert np.allclose(absent, [min(-math.log1p(-o), -math.log(measure.clip)) for o in clipped], rtol=1e-12)
        assert np.allclose(present, [-math.log(o) for o in clipped], rtol=1e-12)
    absent, present = measure.costs(row[None])
    return absent[0].tolist(), present[0].tolist()


def draw_texts(n=60, d=6, seed=0):
    """Return probabilities and label-sets that were drawn from them, at least one label each."""
    rng = np.random.default_rng(seed)
    probabilities = rng.random((n, d))
    labels = rng.random((n, d)) < probabilities
    labels[~labels.any(axis=1), 0] = True
    return probabilities, labels


def assert_same(one, other, probabilities, **options):
    """Assert that two predictors answer alike."""
    first, second = (cp.predict_set(probabilities, significance=0.1, **options) for cp in (one, other))
    assert [bounds.tolist() for bounds in first.size_bounds()] == [bounds.tolist() for bounds in second.size_bounds()]
    assert first.top(9) == second.top(9)
    guesses = [cp.predict(probabilities, **options) for cp in (one, other)]
    for name in ("labels", "confidence", "credibility", "scores"):
        assert np.array_equal(*(getattr(guess, name) for guess in guesses))
