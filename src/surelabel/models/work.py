"""The folder of a training that is under way: what is finished in it is not done again."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator, Mapping, MutableMapping
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
from surelabel.models.classifying import check_options
from surelabel.models.evaluating import Limits
from surelabel.models.fitting import Automatic, needs_fitting
from surelabel.models.settings import TrainingSettings
from surelabel.recalibration import Recalibration

_log = logging.getLogger(__name__)


class _KeptEvaluations(MutableMapping[str, Evaluation]):
    """Evaluations by measure, written to a file one by one: those that are done are not repeated."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._values: dict[str, Evaluation] = {}
        if path is not None:
            try:
                self._values = read_evaluations(path) or {}
            except ArtifactError as error:
                _log.warning("%s Its figures are computed again.", error)

    def __getitem__(self, name: str) -> Evaluation:
        return self._values[name]

    def __setitem__(self, name: str, evaluation: Evaluation) -> None:
        self._values[name] = evaluation
        if self._path is not None:
            with atomic_file(self._path) as temporary:
                figures = {name: kept.to_dict() for name, kept in self._values.items()}
                temporary.write_text(json.dumps(figures), encoding="utf-8")

    def __delitem__(self, name: str) -> None:
        del self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class Work:
    """The folder of a training that is under way: what is finished in it is not done again.

    `run.json` says what the classifier was trained with; `conformal.json` what was chosen and evaluated after that.
    Files that were made with something else are removed first.
    """

    def __init__(
        self, folder: Path | None, corpus: Corpus, settings: TrainingSettings, limits: Limits, listed: int | None
    ) -> None:
        self.folder = folder
        self.options = {**settings.options, "seed": settings.seed}
        check_options(settings.kind, self.options)  # before anything is written
        self._conformal = self.evaluations_file = None
        if folder is not None:
            identity = {"kind": settings.kind, "options": self.options, "fingerprint": corpus.fingerprint()}
            if not _is_described(folder / "run.json", identity):
                shutil.rmtree(folder, ignore_errors=True)
            _describe(folder / "run.json", identity)
            rules = None if settings.constraints is None else settings.constraints.to_dict()
            kept = {"measure": repr(settings.measure), "limits": limits, "rules": rules, "listed": listed}
            kept |= {"recalibrate": settings.recalibrate, "decision": settings.decision, "version": __version__}
            kept["division"] = repr(settings.division)
            kept["date"] = settings.date
            self._conformal = folder / "conformal"
            if not _is_described(self._conformal / "conformal.json", kept):
                shutil.rmtree(self._conformal, ignore_errors=True)
            _describe(self._conformal / "conformal.json", kept)
            self.evaluations_file = self._conformal / "evaluation.json"
        # Of a measure that a user has fitted, its name does not say all.
        measure = settings.measure
        self._is_described = isinstance(measure, (Automatic, SeparableMeasure)) or needs_fitting(measure)
        self.evaluations = _KeptEvaluations(self.evaluations_file if self._is_described else None)

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


def _is_described(file: Path, identity: Mapping[str, Any]) -> bool:
    """Tell whether a file describes the same work."""
    try:
        return file.read_text(encoding="utf-8") == json.dumps(identity, sort_keys=True, default=str)
    except (OSError, UnicodeError):
        return False


def _describe(file: Path, identity: Mapping[str, Any]) -> None:
    """Write what a folder's work is made with."""
    with atomic_file(file) as temporary:
        temporary.write_text(json.dumps(identity, sort_keys=True, default=str), encoding="utf-8")
