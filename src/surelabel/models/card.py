"""The model card: what a bundle is, what it was measured at, and when not to trust it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from surelabel._core.wording import at_most_words, count_words, markdown_table
from surelabel.evaluation.evaluate import Evaluation
from surelabel.measures.mixture import Mixture
from surelabel.measures.penalised import Penalised

if TYPE_CHECKING:
    from surelabel.models.bundle import Bundle

# Labels in the card; the report has all.
_MOST_LABELS = 50
_USE = """```python
import surelabel

bundle = surelabel.load_bundle("this folder")
for answer in bundle.answers(["a text"], significance="0.05"):
    print(answer)
```

```
surelabel predict FOLDER texts.txt --significance 0.05
surelabel serve FOLDER
```"""
_TRUST = """The guarantee holds for texts that could have been calibration texts: same source, same time, same way of
labelling. A low credibility says that a text is unlike them. The guarantee is over many texts, not for each one."""


def model_card(bundle: Bundle) -> str:
    """Return the README.md of a bundle, in Markdown."""
    info = bundle.info
    sections = [
        f"# {_plain(info.name)}",
        _summary(bundle),
        f"## Use\n\n{_USE}",
        *_verdict(info.verdict),
        *_figures(bundle.evaluation),
        *_kinds(bundle.evaluation),
        "## Where it comes from",
        _table(("what", "value"), _origin(bundle)),
        "## How label-sets are judged",
        _table(("what", "value"), _method(bundle)),
        *([f"- {_plain(note)}" for note in info.notes]),
        f"## When not to trust it\n\n{_TRUST}",
        "## Settings",
        _table(("setting", "value"), sorted(info.settings.items())),
        _table(("package", "version"), sorted(info.versions.items())),
    ]
    return "\n\n".join(sections) + "\n"


def _verdict(verdict: Mapping[str, Any]) -> list[str]:
    """Say what the model is good for, if that is known."""
    words = "\n".join(f"- {_plain(str(line))}" for line in verdict.get("words", ()))
    return [f"## What it is good for\n\n{words}"] if words else []


def _summary(bundle: Bundle) -> str:
    """Say in a few lines what the model does."""
    calibration = bundle.predictor.calibration_
    return (
        f"A {bundle.info.kind} text classifier for {len(bundle.label_names)} labels, calibrated with "
        f"{calibration.n_texts} texts ({bundle.info.measure}), so that it names the plausible label-sets of a "
        "text: at significance 0.05 the true one is missed for about 5 % of texts that are like the calibration "
        f"texts. Candidates are all label-sets of {calibration.min_labels} to {calibration.max_labels} labels, "
        f"{count_words(calibration.n_candidates)} of them."
    )


def _origin(bundle: Bundle) -> list[tuple[str, Any]]:
    """Return the rows of the table of origins."""
    info = bundle.info
    rows: list[tuple[str, Any]] = [
        ("created", info.created),
        ("corpus", info.corpus),
        ("fingerprint", info.fingerprint),
    ]
    rows += [(name, value) for name, value in info.provenance.items() if value]
    rows += [(f"{name} texts", size) for name, size in info.part_sizes.items()]
    rows += [("seed", info.seed)]
    calibrated_on = dict(info.calibrated_on)
    added = calibrated_on.pop("added", [])
    places = [
        ("calibrated on", calibrated_on),
        *(("and on", each) for each in added),
        ("evaluated on", info.evaluated_on),
    ]
    for title, place in places:
        if place:
            rows.append((title, ", ".join(f"{name} {value}" for name, value in place.items())))
    return rows


def _method(bundle: Bundle) -> list[tuple[str, str]]:
    """Return the rows of the table of what stands between probabilities and sets."""
    predictor, recalibration = bundle.predictor, bundle.recalibration
    measure = bundle.info.measure
    if isinstance(predictor.measure, Penalised):
        weights = ", ".join(f"{name} {value:.3g}" for name, value in predictor.measure.weights.items() if value)
        measure += f", {weights or 'no weight above 0'}"
    if isinstance(predictor.measure, Mixture):
        measure += ", " + ", ".join(f"{name} {value:.3g}" for name, value in predictor.measure.parameters.items())
        measure += ", refined log-odds" if predictor.measure.odds is not None else ""
        if predictor.measure.hubs is not None:
            names = predictor.label_names or tuple(map(str, range(predictor.measure.n_labels)))
            measure += ", hubs " + " and ".join(names[hub] for hub in predictor.measure.hubs.labels.tolist())
    rules = predictor.constraints
    counts = {} if rules is None else {name: len(each) for name, each in rules.to_dict().items() if each}
    corrections = recalibration.methods if recalibration is not None else ()
    ways = [f"{corrections.count(way)} labels {way}" for way in ("platt", "isotonic", "none") if way in corrections]
    return [
        ("measure", measure),
        ("constraints", ", ".join(f"{name} {n}" for name, n in counts.items()) or "none"),
        ("recalibration", ", ".join(ways) or "none"),
        (
            "best guess",
            "the most plausible label-set"
            if bundle.thresholds is None
            else f"thresholds for {bundle.thresholds.average}-F1",
        ),
        ("probabilities", "all" if bundle.info.listed is None else f"the {bundle.info.listed} highest, the others 0"),
    ]


def _figures(evaluation: Mapping[str, Evaluation] | None) -> list[str]:
    """Return the section of figures, if there are any."""
    if not evaluation:
        return []
    rows = []
    for name, figures in evaluation.items():
        for point in figures.standard:
            mean = at_most_words(point.sizes.mean_lower, point.sizes.mean)
            rows.append((name, point.significance, f"{point.error:.3f}", mean, count_words(point.sizes.median)))
    first = next(iter(evaluation.values()))
    summary = (
        f"Best guess exactly right: {first.forced.accuracy:.1%}; micro-F1 {first.forced.f1_micro:.3f}, "
        f"macro-F1 {first.forced.f1_macro:.3f}. N is the number of plausible label-sets."
    )
    if first.guesses is not None:
        summary = (
            f"Best guess, by thresholds for F1: exactly right {first.guesses.accuracy:.1%}; micro-F1 "
            f"{first.guesses.f1_micro:.3f}, macro-F1 {first.guesses.f1_macro:.3f}. The most plausible label-set, "
            f"the paper's rule: {first.forced.accuracy:.1%}, {first.forced.f1_micro:.3f}, {first.forced.f1_macro:.3f}. "
            "N is the number of plausible label-sets."
        )
    table = _table(("measure", "significance", "error rate", "mean N", "median N"), rows)
    return [f"## Figures on {first.n_texts:,} test texts", summary, table]


def _kinds(evaluation: Mapping[str, Evaluation] | None) -> list[str]:
    """Return who is missed, and what is known of each label; the broken promise comes first."""
    figures = next(iter(evaluation.values())) if evaluation else None
    if figures is None or figures.conditional is None:
        return []
    known = figures.conditional
    broken = [
        f"**{_plain(division)}, {_plain(kind.name)}: {kind.missed:.1%} of {kind.n_texts:,} texts are missed, more than "
        f"chance explains.**"
        for division, kind in known.broken
    ]
    rows = [
        (division, kind.name, f"{kind.n_texts:,}", f"{kind.missed:.1%}")
        for division, kinds in known.kinds.items()
        for kind in kinds
    ]
    sure = f"Sure but wrong: {known.n_sure_wrong:,} of {known.n_sure:,} texts with one plausible label-set."
    shown = sorted(known.labels, key=lambda label: (-label.support, label.name))[:_MOST_LABELS]
    labels = [(label.name, label.support, _share(label.precision), _share(label.recall)) for label in shown]
    more = len(known.labels) - len(shown)
    return [
        f"## Who is missed at significance {known.significance}",
        *broken,
        _table(("by", "texts with", "texts", "missed"), rows),
        sure,
        f"## Labels{f', the {len(shown)} most frequent' if more else ''}",
        _table(("label", "test texts", "precision", "recall"), labels),
    ]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _table(headings: tuple[str, ...], rows: Any) -> str:
    """Write a Markdown table; line breaks and bars in cells do not break it."""
    return markdown_table(headings, ([_plain(cell) for cell in row] for row in rows), n_names=len(headings))


def _plain(value: Any) -> str:
    """Write a value on one line, with what Markdown would take for a table or markup escaped."""
    text = " ".join(str(value).split())
    for mark in ("\\", "|", "<", "`"):
        text = text.replace(mark, f"\\{mark}")
    return text
