"""Compiled kernels: cold and warm, with checked indices, without a cache; and the length of one answer's path."""

import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from core.problems import draw_texts
from surelabel import ByGroup, ConformalLabelSets, LogLoss
from surelabel.answers import build_answers
from surelabel.guarantees.decisions import Evidence, FilingPolicy

HERE = Path(__file__).parents[1]
ANSWERS = """
import sys, warnings
import numpy as np
import pytest
from core.problems import draw_texts
from surelabel import ConformalLabelSets, LogLoss, LpNorm, Mixture, Shortlists
warnings.simplefilter("ignore")
for n, d in ((5, 3), (60, 40)):
    probabilities, labels = draw_texts(n, d)
    probabilities[1] = 0.5
    for measure in (LpNorm(2), LogLoss(), Mixture(0.7).fit(labels)):
        predictor = ConformalLabelSets(measure, n_jobs=1).calibrate(probabilities, labels)
        print(predictor.predict(probabilities).confidence.tolist())
        for level in ("0.001", "0.1", "0.9"):
            sets = predictor.predict_set(probabilities[:7], significance=level)
            print([size.tolist() for size in sets.size_bounds()], sets.top(3), [s.sum() for s in sets.status()])
    short = Shortlists.from_dense(probabilities, 3)
    predictor = ConformalLabelSets(n_jobs=1).calibrate(short, labels)
    print(predictor.predict_set(short, significance="0.001").sizes().tolist())
    if d < 10:
        for search in ("hamming-ball", "powerset"):
            predictor = ConformalLabelSets(search=search).calibrate(probabilities, labels)
            print(predictor.predict_set(probabilities, significance="0.001").sizes().tolist())
"""


def run(code, **environment):
    """Return what a process with another environment prints."""
    paths = os.pathsep.join([str(HERE), *sys.path])
    # Compiled, even where the tests themselves run kernels as Python functions.
    own = {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "NUMBA_DISABLE_JIT": "0"}
    full = os.environ | own | environment
    done = subprocess.run([sys.executable, "-c", code], env=full, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_cold_kernels_answer_as_warm_ones_and_stay_within_bounds(tmp_path):
    # Cold, and with every access checked: numba raises if one is out of bounds.
    cold = run(ANSWERS, NUMBA_CACHE_DIR=str(tmp_path), NUMBA_BOUNDSCHECK="1")
    assert any(tmp_path.rglob("*.nbi"))
    assert run(ANSWERS) == cold


@pytest.mark.slow
def test_processes_that_compile_at_once_agree(tmp_path):
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda _: run(ANSWERS, NUMBA_CACHE_DIR=str(tmp_path)), range(3)))
    assert answers == [run(ANSWERS, NUMBA_CACHE_DIR=str(tmp_path))] * 3


def test_a_cache_that_cannot_be_written_breaks_nothing(tmp_path):
    code = """
import numba, tempfile
from pathlib import Path
from unittest import mock
def refuse(*arguments, **options):
    raise RuntimeError("no locator available")
with mock.patch("numba.core.caching.FunctionCache.__init__", refuse):
    from surelabel._kernels import compile
    assert not compile.IS_KEPT
    import numpy as np
    adder = compile.kernel(lambda values: values.sum())
    assert adder(np.ones(3)) == 3.0
"""
    run(code, TMPDIR=str(tmp_path))


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="kernels are Python functions then")
@pytest.mark.parametrize(
    ("asked", "by_decision", "most_frames"),
    [({}, False, 90), ({"significance": "0.3"}, False, 150), ({"significance": "0.3"}, True, 150)],
)
def test_one_answer_takes_a_short_path(asked, by_decision, most_frames):
    probabilities, labels = draw_texts(999, 20)
    probabilities, names = probabilities**3, [f"label {k}" for k in range(20)]
    parts = [slice(0, 400), slice(400, 700), slice(700, 999)]
    known = [Evidence(probabilities[part], labels[part]) for part in parts]
    with warnings.catch_warnings(action="ignore"):
        policy = FilingPolicy(label_names=names).calibrate(*known[:2])
        groups = policy.categories(policy.file(known[2].probabilities)) if by_decision else None
        options = {"label_names": names, "taxonomy": ByGroup() if by_decision else None, "n_jobs": 1}
        predictor = ConformalLabelSets(LogLoss(), **options).calibrate(*known[2][:2], groups=groups)
    calls = []

    def note(frame, event, argument):
        if event == "call" and "surelabel" in frame.f_code.co_filename:
            calls.append(frame.f_code.co_filename)

    def answer():
        return build_answers(predictor, probabilities[:1], policy=policy, by_decision=by_decision, **asked)

    answer()
    sys.setprofile(note)
    try:
        answer()
    finally:
        sys.setprofile(None)
    # Checks, costs, the search, calibration, the policy and its lists, answers: from probabilities to decision.
    assert len(calls) <= most_frames
    assert len(set(calls)) <= 12


def test_rows_of_any_width_and_limits():
    for d in (1, 31, 32, 33, 64, 65):
        probabilities, labels = draw_texts(30, d, seed=d)
        predictor = ConformalLabelSets(min_labels=0).calibrate(probabilities, labels)
        one = predictor.predict_set(probabilities[:1], significance="0.5")[0]
        members = one.to_array(100) if one.size_bounds[1] <= 100 else predictor.predict(probabilities[:1]).labels
        scores = predictor.scores(np.repeat(probabilities[:1], len(members), axis=0), members)
        assert (np.diff(scores) >= 0).all()
