"""Searches for the label-sets within a threshold: `search_for` picks one of three, with the same answers."""

from __future__ import annotations

from typing import Any

from surelabel._core.threads import BLOCK_ROWS, over_rows
from surelabel.labels.constraints import Rules
from surelabel.labels.shortlists import Shortlists
from surelabel.measures.mixture import Mixture
from surelabel.search.base import WORK_LIMIT, Search, joined
from surelabel.search.constrained import ConstrainedSearch
from surelabel.search.dense import DenseSearch
from surelabel.search.mixture import MixtureSearch
from surelabel.search.paper import HammingBallSearch, PowersetSearch

SEARCHES = {"exact": DenseSearch, "hamming-ball": HammingBallSearch, "powerset": PowersetSearch}

__all__ = ["SEARCHES", "search_for"]


def search_for(
    measure: Any,
    probabilities: Any,
    *,
    units: float | None = None,
    search: str = "exact",
    rules: Rules | None = None,
    work_limit: int = WORK_LIMIT,
    n_jobs: int | None = None,
) -> Search:
    """Return a search over texts; probabilities are a checked (n, d) array or Shortlists.

    `units` is how many units make 1, `measure.units(n_labels)` by default.
    """
    columns, values = None, probabilities
    if isinstance(probabilities, Shortlists):
        columns, values = probabilities.labels, probabilities.probabilities
    per_one = measure.units(values.shape[1]) if units is None else units

    def costed(rows: slice) -> Any:
        excluded = None if columns is None else columns[rows] == probabilities.n_labels
        return measure.in_units(values[rows], per_one, excluded)

    costs = costed(slice(None)) if len(values) <= BLOCK_ROWS else joined(over_rows(costed, len(values), n_jobs))
    if isinstance(measure, Mixture) and measure.weight > 0:
        found: Search = MixtureSearch(costs, measure, per_one, work_limit, n_jobs)
    else:
        found = SEARCHES[search](costs, work_limit, n_jobs)
    return ConstrainedSearch(found, rules, columns) if rules else found
