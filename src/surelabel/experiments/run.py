"""One run: train, predict, evaluate; every step is kept, and finished steps are skipped.

`runs/<name>/probabilities.npz` is the seam (not for version control), with the classifier's checkpoints beside it;
`results/runs/<name>.json` holds settings, versions, machine and all figures, from which tables are made.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import logging
import os
import platform
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from surelabel import corpora, text
from surelabel._core import progress
from surelabel._core.files import atomic_file
from surelabel.conformal import ConformalLabelSets
from surelabel.corpora import Corpus
from surelabel.evaluation.criteria import s_criterion
from surelabel.evaluation.evaluate import evaluate
from surelabel.evaluation.metrics import (
    CURVE_LEVELS,
    STANDARD_LEVELS,
    classification_metrics,
    error_rates,
    size_curve,
)
from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.measures import LogLoss, LpNorm
from surelabel.models.train import versions
from surelabel.probabilities_file import PartProbabilities, Probabilities

_log = logging.getLogger(__name__)
Result: TypeAlias = dict[str, Any]

FORMAT = "surelabel-run-2"
CORPORA = (
    "reuters", "reuters20", "ctdc", "ctdc20", "arxiv", "arxiv20", "aapd", "aapd20", "goemotions", "synthetic",
)  # fmt: skip
CLASSIFIERS = ("linear", "blend", "randinit", "word2vec", "bert")
MEASURES: Mapping[str, Any] = {"L2": LpNorm(2), "L4": LpNorm(4), "L8": LpNorm(8), "LogLoss": LogLoss()}
N_RESPLITS = 100
"""Random re-splits whose error rates are measured; sizes, which take longer, are of the first ten."""
_N_SIZED = 10
# An encoder that a package registry carries, and the tokens of nearly all texts; stems for Czech texts.
_DEFAULT_OPTIONS: Mapping[str, Mapping[str, Any]] = {"bert": {"model": "minilm", "max_tokens": 192, "epochs": 5}}
_CZECH_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "linear": {"language": "czech"},
    "blend": {"members": {"linear": {"language": "czech"}}},
}


@dataclasses.dataclass(frozen=True)
class Settings:
    """One run: a corpus (with 20 behind its name for the reduced one), a classifier and its options.

    `conformal` holds the calibration texts out and calibrates with them; without it they are trained with too, as in
    the paper's tables "without ICP". `seed` is that of the parts (the fold of CTDC) and of training.

    Examples
    --------
    >>> Settings("reuters20", "linear").name
    'reuters20-linear-conformal-seed0'
    """

    corpus: str
    classifier: str
    conformal: bool = True
    seed: int = 0
    options: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        for parameter, value, known in (("corpus", self.corpus, CORPORA), ("classifier", self.classifier, CLASSIFIERS)):
            if value not in known:
                raise InvalidInputError(
                    f"The {parameter} of an experiment must be one of {', '.join(known)}. Got {value!r} instead."
                )

    @property
    def name(self) -> str:
        """Name of the run's files."""
        return f"{self.corpus}-{self.classifier}-{'conformal' if self.conformal else 'plain'}-seed{self.seed}"

    def classifier_options(self) -> dict[str, Any]:
        """Return the classifier's settings: the defaults of experiments, then this run's own."""
        czech = _CZECH_OPTIONS.get(self.classifier, {}) if self.corpus.startswith("ctdc") else {}
        return {**_DEFAULT_OPTIONS.get(self.classifier, {}), **czech, **dict(self.options), "seed": self.seed}

    def load(self) -> Corpus:
        """Load the corpus in the paper's parts."""
        options: dict[str, Any] = {"fold": self.seed % 5} if self.corpus.startswith("ctdc") else {}
        return corpora.load(self.corpus, seed=self.seed, parts="paper", **options)


@dataclasses.dataclass(frozen=True)
class Folders:
    """Folders of working files and of results."""

    runs: Path = Path("runs")
    results: Path = Path("results/runs")

    def result_of(self, settings: Settings) -> Path:
        """Return the path of a run's result file."""
        return self.results / f"{settings.name}.json"


def planned(
    corpora: Iterable[str], classifiers: Iterable[str], seeds: Iterable[int], options: Mapping[str, Any] | None = None
) -> list[Settings]:
    """Return all runs of some corpora, classifiers and seeds: conformal ones and plain ones."""
    fixed = tuple((options or {}).items())
    return [Settings(*run, fixed) for run in itertools.product(corpora, classifiers, (True, False), seeds)]


