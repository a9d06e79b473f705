"""ConformalLabelSets: levels, unknown labels, groups, merging, files, batches, errors."""

import inspect
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from core.problems import assert_same, draw_texts
from surelabel import ByCardinality, ByGroup, ConformalLabelSets, LabelConstraints, LogLoss, LpNorm, Mixture
from surelabel.evaluation.criteria import s_criterion
from surelabel.exceptions import ArtifactError, CalibrationWarning, InvalidInputError, NotCalibratedError
from surelabel.measures import SeparableMeasure, measure_from_name, measure_name

NAMES = list("abcdef")


def test_a_problem_by_hand():
    # Costs under L1: o where a label is absent, 1 - o where it is present.
    predictor = ConformalLabelSets(LpNorm(1), min_labels=0)
    predictor.calibrate([[0.75, 0.25]] * 4, [[1, 0], [1, 1], [0, 0], [0, 1]])  # totals .5, 1, 1, 1.5
    sets = predictor.predict_set([[0.75, 0.25]], significance=0.5)  # k = 2: within the second largest, 1
    assert sets[0].top(9) == [(frozenset({0}), 1.0), (frozenset(), 0.8), (frozenset({0, 1}), 0.8)]
    guess = predictor.predict([[0.75, 0.25]])
    assert guess.label_sets == [frozenset({0})]
    assert (guess.credibility[0], guess.confidence[0], guess.scores[0]) == (1.0, pytest.approx(0.2), 0.5)
    assert predictor.predict_p([[0.75, 0.25]], [[0, 1]])[0] == 0.4


def test_levels_are_exact_decimals():
    predictor = ConformalLabelSets().calibrate(*draw_texts(99))
    probabilities = draw_texts(40, seed=1)[0]
    levels = [0.07, "0.07", Decimal("0.07"), Fraction(7, 100), np.float64(0.07)]
    sizes = [predictor.predict_set(probabilities, significance=level).sizes().tolist() for level in levels]
    sizes += [predictor.predict_set(probabilities, confidence_level=level).sizes().tolist() for level in (0.93, "0.93")]
    assert all(one == sizes[0] for one in sizes)


@pytest.mark.parametrize(
    "wrong",
    [
        *(0, 1, 1.0, -0.1, "x", True, None, [0.1], float("nan"), "nan", "inf"),
        *("1e-999999999", "1e999999999", "0.1e-9999"),
        *(10**5000, Decimal("1e-999999999"), Fraction(1, 10**5000), Fraction(10**5000)),
    ],
    ids=lambda wrong: f"{type(wrong).__name__} {wrong}" if isinstance(wrong, str | float) else type(wrong).__name__,
)
def test_levels_that_cannot_be(wrong):
    predictor = ConformalLabelSets().calibrate(*draw_texts())
    for name in ("significance", "confidence_level"):
        with pytest.raises(InvalidInputError):
            predictor.predict_set([[0.5] * 6], **{name: wrong})
    if wrong is not None:
        with pytest.raises(InvalidInputError):
            predictor.predict_set([[0.5] * 6], significance=0.1, assurance=wrong)


def test_exactly_one_level_is_given():
    predictor = ConformalLabelSets().calibrate(*draw_texts())
    with pytest.raises(InvalidInputError, match="both"):
        predictor.predict_set([[0.5] * 6], significance=0.1, confidence_level=0.9)


def test_few_texts_leave_all_candidates():
    predictor = ConformalLabelSets().calibrate(*draw_texts(18))
    with pytest.warns(CalibrationWarning, match="19 are needed"):
        sets = predictor.predict_set([[0.5] * 6], significance=0.05)
    assert sets.sizes().tolist() == [63]
    with pytest.warns(CalibrationWarning, match="59"):
        predictor.predict_set([[0.5] * 6], significance=0.05, assurance=0.95)


