from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from service_running import NAMES, KeywordClassifier, make_bundle
from surelabel import service
from surelabel.answers import answer_probabilities
from surelabel.exceptions import InvalidInputError
from surelabel.guarantees.watch import ExchangeabilityWatch
from surelabel.service.computing import BatchWork, LabelSetQuestion, SetsQuestion
from surelabel.service.sharing import ALPHA, ServiceWatch


@pytest.fixture
def times():
    return {"classifier": [], "conformal": []}


@pytest.fixture
def work(bundle, times):
    return BatchWork(bundle, times["classifier"].append, lambda *seconds: times["conformal"].append(seconds))


def test_every_question_gets_what_it_would_get_alone(work, bundle, times):
    label_set = np.zeros((1, len(NAMES)), dtype=bool)
    label_set[0, 0] = True
    questions = [
        SetsQuestion(["corn", "wheat maybe"], ("significance", "0.1"), 3),
        SetsQuestion(["trade"], ("confidence_level", 0.9), 3),
        LabelSetQuestion("corn", label_set),
        SetsQuestion(["unknown", "grain"], ("significance", "0.1"), 3),
        SetsQuestion(["grain maybe"], ("significance", "0.1"), 0),
        SetsQuestion(["grain maybe"], ("significance", "0.1"), 0, describe=True),
    ]
    found = work(questions)
    for question, answers in zip(questions, found, strict=True):
        if isinstance(question, SetsQuestion):
            probabilities = bundle.predict_proba(question.texts)
            level = {question.level[0]: question.level[1]}
            assert answers == answer_probabilities(
                bundle.predictor, probabilities, top=question.top, describe=question.describe, **level
            )
    assert found[2] == bundle.predict_p(["corn"], label_set)[0]
    assert len(times["classifier"]) == len(times["conformal"]) == 1


def test_a_question_that_cannot_be_answered_fails_alone(work):
    good = SetsQuestion(["corn"], ("significance", "0.1"), 3)
    bad = SetsQuestion(["corn"], ("significance", "1.1"), 3)
    wrong = LabelSetQuestion("corn", np.zeros((1, 3), dtype=bool))
    first, second, third = work([good, bad, wrong])
    assert first[0].labels == ("corn",)
    assert isinstance(second, InvalidInputError)
    assert isinstance(third, InvalidInputError)


class _Picky(KeywordClassifier):
    """Gives a text about trade what is no probability."""

    def predict_proba(self, texts):
        rows = super().predict_proba(texts)
        rows[[text == "trade" for text in texts]] = np.nan
        return rows


def test_of_questions_at_one_level_only_the_bad_one_fails():
    work = BatchWork(make_bundle(classifier=_Picky()), lambda _: None, lambda *_: None)
    first, second, third = work(
        [SetsQuestion([text], ("significance", "0.1"), 3) for text in ("corn", "trade", "wheat")]
    )
    assert first[0].labels == ("corn",)
    assert isinstance(second, InvalidInputError)
    assert third[0].labels == ("wheat",)


def test_the_watch_sees_texts_that_clients_were_answered_in_their_order():
    bundle = make_bundle(classifier=_Picky())
    watch = ServiceWatch(bundle.predictor)
    work = BatchWork(bundle, lambda _: None, lambda *_: None, watch)
    level = ("significance", "0.1")
    label_set = np.zeros((1, len(NAMES)), dtype=bool)
    texts = [["corn", "wheat maybe"], ["trade"], ["grain"]]
    questions = [SetsQuestion(each, level, 3) for each in texts]
    work([SetsQuestion(["warm-up"], level, 3, is_served=False), LabelSetQuestion("corn", label_set), *questions])
    expected = ExchangeabilityWatch(alpha=ALPHA, predictor=bundle.predictor, watched="predictions")
    expected.update_unlabelled(bundle.predict_proba(["corn", "wheat maybe", "grain"]))
    assert watch.state().n_seen == 3
    assert watch.state().log10_martingale == expected.state.log10_martingale


def test_texts_that_are_unlike_those_of_calibration_from_the_first_on_raise_the_alarm(bundle):
    same = bundle.predict_proba(["corn", "wheat", "grain maybe", "trade"])
    other = bundle.predict_proba(["unknown"] * 4)
    forced = bundle.predictor.totals(np.repeat(same, 50, axis=0))
    for scores, alarm in ((None, False), (forced, True)):
        watch = ServiceWatch(bundle.predictor, scores)
        for _ in range(50):
            watch.update(other)
        assert watch.state().alarm == alarm


def test_a_watch_that_fails_fails_no_answer(bundle, caplog, monkeypatch):
    watch = ServiceWatch(bundle.predictor)
    monkeypatch.setattr(watch, "update", lambda probabilities: 1 / 0)
    work = BatchWork(bundle, lambda _: None, lambda *_: None, watch)
    assert work([SetsQuestion(["corn"], ("significance", "0.1"), 3)])[0][0].labels == ("corn",)
    assert "The watch failed on 1 texts" in caplog.text


def test_a_change_raises_the_alarm_once_from_many_threads_too(bundle, caplog):
    watch = ServiceWatch(bundle.predictor)
    same = bundle.predict_proba(["corn", "wheat", "grain maybe", "trade"])
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(watch.update, [same] * 50))
    assert (watch.state().n_seen, watch.state().alarm) == (200, False)
    other = bundle.predict_proba(["unknown"] * 4)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(watch.update, [other] * 50))
    assert (watch.state().n_seen, watch.state().alarm) == (400, True)
    assert caplog.text.count("Alarm at text") == 1


class _Short(KeywordClassifier):
    def predict_proba(self, texts):
        return super().predict_proba(texts)[1:]


def test_a_classifier_that_loses_rows_is_an_error():
    work = BatchWork(make_bundle(classifier=_Short()), lambda _: None, lambda *_: None)
    with pytest.raises(RuntimeError, match="0 rows for 1 texts"):
        work([SetsQuestion(["corn"], ("significance", "0.1"), 3)])


def test_public_names():
    assert service.__all__ == ["ReviewPlan", "ServiceSettings", "create_app", "run"]
    with pytest.raises(AttributeError, match="has no attribute"):
        service.nothing  # noqa: B018
