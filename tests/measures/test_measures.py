"""Measures: costs by hand, against independently coded ones, and the protocol for a user's own."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cases
import reference
from surelabel import ConformalLabelSets, LogLoss, LpNorm, SeparableMeasure
from surelabel.exceptions import InvalidInputError
from surelabel.measures import measure_from_spec, measure_name, measure_named, measure_to_spec


def test_costs_by_hand():
    absent, present = LpNorm(2).costs(np.array([[0.25, 1.0]]))
    assert (absent.tolist(), present.tolist()) == ([[0.0625, 1.0]], [[0.5625, 0.0]])
    absent, present = LpNorm(8).costs(np.array([[0.5, 0.0]]))
    assert (absent.tolist(), present.tolist()) == ([[1 / 256, 0.0]], [[1 / 256, 1.0]])
    absent, present = LpNorm(math.inf).costs(np.array([[0.25]]))
    assert (absent.tolist(), present.tolist()) == ([[0.25]], [[0.75]])
    absent, present = LogLoss(0.25).costs(np.array([[0.0, 0.5]]))
    assert absent == pytest.approx(np.array([[-math.log(0.75), math.log(2)]]))
    assert present == pytest.approx(np.array([[math.log(4), math.log(2)]]))


def test_scores_are_norms():
    row, labels = np.array([[0.1, 0.6, 0.9]]), np.array([1, 0, 1])
    for p in (1, 1.5, 2, 4, 8):
        measure = LpNorm(p)
        absent, present = measure.costs(row)
        total = np.where(labels, present, absent).sum()
        assert measure.score(np.array([total]))[0] == pytest.approx(np.linalg.norm(row[0] - labels, p))
    assert LpNorm(math.inf).score(np.array([0.7])).tolist() == [0.7]
    assert LogLoss().score(np.array([2.0])).tolist() == [2.0]


@settings(max_examples=cases.examples(60))
@given(row=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=9))
def test_costs_are_the_reference_costs(row):
    array = np.array([row])
    for p in (1, 2, 4, 8, math.inf):
        absent, present = LpNorm(p).costs(array)
        assert (absent[0].tolist(), present[0].tolist()) == reference.lp_costs(row, p)
    for measure, expected in (
        (LpNorm(1.5), reference.lp_costs(row, 1.5)),
        (LpNorm(3), reference.lp_costs(row, 3)),
        (LogLoss(), reference.log_costs(row, 1e-6)),
        (LogLoss(0.1), reference.log_costs(row, 0.1)),
    ):
        for got, wanted in zip(measure.costs(array), expected, strict=True):
            np.testing.assert_array_max_ulp(got[0], np.array(wanted), maxulp=2)


@pytest.mark.parametrize("measure", cases.MEASURES, ids=repr)
def test_costs_of_a_text_do_not_depend_on_the_texts_beside_it(measure):
    # Vectorised powers and logarithms treat the ends of an array apart: that must not change a bit.
    rows = np.random.default_rng(0).random((37, 13))
    together = measure.costs(rows)
    for i in range(len(rows)):
        alone = measure.costs(np.ascontiguousarray(rows[i : i + 1]))
        part = measure.costs(rows[i:])
        for whole, one, rest in zip(together, alone, part, strict=True):
            assert one[0].tolist() == whole[i].tolist() == rest[0].tolist()


@pytest.mark.parametrize("p", [0.5, 0, -1, math.nan, "2", True, None])
def test_norms_need_p_of_one_or_more(p):
    with pytest.raises(InvalidInputError, match=rf"'p' parameter of LpNorm must be a number >= 1. Got {p!r}"):
        LpNorm(p)


@pytest.mark.parametrize("clip", [0.0, 0.5, -0.1, math.nan, "a", True])
def test_log_loss_needs_a_clip_below_a_half(clip):
    with pytest.raises(InvalidInputError, match="'clip' parameter of LogLoss"):
        LogLoss(clip)


def test_measures_are_values():
    assert LpNorm(2) == LpNorm(2.0)
    assert hash(LpNorm(2)) == hash(LpNorm(2.0))
    assert LpNorm(2) != LpNorm(4)
    assert LogLoss() == LogLoss(1e-6)
    with pytest.raises(dataclasses.FrozenInstanceError):
        LpNorm(2).p = 4
    assert isinstance(LpNorm(2), SeparableMeasure)
    assert isinstance(cases.Weighted(), SeparableMeasure)


@pytest.mark.parametrize("measure", cases.MEASURES, ids=repr)
def test_descriptions_of_measures_give_them_back(measure):
    assert measure_from_spec(measure_to_spec(measure)) == measure


def test_descriptions_that_are_not_ours_are_refused():
    assert measure_from_spec(measure_to_spec(cases.Weighted())) is None
    with pytest.raises(InvalidInputError, match="'cosine' is not known"):
        measure_from_spec({"kind": "cosine"})
    with pytest.raises(InvalidInputError, match="takes"):
        measure_from_spec({"kind": "lp-norm", "q": "2"})


@pytest.mark.parametrize("measure", [2, "L2", None, LpNorm, object()])
def test_what_is_no_measure_is_refused(measure):
    with pytest.raises(InvalidInputError, match="'measure' parameter of ConformalLabelSets"):
        ConformalLabelSets(measure)


def test_an_own_measure_needs_a_known_aggregate():
    with pytest.raises(InvalidInputError, match=r"'aggregate' of .* must be 'sum' or 'max'. Got 'mean'"):
        ConformalLabelSets(cases.Weighted("mean"))


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        (lambda o: (o - 0.5, o), "absent"),
        (lambda o: (o, o / 0.0), "present"),
        (lambda o: (o[:, :1], o), "absent"),
        (lambda o: (o, o * math.nan), "present"),
    ],
    ids=["negative", "infinite", "shape", "nan"],
)
def test_costs_of_an_own_measure_are_checked(wrong, name):
    class Wrong:
        aggregate = "sum"

        def costs(self, probabilities):
            with np.errstate(divide="ignore"):
                return wrong(probabilities)

        def score(self, totals):
            return totals

    with pytest.raises(InvalidInputError, match=rf"The {name} costs of .* must be finite numbers >= 0"):
        ConformalLabelSets(Wrong()).calibrate([[0.2, 0.7]], [[1, 0]])


def test_measures_have_names():
    assert (measure_named("L2"), measure_named("linf")) == (LpNorm(2), LpNorm(math.inf))
    measures = LpNorm(4), LogLoss(), LogLoss(clip=0.01)
    assert [measure_name(measure) for measure in measures] == ["L4", "LogLoss", "LogLoss(clip=0.01)"]
