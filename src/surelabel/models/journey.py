"""The whole journey in one call: from texts with labels to a model."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

from surelabel import corpora
from surelabel._core.progress import Report, reporting_to, step
from surelabel.corpora import Corpus
from surelabel.exceptions import InvalidInputError
from surelabel.measures import MEASURES, Measure
from surelabel.models.bundle import Bundle
from surelabel.models.deciding import DecisionSettings
from surelabel.models.fitting import Automatic, any_measure_named
from surelabel.models.settings import TrainingSettings
from surelabel.models.training import train_bundle, train_to_folder

_OWN_SETTINGS = {"kind", "measure", "compared", "decisions"}
_SETTINGS = {field.name for field in dataclasses.fields(TrainingSettings)} - _OWN_SETTINGS
_PROMISES = {field.name for field in dataclasses.fields(DecisionSettings)}


def train(
    corpus: Corpus | str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    classifier: str = "linear",
    measure: Measure | str = "auto",
    compare: bool = True,
    progress: Report | None = None,
    **settings: Any,
) -> Bundle:
    """Train a classifier, calibrate it and evaluate it: what `surelabel train` does.

    Parameters
    ----------
    corpus : Corpus, name of a corpus, or file
        A corpus with a training and a calibration part, from `corpora.load`; or what `corpora.load` takes.
    out : path, optional
        Folder for the model; called again after an interruption, training resumes there. None keeps it in memory.
    classifier : {"linear", "hybrid", "auto", "randinit", "word2vec", "bert", "blend"}
        "auto" keeps the better of `linear` and `hybrid`.
    measure : Measure or str
        Nonconformity measure, or its name: "auto", "LogLoss", "L2", "mahalanobis", ...
    compare : bool
        Evaluate the other measures beside it.
    progress : callable, optional
        Called with a step's name, what is done of it, and how much there is (or None).
    **settings
        options (of the classifier), seed, min_labels, max_labels, name, constraints, recalibrate, listed, division,
        date and decision, as in `surelabel.models.TrainingSettings`; what is promised: max_wrong, assurance,
        max_missed, max_false and max_choices, as in `surelabel.models.DecisionSettings`; all others say how a file is
        read, as in `corpora.load`.

    Examples
    --------
    >>> import surelabel
    >>> corpus = surelabel.corpora.load("synthetic", n_texts=300, n_labels=5)
    >>> bundle = surelabel.train(corpus, measure="LogLoss", compare=False)
    >>> bundle
    <Bundle 'synthetic, linear': linear, 5 labels, LogLoss, 45 calibration texts>
    >>> bundle.answers(["Crude, a barrel, petroleum."], significance="0.1")[0].certain
    ('oil',)
    """
    promised = DecisionSettings(**{name: settings.pop(name) for name in list(settings) if name in _PROMISES})
    reading = {name: settings.pop(name) for name in list(settings) if name not in _SETTINGS}
    if isinstance(measure, str):
        chosen: Measure | Automatic = Automatic() if measure.lower() == "auto" else any_measure_named(measure)
    else:
        chosen = measure
    wanted = TrainingSettings(
        kind=classifier, measure=chosen, compared=MEASURES if compare else {}, decisions=promised, **settings
    )
    with reporting_to(progress):
        if not isinstance(corpus, Corpus):
            named = (None if wanted.division is None else wanted.division.by, wanted.date)
            if any(named):
                reading["columns"] = (*reading.get("columns", ()), *filter(None, named))
            with step("reading texts"):
                corpus = corpora.load(corpus, seed=wanted.seed, **reading)
        elif reading:
            raise InvalidInputError(
                f"train got {', '.join(sorted(reading))}, which say how a file is read, but a corpus instead of a file."
            )
        return train_bundle(corpus, wanted) if out is None else train_to_folder(corpus, Path(out), wanted)
