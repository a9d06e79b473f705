"""The next generation of a model, learned from a review: audit, then release.

A coin that is thrown before the model looks sends a share of all texts to the blind check. These *audits* are a random
sample of the texts that arrive, labelled by people who did not see an answer: they may calibrate. All other decisions
are about texts that the model selected, by people who follow suggestions: they only train.

1. **Train.** The next generation learns from the old training texts and everything that is decided now, audits
   included. The number of the newest text in the store is noted first: texts up to it may train, only audits after it
   may calibrate. So the classifier and its measure cannot depend on what calibrates them.
2. **Wait.** The audits after that number come in. Meanwhile the old generation serves. How many are needed is fixed
   beforehand (`audits_needed`), so the moment of release does not depend on what they say.
3. **Calibrate.** The first audits fix which texts are filed. Of the following ones, those that are not filed calibrate
   the lists. Given the rule they are exchangeable with the texts that people see, so a list leaves out a true tag with
   probability at most floor(e(n+1))/(n+1), as long as new texts resemble the audits. A skipped audit counts as an
   error: hard texts cannot be skipped away.
4. **Switch.** The folder of the model is replaced in one step, and the old one is kept beside it.

Run again, `learn` continues where it was: after a kill, and whenever more audits are in.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from surelabel._core import progress
from surelabel._core.files import MANIFEST, atomic_file, atomic_folder, check_overwrite
from surelabel._core.validation import as_fraction
from surelabel.corpora import Corpus
from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.models import Bundle, load_bundle, train
from surelabel.models.calibrate import recalibrated
from surelabel.models.seen import hashes_of
from surelabel.review.audits import AUDITS_UP_TO, audited, audits_of, n_skipped_of
from surelabel.review.export import training_texts
from surelabel.review.queues import ReviewText
from surelabel.review.store import ReviewStore

_PLAN, _FROZEN, _NEXT = "generation.json", "frozen", "next"
# Calibration texts that may lie beyond a threshold: fewer make the threshold a matter of chance.
_LEAST_BEYOND = 10
_LEAST_DECIDED = 10


@dataclasses.dataclass(frozen=True)
class Needed:
    """Audits that a generation waits for: `filing` of all texts, then `lists` of texts that it does not file."""

    lists: int
    filing: int


def audits_needed(max_missed: Any = "0.1", max_wrong: Any = "0.05", assurance: Any = "0.95") -> Needed:
    """Return how many audits a generation needs for its levels.

    Lists need 10 / max_missed - 1, so that the threshold is not one extreme text: 99 for 10 %, 199 for 5 %. The promise
    would hold with fewer. Filing needs as many as certify max_wrong if 10 of them are wrong: 336 for 5 % with 95 %
    assurance, 167 for 10 %.
    """
    missed, wrong, sure = (
        as_fraction(value, name, "audits_needed")
        for value, name in ((max_missed, "max_missed"), (max_wrong, "max_wrong"), (assurance, "assurance"))
    )
    filing = math.ceil(_LEAST_BEYOND / wrong)
    while stats.binom.cdf(_LEAST_BEYOND, filing, float(wrong)) > 1 - float(sure):
        filing += 1
    return Needed(math.ceil(_LEAST_BEYOND / Fraction(missed)) - 1, filing)


@dataclasses.dataclass(frozen=True)
class LearningStatus:
    """How far a generation is: "absent", "training", "waiting" for audits, or "ready" to be switched to.

    `filing` and `lists` are audits that count already, of which `n_skipped` were skipped and count as errors; `lists`
    begins when the filing rule is fixed. `n_decided` texts trained it, up to the number `up_to`.
    """

    state: str
    needed: Needed
    filing: int = 0
    lists: int = 0
    n_skipped: int = 0
    up_to: int = 0
    n_decided: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return dataclasses.asdict(self)


def learn(
    folder: str | os.PathLike[str],
    store: ReviewStore,
    out: str | os.PathLike[str],
    corpus: Corpus | None = None,
    *,
    retrain: bool = True,
    report: Callable[[str, int, int | None], None] | None = None,
    **settings: Any,
) -> LearningStatus:
    """Train the next generation of a model, or continue: calibrate it as soon as enough audits are in.

    Parameters
    ----------
    folder : path
        Of the model that serves.
    store : ReviewStore
    out : path
        A folder for the generation, beside that of the model. The finished model is in its subfolder "next".
    corpus : Corpus
        The texts that the first model was trained on, with its held-out texts. Needed once, to train.
    retrain : bool
        False keeps the classifier and only calibrates it on the audits from now on, as after an alarm of the watch.
    report : callable, optional
        Called with a step's name, the amount done, and the total amount or None.
    **settings
        Settings of training that differ from those of the model, see `TrainingSettings`.
    """
    place = Path(out)
    with progress.reporting_to(report):
        if not (place / _PLAN).is_file():
            _begin(folder, store, place, retrain=retrain, has_corpus=corpus is not None)
        plan = _read_plan(place)
        if not (place / _FROZEN).is_dir():
            if plan["retrain"]:
                _train(folder, store, place, plan, corpus, settings)
            else:
                _replace(place / _FROZEN, folder)
        return _calibrate(store, place, plan)


_NO_CORPUS = "Give the texts that the model was trained on: the next one learns from them too."


def _begin(folder: str | os.PathLike[str], store: ReviewStore, place: Path, *, retrain: bool, has_corpus: bool) -> None:
    """Note what may train and what may calibrate, before anything is read."""
    if place.exists() and any(place.iterdir()):
        raise InvalidInputError(f"{place} holds something other than a generation. Choose a new folder.")
    if retrain and not has_corpus:
        raise InvalidInputError(_NO_CORPUS)
    levels = load_bundle(folder).info.levels
    up_to = store.last_number()
    n_decided = len(_decided(store, up_to))
    if retrain and n_decided < _LEAST_DECIDED:
        raise InvalidInputError(f"Learning needs at least {_LEAST_DECIDED} decided texts. There are {n_decided}.")
    needed = audits_needed(levels["max_missed"], levels["max_wrong"], levels["assurance"])
    counts = {"up_to": up_to, "n_decided": n_decided if retrain else 0}
    plan = {"retrain": retrain, **counts, "needed": dataclasses.asdict(needed)}
    with atomic_file(place / _PLAN) as file:
        json.dump(plan, file, indent=1)


def _read_plan(place: Path) -> dict[str, Any]:
    """Return the plan of a generation."""
    try:
        plan = json.loads((place / _PLAN).read_text(encoding="utf-8"))
        numbers = [plan["up_to"], plan["n_decided"], plan["needed"]["lists"], plan["needed"]["filing"]]
        if not isinstance(plan["retrain"], bool) or not all(isinstance(n, int) and n >= 0 for n in numbers):
            raise ValueError("its numbers are none")
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise ArtifactError(f"{place / _PLAN} is damaged: {error}. Remove {place} and learn again.") from error
    return dict(plan)


def _decided(store: ReviewStore, up_to: int) -> list[ReviewText]:
    """Return the texts that may train: decided, and added before training began."""
    return [text for text in store.texts() if text.number <= up_to and text.decision is not None]


def _train(
    folder: str | os.PathLike[str],
    store: ReviewStore,
    place: Path,
    plan: dict[str, Any],
    corpus: Corpus | None,
    settings: dict[str, Any],
) -> None:
    """Train and freeze the generation; a classifier that an interrupted run has finished is not trained again."""
    old = load_bundle(folder)
    if corpus is None:
        raise InvalidInputError(_NO_CORPUS)
    texts = _training_corpus(old, corpus, _decided(store, plan["up_to"]))
    train(texts, place / _FROZEN, test=0, **{**_settings_of(old), **settings})


def _settings_of(bundle: Bundle) -> dict[str, Any]:
    """Return the settings that a bundle was trained with."""
    info = bundle.info
    return {
        "classifier": info.classifier,
        "options": dict(info.settings),
        "seed": info.seed,
        "max_tags": info.max_tags,
        "never_file": info.never_file,
        "vocabulary": bundle.vocabulary,
        "best_guess": info.best_guess,
        "group": info.group_column,
        "recalibrate": bundle.recalibration is not None,
        "constraints": bundle.predictor.constraints,
        "cardinality": tuple(getattr(bundle.predictor.taxonomy, "edges", ())),
        "name": info.name,
        **info.levels,
    }


def _training_corpus(old: Bundle, corpus: Corpus, decided: list[ReviewText]) -> Corpus:
    """Return the old training texts and the decided ones, with the old held-out texts for a first calibration.

    The first calibration never serves: it belongs to texts of the past. Texts that a decision is about train with the
    labels of the decision, wherever they were before.
    """
    review = training_texts(decided)
    known = set(review.texts)
    kept = corpus.rows(np.array([text not in known for text in corpus.texts]) & corpus.is_labelled)
    is_training = old.seen.is_in("training", kept.texts)
    held = np.flatnonzero(~is_training)
    if is_training.sum() == 0 or len(held) < 2:
        raise InvalidInputError(
            f"{corpus.name!r} is not what the model was trained on: {int(is_training.sum())} of its training texts and "
            f"{len(held)} held-out texts are there. Give the same file."
        )
    order = held[np.random.RandomState(old.info.seed).permutation(len(held))]
    parts = {"filing": order[: len(held) // 2], "calibration": order[len(held) // 2 :]}
    columns = {name: (*kept.columns[name], *review.columns.get(name, ("",) * len(review))) for name in kept.columns}
    joined = Corpus.from_label_sets(
        corpus.name,
        [*kept.texts, *review.texts],
        [*kept.label_sets, *review.label_sets],
        ids=[*(f"file {name}" for name in kept.ids), *(f"review {text.number}" for text in decided)],
        columns=columns,
        provenance=corpus.provenance,
    )
    training = [*np.flatnonzero(is_training).tolist(), *range(len(kept), len(joined))]
    return joined.with_parts({"train": training, **parts})


def _calibrate(store: ReviewStore, place: Path, plan: dict[str, Any]) -> LearningStatus:
    """Calibrate the frozen generation if enough audits are in, and return how far it is."""
    now = status(place, store)
    needed = now.needed
    audits = audits_of(store, after=plan["up_to"])
    if now.state == "ready" or len(audits) <= needed.filing:
        return now
    frozen = load_bundle(place / _FROZEN)
    held = audited(frozen, audits)
    filing, rest = held.rows(np.arange(needed.filing)), held.rows(np.arange(needed.filing, len(held)))
    # The filing rule depends on the first audits only; the lists follow when enough of the others are not filed.
    filed = recalibrated(frozen, filing, rest).policy.file(rest.probabilities, rest.known_words)
    if (~filed).sum() < needed.lists:
        return dataclasses.replace(now, lists=int((~filed).sum()))
    n_rest = int(np.flatnonzero(np.cumsum(~filed) == needed.lists)[0]) + 1
    bundle = recalibrated(frozen, filing, rest.rows(np.arange(n_rest)))
    used = audits[: needed.filing + n_rest]
    texts = [text.text for text in used]
    seen = bundle.seen.calibrated_with(hashes_of(texts[: needed.filing]), hashes_of(texts[needed.filing :]))
    info = dataclasses.replace(bundle.info, provenance={**bundle.info.provenance, AUDITS_UP_TO: used[-1].number})
    dataclasses.replace(bundle, info=info, seen=seen).save(place / _NEXT)
    return dataclasses.replace(status(place, store), n_skipped=n_skipped_of(used))


def status(out: str | os.PathLike[str], store: ReviewStore) -> LearningStatus:
    """Return how far a generation is, without training or calibrating."""
    place = Path(out)
    if not (place / _PLAN).is_file():
        return LearningStatus("absent", audits_needed())
    plan = _read_plan(place)
    needed = Needed(**plan["needed"])
    now = LearningStatus("waiting", needed, up_to=plan["up_to"], n_decided=plan["n_decided"])
    if (place / _NEXT).is_dir():
        return dataclasses.replace(now, state="ready", filing=needed.filing, lists=needed.lists)
    if not (place / _FROZEN).is_dir():
        return dataclasses.replace(now, state="training")
    audits = audits_of(store, after=plan["up_to"])
    return dataclasses.replace(now, filing=min(len(audits), needed.filing), n_skipped=n_skipped_of(audits))


def previous_of(folder: str | os.PathLike[str]) -> Path:
    """Return where the generation before is kept."""
    return Path(folder).with_name(f"{Path(folder).name}.previous")


def switch(folder: str | os.PathLike[str], out: str | os.PathLike[str]) -> Bundle:
    """Let the next generation serve: its folder replaces that of the model, which is kept for `undo_switch`.

    Each of the two replacements is one step. Killed between them, both folders hold the old model; called again, the
    switch is completed. The folder of the generation is removed at the end, so that the one after it can begin there.
    """
    ready = Path(out) / _NEXT
    if not ready.is_dir():
        raise InvalidInputError(f"{out} has no finished generation. Learn until it is ready.")
    load_bundle(ready)
    check_overwrite(folder)
    if not _is_same(ready, folder):  # else it was killed after the replacements, and the old model is kept already
        _replace(previous_of(folder), folder)
        _replace(folder, ready)
    done = Path(out).rename(Path(out).with_name(f"{Path(out).name}.done"))
    shutil.rmtree(done, ignore_errors=True)
    return load_bundle(folder)


def _is_same(one: Path, other: str | os.PathLike[str]) -> bool:
    """Return whether two folders hold the same model."""
    return (one / MANIFEST).read_bytes() == (Path(other) / MANIFEST).read_bytes()


def undo_switch(folder: str | os.PathLike[str]) -> Bundle:
    """Let the generation before serve again, and keep the other one; undone once more, it serves again."""
    previous = previous_of(folder)
    if not previous.is_dir():
        raise InvalidInputError(f"{folder} has no generation before it ({previous} is absent).")
    load_bundle(previous)
    aside = Path(folder).with_name(f"{Path(folder).name}.undone")
    _replace(aside, folder)
    _replace(folder, previous)
    _replace(previous, aside)
    shutil.rmtree(aside, ignore_errors=True)
    return load_bundle(folder)


def _replace(target: str | os.PathLike[str], source: str | os.PathLike[str]) -> None:
    """Replace a folder by a copy of another one, in one step."""
    with atomic_folder(target) as temporary:
        shutil.copytree(source, temporary, dirs_exist_ok=True)
