"""An evaluation in sentences: the command line, the model card, the report and the page print the same ones.

Every sentence names the texts that it is about: all test texts, those that are filed, or those that people see.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surelabel._core.formatting import count

_PARTS = {"filing": "filing set on", "calibration": "calibrated on", "test": "measured on"}
_REASONS = {
    "no labels": "without labels",
    "training": "that occur in training",
    "calibration": "used in calibration",
}

_SUBGROUPS = {
    "number of true labels": "with",
    "rarest label": "whose rarest tag has",
    "group": "of the group",
}


def promise_line(bundle: Any) -> str:
    """Return in a few sentences what a model does and promises."""
    info, calibration = bundle.info, bundle.predictor.calibration_
    level = {name: f"{100 * float(value):g} %" for name, value in info.levels.items()}
    return (
        f"A {info.classifier} classifier for {count(len(bundle.label_names))} tags. Texts that it vouches for are "
        f"filed: at most {level['max_wrong']} of those are wrong, with {level['assurance']} assurance. For all others "
        f"a person chooses from a list that misses at most {level['max_missed']} of the true tags on average, or reads "
        f"the text. Calibrated on {count(len(bundle.filing))} texts for filing and {count(calibration.n_texts)} for "
        f"lists and prediction sets ({info.measure}; answers of {calibration.min_labels} to {calibration.max_labels} "
        "tags)."
    )


def training_lines(bundle: Any) -> list[str]:
    """Return what `train` prints about a model: its texts, its errors, what happens to new texts, and its lists."""
    info = bundle.info
    separators = [note for note in info.notes if "separat" in note]
    parts = [f"trained on {count(info.n_train)}"]
    parts += [f"{words} {count(info.part_sizes[part])}" for part, words in _PARTS.items() if part in info.part_sizes]
    first = f"{info.corpus}: {count(sum(info.part_sizes.values()))} texts, {count(len(bundle.label_names))} tags. "
    first += f"{', '.join(parts).capitalize()}."
    lines = [" ".join([first, *separators])]
    if bundle.evaluation is None:
        return [*lines, "There are no test texts, so nothing is measured."]
    return [*lines, *decision_lines(bundle.evaluation, info.levels, advice=info.verdict)]


def evaluation_lines(evaluation: Any, levels: Mapping[str, str]) -> list[str]:
    """Return an evaluation in sentences: texts, errors, decisions, lists, subgroups that are missed too often."""
    lines = []
    if evaluation.left_out:
        reasons = "; ".join(f"{count(n)} {_REASONS.get(reason, reason)}" for reason, n in evaluation.left_out.items())
        lines.append(f"Measured on {count(evaluation.n_texts)} texts of {evaluation.corpus}. Left out: {reasons}.")
        if 0 < evaluation.left_out.get("training", 0) < evaluation.n_texts:
            lines.append(
                "Short texts that repeat, such as thanks, are easy: without them figures look worse than they are."
            )
    if evaluation.n_unknown:
        lines.append(
            f"{count(evaluation.n_unknown)} of {count(evaluation.n_texts)} texts have a tag that the model does not "
            "know. They count as errors."
        )
    return [*lines, *decision_lines(evaluation, levels), *subgroup_lines(evaluation)]


def decision_lines(evaluation: Any, levels: Mapping[str, str], advice: Any = ()) -> list[str]:
    """Return the errors, what happens to texts, and how good the lists are."""
    return [
        error_line(evaluation, levels["significance"]),
        " ".join([share_line(evaluation, levels), *(line for line in advice if line.startswith("With --max-wrong"))]),
        " ".join([list_line(evaluation, levels), *(line for line in advice if line.startswith("With --max-missed"))]),
    ]


def error_line(evaluation: Any, significance: str) -> str:
    """Return the share of texts whose answer is missed, of all test texts and of those that people see."""
    errors = evaluation.errors[significance]
    line = f"Errors: {share(errors)} of all {count(evaluation.n_texts)} test texts ({asked(significance)})"
    if evaluation.n_filed and evaluation.errors_seen is not None:
        n_seen = count(evaluation.n_texts - evaluation.n_filed)
        line += f"; {share(evaluation.errors_seen[significance])} of the {n_seen} that people see"
    return f"{line}."


def share_line(evaluation: Any, levels: Mapping[str, str]) -> str:
    """Return which share of test texts is filed, chosen and read, and how many filed ones are wrong."""
    file, choose, read = (evaluation.decisions[name] for name in ("file", "choose", "read"))
    filed = f"file {share(file.share)}"
    if file.n_texts:
        filed += f" ({share(file.wrong)} of them wrong, {asked(levels['max_wrong'])})"
    return f"Test texts: {filed}, choose {share(choose.share)}, read {share(read.share)}."


def list_line(evaluation: Any, levels: Mapping[str, str]) -> str:
    """Return how long the lists are that people see, and what they miss."""
    seen = evaluation.decisions["seen"]
    if not seen.n_texts:
        return "All test texts are filed: people see none."
    return (
        f"Lists for the {count(seen.n_texts)} texts that people see: {seen.n_tags:.1f} tags on average, which miss "
        f"{share(seen.missed)} of the true ones ({asked(levels['max_missed'])})."
    )


def subgroup_lines(evaluation: Any) -> list[str]:
    """Return, in at most one line, the subgroups that are missed more often than chance explains, the worst first."""
    found = evaluation.result.conditional
    kinds = [
        f"{share(group.missed)} of the {count(group.n_texts)} texts {_SUBGROUPS[division]} {group.name}"
        for division, group in found.broken
    ]
    if not kinds:
        return []
    return [f"Missed more often than chance explains ({asked(found.significance)}): {'; '.join(kinds)}."]


def asked(level: Any) -> str:
    """Return a level that was asked for, in words."""
    return f"{float(level) * 100:g} % asked for"


def share(value: float | None) -> str:
    """Return a share in percent, with a decimal below ten."""
    if value is None:
        return "-"
    return f"{100 * value:.1f} %" if 0 < value < 0.1 else f"{100 * value:.0f} %"
