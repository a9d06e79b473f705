"""Thousands of labels by omikuji's partitioned label trees on TF-IDF: shortlists with probabilities.

The trees' scores become probabilities by a curve on texts that a fit on the others has not seen. The last fit uses all
training texts. The trees group labels at random, so two fits differ a little.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy.sparse
from scipy.special import expit, logit

from surelabel._core import progress
from surelabel._core.extras import require
from surelabel._core.files import read_arrays, write_arrays
from surelabel._core.threads import threads_to_use
from surelabel._core.validation import FloatArray, IntArray
from surelabel.exceptions import InvalidInputError, TrainingError
from surelabel.labels.shortlists import Shortlists
from surelabel.text.base import HeldOut, History, Labelled, TextClassifier, Within, check_arrays, settings
from surelabel.text.curve import fit_regression
from surelabel.text.linear import folds_of
from surelabel.text.taggers import as_shortlists
from surelabel.text.terms import Terms

_ARRAYS, _ARRAYS_KIND, _TREES = "omikuji.npz", "omikuji classifier", "trees"
_CHILD = """
import json, sys, omikuji
settings, data, trees = sys.argv[1:]
how, own = omikuji.Model.default_hyper_param(), json.loads(settings)
how.n_trees, how.linear_c = own["n_trees"], own["linear_c"]
omikuji.Model.train_on_data(data, how, own["n_threads"]).save(trees)
"""
_FAR = 12.0
# Up to this many training texts all are scored by folds, of more one fold.
_FEW_TEXTS = 10_000
_MOST_PAIRS = 500_000


@settings
class OmikujiClassifier(TextClassifier):
    """Label trees that list the most probable labels of each text.

    Parameters
    ----------
    n_listed : int
        Labels that are listed per text.
    n_trees, beam_size : int
        Trees that are averaged, and branches that are followed on each level.
    C : float
        Inverse regularisation.
    language, lemmas : str or None
        As in LinearClassifier.
    min_texts, max_features : int
        Fewest training texts that a word must occur in, and the number of most frequent words that are kept.
    seed : int
        Decides the folds.
    """

    kind = "omikuji"
    many_labels = True

    n_listed: Annotated[int, Within(1, 10_000)] = 100
    n_trees: Annotated[int, Within(1, 100)] = 3
    beam_size: Annotated[int, Within(1, 10_000)] = 10
    C: Annotated[float, Within(1e-6, 1e9)] = 1.0
    language: str | None = None
    lemmas: str | None = None
    min_texts: Annotated[int, Within(1, 1e9)] = 2
    max_features: Annotated[int, Within(1, 1e9)] = 200_000
    seed: Annotated[int, Within(0, 2**31 - 1)] = 0

    def _check_settings(self) -> None:
        super()._check_settings()
        self._new_terms()

    def _new_terms(self) -> Terms:
        return Terms(
            pair_weight=0.0,
            min_texts=self.min_texts,
            max_features=self.max_features,
            language=self.language,
            lemmas=self.lemmas,
        )

    def _fit(self, training: Labelled, validation: Labelled | None, work_folder: Path | None) -> History:
        self._terms = self._new_terms()
        features = self._terms.fit(training.texts)
        labels = scipy.sparse.csr_array(training.labels)
        self._shares = (np.asarray(labels.sum(axis=0)).ravel() + 0.5) / (labels.shape[0] + 1)
        folds = folds_of(training.texts, self.seed)
        parts = []
        for fold in folds if len(training.texts) <= _FEW_TEXTS else folds[:1]:
            kept = np.setdiff1d(np.arange(labels.shape[0]), fold)
            own, listed, values = self._score(self._train(features[kept], labels[kept]), features[fold])
            parts.append((fold[own], listed, values))
        where, listed, values = map(np.concatenate, zip(*parts, strict=True))
        hits = np.asarray(labels[where, listed]).ravel().astype(np.float64)
        step = max(1, -(-len(hits) // _MOST_PAIRS))
        inputs = self._inputs(where, listed, values)
        start = np.eye(inputs.shape[1])[0]
        self._coefficients = fit_regression(inputs[::step], hits[::step], start, np.ones(inputs.shape[1]))
        seen, place = np.unique(where, return_inverse=True)
        shape = (len(seen), labels.shape[1])
        probabilities = expit(inputs @ self._coefficients)
        self.held_out_ = HeldOut(seen, as_shortlists(place, listed, probabilities, shape, self.n_listed))
        self._model = self._train(features, labels)
        return [{"share_listed": float(hits.sum() / max(1, labels[seen].sum()))}]

    def _train(self, features: Any, labels: Any) -> Any:
        """Fit the trees in a child process: omikuji reads a file, and writes its progress to the terminal."""
        from sklearn.datasets import dump_svmlight_file  # noqa: PLC0415 (predictions do without it)

        require("omikuji", "omikuji", "The omikuji classifier")
        rows = np.flatnonzero((np.diff(features.indptr) > 0) & (np.diff(labels.indptr) > 0))
        if not len(rows):
            raise InvalidInputError("The omikuji classifier needs training texts with labels and words.")
        settings = {"n_trees": self.n_trees, "linear_c": self.C, "n_threads": threads_to_use(None)}
        with tempfile.TemporaryDirectory(prefix="surelabel-") as folder, progress.step("growing label trees"):
            path, trees = Path(folder) / "texts.txt", Path(folder) / _TREES
            with path.open("wb") as file:
                file.write(f"{len(rows)} {features.shape[1]} {labels.shape[1]}\n".encode())
                some: Any = labels[rows].astype(np.int8)
                dump_svmlight_file(features[rows].astype(np.float64), some, file, multilabel=True)
            run = subprocess.run(  # noqa: S603 (our own code)
                [sys.executable, "-c", _CHILD, json.dumps(settings), str(path), str(trees)],
                check=False,
                capture_output=True,
            )
            if run.returncode != 0:
                reason = run.stderr.decode("utf-8", "replace").strip()[-300:]
                raise TrainingError(f"omikuji ended with status {run.returncode}: {reason}")
            return _load_trees(trees)

    def _score(self, model: Any, features: Any) -> tuple[IntArray, IntArray, FloatArray]:
        """Return text, label and score of each listed pair."""
        found: list[tuple[int, int, float]] = []
        with progress.step("listing labels", features.shape[0]) as advance:
            for row, (start, end) in enumerate(zip(features.indptr[:-1], features.indptr[1:], strict=True)):
                pairs = list(zip(features.indices[start:end].tolist(), features.data[start:end].tolist(), strict=True))
                found += [(row, *one) for one in model.predict(pairs, self.beam_size, self.n_listed)]
                advance(1)
        rows, labels, scores = np.array(found, dtype=np.float64).reshape(-1, 3).T
        return rows.astype(np.int64), labels.astype(np.int64), scores

    def _inputs(self, rows: IntArray, labels: IntArray, scores: FloatArray) -> FloatArray:
        """Return what the curve uses of each pair: score, rank in the text, frequency of the label, 1."""
        odds = np.clip(logit(np.clip(scores, 0.0, 1.0)), -_FAR, _FAR)
        order = np.lexsort((labels, -scores, rows))
        ranks = np.empty(len(rows))
        ranks[order] = np.arange(len(rows)) - np.searchsorted(rows[order], rows[order])
        return np.column_stack([odds, np.log1p(ranks), np.log(self._shares[labels]), np.ones(len(rows))])

    def _predict(self, texts: list[str]) -> Shortlists:
        rows, labels, scores = self._score(self._model, self._terms.transform(texts))
        probabilities = expit(self._inputs(rows, labels, scores) @ self._coefficients)
        return as_shortlists(rows, labels, probabilities, (len(texts), self.n_labels_), self.n_listed)

    def _write(self, folder: Path) -> None:
        arrays = {"coefficients": self._coefficients, "shares": self._shares, **self._terms.write(folder)}
        write_arrays(folder / _ARRAYS, {"kind": _ARRAYS_KIND}, arrays)
        with _without_output():
            self._model.save(str(folder / _TREES))

    def _read(self, folder: Path) -> None:
        _, arrays = read_arrays(folder / _ARRAYS, _ARRAYS_KIND)
        self._terms = self._new_terms()
        self._terms.read(folder, arrays)
        self._coefficients, self._shares = arrays["coefficients"], arrays["shares"]
        check_arrays((self._coefficients, (4,)), (self._shares, (self.n_labels_,)))
        if np.any((self._shares <= 0) | (self._shares >= 1)):
            raise ValueError("shares of labels must be between 0 and 1")
        self._model = _load_trees(folder / _TREES)
        if self._model.n_features not in {self._terms.n_features, self._terms.n_features + 1}:
            raise ValueError("trees and terms do not fit together")


def _load_trees(folder: Path) -> Any:
    library = require("omikuji", "omikuji", "The omikuji classifier")
    with _without_output():
        return library.Model.load(str(folder))


@contextlib.contextmanager
def _without_output() -> Iterator[None]:
    """Keep what omikuji writes to standard output out of the results of a command."""
    sys.stdout.flush()
    kept = os.dup(1)
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 (no path of a user)
        os.dup2(nowhere.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
