"""Made-up texts with four labels, whose words they mostly have."""

import numpy as np

LABELS = ("grain", "money", "metal", "oil")
SIGNS = {"grain": "wheat corn", "money": "dollar yen", "metal": "gold silver", "oil": "oil barrel"}
FILLERS = ["the", "report", "said", "that", "prices", "rose", "again", "on", "monday", "after", "a", "quiet", "week"]
SMALL = {"embedding_size": 16, "n_kernels": 4, "kernel_words": 3, "n_hidden": 16, "batch_size": 16}
"""Settings of a CNN that trains in a second."""
CNN = {**SMALL, "epochs": 8, "learning_rate": 0.02, "averaging": 0.9, "word_dropout": 0.0}
"""Settings of one that learns."""


def made_up(n_texts, seed):
    """Return texts whose labels' words are mostly there, and the labels, (n_texts, 4) bool."""
    random = np.random.default_rng(seed)
    labels = random.random((n_texts, 4)) < 0.35
    labels[~labels.any(axis=1), 0] = True
    texts = []
    for row in labels:
        words = list(random.choice(FILLERS, 8))
        for place in np.flatnonzero(row):
            words += [random.choice(SIGNS[LABELS[place]].split())] * int(random.random() < 0.9)
        random.shuffle(words)
        texts.append(" ".join(words).capitalize() + ".")
    return texts, labels


def log_loss(probabilities, labels):
    """Return the log-loss, summed over labels, mean over texts."""
    own = np.clip(np.where(labels, probabilities, 1 - probabilities), 1e-12, 1)
    return float(-np.log(own).sum(axis=1).mean())
