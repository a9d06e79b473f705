"""All comparisons of methods in one table, and their mean sizes at one significance."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from surelabel._core.levels import STANDARD_LEVELS
from surelabel.evaluation.compare import Comparison, ComparisonRow
from surelabel.experiments.compare import load_comparison, mean_size_words, spread_words
from surelabel.experiments.tables import Table, three
from surelabel.rivals import NOTHING_OF_LABEL_SETS

__all__ = ["comparisons_table", "load_comparisons", "sizes_table"]

# A table names the error beside the size from this many times the significance on.
_TOO_MANY = 1.2


def _missed(row: ComparisonRow) -> str:
    """Say how many label-sets a method misses if these are too many: small sets are then no merit."""
    error = row.error[0]
    return f" (misses {error:.1%})" if error > _TOO_MANY * float(row.significance) else ""


def load_comparisons(folder: Path) -> list[Comparison]:
    """Read all comparisons of a folder."""
    return [load_comparison(path) for path in sorted(folder.glob("*.json"))]


def sizes_table(compared: Sequence[Comparison], level: str = "0.05") -> Table:
    """Tabulate mean N at one level, one row per comparison, for all methods with a promise about whole label-sets."""
    # In the order of the comparison that has most methods.
    ordered = sorted(compared, key=lambda comparison: -len(comparison.guarantees))
    guarantees = {name: text for comparison in ordered for name, text in comparison.guarantees.items()}
    methods = [method for method, guarantee in guarantees.items() if NOTHING_OF_LABEL_SETS not in guarantee]
    rows = tuple(
        (
            *each.source.split(", ", 1),
            *(
                mean_size_words(each.row(method, level)) + _missed(each.row(method, level))
                if method in each.guarantees
                else "-"
                for method in methods
            ),
        )
        for each in compared
        if level in each.levels
    )
    title = f"Mean N at significance {level}"
    brackets = f"A method that misses more than {_TOO_MANY} times the significance has its misses in brackets."
    note = f"{_splits_note(compared)} {brackets}"
    return Table("comparisons-at-" + level, title, ("corpus", "classifier", *methods), rows, note)


def _splits_note(compared: Sequence[Comparison]) -> str:
    """Say what is compared, over how many splits, and how many texts were counted."""
    sized = [each.n_sized for each in compared if each.n_sized is not None]
    sample = f", of a random sample of {min(sized)} to {max(sized)} test texts of each" if sized else ""
    splits = [comparison.n_splits for comparison in compared] or [0]
    number = f"{min(splits)} to {max(splits)}" if min(splits) < max(splits) else str(splits[0])
    return (
        "All methods of a row use the same probabilities and the same re-splits. Figures are means ± standard "
        f"deviations over {number} splits{sample}."
    )


def comparisons_table(compared: Sequence[Comparison]) -> Table:
    """Tabulate comparisons: errors at 0.05, and mean N at every level that all of them have."""
    levels = [level for level in STANDARD_LEVELS if all(level in each.levels for each in compared)]
    rows = tuple(
        (
            *each.source.split(", ", 1),
            method,
            spread_words(each.row(method, "0.05").error, three),
            *(mean_size_words(each.row(method, level)) for level in levels),
        )
        for each in compared
        if "0.05" in each.levels
        for method in each.guarantees
    )
    note = f"{_splits_note(compared)} `results/comparisons/` has the medians, S, and what each method guarantees."
    header = ("corpus", "classifier", "method", "error at 0.05", *(f"mean N at {level}" for level in levels))
    return Table("comparisons", "Measures and rivals side by side", header, rows, note)
