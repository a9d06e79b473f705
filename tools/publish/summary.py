"""What fits on one page: our figures beside the paper's, beside rival methods, and beside rivals' speed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from publish.comparisons import sizes_table
from surelabel.evaluation.compare import Comparison
from surelabel.experiments.tables import (
    NORMS,
    Result,
    Table,
    by_corpus,
    mean_size,
    mean_size_words,
    paper_figures,
    spread,
    three,
)

__all__ = ["beside_paper", "beside_rivals", "beside_speeds"]

_CORPORA = ("reuters", "reuters20")
_LEVEL = "0.05"


def _sets(group: list[Result]) -> list[str]:
    """Return error rate, mean N of the best norm and of LogLoss over re-splits; dashes where nothing was run."""
    if not group:
        return ["-"] * 3
    errors = [error for result in group for error in result["resplits"]["LogLoss"]["errors"][_LEVEL]]
    best = min(NORMS, key=lambda name: mean_size(group, name, _LEVEL))
    norm = f"{mean_size_words(group, best, _LEVEL)} ({best})"
    return [spread(errors, three), norm, mean_size_words(group, "LogLoss", _LEVEL)]


def beside_paper(results: Sequence[Result]) -> Table:
    """Tabulate the paper's corpora that can be had: classifiers beside its own, and prediction sets at 0.05."""
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
        "In brackets the paper's; classifiers on the test parts, means over seeds. Errors and mean N, the number of "
        "plausible label-sets, at significance 0.05 over random re-splits of calibration and test texts."
    )
    return Table("beside-paper", "Beside the paper", header, tuple(rows), note)


def beside_rivals(compared: Sequence[Comparison]) -> Table:
    """Tabulate mean N of our measures and of rival methods, those that all comparisons have."""
    full = sizes_table(compared, _LEVEL)
    names = [name for name in full.header[2:] if all(name in comparison.guarantees for comparison in compared)]
    places = [0, 1, *(full.header.index(name) for name in names)]
    rows = tuple(tuple(row[place] for place in places) for row in full.rows)
    return Table("beside-rivals", "Beside other methods", tuple(full.header[p] for p in places), rows, full.note)


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
