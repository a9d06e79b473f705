"""Small corpora, and training in a fraction of a second: for tests about promises and not about F1."""

import warnings

from surelabel import corpora
from surelabel.models import train


def quick_train(corpus, out=None, **settings):
    """Train one linear fit, without a search of settings."""
    quick = {"options": {"C": 1.0, "loss": "svm"}, "measure": "log-loss"}
    with warnings.catch_warnings(action="ignore"):
        return train(corpus, out, **{**quick, **settings})


def mixed(n_texts, n_labels=8, seed=0):
    """Return texts that are easy and hard in turn: of every other one, the first five words."""
    made = corpora.generate_synthetic(n_texts, n_labels, seed)
    texts = [text if row % 2 else " ".join(text.split()[:5]) for row, text in enumerate(made.texts)]
    return corpora.Corpus.from_label_sets("mixed", texts, made.label_sets)
