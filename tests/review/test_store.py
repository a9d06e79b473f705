"""Decisions in a database: leases, undo, keys sent twice, the blind check, several reviewers at once."""

import subprocess
import sys
import textwrap
import threading
import time
import uuid

import pytest

from surelabel.exceptions import ArtifactError, InvalidInputError, ReviewConflictError
from surelabel.review import Counts, NewText, ReviewStore


def text_of(name, decision="choose", *, check=False, columns=None):
    answer = {"decision": decision, "reason": "because", "labels": ["oil"], "consider": ["oil", "gas"], "size": 2**70}
    return NewText(name, f"text {name}", answer, "model-1", check, columns or {"id": name})


def fill(store, n=3, decision="choose"):
    assert store.add(text_of(str(number), decision) for number in range(1, n + 1)) == n


def ids(texts):
    return {text.id for text in texts}


def test_a_text_is_added_once(store):
    fill(store)
    assert store.add([text_of("1"), text_of("4"), text_of("4")]) == 1
    assert [text.id for text in store.texts()] == ["1", "2", "3", "4"]
    assert store.unknown([("1", "text 1"), ("1", "changed"), ("9", "text 9")]) == [1, 2]
    assert store.last_number() == max(text.number for text in store.texts())


def test_queues_follow_decisions_and_the_draw(store):
    store.add([text_of("1"), text_of("2", "read"), text_of("3", "file"), text_of("4", "file", check=True)])
    one = Counts(1, 0, 0)
    assert store.counts() == {"choose": one, "read": one, "check": one, "filed": one}
    assert [text.final_labels for text in store.texts()] == [None, None, ("oil",), None]


def test_what_is_saved_with_a_decision(store, clock):
    fill(store, 1)
    [text] = store.lease("ann", "choose")
    saved = store.decide("k1", text.number, "ann", ["oil", "gas", "oil"], seconds=2.5)
    [decision] = store.decisions()
    assert decision == saved
    assert (decision.number, text.id, text.model) == (text.number, "1", "model-1")
    assert decision.labels == ("gas", "oil")
    assert (decision.queue, decision.reviewer, decision.at) == ("choose", "ann", clock.now)
    assert (decision.seconds, decision.is_check) == (2.5, False)
    assert decision.answer == text.answer
    assert decision.answer["size"] == 2**70
    assert store.text(text.number).decision == decision
    assert store.text(text.number).final_labels == ("gas", "oil")


def test_labels_imply_the_action(store):
    fill(store, 4)
    texts = store.lease("ann", "choose")
    given = [["oil"], [], None, ["a label that no model knows"]]
    decisions = [
        store.decide(str(text.number), text.number, "ann", labels) for text, labels in zip(texts, given, strict=True)
    ]
    assert [decision.action for decision in decisions] == ["accept", "none", "skip", "change"]
    assert decisions[3].unknown_labels(["oil", "gas"]) == ("a label that no model knows",)
    assert decisions[0].unknown_labels(["oil", "gas"]) == ()


def test_blind_texts_never_reveal_the_answer_and_nothing_copies_it(store):
    store.add([text_of("1", "file", check=True)])
    [text] = store.lease("ann", "check")
    assert text.answer is None
    with pytest.raises(InvalidInputError):
        store.decide("k", text.number, "ann", "oil")  # not a list: no word stands for "accept"
    decision = store.decide("k", text.number, "ann", ["gas"])
    assert decision.answer is None
    assert decision.action == "blind"
    assert store.text(text.number).decision.answer is None
    assert store.undo("ann").answer is None
    assert next(store.texts()).answer is None
    store.decide("k2", text.number, "ann", ["gas"])
    [judged] = store.decisions()
    assert judged.answer["labels"] == ["oil"]  # for the figures alone


