"""The model card: what a bundle is, what it was measured at, and when not to trust it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surelabel._core.formatting import bounds, count, markdown_table
from surelabel.evaluation.metrics import large_enough

if TYPE_CHECKING:
    from surelabel.models.bundle import Bundle

# Labels in the card; the evaluation has all.
_MOST_LABELS = 50
_USE = """```
surelabel predict FOLDER texts.csv
surelabel serve FOLDER
```

```python
import surelabel

bundle = surelabel.load_bundle("FOLDER")
for answer in bundle.answers(["a text"]):
    print(answer.decision, answer.labels, answer.consider)
```"""
_TRUST = """The promises hold for texts that could have been calibration texts: same source, same time, same way of
tagging. They are about many texts, not about each one. A text with a low credibility is unlike those."""


def model_card(bundle: Bundle) -> str:
    """Return the README.md of a bundle, in Markdown."""
    info = bundle.info
    sections = [
        f"# {_plain(info.name)}",
        _summary(bundle),
        f"## Use\n\n{_USE}",
        *([f"## Measured\n\n{_list(info.verdict)}"] if info.verdict else []),
        *_figures(bundle),
        f"## When not to trust it\n\n{_TRUST}",
        "## Where it comes from",
        _table(("what", "value"), _origin(bundle)),
        *([_list(info.notes)] if info.notes else []),
        "## Settings",
        _table(("setting", "value"), sorted(info.settings.items())),
        _table(("package", "version"), sorted(info.versions.items())),
    ]
    return "\n\n".join(sections) + "\n"


def _summary(bundle: Bundle) -> str:
    """Return in a few sentences what the model does and promises."""
    info, calibration = bundle.info, bundle.predictor.calibration_
    asked = {name: f"{100 * float(level):g} %" for name, level in info.levels.items()}
    return (
        f"A {info.classifier} classifier for {count(len(bundle.label_names))} tags. Texts that it vouches for are "
        f"filed: at most {asked['max_wrong']} of those are wrong, with {asked['assurance']} assurance. For all others "
        f"a person chooses from a list that misses at most {asked['max_missed']} of the true tags on average, or reads "
        f"the text. Calibrated on {count(len(bundle.filing or ()))} texts for filing and {count(calibration.n_texts)} "
        f"for lists and prediction sets ({info.measure}; answers of {calibration.min_labels} to "
        f"{calibration.max_labels} tags)."
    )


def _origin(bundle: Bundle) -> list[tuple[str, Any]]:
    """Return the rows of the table of origins."""
    info = bundle.info
    rows: list[tuple[str, Any]] = [("created", info.created), ("corpus", info.corpus), ("seed", info.seed)]
    rows += [(name, value) for name, value in info.provenance.items() if value and name != "notes"]
    rows += [(f"{name} texts", size) for name, size in info.part_sizes.items()]
    rows += [("group column", info.group_column)] if info.group_column else []
    return [*rows, ("best guess", info.best_guess)]


def _figures(bundle: Bundle) -> list[str]:
    """Return the figures on test texts, if there are any."""
    if bundle.evaluation is None:
        return []
    found, evaluation = bundle.evaluation, bundle.evaluation.result
    best = evaluation.guesses or evaluation.forced
    levels = large_enough(found.errors, evaluation.n_calibration)
    rows = [
        (
            level,
            *(_share((errors or {}).get(level)) for errors in (found.errors, found.errors_filed, found.errors_seen)),
            bounds(evaluation.at(level).sizes.mean_lower, evaluation.at(level).sizes.mean),
        )
        for level in levels
        if any(point.significance == level for point in evaluation.curve)
    ]
    shown = sorted(evaluation.labels, key=lambda label: (-label.support, label.name))[:_MOST_LABELS]
    labels = [(one.name, one.support, *map(_share, (one.precision, one.recall, one.f1))) for one in shown]
    return [
        f"## Figures on {count(found.n_texts)} test texts",
        f"Best guess exactly right: {best.accuracy:.1%}; micro-F1 {best.f1_micro:.3f}, macro-F1 {best.f1_macro:.3f}. "
        + ", ".join(f"{name} {value:.3f}" for name, value in evaluation.ranks.items())
        + ".",
        _table(("significance", "errors", "of filed texts", "of texts people see", "mean answers per set"), rows),
        _table(("tag", "test texts", "precision", "recall", "F1"), labels),
    ]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _list(lines: Any) -> str:
    return "\n".join(f"- {_plain(line)}" for line in lines)


def _table(headings: tuple[str, ...], rows: Any) -> str:
    """Write a Markdown table; line breaks and bars in cells do not break it."""
    return markdown_table(headings, ([_plain(cell) for cell in row] for row in rows), n_names=len(headings))


def _plain(value: Any) -> str:
    """Write a value on one line, with Markdown's own marks escaped."""
    text = " ".join(str(value).split())
    for mark in ("\\", "|", "<", "`"):
        text = text.replace(mark, f"\\{mark}")
    return text
