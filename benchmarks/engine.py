"""The engine's speed, as ratios against rivals in the same run.

    python benchmarks/engine.py --out results/engine.json [--reuters PATH] [--quick]

Every figure is of one core (n_jobs=1) unless it says otherwise; times are the best of several runs.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import surelabel
from probabilities import Measured, measured
from surelabel import ConformalLabelSets, LogLoss, LpNorm
from surelabel._kernels import walk
from surelabel.engines import SEARCHES

MEASURES = {"L2": LpNorm(2), "L4": LpNorm(4), "L8": LpNorm(8), "LogLoss": LogLoss()}
# Label-sets that the Hamming ball may score in all for one figure: some twenty seconds of it.
BALL_BUDGET = 20_000_000


def best_of(runs: int, work: Callable[[], Any]) -> float:
    """Seconds of the fastest of several runs."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def against_hamming_ball(data: Measured, budget: int) -> list[dict[str, Any]]:
    rows = []
    for name, measure in MEASURES.items():
        predictor = ConformalLabelSets(measure, 1, data.max_labels, n_jobs=1)
        predictor.calibrate(data.calibration, data.calibration_labels)
        for level in ("0.05", "0.01"):
            sets = predictor.predict_set(data.test, significance=level)
            sizes = sets.sizes()
            seconds = best_of(5, lambda: predictor.predict_set(data.test, significance=level).sizes())
            ball = ConformalLabelSets(measure, 1, data.max_labels, search="hamming-ball", n_jobs=1)
            ball.calibrate(data.calibration, data.calibration_labels)
            report = ball.predict_set(data.test, significance=level).search_report()
            considered = np.array(report.considered, dtype=float)
            # The texts with the smallest balls, as many as the budget allows: what is feasible at all.
            order = np.argsort(considered, kind="stable")
            order = order[~report.prohibitive[order]]
            feasible = np.sort(order[np.cumsum(considered[order]) <= budget])
            part = data.test[feasible]
            ball_seconds = best_of(1, lambda: ball.predict_set(part, significance=level).sizes())
            same_part = best_of(5, lambda: predictor.predict_set(part, significance=level).sizes())
            assert np.array_equal(ball.predict_set(part[:50], significance=level).sizes(), sizes[feasible][:50])
            rows.append(
                {
                    "measure": name,
                    "significance": level,
                    "texts": len(data.test),
                    "mean_size": float(sizes.mean()),
                    "exact_ms_all_texts": 1e3 * seconds,
                    "exact_us_a_text": 1e6 * seconds / len(data.test),
                    "ball_label_sets_all_texts": float(considered.sum()),
                    "ball_prohibitive_percent": 100 * float(report.prohibitive.mean()),
                    "texts_timed_with_ball": len(feasible),
                    "ball_seconds": ball_seconds,
                    "exact_seconds_same_texts": same_part,
                    "ratio_same_texts": ball_seconds / same_part,
                    "ball_label_sets_a_second": float(considered[feasible].sum()) / ball_seconds,
                }
            )
            print(
                f"  {name:8s} e={level}  exact {1e3 * seconds:7.2f} ms all texts, mean N {sizes.mean():9.1f};  "
                f"ball on {len(feasible)} texts {ball_seconds:8.2f} s: {ball_seconds / same_part:,.0f} x"
            )
    return rows


def against_mulaconf(data: Measured, n_texts: int) -> dict[str, Any] | None:
    try:
        from mulaconf.icp_predictor import InductiveConformalPredictor
    except ImportError:
        print("  mulaconf is not installed: skipped (make bench installs it)")
        return None
    n_labels = data.test.shape[1]
    rival = InductiveConformalPredictor(data.calibration, data.calibration_labels.astype(int), measure="norm")
    rival.calibrate(data.calibration, data.calibration_labels.astype(int))
    start = time.perf_counter()
    regions = rival.predict(data.test[:n_texts])(significance_level=0.05)
    rival_seconds = time.perf_counter() - start
    del regions
    predictor = ConformalLabelSets(LpNorm(2), 0, n_jobs=1).calibrate(data.calibration, data.calibration_labels)

    def sizes() -> Any:
        return predictor.predict_set(data.test[:n_texts], significance=0.05).sizes()

    def members() -> Any:
        return [one.to_array() for one in predictor.predict_set(data.test[:n_texts], significance=0.05)]

    ours, listed = best_of(5, sizes), best_of(3, members)
    print(
        f"  d={n_labels}, {n_texts} texts: MuLaConf {rival_seconds:.1f} s; sizes {1e3 * ours:.2f} ms "
        f"({rival_seconds / ours:,.0f} x), all members listed {1e3 * listed:.1f} ms ({rival_seconds / listed:,.0f} x)"
    )
    return {
        "n_labels": n_labels,
        "texts": n_texts,
        "mulaconf_seconds": rival_seconds,
        "sizes_seconds": ours,
        "members_seconds": listed,
        "ratio_sizes": rival_seconds / ours,
        "ratio_members": rival_seconds / listed,
    }


