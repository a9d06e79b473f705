"""What each promise is worth: who is missed, how many texts can be filed, how many tags stay, and errors over time.

    python benchmarks/promises.py --out results/promises.json FILE.npz [FILE.npz ...]

Files are those of `surelabel.probabilities_file`, of any corpus and classifier. Shares filed and tags are means over
random re-splits of calibration and test texts, so that both are exchangeable; misses by kind are on the corpus' own
split; errors over time are in the order of the test part, which is that of time for Reuters.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from surelabel import (
    Automation,
    ByCardinality,
    ByRarity,
    ConformalLabelSets,
    LogLoss,
    OnlineConformal,
    TagBounds,
    corpora,
)
from surelabel._core.storage import atomic_file
from surelabel.exceptions import CalibrationWarning
from surelabel.guarantees.online import METHODS
from surelabel.probabilities_file import Probabilities

LEVELS = (0.05, 0.1, 0.2)
BOUNDS = (0.02, 0.05, 0.1)
RUN = 500
N_SPLITS = 100
# Test texts of each re-split whose sets are counted: counting takes long where sets hold millions.
N_SIZED = 1_000


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def taxonomies(made: Probabilities) -> dict[str, Any]:
    counts = made.settings.get("train_counts")  # training texts of each label; else from the corpus itself
    if counts is None:
        counts = corpora.load(made.settings["corpus"], seed=made.settings["seed"]).part("train").labels.sum(axis=0)
    return {
        "plain": None,
        "by cardinality": ByCardinality((1, 2, 3), min_texts=20),
        "by rarity": ByRarity(np.array(counts), (20, 100, 500), min_texts=20),
    }


def misses(made: Probabilities, level: float = 0.05) -> dict[str, Any]:
    """Misses by number of labels and rarity over ten re-splits, plain and with each taxonomy; sizes over three."""
    results: dict[str, Any] = {}
    kinds = taxonomies(made)
    for name, taxonomy in kinds.items():
        missed: dict[str, list[float]] = {}
        sizes, seconds = [], 0.0
        for seed in range(10):
            calibration, test = made.redivided(seed)
            predictor = ConformalLabelSets(LogLoss(), 1, made.max_labels, taxonomy=taxonomy)
            predictor.calibrate(calibration.probabilities, calibration.labels)
            sets = predictor.predict_set(test.probabilities, significance=level)
            outside = ~sets.contains(test.labels)
            for label, division in kinds.items():
                if division is None:
                    missed.setdefault("all texts", []).extend(outside.tolist())
                    continue
                of = division.kinds_of(test.labels)
                for kind in np.unique(of).tolist():
                    key = f"{label}: {division.kind_name(kind)}"
                    missed.setdefault(key, []).extend(outside[of == kind].tolist())
            if seed < 3:
                sized = predictor.predict_set(test.probabilities[:N_SIZED], significance=level)
                start = time.process_time()
                lower, upper = sized.size_bounds()
                seconds += time.process_time() - start
                sizes.append([np.array(bound, dtype=np.float64) for bound in (lower, upper)])
        bounds = [[float(bound.mean()) for bound in pair] for pair in sizes]
        results[name] = {
            "misses": {
                key: {"texts": len(values) // 10, "share": float(np.mean(values))} for key, values in missed.items()
            },
            "mean_size_bounds": np.mean(bounds, axis=0).tolist(),
            "median_size": float(np.mean([np.median(pair[0]) for pair in sizes])),
            "processor_microseconds_per_text": 1e6 * seconds / (3 * len(sizes[0][0])),
        }
    return results


def filed(made: Probabilities) -> dict[str, Any]:
    """Share filed and share wrong at each bound, with the score chosen on validation texts and with the default."""
    validation = made.parts["validation"]
    results: dict[str, Any] = {}
    for bound in BOUNDS:
        first = Automation(bound, max_labels=made.max_labels)
        chosen = first.choose_score(validation.probabilities, validation.labels).score
        for score in dict.fromkeys(("total", chosen if chosen != "size" else "margin")):
            shares, wrongs, selected, false = [], [], [], []
            for seed in range(N_SPLITS):
                calibration, test = made.redivided(seed)
                automation = Automation(bound, max_labels=made.max_labels, score=score)
                automation.calibrate(calibration.probabilities, calibration.labels)
                right = (automation.predict(test.probabilities).labels == test.labels).all(axis=1)
                for decided, where, lost in (
                    (automation.decide(test.probabilities), shares, wrongs),
                    (automation.select(test.probabilities), selected, false),
                ):
                    where.append(float(decided.mean()))
                    lost.append(float((~right[decided]).mean()) if decided.any() else 0.0)
            results[f"{bound:g}, {score}"] = {
                "chosen": score == chosen,
                "share_filed": float(np.mean(shares)),
                "wrong_of_filed": float(np.mean(wrongs)),
                "splits_past_on_test": float(np.mean(np.array(wrongs) > bound)),
                "share_selected": float(np.mean(selected)),
                "wrong_of_selected": float(np.mean(false)),
            }
    return results


def tags(made: Probabilities) -> dict[str, Any]:
    """Tags to consider and to assign at 5 and 10 %."""
    results: dict[str, Any] = {"true_tags_per_text": float(made.parts["test"].labels.sum(axis=1).mean())}
    for bound in (0.05, 0.1):
        rows = []
        for seed in range(N_SPLITS // 2):
            calibration, test = made.redivided(seed)
            bounds = TagBounds(bound, bound).calibrate(calibration.probabilities, calibration.labels)
            assign, consider = bounds.predict(test.probabilities)
            n_true, n_assigned = test.labels.sum(axis=1), assign.sum(axis=1)
            missed = (test.labels & ~consider).sum(axis=1) / np.maximum(n_true, 1)
            false = (assign & ~test.labels).sum(axis=1)
            shares = false / np.maximum(n_assigned, 1)
            all_false = false.sum() / max(n_assigned.sum(), 1)
            rows.append([consider.sum(axis=1).mean(), missed.mean(), n_assigned.mean(), shares.mean(), all_false])
        names = ("considered", "missed", "assigned", "false_per_text", "false_of_all_assigned")
        results[f"{bound:g}"] = dict(zip(names, np.mean(rows, axis=0).tolist(), strict=True))
    return results


def over_time(made: Probabilities) -> dict[str, Any]:
    """Errors of the test part in its order, plain and with each method; the worst run of 500 texts beside."""
    calibration, test = made.parts["calibration"], made.parts["test"]
    predictor = ConformalLabelSets(LogLoss(), 1, made.max_labels, n_jobs=1)
    predictor.calibrate(calibration.probabilities, calibration.labels)
    results: dict[str, Any] = {}
    for level in LEVELS:
        sets = predictor.predict_set(test.probabilities, significance=level)
        plain = ~sets.contains(test.labels)
        rows = {"plain": described(plain, sets.size_bounds()[0])}
        for method in METHODS:
            online = OnlineConformal(predictor, level, method)
            errors, sizes = [], []
            for row, labels in zip(test.probabilities, test.labels, strict=True):
                sizes.append(online.predict_set(row[None])[0].size_bounds[0])
                errors.append(bool(online.update(labels[None])[0]))
            rows[method] = described(np.array(errors), sizes)
        results[f"{level:g}"] = rows
    return results


def described(errors: Any, sizes: Any) -> dict[str, float]:
    runs = np.convolve(errors, np.ones(RUN) / RUN, "valid")
    values = np.array([float(size) for size in sizes])
    return {
        "error": float(np.mean(errors)),
        f"worst_of_{RUN}": float(runs.max()) if len(errors) >= RUN else float("nan"),
        "mean_size": float(values.mean()),
        "median_size": float(np.median(values)),
    }


def costs(made: Probabilities) -> dict[str, float]:
    """Processor time per text of `decide` and `TagBounds.predict`, in microseconds."""
    calibration, test = made.parts["calibration"], made.parts["test"]
    automation = Automation(0.3, max_labels=made.max_labels, n_jobs=1)
    automation.calibrate(calibration.probabilities, calibration.labels)
    automation.threshold_ = float(
        np.median(automation.scores(calibration.probabilities))
    )  # as if it had been certified
    bounds = TagBounds(0.1, 0.1).calibrate(calibration.probabilities, calibration.labels)
    timed = {}
    for name, call in (("decide", automation.decide), ("tag_bounds", bounds.predict)):
        call(test.probabilities)
        times = []
        for _ in range(9):
            start = time.process_time()
            call(test.probabilities)
            times.append(time.process_time() - start)
        timed[f"{name}_microseconds_per_text"] = 1e6 * min(times) / len(test.probabilities)
    return timed | taxonomy_costs(made)


def taxonomy_costs(made: Probabilities) -> dict[str, float]:
    """Time counting with three kinds of label-sets against plain ones, at the same thresholds: the same sets."""
    calibration, test = made.parts["calibration"], made.parts["test"]
    probabilities = test.probabilities[:3_000]
    counts = np.array(calibration.labels.sum(axis=0))
    divisions = {
        "plain": None,
        "three_cardinalities": ByCardinality((2, 3)),
        "three_rarities": ByRarity(
            counts, tuple(np.unique(np.quantile(counts, (0.33, 0.66)).astype(int) + 1).tolist())
        ),
    }
    ratios: dict[str, float] = {}
    for level in (Fraction(1, 20), Fraction(1, 5)):
        least: dict[str, float] = {}
        for _ in range(9):  # in turns, so that what else runs on the machine slows all of them
            for name, taxonomy in divisions.items():
                predictor = ConformalLabelSets(LogLoss(), 1, made.max_labels, n_jobs=1, taxonomy=taxonomy)
                predictor.calibrate(calibration.probabilities, calibration.labels)
                threshold = predictor.calibration_.threshold(level)
                shape = (len(probabilities),) if taxonomy is None else (len(probabilities), taxonomy.n_kinds)
                start = time.process_time()
                predictor.bind(probabilities).bounds(np.full(shape, threshold))
                least[name] = min(least.get(name, np.inf), time.process_time() - start)
        for name in ("three_cardinalities", "three_rarities"):
            ratios[f"{name}_against_plain_at_{float(level):g}"] = least[name] / least["plain"]
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--steps", type=lambda names: names.split(","), help="only these; the others stay as they are")
    parser.add_argument("--out", type=Path, default=Path("results/promises.json"))
    given = parser.parse_args()
    warnings.simplefilter("ignore", CalibrationWarning)
    results = json.loads(given.out.read_text(encoding="utf-8")) if given.out.is_file() else {}
    for path in given.files:
        made = Probabilities.load(path)
        name = path.stem
        parts = {part: len(made.parts[part]) for part in made.parts}
        row: dict[str, Any] = results.get(name, {})
        row |= {"n_labels": len(made.label_names), "max_labels": made.max_labels, "texts": parts}
        steps = {"filed": filed, "tags": tags, "costs": costs, "misses": misses}
        if name.startswith("reuters"):  # its ids are in the order of time
            steps["over_time"] = over_time
        for step, measure in steps.items():
            if given.steps and step not in given.steps:
                continue
            start = time.perf_counter()
            row[step] = measure(made)
            print(f"{name}: {step} in {time.perf_counter() - start:.0f} s", flush=True)
        results[name] = row
        with atomic_file(given.out) as temporary:
            temporary.write_text(json.dumps(rounded(results), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
