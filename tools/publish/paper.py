"""Every table of the paper beside ours, from the runs under `results/runs/`, with what is better, equal and worse."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surelabel import corpora
from surelabel._core.files import atomic_file
from surelabel._core.formatting import count, markdown_table
from surelabel.experiments.run import Settings
from surelabel.experiments.tables import Result, by_corpus, paper_figures, point_at, three

# AAPD's training part cannot be had: arXiv abstracts stand in for it, with nothing of the paper's beside them.
FULL, REDUCED = ("reuters", "ctdc", "arxiv"), ("reuters20", "ctdc20", "arxiv20")
_PAPERS = ("randinit", "word2vec", "bert")
_OURS = ("linear", "blend")
_NORMS = ("L2", "L4", "L8")
_QUALITY = {"accuracy": "accuracy", "f1_micro": "micro-F1", "f1_macro": "macro-F1", "hamming_loss": "Hamming loss"}
_LESS_IS_BETTER = ("hamming_loss",)
_SAME_SHARE, _SAME_RATIO = 0.005, 1.05
_Group = tuple[str, str, "list[Result]"]


@dataclasses.dataclass
class Verdicts:
    """Where ours is better, equal or worse than the paper's, collected while a table is written."""

    found: dict[str, list[str]] = dataclasses.field(default_factory=lambda: {"better": [], "equal": [], "worse": []})

    def cell(
        self,
        where: str,
        ours: float | None,
        theirs: float | None,
        write: Callable[[float], str] = three,
        more: bool | None = True,
    ) -> str:
        """Write a figure with the paper's in brackets, and note which is better; `more` is better, less, or neither."""
        if theirs is None:
            return "-" if ours is None else write(ours)
        if ours is None:
            return f"({write(theirs)})"
        if more is not None:
            is_share = write is three
            is_equal = (
                abs(ours - theirs) <= _SAME_SHARE if is_share else max(ours, theirs) <= _SAME_RATIO * min(ours, theirs)
            )
            verdict = "equal" if is_equal else "better" if (ours > theirs) == more else "worse"
            self.found[verdict].append(where)
        return f"{write(ours)} ({write(theirs)})"

    def line(self) -> str:
        """Say in one line where ours is better, equal and worse."""
        n_figures = sum(map(len, self.found.values()))
        if not n_figures:
            return "No run to compare with the paper yet."
        parts = []
        for verdict, places in self.found.items():
            named = ", ".join(dict.fromkeys(places))
            parts.append(f"{verdict} in {len(places)}" + (f" ({named})" if places and verdict == "worse" else ""))
        return f"Of {n_figures} figures, ours are {'; '.join(parts)}."


def _groups(runs: Iterable[Result], names: Sequence[str], conformal: bool) -> list[_Group]:
    """Return runs by corpus and classifier: the paper's classifiers in any case, others if they were run."""
    found = {(corpus, classifier): group for corpus, classifier, group in by_corpus(runs, conformal)}
    return [
        (corpus, classifier, found.get((corpus, classifier), []))
        for corpus in names
        for classifier in (*_PAPERS, *_OURS)
        if classifier in _PAPERS or (corpus, classifier) in found
    ]


def _n_runs(corpus: str, classifier: str, group: list[Result], conformal: bool) -> str:
    """Return the number of runs, or the name of the file that is missing."""
    return str(len(group)) if group else f"no `{Settings(corpus, classifier, conformal).name}.json`"


def _mean(group: list[Result], read: Callable[[Result], float]) -> float | None:
    return float(np.mean([read(result) for result in group])) if group else None


def _table(header: Sequence[str], rows: list[tuple[str, ...]], verdicts: Verdicts) -> str:
    return f"{verdicts.line()}\n\n{markdown_table(header, rows, 2)}"


def _paper(section: str, corpus: str, classifier: str) -> dict[str, float]:
    figures: dict[str, float] = paper_figures()[section].get(corpus, {}).get(classifier, {})
    return figures


