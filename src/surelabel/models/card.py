"""The model card: what a bundle is, what it was measured at, and when not to trust it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surelabel._core.formatting import bounds, count, markdown_table
from surelabel.evaluation import summary

if TYPE_CHECKING:
    from surelabel.models.bundle import Bundle

# Labels in the card; the evaluation has all.
_MOST_LABELS = 50
_CARD = """# {name}

{promise}

## Use

```
surelabel predict FOLDER texts.csv
surelabel serve FOLDER
```

```python
import surelabel

bundle = surelabel.load_bundle("FOLDER")
for answer in bundle.answers(["a text"]):
    print(answer.decision, answer.labels, answer.consider)
```

{figures}## When not to trust it

The promises hold for texts that could have been calibration texts: same source, same time, same way of
tagging. They are about many texts, not about each one. A text with a low credibility is unlike those.

## Where it comes from

{origin}
{notes}
## Settings

{settings}
"""


def model_card(bundle: Bundle) -> str:
    """Return the README.md of a bundle, in Markdown."""
    info = bundle.info
    origin = {
        "created": info.created,
        "corpus": info.corpus,
        **{name: value for name, value in info.provenance.items() if value and name != "notes"},
        **{f"{part} texts": size for part, size in info.part_sizes.items()},
        "group column": info.group_column or "none",
        "best guess": info.best_guess,
        "seed": info.seed,
    }
    settings = {**dict(sorted(info.settings.items())), **{f"version of {name}": v for name, v in info.versions.items()}}
    return _CARD.format(
        name=_plain(info.name),
        promise=_plain(summary.promise_line(bundle)),
        figures=_figures(bundle),
        origin=_table(("what", "value"), origin.items()),
        notes="".join(f"\n- {_plain(note)}" for note in info.notes) + "\n" * bool(info.notes),
        settings=_table(("setting", "value"), settings.items()),
    )


def _figures(bundle: Bundle) -> str:
    """Return the figures on test texts, if there are any."""
    found = bundle.evaluation
    if found is None:
        return ""
    lines = "\n".join(f"- {_plain(line)}" for line in bundle.info.verdict)
    rates = (found.errors, found.errors_filed or {}, found.errors_seen or {})
    levels = [
        (one.significance, *(_share(errors.get(one.significance)) for errors in rates), _size(one.sizes))
        for one in found.result.standard
    ]
    shown = sorted(found.result.labels, key=lambda label: (-label.support, label.name))[:_MOST_LABELS]
    labels = [(one.name, one.support, _share(one.precision), _share(one.recall), _share(one.f1)) for one in shown]
    best = found.result.guesses or found.result.forced
    return (
        f"## Measured on {count(found.n_texts)} test texts\n\n{lines}\n\n"
        f"Best guess exactly right: {best.accuracy:.1%}; micro-F1 {best.f1_micro:.3f}, macro-F1 {best.f1_macro:.3f}. "
        f"{', '.join(f'{name} {value:.3f}' for name, value in found.result.ranks.items())}.\n\n"
        f"{_table(('significance', 'errors', 'of filed texts', 'of texts people see', 'mean answers per set'), levels)}"
        f"\n\n{_table(('tag', 'test texts', 'precision', 'recall', 'F1'), labels)}\n\n"
    )


def _size(sizes: Any) -> str:
    return bounds(sizes.mean_lower, sizes.mean)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _table(headings: tuple[str, ...], rows: Any) -> str:
    """Write a Markdown table; line breaks and bars in cells do not break it."""
    return markdown_table(headings, ([_plain(cell) for cell in row] for row in rows), n_names=len(headings))


def _plain(value: Any) -> str:
    """Write a value on one line, with Markdown's own marks escaped."""
    text = " ".join(str(value).split())
    for mark in ("\\", "|", "<", "`"):
        text = text.replace(mark, f"\\{mark}")
    return text
