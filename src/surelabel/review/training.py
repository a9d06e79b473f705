"""Corrections as training texts."""

from __future__ import annotations

import dataclasses

import numpy as np

from surelabel.corpora import Corpus
from surelabel.corpora.overlap import seen_before
from surelabel.exceptions import InvalidInputError
from surelabel.review.store import ReviewStore


def with_reviews(corpus: Corpus, store: ReviewStore) -> Corpus:
    """Return a corpus with the reviewed texts among its training texts.

    Texts of the blind check stay out: they are for calibration. So do texts for which no label fits, and texts that are
    in the corpus already, so that nothing is trained on that the model is later calibrated or measured with.

    Parameters
    ----------
    corpus : Corpus
    store : ReviewStore

    Examples
    --------
    >>> import tempfile
    >>> from surelabel.review import NewText, Offer, ReviewStore
    >>> store = ReviewStore(f"{tempfile.mkdtemp()}/reviews.sqlite")
    >>> store.add([NewText("7", "Crude rose.", Offer("choose", "", ("gas",)), model="0")])
    1
    >>> _ = store.decide("a key", 1, "ann", "edit", ["oil"])
    >>> corpus = Corpus.from_label_sets("two", ["oil up", "gas and oil"], [{"oil"}, {"gas", "oil"}])
    >>> with_reviews(corpus, store)
    Corpus 'two': 3 texts, 2 labels (train 3)
    """
    reviewed = [
        (text, text.decision.chosen)
        for text in store.texts()
        if text.decision is not None and text.decision.chosen and not text.is_blind
    ]
    is_seen = seen_before([text.text for text, _ in reviewed], corpus.texts).tolist()
    new = [item for item, seen in zip(reviewed, is_seen, strict=True) if not seen]
    if not new:
        raise InvalidInputError(
            "The review store must have decided texts that are not in the corpus. "
            f"Got {len(reviewed):,} decided texts, all of them in the corpus. Leave out --with-reviews."
        )
    labels = dict.fromkeys(corpus.label_names)
    labels.update(dict.fromkeys(sorted({label for _, chosen in new for label in chosen})))
    n_before = len(corpus)
    grown = Corpus.from_label_sets(
        corpus.name,
        [*corpus.texts, *(text.text for text, _ in new)],
        [*corpus.label_sets, *(chosen for _, chosen in new)],
        ids=[*corpus.ids, *(f"review-{text.number}" for text, _ in new)],
        label_names=list(labels),
        parts={
            **corpus.parts,
            "train": np.concatenate([corpus.parts["train"], np.arange(n_before, n_before + len(new))]),
        },
        columns={
            name: [*values, *(str(text.columns.get(name, "")) for text, _ in new)]
            for name, values in corpus.columns.items()
        },
        # Not the source alone any more: the same file read again is another corpus.
        provenance=dataclasses.replace(
            corpus.provenance,
            source=f"{corpus.provenance.source} and {len(new):,} reviewed texts",
            checksum=None,
            notes=(*corpus.provenance.notes, f"{len(new):,} reviewed texts are among the training texts"),
        ),
    )
    return dataclasses.replace(grown, split=corpus.split)
