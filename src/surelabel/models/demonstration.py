"""The corpus of the demonstration: Reuters where it can be had soon, else the one that is made up from a seed."""

from __future__ import annotations

import logging
import threading

from surelabel import corpora
from surelabel.corpora import Corpus
from surelabel.exceptions import CorpusError, MissingDependencyError

_log = logging.getLogger(__name__)


def demonstration_corpus(*, seed: int = 0, download: bool = True, seconds: float = 60.0) -> tuple[Corpus, str | None]:
    """Return a corpus to show the journey with, and why it is not Reuters, where it is not.

    Parameters
    ----------
    seed : int
        Of the parts.
    download : bool
        Whether Reuters may be fetched.
    seconds : float
        How long that may take: a machine without a web must not wait for it.
    """
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
