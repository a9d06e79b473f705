"""Data frames: columns by name, rows by index, in every call."""

import numpy as np
import pandas as pd
import pytest

from core.problems import assert_same, draw_texts
from surelabel import ByGroup, ConformalLabelSets, Mixture
from surelabel.exceptions import InvalidInputError

NAMES = list("abcdef")


def as_frame(values, columns="abcdef", index=None):
    return pd.DataFrame(values, columns=NAMES, index=index)[list(columns)]


def test_columns_are_matched_by_name():
    probabilities, labels = draw_texts()
    plain = ConformalLabelSets(label_names=NAMES).calibrate(probabilities, labels)
    mixed = ConformalLabelSets().calibrate(as_frame(probabilities, "fedcba"), as_frame(labels, "cabfed"))
    assert mixed.calibration_.label_names == tuple("fedcba")
    test, true = as_frame(probabilities[:5], "badcfe"), as_frame(labels[:5], "bcdefa")
    for predictor in (plain, mixed):
        assert predictor.predict(test).label_sets == plain.predict(probabilities[:5]).label_sets
        p_values = predictor.predict_p(test, true)
        assert np.array_equal(p_values, plain.predict_p(probabilities[:5], labels[:5]))
        sets = predictor.predict_set(test, significance=0.3)
        assert sets.contains(true).tolist() == (p_values > 0.3).tolist()
        assert (
            sets.contains(true).tolist()
            == sets.contains([set(true.columns[row]) for row in true.to_numpy() > 0]).tolist()
        )


def test_missing_unknown_and_repeated_columns_are_errors():
    probabilities, labels = draw_texts()
    predictor = ConformalLabelSets(label_names=NAMES).calibrate(probabilities, labels)
    test = as_frame(probabilities[:5])
    wrong = {
        "missing": test[list("abcde")],
        "unknown": test.assign(g=0.0),
        "twice": pd.concat([test, test[["a"]]], axis=1),
    }
    for problem, frame in wrong.items():
        for call in (predictor.predict, lambda frame: predictor.predict_p(probabilities[:5], frame > 0.5)):
            with pytest.raises(InvalidInputError, match=problem):
                call(frame)
    with pytest.raises(InvalidInputError, match="names"):
        ConformalLabelSets().calibrate(probabilities, labels).predict(test)


def test_numbered_columns_are_indices():
    probabilities, labels = draw_texts()
    plain = ConformalLabelSets().calibrate(probabilities, labels)
    order = [3, 1, 0, 5, 4, 2]
    numbered = ConformalLabelSets().calibrate(pd.DataFrame(probabilities), pd.DataFrame(labels)[order])
    assert numbered.calibration_.label_names is None
    assert_same(plain, numbered, probabilities)
    assert plain.predict(pd.DataFrame(probabilities)[order]).label_sets == plain.predict(probabilities).label_sets
    names = [str(k) for k in order]
    named = ConformalLabelSets(label_names=names).calibrate(probabilities[:, order], labels[:, order])
    assert np.array_equal(
        named.predict(pd.DataFrame(probabilities)).labels, plain.predict(probabilities).labels[:, order]
    )


def test_rows_are_matched_by_index():
    probabilities, labels = draw_texts()
    ids = [f"text {i}" for i in range(60)]
    shuffled = np.random.default_rng(0).permutation(60)
    frame, true = as_frame(probabilities, index=ids), as_frame(labels, index=ids).iloc[shuffled]
    plain = ConformalLabelSets(label_names=NAMES).calibrate(probabilities, labels)
    assert_same(plain, ConformalLabelSets().calibrate(frame, true), probabilities)
    assert plain.predict_p(frame, true).tolist() == plain.predict_p(probabilities, labels).tolist()
    assert plain.predict_p(probabilities, true).tolist() == plain.predict_p(probabilities, labels[shuffled]).tolist()
    names = pd.Series([sorted(np.array(NAMES)[row]) for row in labels], index=ids)[true.index]
    assert plain.predict_p(frame, names).tolist() == plain.predict_p(probabilities, labels).tolist()
    groups = pd.Series(["x", "y"] * 30, index=ids)
    by_group = ConformalLabelSets(taxonomy=ByGroup()).calibrate(frame, true, groups=groups.iloc[shuffled])
    assert_same(
        by_group,
        ConformalLabelSets(label_names=NAMES, taxonomy=ByGroup()).calibrate(probabilities, labels, groups.to_numpy()),
        probabilities,
        groups=groups.to_numpy(),
    )
    with pytest.raises(InvalidInputError, match="index"):
        plain.predict_p(frame, true.rename(index={"text 3": "text 333"}))


def test_a_mixture_follows_the_names():
    probabilities, labels = draw_texts()
    training = draw_texts(80, seed=2)[1]
    plain = ConformalLabelSets(Mixture(0.7, discount=0.3).fit(training), label_names=NAMES).calibrate(
        probabilities, labels
    )
    mixed = Mixture(0.7, discount=0.3).fit(as_frame(training, "cdefab"))
    other = ConformalLabelSets(mixed).calibrate(as_frame(probabilities), labels)
    assert_same(plain, other, probabilities)
    with pytest.raises(InvalidInputError, match="other labels"):
        ConformalLabelSets(mixed, label_names=list("abcdez")).calibrate(probabilities, labels)


def test_label_names_are_checked():
    probabilities, labels = draw_texts()
    for names in (["a"] * 6, list("abc"), "abcdef"):
        with pytest.raises(InvalidInputError, match="label_names"):
            ConformalLabelSets(label_names=names).calibrate(probabilities, labels)
