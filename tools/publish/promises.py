"""Tables of what the promises are worth, from `results/promises.json`."""

from __future__ import annotations

from typing import Any, TypeAlias

from surelabel._core.wording import count_words
from surelabel.experiments.tables import Table

__all__ = ["PROMISES"]

Document: TypeAlias = dict[str, Any]

_CORPORA = {
    "reuters20-linear": "Reuters news, 20 labels",
    "reuters-linear": "Reuters news, 90 labels",
    "goemotions-linear": "GoEmotions, 28 labels",
    "debian-czech-linear": "Czech package descriptions, 147 labels",
    "arxiv-20k-linear": "arXiv abstracts, 57 labels",
}
_BY_KIND = ("reuters-linear", "arxiv-20k-linear", "debian-czech-linear")
_CLASSIFIERS = {
    "reuters-linear": "linear",
    "reuters-hybrid": "hybrid",
    "reuters-linear+hybrid": "linear and hybrid blended",
    "reuters-randinit": "randinit",
    "reuters-word2vec": "word2vec",
    "reuters-linear+randinit": "linear and randinit blended",
    "reuters-bert-minilm": "bert (MiniLM)",
}
_NUMBERS_OF_LABELS = tuple(f"by cardinality: {kind}" for kind in ("1 label", "2 labels", "3 or more labels"))
_RARE = "by rarity: the rarest label in 0 to 19 training texts"


def _percent(share: float, digits: int = 1) -> str:
    return f"{share:.{digits}%}"


def _filed(run: Document, max_wrong: str) -> Document:
    """Return what is filed with the score that validation texts choose, or else by total."""
    of = {name: figures for name, figures in run["filed"].items() if name.startswith(f"{max_wrong}, ")}
    return next((figures for figures in of.values() if figures["chosen"]), of[f"{max_wrong}, total"])


def _missed(run: Document, calibration: str, kinds: tuple[str, ...]) -> list[str]:
    misses = run["misses"][calibration]["misses"]
    return [_percent(misses[kind]["share"]) for kind in kinds]


def _mean_size(run: Document, calibration: str) -> str:
    """Write the middle of the bounds of the mean number of plausible label-sets."""
    low, high = run["misses"][calibration]["mean_size_bounds"]
    middle = (low * high) ** 0.5
    return count_words(float(f"{middle:.3g}") if middle >= 100 else middle)


def _corpora(document: Document) -> Table:
    rows = []
    for name, corpus in _CORPORA.items():
        filed, tags = _filed(document[name], "0.05"), document[name]["tags"]
        share, wrong = _percent(filed["share_filed"], 0), _percent(filed["wrong_of_filed"])
        per_text, considered = f"{tags['true_tags_per_text']:.2f}", f"{tags['0.05']['considered']:.1f}"
        wrong = wrong if filed["share_filed"] else "-"
        rows.append((corpus, share, wrong, per_text, considered, _percent(tags["0.05"]["missed"])))
    header = (
        "corpus", "texts filed", "of these wrong", "true tags per text", "tags to consider", "true tags missing"
    )  # fmt: skip
    note = "The linear classifier at 5 %; averages over random divisions into calibration and test texts."
    return Table("promises-corpora", "What can be filed, and what is to be considered", header, tuple(rows), note)


def _kinds(document: Document) -> Table:
    rows = []
    for name in _BY_KIND:
        for calibration in ("plain", "by cardinality", "by rarity"):
            missed = _missed(document[name], calibration, (*_NUMBERS_OF_LABELS, _RARE))
            rows.append((_CORPORA[name], calibration, *missed, _mean_size(document[name], calibration)))
    header = ("corpus", "calibration", "1 label", "2 labels", "3 or more", "rare label", "mean N")
    note = (
        "Misses at 5 % of texts with one, two, and three or more true labels, and of texts whose rarest label has "
        "fewer than 20 training texts, with the mean number of plausible label-sets (ten random divisions, the linear "
        "classifier)."
    )
    return Table("promises-kinds", "Who is missed", header, tuple(rows), note)


def _classifiers(document: Document) -> Table:
    rows = []
    for name, classifier in _CLASSIFIERS.items():
        run = document[name]
        filed = [_percent(_filed(run, max_wrong)["share_filed"], 0) for max_wrong in ("0.02", "0.05", "0.1")]
        tags = [f"{run['tags']['0.05'][kind]:.2f}" for kind in ("considered", "assigned")]
        missed = ", ".join(_missed(run, "plain", _NUMBERS_OF_LABELS)), *_missed(run, "plain", (_RARE,))
        rare = _mean_size(run, "by cardinality"), *_missed(run, "by rarity", (_RARE,)), _mean_size(run, "by rarity")
        rows.append((classifier, *filed, *tags, *missed, *rare))
    header = (
        "classifier", "filed at 2 %", "at 5 %", "at 10 %", "tags to consider", "to assign",
        "missed with 1, 2, 3 or more labels", "rare label", "by cardinality, mean N", "by rarity, rare label", "mean N",
    )  # fmt: skip
    note = (
        "What can be filed at 2, 5 and 10 % wrong (means over random divisions), tags to consider and to assign at "
        "5 %, and misses at 5 %: plain, and what categories make of them."
    )
    return Table("promises-classifiers", "Other classifiers on Reuters", header, tuple(rows), note)


def _over_time(document: Document) -> Table:
    rows = []
    for name, classifier in _CLASSIFIERS.items():
        over_time = document[name]["over_time"]
        cells: list[str] = []
        for method in ("plain", "aci"):
            cells += [_percent(over_time[level][method]["error"]) for level in ("0.05", "0.1", "0.2")]
            cells.append(_percent(over_time["0.05"][method]["worst_of_500"]))
        medians = [f"{over_time['0.05'][method]['median_size']:.0f}" for method in ("plain", "aci")]
        rows.append((classifier, *cells, " and ".join(medians)))
    header = (
        "classifier", "fixed: 5 %", "10 %", "20 %", "worst 500 at 5 %", "adapting: 5 %", "10 %", "20 %",
        "worst 500 at 5 %", "median N, fixed and adapting",
    )  # fmt: skip
    note = 'Errors in the order of time: of a fixed calibration, and of `OnlineConformal` with `"aci"`.'
    return Table("promises-time", "Errors over time on Reuters", header, tuple(rows), note)


PROMISES = (_corpora, _kinds, _classifiers, _over_time)
"""What makes a table each of the file's figures."""
