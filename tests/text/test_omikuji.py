"""`omikuji`: thousands of labels as shortlists whose probabilities mean what they say."""

import numpy as np
import pytest
import scipy.sparse

from surelabel import text
from surelabel.exceptions import ArtifactError
from surelabel.labels.shortlists import Shortlists

pytest.importorskip("omikuji")
N_LABELS = 1_100


def made_up(n_texts, seed):
    """Return texts with a word for each of their two labels, frequent labels more often."""
    random = np.random.default_rng(seed)
    weights = 1 / np.arange(1, N_LABELS + 1)
    own = [random.choice(N_LABELS, 2, replace=False, p=weights / weights.sum()) for _ in range(n_texts)]
    letters = "abcdefghijk"
    names = ["".join(letters[int(digit)] for digit in str(label)) + "q" for label in range(N_LABELS)]
    texts = [" ".join([*(names[label] for label in labels), *random.choice(list("xyz"), 3)]) for labels in own]
    rows = np.repeat(np.arange(n_texts), 2)
    matrix = scipy.sparse.csr_array((np.ones(2 * n_texts, bool), (rows, np.concatenate(own))), (n_texts, N_LABELS))
    return texts, matrix


@pytest.fixture(scope="module")
def fitted():
    with pytest.warns(match="occur in none"):
        return text.make(text.default_kind(N_LABELS), n_listed=20, n_trees=1).fit(*made_up(500, 0))


def test_it_lists_the_right_labels(fitted):
    texts, labels = made_up(100, 1)
    shortlists = fitted.predict_proba(texts)
    assert isinstance(shortlists, Shortlists)
    assert shortlists.shape == (100, N_LABELS)
    predicted = shortlists.tocsr() > 0.5
    assert 2 * predicted.multiply(labels).sum() / (predicted.sum() + labels.sum()) > 0.6
    assert fitted.kind == "omikuji"


def test_held_out_probabilities_are_calibrated(fitted):
    rows, shortlists = fitted.held_out_
    labels = made_up(500, 0)[1]
    np.testing.assert_array_equal(rows, np.arange(500))
    listed = shortlists.is_listed
    hits = labels.toarray()[np.nonzero(listed)[0], shortlists.labels[listed]]
    assert shortlists.probabilities[listed].mean() == pytest.approx(hits.mean(), rel=0.2)


def test_texts_without_known_words(fitted):
    shortlists = fitted.predict_proba(["", "unheard"])
    assert np.isfinite(shortlists.probabilities).all()


def test_a_saved_one_is_the_same_and_prints_nothing(fitted, tmp_path, capfd):
    texts, _ = made_up(20, 2)
    fitted.save(tmp_path / "saved")
    loaded = text.load(tmp_path / "saved")
    one, other = fitted.predict_proba(texts), loaded.predict_proba(texts)
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_allclose(one.probabilities, other.probabilities, atol=1e-5)
    assert capfd.readouterr().out == ""


def test_damaged_trees(fitted, tmp_path):
    from surelabel._core.files import write_manifest

    fitted.save(tmp_path / "saved")
    tree = next((tmp_path / "saved").rglob("tree0*"))
    tree.write_bytes(tree.read_bytes()[:100])
    with pytest.raises(ArtifactError):
        text.load(tmp_path / "saved")
    write_manifest(tmp_path / "saved")
    with pytest.raises(ArtifactError):
        text.load(tmp_path / "saved")
