"""Statistics of corpora as in the paper's table of corpora, ours next to the paper's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from surelabel._core.wording import markdown_table

if TYPE_CHECKING:
    from surelabel.corpora.corpus import Corpus

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

    Numbers of texts, all and in each part; labels per text; words and punctuation marks per text (the paper does not
    say how it counts); and the most labels on one text, the paper's l.

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


# As the paper prints them.
PAPER_STATISTICS: dict[str, Statistics] = {
    "ctdc": Statistics(14690, 8565, 999, 2391, 2735, 60, 2.64, 275, 8),
    "ctdc20": Statistics(13702, 8032, 999, 2274, 2397, 20, 1.96, 269, 7),
    "reuters": Statistics(10788, 5770, 999, 3019, 1000, 90, 1.24, 165, 15),
    "reuters20": Statistics(9855, 5118, 999, 2738, 1000, 20, 1.16, 163, 7),
    "aapd": Statistics(55840, 48841, 4999, 1000, 1000, 54, 2.41, 164, 8),
    "aapd20": Statistics(52881, 45996, 4999, 944, 942, 20, 1.95, 165, 6),
}


def statistics(corpus: Corpus) -> Statistics:
    """Count a corpus's row of the corpora table (table 2 of the paper).

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
    corpora: Iterable[Corpus], *, paper: Mapping[str, Statistics] = PAPER_STATISTICS
) -> list[dict[str, str | int | float]]:
    """Count the rows of the corpora table, each followed by the paper's if it has one (`paper`, by corpus name).

    A row has the keys "corpus", "source" ("ours" or "paper") and those of Statistics.

    Examples
    --------
    >>> from surelabel import corpora
    >>> rows = statistics_table([corpora.load("synthetic", n_texts=200, calibration=19)])
    >>> rows[0]["corpus"], rows[0]["calibration"]
    ('synthetic', 19)
    """
    rows: list[dict[str, str | int | float]] = []
    for corpus in corpora:
        rows.append({"corpus": corpus.name, "source": "ours", **asdict(statistics(corpus))})
        if corpus.name in paper:
            rows.append({"corpus": corpus.name, "source": "paper", **asdict(paper[corpus.name])})
    return rows


def statistics_markdown(rows: Iterable[Mapping[str, str | int | float]]) -> str:
    """Write the rows of `statistics_table` as a Markdown table.

    Examples
    --------
    >>> from surelabel.corpora import Corpus
    >>> corpus = Corpus.from_label_sets("two", ["oil rose", "gold fell"], [{"oil"}, {"gold"}])
    >>> print(statistics_markdown(statistics_table([corpus])).splitlines()[2])
    | two | ours | 2 | 2 | 0 | 0 | 0 | 2 | 1.00 | 2 | 1 |
    """
    cells = ([_as_cell(key, row[key]) for key in _HEADINGS] for row in rows)
    return markdown_table([*_HEADINGS.values()], cells, n_names=2) + "\n"


def _as_cell(key: str, value: str | float) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.2f}" if key == "avg_labels" else f"{value:,.0f}"
