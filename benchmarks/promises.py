"""Measure every promise on random parts of corpora: lists of seen texts, filed texts, whole label-sets.

    python benchmarks/promises.py reuters arxiv ctdc eurlex --data FOLDER [--draws 5] [--before CHECKOUT] [--out FILE]
    python benchmarks/promises.py FILE.npz ...          probabilities saved by surelabel.probabilities_file

For each corpus and draw, all its texts (or a sample) are divided at random; a model is trained on what filing,
calibration and test parts leave, and judged on the test part at each level. Finished draws are in the output file and
are not repeated, so that an interrupted run continues. A saved file of probabilities has its parts pooled and divided
again for each draw, without training. With --before, an older checkout is trained on the same texts, all but the test
part, and judged on the same test texts.

Standard errors are those of the mean over draws: of each draw's test texts and calibration texts. A cell is flagged if
it is more than 3.2 of them over its level, unless the model itself says that this promise cannot be kept.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from surelabel import __version__, corpora, models
from surelabel._core.files import atomic_file
from surelabel.conformal import ConformalLabelSets
from surelabel.exceptions import CalibrationWarning
from surelabel.guarantees.decisions import FILE, Evidence, FilingPolicy
from surelabel.guarantees.groups import ByGroup
from surelabel.measures import LogLoss
from surelabel.probabilities_file import Probabilities

LEVELS = ("0.05", "0.1", "0.2")
MAX_WRONG = "0.05"
FLAGGED = 3.2
JOINED = "arxiv-joined"
# By name: the corpus, how many of its texts are drawn (None: all), and how many of these are new texts.
CORPORA: dict[str, tuple[str, int | None, int]] = {
    "reuters": ("reuters", None, 3000),
    "arxiv": ("arxiv", 15_000, 3000),
    "ctdc": ("ctdc", None, 3000),
    JOINED: ("arxiv", 4000, 2000),
    "eurlex": ("eurlex57k", 4000, 2000),
    "synthetic": ("synthetic", None, 400),
}


def joined(labels: frozenset[str]) -> frozenset[str]:
    """Return labels, and each two and three of them as one more label: a long tail of rare labels."""
    several = itertools.chain(*(itertools.combinations(sorted(labels), n) for n in (2, 3)))
    return labels | {"+".join(own) for own in several}


def drawn(name: str, seed: int, data: Path | None) -> corpora.Corpus:
    """Return a corpus whose texts are pooled, sampled and divided at random."""
    source, n_texts, n_new = CORPORA[name]
    if data is not None:
        os.environ["SURELABEL_DATA"] = str(data)
    whole = corpora.load(source, parts="own", **({"n_texts": 2000} if source == "synthetic" else {}))
    rows = np.flatnonzero(whole.is_labelled)
    if n_texts is not None:
        rows = np.sort(np.random.RandomState(seed).permutation(rows)[:n_texts])
    chosen = whole.rows(rows)
    label_sets = [joined(labels) for labels in chosen.label_sets] if name == JOINED else chosen.label_sets
    pooled = corpora.Corpus.from_label_sets(name, list(chosen.texts), label_sets, ids=list(chosen.ids))
    return corpora.draw_parts(pooled, seed, test=n_new)


def loss_of_lists(truth: list[frozenset[str]], lists: list[set[str]]) -> np.ndarray:
    """Return the share of each text's true tags that its list leaves out, (n,)."""
    return np.array([len(true - listed) / max(len(true), 1) for true, listed in zip(truth, lists, strict=True)])


def f1_micro(truth: list[frozenset[str]], names: tuple[str, ...], probabilities: Any) -> float:
    """Return micro-F1 of the labels with a probability of at least 0.5; unknown labels count as missed."""
    chosen = as_dense(probabilities) >= 0.5
    guesses = [{names[k] for k in np.flatnonzero(row)} for row in chosen]
    hits = sum(len(true & guess) for true, guess in zip(truth, guesses, strict=True))
    return 2 * hits / max(1, sum(map(len, truth)) + sum(map(len, guesses)))


