"""From labelled texts to a model: read, fit, calibrate, evaluate, save."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import hashlib
import importlib.metadata
import json
import logging
import os
import platform
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from surelabel import corpora, measures, text
from surelabel._core.files import check_overwrite, read_arrays, write_arrays
from surelabel._core.formatting import count
from surelabel._core.progress import Report, reporting_to, step
from surelabel._version import __version__
from surelabel.corpora import Corpus, Vocabulary
from surelabel.corpora.corpus import label_matrix
from surelabel.exceptions import ArtifactError, CorpusError, InvalidInputError, MissingDependencyError
from surelabel.labels.shortlists import Shortlists
from surelabel.measures import LogLoss, Mixture
from surelabel.measures.choose import choose_mixture
from surelabel.models.bundle import Bundle, BundleInfo, load_bundle, with_names
from surelabel.models.calibrate import held_out_texts, with_calibration
from surelabel.models.evaluate import evaluate_bundle
from surelabel.models.evidence import as_shortlists
from surelabel.models.seen import SeenTexts, repeats
from surelabel.models.settings import TrainingSettings
from surelabel.recalibration import Recalibration
from surelabel.text import HeldOut, KnownWords, TextClassifier, Thresholds

_log = logging.getLogger(__name__)
_SETTINGS = {field.name for field in dataclasses.fields(TrainingSettings)}
_PARTS = ("filing", "calibration", "test")
_HELD_OUT = "probabilities of training texts"
_TAGGERS = ("scores", "annif", "http")
_TAGGER_PARTS = {"filing": 0.3, "calibration": 0.3, "test": 0.2}
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "torch", "transformers", "omikuji")
# A neural classifier stops by this share of the training texts.
_VALIDATION_SHARE = 0.1
# Training texts on which a measure is chosen: more do not change the choice.
_MOST_CHOSEN_ON = 2_100


class Choices(NamedTuple):
    """Texts of the training part by fits that have not seen them: what is chosen while training is chosen on them.

    `rows` are their rows among the training texts, None if they are validation texts.
    """

    probabilities: Any
    labels: Any
    training_labels: Any
    rows: Any = None


def train(
    corpus: Corpus | str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    text: Any = "text",
    labels: Any = "labels",
    progress: Report | None = None,
    **settings: Any,
) -> Bundle:
    """Train a classifier, calibrate it, measure it on test texts and save it: what `surelabel train` does.

    The parts filing, calibration and test are drawn at random where the corpus does not have them.

    Parameters
    ----------
    corpus : Corpus, name of a corpus, or file
    out : path, optional
        Folder for the model. If a training was interrupted after its classifier was finished, the same call continues
        there. Without it the model is kept in memory.
    text, labels : str
        Columns of a file.
    progress : callable, optional
        Called with a step's name, the amount done, and the total amount or None.
    **settings
        As in `TrainingSettings`; sizes of the parts filing, calibration and test; vocabulary, a file of
        `corpora.read_vocabulary`, and its language; all others are passed to `corpora.load`.

    Examples
    --------
    >>> import surelabel
    >>> bundle = surelabel.train(surelabel.corpora.load("synthetic", n_texts=600, n_labels=5))
    >>> bundle.answers(["Crude, a barrel, petroleum."], significance="0.1")[0].labels
    ('oil',)
    """
    if "scores" in settings:
        settings.setdefault("classifier", "scores")
    wanted = TrainingSettings(**{name: settings.pop(name) for name in list(settings) if name in _SETTINGS})
    target = None if out is None else check_overwrite(out)
    words = _vocabulary(settings.pop("vocabulary", None), settings.pop("language", None))
    with reporting_to(progress):
        divided = with_names(_read(corpus, wanted, {"text": text, "labels": labels}, settings), words)
        if target is None:
            return _train(divided, wanted, words, None)
        work_folder = target.parent / f".{target.name}.training"
        bundle = _with_report(_train(divided, wanted, words, work_folder), divided)
        with step("saving the model"):
            bundle.save(target)
            shutil.rmtree(work_folder, ignore_errors=True)
            return load_bundle(target)


def _read(corpus: Any, settings: TrainingSettings, columns: dict[str, Any], options: dict[str, Any]) -> Corpus:
    """Return the corpus with its parts."""
    sizes = {name: options.pop(name) for name in _PARTS if name in options}
    if not isinstance(corpus, Corpus):
        if settings.group is not None:
            options["columns"] = (*options.get("columns", ()), settings.group)
        named = {name: value for name, value in columns.items() if value != name}
        with step("reading texts"):
            corpus = corpora.load(corpus, seed=settings.seed, parts="own", **named, **options)
    elif options:
        raise InvalidInputError(f"train reads no file, so it does not take {', '.join(sorted(options))}.")
    if settings.group is not None:
        corpus.column(settings.group)  # before training, not after
    if settings.classifier in _TAGGERS:  # nothing is trained
        sizes = {name: n for name, n in _TAGGER_PARTS.items() if name not in corpus.part_sizes} | sizes
    divided = corpora.draw_parts(corpus, settings.seed, **sizes)
    missing = [name for name in ("train", "filing", "calibration") if name not in divided.part_sizes]
    if missing:
        raise CorpusError(
            f"Corpus {corpus.name!r} must have texts in the part {missing[0]!r} to make a model. "
            f"It has {', '.join(divided.part_sizes)}."
        )
    return divided


def _vocabulary(given: Any, language: str | None) -> Vocabulary | None:
    """Return a vocabulary from its file."""
    if given is None or isinstance(given, Vocabulary):
        return given
    return corpora.read_vocabulary(given, language or "en")


def _train(
    corpus: Corpus, settings: TrainingSettings, vocabulary: Vocabulary | None, work_folder: Path | None
) -> Bundle:
    """Return the trained, calibrated and evaluated bundle."""
    kind, training, validation = _training_parts(corpus, settings)
    names, known = _label_names(training, vocabulary)
    limits = _limits(training, settings, len(names))
    notes = [*corpus.notes, *_notes(corpus, names)]
    if vocabulary is not None and kind in _TAGGERS:
        offered = (
            n for n, concept in zip(vocabulary.names, vocabulary.concepts, strict=True) if not concept.is_deprecated
        )
        settings = dataclasses.replace(settings, options={**settings.options, "alternatives": _other_names(vocabulary)})
        names_to_fit = tuple(dict.fromkeys((*names, *offered)))
    else:
        names_to_fit = names
    classifier = _fitted(kind, training, validation, names_to_fit, settings, work_folder)
    label_texts = dict(zip(names, np.asarray(known.sum(axis=0)).reshape(-1).tolist(), strict=True))
    names = tuple(classifier.label_names_)
    choices = _choices(classifier, training, validation, names)
    recalibration = _recalibration(choices, settings)
    if recalibration is not None and choices is not None:
        choices = choices._replace(probabilities=recalibration.transform(choices.probabilities))
    with step("choosing the measure"):
        measure = _measure(settings, choices, limits)
    info = BundleInfo(
        name=settings.name or f"{corpus.name}, {kind}",
        classifier=kind,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        versions=versions(),
        settings={name: value for name, value in classifier.get_params(deep=False).items() if _is_plain(value)},
        corpus=corpus.name,
        provenance=dataclasses.asdict(corpus.provenance),
        part_sizes=corpus.part_sizes,
        n_train=len(training),
        seed=settings.seed,
        measure=measures.measure_name(measure),
        levels=settings.levels,
        max_tags=settings.max_tags,
        best_guess=settings.best_guess,
        group_column=settings.group,
        label_texts=label_texts,
        notes=tuple(notes),
        examples=corpus.part("test").texts[:3] if settings.examples and "test" in corpus.part_sizes else (),
    )
    # The words that a tagger has learnt are not known here.
    known_words = None if kind in _TAGGERS else KnownWords.from_texts(training.texts)
    pieces = _Pieces(classifier, known_words, recalibration, settings.group)
    parts = {}
    for name in ("filing", "calibration"):
        with step(f"predicting {name} texts"):
            parts[name] = held_out_texts(pieces, corpus.part(name))
    bundle = with_calibration(
        classifier=classifier,
        # Plain values, as a folder keeps them.
        info=BundleInfo.from_dict(info.to_dict()),
        filing=parts["filing"],
        calibration=parts["calibration"],
        measure=measure,
        limits=limits,
        cardinality=settings.cardinality,
        constraints=settings.constraints,
        known_words=pieces.known_words,
        recalibration=recalibration,
        thresholds=_thresholds(choices, settings),
        vocabulary=vocabulary,
        seen=SeenTexts.of(
            training=corpus.part(*(name for name in ("train", "validation") if name in corpus.part_sizes)).texts,
            **{name: corpus.part(name).texts for name in _PARTS if name in corpus.part_sizes},
        ),
    )
    for note in notes:
        _log.info("%s", note)
    return _evaluated(bundle, corpus) if "test" in corpus.part_sizes else bundle


class _Pieces(NamedTuple):
    """The pieces of a bundle that turn texts into figures."""

    classifier: TextClassifier
    known_words: KnownWords | None
    recalibration: Recalibration | None
    group_column: str | None

    def predict_proba(self, texts: Sequence[str], scores: Any = None) -> Any:
        """Return probabilities as the bundle does."""
        probabilities = self.classifier.predict_proba(texts, scores=scores)
        return probabilities if self.recalibration is None else self.recalibration.transform(probabilities)


def _evaluated(bundle: Bundle, corpus: Corpus) -> Bundle:
    """Return the bundle with its figures on the test part, its verdict and its report."""
    from surelabel.models.verdict import verdict  # noqa: PLC0415 (verdicts need bundles)

    test = corpus.part("test")
    evaluation = evaluate_bundle(bundle, test, held_out=True)
    bundle = dataclasses.replace(bundle, evaluation=evaluation)
    return dataclasses.replace(bundle, info=dataclasses.replace(bundle.info, verdict=tuple(verdict(bundle))))


def _with_report(bundle: Bundle, corpus: Corpus) -> Bundle:
    """Return the bundle with a report on its test part, if there is one and matplotlib is installed."""
    if bundle.evaluation is None:
        return bundle
    try:
        from surelabel.report import render_report  # noqa: PLC0415 (matplotlib, which may be missing)

        with step("drawing the report"):
            page = render_report(bundle, corpus.part("test"), bundle.evaluation)
    except MissingDependencyError as error:
        _log.warning("There is no report. %s", error)
        return bundle
    return dataclasses.replace(bundle, report=page.encode())


def _training_parts(corpus: Corpus, settings: TrainingSettings) -> tuple[str, Corpus, Corpus | None]:
    """Return the kind of classifier, its training texts, and those that it stops by.

    A classifier that needs no validation texts learns from them as well.
    """
    own = corpus.part("train")
    kind = settings.classifier or text.default_kind(int((np.asarray(own.labels.sum(axis=0)) > 0).sum()))
    has_validation = "validation" in corpus.part_sizes
    if not text.make(kind, **settings.options).needs_validation:
        return kind, corpus.part("train", "validation") if has_validation else own, None
    if has_validation:
        return kind, own, corpus.part("validation")
    order = np.random.RandomState(settings.seed).permutation(len(own))
    n_held = max(1, round(_VALIDATION_SHARE * len(own)))
    return kind, own.rows(np.sort(order[n_held:])), own.rows(np.sort(order[:n_held]))


def _label_names(training: Corpus, vocabulary: Vocabulary | None) -> tuple[tuple[str, ...], Any]:
    """Return the labels that occur in training texts, and the texts' labels (n, d) in their order.

    Deprecated concepts of a vocabulary are none.
    """
    old = set() if vocabulary is None else set(map(vocabulary.name, vocabulary.deprecated))
    used = np.flatnonzero(np.asarray(training.labels.sum(axis=0)).reshape(-1))
    used = np.array([k for k in used.tolist() if training.label_names[k] not in old], dtype=np.int64)
    return tuple(training.label_names[k] for k in used.tolist()), training.labels[:, used]


def _other_names(vocabulary: Vocabulary) -> dict[str, str]:
    """Return label names by URIs and alternative names, for taggers that use those."""
    others = {
        other: name
        for name, concept in zip(vocabulary.names, vocabulary.concepts, strict=True)
        for other in (concept.name, *concept.alternatives)
    }
    return others | dict(zip(vocabulary.uris, vocabulary.names, strict=True))


def _labels_as(corpus: Corpus, names: Sequence[str]) -> Any:
    """Return the labels of texts as columns for `names`, other labels left out."""
    place = {name: k for k, name in enumerate(corpus.label_names)}
    columns = [place[name] for name in names if name in place]
    if len(columns) == len(names):
        return corpus.labels[:, columns]
    return label_matrix([row & set(names) for row in corpus.label_sets], tuple(names))


def _limits(training: Corpus, settings: TrainingSettings, n_labels: int) -> tuple[int, int]:
    """Return the limits on the number of labels: as set, or those of the training texts."""
    sizes = np.diff(training.labels.indptr)
    fewest = min(1, int(sizes.min())) if settings.min_labels is None else settings.min_labels
    most = max(int(sizes.max()), fewest, 1) if settings.max_labels is None else settings.max_labels
    if not 0 <= fewest <= most or fewest > n_labels:
        raise InvalidInputError(
            f"The limits on the number of labels must be 0 <= min_labels <= max_labels. Got {fewest} and {most}, "
            f"with {n_labels} labels."
        )
    return fewest, min(most, n_labels)


def _notes(corpus: Corpus, names: Sequence[str]) -> list[str]:
    """Return remarks on repeated texts and on labels that training texts do not have."""
    notes = []
    held = [name for name in _PARTS if name in corpus.part_sizes]
    again = repeats({name: corpus.part(name).texts for name in ("train", *held)})
    n_repeated = sum(again[name] for name in held)
    if n_repeated:
        notes.append(
            f"{count(n_repeated)} held-out texts also occur in an earlier part, as they would among new texts; they "
            "are kept."
        )
    known = set(names)
    unknown = [name for name in corpus.label_names if name not in known]
    if unknown:
        held_sets = [row for name in held for row in corpus.part(name).label_sets]
        n_texts = sum(not row <= known for row in held_sets)
        notes.append(
            f"{count(len(unknown))} labels occur in no training text, such as {unknown[0]!r}: {count(n_texts)} of "
            f"{count(len(held_sets))} held-out texts have one and count as errors."
        )
    return notes


def _fitted(
    kind: str,
    training: Corpus,
    validation: Corpus | None,
    names: Sequence[str],
    settings: TrainingSettings,
    work_folder: Path | None,
) -> TextClassifier:
    """Return the fitted classifier; one that was finished with the same settings and texts is loaded."""
    classifier = text.make(kind, **settings.options)
    if "seed" in classifier.get_params(deep=False) and "seed" not in settings.options:
        classifier.set_params(seed=settings.seed)
    folder = None if work_folder is None else work_folder / _work_name(classifier, training, validation)
    if folder is not None:
        with contextlib.suppress(ArtifactError):
            finished = text.load(folder / "classifier")
            finished.held_out_ = _load_held_out(folder / "held_out.npz", finished.n_labels_)
            _log.info("The classifier was finished by an earlier run; it is not trained again.")
            return finished
    options: dict[str, Any] = {"scores": training.scores} if kind == "scores" else {}
    with step(f"training {kind} on {count(len(training))} texts"):
        classifier.fit(
            list(training.texts),
            _labels_as(training, names),
            names,
            validation=None if validation is None else (list(validation.texts), _labels_as(validation, names)),
            work_folder=None if folder is None else folder / "checkpoints",
            **options,
        )
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        _save_held_out(folder / "held_out.npz", classifier.held_out_)
        classifier.save(folder / "classifier")
    return classifier


def _work_name(classifier: TextClassifier, training: Corpus, validation: Corpus | None) -> str:
    """Return a name that other settings or other texts do not have."""
    parts = [part.fingerprint() for part in (training, validation) if part is not None]
    key = json.dumps([classifier.kind, classifier.get_params(deep=False), parts, __version__], default=repr)
    return hashlib.sha256(key.encode()).hexdigest()[:16]


def _save_held_out(path: Path, held_out: HeldOut | None) -> None:
    """Write the probabilities of training texts beside a finished classifier."""
    arrays: dict[str, Any] = {}
    if held_out is not None:
        values = held_out.probabilities
        arrays = {"rows": held_out.rows}
        if isinstance(values, Shortlists):
            arrays.update(listed=values.labels, probabilities=values.probabilities)
        else:
            arrays["probabilities"] = values
    write_arrays(path, {"kind": _HELD_OUT}, arrays)


def _load_held_out(path: Path, n_labels: int) -> HeldOut | None:
    """Read what `_save_held_out` wrote."""
    arrays = read_arrays(path, _HELD_OUT)[1]
    if not arrays:
        return None
    values: Any = arrays["probabilities"]
    return HeldOut(arrays["rows"], as_shortlists(arrays["listed"], values, n_labels) if "listed" in arrays else values)


def _choices(
    classifier: TextClassifier, training: Corpus, validation: Corpus | None, names: Sequence[str]
) -> Choices | None:
    """Return what the measure and the rule for best guesses are chosen on, None if there is nothing."""
    if validation is not None:
        return Choices(
            classifier.predict_proba(list(validation.texts)),
            _labels_as(validation, names),
            _labels_as(training, names),
        )
    if classifier.held_out_ is None:
        return None
    rows, probabilities = classifier.held_out_
    labels = _labels_as(training, names)
    return Choices(probabilities, labels[rows], labels, np.asarray(rows))


def _recalibration(choices: Choices | None, settings: TrainingSettings) -> Recalibration | None:
    """Return the correction of probabilities, if it is asked for."""
    if not settings.recalibrate:
        return None
    if choices is None or isinstance(choices.probabilities, Shortlists):
        raise InvalidInputError("These probabilities cannot be recalibrated: use a classifier that lists all labels.")
    return Recalibration.fit(choices.probabilities, choices.labels.toarray(), seed=settings.seed)


def _thresholds(choices: Choices | None, settings: TrainingSettings) -> Thresholds | None:
    """Return the rule for best guesses, None for the most plausible label-set."""
    if settings.best_guess == "exact":
        return None
    if choices is None:
        raise InvalidInputError(f"Best guesses for {settings.best_guess} need a classifier that is trained here.")
    return Thresholds.fit(choices.probabilities, choices.labels, settings.best_guess)


def _measure(settings: TrainingSettings, choices: Choices | None, limits: tuple[int, int]) -> Any:
    """Return the nonconformity measure: as set, or chosen on texts that the classifier has not seen."""
    if settings.measure != "auto":
        given = settings.measure
        return measures.measure_from_name(given) if isinstance(given, str) else given
    if choices is None or isinstance(choices.probabilities, Shortlists):
        return LogLoss()
    probabilities, labels, seen = choices.probabilities, choices.labels, choices.training_labels
    if choices.rows is not None:
        # A text's own label-set must not count among those seen in training.
        n_chosen = min(_MOST_CHOSEN_ON, len(choices.rows) // 3)
        some = np.sort(np.random.RandomState(settings.seed).permutation(len(choices.rows))[:n_chosen])
        probabilities, labels = probabilities[some], labels[some]
        seen = seen[np.setdiff1d(np.arange(seen.shape[0]), choices.rows[some])]
    chosen = choose_mixture(
        probabilities,
        labels,
        seen,
        (settings.significance,),
        min_labels=limits[0],
        max_labels=limits[1],
        seed=settings.seed,
    )
    return chosen.fit(choices.training_labels) if isinstance(chosen, Mixture) else chosen


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool, list, tuple, dict))


def versions() -> dict[str, str]:
    """Return the versions of packages that figures can depend on."""
    found = {"surelabel": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found
