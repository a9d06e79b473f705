"""Engines: which candidates of some texts are within a threshold. Three searches, one answer.

- `exact`: output-sensitive; sizes without listing, certified bounds past a work limit (the default);
- `hamming-ball`: the paper's Algorithm 2, with its t and its count of label-sets considered;
- `powerset`: the paper's Algorithm 1, every candidate scored.
"""

from __future__ import annotations

from typing import Any

from surelabel.calibration import Calibration
from surelabel.engines.base import WORK_LIMIT, Engine
from surelabel.engines.dense import DenseEngine
from surelabel.engines.hubs import HubsEngine
from surelabel.engines.interacting import InteractingEngine
from surelabel.engines.mixture import MixtureEngine
from surelabel.engines.paper import HammingBallEngine, PowersetEngine
from surelabel.engines.sparse import SparseEngine
from surelabel.exceptions import InvalidInputError
from surelabel.labels.sparse import is_sparse
from surelabel.measures.mixture import Mixture

SEARCHES = ("exact", "hamming-ball", "powerset")


def engine_for(
    calibration: Calibration,
    probabilities: Any,
    search: str = "exact",
    work_limit: int = WORK_LIMIT,
    n_jobs: int | None = None,
    *,
    who: str = "engine_for",
) -> Engine:
    """Check texts' probabilities and price their labels, once; return the engine that answers for them.

    An engine of the same calibration is returned as it is, so that several questions about the same texts share one.

    Parameters
    ----------
    calibration : Calibration
    probabilities : (n, d) array-like, sparse, or Engine
    search : one of SEARCHES
    work_limit : int
        Steps per text that counting may take before it answers with bounds.
    n_jobs : int, optional
        Threads.
    who : str
        The function that errors name.
    """
    if isinstance(probabilities, Engine):
        if probabilities.calibration is not calibration:
            raise InvalidInputError(f"The engine that {who} got is that of another calibration; give probabilities.")
        return probabilities
    checked = calibration.as_probabilities(probabilities, who=who)
    if is_sparse(checked) and search != "exact":
        raise InvalidInputError(
            f"The 'search' parameter must be 'exact' for sparse probabilities. Got {search!r} instead; give dense "
            "probabilities for the paper's searches."
        )
    engine = _kind_of(calibration, checked)(calibration, checked, work_limit, n_jobs)
    if search == "powerset":
        return PowersetEngine(engine)
    return HammingBallEngine(engine) if search == "hamming-ball" else engine


def _kind_of(calibration: Calibration, probabilities: Any) -> type[Any]:
    """Return the engine for a measure and texts."""
    if isinstance(calibration.measure, Mixture):
        return MixtureEngine if calibration.measure.hubs is None else HubsEngine
    if is_sparse(probabilities):
        return SparseEngine
    return DenseEngine if calibration.is_separable else InteractingEngine