def _quality(
    verdicts: Verdicts, where: str, theirs: dict[str, float], read: Callable[[str], float | None]
) -> list[str]:
    return [
        verdicts.cell(f"{where} {words}", read(name), theirs.get(name), more=name not in _LESS_IS_BETTER)
        for name, words in _QUALITY.items()
    ]


def without_icp(runs: list[Result], names: Sequence[str]) -> str:
    """Tabulate the classifiers themselves: the paper's tables 3 and 4."""
    verdicts, rows = Verdicts(), []
    for corpus, classifier, group in _groups(runs, names, conformal=False):
        theirs = _paper("underlying", corpus, classifier)
        cells = _quality(
            verdicts, f"{corpus} {classifier}", theirs,
            lambda name, group=group: _mean(group, lambda result: result["underlying"]["test"][name]),
        )  # fmt: skip
        rows.append((corpus, classifier, *cells, _n_runs(corpus, classifier, group, conformal=False)))
    return _table(("corpus", "classifier", *_QUALITY.values(), "runs"), rows, verdicts)


def forced(runs: list[Result], names: Sequence[str]) -> str:
    """Tabulate best guesses with their mean confidence and credibility: tables 5 and 8."""
    verdicts, rows = Verdicts(), []
    for corpus, classifier, group in _groups(runs, names, conformal=True):
        theirs, where = _paper("forced", corpus, classifier), f"{corpus} {classifier}"
        cells = _quality(
            verdicts, where, theirs,
            lambda name, group=group: _mean(group, lambda result: result["evaluations"]["L2"]["forced"][name]),
        )  # fmt: skip
        for kind in ("confidence", "credibility"):
            for norm in _NORMS:
                ours = _mean(group, lambda result, kind=kind, norm=norm: result["evaluations"][norm][kind])
                more = True if kind == "confidence" else None
                cells.append(verdicts.cell(f"{where} {kind} {norm}", ours, theirs.get(f"{kind}_{norm}"), more=more))
        rows.append((corpus, classifier, *cells, _n_runs(corpus, classifier, group, conformal=True)))
    header = [f"{kind} {norm}" for kind in ("conf.", "cred.") for norm in _NORMS]
    return _table(("corpus", "classifier", *_QUALITY.values(), *header, "runs"), rows, verdicts)


def sums(runs: list[Result], names: Sequence[str]) -> str:
    """Tabulate S and OF above their floor, which no classifier can go below: table 6."""
    verdicts, rows = Verdicts(), []
    for corpus, classifier, group in _groups(runs, names, conformal=True):
        theirs, cells = _paper("criteria", corpus, classifier), []
        for kind in ("s", "of"):
            for norm in _NORMS:
                ours = _mean(group, lambda result, kind=kind, norm=norm: _excess(result["evaluations"][norm][kind]))
                total = theirs.get(f"{kind.upper()}_{norm}")
                excess = None if total is None else total - _floor(corpus, kind)
                cells.append(verdicts.cell(f"{corpus} {classifier} {kind.upper()} {norm}", ours, excess, count, False))
        rows.append((corpus, classifier, *cells, _n_runs(corpus, classifier, group, conformal=True)))
    header = [f"{kind} {norm}" for kind in ("S", "OF") for norm in _NORMS]
    return _table(("corpus", "classifier", *header, "runs"), rows, verdicts)


def _excess(criterion: dict[str, float]) -> float:
    """Return a sum of p-values above its floor: the middle of its certified bounds."""
    return (criterion["excess_lower"] + criterion["excess_upper"]) / 2


def _floor(corpus: str, kind: str) -> float:
    """Return the least that a published sum could be: every candidate has a p-value of 1 / (n + 1) at least."""
    figures = paper_figures()
    n_labels, n_texts = (figures["corpora"][corpus][name] for name in ("labels", "calibration"))
    n_candidates = sum(math.comb(n_labels, size) for size in range(1, figures["max_cardinality"][corpus] + 1))
    return float(n_candidates - (kind == "of")) / (n_texts + 1)


