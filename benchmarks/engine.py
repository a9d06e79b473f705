"""The engine's speed beside another checkout of this project: the two take turns at every question.

    python benchmarks/engine.py --before PATH FOLDER/reuters.npz ... [--turns 9] [--out results/engine.json]

Files are those of `probabilities.py`. Each version runs in a process of its own, one thread, on the same first test
texts. Figures are processor time per text, medians over the turns; `speed` is the median of the ratios of the two
versions in one turn, so that other work on the machine changes it little. The paper's Hamming ball is timed beside the
exact search by the paper's t. `--worker` is how the script calls itself.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from probabilities import load

LEVELS, MAX_LABELS, SETTINGS = ("0.05", "0.01"), 15, (0.9, 0.5, 1.0)
# Texts of questions that take long, and balls that the slower version can score.
FEW, MOST_BALL, BALLS = 50, 3_000_000, 3
# Shortest time that one turn takes.
LEAST_SECONDS = 0.02


def questions_about(rows, n_texts):
    """Return what is timed, by name: calls without arguments, and how many texts each is about."""
    import surelabel
    from surelabel import ConformalLabelSets, LogLoss, LpNorm
    from surelabel.measures.mixture import Mixture

    test, true, asked = rows["test"][:n_texts], rows["test_labels"][:n_texts], {}
    mixture = Mixture(*SETTINGS).fit(rows["train_labels"])
    for name, measure in {"L2": LpNorm(2), "L8": LpNorm(8), "LogLoss": LogLoss(), "Mixture": mixture}.items():
        predictor = ConformalLabelSets(measure, 1, MAX_LABELS, n_jobs=1)
        predictor.calibrate(rows["calibration"], rows["calibration_labels"])
        asked[f"{name}, best guess"] = functools.partial(predictor.predict, test), len(test)
        for level in LEVELS:

            def sets(n=None, predictor=predictor, level=level):
                return predictor.predict_set(test[:n], significance=level)

            asked[f"{name}, size at {level}"] = lambda sets=sets: sets().size_bounds(), len(test)
            asked[f"{name}, contains at {level}"] = lambda sets=sets: sets().contains(true), len(test)
            asked[f"{name}, 5 best members at {level}"] = (
                lambda sets=sets: [one.top(5) for one in sets(2 * FEW)],
                2 * FEW,
            )
        if name != "Mixture":
            criteria = surelabel.metrics.s_criterion, surelabel.metrics.of_criterion
            asked[f"{name}, S"] = functools.partial(criteria[0], predictor, test[:FEW]), FEW
            asked[f"{name}, OF"] = functools.partial(criteria[1], predictor, test[:FEW], true[:FEW]), FEW
        asked[f"{name}, one answer"] = functools.partial(answer_all, predictor, test[:FEW]), FEW
    return asked


def answer_all(predictor, test):
    """Answer texts one by one: best guess, label status and best members, as `predict` and the service do."""
    try:
        from surelabel.answers import build_answers as answer
    except ImportError:
        from surelabel.answers import answer_probabilities as answer
    for row in range(len(test)):
        answer(predictor, test[row : row + 1], significance="0.05")


def balls_in(rows, radii):
    """Return what is timed by the paper's t: the Hamming ball and the exact search on the same texts."""
    from surelabel import ConformalLabelSets, LpNorm

    asked = {}
    for level, by_text in radii.items():
        for t in sorted(set(by_text) - {-1}):
            test = rows["test"][np.flatnonzero(np.array(by_text) == t)[:BALLS]]
            for search in ("hamming-ball", "exact"):
                predictor = ConformalLabelSets(LpNorm(2), 1, MAX_LABELS, search=search, n_jobs=1)
                predictor.calibrate(rows["calibration"], rows["calibration_labels"])

                def sizes(predictor=predictor, test=test, level=level):
                    return predictor.predict_set(test, significance=level).size_bounds()

                asked[f"{search}, t = {t}, at {level}"] = sizes, len(test)
    return asked


def find_radii(rows, n_texts, most):
    """Return the paper's t of each text by level, -1 where the ball has more than `most` label-sets."""
    from surelabel import ConformalLabelSets, LpNorm

    predictor = ConformalLabelSets(LpNorm(2), 1, MAX_LABELS).calibrate(rows["calibration"], rows["calibration_labels"])
    demands = {level: predictor.predict_set(rows["test"][:n_texts], significance=level).demand() for level in LEVELS}
    return {
        level: [int(t) if ball <= most else -1 for t, ball in zip(demand.radii, demand.ball, strict=True)]
        for level, demand in demands.items()
    }


def answer_cold():
    """Return the processor time of the first answer, and of compiling all searches, with an empty kernel cache."""
    from surelabel import ConformalLabelSets, LogLoss
    from surelabel.measures.mixture import Mixture

    with contextlib.suppress(ImportError):
        # A version that runs small jobs without compiling is told to compile.
        from surelabel._kernels.compiling import compile_at_once

        compile_at_once()
    rng = np.random.default_rng(0)
    probabilities = rng.random((60, 12))
    labels = rng.random(probabilities.shape) < probabilities
    labels[~labels.any(axis=1), 0] = True
    start = time.process_time()
    predictor = ConformalLabelSets(LogLoss(), n_jobs=1).calibrate(probabilities, labels)
    predictor.predict(probabilities[:1])
    one = predictor.predict_set(probabilities[:1], significance="0.1")[0]
    one.top(5), one.size_bounds, one.certain
    first = time.process_time() - start
    for options in ({"measure": Mixture(0.5).fit(labels)}, {"search": "hamming-ball"}):
        calibrated = ConformalLabelSets(**options).calibrate(probabilities, labels)
        calibrated.predict_set(probabilities, significance="0.1").sizes()
    return {"first answer": first, "all searches": time.process_time() - start}


