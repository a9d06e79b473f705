"""The extra `text` alone: a small network, trained, saved, loaded."""

import numpy as np

from surelabel import corpora, text


def main() -> None:
    """Train for one epoch and ask for probabilities."""
    corpus = corpora.load("synthetic")
    train, validation = corpus.part("train"), corpus.part("validation")
    small = text.make("randinit", epochs=1, embedding_size=8, n_kernels=4)
    small.fit(train.texts[:200], train.labels[:200], validation=(validation.texts[:50], validation.labels[:50]))
    probabilities = small.predict_proba(train.texts[:5])
    assert probabilities.shape == (5, len(corpus.label_names))
    small.save("network")
    assert np.array_equal(text.load("network").predict_proba(train.texts[:5]), probabilities)


if __name__ == "__main__":
    main()