def as_dense(probabilities: Any) -> np.ndarray:
    """Return probabilities (n, n_labels) of a matrix or of shortlists."""
    return probabilities.tocsr().toarray() if hasattr(probabilities, "tocsr") else np.asarray(probabilities)


def cell(losses: np.ndarray, n_calibration: int, **more: Any) -> dict[str, Any]:
    """Return the mean of one draw's losses and its variance, by test texts and calibration texts."""
    if not len(losses):
        return {"n": 0} | more
    by_calibration = 1.0 / n_calibration if n_calibration else 0.0
    variance = float(losses.var()) * (1.0 / len(losses) + by_calibration)
    return {"n": len(losses), "mean": float(losses.mean()), "variance": variance} | more


def judged(policy: FilingPolicy, predictor: ConformalLabelSets, level: str, test: Evidence) -> dict[str, Any]:
    """Return what a policy and a predictor do with new texts at one level."""
    names = predictor.calibration_.label_names
    decisions, truth = policy.decide(test.probabilities, test.known_words), list(test.labels)
    filed = np.array([decision.decision == FILE for decision in decisions])
    lists = [{names[k] for k in decision.consider} for decision in decisions]
    guesses = [{names[k] for k in decision.labels} for decision in decisions]
    missed = loss_of_lists(truth, lists)
    wrong = np.array([set(true) != guess for true, guess in zip(truth, guesses, strict=True)], dtype=float)
    groups = policy.categories(filed) if predictor.taxonomy is not None else None
    with warnings.catch_warnings(action="ignore", category=CalibrationWarning):
        sets = predictor.predict_set(test.probabilities, significance=level, groups=groups)
    errors, lengths = (~sets.contains(truth)).astype(float), np.array([len(listed) for listed in lists])
    kept = {group: bool(np.isfinite(sets.thresholds[filed == (group == "filed")]).all()) for group in ("filed", "seen")}
    n_calibration = predictor.calibration_.n_texts
    short = float(np.mean(lengths[~filed] <= policy.max_tags)) if (~filed).any() else None
    return {
        "missed of seen": cell(
            missed[~filed],
            policy.n_seen_,
            promised=policy.tag_bounds.problem_ is None,
            n_tags=float(lengths[~filed].mean()) if (~filed).any() else None,
            short=short,
        ),
        "wrong of filed": cell(wrong[filed], 0, promised=True, share=float(filed.mean())),
        "errors of all": cell(errors, n_calibration, promised=all(kept.values())),
        "errors of seen": cell(errors[~filed], policy.n_seen_, promised=kept["seen"]),
        "errors of filed": cell(errors[filed], n_calibration - policy.n_seen_, promised=kept["filed"]),
    }


def measured(name: str, seed: int, data: Path | None, before: Path | None) -> dict[str, Any]:
    """Train on one draw of a corpus, and return what is measured at each level."""
    start, corpus = time.time(), drawn(name, seed, data)
    sample, file = corpus.part("test"), corpus.part("train", "filing", "calibration")
    with warnings.catch_warnings(action="ignore", category=CalibrationWarning):
        bundle = models.train(corpus, seed=seed, max_wrong=MAX_WRONG)
        seconds = time.time() - start
        texts = list(sample.texts)
        test = Evidence(bundle.predict_proba(texts), sample.label_sets, bundle.share_known(texts))
        levels = {}
        for level in LEVELS:
            again = models.calibrate_bundle(bundle, max_missed=level)
            levels[level] = judged(again.policy, again.predictor, level, test)
    known = set(bundle.label_names)
    result = {
        "texts": {part: int(n) for part, n in corpus.part_sizes.items()},
        "labels": len(corpus.label_names),
        "known labels": len(known),
        "texts with unknown labels": float(np.mean([not labels <= known for labels in sample.label_sets])),
        "measure": bundle.info.measure,
        "f1_micro": f1_micro(test.labels, bundle.label_names, test.probabilities),
        "seconds": round(seconds),
        "levels": levels,
    }
    if before is not None:
        result["before"] = measured_before(before, file, sample)
        result["f1_micro_before"] = result["before"].pop("f1_micro", None)
    return result


