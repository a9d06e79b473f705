"""What fits on one page: all corpora in short, and our figures next to the paper's, rival methods and rivals' speed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from publish.comparisons import sizes_table
from publish.findings import NORMS, mean_size, mean_size_words
from surelabel._core.wording import count_words
from surelabel.evaluation.compare import Comparison
from surelabel.experiments.tables import (
    Result,
    Table,
    by_corpus,
    is_counted,
    paper_figures,
    point_at,
    spread,
    three,
)

__all__ = ["beside_paper", "beside_rivals", "beside_speeds", "in_short"]

_CORPORA = ("reuters", "reuters20")
_LEVEL = "0.05"
_FOR_PEOPLE = {
    "reuters20": "Reuters news, frequent labels",
    "reuters": "Reuters news, all labels",
    "arxiv20": "arXiv abstracts, frequent labels",
    "arxiv": "arXiv abstracts, all labels",
    "debian-czech20": "Czech package descriptions, frequent labels",
    "debian-czech": "Czech package descriptions, all labels",
}


def _right(group: list[Result]) -> float:
    """Return the share of own test texts whose best guess is right."""
    return float(np.mean([result["evaluations"]["LogLoss"]["forced"]["accuracy"] for result in group]))


def in_short(results: Sequence[Result]) -> Table:
    """Tabulate what a newcomer wants to know of each corpus, with the classifier that is right most often."""
    groups: dict[str, dict[str, list[Result]]] = {}
    for corpus, classifier, group in by_corpus(results, conformal=True):
        groups.setdefault(corpus, {})[classifier] = group
    rows = []
    for corpus, name in _FOR_PEOPLE.items():
        if corpus not in groups:
            continue
        classifier, group = max(groups[corpus].items(), key=lambda item: _right(item[1]))
        errors = [error for result in group for error in result["resplits"]["LogLoss"]["errors"][_LEVEL]]
        sizes = [point_at(result, "LogLoss", _LEVEL)["sizes"] for result in group]
        bound = "" if is_counted(group, "LogLoss", _LEVEL) else "at most "
        cells = (
            str(group[0]["n_labels"]),
            count_words(int(group[0]["evaluations"]["LogLoss"]["n_candidates"])),
            f"{np.mean(errors):.1%}",
            f"{bound}{count_words(float(np.mean([size['median'] for size in sizes])))}",
            f"{np.mean([size['single'] for size in sizes]):.0%}",
            f"{_right(group):.0%}",
        )
        rows.append((name, classifier, *cells))
    header = ("corpus", "classifier", "labels", "candidates", "errors", "plausible", "exactly one", "best guess right")
    note = (
        "What you get when you ask for 5 % errors, with the classifier that is right most often. *Candidates*: how "
        "many label-sets a text could have. *Errors*: how often the true label-set was not among the plausible ones, "
        "over random divisions into calibration and test texts. *Plausible*: how many label-sets are plausible for the "
        "median test text. *Exactly one*: the share of test texts with a single plausible label-set."
    )
    return Table("in-short", "In short", header, tuple(rows), note)


def _sets(group: list[Result]) -> list[str]:
    """Return error rate, mean N of the best norm and of LogLoss over re-splits; dashes if nothing was run."""
    if not group:
        return ["-"] * 3
    errors = [error for result in group for error in result["resplits"]["LogLoss"]["errors"][_LEVEL]]
    best = min(NORMS, key=lambda name: mean_size(group, name, _LEVEL))
    norm = f"{mean_size_words(group, best, _LEVEL)} ({best})"
    return [spread(errors, three), norm, mean_size_words(group, "LogLoss", _LEVEL)]


def beside_paper(results: Sequence[Result]) -> Table:
    """Tabulate the paper's corpora that are available: classifiers beside its own, and prediction sets at 0.05."""
    conformal = {(corpus, classifier): group for corpus, classifier, group in by_corpus(results, conformal=True)}
    rows = []
    for corpus, classifier, group in by_corpus(results, conformal=False):
        if corpus not in _CORPORA:
            continue
        paper = paper_figures()["underlying"][corpus].get(classifier, {})
        cells = []
        for name in ("accuracy", "f1_micro"):
            ours = three(float(np.mean([result["underlying"]["test"][name] for result in group])))
            cells.append(f"{ours} ({three(paper[name])})" if name in paper else ours)
        rows.append((corpus, classifier, *cells, *_sets(conformal.get((corpus, classifier), []))))
    header = ("corpus", "classifier", "accuracy", "F1 micro", "errors at 5 %", "mean N, best norm", "mean N, LogLoss")
    note = (
        "The paper's figures are in brackets. Accuracy and F1 are of the classifiers alone, on the test parts, as "
        "means over seeds. Errors and mean N, the number of plausible label-sets, are at significance 0.05 over random "
        "re-splits of calibration and test texts."
    )
    return Table("beside-paper", "Next to the paper", header, tuple(rows), note)


def beside_rivals(compared: Sequence[Comparison]) -> Table:
    """Tabulate mean N of our measures and of rival methods, those that all comparisons have."""
    full = sizes_table(compared, _LEVEL)
    names = [name for name in full.header[2:] if all(name in comparison.guarantees for comparison in compared)]
    places = [0, 1, *(full.header.index(name) for name in names)]
    rows = tuple(tuple(row[place] for place in places) for row in full.rows)
    return Table("beside-rivals", "Next to other methods", tuple(full.header[p] for p in places), rows, full.note)


def _speeds(documents: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return (what, rival, how many times faster) of the benchmarks at hand."""
    rows = []
    if "engine" in documents:
        engine = documents["engine"]
        ratios = [row["ratio_same_texts"] for row in engine["against_hamming_ball"]]
        rival = engine["against_mulaconf"]
        rows += [
            ("set sizes, 90 labels", "the paper's Hamming ball", f"{min(ratios):,.0f} to {max(ratios):,.0f}"),
            (f"members listed, {rival['n_labels']} labels", "MuLaConf", f"{rival['ratio_members']:,.0f}"),
        ]
    if "lean_ball" in documents:
        ratios = [row["ratio"] for row in documents["lean_ball"]["rows"]]
        ours = "set sizes, 90 labels, texts with t up to 4"
        rows.append((ours, "a compiled ball that only counts", f"{min(ratios):.1f} to {max(ratios):.0f}"))
    if "interactions" in documents:
        rival = documents["interactions"]["against_mulaconf"]
        rows.append((f"Mahalanobis sets, {rival['n_labels']} labels", "MuLaConf", f"{rival['ratio']:,.0f}"))
    if "text_throughput" in documents:
        text = documents["text_throughput"]
        rows.append(("bert, prediction", "transformers' pipeline", f"{text['bert']['times_faster']:.1f}"))
        rows.append(("randinit, training", "Conv2d and MaxPool", f"{text['randinit']['times_faster']:.0f}"))
    return rows


def beside_speeds(folder: Path) -> Table:
    """Tabulate how many times faster than rivals the benchmarks found the product, from their files."""
    names = ("engine", "lean_ball", "interactions", "text_throughput")
    files = {name: folder / f"{name}.json" for name in names}
    documents = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in files.items() if path.is_file()}
    note = "Same texts, same machine, same run; `results/` has the files."
    return Table("beside-speeds", "Speed", ("what", "against", "times faster"), tuple(_speeds(documents)), note)