def enumeration_rate(data: Measured, n_sets: int) -> list[dict[str, Any]]:
    """Label-sets per second written into a preallocated array, for the first text, with a threshold that has enough."""
    rows = []
    for name in ("L2", "L8", "LogLoss"):
        absent, present = MEASURES[name].costs(data.test[:1])
        # A total that no label-set passes: the walk fills the whole array.
        threshold = float(np.maximum(absent, present).sum())
        words = np.zeros((n_sets, (data.test.shape[1] + 63) // 64), dtype=np.uint64)

        def write() -> int:
            return walk.list_row(absent[0], present[0], threshold, (1, data.max_labels), words, np.empty(0))

        assert write() == n_sets
        seconds = best_of(3, write)
        print(f"  {name:8s} {n_sets:,} label-sets in {seconds:.3f} s: {n_sets / seconds:.3g} a second")
        rows.append({"measure": name, "label_sets": n_sets, "seconds": seconds, "a_second": n_sets / seconds})
    return rows


def growth_with_texts(data: Measured, sizes: list[int]) -> list[dict[str, Any]]:
    predictor = ConformalLabelSets(LpNorm(4), 1, data.max_labels, n_jobs=1)
    predictor.calibrate(data.calibration, data.calibration_labels)
    rows = []
    for n in sizes:
        test = np.resize(data.test, (n, data.test.shape[1]))
        seconds = best_of(3, lambda: predictor.predict_set(test, significance=0.05).sizes())
        print(f"  n={n:>7,}: {1e3 * seconds:8.2f} ms, {1e6 * seconds / n:.2f} us per text")
        rows.append({"texts": n, "seconds": seconds, "us_a_text": 1e6 * seconds / n})
    return rows


def growth_with_labels(label_counts: list[int], n_texts: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    rows = []
    for d in label_counts:
        # Two sure labels per text and ten unsure ones, whatever d; the rest all but excluded.
        probabilities = rng.random((n_texts + 999, d)) * 1e-3 / d
        for row in probabilities:
            row[rng.choice(d, 12, replace=False)] = np.r_[0.95, 0.99, rng.random(10) * 0.5]
        labels = rng.random(probabilities.shape) < probabilities
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predictor = ConformalLabelSets(LogLoss(), 0, n_jobs=1).calibrate(probabilities[:999], labels[:999])
        test = probabilities[999:]
        sets = predictor.predict_set(test, significance=0.05)
        lower, upper = sets.size_bounds()
        exact = int(np.sum(lower == upper))
        seconds = best_of(3, lambda: predictor.predict_set(test, significance=0.05).size_bounds())
        forced = best_of(3, lambda: predictor.predict(test))
        print(
            f"  d={d:>6,}: sizes {1e6 * seconds / n_texts:9.1f} us per text, forced {1e6 * forced / n_texts:8.1f} us, "
            f"mean N {np.mean(lower):.1f}, {exact} of {n_texts} exact"
        )
        rows.append(
            {
                "n_labels": d,
                "texts": n_texts,
                "sizes_us_a_text": 1e6 * seconds / n_texts,
                "forced_us_a_text": 1e6 * forced / n_texts,
                "mean_size": float(np.mean(lower)),
                "exact_texts": exact,
            }
        )
    return rows


def cold_start() -> dict[str, float]:
    """Seconds in new processes, less the interpreter's own."""
    answer = (
        "import numpy as np, surelabel; r = np.random.default_rng(0); o = r.random((200, 90)) ** 20;"
        "y = r.random((200, 90)) < o; p = surelabel.ConformalLabelSets(min_labels=0).calibrate(o, y);"
        "p.predict_set(o[:1], significance=.1).sizes(); p.predict(o[:1])"
    )

    def seconds(code: str) -> float:
        return best_of(5, lambda: subprocess.run([sys.executable, "-c", code], check=True))

    subprocess.run([sys.executable, "-c", answer], check=True)
    empty = seconds("pass")
    result = {
        "interpreter": empty,
        "import_surelabel": seconds("import surelabel") - empty,
        "import_numpy": seconds("import numpy") - empty,
        "import_sklearn": seconds("import sklearn.base") - empty,
        "first_answer_warm_cache": seconds(answer) - empty,
    }
    for name, value in result.items():
        print(f"  {name}: {value:.3f} s")
    return result


def two_threads(data: Measured, n_texts: int) -> dict[str, float]:
    """Time the same work on one and on two threads."""
    test = np.resize(data.test, (n_texts, data.test.shape[1]))
    seconds = {}
    for jobs in (1, 2):
        predictor = ConformalLabelSets(LpNorm(4), 1, data.max_labels, n_jobs=jobs)
        predictor.calibrate(data.calibration, data.calibration_labels)
        seconds[jobs] = best_of(3, lambda p=predictor: p.predict_set(test, significance=0.01).size_bounds())
    print(f"  {n_texts:,} texts: {seconds[1]:.3f} s, two threads {seconds[2]:.3f} s: {seconds[1] / seconds[2]:.2f} x")
    return {"texts": n_texts, "one": seconds[1], "two": seconds[2], "ratio": seconds[1] / seconds[2]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/engine.json"))
    parser.add_argument("--reuters", help="the official archive, if you have it")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    options = parser.parse_args()
    quick = options.quick
    data = measured(options.reuters)
    print(f"Probabilities: {data.source}; max_labels {data.max_labels}")
    results: dict[str, Any] = {
        "settings": {"source": data.source, "max_labels": data.max_labels, "quick": quick, "command": sys.argv[1:]},
        "machine": {"processor": platform.processor() or platform.machine(), "python": platform.python_version()},
        "versions": {"surelabel": surelabel.__version__, "numpy": np.__version__},
    }
    print("Exact search against the Hamming ball (d = 90):")
    assert set(SEARCHES) == {"exact", "hamming-ball", "powerset"}
    predictor = ConformalLabelSets(LpNorm(2), 1, data.max_labels, n_jobs=1)
    predictor.calibrate(data.calibration, data.calibration_labels)
    predictor.predict_set(data.test[:1], significance=0.05).sizes()  # compiles
    tracemalloc.start()
    predictor.predict_set(data.test, significance=0.05).sizes()
    results["peak_memory_mib_of_sizes"] = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    results["against_hamming_ball"] = against_hamming_ball(data, 2_000_000 if quick else BALL_BUDGET)
    print("Against MuLaConf (d = 20, 200 texts):")
    results["against_mulaconf"] = against_mulaconf(data.reduced(12 if quick else 20), 50 if quick else 200)
    print("Enumeration into a preallocated array (d = 90):")
    results["enumeration"] = enumeration_rate(data, 1_000_000 if quick else 50_000_000)
    print("Time against the number of texts:")
    texts = [1000, 4000] if quick else [1000, 4000, 16_000, 64_000, 256_000]
    results["growth_with_texts"] = growth_with_texts(data, texts)
    print("Time against the number of labels:")
    results["growth_with_labels"] = growth_with_labels([100, 1000] if quick else [100, 300, 1000, 3000, 10_000], 200)
    print("Threads:")
    results["threads"] = two_threads(data, 10_000 if quick else 200_000)
    print("Cold start:")
    results["cold_start"] = cold_start()
    print(f"Peak memory added by sizes of all test texts: {results['peak_memory_mib_of_sizes']:.1f} MiB")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=1) + "\n")
    print(f"Written to {options.out}")


if __name__ == "__main__":
    main()