def test_assurance_takes_a_lower_rank():
    predictor = ConformalLabelSets().calibrate(*draw_texts(999))
    probabilities = draw_texts(20, seed=1)[0]
    # P(Bin(999, .05) >= 39) is the first that is 95 % or more.
    assured, plain = (predictor.predict_set(probabilities, **level).sizes().tolist() for level in (
        {"significance": 0.05, "assurance": 0.95}, {"significance": "0.039"}))  # fmt: skip
    assert assured == plain


def test_what_is_no_candidate_has_the_p_value_zero():
    probabilities, labels = draw_texts()
    rules = LabelConstraints(exclusions=[[0, 1]])
    labels[labels[:, 0], 1] = False
    predictor = ConformalLabelSets(max_labels=6, constraints=rules).calibrate(probabilities, labels)
    outside = [[0] * 6, [1, 1, 0, 0, 0, 0]]
    assert predictor.predict_p(probabilities[:2], outside).tolist() == [0.0, 0.0]
    sets = predictor.predict_set(probabilities[:2], significance=0.02)
    assert not sets.contains(outside).any()


def test_unknown_labels_score_infinity():
    probabilities, labels = draw_texts()
    named = [{NAMES[k] for k in np.flatnonzero(row)} for row in labels]
    named[3] = {"a", "never seen"}
    with pytest.warns(CalibrationWarning, match="unknown"):
        predictor = ConformalLabelSets(label_names=NAMES).calibrate(probabilities, named)
    calibration = predictor.calibration_
    assert np.isinf(calibration.scores).tolist() == [False] * 59 + [True]
    assert (calibration.n_outside, calibration.share_unlisted) == (1, 1 / 60)
    assert predictor.scores(probabilities[:1], [{"a", "never seen"}])[0] == np.inf
    assert predictor.predict_p(probabilities[:1], [{"a", "never seen"}])[0] == 0.0
    assert not predictor.predict_set(probabilities[:1], significance=0.05).contains([{"a", "never seen"}])[0]
    with pytest.warns(CalibrationWarning, match="cannot be kept"):
        sets = predictor.predict_set(probabilities[:1], significance="0.017")
    assert sets.sizes()[0] == 63


def test_infinite_scores_survive_files_merging_and_sums(tmp_path):
    probabilities, labels = draw_texts(40)
    named = [{NAMES[k] for k in np.flatnonzero(row)} for row in labels]
    named[0] = named[1] = {"x"}
    with pytest.warns(CalibrationWarning):
        predictor = ConformalLabelSets(label_names=NAMES).calibrate(probabilities, named)
    predictor.save(tmp_path / "predictor.npz")
    loaded = ConformalLabelSets.load(tmp_path / "predictor.npz")
    assert_same(predictor, loaded, probabilities)
    assert loaded.calibration_.n_outside == 2
    every = np.array([[int(bit) for bit in f"{number:06b}"] for number in range(1, 64)])
    want = predictor.predict_p(np.tile(probabilities[5], (63, 1)), every).sum()
    assert s_criterion(predictor, probabilities[5:6]).mean == pytest.approx((want, want))


def test_groups_that_are_written_differently_are_one():
    probabilities, labels = draw_texts()
    predictor = ConformalLabelSets(taxonomy=ByGroup()).calibrate(probabilities, labels, groups=[1, 2] * 30)
    for groups in (
        [1.0, 2.0] * 30,
        np.array([1, 2] * 30),
        np.array([1.0, 2.0] * 30),
        np.array([1, 2] * 30, dtype=object),
    ):
        assert_same(predictor, predictor, probabilities, groups=groups)
    for wrong, match in (([3] * 60, "calibration texts"), ([None] * 60, "each text"), ([1] * 59, "59"), (None, "None")):
        with pytest.raises(InvalidInputError, match=match):
            predictor.predict(probabilities, groups=wrong)
    with pytest.raises(InvalidInputError, match="left out"):
        ConformalLabelSets().calibrate(probabilities, labels, groups=[1, 2] * 30)


