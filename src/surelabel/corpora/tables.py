"""Statistics of corpora as in the paper's table of corpora, ours beside its."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import numpy as np

from surelabel.corpora.corpus import Corpus

__all__ = ["Statistics", "statistics", "statistics_markdown", "statistics_table"]

_TOKEN = re.compile(r"\w+|[^\w\s]")

_HEADINGS = {
    "corpus": "Corpus",
    "source": "Source",
    "docs": "Docs",
    "proper_train": "Proper train",
    "calibration": "Calibration",
    "test": "Test",
    "validation": "Validation",
    "labels": "Labels",
    "avg_labels": "Avg. labels",
    "avg_words": "Avg. words",
    "max_cardinality": "Max. labels",
}


@dataclass(frozen=True)
class Statistics:
    """One row of the corpora table.

    Attributes
    ----------
    docs, proper_train, calibration, test, validation : int
        Numbers of texts: all, and in each part.
    labels : int
    avg_labels : float
        Labels a text.
    avg_words : float
        Words and punctuation marks a text. The paper does not say how it counts.
    max_cardinality : int
        The most labels on one text: the paper's l.

    Examples
    --------
    >>> from surelabel import corpora
    >>> counted = corpora.generate_synthetic(300, n_labels=5).statistics()
    >>> counted.docs, counted.labels, counted.max_cardinality
    (300, 5, 2)
    """

    docs: int
    proper_train: int
    calibration: int
    test: int
    validation: int
    labels: int
    avg_labels: float
    avg_words: float
    max_cardinality: int


def statistics(corpus: Corpus) -> Statistics:
    """Count a corpus's row of the corpora table (table 2 of the paper).

    Parameters
    ----------
    corpus : Corpus

    Returns
    -------
    Statistics

    Examples
    --------
    >>> from surelabel.corpora import Corpus
    >>> texts = ["Oil rose.", "Gold fell, oil rose."]
    >>> statistics(Corpus.from_label_sets("two", texts, [{"oil"}, {"gold", "oil"}])).avg_words
    4.5
    """
    sizes = {name: len(corpus.parts.get(name, ())) for name in ("train", "calibration", "test", "validation")}
    cardinalities = np.diff(corpus.label_matrix.indptr)
    words = sum(sum(1 for _ in _TOKEN.finditer(text)) for text in corpus.texts)
    return Statistics(
        docs=len(corpus),
        proper_train=sizes["train"],
        calibration=sizes["calibration"],
        test=sizes["test"],
        validation=sizes["validation"],
        labels=len(corpus.label_names),
        avg_labels=float(cardinalities.mean()),
        avg_words=words / len(corpus),
        max_cardinality=int(cardinalities.max()),
    )


def statistics_table(
    corpora: Iterable[Corpus], *, paper: Mapping[str, Statistics] | None = None
) -> list[dict[str, str | int | float]]:
    """Count the rows of the corpora table, each followed by the paper's where it has one.

    Parameters
    ----------
    corpora : iterable of Corpus
    paper : mapping of corpus name to Statistics, default the paper's own figures
        An empty mapping leaves them out.

    Returns
    -------
    list of dict
        Keys "corpus", "source" ("ours" or "paper") and those of Statistics.

    Examples
    --------
    >>> from surelabel import corpora
    >>> rows = statistics_table([corpora.load("synthetic", n_texts=200, calibration=19)])
    >>> rows[0]["corpus"], rows[0]["calibration"]
    ('synthetic', 19)
    """
    if paper is None:
        from surelabel.corpora.paper_figures import PAPER_STATISTICS  # noqa: PLC0415  # it imports Statistics

        paper = PAPER_STATISTICS
    rows: list[dict[str, str | int | float]] = []
    for corpus in corpora:
        rows.append({"corpus": corpus.name, "source": "ours", **asdict(statistics(corpus))})
        if corpus.name in paper:
            rows.append({"corpus": corpus.name, "source": "paper", **asdict(paper[corpus.name])})
    return rows


def statistics_markdown(rows: Iterable[Mapping[str, str | int | float]]) -> str:
    """Write the rows of `statistics_table` as a Markdown table.

    Parameters
    ----------
    rows : iterable of mappings

    Returns
    -------
    str

    Examples
    --------
    >>> from surelabel.corpora import Corpus
    >>> corpus = Corpus.from_label_sets("two", ["oil rose", "gold fell"], [{"oil"}, {"gold"}])
    >>> print(statistics_markdown(statistics_table([corpus])).splitlines()[2])
    | two | ours | 2 | 2 | 0 | 0 | 0 | 2 | 1.00 | 2 | 1 |
    """
    lines = ["| " + " | ".join(_HEADINGS.values()) + " |", "|---|---|" + "---:|" * (len(_HEADINGS) - 2)]
    lines.extend("| " + " | ".join(_as_cell(key, row[key]) for key in _HEADINGS) + " |" for row in rows)
    return "\n".join(lines) + "\n"


def _as_cell(key: str, value: str | float) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.2f}" if key == "avg_labels" else f"{value:,.0f}"
