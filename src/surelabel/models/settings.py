"""How a model is made, and what it promises."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from surelabel._core.validation import as_fraction, check_count
from surelabel.exceptions import InvalidInputError
from surelabel.measures import measure_from_name

BEST_GUESSES = ("exact", "f1", "macro-f1")
LEVELS = ("significance", "max_wrong", "max_missed", "max_false", "assurance")


@dataclasses.dataclass(frozen=True)
class TrainingSettings:
    """How a bundle is made, and what it promises.

    Parameters
    ----------
    classifier : str, optional
        One of `surelabel.text.KINDS`; by default "linear", for more than 1,000 labels "omikuji".
    options : mapping
        Settings of the classifier that differ from its defaults.
    measure : Measure or str
        Nonconformity measure or its name: "log-loss", "l1", "l2", "l4", "l8". "auto" chooses between a `Mixture` and
        `LogLoss` with probabilities of training texts that the fit has not seen.
    seed : int
        Of parts that are drawn and of training.
    min_labels, max_labels : int, optional
        Limits on the number of labels of a label-set; those of the training texts by default, at least 1.
    max_wrong, assurance : str or number
        Of the texts that are filed, at most this share is wrong, with this assurance.
    max_missed, max_false : str or number
        Of the true tags, at most this share is missing from the tags to consider; of the tags that are assigned, at
        most this share is false.
    max_tags : int
        A text with more tags to consider is to be read.
    never_file : sequence of str
        Labels that are never filed alone: texts whose best guess has one go to people.
    significance : str or number
        Level of the errors that are reported first.
    group : str, optional
        Column with the group of each text: prediction sets keep their promise in every group.
    cardinality : sequence of int
        Numbers of labels at which the classes of label-sets begin, as in `ByCardinality`.
    constraints : LabelConstraints or "broader", optional
        What label-sets must obey to be candidates; "broader": a label requires the broader concepts of the vocabulary.
    best_guess : {"exact", "f1", "macro-f1"}
        The most plausible label-set (the paper's rule), or thresholds for micro-F1 or macro-F1.
    recalibrate : bool
        Correct the classifier's probabilities label by label.
    name : str, optional
        Of the model; corpus and classifier by default.
    examples : bool
        Keep three test texts in the bundle, to try it with. Without it a bundle holds no text.
    """

    classifier: str | None = None
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    measure: Any = "auto"
    seed: int = 0
    min_labels: int | None = None
    max_labels: int | None = None
    max_wrong: Any = "0.05"
    max_missed: Any = "0.1"
    max_false: Any = "0.05"
    assurance: Any = "0.95"
    max_tags: int = 9
    never_file: Sequence[str] = ()
    significance: Any = "0.05"
    group: str | None = None
    cardinality: Sequence[int] = ()
    constraints: Any = None
    best_guess: Literal["exact", "f1", "macro-f1"] = "exact"
    recalibrate: bool = False
    name: str | None = None
    examples: bool = False

    def __post_init__(self) -> None:
        if self.best_guess not in BEST_GUESSES:
            raise InvalidInputError(
                f"The best guess must be one of {', '.join(BEST_GUESSES)}. Got {self.best_guess!r}."
            )
        if self.best_guess != "exact" and self.constraints is not None:
            raise InvalidInputError(
                "Best guesses by thresholds know no constraints. Use the best guess 'exact' with them."
            )
        if self.group is not None and self.cardinality:
            raise InvalidInputError("Calibrate by groups or by number of labels (cardinality), not by both.")
        for name in LEVELS:
            as_fraction(getattr(self, name), name, "train")
        if isinstance(self.measure, str) and self.measure != "auto":
            measure_from_name(self.measure)
        check_count("max_tags", self.max_tags, "train", 1)
        check_count("seed", self.seed, "train", 0)

    @property
    def levels(self) -> dict[str, str]:
        """The levels as they were given."""
        return {name: str(getattr(self, name)) for name in LEVELS}
