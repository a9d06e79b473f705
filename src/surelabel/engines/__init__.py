"""Searches: which candidates are within a threshold. Three of them, one answer.

- `exact`: output-sensitive walk; sizes without listing, certified bounds past a work limit (the default);
- `hamming-ball`: the paper's Algorithm 2, with its t and its count of label-sets considered;
- `powerset`: the paper's Algorithm 1, every candidate scored.
"""

from surelabel.engines.cut import Cut, Engine, Search, SearchReport
from surelabel.engines.exact import ExactSearch, engine_of
from surelabel.engines.paper import PROHIBITIVE, HammingBallSearch, PowersetSearch
from surelabel.engines.sizes import Bounds, SizeArray, SizeBounds, as_sizes

__all__ = [
    "PROHIBITIVE",
    "SEARCHES",
    "Bounds",
    "Cut",
    "Engine",
    "Search",
    "SearchReport",
    "SizeArray",
    "SizeBounds",
    "as_sizes",
    "engine_of",
]

SEARCHES: dict[str, Search] = {
    "exact": ExactSearch(),
    "hamming-ball": HammingBallSearch(),
    "powerset": PowersetSearch(),
}
