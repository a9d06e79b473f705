"""Tables of what the benchmarks measured, from their files under `results/`; none for a file that is missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from publish.promises import PROMISES
from surelabel._core.wording import count_words
from surelabel.experiments.tables import Table, three

__all__ = ["benchmark_tables"]

Document: TypeAlias = dict[str, Any]


def engine(document: Document) -> Table:
    """Tabulate the exact search against the Hamming ball."""
    rows = tuple(
        (
            row["measure"],
            row["significance"],
            count_words(row["mean_size"]),
            f"{row['exact_ms_all_texts']:.1f}",
            count_words(row["ball_label_sets_all_texts"]),
            f"{row['ball_prohibitive_percent']:.2f}",
            f"{row['ratio_same_texts']:,.0f}",
        )
        for row in document["against_hamming_ball"]
    )
    header = (
        "measure", "significance", "mean N", "exact search, ms for all texts", "Hamming ball, label-sets",
        "its prohibitive %", "times faster",
    )  # fmt: skip
    texts = document["against_hamming_ball"][0]["texts"]
    source = document["settings"]["source"]
    note = f"{source}; {texts:,} test texts, one core. Ratios compare the same texts in the same run."
    return Table("engine", "Exact search against the Hamming ball", header, rows, note)


def lean_ball(document: Document) -> Table:
    """Tabulate the exact search against the leanest Hamming ball."""
    rows = tuple(
        (
            row["measure"],
            row["significance"],
            f"{row['texts']:,}",
            f"{row['texts_out_of_reach']:,}",
            count_words(row["ball_label_sets"]),
            f"{row['ball_ms']:.1f}",
            f"{row['exact_ms']:.1f}",
            count_words(row["ratio"]),
        )
        for row in document["rows"]
    )
    header = (
        "measure", "significance", "texts", "texts out of reach", "label-sets", "lean ball, ms", "exact search, ms",
        "times faster",
    )  # fmt: skip
    note = (
        "The exact search against the leanest version of the paper's: a compiled ball that only adds up flips and "
        f"counts, on texts with t at most {document['settings']['most_t']}. If t is small it is as fast as the exact "
        "search; its work explodes as t grows."
    )
    return Table("lean-ball", "Exact search against the leanest Hamming ball", header, rows, note)


def text_throughput(document: Document) -> Table:
    """Tabulate how fast the text classifiers are."""
    beside = {
        "linear": f"fit of {document['linear']['fit_texts']:,} texts: {document['linear']['fit_seconds']:.1f} s",
        "randinit": f"an epoch: {document['randinit']['epoch_seconds']:.1f} s, "
        f"{document['randinit']['times_faster']:.0f} times faster than plain Conv2d and MaxPool "
        f"({document['randinit']['batches_compared']} batches of both; losses within "
        f"{document['randinit']['largest_relative_loss_difference']:.0e})",
        "word2vec": f"vectors of the training texts: {document['word2vec']['vectors_seconds']:.0f} s",
        "bert": f"{document['bert']['times_faster']:.1f} times faster than transformers' pipeline "
        f"({document['bert']['n_texts']} texts; probabilities within "
        f"{document['bert']['largest_probability_difference']:.0e})",
    }
    rows = tuple((kind, count_words(document[kind]["texts_a_second"]), text) for kind, text in beside.items())
    bert = document["bert"]
    if "int8" in bert:
        rows += (_int8_row(bert["int8"]),)
    note = f"Reuters, {document['threads']} threads; bert is {bert['model']} with at most {bert['max_tokens']} tokens."
    return Table(
        "text", "Text classifiers: texts per second", ("classifier", "texts per second", "comparison"), rows, note
    )


def _int8_row(figures: Document) -> tuple[str, str, str]:
    """Return the row of the quantised encoder."""
    one = figures["one_text_milliseconds"]
    waits = ", ".join(f"{one[n]['int8']:.0f} ms instead of {one[n]['float32']:.0f} at {n} tokens" for n in one)
    comparison = (
        f"in its own run, {figures['threads']} thread(s), {figures['n_texts']} texts of at most "
        f"{figures['max_tokens']} tokens: {figures['times_faster_than_float32']:.1f} times faster than float32 "
        f"({figures['float32_texts_a_second']:.1f} per second), {figures['times_faster_than_pipeline']:.1f} times "
        f"faster than the pipeline; the same labels for {figures['same_labels']:.1%} of texts; one text takes {waits}"
    )
    return "bert, int8", count_words(figures["texts_a_second"]), comparison


def service(document: Document) -> Table:
    """Tabulate how the service does under load."""
    rows = tuple(
        (
            str(row["clients"]),
            row["micro_batching"] + (", described" if row.get("describe") else ""),
            f"{row['requests_a_second']:,.0f}",
            f"{row['p50_ms']:.1f}",
            f"{row['p99_ms']:.1f}",
            f"{row['conformal_share']:.1%}",
        )
        for row in document["rows"]
    )
    header = ("clients", "micro-batching", "requests per second", "p50, ms", "p99, ms", "conformal step")
    note = (
        f"{document['settings']['source']}; one text per request, significance {document['settings']['significance']}, "
        f"the {document['settings']['top']} most plausible label-sets; clients and server share the "
        f"{document['machine']['cores']} cores. The last column is the conformal step's share of the server's "
        "processor time."
    )
    return Table("service", "The service under load", header, rows, note)


def watch(document: Document) -> Table:
    """Tabulate when the exchangeability watch raised its alarm."""
    watched = {name: value for name, value in document.items() if isinstance(value, dict)}
    alpha, mixed, shuffled = "0.01", "random", "calibration first, test shuffled"
    rows = tuple(
        (
            name,
            "none" if value["time"]["alarm_at"] is None else f"{value['time']['alarm_at']:,}",
            f"10^{value['time']['log10_peak']:.1f}",
            three(value[mixed][alpha]["share"]),
            three(value[shuffled][alpha]["share"]),
        )
        for name, value in watched.items()
    )
    header = (
        "measure", "alarm at text, time order", "largest capital, time order", "alarms, random orders",
        "alarms, test shuffled",
    )  # fmt: skip
    first = next(iter(watched.values()))
    note = (
        f"{document['source']}: {document['n_calibration']:,} calibration texts, then {document['n_test']:,} test "
        f"texts; alpha {alpha}. In {first[mixed]['orders']:,} random orders of all texts every alarm is false, and "
        "their share may be at most alpha. If the test texts are shuffled among themselves, the watch can only see the "
        f"step from training time to test time ({first[shuffled]['orders']:,} orders): so what it sees in time order "
        "is mostly that similar texts come in bursts."
    )
    return Table("watch", "The exchangeability watch", header, rows, note)


_RULES = ("accuracy", "f1_micro", "f1_macro")
_QUALITY = ("accuracy", "micro-F1", "macro-F1")
_MADE = "Thresholds are fitted on validation texts. Kinds joined by + are blended. One seed."


def _quality(row: Document, *rules: str) -> tuple[str, ...]:
    """Return how good one label-set per text is, by some rules."""
    return tuple(three(row[rule][name]) for rule in rules for name in _RULES)


_REDIVIDED = ("mean N at 0.05", "mean N at 0.01", "filed")


def _redivided(figures: Document | None) -> tuple[str, ...]:
    """Return the figures over re-splits, if there are any."""
    if figures is None:
        return ("-",) * len(_REDIVIDED)
    sizes = (count_words(figures[f"mean_size_{level}"]) for level in (0.05, 0.01))
    return (*sizes, f"{figures['filed']:.1%}")


def classifiers(document: Document) -> Table:
    """Tabulate classifiers as members of models: best guesses by both rules, sets, what can be filed."""
    rows = tuple(
        (
            row["corpus"],
            row["classifier"],
            *_quality(row, "exact", "f1"),
            three(row["log_loss"]),
            *(count_words(row[f"mean_size_{level}"]) for level in (0.05, 0.01)),
            f"{row['filed']:.0%}",
            f"{row['considered_at_20_missed']:.1f}",
            *_redivided(row.get("resplits")),
            "-" if row["seconds"] is None else f"{row['seconds']:,.0f}",
        )
        for row in document["rows"]
        if not row.get("plain")
    )
    header = (
        "corpus", "classifier", *_QUALITY, *(f"{name}, F1 rule" for name in _QUALITY), "log-loss", "mean N at 0.05",
        "mean N at 0.01", "filed", "tags to consider", *(f"{name}, re-splits" for name in _REDIVIDED), "fit, s",
    )  # fmt: skip
    note = (
        "The first three figures are by the paper's rule, the most plausible label-set; the next three by thresholds "
        f"for F1 (`--decision f1`). {_MADE} N: plausible label-sets by LogLoss. Filed: texts of which at most "
        "5 % are wrong. Tags to consider: at 20 % of labels missed. Re-splits: means over 50 random divisions of "
        "calibration and test texts. Seconds are of one processor core, without those of a blend's members."
    )
    return Table("classifiers", "Classifiers and their prediction sets", header, rows, note)


def classifiers_plain(document: Document) -> Table:
    """Tabulate classifiers that are trained on calibration texts, too."""
    rows = tuple(
        (
            row["corpus"],
            row["classifier"],
            *_quality(row, "half", "exact", "f1"),
            three(row["joint"]["accuracy"]),
            three(row["macro"]["f1_macro"]),
            three(row["log_loss"]),
        )
        for row in document["rows"]
        if row.get("plain")
    )
    others = tuple(f"{name}, {rule}" for rule in ("at least one", "F1 rule") for name in _QUALITY)
    header = ("corpus", "classifier", *_QUALITY, *others, "accuracy, joint", "macro-F1, macro rule", "log-loss")
    note = (
        "The first three figures are by the paper's rule, labels with a probability of 0.5 or more; the next three "
        "give a text without such a label its most probable one, which makes the most plausible label-set by LogLoss; "
        "the last three are by thresholds for F1 (`--decision f1`). Joint: the best guess of the mixture that "
        f"validation texts choose. Macro rule: thresholds per label (`--decision macro-f1`). {_MADE}"
    )
    return Table("classifiers-without-icp", "Classifiers without conformal prediction", header, rows, note)


def review_day(document: Document) -> Table:
    """Tabulate what a day of review takes and leaves, beside accepting everything and reading everything."""
    ways = {
        "review": "with_review",
        "accept every best guess": "accept_every_best_guess",
        "read everything": "read_everything",
    }

    def spread(figures: Document, form: str) -> str:
        if figures["least"] == figures["most"]:
            return format(figures["mean"], ".0f")
        return f"{figures['mean']:{form}} ({figures['least']:{form}} to {figures['most']:{form}})"

    days = document["all_days"]
    rows = tuple(
        (
            name,
            spread(days[way]["decisions"], ".0f"),
            spread(days[way]["keystrokes_per_text"], ".1f"),
            spread(days[way]["errors_left"], ".0f"),
        )
        for name, way in ways.items()
    )
    header = ("way", "decisions", "keystrokes per text", "wrong texts left")
    note = (
        f"Of {document['texts_per_day']} texts of {document['corpus']} a day, {days['filed_mean']:.0f} are filed on "
        f"average; {document['errors_left_among_filed']:.1%} of all filed texts are wrong. Means over "
        f"{document['n_days']} days, with the least and most."
    )
    return Table("review-day", "A day of review", header, rows, note)


_TABLES: dict[str, tuple[Callable[[Document], Table], ...]] = {
    "engine": (engine,),
    "lean_ball": (lean_ball,),
    "text_throughput": (text_throughput,),
    "classifiers": (classifiers, classifiers_plain),
    "promises": PROMISES,
    "review_day": (review_day,),
    "service": (service,),
    "watch": (watch,),
}


def benchmark_tables(folder: Path) -> list[Table]:
    """Return the tables of all benchmark files in a folder."""
    files = {folder / f"{name}.json": functions for name, functions in _TABLES.items()}
    return [
        tabulate(json.loads(path.read_text(encoding="utf-8")))
        for path, functions in files.items()
        if path.is_file()
        for tabulate in functions
    ]
