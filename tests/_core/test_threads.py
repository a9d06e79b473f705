"""Many threads, many blocks, many batch sizes: one answer."""

import concurrent.futures

import numpy as np
import pytest

import cases
from surelabel import ConformalLabelSets, LogLoss, LpNorm
from surelabel._core.threads import over_rows, threads_to_use
from surelabel.metrics import s_criterion

RNG = np.random.default_rng(0)
PROBABILITIES = RNG.beta(0.3, 1.0, (2600, 12))
LABELS = RNG.random((2600, 12)) < PROBABILITIES


def _predictor(measure, n_jobs, search="exact"):
    with cases.calibration_warnings_ignored():
        return ConformalLabelSets(measure, search=search, n_jobs=n_jobs).calibrate(PROBABILITIES[:300], LABELS[:300])


def _answers(predictor, probabilities, labels):
    forced = predictor.predict(probabilities)
    sets = predictor.predict_set(probabilities, significance=0.05)
    return [
        forced.labels.tobytes(),
        forced.confidence.tobytes(),
        forced.credibility.tobytes(),
        predictor.predict_p(probabilities, labels).tobytes(),
        sets.sizes().tobytes(),
        sets.contains(labels).tobytes(),
        sets[0].top(5),
        s_criterion(predictor, probabilities[:50]).excess_lower.tobytes(),
    ]


@pytest.mark.parametrize("measure", [LpNorm(2), LpNorm(1.5), LogLoss(), LpNorm(float("inf"))], ids=repr)
def test_the_number_of_threads_changes_nothing(measure):
    expected = _answers(_predictor(measure, 1), PROBABILITIES, LABELS)
    for n_jobs in (2, 4, None):
        assert _answers(_predictor(measure, n_jobs), PROBABILITIES, LABELS) == expected


@pytest.mark.parametrize("search", cases.SEARCH_NAMES)
def test_searches_agree_over_blocks_and_threads(search):
    sizes = _predictor(LpNorm(2), 2, search).predict_set(PROBABILITIES[:1500], significance=0.1).sizes()
    exact = _predictor(LpNorm(2), 1).predict_set(PROBABILITIES[:1500], significance=0.1).sizes()
    assert sizes.tolist() == exact.tolist()


@pytest.mark.parametrize("measure", [LpNorm(2), LpNorm(1.5), LogLoss()], ids=repr)
def test_batch_sizes_change_nothing(measure):
    predictor = _predictor(measure, 2)
    forced = predictor.predict(PROBABILITIES)
    sizes = predictor.predict_set(PROBABILITIES, significance=0.05).sizes()
    p_values = predictor.predict_p(PROBABILITIES, LABELS)
    for batch in (1, 7, 1023, 1025):
        for start in range(0, 2600 if batch > 100 else 20, batch):
            rows = slice(start, start + batch)
            part = predictor.predict(PROBABILITIES[rows])
            assert part.labels.tobytes() == forced.labels[rows].tobytes()
            assert part.confidence.tobytes() == forced.confidence[rows].tobytes()
            assert predictor.predict_p(PROBABILITIES[rows], LABELS[rows]).tobytes() == p_values[rows].tobytes()
            sets = predictor.predict_set(PROBABILITIES[rows], significance=0.05)
            assert sets.sizes().tolist() == sizes[rows].tolist()


def test_one_predictor_called_from_many_threads_gives_the_same_answers():
    predictor = _predictor(LpNorm(2), 2)
    blocks = [slice(start, start + 1300) for start in (0, 650, 1300)]
    expected = [_answers(predictor, PROBABILITIES[rows], LABELS[rows]) for rows in blocks]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(_answers, predictor, PROBABILITIES[rows], LABELS[rows]) for rows in blocks * 4]
        answers = [future.result() for future in asked]
    assert answers == expected * 4


def test_one_result_read_from_many_threads_gives_the_same_answers():
    sets = _predictor(LpNorm(2), 1).predict_set(PROBABILITIES[:200], significance=0.05)
    other = _predictor(LpNorm(2), 1).predict_set(PROBABILITIES[:200], significance=0.05)
    expected = [(one.size, one.top(3)) for one in other]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda i: (sets[i].size, sets[i].top(3)), list(range(200)) * 3))
    assert answers == expected * 3


def test_row_blocks_come_back_in_order_and_errors_come_out():
    assert over_rows(lambda rows: rows.start, 3000, 2) == [0, 1024, 2048]

    def fail(rows):
        raise KeyError(rows.start)

    with pytest.raises(KeyError):
        over_rows(fail, 3000, 2)


def test_threads_are_as_asked_then_by_setting_then_by_cores(monkeypatch):
    monkeypatch.setenv("SURELABEL_NUM_THREADS", "3")
    assert threads_to_use(5) == 5
    assert threads_to_use(None) == 3
    monkeypatch.setenv("SURELABEL_NUM_THREADS", "none")
    assert threads_to_use(None) >= 1
    monkeypatch.delenv("SURELABEL_NUM_THREADS")
    assert threads_to_use(None) >= 1
