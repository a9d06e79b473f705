"""One run: train, predict, evaluate; every step is kept, finished ones are skipped.

`runs/<name>/probabilities.npz` is the seam (not for version control), with the classifier's checkpoints beside it;
`results/runs/<name>.json` holds settings, versions and all figures, from which tables and figures are built.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import logging
import os
import platform
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surelabel import corpora, text
from surelabel._storage import atomic_file
from surelabel.artifacts import PartProbabilities, Probabilities
from surelabel.conformal import ConformalLabelSets
from surelabel.corpora import Corpus
from surelabel.criteria import p_value_sums
from surelabel.evaluation import evaluate
from surelabel.exceptions import ArtifactError, CalibrationWarning
from surelabel.experiments.settings import MEASURES, Settings
from surelabel.measures import SeparableMeasure
from surelabel.metrics import classification_metrics, error_rates, size_curve

__all__ = ["FORMAT", "Folders", "calibrated", "machine", "run", "versions"]

_log = logging.getLogger(__name__)

FORMAT = "surelabel-run-1"
RESPLIT_LEVELS = ("0.01", "0.05", "0.1", "0.2")
_PACKAGES = ("surelabel", "numpy", "scipy", "scikit-learn", "numba", "torch", "transformers", "tokenizers", "gensim")


@dataclasses.dataclass(frozen=True)
class Folders:
    """Where runs keep their working files and their results."""

    runs: Path = Path("runs")
    results: Path = Path("results/runs")

    def result_of(self, settings: Settings) -> Path:
        """Return the path of a run's result file."""
        return self.results / f"{settings.name}.json"


def versions() -> dict[str, str]:
    """Return the versions that figures may depend on."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """Return what times depend on."""
    return {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()}


def _train_and_predict(settings: Settings, corpus: Corpus, folder: Path) -> Probabilities:
    """Train the classifier (from its last checkpoint where there is one) and run it on the other parts."""
    training = corpus.part("train") if settings.conformal else corpus.part("train", "calibration")
    validation = corpus.part("validation")
    classifier = text.make(settings.classifier, **settings.classifier_options())
    start = time.perf_counter()
    classifier.fit(
        training.texts,
        training.label_matrix,
        validation=(validation.texts, validation.label_matrix),
        label_names=corpus.label_names,
        checkpoint_folder=None if settings.classifier == "linear" else folder / "checkpoints",
    )
    fit_seconds = time.perf_counter() - start
    names = ("validation", "calibration", "test") if settings.conformal else ("validation", "test")
    known = corpus.part("train", "validation", "calibration")
    repeated = int(corpora.seen_before(corpus.part("test").texts, known.texts).sum())
    if repeated:
        _log.warning("%s: %d test texts stand in the other parts too", settings.name, repeated)
    parts = {}
    start = time.perf_counter()
    for name in names:
        part = corpus.part(name)
        parts[name] = PartProbabilities(
            classifier.predict_proba(part.texts), part.labels, tuple(str(identity) for identity in part.ids)
        )
    described = {
        "run": dataclasses.asdict(settings),
        "classifier": dataclasses.asdict(classifier.settings),
        "history": classifier.history_,
        "corpus": {"name": corpus.name, "fingerprint": corpus.fingerprint(), "n_training": len(training)},
        "test_texts_seen_before": repeated,
        "fit_seconds": round(fit_seconds, 1),
        "predict_seconds": round(time.perf_counter() - start, 1),
    }
    largest = int(corpus.part("train").labels.sum(axis=1).max())
    return Probabilities(parts, tuple(corpus.label_names), largest, described)


def _probabilities(settings: Settings, folders: Folders) -> Probabilities:
    """Return a run's probabilities, from its file where it has got that far."""
    folder = folders.runs / settings.name
    file = folder / "probabilities.npz"
    if file.is_file():
        try:
            return Probabilities.load(file)
        except ArtifactError as error:
            _log.warning("%s; made again", error)
    corpus = corpora.load(settings.corpus, seed=settings.seed)
    made = _train_and_predict(settings, corpus, folder)
    made.save(file)
    return made


