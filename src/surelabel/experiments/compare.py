"""One corpus, all methods: this package's with several measures and its rivals, from a run's probabilities."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
from collections import UserDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from surelabel import __version__, corpora, plots, rivals
from surelabel._core.levels import STANDARD_LEVELS
from surelabel._core.storage import atomic_file
from surelabel._core.validation import BoolArray
from surelabel._core.wording import count_words
from surelabel.corpora import Corpus
from surelabel.evaluation.compare import Comparison, ComparisonRecord, ComparisonRow, compare
from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.experiments.run import Folders, kept_probabilities, probabilities_of, rounded
from surelabel.experiments.settings import Settings
from surelabel.experiments.tables import Table, three
from surelabel.measures import MEASURES, LogLoss, Measure
from surelabel.models import Bundle
from surelabel.models.fitting import any_measure_named, fitted_measure
from surelabel.models.held_out import bundle_probabilities
from surelabel.models.steps import fitted_classifier, part_probabilities
from surelabel.probabilities_file import Probabilities

_log = logging.getLogger(__name__)

# Measures that are compared unless some are named.
FITTED_AND_NOT = (*MEASURES, "Mahalanobis", "Penalised", "Mixture")

# By the names that the command has for them: from the training labels and the largest number of labels of one text.
RIVALS: Mapping[str, Callable[[BoolArray, int], rivals.Rival]] = {
    "seen": lambda seen, most: rivals.SeenPowerset(seen, LogLoss()),
    "bonferroni": lambda seen, most: rivals.BonferroniRelevance(1, most),
    "per-label": lambda seen, most: rivals.PerLabelRelevance(1, most),
    "instance-reproduction": lambda seen, most: rivals.InstanceReproduction(1, most),
    "cross-conformal": lambda seen, most: rivals.CrossConformalRidge(candidates=seen, max_labels=most),
    "transductive": lambda seen, most: rivals.TransductiveRidge(candidates=seen, max_labels=most),
    "recall": lambda seen, most: rivals.RecallControl(1, most),
}


def make_measures(names: Sequence[str], parts: Probabilities, seen: BoolArray) -> dict[str, Measure]:
    """Make measures by name; those that are fitted are so on the validation part and the training labels."""
    validation, limits = parts.parts.get("validation"), (1, parts.max_labels)
    return {name: fitted_measure(any_measure_named(name), validation, seen, limits) for name in names}


class _KeptRecords(UserDict[tuple[str, int], list[ComparisonRecord]]):
    """Records kept in a file, as long as probabilities, levels and version stay the same."""

    def __init__(self, path: Path, key: Mapping[str, Any]) -> None:
        super().__init__()
        self._path, self._key = path, dict(key)
        if path.is_file():
            try:
                document = json.loads(path.read_text(encoding="utf-8"))
                records = [ComparisonRecord(**record) for record in document.pop("records")]
            except (ValueError, KeyError, TypeError, AttributeError):
                _log.warning("%s is damaged; all is measured again", path)
                return
            for record in records if document == self._key else ():
                self.data.setdefault((record.method, record.split), []).append(record)

    def __setitem__(self, place: tuple[str, int], records: list[ComparisonRecord]) -> None:
        super().__setitem__(place, records)
        every = [dataclasses.asdict(record) for kept in self.data.values() for record in kept]
        with atomic_file(self._path) as temporary:
            temporary.write_text(json.dumps({**self._key, "records": every}), encoding="utf-8")


def compare_run(settings: Settings, folders: Folders, out: Path, **asked: Any) -> Comparison:
    """Compare measures and rivals, by name, on the probabilities of a conformal run, which is done first if necessary.

    An interrupted comparison is resumed: what was measured is kept beside the probabilities. Writes
    `<out>/comparisons/<corpus>-<classifier>.json`, the table beside it, and a figure to `<out>/figures`. `asked` is
    what to compare: measures, rivals, levels, n_splits, seed, n_sized.
    """
    return _compared(
        probabilities_of(settings, folders),
        corpora.load(settings.corpus, seed=settings.seed).part("train").labels,
        folders.runs / settings.name,
        out,
        f"{settings.corpus}-{settings.classifier}",
        **asked,
    )


def compare_corpus(
    corpus: Corpus,
    runs: Path,
    out: Path,
    *,
    classifier: str = "linear",
    bundle: Bundle | None = None,
    training_seed: int = 0,
    **asked: Any,
) -> Comparison:
    """Compare measures and rivals on a corpus of a user's own, with a classifier or with the one of a bundle.

    The corpus has training, calibration and test parts; with a bundle, those that it was trained with. `asked` is as
    in `compare_run`.
    """
    if bundle is not None and corpus.fingerprint() != bundle.info.fingerprint:
        raise InvalidInputError(
            f"A comparison with a model must be on what it was trained on, {bundle.info.corpus!r}, divided in the same "
            f"way: its other parts are known to be new. Got {corpus.name!r}."
        )
    kind = classifier if bundle is None else bundle.info.kind
    source = (
        corpus.fingerprint()[:8] if bundle is None else f"model-{bundle.info.created}-{bundle.info.fingerprint[:8]}"
    )
    folder = runs / f"{corpus.name}-{kind}-{source}-seed{training_seed}"
    probabilities = kept_probabilities(folder, lambda: _probabilities(corpus, folder, kind, bundle, training_seed))
    return _compared(probabilities, corpus.part("train").labels, folder, out, f"{corpus.name}-{kind}", **asked)


def _probabilities(corpus: Corpus, folder: Path, classifier: str, bundle: Bundle | None, seed: int) -> Probabilities:
    """Return the probabilities of a corpus, of a bundle or of a classifier that is trained on it."""
    names = [name for name in ("validation", "calibration", "test") if name in corpus.parts]
    if bundle is not None:
        parts = {name: bundle_probabilities(bundle, corpus.part(name)) for name in names}
    else:
        fitted = fitted_classifier(corpus, corpus.part("train"), classifier, {"seed": seed}, folder / "checkpoints")
        parts = {name: part_probabilities(fitted, corpus.part(name)) for name in names}
    described = {"corpus": {"name": corpus.name, "fingerprint": corpus.fingerprint()}, "classifier": classifier}
    largest = int(corpus.part("train").labels.sum(axis=1).max())
    return Probabilities(parts, tuple(corpus.label_names), largest, described)


def _compared(
    probabilities: Probabilities,
    seen: BoolArray,
    folder: Path,
    out: Path,
    name: str,
    *,
    measures: Sequence[str] = FITTED_AND_NOT,
    rivals: Sequence[str] = tuple(RIVALS),
    levels: Sequence[Any] = STANDARD_LEVELS,
    n_splits: int = 10,
    seed: int = 0,
    n_sized: int | None = None,
) -> Comparison:
    """Compare on probabilities that are kept in a folder; write table, figure and results."""
    unknown = sorted(set(rivals) - set(RIVALS))
    if unknown:
        raise InvalidInputError(f"Rivals are {', '.join(RIVALS)}. Got {', '.join(unknown)} instead.")
    others = [RIVALS[name](seen, probabilities.max_labels) for name in rivals]
    made = make_measures(measures, probabilities, seen)
    key = {  # what records depend on besides method and split
        "version": __version__,
        "probabilities": hashlib.sha256((folder / "probabilities.npz").read_bytes()).hexdigest(),
        "levels": [str(level) for level in levels],
        "n_sized": n_sized,
    }
    done = _KeptRecords(folder / "comparison.json", key)
    compared = compare(probabilities, made, others, levels, n_splits=n_splits, seed=seed, n_sized=n_sized, done=done)
    table = comparison_table(compared, name)
    figure = plots.to_svg(
        plots.comparison(compared),
        name=f"{name}-comparison",
        title=f"{compared.source}: methods side by side",
        description=table.note,
        ink="#777777",
    )
    documents = {
        out / "comparisons" / f"{name}.json": json.dumps(rounded(compared.to_dict()), separators=(",", ":")) + "\n",
        out / "comparisons" / f"{name}.md": f"# {table.title}\n\n{table.to_markdown()}\n\n{table.note}\n",
        out / "figures" / f"{name}-comparison.svg": figure,
    }
    for path, text in documents.items():
        with atomic_file(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return compared


def load_comparison(path: Path) -> Comparison:
    """Read a comparison that `compare_run` wrote."""
    try:
        return Comparison.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:
        raise ArtifactError(f"{path} is not a comparison, or it is damaged: {error}.") from error


def spread_words(pair: tuple[float, float] | None, write: Callable[[float], str]) -> str:
    """Write a mean and its standard deviation."""
    return "-" if pair is None else f"{write(pair[0])} ± {write(pair[1])}"


def mean_size_words(row: ComparisonRow) -> str:
    """Write a mean size, as a bound if it is one."""
    return spread_words(row.mean_size, count_words) if row.is_exact else f"at most {count_words(row.mean_size[0])}"


def comparison_table(compared: Comparison, name: str = "comparison") -> Table:
    """Tabulate a comparison; the note says what each method guarantees."""
    rows = tuple(
        (
            row.method,
            row.significance,
            spread_words(row.error, three),
            mean_size_words(row),
            spread_words(row.median_size, count_words),
            spread_words(row.s_excess, count_words),
        )
        for row in compared.rows()
    )
    promised: dict[str, list[str]] = {}
    for method, guarantee in compared.guarantees.items():
        promised.setdefault(guarantee, []).append(method)
    note = (
        f"{compared.n_calibration:,} calibration and {compared.n_texts:,} test texts, shuffled together and divided "
        f"anew {compared.n_splits} times: mean ± standard deviation. "
        + ("" if compared.n_sized is None else f"Sets were counted for {compared.n_sized:,} test texts of each. ")
        + "What is guaranteed at significance e: "
        + "; ".join(f"{', '.join(methods)}: {guarantee}" for guarantee, methods in promised.items())
        + "."
    )
    header = ("method", "significance", "error", "mean N", "median N", "S excess")
    return Table(name, f"{compared.source}: methods side by side", header, rows, note)