def test_a_leased_text_goes_to_nobody_else_until_the_lease_ends(store, clock):
    fill(store, 3)
    ann = ids(store.lease("ann", "choose", 2))
    bob = ids(store.lease("bob", "choose", 2))
    assert (len(ann), len(bob), ann & bob) == (2, 1, set())
    assert store.lease("eve", "choose") == []
    assert store.counts()["choose"] == Counts(3, 3, 0)
    clock.now += 30
    assert ids(store.lease("ann", "choose", 2)) == ann  # leased again: from now on
    clock.now += 31
    assert ids(store.lease("eve", "choose")) == bob
    clock.now += 61
    assert len(store.lease("bob", "choose")) == 3


def test_only_the_reviewer_who_leased_a_text_decides_it(store, clock):
    fill(store, 2)
    number = next(store.texts()).number
    with pytest.raises(ReviewConflictError, match="not leased"):
        store.decide("k", number, "ann", ["oil"])
    first, second = store.lease("ann", "choose")
    with pytest.raises(ReviewConflictError, match="not leased"):
        store.decide("k", first.number, "bob", ["oil"])
    clock.now += 61
    store.decide("late, but nobody else has it", first.number, "ann", ["oil"])
    store.lease("bob", "choose")
    with pytest.raises(ReviewConflictError, match="not leased"):
        store.decide("too late", second.number, "ann", ["oil"])
    store.decide("bob's", second.number, "bob", ["oil"])
    with pytest.raises(ReviewConflictError, match="is decided"):
        store.decide("after", second.number, "bob", ["oil"])
    assert [decision.reviewer for decision in store.decisions()] == ["ann", "bob"]


def test_a_clock_that_is_set_back_locks_no_text(store, clock):
    fill(store, 1)
    store.lease("ann", "choose")
    clock.now -= 86_400
    assert ids(store.lease("bob", "choose")) == {"1"}


def test_going_to_another_queue_releases_the_first(store):
    store.add([text_of("1"), text_of("2", "read")])
    store.lease("ann", "choose")
    store.lease("ann", "read")
    assert ids(store.lease("bob", "choose")) == {"1"}
    assert store.release("ann") == 1
    assert ids(store.lease("bob", "read")) == {"2"}


def test_a_decision_that_is_sent_again_is_saved_once(store):
    fill(store, 2)
    first, second = store.lease("ann", "choose")
    assert store.decide("key", first.number, "ann", ["oil"]) == store.decide("key", first.number, "ann", ["oil"])
    assert len(store.history()) == 1
    for number, labels in [(first.number, ["gas"]), (second.number, ["oil"]), (first.number, None)]:
        with pytest.raises(ReviewConflictError, match="another decision"):
            store.decide("key", number, "ann", labels)


def test_a_skipped_text_comes_back_last(store):
    fill(store, 3)
    order = [text.id for text in store.lease("ann", "choose")]
    skipped = store.lease("ann", "choose", 1)[0]
    store.decide("skip", skipped.number, "ann", None)
    store.release("ann")
    assert [text.id for text in store.lease("bob", "choose")] == [*order[1:], order[0]]
    assert store.decisions() == []
    assert [decision.action for decision in store.history()] == ["skip"]
    assert store.text(skipped.number).n_skips == 1


def test_undo_takes_back_one_decision_after_the_other(store, clock):
    fill(store, 3)
    texts = store.lease("ann", "choose")
    for key, (text, labels) in enumerate(zip(texts, (["oil"], None, []), strict=True)):
        store.decide(str(key), text.number, "ann", labels)
    assert store.undo("ann", "2").id == texts[2].id
    assert store.undo("ann", "2").id == texts[2].id  # sent again
    assert store.undo("ann").id == texts[1].id
    assert store.lease("bob", "choose") == []  # they are with ann again
    assert store.undo("ann").id == texts[0].id
    assert store.undo("ann") is None
    assert store.decisions() == []
    assert [decision.undone_at for decision in store.history()] == [clock.now] * 3
    assert ids(store.lease("ann", "choose")) == {"1", "2", "3"}
    store.decide("again", texts[0].number, "ann", ["gas"])
    assert [decision.labels for decision in store.decisions()] == [("gas",)]


