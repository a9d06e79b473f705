"""The engine at work on generated probabilities: a table, a plot, three texts explained.

    python examples/engine.py --out build/demo

90 labels with a long tail, as in a news archive; a classifier that is right most of the time but unsure of some labels.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from surelabel import ConformalLabelSets, LogLoss, LpNorm

MEASURES = {"L2": LpNorm(2), "L4": LpNorm(4), "L8": LpNorm(8), "LogLoss": LogLoss()}
LEVELS = ("0.01", "0.05", "0.1", "0.2")
N_LABELS = 90


def generate(n_texts: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Draw label-sets with a long tail of rare labels, and probabilities of a good but imperfect classifier."""
    frequency = 0.4 / np.arange(1, N_LABELS + 1) ** 1.2
    labels = rng.random((n_texts, N_LABELS)) < frequency
    without = np.flatnonzero(~labels.any(axis=1))
    labels[without, rng.choice(N_LABELS, len(without), p=frequency / frequency.sum())] = True
    prior = np.log(frequency / (1 - frequency))
    evidence = np.where(labels, 5.5, -2.0) + rng.normal(0.0, 2.0, labels.shape)
    return 1.0 / (1.0 + np.exp(-(prior + evidence))), labels


def readable(size: int) -> str:
    """Write a number of label-sets, however large."""
    return f"{size:,}" if size < 10**7 else f"{size:.1e}"


def show_table(calibration: Any, test: Any) -> dict[str, tuple[list[float], list[float]]]:
    """Print error rates and sizes for each measure and level; return them for the plot."""
    curves: dict[str, tuple[list[float], list[float]]] = {}
    print(f"{'measure':8s} {'e':>5s} {'error rate':>11s} {'mean N':>10s} {'median N':>9s} {'ms, all texts':>14s}")
    for name, measure in MEASURES.items():
        predictor = ConformalLabelSets(measure, max_labels=15).calibrate(*calibration)
        errors, means = [], []
        for level in LEVELS:
            start = time.perf_counter()
            sets = predictor.predict_set(test[0], significance=level)
            sizes = sets.sizes()
            milliseconds = 1e3 * (time.perf_counter() - start)
            errors.append(float(1 - sets.contains(test[1]).mean()))
            means.append(float(np.mean(sizes)))
            row = f"{name:8s} {level:>5s} {errors[-1]:11.3f} {means[-1]:10.1f} {np.median(sizes):9.0f}"
            print(f"{row} {milliseconds:14.1f}")
        curves[name] = errors, means
    return curves


def show_texts(calibration: Any, test: Any) -> None:
    """Explain three texts: a sure one, an unsure one, and one unlike the calibration texts."""
    names = [f"topic-{k + 1:02d}" for k in range(N_LABELS)]
    predictor = ConformalLabelSets(LogLoss(), max_labels=15, label_names=names).calibrate(*calibration)
    forced = predictor.predict(test[0])
    sets = predictor.predict_set(test[0], confidence_level=0.95)
    sizes = sets.sizes()
    chosen = {
        "the surest text": int(np.argmax(forced.confidence)),
        "the text with the largest prediction set": int(np.argmax(sizes)),
        "the text least like the calibration texts": int(np.argmin(forced.credibility)),
    }
    for title, i in chosen.items():
        one = sets[i]
        print(f"\n{title}: {', '.join(sorted(forced.label_sets[i]))}")
        print(f"  confidence {forced.confidence[i]:.3f}, credibility {forced.credibility[i]:.3f}")
        print(
            f"  plausible at 95 %: {readable(one.size)} of {readable(predictor.calibration_.n_candidates)} label-sets"
        )
        print(f"  in all of them: {', '.join(sorted(one.certain)) or '-'}")
        for label_set, p_value in one.top(3):
            print(f"    p = {p_value:.3f}  {', '.join(sorted(label_set))}")


def plot(curves: dict[str, tuple[list[float], list[float]]], path: Path) -> None:
    """Draw error rate and mean size against significance."""
    mpl.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415 (after the backend is chosen)

    levels = [float(level) for level in LEVELS]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    left.plot([0, 0.2], [0, 0.2], color="0.6", linewidth=1, label="error = significance")
    for (name, (errors, means)), style in zip(curves.items(), ("o-", "s--", "^-.", "D:"), strict=True):
        left.plot(levels, errors, style, label=name, color="black", markersize=4, linewidth=1)
        right.semilogy(levels, means, style, label=name, color="black", markersize=4, linewidth=1)
    left.set(xlabel="significance", ylabel="error rate", title="The guarantee")
    right.set(xlabel="significance", ylabel="mean number of label-sets", title="What it costs")
    left.legend(frameon=False, fontsize=8)
    right.legend(frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Run the demonstration."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/demo"))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    calibration, test = generate(999, rng), generate(3000, rng)
    print(f"{N_LABELS} labels, 999 calibration texts, 3,000 test texts; candidates have 1 to 15 labels.\n")
    curves = show_table(calibration, test)
    show_texts(calibration, test)
    picture = options.out / "engine.png"
    plot(curves, picture)
    print(f"\nThe plot is at {picture}.")


if __name__ == "__main__":
    main()
