"""Watch whether texts are like those that a bundle was calibrated on, and let its level follow the errors seen."""

from __future__ import annotations

import dataclasses
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from surelabel.corpora import Corpus, Part
from surelabel.corpora.tabular import Event
from surelabel.exceptions import CorpusError, InvalidInputError
from surelabel.guarantees.online import OnlineConformal
from surelabel.guarantees.outcomes import OutcomeError, Outcomes
from surelabel.guarantees.streams import Method
from surelabel.guarantees.watch import ExchangeabilityWatch, WatchState
from surelabel.models.bundle import Bundle
from surelabel.models.held_out import bundle_probabilities, held_out_part

_log = logging.getLogger(__name__)
# Rows that are classified at once; the state is saved after each lot.
_AT_ONCE = 256


def watch_bundle(
    bundle: Bundle, corpus: Corpus, *, part: str | None = None, alpha: Any = 0.01, state: Path | None = None
) -> WatchState:
    """Watch the true label-sets of texts in the order in which they stand."""
    known = bundle_probabilities(bundle, held_out_part(bundle, corpus, "test", part))
    watch = _resumed(bundle, state)
    if watch is None:
        watch = ExchangeabilityWatch.from_predictor(bundle.predictor, alpha=alpha)
    seen = watch.update(known.probabilities, known.labels)
    if state is not None:
        watch.save(state)
    return seen


def watch_unlabelled(
    bundle: Bundle, texts: Iterable[list[str]], *, alpha: Any = 0.01, state: Path | None = None
) -> WatchState:
    """Watch the best guesses of texts, which need no labels, in the order in which they come.

    They are compared with those of the calibration texts; in a bundle of an older version only with each other. Texts
    that the bundle was trained or calibrated with are left out: they are not new.
    """
    watch = _resumed(bundle, state)
    if watch is None:
        known = () if bundle.forced_totals is None else bundle.forced_totals
        watch = ExchangeabilityWatch(known, alpha=alpha, predictor=bundle.predictor, watched="predictions")
    paths, n_left_out, n_seen = [np.empty(0)], 0, 0
    for some in texts:
        new = _new_texts(bundle, some)
        n_left_out += len(some) - len(new)
        n_seen += len(some)
        if new:
            paths.append(watch.update_unlabelled(bundle.predict_proba(new)).path)
            if state is not None:
                watch.save(state)
    if n_seen == 0:
        raise CorpusError("There must be at least one text to watch. Got none.")
    if n_left_out:
        _log.warning("%d texts were used to train or calibrate the model; they are left out.", n_left_out)
    return dataclasses.replace(watch.state, path=np.concatenate(paths))


def _new_texts(bundle: Bundle, texts: list[str]) -> list[str]:
    """Return the texts that the bundle has not seen."""
    if bundle.seen is None:
        return texts
    is_seen = bundle.seen.in_training(texts) | bundle.seen.in_calibration(texts)
    return [text for text, old in zip(texts, is_seen.tolist(), strict=True) if not old]


def _resumed(bundle: Bundle, state: Path | None) -> ExchangeabilityWatch | None:
    """Return the watch in a file, None if there is none."""
    if state is None or not state.is_file():
        return None
    return ExchangeabilityWatch.load(state, predictor=bundle.predictor)


@dataclasses.dataclass(frozen=True)
class Answered:
    """A text of a stream: the level and size of its set, and whether the truth was missed, None if it is not known."""

    place: str
    id: str | None
    level: float
    size_bounds: tuple[int, int]
    missed: bool | None


@dataclasses.dataclass(frozen=True, eq=False)
class StreamSummary:
    """What a stream came to."""

    outcomes: Outcomes
    n_texts: int
    n_outcomes: int
    n_known: int


def events_of(part: Part, group: str | None = None) -> Iterator[Event]:
    """Yield the texts of a part of a corpus as a stream whose labels are known at once; `group` is a column."""
    groups = [None] * len(part.ids) if group is None else part.column(group)
    for identity, text, labels, of in zip(part.ids, part.texts, part.label_sets, groups, strict=True):
        yield Event(f"Text {identity!r}", identity, text, labels, of)


def adapt_bundle(
    bundle: Bundle,
    events: Iterable[Event],
    *,
    method: Method = "aci",
    significance: Any = "0.05",
    alpha: Any = 0.01,
    state: Path | None = None,
    told: Callable[[Answered], None] | None = None,
) -> StreamSummary:
    """Answer to a stream of texts at a level that follows the errors seen, and watch it.

    Rows whose id was taken before are left out, so a stream that restarts continues where it was. The state is saved,
    whole or not at all, after some hundred rows.
    """
    outcomes = _outcomes(bundle, method, significance, alpha, state)
    counts = {"texts": 0, "outcomes": 0, "known": 0}
    for some in _batched(events, _AT_ONCE):
        texts = [event.text for event in some if event.text is not None]
        rows = iter(np.asarray(bundle.predict_proba(texts)) if texts else ())
        for event in some:
            row = None if event.text is None else next(rows)
            _take(outcomes, event, row, counts, told)
        if state is not None:
            outcomes.save(state)
    if not any(counts.values()):
        raise CorpusError("There must be at least one row in the stream. Got none.")
    return StreamSummary(outcomes, counts["texts"], counts["outcomes"], counts["known"])


def _batched(events: Iterable[Event], size: int) -> Iterator[tuple[Event, ...]]:
    """Yield some events at a time."""
    left = iter(events)
    while some := tuple(itertools.islice(left, size)):
        yield some


def _outcomes(bundle: Bundle, method: Method, significance: Any, alpha: Any, state: Path | None) -> Outcomes:
    """Return the state in a file, or a new one."""
    online = OnlineConformal(bundle.predictor, significance, method)
    if state is None or not state.is_file():
        return Outcomes(bundle.predictor, online, alpha=alpha)
    outcomes = Outcomes.load(state)
    outcomes.check_predictor(bundle.predictor, state)
    kept = outcomes.online
    if kept is None or (kept.method, kept.significance) != (online.method, online.significance):
        was = "a fixed level" if kept is None else f"{kept.method} at {kept.significance:g}"
        raise InvalidInputError(f"The state in {state} is of {was}. Use the same, or start with a new state file.")
    return outcomes


def _take(
    outcomes: Outcomes, event: Event, row: Any, counts: dict[str, int], told: Callable[[Answered], None] | None
) -> None:
    """Take one row of a stream."""
    online = outcomes.online
    assert online is not None
    name, missed, answered = event.id, None, None
    is_old = name is not None and (outcomes.is_pending(name) or outcomes.outcome_of(name) is not None)
    if row is not None and not is_old:
        level = online.level_
        groups = None if event.group is None else [event.group]
        try:
            sets = online.predict_set(row[None, :], None if name is None else [name], groups)
        except InvalidInputError as error:
            raise CorpusError(f"{event.place}: {error}") from error
        (name,) = online.last_ids_
        counts["texts"] += 1
        answered = Answered(event.place, event.id, level, sets[0].size_bounds, None)
    if event.labels is not None:
        assert name is not None
        try:
            missed = bool(outcomes.settle([name], [sorted(event.labels)])[0])
            counts["outcomes"] += 1
        except OutcomeError as error:
            if error.reason != "settled":
                raise OutcomeError(f"{event.place}: {error}", error.identity, error.reason) from None
            counts["known"] += 1
        except InvalidInputError as error:
            raise CorpusError(f"{event.place}: {error}") from error
    elif answered is None:
        counts["known"] += 1
    if answered is not None and told is not None:
        told(dataclasses.replace(answered, missed=missed))