def sets(runs: list[Result], names: Sequence[str]) -> str:
    """Tabulate errors and mean sizes at 0.05: figures 4, 5, 7 and 8, whose numbers the text names in part."""
    verdicts, rows = Verdicts(), []
    published = {
        (row["corpus"], classifier): row[classifier]
        for row in paper_figures()["n_criterion"]
        for classifier in _PAPERS
        if row["significance"] == 0.05 and classifier in row
    }
    for corpus, classifier, group in _groups(runs, names, conformal=True):
        sizes = {
            measure: _mean(group, lambda result, measure=measure: point_at(result, measure, "0.05")["sizes"]["mean"])
            for measure in (*_NORMS, "LogLoss")
        }
        theirs = published.get((corpus, classifier))
        own = [value for value in sizes.values() if value is not None]
        best = verdicts.cell(f"{corpus} {classifier}", min(own, default=None), theirs, count, False)
        errors = [
            _mean(group, lambda result, level=level: point_at(result, "LogLoss", level)["error"])
            for level in ("0.05", "0.1", "0.2")
        ]
        redrawn = _mean(group, lambda result: np.mean(result["resplits"]["LogLoss"]["errors"]["0.05"]))
        cells = ["-" if error is None else three(error) for error in (*errors, redrawn)]
        cells += ["-" if size is None else count(size) for size in sizes.values()]
        rows.append((corpus, classifier, *cells, best, _n_runs(corpus, classifier, group, conformal=True)))
    header = (
        "corpus", "classifier", *(f"errors at {level}" for level in ("0.05", "0.1", "0.2")), "at 0.05, re-splits",
        *(f"N {measure}" for measure in (*_NORMS, "LogLoss")), "best N (paper's best)", "runs",
    )  # fmt: skip
    return _table(header, rows, verdicts)


def demand(runs: list[Result], names: Sequence[str]) -> str:
    """Tabulate the search at 0.05: radius t, label-sets considered, and texts out of its reach: table 7."""
    verdicts, rows = Verdicts(), []
    for corpus, classifier, group in _groups(runs, names, conformal=True):
        theirs = _paper("search_cost_at_5_percent", corpus, classifier)
        for norm in _NORMS:
            found = [result for result in group if result["evaluations"][norm].get("demand")]

            def ours(name: str, found: list[Result] = found, norm: str = norm) -> float | None:
                return float(np.mean([r["evaluations"][norm]["demand"][name] for r in found])) if found else None

            where = f"{corpus} {classifier} {norm}"
            percent = ours("prohibitive")
            cells = [
                verdicts.cell(where, ours("mean_radius"), theirs.get(f"mean_t_{norm}"), "{:.2f}".format, None),
                verdicts.cell(where, ours("ball_label_sets"), theirs.get(f"label_sets_{norm}"), count, False),
                verdicts.cell(
                    where, None if percent is None else 100 * percent, theirs.get(f"prohibitive_percent_{norm}"),
                    "{:.2f} %".format, None,
                ),
                verdicts.cell(where, ours("exact_label_sets"), None, count),
            ]  # fmt: skip
            rows.append((corpus, f"{classifier}, {norm}", *cells, _n_runs(corpus, classifier, found, conformal=True)))
    header = ("corpus", "classifier", "mean t", "label-sets in the ball", "out of its reach", "exact search", "runs")
    return _table(header, rows, verdicts)


def shown(runs: list[Result]) -> list[Result]:
    """Return the runs whose curves are drawn: of each corpus those of the classifier with the best accuracy."""
    best: dict[str, list[Result]] = {}
    for corpus, _, group in by_corpus(runs, conformal=True):
        if corpus in (*FULL, *REDUCED) and _accuracy(group) > _accuracy(best.get(corpus)):
            best[corpus] = group
    return [result for group in best.values() for result in group]


def _accuracy(group: list[Result] | None) -> float:
    return (_mean(group or [], lambda result: result["evaluations"]["LogLoss"]["forced"]["accuracy"])) or 0.0


