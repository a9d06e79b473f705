"""A simulated working day of review: 200 Reuters test texts, and a reviewer who knows the true labels.

    surelabel train reuters --no-compare --out models/reuters
    python benchmarks/review_day.py models/reuters --out results/review_day.json

Texts go through the store as in `surelabel review`. The reviewer uses the keys of the page: Enter if the best guess is
right, a digit if the true label-set is offered, else the tags are typed, as many letters as the page needs to put the
tag first. In the blind check all tags are typed. Nobody looks at filed texts. The days follow the order of the test
part, which is that of time; calibration texts are of the time of training.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import tempfile
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surelabel import corpora, load_bundle
from surelabel._core.storage import atomic_file
from surelabel.exceptions import CalibrationWarning, DataWarning
from surelabel.predicting.models import model_checksum
from surelabel.review import Incoming, IncomingSettings, Offer, ReviewStore, take_in

# Keys with a meaning of their own: a tag that begins with one needs "/" first.
_TAKEN = set("jksxuw")


def first_match(typed: str, labels: Sequence[str]) -> str | None:
    """Return the tag that the page puts first for what was typed, as `matches` of review_tags.js does."""

    def rank(label: str) -> int:
        name = label.lower()
        if name == typed:
            return 0
        if name.startswith(typed):
            return 1
        if any(word.startswith(typed) for word in re.split(r"[\s\-_/.]+", name)):
            return 2
        return 3 if typed in name else 4

    ranked = [(rank(label), len(label), label) for label in labels]
    return min((entry for entry in ranked if entry[0] < 4), default=(0, 0, None))[2]


def keys_for_tag(label: str, labels: Sequence[str]) -> int:
    """Keystrokes that add or remove a tag by its name: letters until it comes first, and Enter."""
    name = label.lower()
    letters = next(n for n in range(1, len(name) + 1) if first_match(name[:n], labels) == label)
    return letters + 1 + (name[0] in _TAKEN or not name[0].isalpha())


def keystrokes(offer: Offer | None, truth: frozenset[str], labels: Sequence[str]) -> tuple[str, int]:
    """Return how a reviewer decides, and with how many keys."""
    if not truth:
        return "none", 1
    if offer is not None:
        if set(offer.labels) == truth:
            return "accept", 1
        if any(set(option) == truth for option, _ in offer.options):
            return "pick", 1
    shown = frozenset(() if offer is None else offer.labels)
    return "edit", 1 + sum(keys_for_tag(label, labels) for label in truth ^ shown)


def _store(path: str) -> ReviewStore:
    """Return a new store whose draws for the blind check are the same in each run."""
    with ReviewStore(path) as store:
        store.set_note("salt", "00" * 16)
    return ReviewStore(path)


def day(bundle: Any, model: str, texts: Iterable[Incoming], truth: dict[str, frozenset[str]], check: float) -> Any:
    """Review the texts of a day; return its figures."""
    names = bundle.label_names
    settings = IncomingSettings(significance="0.05", check_share=check)
    keys, actions = [], []
    with tempfile.TemporaryDirectory() as folder, _store(f"{folder}/day.sqlite") as store:
        take_in(store, bundle, texts, model, settings)
        for queue in ("choose", "read", "check"):
            while leased := store.lease("reviewer", queue, 50):
                for text in leased:
                    offer = None if queue == "check" else text.offer
                    action, n_keys = keystrokes(offer, truth[text.id], names)
                    labels = None if action == "none" else sorted(truth[text.id])
                    store.decide(f"key-{text.number}", text.number, "reviewer", action, labels)
                    keys.append(n_keys)
                    actions.append(f"{queue}: {action}")
        reviewed = list(store.texts())
    n_texts = len(reviewed)
    wrong = [set(text.final_labels or ()) != truth[text.id] for text in reviewed]
    filed = [text.queue == "filed" for text in reviewed]
    guessed_wrong = [set(text.offer.labels) != truth[text.id] for text in reviewed]
    typed = [keystrokes(None, truth[text.id], names)[1] for text in reviewed]
    return {
        "n_texts": n_texts,
        "with_review": {
            "decisions": len(keys),
            "keystrokes_per_text": sum(keys) / n_texts,
            "errors_left": sum(wrong),
            "filed": sum(filed),
            "queues": {queue: sum(text.queue == queue for text in reviewed) for queue in ("choose", "read", "check")},
            "actions": {name: actions.count(name) for name in sorted(set(actions))},
        },
        "accept_every_best_guess": {"decisions": 0, "keystrokes_per_text": 0.0, "errors_left": sum(guessed_wrong)},
        "read_everything": {
            "decisions": n_texts,
            "keystrokes_per_text": sum(typed) / n_texts,
            "errors_left": 0,
        },
    }


def over_days(days: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the mean, least and most of each figure over days."""
    return {
        way: {
            name: {
                "mean": round(statistics.fmean(one[way][name] for one in days), 3),
                "least": round(min(one[way][name] for one in days), 3),
                "most": round(max(one[way][name] for one in days), 3),
            }
            for name in ("decisions", "keystrokes_per_text", "errors_left")
        }
        for way in ("with_review", "accept_every_best_guess", "read_everything")
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--corpus", default="reuters")
    parser.add_argument("--texts", type=int, default=200, help="per day")
    parser.add_argument("--check", type=float, default=0.05, help="share of the blind check")
    parser.add_argument("--out", type=Path, default=Path("results/review_day.json"))
    options = parser.parse_args()
    for kind in (CalibrationWarning, DataWarning):
        warnings.simplefilter("ignore", kind)
    bundle = load_bundle(options.model)
    test = corpora.load(options.corpus).part("test")
    truth = {str(name): labels for name, labels in zip(test.ids, test.label_sets, strict=True)}
    rows = [Incoming(str(name), text, {"id": name}) for name, text in zip(test.ids, test.texts, strict=True)]
    model = model_checksum(options.model)
    starts = range(0, len(rows) - options.texts + 1, options.texts)
    days = [day(bundle, model, rows[start : start + options.texts], truth, options.check) for start in starts]
    filed = np.array([one["with_review"]["filed"] for one in days])
    results = {
        "corpus": options.corpus,
        "classifier": bundle.info.kind,
        "measure": bundle.info.measure,
        "significance": "0.05",
        "check_share": options.check,
        "texts_per_day": options.texts,
        "n_days": len(days),
        "first_day": days[0],
        "all_days": {**over_days(days), "filed_mean": round(float(filed.mean()), 2)},
        "errors_left_among_filed": round(
            sum(one["with_review"]["errors_left"] for one in days) / max(1, int(filed.sum())), 4
        ),
    }
    with atomic_file(options.out) as temporary:
        temporary.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
