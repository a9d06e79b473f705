"""Generations: what trains and what calibrates, waiting, release, undo, kills, and the watch over audits."""

import dataclasses
import json
import re
import shutil
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

import surelabel
from surelabel import corpora
from surelabel.cli import app
from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.models import load_bundle
from surelabel.review import NewText, ReviewSettings, ReviewStore, add_texts, audits, background, learn
from surelabel.tables.columns import TextRow

# Few audits are needed at these levels: 19 for lists, and 33 for filing.
LEVELS = {"max_missed": "0.5", "max_wrong": "0.4", "assurance": "0.8"}


@pytest.fixture(scope="module")
def corpus():
    whole = corpora.load("synthetic", n_texts=700, n_labels=5, seed=3)
    return whole.rows(np.arange(300))


@pytest.fixture(scope="module")
def arriving():
    """Texts that arrive later, with their labels."""
    whole = corpora.load("synthetic", n_texts=700, n_labels=5, seed=3)
    return whole.rows(np.arange(300, 700))


@pytest.fixture(scope="module")
def trained(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "model"
    surelabel.train(corpus, measure="log-loss", **LEVELS).save(folder)
    return folder


@pytest.fixture
def model(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "model")


@pytest.fixture
def store(tmp_path):
    with ReviewStore(tmp_path / "reviews.sqlite") as store:
        yield store


def arrive(model, store, arriving, rows, check_share):
    texts = [TextRow(row, f"t{row}", arriving.texts[row]) for row in rows]
    add_texts(load_bundle(model), store, texts, ReviewSettings(check_share=check_share))


def decide(store, arriving, n=500, *, odd=True):
    """Decide pending texts by the truth; `odd` ones have a label that no model knows, so that nothing can be filed."""
    truth = dict(zip(arriving.texts, arriving.label_sets, strict=True))
    for queue in ("choose", "read", "check", "filed"):
        for text in store.lease("ann", queue, n):
            more = {"rare"} if odd and text.number % 2 else set()
            store.decide(f"key {text.number}", text.number, "ann", sorted(truth[text.text] | more))


@pytest.fixture
def reviewed(model, store, arriving):
    """Forty decided texts, half of them audits."""
    arrive(model, store, arriving, range(20), 0)
    arrive(model, store, arriving, range(20, 40), 1)
    decide(store, arriving)
    return store


def test_numbers_of_audits_follow_from_the_levels():
    assert learn.audits_needed() == learn.Needed(lists=99, filing=336)
    assert learn.audits_needed("0.05", "0.1") == learn.Needed(lists=199, filing=167)
    needed = learn.audits_needed(**LEVELS)
    assert needed == learn.Needed(lists=19, filing=33)
    # Ten wrong of so many still certify, and of one fewer they do not.
    assert stats.binom.cdf(10, needed.filing, 0.4) <= 0.2 < stats.binom.cdf(10, needed.filing - 1, 0.4)


def test_a_generation_from_training_to_the_switch_and_back(model, reviewed, arriving, corpus, tmp_path):
    out = tmp_path / "next"
    found = learn.learn(model, reviewed, out, corpus)
    assert (found.state, found.n_decided, found.filing, found.lists) == ("waiting", 40, 0, 0)
    with pytest.raises(InvalidInputError, match="ready"):
        learn.switch(model, out)
    frozen = load_bundle(out / "frozen")
    assert frozen.seen.is_in("training", arriving.texts[:40]).all()
    # The old generation serves; audits after the freeze come in.
    arrive(model, reviewed, arriving, range(40, 60), 1)
    arrive(model, reviewed, arriving, range(60, 80), 0)
    decide(reviewed, arriving)
    assert learn.learn(model, reviewed, out).filing == 20
    arrive(model, reviewed, arriving, range(80, 300), 1)
    decide(reviewed, arriving)
    found = learn.learn(model, reviewed, out)
    assert found.state == "ready"
    assert learn.status(out, reviewed).state == "ready"
    ready = load_bundle(out / "next")
    assert len(ready.filing) == 33
    filed = ready.policy.file(ready.calibration.probabilities, ready.calibration.known_words)
    assert (~filed).sum() == ready.policy.n_seen_ == 19
    drawn = [*arriving.texts[40:60], *arriving.texts[80:300]]
    assert ready.seen.is_in("filing", drawn)[:33].all()
    assert not ready.seen.is_in("calibration", [*arriving.texts[:40], *arriving.texts[60:80], *corpus.texts]).any()
    # Its classifier is the frozen one, bit for bit.
    assert np.array_equal(ready.predict_proba(drawn), frozen.predict_proba(drawn))
    before, after = (model / "manifest.json").read_bytes(), (out / "next" / "manifest.json").read_bytes()
    learn.switch(model, out)
    assert (model / "manifest.json").read_bytes() == after
    learn.undo_switch(model)
    assert (model / "manifest.json").read_bytes() == before
    learn.undo_switch(model)
    assert (model / "manifest.json").read_bytes() == after
    # And the generation after it learns from this one, with the audits that calibrated it.
    assert learn.learn(model, reviewed, tmp_path / "third", corpus).n_decided == 300


def test_accepted_suggestions_and_other_decisions_never_calibrate(model, reviewed, arriving, corpus, tmp_path):
    learn.learn(model, reviewed, tmp_path / "next", corpus)
    arrive(model, reviewed, arriving, range(40, 240), 0)
    decide(reviewed, arriving)
    found = learn.learn(model, reviewed, tmp_path / "next")
    assert (found.state, found.filing, found.lists) == ("waiting", 0, 0)


def test_audits_before_the_freeze_train_and_never_calibrate(model, store, arriving, corpus, tmp_path):
    arrive(model, store, arriving, range(100), 1)
    decide(store, arriving, n=50)
    assert learn.learn(model, store, tmp_path / "next", corpus).filing == 0
    decide(store, arriving)  # drawn before the freeze, decided after it: neither trains nor calibrates
    found = learn.learn(model, store, tmp_path / "next")
    assert (found.n_decided, found.filing) == (50, 0)


def test_a_pending_audit_holds_back_those_behind_it_and_a_skipped_one_is_an_error(store):
    answer = {"decision": "choose", "labels": ["oil"]}
    store.add([NewText(str(number), f"text {number}", answer, is_check=True) for number in range(5)])
    texts = store.lease("ann", "check")
    for text in (texts[0], texts[1], texts[3]):
        store.decide(str(text.number), text.number, "ann", ["oil"])
    assert [text.id for text in audits.audits_of(store)] == ["0", "1"]
    store.decide("skip", texts[2].number, "ann", None)
    assert [text.id for text in audits.audits_of(store)] == ["0", "1", "2", "3"]
    assert [text.id for text in audits.audits_of(store, after=texts[0].number)] == ["1", "2", "3"]


def test_skipped_audits_have_a_label_that_no_model_knows(model, store, arriving):
    arrive(model, store, arriving, range(2), 1)
    first, second = store.lease("ann", "check")
    store.decide("1", first.number, "ann", ["oil"])
    store.decide("2", second.number, "ann", None)
    bundle = load_bundle(model)
    held = audits.audited(bundle, audits.audits_of(store))
    assert held.label_sets[0] == frozenset({"oil"})
    assert not held.label_sets[1] & set(bundle.label_names)
    assert held.label_sets[1]


def test_what_cannot_learn_is_refused(model, store, reviewed, corpus, arriving, tmp_path):
    with ReviewStore(tmp_path / "empty.sqlite") as empty, pytest.raises(InvalidInputError, match="decided"):
        learn.learn(model, empty, tmp_path / "none", corpus)
    with pytest.raises(InvalidInputError, match="texts that the model was trained on"):
        learn.learn(model, store, tmp_path / "none")
    with pytest.raises(InvalidInputError, match="not what the model was trained on"):
        learn.learn(model, store, tmp_path / "none", arriving.rows(np.arange(200, 300)))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("precious")
    with pytest.raises(InvalidInputError, match="something other"):
        learn.learn(model, store, tmp_path / "full", corpus)
    (tmp_path / "none" / "generation.json").write_text("{")
    with pytest.raises(ArtifactError):
        learn.status(tmp_path / "none", store)
    with pytest.raises(InvalidInputError, match="before it"):
        learn.undo_switch(model)
    assert learn.status(tmp_path / "absent", store).state == "absent"


def test_a_damaged_generation_is_not_switched_to(model, tmp_path):
    shutil.copytree(model, tmp_path / "next" / "next")
    (tmp_path / "next" / "next" / "bundle.json").write_text("{}")
    before = (model / "manifest.json").read_bytes()
    with pytest.raises(ArtifactError):
        learn.switch(model, tmp_path / "next")
    assert (model / "manifest.json").read_bytes() == before
    load_bundle(model)


@pytest.fixture
def table(corpus, tmp_path):
    """The training texts in a file."""
    path = tmp_path / "texts.jsonl"
    rows = zip(corpus.texts, corpus.label_sets, strict=True)
    path.write_text("".join(json.dumps({"text": text, "labels": sorted(labels)}) + "\n" for text, labels in rows))
    return path


def finished(learner):
    learner._process.wait()
    learner._follower.join()


def test_learning_in_the_background_continues_after_a_kill_and_ends_with_a_switch(
    model, url, arriving, table, tmp_path
):
    with ReviewStore(url) as store:
        arrive(model, store, arriving, range(20), 0)
        arrive(model, store, arriving, range(20, 40), 1)
        decide(store, arriving)
        learner = background.Learner(model, url, str(table))
        assert learner.state(store)["state"] == "absent"
        learner.start()
        while not learner._last:
            assert learner.is_running
            time.sleep(0.05)
        learner._process.kill()
        finished(learner)
        assert "continues" in learner.state(store)["problem"]
        load_bundle(model)
        learner.start()
        learner.start()  # once is enough
        with pytest.raises(InvalidInputError, match="still learning"):
            learner.switch()
        finished(learner)
        state = learner.state(store)
        assert (state["state"], state["n_decided"], state["problem"], state["can_undo"]) == ("waiting", 40, None, False)
        arrive(model, store, arriving, range(40, 300), 1)
        decide(store, arriving)
        # Another process of the service, which knows no training texts, can continue.
        learner = background.Learner(model, url)
        learner.start()
        finished(learner)
        state = learner.state(store)
        assert (state["state"], state["filing"], state["lists"]) == ("ready", 33, 19)
        before = (model / "manifest.json").read_bytes()
        learner.switch()
        assert (model / "manifest.json").read_bytes() != before
        assert (learner.state(store)["state"], learner.state(store)["can_undo"]) == ("absent", True)
        learner.undo()
        assert (model / "manifest.json").read_bytes() == before


def test_a_problem_of_learning_in_the_background_is_told(model, store, table, tmp_path):
    learner = background.Learner(model, tmp_path / "reviews.sqlite", str(table))
    learner.start()
    finished(learner)
    assert "decided" in learner.state(store)["problem"]


@pytest.mark.parametrize("step", [1, 2])
def test_a_switch_that_is_killed_leaves_a_whole_model(model, tmp_path, step):
    """Each of its two replacements is one step; killed after either, a model serves, and the switch can go on."""
    bundle = load_bundle(model)
    dataclasses.replace(bundle, info=dataclasses.replace(bundle.info, name="newer")).save(tmp_path / "next" / "next")
    code = textwrap.dedent(f"""
        import os
        from surelabel.review import learn
        replace, done = learn._replace, []
        def once(*given):
            replace(*given)
            done.append(given)
            if len(done) == {step}:
                os.kill(os.getpid(), 9)
        learn._replace = once
        learn.switch({str(model)!r}, {str(tmp_path / "next")!r})
    """)
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -9
    assert load_bundle(model).info.name == (bundle.info.name if step == 1 else "newer")
    assert load_bundle(learn.previous_of(model)).info.name == bundle.info.name
    assert learn.switch(model, tmp_path / "next").info.name == "newer"
    assert not (tmp_path / "next").exists()
    assert learn.undo_switch(model).info.name == bundle.info.name
    assert learn.undo_switch(model).info.name == "newer"


def test_a_service_goes_on_with_the_other_model_after_a_switch(model, reviewed, tmp_path):
    httpx = pytest.importorskip("httpx")
    bundle = load_bundle(model)
    out = tmp_path / "model.next"
    dataclasses.replace(bundle, info=dataclasses.replace(bundle.info, name="newer")).save(out / "next")
    plan = {"retrain": True, "up_to": 40, "n_decided": 40, "needed": {"lists": 19, "filing": 33}}
    (out / "generation.json").write_text(json.dumps(plan))
    command = ["review", str(model), "--store", str(tmp_path / "reviews.sqlite"), "--port", "0"]
    with subprocess.Popen([sys.executable, "-m", "surelabel", *command], stderr=subprocess.PIPE, text=True) as process:
        try:
            line = next(line for line in process.stderr if "Serving on" in line)
            url = re.search(r"http://[^/]*", line)[0]
            threading.Thread(target=process.stderr.read, daemon=True).start()
            with httpx.Client(base_url=url, timeout=None) as client:
                for action, name in (("switch", "newer"), ("undo", bundle.info.name)):
                    assert client.post("/v1/review/learning", json={"action": action}).status_code == 200
                    # The service of before may still answer once.
                    while _name(client) != name:
                        assert process.poll() is None
                        time.sleep(0.05)
        finally:
            process.terminate()


def _name(client):
    """The name of the model that serves, None while the service starts again."""
    import httpx

    try:
        return client.get("/v1/model").json()["name"]
    except httpx.TransportError:  # the connection belonged to the service before
        return None


def test_the_watch_stops_filing_when_audits_are_unlike_the_calibration_texts(model, store, arriving):
    bundle = load_bundle(model)
    arrive(model, store, arriving, range(60), 1)
    decide(store, arriving, odd=False)
    calm = audits.watch_audits(bundle, store)
    assert (calm.n_audits, calm.alarm, calm.alarm_at) == (60, False, None)
    assert audits.may_file(bundle, store)
    odd = [
        NewText(f"odd {number}", f"nothing known {number}", {"decision": "file", "labels": []}, is_check=True)
        for number in range(60)
    ]
    store.add(odd)
    for text in store.lease("ann", "check", 100):
        store.decide(f"odd {text.number}", text.number, "ann", ["a label that is new"])
    alarmed = audits.watch_audits(bundle, store)
    assert alarmed.alarm
    assert alarmed.alarm_at > 60
    assert not audits.may_file(bundle, store)


def test_after_an_alarm_audits_from_now_on_calibrate_the_same_classifier(model, reviewed, arriving, tmp_path):
    out = tmp_path / "again"
    assert learn.learn(model, reviewed, out, retrain=False).state == "waiting"
    arrive(model, reviewed, arriving, range(40, 300), 1)
    decide(reviewed, arriving)
    assert learn.learn(model, reviewed, out).state == "ready"
    again, old = load_bundle(out / "next"), load_bundle(model)
    assert np.array_equal(again.predict_proba(arriving.texts[:5]), old.predict_proba(arriving.texts[:5]))
    assert again.seen.is_in("filing", arriving.texts[40:73]).all()
    learn.switch(model, out)
    assert audits.may_file(load_bundle(model), reviewed)


def test_the_command_learns_switches_and_undoes(model, reviewed, arriving, tmp_path):
    def run(*arguments):
        done = CliRunner().invoke(app, ["learn", *map(str, (model, tmp_path / "reviews.sqlite", *arguments))])
        assert done.exit_code == 0, done.output
        return done.stdout

    out = ("--out", tmp_path / "next")
    assert json.loads(run(*out, "--calibrate", "--json"))["state"] == "waiting"
    arrive(model, reviewed, arriving, range(40, 300), 1)
    assert "0 of 33" in run(*out)
    decide(reviewed, arriving)
    assert "--switch" in run(*out)
    before = (model / "manifest.json").read_bytes()
    run(*out, "--switch")
    assert (model / "manifest.json").read_bytes() != before
    run(*out, "--undo")
    assert (model / "manifest.json").read_bytes() == before


def test_after_an_alarm_nothing_new_is_filed(model, store, arriving):
    """Texts that would be filed wait to be chosen, without anybody asking for it."""
    sure = [
        NewText(f"odd {number}", f"nothing {number}", {"decision": "file", "labels": []}, is_check=True)
        for number in range(60)
    ]
    store.add(sure)
    for text in store.lease("ann", "check", 100):
        store.decide(f"odd {text.number}", text.number, "ann", ["a label that is new"])
    arrive(model, store, arriving, range(60), 0)
    assert store.counts()["filed"].waiting == 0