def _resplits(measure: SeparableMeasure, probabilities: Probabilities, n_resplits: int) -> list[dict[str, Any]]:
    """Evaluate on random re-splits of calibration and test texts, which are exchangeable whatever their dates.

    The classifier saw neither part, so it need not be trained again.
    """
    pooled = [probabilities.parts["calibration"], probabilities.parts["test"]]
    scores = np.vstack([part.probabilities for part in pooled])
    labels = np.vstack([part.labels for part in pooled])
    n_calibration = len(pooled[0])
    results = []
    for seed in range(n_resplits):
        order = np.random.default_rng(seed).permutation(len(scores))
        held, rest = order[:n_calibration], order[n_calibration:]
        predictor = calibrated(measure, scores[held], labels[held], probabilities.max_labels)
        errors = error_rates(predictor, scores[rest], labels[rest], RESPLIT_LEVELS)
        sizes = size_curve(predictor, scores[rest], RESPLIT_LEVELS, n_cells=1024)
        results.append(
            {
                "seed": seed,
                "error": dict(zip(RESPLIT_LEVELS, errors.tolist(), strict=True)),
                "mean_size": {level: size.mean for level, size in zip(RESPLIT_LEVELS, sizes, strict=True)},
                "median_size": {level: size.median for level, size in zip(RESPLIT_LEVELS, sizes, strict=True)},
                "s_excess": list(p_value_sums(predictor, scores[rest], n_cells=1024).excess),
            }
        )
    return results


def calibrated(
    measure: SeparableMeasure,
    probabilities: Any,
    labels: Any,
    max_labels: int,
    label_names: Sequence[str] | None = None,
) -> ConformalLabelSets:
    """Calibrate; texts whose label-set is no candidate are counted in the evaluation, not warned about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        predictor = ConformalLabelSets(measure, 1, max_labels, label_names=label_names)
        return predictor.calibrate(probabilities, labels)


def _figures(
    settings: Settings, probabilities: Probabilities, measures: Mapping[str, SeparableMeasure]
) -> dict[str, Any]:
    """Return everything that is measured of a run."""
    figures: dict[str, Any] = {
        name: dataclasses.asdict(classification_metrics(part.labels, part.probabilities >= 0.5))
        for name, part in probabilities.parts.items()
        if name != "calibration"
    }
    if not settings.conformal:
        return {"underlying": figures}
    calibration, test = probabilities.parts["calibration"], probabilities.parts["test"]
    evaluations, resplits = {}, {}
    for name, measure in measures.items():
        _log.info("%s: evaluating %s", settings.name, name)
        predictor = calibrated(measure, calibration.probabilities, calibration.labels, probabilities.max_labels)
        evaluations[name] = evaluate(predictor, test.probabilities, test.labels).to_dict()
        resplits[name] = _resplits(measure, probabilities, 10)
    return {"underlying": figures, "evaluations": evaluations, "resplits": resplits}


def _rounded(value: Any) -> Any:
    """Round floats to seven digits: enough for every figure, and stable files."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(item) for item in value]
    return value


def run(settings: Settings, folders: Folders, measures: Mapping[str, SeparableMeasure] = MEASURES) -> Path:
    """Do one run, from where it was left; return its result file. A finished one is left alone."""
    target = folders.result_of(settings)
    if target.is_file():
        _log.info("%s is done", settings.name)
        return target
    probabilities = _probabilities(settings, folders)
    document = {
        "format": FORMAT,
        "run": dataclasses.asdict(settings),
        "made_with": probabilities.settings,
        "n_labels": len(probabilities.label_names),
        "max_labels": probabilities.max_labels,
        "n_texts": {name: len(part) for name, part in probabilities.parts.items()},
        "versions": versions(),
        "machine": machine(),
        **_figures(settings, probabilities, measures),
    }
    with atomic_file(target) as temporary:
        temporary.write_text(json.dumps(_rounded(document), separators=(",", ":")) + "\n", encoding="utf-8")
    return target