def from_file(path: Path, seed: int) -> dict[str, Any]:
    """Divide saved probabilities again, and return what is measured at each level."""
    saved = Probabilities.load(path)
    parts = [name for name in ("filing", "calibration", "test") if name in saved.parts]
    pooled = saved.resplit(seed, tuple(parts))
    if len(pooled) == 2:  # no filing part: half of the calibration part
        half = len(pooled[0]) // 2
        pooled = [pooled[0].rows(np.arange(half)), pooled[0].rows(np.arange(half, len(pooled[0]))), pooled[1]]
    filing, calibration, test = (Evidence(part.probabilities, part.label_sets(saved.label_names)) for part in pooled)
    limits = {"max_labels": min(saved.max_labels, len(saved.label_names)), "label_names": saved.label_names}
    levels = {}
    with warnings.catch_warnings(action="ignore", category=CalibrationWarning):
        for level in LEVELS:
            policy = FilingPolicy(MAX_WRONG, max_missed=level, **limits).calibrate(filing, calibration)
            groups = policy.categories(policy.file(calibration.probabilities))
            predictor = ConformalLabelSets(LogLoss(), taxonomy=ByGroup(), **limits)
            predictor.calibrate(calibration.probabilities, calibration.labels, groups)
            levels[level] = judged(policy, predictor, level, test)
    return {
        "texts": {name: len(part) for name, part in zip(parts, pooled[-len(parts) :], strict=True)},
        "levels": levels,
    }


_BEFORE = """
import json, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from surelabel import corpora
from surelabel.guarantees.decisions import Decisions
from surelabel.guarantees.tag_bounds import TagBounds
from surelabel.labels.label_sets import label_indices
from surelabel.models import TrainingSettings, train_bundle
folder, levels, max_wrong = sys.argv[1], sys.argv[2].split(","), sys.argv[3]
corpus = corpora.load(folder + "/file.jsonl")
bundle = train_bundle(corpus, TrainingSettings(compared={}))
names = bundle.predictor.calibration_.label_names
texts = [json.loads(line)["text"] for line in open(folder + "/new.jsonl", encoding="utf-8")]
probabilities, known = bundle.classifier.predict_proba(texts), bundle.classifier.known_words(texts)
part = corpus.part("calibration")
own = bundle.classifier.predict_proba(part.texts), part.label_matrix, bundle.classifier.known_words(part.texts)
result = {}
for level in levels:
    decisions = bundle.decisions
    tags = TagBounds(level, decisions.tag_bounds.max_false)
    made = Decisions(decisions.automation.again(), tags, decisions.familiarity)
    made = made.calibrate(*own)
    filed = made.filed(probabilities, known)
    guesses = label_indices(made.automation.predict(probabilities).labels)
    lists = label_indices(made.tag_bounds.predict(probabilities).consider)
    pick = lambda rows: [[names[k] for k in row] for row in rows]
    result[level] = {"filed": filed.tolist(), "guesses": pick(guesses), "lists": pick(lists)}
result["half"] = pick(label_indices(np.asarray(probabilities) >= 0.5))
json.dump(result, open(folder + "/result.json", "w"))
"""