def test_undo_is_of_ones_own_decisions_and_disturbs_nobody(store):
    fill(store, 1)
    [text] = store.lease("ann", "choose")
    store.decide("1", text.number, "ann", ["oil"])
    assert store.undo("bob") is None
    assert store.undo("bob", "1") is None
    assert len(store.decisions()) == 1
    store.undo("ann")
    store.decide("2", text.number, "ann", None)
    store.lease("bob", "choose")
    with pytest.raises(ReviewConflictError, match="another reviewer"):
        store.undo("ann")


def test_filed_texts_can_be_corrected(store):
    fill(store, 2, "file")
    first = store.lease("ann", "filed", 1)[0]
    store.decide("1", first.number, "ann", ["gas"])
    assert sorted(text.final_labels for text in store.texts()) == [("gas",), ("oil",)]
    assert store.counts()["filed"] == Counts(1, 0, 1)


def test_the_queues_are_in_random_order_and_the_check_in_order_of_arrival(store):
    store.add(text_of(str(number)) for number in range(40))
    store.add(text_of(f"check {number}", check=True) for number in range(40))
    order = [int(text.id) for text in store.lease("ann", "choose", 40)]
    assert sorted(order) == list(range(40))
    assert order != sorted(order)
    assert [text.id for text in store.lease("ann", "check", 40)] == [f"check {number}" for number in range(40)]


def test_texts_that_databases_dislike_are_kept(store):
    nasty = "nul \0 and \N{PILE OF POO} 'quoted' \\u0000 \ud800 ; DROP TABLE x"
    answer = {"decision": "read", "labels": [], "confidence": float("nan")}
    store.add([NewText("\N{SNOWMAN}\0", nasty, answer, "m", columns={"a\0": nasty, "b": None, "c": 1.5, "d": {3}})])
    [text] = store.lease("ann", "read")
    assert text.text == nasty.replace("\0", "\N{REPLACEMENT CHARACTER}").replace("\ud800", "?")
    assert text.answer["confidence"] is None
    assert text.columns["b"] is None
    assert text.columns["c"] == 1.5
    assert store.unknown([("\N{SNOWMAN}\0", nasty)]) == []


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.lease("ann", "later"),
        lambda store: store.lease("", "choose"),
        lambda store: store.lease("x" * 201, "choose"),
        lambda store: store.lease("ann", "choose", 0),
        lambda store: store.decide("k", 99, "ann", []),
        lambda store: store.decide("k", 2**63, "ann", []),
        lambda store: store.decide("k", 10**40, "ann", []),
        lambda store: store.decide("k", -1, "ann", []),
        lambda store: store.decide("", 1, "ann", []),
        lambda store: store.decide("k", 1, "ann", ["a\0b"]),
        lambda store: store.decide("k", 1, "ann", ["\ud800"]),
        lambda store: store.decide("k", 1, "ann", [" "]),
        lambda store: store.decide("k", 1, "ann", [1]),
        lambda store: store.decide("k", 1, "ann", ["x" * 2_000]),
        lambda store: store.decide("k", 1, "ann", [], seconds=float("nan")),
        lambda store: store.decide("k", 1, "ann", [], seconds=-1),
        lambda store: store.decide("k", 1, "ann", [], seconds=10**400),
        lambda store: store.text(2**64),
        lambda store: list(store.texts("later")),
        lambda store: store.add([NewText("1", "text", {"decision": "burn", "labels": []})]),
    ],
)
def test_wrong_use_is_a_clear_error(store, call):
    fill(store, 1)
    store.lease("ann", "choose")
    with pytest.raises(InvalidInputError):
        call(store)
    assert store.history() == []


def test_what_is_no_store(tmp_path):
    with pytest.raises(InvalidInputError, match="SQLite file or a postgresql"):
        ReviewStore("mysql://root@localhost/reviews")
    (tmp_path / "notes.txt").write_text("not a database, but long enough to be taken for one" * 20)
    with pytest.raises(ArtifactError, match=r"notes\.txt"):
        ReviewStore(tmp_path / "notes.txt")
    pytest.importorskip("psycopg")
    with pytest.raises(ArtifactError, match=r"\*\*\*") as error:
        ReviewStore("postgresql://surelabel:secret@127.0.0.1:1/none")
    assert "secret" not in str(error.value)


