"""A review behind the service: the store, the model that fills it, and what the blind check says about that model."""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surelabel import review
from surelabel.answers import exact_level
from surelabel.exceptions import InvalidInputError, ReviewConflictError
from surelabel.predicting.models import bundle_folder, model_checksum
from surelabel.review import BlindFigures, IncomingSettings, ReviewStore, ReviewText
from surelabel.review.exporting import FORMATS, exported_bytes
from surelabel.review.incoming import groups_of, reroute
from surelabel.review.learning import texts_needed
from surelabel.review.queues import CHECK

if TYPE_CHECKING:
    from surelabel.models import Bundle

__all__ = ["Reviewing"]

_log = logging.getLogger(__name__)
MOST_LEASED = 50
_WORDS = 12


class Reviewing:
    """What the review pages and their programs ask for; every method may be called from any thread.

    A new calibration is written beside the folder of the bundle, or kept in memory if there is none.

    Examples
    --------
    >>> import tempfile
    >>> from surelabel import corpora
    >>> from surelabel.review import Incoming, ReviewStore
    >>> from surelabel.models import TrainingSettings, train_bundle
    >>> bundle = train_bundle(corpora.load("synthetic", n_texts=300, n_labels=5), TrainingSettings(compared={}))
    >>> with ReviewStore(f"{tempfile.mkdtemp()}/reviews.sqlite") as store:
    ...     reviewing = Reviewing(store, bundle)
    ...     reviewing.take_in([Incoming("1", "Crude, a barrel, petroleum.", {})])
    ...     sum(counts["waiting"] for counts in reviewing.state()["queues"].values())
    1
    1
    """

    def __init__(
        self,
        store: ReviewStore,
        bundle: Bundle,
        folder: str | Path | None = None,
        settings: IncomingSettings | None = None,
    ) -> None:
        self.store = store
        self.bundle = bundle
        self.folder = None if folder is None else Path(folder)
        self.settings = settings or IncomingSettings()
        self.model = fingerprint_of(bundle, self.folder)
        self.on_switch: Callable[[Bundle], None] = lambda _: None
        self._labels = frozenset(bundle.label_names)
        self._p_values: dict[tuple[int, str], float] = {}
        self._update: tuple[Bundle, dict[str, Any]] | None = None
        self._changing = threading.Lock()
        if self.folder is not None and self.store.note("model") is None:
            self.store.set_note("model", str(self.folder))

    def take_in(self, source: Any) -> int:
        """Bring texts into their queues; answer again those that another model answered and nobody has decided.

        Returns how many texts were new.
        """
        n_new = review.take_in(self.store, self.bundle, source, self.model, self.settings)
        n_rerouted = reroute(self.store, self.bundle, self.model, self.settings.significance)
        if n_rerouted:
            _log.info("%d waiting texts had been answered by another model; they are answered again.", n_rerouted)
        return n_new

    def state(self) -> dict[str, Any]:
        """Return the counts of the queues, and the figures of the blind check."""
        _, update = self._update or (None, None)
        return {
            "queues": {queue: dataclasses.asdict(counts) for queue, counts in self.store.counts().items()},
            "significance": self.settings.significance,
            "check_share": self.settings.check_share,
            "lease_seconds": self.store.lease_seconds,
            "model": self.model,
            "blind": {**dataclasses.asdict(figures := self._blind()), "error": figures.error},
            "calibration": {"needed": texts_needed(self.settings.significance), "update": update},
        }

    def lease(self, reviewer: str, queue: str, n: int) -> dict[str, Any]:
        """Return texts for a reviewer, without what must not be seen; texts of other queues are given back."""
        self.store.release(reviewer, keep=queue)
        return {"texts": [shown(text) for text in self.store.lease(reviewer, queue, min(n, MOST_LEASED))]}

    def renew(self, reviewer: str) -> dict[str, Any]:
        """Keep a reviewer's texts for longer; return how many there are."""
        return {"leased": self.store.renew(reviewer)}

    def decide(
        self, key: str, number: int, reviewer: str, action: str, labels: list[str] | None, seconds: float | None
    ) -> dict[str, Any]:
        """Save a decision; labels must be the model's."""
        unknown = sorted(set(labels or ()) - self._labels)
        if unknown:
            raise InvalidInputError(f"The labels must be among the model's. Got {unknown[0]!r:.80} instead.")
        decision = self.store.decide(key, number, reviewer, action, labels, seconds=seconds)
        chosen = None if decision.chosen is None else list(decision.chosen)
        return {"id": decision.id, "number": number, "action": decision.action, "labels": chosen}

    def undo(self, key: str, reviewer: str) -> dict[str, Any]:
        """Take back the last decision of a reviewer."""
        text = self.store.undo(key, reviewer)
        return {"text": None if text is None else shown(text)}

    def words(self, number: int, label: str) -> dict[str, Any]:
        """Return the words of a text that speak for a label, unless the text is to be read without such help."""
        text = self.store.text(number)
        if text.queue == CHECK:
            raise ReviewConflictError("Texts of the blind check are shown without help from the model.")
        if label not in self._labels:
            raise InvalidInputError(f"The label must be one of the model's. Got {label!r:.80} instead.")
        explanation = self.bundle.explain(text.text, label)
        strongest = explanation.speaking_for(_WORDS)
        words = sorted(strongest, key=lambda word: word.start)
        return {
            "label": label,
            "is_exact": explanation.is_exact,
            "words": [{"start": word.start, "end": word.end, "weight": word.weight} for word in words],
        }

    def summary(self) -> dict[str, Any]:
        """Return the figures of the work so far."""
        return review.closing_figures(self.store.decisions()).to_dict()

    def export(self, kind: str, separator: str) -> bytes:
        """Return an export as the content of a file."""
        if kind not in FORMATS:
            raise InvalidInputError(f"The format of an export must be one of {', '.join(FORMATS)}. Got {kind!r:.20}.")
        return exported_bytes(self.store, kind, separator=separator)

    def update_calibration(self) -> dict[str, Any]:
        """Make a new model from the blind check, and compare it with the one in use, which stays in use."""
        with self._changing:
            update = review.update_calibration(self.store, self.bundle, significance=self.settings.significance)
            folder = None
            if self.folder is not None:
                folder = _free_folder(self.folder, update.n_texts)
                update.bundle.save(folder)
            values = {
                "model": fingerprint_of(update.bundle, folder),
                "folder": None if folder is None else str(folder),
                "n_texts": update.n_texts,
                "significance": update.significance,
                "before": dataclasses.asdict(update.before),
                "after": dataclasses.asdict(update.after),
            }
            self._update = update.bundle, values
            return values

    def switch(self, model: str) -> dict[str, Any]:
        """Use the new model from now on, if its fingerprint is the one that was seen."""
        with self._changing:
            if self._update is None or self._update[1]["model"] != model:
                raise ReviewConflictError("There is no such new model. Update the calibration first.")
            bundle, values = self._update
            self.on_switch(bundle)
            self.bundle, self.model, self._update = bundle, model, None
            if values["folder"] is not None:
                self.folder = Path(values["folder"])
                self.store.set_note("model", values["folder"])
            n_rerouted = reroute(self.store, self.bundle, self.model, self.settings.significance)
            return {"model": self.model, "rerouted": n_rerouted}

    def _blind(self) -> BlindFigures:
        """Return the figures of the blind check for the model in use."""
        model, bundle = self.model, self.bundle
        decisions = self.store.decisions(blind=True)
        new = [decision for decision in decisions if (decision.id, model) not in self._p_values]
        if new:
            rows = [self.store.text(decision.number) for decision in new]
            chosen = [decision.chosen or () for decision in new]
            level = exact_level(self.settings.significance)
            engine = bundle.predictor.bind(
                bundle.predict_proba([row.text for row in rows]), groups=groups_of(bundle, rows)
            )
            p_values = bundle.predictor.predict_p(engine, chosen)
            # Labels that are not a candidate are missed, however they score.
            is_held = bundle.predictor.predict_set(engine, significance=level).contains(chosen)
            for decision, p_value, held in zip(new, p_values.tolist(), is_held.tolist(), strict=True):
                self._p_values[decision.id, model] = p_value if held else 0.0
        return review.blind_figures(decisions, [self._p_values[decision.id, model] for decision in decisions])


def shown(text: ReviewText) -> dict[str, Any]:
    """Return what a reviewer sees of a text: of the blind check nothing that the model says."""
    values: dict[str, Any] = {"number": text.number, "id": text.id, "text": text.text, "queue": text.queue}
    if text.queue != CHECK:
        values["offer"] = text.offer.to_dict()
    return values


def fingerprint_of(bundle: Bundle, folder: Path | None) -> str:
    """Return the fingerprint of a model by its files; one that is only in memory is written to a temporary folder."""
    if folder is None and not hasattr(bundle.classifier, "save"):
        return "in memory"
    with bundle_folder(bundle if folder is None else folder) as place:
        return model_checksum(place)


def _free_folder(folder: Path, n_texts: int) -> Path:
    """Return a folder beside a model's that is not there yet."""
    target = folder.resolve()
    names = (f"{target.name}-checked-{n_texts}{suffix}" for suffix in ("", *(f"-{turn}" for turn in range(2, 1000))))
    return next(target.with_name(name) for name in names if not target.with_name(name).exists())
