"""Watch whether the texts that a bundle is given are like those that it was calibrated on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from surelabel.corpora import Corpus
from surelabel.guarantees.watch import ExchangeabilityWatch, WatchState
from surelabel.models.bundle import Bundle
from surelabel.models.evaluating import bundle_probabilities, held_out_part


def watch_bundle(
    bundle: Bundle,
    corpus: Corpus,
    *,
    part: str | None = None,
    alpha: Any = 0.01,
    labelled: bool = True,
    state: Path | None = None,
) -> WatchState:
    """Watch texts in the order in which they stand.

    Parameters
    ----------
    bundle : Bundle
    corpus : Corpus
        See `held_out_part` for which of its texts count.
    part : str, optional
        Part to watch, the test part by default.
    alpha : float
        Bound of the probability of a false alarm; that of the file where a watch goes on.
    labelled : bool
        Whether true label-sets are watched; else forced predictions, which need no labels. Both are compared with
        the calibration texts; forced predictions of a bundle of an older version only with each other.
    state : path, optional
        File of a watch that goes on from there, and is written back; a new one where there is none yet.
    """
    known = bundle_probabilities(bundle, held_out_part(bundle, corpus, "test", part))
    if state is not None and state.is_file():
        watch = ExchangeabilityWatch.load(state, predictor=bundle.predictor)
    elif labelled:
        watch = ExchangeabilityWatch.from_predictor(bundle.predictor, alpha=alpha)
    else:
        known_scores = () if bundle.forced_totals is None else bundle.forced_totals
        watch = ExchangeabilityWatch(known_scores, alpha=alpha, predictor=bundle.predictor, watched="predictions")
    found = (
        watch.update(known.probabilities, known.labels) if labelled else watch.update_unlabelled(known.probabilities)
    )
    if state is not None:
        watch.save(state)
    return found
