"""How a model is made."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

from surelabel.exceptions import InvalidInputError
from surelabel.labels.constraints import LabelConstraints
from surelabel.measures import MEASURES, LogLoss, Measure, SeparableMeasure
from surelabel.models.deciding import DecisionSettings
from surelabel.models.dividing import Division
from surelabel.models.fitting import Automatic, needs_fitting


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
