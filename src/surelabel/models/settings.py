"""How a model is made, and by which division it is calibrated."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from surelabel._core.levels import MAIN_LEVEL
from surelabel._core.validation import as_level
from surelabel.conformal import ConformalLabelSets
from surelabel.exceptions import InvalidInputError
from surelabel.labels.constraints import LabelConstraints
from surelabel.measures import MEASURES, LogLoss, Measure, SeparableMeasure
from surelabel.models.deciding import DecisionSettings
from surelabel.models.fitting import Automatic, needs_fitting
from surelabel.taxonomies.kinds import ByCardinality, ByGroup, ByRarity, Taxonomy

CARDINALITIES = (1, 2, 3)
RARITIES = (10, 100)


@dataclasses.dataclass(frozen=True)
class Division:
    """How texts and label-sets are divided for calibration; several ways are multiplied.

    `by` is a column of the table that says the group of each text. `cardinality` are numbers of labels at which kinds
    of label-sets begin, as in `ByCardinality`; `rarity` are numbers of training texts of the rarest label, as in
    `ByRarity`. Categories with fewer than `min_texts` calibration texts are joined.

    Examples
    --------
    >>> Division(by="source", cardinality=(1, 2)).taxonomy(None)
    ByGroup() * ByCardinality((1, 2))
    """

    by: str | None = None
    cardinality: Sequence[int] = ()
    rarity: Sequence[int] = ()
    min_texts: int = 0

    def __post_init__(self) -> None:
        for name in ("cardinality", "rarity"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not (self.by or self.cardinality or self.rarity):
            raise InvalidInputError(
                "A division must be by a column, by number of labels or by rarity. Got none of them; 'min_texts' "
                "(--min-texts) alone divides nothing."
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a table must have."""
        return () if self.by is None else (self.by,)

    def taxonomy(self, training_counts: Any) -> Taxonomy:
        """Return the taxonomy, given how many training texts each label has, (d,); None if that is not known."""
        parts: list[Taxonomy] = []
        if self.by is not None:
            parts.append(ByGroup(min_texts=self.min_texts))
        if self.cardinality:
            parts.append(ByCardinality(self.cardinality, min_texts=self.min_texts))
        if self.rarity:
            if training_counts is None:
                raise InvalidInputError(
                    "A division by rarity must know how many training texts each label has. Give the corpus that the "
                    "model was trained on."
                )
            counts = np.asarray(training_counts, dtype=np.int64).reshape(-1)
            parts.append(ByRarity(counts, self.rarity, min_texts=self.min_texts))
        product = parts[0]
        for part in parts[1:]:
            product = product * part
        return product


def division_notes(predictor: ConformalLabelSets) -> tuple[str, ...]:
    """Say which categories have too few calibration texts to rule anything out at the main level."""
    calibration = predictor.calibration_
    if calibration.categories is None:
        return ()
    level = as_level(MAIN_LEVEL, None, who="division_notes")
    said = calibration.categories.words_of_small(level, calibration.limits)
    return () if said is None else (said,)


@dataclasses.dataclass(frozen=True)
class TrainingSettings:
    """How a bundle is made.

    Parameters
    ----------
    kind : {"linear", "hybrid", "auto", "randinit", "word2vec", "bert", "blend"}
        "auto" fits `linear`, and `hybrid` if its encoder is installed, and keeps the one with the lower log-loss on
        validation texts.
    options : mapping
        Settings of the classifier that differ from its defaults; of "auto", of `linear` or `hybrid`.
    measure : Measure or Automatic
        Of the bundle's predictor. A Mahalanobis or Penalised one that is not fitted is fitted on the validation part,
        and an automatic one is chosen there.
    compared : mapping of name to SeparableMeasure
        Measures that are evaluated beside it.
    seed : int
        Of training; goes into the classifier's settings.
    min_labels, max_labels : int, optional
        Limits on the number of labels of a label-set. By default those of the proper training texts: at least 1 if
        all of them have a label, at most as many as one of them has.
    name : str, optional
        Of the model; corpus and kind by default.
    constraints : LabelConstraints, optional
        What label-sets must obey to be candidates. A warning names training texts that do not.
    listed : int, "all" or None
        How many labels keep their probabilities per text, the highest ones; all others count as 0, and memory grows
        with what is listed. "all" keeps all probabilities in one array. None keeps all of up to 1,000 labels, and lists
        50 of more, or those of the linear classifier's shortlists.
    recalibrate : bool
        Correct the classifier's probabilities, label by label, on the validation part; what is fitted there too sees
        the corrected ones. Sets become smaller with some classifiers, larger with others.
    decision : {"exact", "f1", "macro-f1"}
        Rule for the best guess: the most plausible label-set, which is exactly right most often (the paper's rule), or
        thresholds fitted on the validation part, for micro-F1 or for macro-F1, which counts rare labels as much as
        frequent ones. Prediction sets are the same.
    decisions : DecisionSettings
        What is promised about texts that are filed and tags that are named, and how long a short list may be.
    division : Division, optional
        Calibrate by a column of the table, by number of labels or by rarity, so that errors are bounded in every
        category.
    date : str, optional
        Column of the table with the date of each text; errors are then shown by month.
    """

    kind: str = "linear"
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    measure: Measure | Automatic = dataclasses.field(default_factory=LogLoss)
    compared: Mapping[str, SeparableMeasure] = dataclasses.field(default_factory=lambda: MEASURES)
    seed: int = 0
    min_labels: int | None = None
    max_labels: int | None = None
    name: str | None = None
    constraints: LabelConstraints | None = None
    recalibrate: bool = False
    listed: int | Literal["all"] | None = None
    decision: Literal["exact", "f1", "macro-f1"] = "exact"
    decisions: DecisionSettings = dataclasses.field(default_factory=DecisionSettings)
    division: Division | None = None
    date: str | None = None

    def __post_init__(self) -> None:
        if self.decision not in {"exact", "f1", "macro-f1"}:
            raise InvalidInputError(
                f"The 'decision' must be 'exact', 'f1' or 'macro-f1'. Got {self.decision!r} instead."
            )
        if self.decision != "exact" and self.constraints is not None:
            raise InvalidInputError(
                f"Best guesses by thresholds (decision {self.decision!r}) know no constraints. Use decision 'exact' "
                "with constraints."
            )

    @property
    def needs_validation(self) -> bool:
        """Whether something is fitted on the validation part beside the classifier."""
        return self.recalibrate or self.decision != "exact" or needs_fitting(self.measure)