def work(arguments):
    """Answer the lines of the parent process: a question and how often it is asked, by the processor time."""
    warnings.simplefilter("ignore")
    what, path, n_texts, *more = arguments
    if what == "cold":
        print(json.dumps(answer_cold()), flush=True)
        return
    rows = load(path)
    asked = questions_about(rows, int(n_texts)) if what == "rows" else balls_in(rows, json.loads(more[0]))
    print(json.dumps({name: n for name, (_, n) in asked.items()}), flush=True)
    for line in sys.stdin:
        name, times = json.loads(line)
        start = time.process_time()
        for _ in range(times):
            asked[name][0]()
        print(json.dumps(time.process_time() - start), flush=True)


class Version:
    """A checkout at work in a process of its own."""

    def __init__(self, checkout, *arguments, cache=None):
        environment = os.environ | {"PYTHONPATH": f"{checkout}/src", "OMP_NUM_THREADS": "1"}
        environment |= {"NUMBA_CACHE_DIR": cache} if cache else {}
        command = [sys.executable, __file__, "--worker", *map(str, arguments)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, env=environment, **pipes)
        self.questions = json.loads(self.process.stdout.readline())

    def ask(self, name, times):
        """Return the processor seconds of one question, asked a number of times."""
        self.process.stdin.write(json.dumps([name, times]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline()) / times

    def close(self):
        """End the process."""
        self.process.stdin.close()
        self.process.wait()


def take_turns(versions, turns):
    """Return microseconds per text by question: before, now, and how many times as fast."""
    table = {}
    for name, n_texts in versions[0].questions.items():
        for version in versions:
            version.ask(name, 1)  # compiled, and in memory
        times = [max(1, round(LEAST_SECONDS / max(version.ask(name, 1), 1e-6))) for version in versions]
        pairs = [[v.ask(name, n) for v, n in zip(versions, times, strict=True)] for _ in range(turns)]
        before, now = (1e6 * float(np.median(side)) / n_texts for side in zip(*pairs, strict=True))
        speed = float(np.median([old / new for old, new in pairs]))
        table[name] = {"before": before, "now": now, "speed": speed}
        print(f"  {name:34} {before:14.2f} {now:12.2f} us   {speed:8.2f} times as fast", flush=True)
    return table


def compare(checkouts, path, n_texts, turns):
    """Return figures of both versions on one file, and of the ball beside the exact search by t."""
    table = {}
    radii = json.dumps(find_radii(load(path), n_texts, MOST_BALL))
    for arguments in (("rows", path, n_texts), ("balls", path, n_texts, radii)):
        versions = [Version(checkout, *arguments) for checkout in checkouts]
        table |= take_turns(versions, turns if arguments[0] == "rows" else max(1, turns // 3))
        for version in versions:
            version.close()
    return table


def compare_searches(path, n_texts, turns):
    """Return what the ball takes beside the exact search in this version, by the paper's t, largest balls included."""
    rows, table = load(path), {}
    asked = balls_in(rows, find_radii(rows, n_texts, 56_000_000))
    for name, (ball, n) in asked.items():
        if not name.startswith("hamming-ball"):
            continue
        exact = asked[name.replace("hamming-ball", "exact")][0]
        ratios, figures = [], []
        for turn in range(turns + 1):
            seconds = []
            for question in (ball, exact):
                times, start = 0, time.process_time()
                while times == 0 or time.process_time() - start < LEAST_SECONDS:
                    question()
                    times += 1
                seconds.append((time.process_time() - start) / times / n)
            if turn:
                ratios.append(seconds[0] / seconds[1])
                figures.append(seconds)
        ball_time, exact_time = (1e6 * float(v) for v in np.median(figures, axis=0))
        found = {"texts": n, "ball": ball_time, "exact": exact_time, "exact is faster": float(np.median(ratios))}
        table[name.removeprefix("hamming-ball, ")] = found
        print(f"  {name:34} ball {ball_time:12.2f} exact {exact_time:9.2f} us, {found['exact is faster']:9.1f} times")
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("probabilities", nargs="*", type=Path, help="files of probabilities.py")
    parser.add_argument("--before", required=True, help="another checkout")
    parser.add_argument("--texts", type=int, default=1000, help="test texts")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--cold-runs", type=int, default=3, help="runs with an empty kernel cache")
    parser.add_argument("--out", type=Path, help="JSON file")
    options = parser.parse_args()
    checkouts = options.before, Path(__file__).resolve().parents[1]
    results = {
        "settings": {
            "levels": LEVELS,
            "max_labels": MAX_LABELS,
            "mixture": SETTINGS,
            "texts": options.texts,
            "turns": options.turns,
            "unit": "microseconds of processor time per text",
        },
        "machine": {"processor": platform.processor(), "python": platform.python_version(), "numpy": np.__version__},
    }
    with tempfile.TemporaryDirectory() as folder:
        cold = {
            name: [
                Version(checkout, "cold", "", 0, cache=f"{folder}/{name}{turn}").questions
                for turn in range(options.cold_runs)
            ]
            for name, checkout in zip(("before", "now"), checkouts, strict=True)
        }
    results["compiling"] = {
        name: {what: float(np.median([one[what] for one in runs])) for what in runs[0]} for name, runs in cold.items()
    }
    print("compiling, processor seconds:", results["compiling"], flush=True)
    for path in options.probabilities:
        print(path.stem, flush=True)
        results[path.stem] = compare(checkouts, path.resolve(), options.texts, options.turns)
        results[f"{path.stem}, searches"] = compare_searches(path, options.texts, options.turns)
    if options.out:
        options.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    work(sys.argv[2:]) if sys.argv[1:2] == ["--worker"] else main()