def measured_before(checkout: Path, file: corpora.Corpus, sample: corpora.Corpus) -> dict[str, Any]:
    """Train an older checkout on the same file, and return what its lists miss of the same new texts."""
    with tempfile.TemporaryDirectory() as folder:
        for name, part in (("file", file), ("new", sample)):
            with Path(folder, f"{name}.jsonl").open("w", encoding="utf-8") as stream:
                for text, labels in zip(part.texts, part.label_sets, strict=True):
                    stream.write(json.dumps({"text": text, "labels": sorted(labels)}) + "\n")
        command = [sys.executable, "-c", _BEFORE, folder, ",".join(LEVELS), MAX_WRONG]
        environment = os.environ | {"PYTHONPATH": str(checkout / "src")}
        done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            return {"failed": done.stderr.strip().splitlines()[-1:]}
        results = json.loads(Path(folder, "result.json").read_text(encoding="utf-8"))
    truth, levels = sample.label_sets, {}
    half = [set(guess) for guess in results.pop("half")]
    hits = sum(len(true & guess) for true, guess in zip(truth, half, strict=True))
    levels["f1_micro"] = 2 * hits / max(1, sum(map(len, truth)) + sum(map(len, half)))
    for level, values in results.items():
        filed = np.array(values["filed"], dtype=bool)
        missed = loss_of_lists(truth, [set(listed) for listed in values["lists"]])
        wrong = np.array([set(true) != set(guess) for true, guess in zip(truth, values["guesses"], strict=True)], float)
        lengths = np.array([len(listed) for listed in values["lists"]])
        levels[level] = {
            "missed of seen": cell(missed[~filed], 0, promised=True, n_tags=float(lengths[~filed].mean())),
            "wrong of filed": cell(wrong[filed], 0, promised=True, share=float(filed.mean())),
        }
    return levels


def summary(draws: dict[str, Any], key: str = "levels") -> dict[str, Any]:
    """Return means over draws with standard errors, and flags, by level and promise."""
    results: dict[str, Any] = {}
    runs = [draw[key] for draw in draws.values() if "failed" not in draw.get(key, {"failed": 1})]
    for level in LEVELS if runs else ():
        for promise in runs[0][level]:
            cells = [one for run in runs for one in [run[level].get(promise, {"n": 0})] if one["n"]]
            if not cells:
                continue
            mean = float(np.mean([one["mean"] for one in cells]))
            error = math.sqrt(sum(one["variance"] for one in cells)) / len(cells)
            allowed = float(MAX_WRONG if promise == "wrong of filed" else level)
            promised = all(one["promised"] for one in cells)
            figures = {"mean": mean, "standard_error": error, "draws": len(cells), "promised": promised}
            figures["flagged"] = bool(promised and mean > allowed + FLAGGED * error)
            for name in ("n_tags", "short", "share"):
                found = [one[name] for one in cells if one.get(name) is not None]
                if found:
                    figures[name] = float(np.mean(found))
            results.setdefault(promise, {})[level] = figures
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", nargs="+", help=f"names of {', '.join(CORPORA)}, or .npz files of probabilities")
    parser.add_argument("--data", type=Path, help="folder of the corpora's files")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--before", type=Path, help="checkout of an older version")
    parser.add_argument("--out", type=Path, default=Path("results/promises.json"))
    options = parser.parse_args()
    results = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {}
    if results.get("benchmark") != "promises":
        settings = {"levels": LEVELS, "max_wrong": MAX_WRONG, "corpora": CORPORA, "flagged over": FLAGGED}
        results = {"benchmark": "promises", "version": __version__, "settings": settings, "corpora": {}}
    for seed in range(options.draws):
        for source in options.sources:
            name = Path(source).stem if source.endswith(".npz") else source
            entry = results["corpora"].setdefault(name, {"draws": {}})
            done = entry["draws"].get(str(seed))
            if done is not None and (options.before is None or "before" in done):
                continue
            if source.endswith(".npz"):
                entry["draws"][str(seed)] = from_file(Path(source), seed)
            else:
                entry["draws"][str(seed)] = measured(name, seed, options.data, options.before)
            entry["summary"], entry["summary before"] = summary(entry["draws"]), summary(entry["draws"], "before")
            with atomic_file(options.out) as stream:
                json.dump(results, stream, indent=1)
            for promise, levels in entry["summary"].items():
                shown = ", ".join(
                    f"{level}: {one['mean']:.3f} +- {one['standard_error']:.3f}{' FLAGGED' * one['flagged']}"
                    f"{'' if one['promised'] else ' (not promised)'}"
                    for level, one in levels.items()
                )
                print(f"{name}, {seed + 1} draws, {promise}: {shown}", flush=True)


if __name__ == "__main__":
    main()
