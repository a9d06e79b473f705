"""Texts and labels that are not what they must be."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from surelabel.exceptions import DataWarning, InvalidInputError, MissingDependencyError, NotCalibratedError
from surelabel.text import CnnSettings, LinearSettings, RandinitClassifier, make
from surelabel.text.inputs import as_labels, as_texts


def test_labels_of_every_accepted_form_are_the_same():
    expected = np.array([[True, False], [False, True]])
    forms = [expected, expected.astype(int), expected.astype(float), expected.tolist()]
    forms += [scipy.sparse.csr_array(expected.astype(np.int8)), scipy.sparse.coo_matrix(expected)]
    for form in forms:
        found = as_labels(form, 2)
        assert found.dtype == bool
        assert (found == expected).all()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1], r"\(n_texts, n_labels\) array .* Got an array of shape \(2,\)"),
        (np.zeros((2, 0)), "one label. Got shape"),
        ([[0], [1], [1]], "as many rows as there are texts, 2. Got 3"),
        ([[0, 2], [1, 0]], "Got 2 in row 0, column 1"),
        ([[0, np.nan], [1, 0]], "Got nan in row 0, column 1"),
        ([["a"], ["b"]], "Got values of type <U1"),
    ],
)
def test_wrong_labels(labels, message):
    with pytest.raises(InvalidInputError, match=message):
        as_labels(labels, 2)


@pytest.mark.parametrize(
    ("texts", "message"),
    [("wheat", "Got one str"), (b"wheat", "Got one bytes"), (["a", None], "NoneType at index 1"), ([3], "Got int")],
)
def test_wrong_texts(texts, message):
    with pytest.raises(InvalidInputError, match=message):
        as_texts(texts)


def test_empty_texts_are_allowed_and_said():
    with pytest.warns(DataWarning, match="2 of 3 texts in 'texts' are empty"):
        assert as_texts(["", "a", " \n"]) == ["", "a", " \n"]


def test_label_names(topical):
    (texts, labels), _ = topical
    assert make("linear").fit(texts, labels, label_names="abc").label_names_ == ("a", "b", "c")
    for names, message in ((["a"], "3 names, one per label. Got 1"), (["a", "b", "a"], "Got 'a' twice")):
        with pytest.raises(InvalidInputError, match=message):
            make("linear").fit(texts, labels, label_names=names)


def test_fit_checks(topical):
    (texts, labels), _ = topical
    classifier = make("linear")
    with pytest.raises(InvalidInputError, match="at least one text"):
        classifier.fit([], np.zeros((0, 2)))
    with pytest.raises(InvalidInputError, match="pair"):
        classifier.fit(texts, labels, validation=texts)
    with pytest.raises(InvalidInputError, match="an array with 3 labels"):
        classifier.fit(texts, labels, validation=(texts, labels[:, :1]))
    with pytest.raises(InvalidInputError, match="at least one text"):
        classifier.fit(texts, labels, validation=([], labels[:0]))
    with pytest.raises(NotCalibratedError, match="not fitted"):
        classifier.predict_proba(texts)
    with pytest.raises(NotCalibratedError, match="nothing to save"):
        classifier.save("nowhere")
    with pytest.raises(InvalidInputError, match="batch_size"):
        classifier.fit(texts, labels).predict_proba(texts, batch_size=0)


def test_settings_are_checked():
    with pytest.raises(InvalidInputError, match=r"'dropout' setting of CnnSettings .* Got 1\.5"):
        make("randinit", dropout=1.5)
    with pytest.raises(InvalidInputError, match=r"'pooling' setting .* cls, mean. Got 'max'"):
        make("bert", pooling="max")
    with pytest.raises(InvalidInputError, match=r"no setting 'size'. It has"):
        make("linear", size=3)
    with pytest.raises(InvalidInputError, match=r"kind .* Got 'svm'"):
        make("svm")
    with pytest.raises(InvalidInputError, match=r"must be CnnSettings. Got LinearSettings"):
        RandinitClassifier(LinearSettings())
    with pytest.raises(InvalidInputError, match="Got True"):
        CnnSettings(epochs=True)


def test_classifiers_can_be_cloned():
    from sklearn.base import clone

    classifier = make("randinit", seed=7)
    copy = clone(classifier)
    assert copy is not classifier
    assert copy.settings == classifier.settings
    assert repr(copy) == "make('randinit', seed=7)"


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setattr("surelabel.text.base.KINDS", {"randinit": ("a_library_that_is_missing", "None")})
    with pytest.raises(MissingDependencyError, match=r"needs a_library_that_is_missing.*surelabel\[text\]"):
        make("randinit")
