"""From labelled texts to a model: read, fit, calibrate, evaluate, save."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import importlib.metadata
import logging
import os
import platform
import shutil
from pathlib import Path
from typing import Any

from surelabel import corpora, measures
from surelabel._core.files import check_overwrite
from surelabel._core.formatting import count
from surelabel._core.progress import Report, reporting_to, step
from surelabel._version import __version__
from surelabel.corpora import Corpus, Vocabulary
from surelabel.exceptions import CorpusError, InvalidInputError, MissingDependencyError
from surelabel.labels.constraints import LabelConstraints
from surelabel.models.bundle import Bundle, BundleInfo, load_bundle, with_names
from surelabel.models.calibrate import held_out_texts, with_calibration
from surelabel.models.evaluate import evaluate_bundle
from surelabel.models.fit import TAGGERS, Fitted, fit, make_classifier
from surelabel.models.seen import SeenTexts, n_repeated
from surelabel.models.settings import TrainingSettings
from surelabel.models.verdict import verdict
from surelabel.text import TextClassifier

_log = logging.getLogger(__name__)
_SETTINGS = {field.name for field in dataclasses.fields(TrainingSettings)}
_PARTS = ("filing", "calibration", "test")
# Nothing is trained for a tagger: its training part is what its curve is fitted on.
_TAGGER_PARTS = {"filing": 0.3, "calibration": 0.3, "test": 0.2}
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "torch", "transformers", "omikuji")
_PLAIN = (str, int, float, bool, list, tuple, dict, type(None))


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
    vocabulary, language = settings.pop("vocabulary", None), settings.pop("language", None)
    if vocabulary is not None and not isinstance(vocabulary, Vocabulary):
        vocabulary = corpora.read_vocabulary(vocabulary, language or "en")
    with reporting_to(progress):
        divided = with_names(_read(corpus, wanted, {"text": text, "labels": labels}, settings), vocabulary)
        if target is None:
            return _train(divided, wanted, vocabulary, None)
        work_folder = target.parent / f".{target.name}.training"
        bundle = _with_report(_train(divided, wanted, vocabulary, work_folder), divided)
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
    _check_labels(corpus)
    if settings.group is not None:
        corpus.column(settings.group)  # before training, not after
    if settings.classifier in TAGGERS:  # nothing is trained
        sizes = {name: n for name, n in _TAGGER_PARTS.items() if name not in corpus.part_sizes} | sizes
    is_undivided = not {"filing", "calibration"} & {*sizes, *corpus.part_sizes}
    if is_undivided and not make_classifier(corpus, settings).needs_validation:
        corpus = corpora.halve_validation(corpus, settings.seed)
    divided = corpora.draw_parts(corpus, settings.seed, **sizes)
    missing = [name for name in ("train", "filing", "calibration") if name not in divided.part_sizes]
    if missing:
        raise CorpusError(
            f"Corpus {corpus.name!r} must have texts in the part {missing[0]!r} to make a model. "
            f"It has {', '.join(divided.part_sizes)}."
        )
    return divided


def _check_labels(corpus: Corpus) -> None:
    """Raise if there is nothing to learn: no label, or one that every text has."""
    if corpus.labels.nnz == 0:
        raise CorpusError(
            f"Corpus {corpus.name!r} must have at least one label. Got {len(corpus):,} texts without any: is the "
            "label column the right one?"
        )
    if len(corpus.label_names) == 1 and corpus.labels.nnz == int(corpus.is_labelled.sum()):
        raise CorpusError(
            f"Corpus {corpus.name!r} must have two labels, or texts without its one. Got {corpus.label_names[0]!r} "
            "on every text: is the separator the right one?"
        )


def _train(
    corpus: Corpus, settings: TrainingSettings, vocabulary: Vocabulary | None, work_folder: Path | None
) -> Bundle:
    """Return the trained, calibrated and evaluated bundle."""
    constraints = settings.constraints
    if constraints == "broader" and vocabulary is None:
        raise InvalidInputError("The constraints 'broader' need a vocabulary.")
    fitted = fit(corpus, settings, vocabulary, work_folder)
    if constraints == "broader" and vocabulary is not None:
        constraints = LabelConstraints(implications=vocabulary.implications(fitted.classifier.label_names_))
    notes = (*corpus.notes, *_notes(corpus, fitted.classifier), *getattr(fitted.classifier, "notes", ()))
    for note in notes:
        _log.info("%s", note)
    with step("predicting held-out texts"):
        filing, calibration = (held_out_texts(fitted, corpus.part(name)) for name in ("filing", "calibration"))
    bundle = with_calibration(
        fitted,
        _described(corpus, settings, fitted, notes, vocabulary),
        filing,
        calibration,
        measure=fitted.measure,
        limits=fitted.limits,
        cardinality=settings.cardinality,
        constraints=constraints,
        vocabulary=vocabulary,
        seen=SeenTexts.of(
            training=corpus.part(*(name for name in ("train", "validation") if name in corpus.part_sizes)).texts,
            **{name: corpus.part(name).texts for name in _PARTS if name in corpus.part_sizes},
        ),
    )
    if "test" not in corpus.part_sizes:
        return bundle
    bundle = dataclasses.replace(bundle, evaluation=evaluate_bundle(bundle, corpus.part("test"), held_out=True))
    return dataclasses.replace(bundle, info=dataclasses.replace(bundle.info, verdict=tuple(verdict(bundle))))


def _described(
    corpus: Corpus, settings: TrainingSettings, fitted: Fitted, notes: tuple[str, ...], vocabulary: Vocabulary | None
) -> BundleInfo:
    """Return the description of a bundle, in plain values as a folder keeps them."""
    parameters = fitted.classifier.get_params(deep=False)
    never_filed = frozenset() if vocabulary is None else vocabulary.never_filed
    labels = [name for name in fitted.classifier.label_names_ if name in never_filed]
    info = BundleInfo(
        name=settings.name or f"{corpus.name}, {fitted.classifier.kind}",
        classifier=fitted.classifier.kind,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        versions=versions(),
        settings={name: value for name, value in parameters.items() if isinstance(value, _PLAIN)},
        corpus=corpus.name,
        provenance=dataclasses.asdict(corpus.provenance),
        part_sizes=corpus.part_sizes,
        n_train=fitted.n_train,
        seed=settings.seed,
        measure=measures.measure_name(fitted.measure),
        levels=settings.levels,
        max_tags=settings.max_tags,
        never_file=tuple(dict.fromkeys([*settings.never_file, *labels])),
        best_guess=settings.best_guess,
        group_column=settings.group,
        label_texts=fitted.label_texts,
        notes=notes,
        examples=corpus.part("test").texts[:3] if settings.examples and "test" in corpus.part_sizes else (),
    )
    return BundleInfo.from_dict(info.to_dict())


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


def _notes(corpus: Corpus, classifier: TextClassifier) -> list[str]:
    """Return remarks on repeated texts and on labels that the classifier does not know."""
    notes = []
    held_out = [corpus.part(name) for name in _PARTS if name in corpus.part_sizes]
    n_again = n_repeated(part.texts for part in (corpus.part("train"), *held_out))
    if n_again:
        notes.append(
            f"{count(n_again)} held-out texts also occur in an earlier part, as they would among new texts; they are "
            "kept."
        )
    known = set(classifier.label_names_)
    unknown = [name for name in corpus.label_names if name not in known]
    if unknown:
        label_sets = [row for part in held_out for row in part.label_sets]
        n_texts = sum(not row <= known for row in label_sets)
        what = "occur in no training text" if classifier.learns_labels else "are none that the tagger can give"
        notes.append(
            f"{count(len(unknown))} labels {what}, such as {unknown[0]!r}: {count(n_texts)} of "
            f"{count(len(label_sets))} held-out texts have one and count as errors."
        )
    return notes


def versions() -> dict[str, str]:
    """Return the versions of packages that figures can depend on."""
    found = {"surelabel": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found
