"""One run: train, predict, evaluate; every step is kept, and finished steps are skipped.

`runs/<name>/probabilities.npz` is the seam (not for version control), with the classifier's checkpoints beside it;
`results/runs/<name>.json` holds settings, versions and all figures, from which tables and figures are built.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import platform
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from surelabel import corpora
from surelabel._core.levels import STANDARD_LEVELS
from surelabel._core.storage import atomic_file
from surelabel._core.validation import FloatArray
from surelabel.conformal import ConformalLabelSets
from surelabel.corpora import Corpus
from surelabel.evaluation.criteria import p_value_sums
from surelabel.evaluation.evaluate import evaluate
from surelabel.evaluation.metrics import classification_metrics, error_rates, size_curve
from surelabel.exceptions import ArtifactError
from surelabel.experiments.settings import Settings
from surelabel.measures import MEASURES, SeparableMeasure
from surelabel.models.steps import calibrated, fitted_classifier, part_probabilities, versions
from surelabel.models.texts import repeated_texts
from surelabel.probabilities_file import Probabilities

_log = logging.getLogger(__name__)

FORMAT = "surelabel-run-2"
N_RESPLITS = 100
"""Random re-splits whose error rates are measured; sizes, which take longer, are of the first ten."""
_N_SIZED = 10


@dataclasses.dataclass(frozen=True)
class Folders:
    """Where runs keep their working files and their results."""

    runs: Path = Path("runs")
    results: Path = Path("results/runs")

    def result_of(self, settings: Settings) -> Path:
        """Return the path of a run's result file."""
        return self.results / f"{settings.name}.json"


def machine() -> dict[str, Any]:
    """Return what running times depend on."""
    return {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()}


def _train_and_predict(settings: Settings, corpus: Corpus, folder: Path) -> Probabilities:
    """Train the classifier (from its last checkpoint if there is one) and run it on the other parts."""
    training = corpus.part("train") if settings.conformal else corpus.part("train", "calibration")
    start = time.perf_counter()
    options = settings.classifier_options()
    classifier = fitted_classifier(corpus, training, settings.classifier, options, folder / "checkpoints")
    fit_seconds = time.perf_counter() - start
    names = ("validation", "calibration", "test") if settings.conformal else ("validation", "test")
    repeated = repeated_texts(corpus, ["test"]).get("test", 0)
    if repeated:
        _log.warning("%s: %d test texts also appear in the other parts", settings.name, repeated)
    start = time.perf_counter()
    parts = {name: part_probabilities(classifier, corpus.part(name)) for name in names}
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


def probabilities_of(settings: Settings, folders: Folders) -> Probabilities:
    """Return a run's probabilities, from its file if it has got that far."""

    def make() -> Probabilities:
        corpus = corpora.load(settings.corpus, seed=settings.seed)
        return _train_and_predict(settings, corpus, folders.runs / settings.name)

    return kept_probabilities(folders.runs / settings.name, make)


def kept_probabilities(folder: Path, make: Callable[[], Probabilities]) -> Probabilities:
    """Return the probabilities in a folder; if there are none, or they are damaged, make and keep them."""
    file = folder / "probabilities.npz"
    if file.is_file():
        try:
            return Probabilities.load(file)
        except ArtifactError as error:
            _log.warning("%s; it is made again", error)
    made = make()
    made.save(file)
    return made


def resplits(measure: SeparableMeasure, probabilities: Probabilities) -> dict[str, Any]:
    """Evaluate on random re-splits of calibration and test texts."""
    errors: dict[str, list[float]] = {level: [] for level in STANDARD_LEVELS}
    sized = []
    for seed in range(N_RESPLITS):
        calibration, test = probabilities.redivided(seed)
        predictor = calibrated(measure, calibration, max_labels=probabilities.max_labels)
        rates = error_rates(predictor, test.probabilities, test.labels, STANDARD_LEVELS)
        for level, error in zip(STANDARD_LEVELS, rates, strict=True):
            errors[level].append(float(error))
        if seed < _N_SIZED:
            sized.append(_resplit_sizes(predictor, test.probabilities))
    return {"errors": errors, "sizes": sized}


def _resplit_sizes(predictor: ConformalLabelSets, probabilities: FloatArray) -> dict[str, Any]:
    """Return how large the prediction sets of one re-split are."""
    sizes = size_curve(predictor, probabilities, STANDARD_LEVELS, n_cells=1024)
    return {
        "mean_size": {level: size.mean for level, size in zip(STANDARD_LEVELS, sizes, strict=True)},
        "median_size": {level: size.median for level, size in zip(STANDARD_LEVELS, sizes, strict=True)},
        "s_excess": list(p_value_sums(predictor, probabilities, n_cells=1024).excess),
    }


def _evaluations(
    settings: Settings, probabilities: Probabilities, measures: Mapping[str, SeparableMeasure]
) -> dict[str, dict[str, Any]]:
    """Return what is measured of conformal prediction with each measure."""
    calibration, test = probabilities.parts["calibration"], probabilities.parts["test"]
    evaluations, redrawn = {}, {}
    for name, measure in measures.items():
        _log.info("%s: evaluating %s", settings.name, name)
        predictor = calibrated(measure, calibration, max_labels=probabilities.max_labels)
        evaluations[name] = evaluate(predictor, test.probabilities, test.labels).to_dict()
        redrawn[name] = resplits(measure, probabilities)
    return {"evaluations": evaluations, "resplits": redrawn}


def rounded(value: Any) -> Any:
    """Round floats to seven digits: enough for every figure, and stable files."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(item) for item in value]
    return value


def read_result(path: Path) -> dict[str, Any]:
    """Read a result file; raise if it is damaged or of another version."""
    document = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ArtifactError(f"it is not of format {FORMAT!r}")
    return document


def _done(path: Path) -> dict[str, Any] | None:
    """Return a run's result, None if there is none of this version."""
    try:
        return read_result(path) if path.exists() else None
    except (OSError, ValueError) as error:
        _log.warning("%s is made again: %s", path, error)
        return None


def run(settings: Settings, folders: Folders, measures: Mapping[str, SeparableMeasure] = MEASURES) -> Path:
    """Do one run, or resume it; return its result file.

    A finished run is left alone; in one that lacks some of the measures, those are added.
    """
    target = folders.result_of(settings)
    done = _done(target)
    evaluated = () if done is None else done.get("evaluations", ())
    missing = {name: measure for name, measure in measures.items() if settings.conformal and name not in evaluated}
    if done is not None and not missing:
        _log.info("%s is done", settings.name)
        return target
    probabilities = probabilities_of(settings, folders)
    document = done or {
        "format": FORMAT,
        "run": dataclasses.asdict(settings),
        "made_with": probabilities.settings,
        "n_labels": len(probabilities.label_names),
        "max_labels": probabilities.max_labels,
        "n_texts": {name: len(part) for name, part in probabilities.parts.items()},
        "versions": versions(),
        "machine": machine(),
        # How good the classifier itself is.
        "underlying": {
            name: dataclasses.asdict(classification_metrics(part.labels, part.probabilities >= 0.5))
            for name, part in probabilities.parts.items()
            if name != "calibration"
        },
    }
    for kind, values in _evaluations(settings, probabilities, missing).items() if settings.conformal else ():
        document[kind] = {**document.get(kind, {}), **values}
    with atomic_file(target) as temporary:
        temporary.write_text(json.dumps(rounded(document), separators=(",", ":")) + "\n", encoding="utf-8")
    return target
