"""What reviewed texts teach: texts of the blind check calibrate anew, the others are training texts.

Only texts of the blind check are drawn from all texts, whatever the model says about them.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import warnings
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from surelabel.answers import Answer, exact_level
from surelabel.corpora import Corpus, Provenance
from surelabel.corpora.overlap import seen_before
from surelabel.exceptions import DataWarning, InvalidInputError
from surelabel.models import Bundle, calibrate_bundle
from surelabel.review.incoming import groups_of
from surelabel.review.queues import ReviewText, offer_of
from surelabel.review.store import ReviewStore

# Calibration texts that may be as strange as the level's limit: fewer make the limit a matter of chance.
_LEAST_STRANGE = 10
_N_FOLDS = 5


def texts_needed(significance: Any) -> int:
    """Return how many checked texts a calibration for a level needs."""
    return math.ceil(_LEAST_STRANGE / Fraction(exact_level(significance)))


@dataclasses.dataclass(frozen=True)
class ModelFigures:
    """What a model does on texts whose labels are known: missed at the level, sizes, and what it files.

    Attributes
    ----------
    n_texts, error : int, float
        Texts, and the share of them whose labels are not among the plausible label-sets.
    median_size, mean_size : float
        Plausible label-sets per text.
    filed, filed_wrong : float
        Share of texts that are filed without a person, and of wrong best guesses among those; None if there are none.
    """

    n_texts: int
    error: float
    median_size: float
    mean_size: float
    filed: float
    filed_wrong: float | None


@dataclasses.dataclass(frozen=True, eq=False)
class CalibrationUpdate:
    """A model with a new calibration, and what the old and the new one do on the checked texts.

    Attributes
    ----------
    bundle : Bundle
        With the same classifier, calibrated on all `n_texts` checked texts.
    before, after : ModelFigures
        Of the model as it was; and of new calibrations: each fifth of the texts is answered by one that has not seen
        it.
    """

    bundle: Bundle
    n_texts: int
    significance: str
    before: ModelFigures
    after: ModelFigures


def update_calibration(
    store: ReviewStore, bundle: Bundle, *, significance: Any = "0.05", least: int | None = None
) -> CalibrationUpdate:
    """Make a new bundle, calibrated on the texts of the blind check; the old one stays as it is.

    Parameters
    ----------
    store : ReviewStore
    bundle : Bundle
    significance
        The level at which old and new calibration are compared.
    least : int, optional
        Checked texts that are needed; `texts_needed` by default.

    Raises
    ------
    InvalidInputError
        There are too few checked texts.
    """
    level = exact_level(significance)
    least = texts_needed(level) if least is None else least
    checked = [text for text in store.texts(queue="check") if text.is_blind and text.decision is not None]
    if bundle.seen is not None and checked:
        # Texts of training tell nothing about new ones.
        trained = bundle.seen.in_training([text.text for text in checked])
        checked = [item for item, is_seen in zip(checked, trained.tolist(), strict=True) if not is_seen]
    if len(checked) < least:
        raise InvalidInputError(
            f"A calibration at significance {level} needs {least:,} texts of the blind check. "
            f"There are {len(checked):,}: check more, or draw a larger share."
        )
    # Folds in a fixed order, which depends on nothing that the texts say.
    folds = np.random.default_rng(0).permutation(len(checked)) % _N_FOLDS
    after: list[tuple[Answer, bool, bool]] = []
    for fold in range(_N_FOLDS):
        others = [item for item, place in zip(checked, folds, strict=True) if place != fold]
        own = [item for item, place in zip(checked, folds, strict=True) if place == fold]
        after += _outcomes(calibrate_bundle(bundle, _corpus(bundle, others)), own, level)
    return CalibrationUpdate(
        bundle=calibrate_bundle(bundle, _corpus(bundle, checked)),
        n_texts=len(checked),
        significance=level,
        before=_figures(_outcomes(bundle, checked, level)),
        after=_figures(after),
    )


def _chosen(checked: Sequence[ReviewText]) -> list[tuple[str, ...]]:
    """Return the labels that reviewers chose."""
    return [() if text.decision is None else text.decision.chosen or () for text in checked]


def _corpus(bundle: Bundle, checked: Sequence[ReviewText]) -> Corpus:
    """Return checked texts as a corpus that is all calibration."""
    groups = groups_of(bundle, checked)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # texts for which no label fits have none
        return Corpus.from_label_sets(
            "blind check",
            [text.text for text in checked],
            _chosen(checked),
            ids=[str(text.number) for text in checked],
            label_names=bundle.label_names,
            parts={"calibration": range(len(checked))},
            provenance=Provenance("reviews", "texts of the blind check"),
            columns=None if groups is None else {bundle.info.group_column or "group": groups},
        )


def _outcomes(bundle: Bundle, checked: Sequence[ReviewText], significance: str) -> list[tuple[Answer, bool, bool]]:
    """Return each text's answer, whether its labels were missed, and whether the best guess is wrong."""
    texts, chosen, groups = [text.text for text in checked], _chosen(checked), groups_of(bundle, checked)
    probabilities = bundle.predict_proba(texts)
    held = bundle.predictor.predict_set(probabilities, significance=significance, groups=groups).contains(chosen)
    answers = bundle.answers(texts, significance=significance, top=1, groups=groups)
    return [
        (answer, not bool(is_held), set(answer.labels) != set(labels))
        for answer, is_held, labels in zip(answers, held, chosen, strict=True)
    ]


def _figures(outcomes: Sequence[tuple[Answer, bool, bool]]) -> ModelFigures:
    """Return the figures of some texts."""
    sizes = [float(answer.size_bounds[1]) for answer, _, _ in outcomes]
    wrong_filed = [is_wrong for answer, _, is_wrong in outcomes if offer_of(answer).verdict == "file"]
    return ModelFigures(
        n_texts=len(outcomes),
        error=sum(missed for _, missed, _ in outcomes) / len(outcomes),
        median_size=statistics.median(sizes),
        mean_size=statistics.fmean(sizes),
        filed=len(wrong_filed) / len(outcomes),
        filed_wrong=sum(wrong_filed) / len(wrong_filed) if wrong_filed else None,
    )


def with_reviews(corpus: Corpus, store: ReviewStore) -> Corpus:
    """Return a corpus with the reviewed texts among its training texts.

    Texts of the blind check stay out: they are for calibration. So do texts for which no label fits, and texts that are
    in the corpus already, so that nothing is trained on that the model is later calibrated or measured with.

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
    labels = dict.fromkeys([*corpus.label_names, *sorted({label for _, chosen in new for label in chosen})])
    n_before, what = len(corpus), f"{len(new):,} reviewed texts"
    added = np.arange(n_before, n_before + len(new))
    grown = Corpus.from_label_sets(
        corpus.name,
        [*corpus.texts, *(text.text for text, _ in new)],
        [*corpus.label_sets, *(chosen for _, chosen in new)],
        ids=[*corpus.ids, *(f"review-{text.number}" for text, _ in new)],
        label_names=list(labels),
        parts={**corpus.parts, "train": np.concatenate([corpus.parts["train"], added])},
        columns={
            name: [*values, *(str(text.columns.get(name, "")) for text, _ in new)]
            for name, values in corpus.columns.items()
        },
        # Not the source alone any more: the same file read again is another corpus.
        provenance=dataclasses.replace(
            corpus.provenance,
            source=f"{corpus.provenance.source} and {what}",
            checksum=None,
            notes=(*corpus.provenance.notes, f"{what} are among the training texts"),
        ),
    )
    return dataclasses.replace(grown, split=corpus.split)