def log_loss(runs: list[Result], names: Sequence[str]) -> str:
    """Tabulate how much larger the best norm's sets are than those of LogLoss, on random re-splits."""
    rows = []
    for corpus, classifier, group in by_corpus(runs, conformal=True):
        if corpus not in names:
            continue
        cells = []
        for level in ("0.01", "0.05", "0.1"):
            means = {
                measure: np.mean([one["mean_size"][level] for r in group for one in r["resplits"][measure]["sizes"]])
                for measure in (*_NORMS, "LogLoss")
            }
            best = min(_NORMS, key=lambda norm, means=means: means[norm])
            cells.append(f"{means[best] / means['LogLoss']:.2f} ({best})")
        rows.append((corpus, classifier, *cells))
    return markdown_table(("corpus", "classifier", "at 0.01", "at 0.05", "at 0.1"), rows, 2) if rows else ""


def _verdicts(made: dict[str, str]) -> str:
    """Return what each table says in its first line."""
    titles = {
        "paper-without-icp": "Classifiers without ICP",
        "paper-forced": "Forced prediction",
        "paper-sums": "S and OF",
        "paper-sets": "N at 0.05",
        "paper-demand": "Label-sets in the Hamming ball",
    }
    return "\n".join(f"- **{title}.** {made[name].splitlines()[0]}" for name, title in titles.items())


def _figures(runs: list[Result]) -> str:
    """Return the curves of errors and sizes, the paper's figures 4, 5, 7 and 8."""
    names = {f"{result['run']['corpus']}-{result['run']['classifier']}" for result in shown(runs)}
    kinds = {"errors": "Error rate", "sizes": "Mean number of label-sets"}
    return "\n".join(
        f"![{words} against significance, {name}](../results/figures/{name}-{kind}.svg)"
        for name in sorted(names)
        for kind, words in kinds.items()
    )


def parts(runs: list[Result]) -> dict[str, str]:
    """Return the marked places that runs fill."""
    made = {
        "paper-without-icp": without_icp(runs, (*FULL, *REDUCED)),
        "paper-forced": forced(runs, (*REDUCED, *FULL)),
        "paper-sums": sums(runs, REDUCED),
        "paper-sets": sets(runs, (*REDUCED, *FULL)),
        "paper-demand": demand(runs, FULL),
        "paper-figures": _figures(runs),
        "paper-load": "![Label-sets considered against t](../results/figures/search-load.svg)" if shown(runs) else "",
        "log-loss": log_loss(runs, (*FULL, *REDUCED)),
    }
    return {**made, "paper-verdicts": _verdicts(made)}


def count_corpora(path: Path) -> None:
    """Count the paper's corpora and write their statistics."""
    counted = {}
    for name in (*FULL, *REDUCED):
        corpus = corpora.load(name, seed=0, parts="paper")
        sizes, labels = corpus.part_sizes, [len(own) for own in corpus.label_sets]
        counted[name] = {
            "docs": len(corpus.texts),
            "proper_train": sizes["train"],
            **{part: sizes.get(part, 0) for part in ("calibration", "test", "validation")},
            "labels": len(corpus.label_names),
            "avg_labels": round(float(np.mean(labels)), 4),
            "avg_words": round(float(np.mean([len(re.findall(r"\w+|[^\w\s]", text)) for text in corpus.texts])), 1),
        }
    with atomic_file(path) as stream:
        stream.write(json.dumps({"corpora": counted}, indent=1) + "\n")


def corpora_table(document: dict[str, Any]) -> str:
    """Tabulate statistics of corpora, each followed by the paper's: table 2."""
    columns = {
        "docs": "texts", "proper_train": "proper training", "calibration": "calibration", "test": "test",
        "validation": "validation", "labels": "labels", "avg_labels": "labels per text", "avg_words": "words per text",
    }  # fmt: skip
    rows = []
    for name in (*FULL, *REDUCED):
        for source, found in (("ours", document["corpora"].get(name)), ("paper", paper_figures()["corpora"].get(name))):
            if found:
                cells = (f"{found[key]:.2f}" if key == "avg_labels" else f"{found[key]:,.0f}" for key in columns)
                rows.append((name, source, *cells))
    return markdown_table(("corpus", "source", *columns.values()), rows, 2)