def test_a_store_of_another_version_is_refused(tmp_path):
    import sqlite3

    with ReviewStore(tmp_path / "s.sqlite"):
        pass
    with sqlite3.connect(tmp_path / "s.sqlite") as connection:
        connection.execute("UPDATE surelabel_meta SET version = 99")
    with pytest.raises(ArtifactError, match="version 99"):
        ReviewStore(tmp_path / "s.sqlite")


def test_the_draw_is_the_same_after_a_restart(url):
    names = [str(number) for number in range(2_000)]
    with ReviewStore(url) as first:
        drawn = [first.is_drawn(name, name, 0.1) for name in names]
        assert not any(first.is_drawn(name, name, 0.0) for name in names)
        assert all(first.is_drawn(name, name, 1.0) for name in names)
    with ReviewStore(url) as second:
        assert drawn == [second.is_drawn(name, name, 0.1) for name in names]
    assert 140 < sum(drawn) < 260


def work(url, reviewer, problems):
    """Decide texts until none is left; now and then send a decision twice, skip, or undo."""
    try:
        turn = 0
        with ReviewStore(url, lease_seconds=120) as store:
            while texts := store.lease(reviewer, "choose", 5):
                for text in texts:
                    turn += 1
                    key = str(uuid.uuid4())
                    labels = None if turn % 17 == 0 else ["oil", reviewer]
                    first = store.decide(key, text.number, reviewer, labels)
                    if turn % 5 == 0:
                        assert store.decide(key, text.number, reviewer, labels) == first
                    if turn % 23 == 0 and labels:
                        assert store.undo(reviewer, key).number == text.number
                        store.decide(str(uuid.uuid4()), text.number, reviewer, ["gas", reviewer])
    except Exception as error:
        problems.append(error)


def work_together(url, n_reviewers, n_texts):
    """Let reviewers work at once; every text is decided once, by the reviewer who is named."""
    with ReviewStore(url) as store:
        fill(store, n_texts)
        problems = []
        threads = [
            threading.Thread(target=work, args=(url, f"reviewer-{number}", problems)) for number in range(n_reviewers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == []
        decisions = store.decisions()
        assert sorted(decision.number for decision in decisions) == list(range(1, n_texts + 1))
        assert all(decision.reviewer in decision.labels for decision in decisions)
        assert store.counts()["choose"] == Counts(0, 0, n_texts)
        history = store.history()
        n_undone = sum(decision.undone_at is not None for decision in history)
        n_skipped = sum(decision.labels is None for decision in history)
        assert len(history) == n_texts + n_skipped + n_undone


def test_four_reviewers_at_once(url):
    work_together(url, 4, 120)


@pytest.mark.slow
def test_two_thousand_decisions_of_four_reviewers(url):
    work_together(url, 4, 2_000)


def test_a_killed_process_loses_no_decision_that_it_reported(url):
    """A process prints each decision after it is saved, and is killed in the middle."""
    with ReviewStore(url) as store:
        fill(store, 400)
        code = textwrap.dedent(f"""
            from surelabel.review import ReviewStore
            store = ReviewStore({str(url)!r})
            while texts := store.lease("ann", "choose", 5):
                for text in texts:
                    store.decide(f"key-{{text.number}}", text.number, "ann", ["oil"])
                    print(text.number, flush=True)
        """)
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
            reported = [int(process.stdout.readline()) for _ in range(20)]
            process.kill()
            reported += [int(line) for line in process.stdout if line.endswith("\n")]
        saved = {decision.number for decision in store.decisions()}
        assert set(reported) <= saved
        assert len(saved) - len(reported) <= 1
    # Nothing is stuck: another reviewer gets the other texts after the lease.
    with ReviewStore(url, clock=lambda: time.time() + 1_000) as later:
        left = 400 - len(saved)
        got = later.lease("bob", "choose", 400)
        assert len(got) == left
        if got:
            later.decide("bob", got[0].number, "bob", ["oil"])
