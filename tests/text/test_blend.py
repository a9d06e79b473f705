"""Blends: weights by hand, better than every member, saved as one."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

from surelabel.exceptions import ArtifactError, DataWarning, InvalidInputError
from surelabel.text import load, make
from surelabel.text.blend import fit_weights
from surelabel.text.curves import log_loss

LINEAR = {"loss": "svm", "inverse_regularisation": 1.0}


def _blend(**settings):
    return make("blend", of="linear,linear", members={"linear": LINEAR}, **settings)


def test_two_views_of_a_text_are_worth_more_than_one():
    rng = np.random.default_rng(0)
    truth = rng.random((4_000, 3)) < 0.3
    views = [2.0 * truth - 1.0 + rng.normal(size=truth.shape) for _ in range(2)]
    train, test = slice(0, 2_000), slice(2_000, None)
    weights = fit_weights([view[train] for view in views], truth[train], seed=0)
    # The log-odds of truth are 2 x + 2 y + log(.3 / .7).
    assert weights[:2] == pytest.approx(2.0, abs=0.35)
    assert weights[2] == pytest.approx(np.log(3 / 7), abs=0.35)
    both = weights[0] * views[0][test] + weights[1] * views[1][test] + weights[2]
    alone = [2.0 * view[test] + np.log(3 / 7) for view in views]
    assert log_loss(both, truth[test]) < 0.8 * min(log_loss(one, truth[test]) for one in alone)


def test_labels_get_their_own_weights_only_if_that_pays():
    rng = np.random.default_rng(1)
    truth = rng.random((3_000, 2)) < 0.5
    good, noise = 2.0 * truth - 1.0 + rng.normal(size=truth.shape), rng.normal(size=truth.shape)
    one, other = np.column_stack([good[:, 0], noise[:, 1]]), np.column_stack([noise[:, 0], good[:, 1]])
    apart = fit_weights([one, other], truth, seed=0)
    assert apart[0, 0] > 1.5
    assert abs(apart[0, 1]) < 0.3
    assert np.ptp(apart, axis=1).max() > 1.5
    # Of few texts, labels that are alike take nearly the same weights.
    alike = fit_weights([good[:60], noise[:60]], truth[:60], seed=0)
    assert np.ptp(alike, axis=1).max() < 1.0


def test_saved_as_one_classifier(topical, tmp_path):
    (texts, labels), (new_texts, new_labels) = topical
    blend = _blend(seed=3).fit(texts, labels, validation=(new_texts, new_labels), label_names=["grain", "metal", "oil"])
    assert [member.settings.seed for member in blend.members_] == [3, 4]
    probabilities = blend.predict_proba(new_texts)
    odds = [scipy.special.logit(member.predict_proba(new_texts)) for member in blend.members_]
    expected = blend._weights[0] * odds[0] + blend._weights[1] * odds[1] + blend._weights[2]
    assert probabilities == pytest.approx(scipy.special.expit(expected), abs=1e-6)
    blend.save(tmp_path / "saved")
    again = load(tmp_path / "saved")
    assert again.label_names_ == ("grain", "metal", "oil")
    assert np.array_equal(again.predict_proba(new_texts), probabilities)
    again.settings = make("blend", of="linear,linear,linear").settings
    with pytest.raises(ArtifactError, match="member-2"):
        again._read(tmp_path / "saved")


def test_without_validation_texts_a_fifth_is_held_out(topical):
    (texts, labels), (new_texts, new_labels) = topical
    blend = _blend().fit(texts, labels)
    assert ((blend.predict_proba(new_texts) >= 0.5) == new_labels).mean() > 0.7
    assert len(blend.history_) == 3
    with pytest.warns(DataWarning, match="nothing can be learnt"), pytest.raises(InvalidInputError, match="two texts"):
        _blend().fit(["wheat"], [[1, 0]])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"of": "linear"}, "two kinds or more"),
        ({"of": "linear,blend"}, "none of them 'blend'"),
        ({"of": "linear,nothing"}, "one of .* Got 'nothing'"),
        ({"of": "linear,linear", "members": {"bert": {}}}, "kinds that 'of' names"),
        ({"of": "linear,linear", "members": {"linear": {"colour": 1}}}, "no setting 'colour'"),
    ],
)
def test_wrong_members_are_refused_before_training(settings, message):
    with pytest.raises(InvalidInputError, match=message):
        make("blend", **settings)


def test_a_neural_member(topical):
    (texts, labels), (new_texts, new_labels) = topical
    small = {"vocabulary_size": 100, "max_words": 20, "embedding_size": 8, "n_kernels": 4, "n_hidden": 8, "epochs": 1}
    blend = make("blend", of="linear,randinit", members={"randinit": small, "linear": LINEAR})
    blend.fit(texts, labels, validation=(new_texts, new_labels), progress=False)
    assert blend.predict_proba(new_texts).shape == new_labels.shape


def test_a_blend_knows_the_words_of_its_first_member_that_can_tell():
    texts = ["wheat and corn", "the dollar fell", "corn prices", "dollar and yen"] * 5
    labels = [[1, 0], [0, 1], [1, 0], [0, 1]] * 5
    blend = make("blend", of="linear,linear", members={"linear": {"min_texts": 1}}).fit(texts, labels)
    shares = blend.known_words(["corn qwer", "..."])
    assert shares[0] == 0.5
    assert np.isnan(shares[1])
    assert blend.known_words(["corn qwer"]).tolist() == blend.members_[0].known_words(["corn qwer"]).tolist()