def variants():
    probabilities, labels = draw_texts(80)
    seen = Mixture(0.7, discount=0.2).fit(draw_texts(50, seed=3)[1])
    rules = LabelConstraints(implications=[("a", "b")], at_most=[(2, ["c", "d", "e"])], at_least=[(1, ["a", "b", "f"])])
    return {
        "plain": ({"measure": LogLoss()}, None),
        "mixture": ({"measure": seen}, None),
        "groups": ({"taxonomy": ByGroup()}, np.array(["x", "y"] * 40)),
        "cardinality": ({"taxonomy": ByCardinality((1, 3))}, None),
        "constraints": ({"constraints": rules, "max_labels": 5}, None),
    }, probabilities, labels  # fmt: skip


@pytest.mark.filterwarnings("ignore::surelabel.exceptions.CalibrationWarning")
@pytest.mark.parametrize("kind", ["plain", "mixture", "groups", "cardinality", "constraints"])
def test_files_and_merging(tmp_path, kind):
    cases, probabilities, labels = variants()
    options, groups = cases[kind]

    def calibrated(rows):
        part = {} if groups is None else {"groups": groups[rows]}
        return ConformalLabelSets(label_names=NAMES, **options).calibrate(probabilities[rows], labels[rows], **part)

    asked = {} if groups is None else {"groups": groups[:20]}
    whole, rows = calibrated(slice(None)), slice(30, 80)
    halves = [calibrated(slice(0, 30)), calibrated(rows)]
    added = halves[0].add(probabilities[rows], labels[rows], **({} if groups is None else {"groups": groups[rows]}))
    path = tmp_path / "predictor.npz"
    whole.save(path)
    for other in (ConformalLabelSets.merge(halves), added, ConformalLabelSets.load(path)):
        assert_same(whole, other, probabilities[:20], **asked)
        for key, totals in whole.calibration_.totals.items():
            assert np.array_equal(totals, other.calibration_.totals[key])
        assert other.calibration_.n_outside == whole.calibration_.n_outside
    damaged = path.read_bytes()
    for place in range(40, len(damaged), max(1, len(damaged) // 40)):
        path.write_bytes(damaged[:place] + bytes([damaged[place] ^ 0xFF]) + damaged[place + 1 :])
        try:
            loaded = ConformalLabelSets.load(path)
        except ArtifactError:
            continue
        assert_same(whole, loaded, probabilities[:20], **asked)


def test_only_equal_predictors_are_merged():
    probabilities, labels = draw_texts()
    one = ConformalLabelSets().calibrate(probabilities, labels)
    for options in (
        {"measure": LogLoss()},
        {"max_labels": 6 - 1},
        {"label_names": NAMES},
        {"taxonomy": ByCardinality()},
    ):
        with warnings.catch_warnings(action="ignore"):
            other = ConformalLabelSets(**options).calibrate(probabilities, labels)
        with pytest.raises(InvalidInputError, match="same"):
            ConformalLabelSets.merge([one, other])
    with pytest.raises(InvalidInputError, match="one or more"):
        ConformalLabelSets.merge([])


class MissingIsWorse(SeparableMeasure):
    def costs(self, probabilities):
        return 2 * probabilities, 1 - probabilities


def test_a_measure_of_ones_own_is_given_to_load(tmp_path):
    probabilities, labels = draw_texts()
    predictor, path = ConformalLabelSets(MissingIsWorse()).calibrate(probabilities, labels), tmp_path / "own.npz"
    predictor.save(path)
    with pytest.raises(ArtifactError, match="measure="):
        ConformalLabelSets.load(path)
    with pytest.raises(ArtifactError, match="differ"):
        ConformalLabelSets.load(path, measure=LogLoss())
    assert_same(predictor, ConformalLabelSets.load(path, measure=MissingIsWorse()), probabilities)


def test_costs_that_cannot_be_are_refused():
    probabilities, labels = draw_texts()

    def of(costs):
        return type("Own", (SeparableMeasure,), {"costs": lambda self, o: costs(o)})()

    wrong = {
        "infinite": lambda o: (-np.log1p(-o), -np.log(o)),
        "negative": lambda o: (o - 1, o),
        "shape": lambda o: (o[:, :1], o),
        "nan": lambda o: (o * np.nan, o),
        "nothing": lambda o: (0 * o, 0 * o),
        "a spike between probes": lambda o: (np.where((o > 0.01) & (o < 0.02), 1e30, o), 1 - o),
    }
    probabilities[0, 0] = 0.015
    for costs in wrong.values():
        with pytest.raises(InvalidInputError, match="cost"):
            ConformalLabelSets(of(costs)).calibrate(probabilities, labels)
    huge = of(lambda o: (1e200 * o, 1e200 * (1 - o)))
    assert_same(
        ConformalLabelSets(huge).calibrate(probabilities, labels),
        ConformalLabelSets(huge).calibrate(probabilities, labels),
        probabilities,
    )


def test_names_of_measures():
    for name in ("l1", "l2", "l4", "l8", "log-loss"):
        assert measure_name(measure_from_name(name)) == name
    assert measure_from_name("l4") == LpNorm(4)
    with pytest.raises(InvalidInputError, match="l2"):
        measure_from_name("l3")


@pytest.mark.parametrize("measure", [LogLoss(), LpNorm(8), Mixture(0.8).fit(draw_texts(300, 12, 5)[1])])
def test_threads_and_batches_change_nothing(measure):
    probabilities, labels = draw_texts(1200, 12, 4)
    one, two = (ConformalLabelSets(measure, n_jobs=n).calibrate(probabilities, labels) for n in (1, 2))
    assert_same(one, two, probabilities[:700])
    sets, guesses = one.predict_set(probabilities, significance=0.1), one.predict(probabilities)
    sizes, p_values, tops = sets.sizes(), one.predict_p(probabilities, labels), sets.top(20)
    for row in range(0, 1200, 97):
        single = probabilities[row : row + 1]
        alone = one.predict_set(single, significance=0.1)
        assert alone[0].top(20) == tops[row] == sets[row].top(20)
        assert alone.sizes()[0] == sizes[row]
        assert one.predict(single).confidence[0] == guesses.confidence[row]
        assert one.predict(single).scores[0] == guesses.scores[row]
        assert one.predict_p(single, labels[row : row + 1])[0] == p_values[row]


def test_errors_come_before_anything_is_computed():
    probabilities, labels = draw_texts()
    with pytest.raises(NotFittedError):
        ConformalLabelSets().predict(probabilities)
    with pytest.raises(RuntimeError) as caught:
        ConformalLabelSets().save("nowhere.npz")
    assert isinstance(caught.value, NotCalibratedError)
    predictor = ConformalLabelSets().calibrate(probabilities, labels)
    for wrong in (
        probabilities[0],
        probabilities[:, :4],
        probabilities + 1,
        np.full((2, 6), np.nan),
        [["a"]],
        [[0.1], [0.1, 0.2]],
    ):
        with pytest.raises(InvalidInputError, match="predict"):
            predictor.predict(wrong)
    for wrong in (labels[:, :4], labels[:5], labels * 2, ["a"] * 60, "ab"):
        with pytest.raises(InvalidInputError, match="labels"):
            predictor.predict_p(probabilities, wrong)
    with pytest.raises(AttributeError):
        predictor.measure = LogLoss()
    for options in (
        {"measure": "l2"}, {"search": "tree"}, {"min_labels": -1}, {"max_labels": 0}, {"work_limit": 0},
        {"n_jobs": 0}, {"taxonomy": "group"}, {"constraints": []}, {"max_labels": True}, {"min_labels": 1.0},
        {"search": "powerset", "constraints": LabelConstraints(exclusions=[[0, 1]])},
    ):  # fmt: skip
        with pytest.raises(InvalidInputError, match=next(iter(options))):
            ConformalLabelSets(**options)
    with pytest.raises(InvalidInputError, match="min_labels"):
        ConformalLabelSets(min_labels=7).calibrate(probabilities, labels)


def test_conformalize_is_calibrate():
    assert inspect.signature(ConformalLabelSets.conformalize) == inspect.signature(ConformalLabelSets.calibrate)