def _train_and_predict(settings: Settings, folder: Path) -> Probabilities:
    """Train the classifier (from its last checkpoint if there is one) and run it on the other parts.

    A classifier that needs no validation texts learns from them too.
    """
    corpus = settings.load()
    classifier = text.make(settings.classifier, **settings.classifier_options())
    validation = corpus.part("validation") if classifier.needs_validation else None
    learned = {"train", *([] if validation else ["validation"]), *([] if settings.conformal else ["calibration"])}
    training = corpus.part(*(learned & set(corpus.part_sizes)))
    start = time.perf_counter()
    with progress.step(f"{settings.name}: training"):
        classifier.fit(
            training.texts,
            training.labels,
            corpus.label_names,
            validation=None if validation is None else (validation.texts, validation.labels),
            work_folder=folder / "checkpoints",
        )
    fitted = time.perf_counter()
    parts: dict[str, PartProbabilities] = {}
    for name in ("test", "calibration", "validation"):
        if name in corpus.part_sizes and name not in learned:
            with progress.step(f"{settings.name}: predicting {name}"):
                part = corpus.part(name)
                parts[name] = PartProbabilities.from_label_sets(
                    classifier.predict_proba(part.texts), part.label_sets, corpus.label_names, part.ids
                )
    described = {
        "run": dataclasses.asdict(settings),
        "classifier": json.loads(json.dumps(classifier.get_params(), default=str)),
        "history": classifier.history_,
        "corpus": {"name": corpus.name, "fingerprint": corpus.fingerprint(), "n_training": len(training)},
        "fit_seconds": round(fitted - start, 1),
        "predict_seconds": round(time.perf_counter() - fitted, 1),
    }
    largest = int(np.asarray(corpus.part("train").labels.sum(axis=1)).max())
    return Probabilities(parts, tuple(corpus.label_names), largest, described)


def probabilities_of(settings: Settings, folders: Folders) -> Probabilities:
    """Return a run's probabilities, from its file if that is there and undamaged."""
    folder = folders.runs / settings.name
    file = folder / "probabilities.npz"
    if file.is_file():
        try:
            return Probabilities.load(file)
        except ArtifactError as error:
            _log.warning("%s; it is made again", error)
    folder.mkdir(parents=True, exist_ok=True)
    made = _train_and_predict(settings, folder)
    made.save(file)
    return made


def _calibrated(measure: Any, part: PartProbabilities, max_labels: int) -> ConformalLabelSets:
    predictor = ConformalLabelSets(measure, min_labels=1, max_labels=max_labels)
    return predictor.calibrate(part.probabilities, part.labels)


def resplits(measure: Any, probabilities: Probabilities) -> dict[str, Any]:
    """Evaluate on random re-splits of calibration and test texts."""
    errors, sized = [], []
    for seed in range(N_RESPLITS):
        calibration, test = probabilities.resplit(seed)
        predictor = _calibrated(measure, calibration, probabilities.max_labels)
        texts = predictor.texts(test.probabilities)
        errors.append(error_rates(predictor, texts, test.labels, STANDARD_LEVELS))
        if seed < _N_SIZED:
            sizes = dict(zip(STANDARD_LEVELS, size_curve(predictor, texts, STANDARD_LEVELS), strict=True))
            sized.append(
                {
                    "mean_size": {level: size.mean for level, size in sizes.items()},
                    "median_size": {level: size.median for level, size in sizes.items()},
                    "s_excess": list(s_criterion(predictor, texts).excess),
                }
            )
    return {"errors": dict(zip(STANDARD_LEVELS, np.transpose(errors).tolist(), strict=True)), "sizes": sized}


def _evaluations(settings: Settings, probabilities: Probabilities, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the figures of conformal prediction with each measure."""
    calibration, test = probabilities.parts["calibration"], probabilities.parts["test"]
    evaluations, redrawn = {}, {}
    for name in names:
        with progress.step(f"{settings.name}: evaluating {name}"):
            predictor = _calibrated(MEASURES[name], calibration, probabilities.max_labels)
            found = evaluate(predictor, test.probabilities, test.labels, levels=CURVE_LEVELS, criteria=True)
            evaluations[name] = found.to_dict()
            redrawn[name] = resplits(MEASURES[name], probabilities)
    return {"evaluations": evaluations, "resplits": redrawn}


def rounded(value: Any) -> Any:
    """Round floats to seven digits: enough for every figure, and stable files."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        return {str(key): rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, (list, tuple)) else value


def read_result(path: Path) -> Result:
    """Read a result file; raise if it is damaged or of another version."""
    document = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ArtifactError(f"it is not of format {FORMAT!r}")
    return document


def _done(path: Path) -> Result | None:
    """Return a run's result, None if there is none of this version."""
    try:
        return read_result(path) if path.exists() else None
    except (OSError, ValueError) as error:
        _log.warning("%s is made again: %s", path, error)
        return None


def run(settings: Settings, folders: Folders, measures: Iterable[str] = tuple(MEASURES)) -> Path:
    """Do one run, or resume it; return its result file.

    A finished run is left alone; to one that lacks some of the measures, those are added.
    """
    target = folders.result_of(settings)
    done = _done(target)
    evaluated = () if done is None else done.get("evaluations", ())
    missing = [name for name in measures if settings.conformal and name not in evaluated]
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
        "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()},
        "underlying": {
            name: dataclasses.asdict(classification_metrics(part.labels, part.probabilities >= 0.5))
            for name, part in probabilities.parts.items()
            if name != "calibration"
        },
    }
    for kind, values in _evaluations(settings, probabilities, missing).items() if settings.conformal else ():
        document[kind] = {**document.get(kind, {}), **values}
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(target) as stream:
        stream.write(json.dumps(rounded(document), separators=(",", ":")) + "\n")
    return target
