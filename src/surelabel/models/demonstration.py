"""The demonstration: its corpus, Reuters if it can be had soon, else a made-up one; and what an adapting level does."""

from __future__ import annotations

import logging
import threading
from typing import Any, NamedTuple

import numpy as np

from surelabel import corpora
from surelabel.corpora import Corpus
from surelabel.exceptions import CorpusError, MissingDependencyError
from surelabel.guarantees.online import OnlineConformal
from surelabel.models.bundle import Bundle

_log = logging.getLogger(__name__)
# Texts that arrive before the labels of the first of them do.
_AT_ONCE = 5


def demonstration_corpus(*, seed: int = 0, download: bool = True, seconds: float = 60.0) -> tuple[Corpus, str | None]:
    """Return a corpus to show the journey with, and, if it is not Reuters, why."""
    found: list[Corpus] = []
    reasons: list[str] = []

    def load() -> None:
        try:
            found.append(corpora.load("reuters", seed=seed, download=download, progress=False))
        except (CorpusError, MissingDependencyError, OSError) as error:
            _log.debug("%s", error)
            reasons.append("it is not on this machine" + (" and could not be fetched" if download else ""))

    # A name server that does not answer cannot be given a time limit, a thread that waits for it can.
    thread = threading.Thread(target=load, daemon=True)
    thread.start()
    thread.join(seconds)
    if found:
        return found[0], None
    reason = reasons[0] if reasons else f"it could not be fetched within {seconds:.0f} seconds"
    return corpora.load("synthetic", seed=seed), reason


class Followed(NamedTuple):
    """Shares of texts whose true label-set was missed, and mean sizes, with a fixed and with an adapting level."""

    fixed: float
    adapting: float
    fixed_size: float
    adapting_size: float


def followed(bundle: Bundle, probabilities: Any, labels: Any, significance: str) -> Followed:
    """Answer to texts in their order, with a fixed level and one that adapts to the labels seen so far."""
    sets = bundle.predictor.predict_set(probabilities, significance=significance)
    plain, sizes = ~np.asarray(sets.contains(labels)), sets.size_bounds()[0]
    online = OnlineConformal(bundle.predictor, significance, "nexcp")
    missed, followed_sizes = [], []
    for start in range(0, len(probabilities), _AT_ONCE):
        rows = slice(start, start + _AT_ONCE)
        adapting = online.predict_set(probabilities[rows])
        followed_sizes.extend(adapting.size_bounds()[0].tolist())
        missed.extend(np.asarray(online.update(labels[rows])).tolist())
    means = (float(np.mean(np.asarray(values, dtype=np.float64))) for values in (plain, missed, sizes, followed_sizes))
    return Followed(*means)
