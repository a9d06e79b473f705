"""Reviews in tools that teams already use: Label Studio and Argilla."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from surelabel.exceptions import InvalidInputError, ReviewConflictError
from surelabel.models import Bundle
from surelabel.predicting.label_studio import LabelConfig, predictions_of
from surelabel.review.queues import CHECK, CHOOSE, EDIT, NONE_FITS, READ, ReviewText
from surelabel.review.store import ReviewStore

_BATCH = 256
_WAITING = (CHOOSE, READ, CHECK)


def _waiting(store: ReviewStore, queues: Sequence[str]) -> Iterator[ReviewText]:
    """Yield the texts of some queues that nobody has decided."""
    return (text for text in store.texts() if text.queue in queues and text.decision is None)


def label_studio_tasks(
    store: ReviewStore, *, queues: Sequence[str] = _WAITING, config: LabelConfig | None = None
) -> list[dict[str, Any]]:
    """Return the texts that wait as tasks for Label Studio, with one prediction per plausible label-set.

    Texts of the blind check have no prediction. `data` has what `from_label_studio` finds the text by.

    Examples
    --------
    >>> import tempfile
    >>> from surelabel.review import NewText, Offer, ReviewStore
    >>> store = ReviewStore(f"{tempfile.mkdtemp()}/reviews.sqlite")
    >>> options = ((("oil",), 0.6), (("gas", "oil"), 0.2))
    >>> store.add([NewText("7", "Crude rose.", Offer("choose", "", ("oil",), options), model="0123")])
    1
    >>> [task] = label_studio_tasks(store)
    >>> task["data"]["text"], [prediction["score"] for prediction in task["predictions"]]
    ('Crude rose.', [0.6, 0.2])
    """
    config = config or LabelConfig()
    return [
        {
            "data": {
                config.field: text.text,
                "surelabel_id": text.id,
                "surelabel_number": text.number,
                "surelabel_hash": text.hash,
                "surelabel_queue": text.queue,
            },
            # A prediction would not be blind.
            "predictions": predictions_of(
                () if text.queue == CHECK else text.offer.options, f"surelabel {text.model[:12]}", config
            ),
        }
        for text in _waiting(store, queues)
    ]


@dataclasses.dataclass(frozen=True)
class Imported:
    """What became of an export of Label Studio: saved decisions, those saved before, and what could not be used."""

    n_saved: int
    n_known: int
    problems: tuple[str, ...]


def from_label_studio(store: ReviewStore, tasks: Iterable[Mapping[str, Any]]) -> Imported:
    """Save the annotations of a JSON export of Label Studio as decisions; read again, an export changes nothing.

    Parameters
    ----------
    store : ReviewStore
    tasks : iterable of mappings
        What "Export, JSON" gives, for tasks of `label_studio_tasks`. Cancelled annotations do not count, and of several
        annotations of a task the first does.
    """
    n_saved = n_known = 0
    problems = []
    for place, task in enumerate(tasks, 1):
        data = task.get("data")
        annotations = [made for made in task.get("annotations", ()) if not made.get("was_cancelled")]
        if not isinstance(data, Mapping) or "surelabel_number" not in data:
            raise InvalidInputError(
                f"Task {place} must come from label_studio_tasks, with surelabel_number in its data. "
                f"Got {sorted(data or ())[:8]} instead."
            )
        if not annotations:
            continue
        annotation = annotations[0]
        text = store.text(int(data["surelabel_number"]))
        if text.hash != data.get("surelabel_hash"):
            problems.append(f"Task {place}: text {text.id!r:.60} is another one in this store.")
            continue
        key = f"label-studio-{annotation.get('unique_id') or annotation.get('id')}"
        if text.decision is not None and text.decision.key == key:
            n_known += 1
            continue
        labels, reviewer = _choices(annotation), f"label-studio-{_reviewer(annotation)}"
        action, seconds = EDIT if labels else NONE_FITS, annotation.get("lead_time")
        try:
            store.decide(key, text.number, reviewer, action, labels or None, seconds=seconds)
            n_saved += 1
        except ReviewConflictError as error:
            problems.append(f"Task {place}: {error}")
    return Imported(n_saved, n_known, tuple(problems))


def _choices(annotation: Mapping[str, Any]) -> list[str]:
    """Return the labels of an annotation."""
    regions = [region for region in annotation.get("result", ()) if region.get("type") == "choices"]
    return sorted({label for region in regions for label in region.get("value", {}).get("choices", ())})


def _reviewer(annotation: Mapping[str, Any]) -> str:
    """Return who made an annotation: an address if the export has it, else a number."""
    who = annotation.get("completed_by", "unknown")
    return str(who.get("email") or who.get("id") if isinstance(who, Mapping) else who)[:100]


def argilla_records(
    store: ReviewStore, bundle: Bundle, *, queues: Sequence[str] = _WAITING, question: str = "labels"
) -> Iterator[dict[str, Any]]:
    """Yield the texts that wait as records for Argilla: suggestions with a score per label, the verdict as metadata.

    So is the number of plausible label-sets, as `size`. The fields are those of `argilla.Record`; a suggestion's score
    is the probability of each label. Texts of the blind check have neither suggestion nor metadata of the model.

    Parameters
    ----------
    store : ReviewStore
    bundle : Bundle
        Gives the probabilities.
    queues, question : sequence of str, str
        Whose texts; and the name of the multi-label question.
    """
    numbers = {name: number for number, name in enumerate(bundle.label_names)}
    texts = _waiting(store, queues)
    while batch := list(itertools.islice(texts, _BATCH)):
        probabilities = bundle.predict_proba([text.text for text in batch])
        dense = probabilities if isinstance(probabilities, np.ndarray) else probabilities.toarray()
        for text, row in zip(batch, dense, strict=True):
            metadata = {"surelabel_id": text.id, "queue": text.queue}
            suggestions = []
            if text.queue != CHECK:
                metadata |= {"verdict": text.offer.verdict, "size": text.offer.size}
                labels = list(text.offer.labels)
                scores = [round(float(row[numbers[label]]), 6) for label in labels]
                suggestion = {"question_name": question, "value": labels, "score": scores, "agent": "surelabel"}
                suggestions = [suggestion] if labels else []
            fields = {"text": text.text}
            yield {"id": f"{text.number}", "fields": fields, "metadata": metadata, "suggestions": suggestions}
