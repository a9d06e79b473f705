"""The folder of a training that is under way: what is finished in it is not done again."""

from __future__ import annotations

import json
import logging
import shutil
from collections import UserDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from surelabel._core.storage import atomic_file
from surelabel._version import __version__
from surelabel.conformal import ConformalLabelSets
from surelabel.corpora import Corpus
from surelabel.evaluation.evaluate import Evaluation
from surelabel.exceptions import ArtifactError
from surelabel.measures import Measure, SeparableMeasure
from surelabel.models.bundle import read_evaluations
from surelabel.models.fitting import Automatic, needs_fitting
from surelabel.models.settings import TrainingSettings
from surelabel.models.steps import check_options
from surelabel.recalibration import Recalibration

_log = logging.getLogger(__name__)


class _KeptEvaluations(UserDict[str, Evaluation]):
    """Evaluations by measure, written to a file one by one: those that are done are not repeated."""

    def __init__(self, path: Path | None) -> None:
        super().__init__()
        self._path = path
        if path is not None:
            try:
                self.data = read_evaluations(path) or {}
            except ArtifactError as error:
                _log.warning("%s Its figures are computed again.", error)

    def __setitem__(self, name: str, evaluation: Evaluation) -> None:
        super().__setitem__(name, evaluation)
        if self._path is not None:
            with atomic_file(self._path) as temporary:
                figures = {name: kept.to_dict() for name, kept in self.data.items()}
                temporary.write_text(json.dumps(figures), encoding="utf-8")


class Work:
    """The folder of a training that is under way: what is finished in it is not done again.

    `run.json` says what the classifier was trained with; `conformal.json` what was chosen and evaluated after that.
    Files that were made with something else are removed first.
    """

    def __init__(
        self,
        folder: Path | None,
        corpus: Corpus,
        settings: TrainingSettings,
        limits: tuple[int, int],
        listed: int | None,
    ) -> None:
        self.folder = folder
        self.options = {**settings.options, "seed": settings.seed}
        check_options(settings.kind, self.options)  # before anything is written
        # Of a measure that a user has fitted, its name does not say all.
        measure = settings.measure
        self._is_described = isinstance(measure, (Automatic, SeparableMeasure)) or needs_fitting(measure)
        self._conformal = None if folder is None else folder / "conformal"
        if folder is not None and self._conformal is not None:
            identity = {"kind": settings.kind, "options": self.options, "fingerprint": corpus.fingerprint()}
            _keep_if_same(folder, "run.json", identity)
            rules = None if settings.constraints is None else settings.constraints.to_dict()
            kept = {"measure": repr(measure), "limits": limits, "rules": rules, "listed": listed}
            kept |= {"recalibrate": settings.recalibrate, "decision": settings.decision, "version": __version__}
            kept |= {"division": repr(settings.division), "date": settings.date}
            _keep_if_same(self._conformal, "conformal.json", kept)
        kept_here = self._conformal if self._is_described else None
        self.evaluations = _KeptEvaluations(None if kept_here is None else kept_here / "evaluation.json")

    def fitted(self) -> tuple[Measure, Recalibration | None] | None:
        """Return the measure and the correction that were fitted before the training was interrupted."""
        if self._conformal is None or not self._is_described:
            return None
        try:
            measure = ConformalLabelSets.load(self._conformal / "predictor.npz").measure
            path = self._conformal / "recalibration.npz"
            return measure, Recalibration.load(path) if path.is_file() else None
        except (ArtifactError, FileNotFoundError):
            return None

    def keep(self, predictor: ConformalLabelSets, recalibration: Recalibration | None) -> None:
        """Keep what was fitted."""
        if self._conformal is not None:
            if recalibration is not None:
                recalibration.save(self._conformal / "recalibration.npz")
            predictor.save(self._conformal / "predictor.npz")


def _keep_if_same(folder: Path, name: str, identity: Mapping[str, Any]) -> None:
    """Remove a folder whose file says that it was made with something else, and write what it is made with."""
    description = json.dumps(identity, sort_keys=True, default=str)
    try:
        is_same = (folder / name).read_text(encoding="utf-8") == description
    except (OSError, UnicodeError):
        is_same = False
    if not is_same:
        shutil.rmtree(folder, ignore_errors=True)
        with atomic_file(folder / name) as temporary:
            temporary.write_text(description, encoding="utf-8")
