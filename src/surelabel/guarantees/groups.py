"""Promises for parts of the texts: by a group that is given, or by the number of labels.

Errors are bounded in every category (Vovk et al., *Algorithmic Learning in a Random World*, 4.6); `calibration` counts
by category.
"""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from surelabel._core.validation import invalid


@dataclass(frozen=True)
class ByGroup:
    """Errors are bounded in every group of texts: source, language, customer. Give `groups` with the texts.

    Examples
    --------
    >>> from surelabel import ConformalLabelSets
    >>> probabilities, labels = [[0.9, 0.2], [0.6, 0.3]] * 9, [[1, 0], [0, 1]] * 9
    >>> predictor = ConformalLabelSets(taxonomy=ByGroup())
    >>> predictor = predictor.calibrate(probabilities, labels, groups=["wire", "mail"] * 9)
    >>> predictor.predict_set([[0.9, 0.2]] * 2, significance=0.1, groups=["wire", "mail"]).sizes()
    array([1, 2])
    """

    by_group: ClassVar[bool] = True
    edges: ClassVar[tuple[int, ...]] = ()


@dataclass(frozen=True)
class ByCardinality:
    """Errors are bounded for texts with one, two, three or more labels.

    Parameters
    ----------
    edges : sequence of int
        The numbers of labels at which classes begin: (1, 2, 3) makes classes of one, two, and three or more labels (and
        of none, if the empty label-set is a candidate).

    Examples
    --------
    >>> from surelabel import ConformalLabelSets
    >>> probabilities, labels = [[0.9, 0.2], [0.9, 0.4]] * 9, [[1, 0], [1, 1]] * 9
    >>> predictor = ConformalLabelSets(taxonomy=ByCardinality((1, 2))).calibrate(probabilities, labels)
    >>> predictor.predict_p([[0.9, 0.4]] * 2, [[1, 0], [1, 1]])
    array([0.1, 1. ])
    """

    edges: Sequence[int] = (1, 2, 3)
    by_group: ClassVar[bool] = False

    def __post_init__(self) -> None:
        edges: Any = tuple(self.edges) if isinstance(self.edges, (tuple, list)) else ()
        whole = all(isinstance(edge, numbers.Integral) and not isinstance(edge, bool) for edge in edges)
        if not edges or not whole or any(a >= b for a, b in itertools.pairwise((0, *edges))):
            raise invalid("edges", "ByCardinality", "rising whole numbers from 1, as in (1, 2, 3)", repr(self.edges))
        object.__setattr__(self, "edges", tuple(map(int, edges)))
